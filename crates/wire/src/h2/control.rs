//! The frames that carry no message: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, and PUSH_PROMISE, which
//! nobody may send us (RFC 9113 sections 6.3 to 6.9).

use super::connection::{Connection, ConnectionError, Side, Stepped};
use super::event::{Cause, Step};
use super::frame::{ErrorCode, FrameHead, flag, kind, write_head, write_ping};
use super::settings::MAX_31;
use super::streams::is;

impl<S: Side> Connection<S> {
    /// Any complete frame but DATA and HEADERS.
    #[inline(never)]
    pub(super) fn control(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        match head.kind {
            kind::CONTINUATION => self.continuation(head, payload, out),
            kind::PRIORITY => self.priority(head, payload, out),
            kind::RST_STREAM => self.rst_stream(head, payload),
            kind::SETTINGS => self.settings(head, payload, out),
            kind::PING => self.ping_frame(head, payload, out),
            kind::GOAWAY => self.goaway(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload, out),
            // The only kind left that has a meaning.
            _ => Err(ConnectionError::protocol("PUSH_PROMISE")),
        }
    }

    /// Read for its faults only: nobody is served first.
    fn priority(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        self.idle_frame("too many PRIORITY frames")?;
        if head.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY on stream 0"));
        }
        let open = self.streams.find(head.stream).is_some();
        let [a, b, c, d, _] = *payload else {
            if open {
                let reason = "PRIORITY of a wrong length";
                return self.stream_error(head.stream, ErrorCode::FRAME_SIZE_ERROR, reason, out).map(Some);
            }
            return Err(ConnectionError::frame_size("PRIORITY of a wrong length"));
        };
        if u32::from_be_bytes([a & 0x7f, b, c, d]) != head.stream {
            return Ok(None);
        }
        let reason = "a stream that depends on itself";
        match open {
            true => self.stream_error(head.stream, ErrorCode::PROTOCOL_ERROR, reason, out).map(Some),
            // There is nothing to reset.
            false => Err(ConnectionError::protocol(reason)),
        }
    }

    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Stepped {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("RST_STREAM on stream 0"));
        }
        let code = ErrorCode(u32_of(payload, "RST_STREAM of a wrong length")?);
        if self.is_idle(head.stream) {
            return Err(ConnectionError::protocol("RST_STREAM on an idle stream"));
        }
        let Some(at) = self.streams.find(head.stream) else {
            self.idle_frame("too many RST_STREAM on closed streams")?;
            return Ok(None);
        };
        let tag = self.streams.remove(at).tag;
        self.reset_charge()?;
        Ok(Some(Step::Reset { stream: head.stream, tag, code, cause: Cause::Peer }))
    }

    fn settings(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return self.settings_ack(payload);
        }
        if !payload.len().is_multiple_of(6) {
            return Err(ConnectionError::frame_size("SETTINGS of a wrong length"));
        }
        self.idle_frame("too many SETTINGS")?;
        let before = self.peer;
        for setting in payload.chunks_exact(6) {
            let id = u16::from_be_bytes([setting[0], setting[1]]);
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            self.peer.set(id, value, !S::SERVER)?;
            // One by one: a table that shrinks and grows within one frame is emptied.
            self.encoder.limit(self.peer.header_table_bytes);
        }
        self.shift_windows(i64::from(self.peer.stream_window) - i64::from(before.stream_window))?;
        self.introduced = true;
        write_head(out, 0, kind::SETTINGS, flag::ACK, 0);
        Ok(Some(Step::Settings))
    }

    fn settings_ack(&mut self, payload: &[u8]) -> Stepped {
        if !payload.is_empty() {
            return Err(ConnectionError::frame_size("SETTINGS acknowledgement with a payload"));
        }
        if self.acks_awaited == 0 {
            self.idle_frame("too many SETTINGS acknowledgements")?;
            return Ok(None);
        }
        self.acks_awaited -= 1;
        self.decoder.acknowledged(self.config.header_table_bytes);
        Ok(None)
    }

    /// A changed initial window changes that of every stream; it may become negative (section 6.9.2).
    fn shift_windows(&mut self, by: i64) -> Result<(), ConnectionError> {
        if by == 0 {
            return Ok(());
        }
        for stream in self.streams.iter_mut() {
            let window = i64::from(stream.send_window) + by;
            if window > i64::from(MAX_31) {
                return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, "window above 2^31 - 1"));
            }
            stream.send_window = window as i32;
            self.opened |= by > 0 && window > 0 && stream.has(is::BLOCKED);
        }
        Ok(())
    }

    fn ping_frame(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("PING on a stream"));
        }
        let Ok(data) = <[u8; 8]>::try_from(payload) else {
            return Err(ConnectionError::frame_size("PING of a wrong length"));
        };
        self.idle_frame("too many PINGs")?;
        if head.has(flag::ACK) {
            return Ok(Some(Step::Pong(data)));
        }
        self.counters.pings += 1;
        write_ping(out, flag::ACK, data);
        Ok(None)
    }

    fn goaway(&mut self, head: FrameHead, payload: &[u8]) -> Stepped {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("GOAWAY on a stream"));
        }
        let Some(&[a, b, c, d, e, f, g, h]) = payload.first_chunk::<8>() else {
            return Err(ConnectionError::frame_size("GOAWAY too short"));
        };
        self.idle_frame("too many GOAWAYs")?;
        let last = u32::from_be_bytes([a & 0x7f, b, c, d]);
        let code = ErrorCode(u32::from_be_bytes([e, f, g, h]));
        self.goaway_received = true;
        if !S::SERVER {
            self.given_up = self.streams.iter().map(|stream| stream.id).filter(|&id| id > last).collect();
            self.given_up.sort_unstable_by(|a, b| b.cmp(a));
        }
        Ok(Some(Step::GoAway { last, code }))
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        let by = u32_of(payload, "WINDOW_UPDATE of a wrong length")? & MAX_31;
        self.idle_frame("too many WINDOW_UPDATEs")?;
        if head.stream == 0 {
            return self.connection_window_update(by);
        }
        let Some(at) = self.streams.find(head.stream) else {
            return match self.is_idle(head.stream) {
                true => Err(ConnectionError::protocol("WINDOW_UPDATE on an idle stream")),
                false => Ok(None),
            };
        };
        let stream = &mut self.streams[at];
        let window = i64::from(stream.send_window) + i64::from(by);
        let fault = match (by, window > i64::from(MAX_31)) {
            (0, _) => Some((ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE of zero")),
            (_, true) => Some((ErrorCode::FLOW_CONTROL_ERROR, "window above 2^31 - 1")),
            _ => None,
        };
        if let Some((code, reason)) = fault {
            return self.stream_error(head.stream, code, reason, out).map(Some);
        }
        stream.send_window = window as i32;
        if stream.has(is::BLOCKED) && window > 0 {
            stream.flags &= !is::BLOCKED;
            return Ok(Some(Step::WindowOpened(Some((stream.id, stream.tag)))));
        }
        Ok(None)
    }

    fn connection_window_update(&mut self, by: u32) -> Stepped {
        if by == 0 {
            return Err(ConnectionError::protocol("WINDOW_UPDATE of zero"));
        }
        self.send_window += i64::from(by);
        if self.send_window > i64::from(MAX_31) {
            return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, "window above 2^31 - 1"));
        }
        let opened = std::mem::take(&mut self.blocked);
        Ok(opened.then_some(Step::WindowOpened(None)))
    }
}

fn u32_of(payload: &[u8], wrong_length: &'static str) -> Result<u32, ConnectionError> {
    match <[u8; 4]>::try_from(payload) {
        Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
        Err(_) => Err(ConnectionError::frame_size(wrong_length)),
    }
}
