//! DATA: received content, passed on as it comes, and its flow control (RFC 9113 sections 6.1 and 6.9).

use super::StreamId;
use super::connection::{Connection, ConnectionError, Rx, Side, Stepped};
use super::event::Step;
use super::frame::{ErrorCode, FrameHead, flag, kind, write_u32_frame};
use super::settings::Release;
use super::streams::{UNKNOWN, is};

/// A DATA frame whose content is being passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFrame {
    stream: StreamId,
    /// Bytes of content still to come.
    left: u32,
    /// Bytes of padding after them.
    padding: u32,
    end: bool,
}

impl<S: Side> Connection<S> {
    /// The head of a DATA frame. The whole frame counts for flow control, padding included (section 6.1).
    #[inline]
    pub(super) fn data(&mut self, head: FrameHead, out: &mut Vec<u8>) -> Stepped {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("DATA on stream 0"));
        }
        if head.has(flag::PADDED) && head.len == 0 {
            return Err(ConnectionError::frame_size("DATA without its padding length"));
        }
        if i64::from(head.len) > self.receive.left {
            return Err(ConnectionError::new(
                ErrorCode::FLOW_CONTROL_ERROR,
                "more than the connection's window",
            ));
        }
        self.receive.left -= i64::from(head.len);
        let Some(at) = self.streams.find(head.stream) else { return self.stray_data(head, out) };
        let stream = &mut self.streams[at];
        let fault = if stream.has(is::REMOTE_CLOSED) {
            Some((ErrorCode::STREAM_CLOSED, "DATA after END_STREAM"))
        } else if !stream.has(is::HEAD_SEEN) {
            Some((ErrorCode::PROTOCOL_ERROR, "DATA before the head"))
        } else if i64::from(head.len) > i64::from(stream.receive_window) {
            Some((ErrorCode::FLOW_CONTROL_ERROR, "more than the stream's window"))
        } else {
            None
        };
        if let Some((code, reason)) = fault {
            return self.refuse_data(head.stream, head.len, head.len, (code, reason), out);
        }
        stream.receive_window -= head.len as i32;
        if head.has(flag::PADDED) {
            self.rx = Rx::PadLength(head);
            return Ok(None);
        }
        self.begin_content(head, head.len, 0, out)
    }

    /// DATA on a stream that is not open.
    #[cold]
    fn stray_data(&mut self, head: FrameHead, out: &mut Vec<u8>) -> Stepped {
        self.check_closed(head.stream, "DATA")?;
        self.idle_frame("too much DATA on closed streams")?;
        self.counters.ignored += 1;
        self.release_connection(head.len, out);
        self.skip(head.len);
        Ok(None)
    }

    /// A stream error in the middle of a DATA frame of `flow` bytes, `left` of which are still to come.
    #[cold]
    fn refuse_data(
        &mut self,
        stream: StreamId,
        flow: u32,
        left: u32,
        (code, reason): (ErrorCode, &'static str),
        out: &mut Vec<u8>,
    ) -> Stepped {
        self.release_connection(flow, out);
        self.skip(left);
        self.stream_error(stream, code, reason, out).map(Some)
    }

    /// A DATA frame of which the padding is known.
    #[inline]
    pub(super) fn begin_content(
        &mut self,
        head: FrameHead,
        len: u32,
        padding: u32,
        out: &mut Vec<u8>,
    ) -> Stepped {
        let end = head.has(flag::END_STREAM);
        let Some(at) = self.streams.find(head.stream) else {
            // The caller has reset it between two calls.
            self.release_connection(head.len, out);
            self.skip(len + padding);
            return Ok(None);
        };
        let stream = &mut self.streams[at];
        if stream.expected != UNKNOWN {
            if u64::from(len) > stream.expected || (end && u64::from(len) < stream.expected) {
                let fault = (ErrorCode::PROTOCOL_ERROR, "content differs from content-length");
                return self.refuse_data(head.stream, head.len, len + padding, fault, out);
            }
            stream.expected -= u64::from(len);
        }
        // Padding is consumed here in either case; nobody else sees it.
        let released = if self.config.release == Release::OnReceipt { head.len } else { head.len - len };
        if released > 0 {
            self.release_connection(released, out);
            self.release_stream(at, released, end, out);
        }
        if len == 0 && !end {
            self.idle_frame("too many empty DATA frames")?;
            self.skip(padding);
            return Ok(None);
        }
        self.useful();
        self.rx = Rx::Data(DataFrame { stream: head.stream, left: len, padding, end });
        Ok(None)
    }

    #[inline]
    pub(super) fn content(&mut self, frame: DataFrame, input: &[u8], at: &mut usize) -> Option<Step> {
        let now = (input.len() - *at).min(frame.left as usize);
        if now == 0 && frame.left > 0 {
            return Some(Step::NeedMore);
        }
        let Some(place) = self.streams.find(frame.stream) else {
            // The caller has reset it between two calls; what was not passed on is released as if it had been.
            if self.config.release == Release::ByCaller {
                self.receive.owed += frame.left;
            }
            self.skip(frame.left + frame.padding);
            return None;
        };
        let (from, left) = (*at, frame.left - now as u32);
        *at += now;
        let tag = self.streams[place].tag;
        if left > 0 {
            self.rx = Rx::Data(DataFrame { left, ..frame });
        } else {
            self.skip(frame.padding);
            if frame.end {
                self.close_remote(place);
            }
        }
        let end = frame.end && left == 0;
        Some(Step::Data { stream: frame.stream, tag, from, to: *at, end })
    }

    #[inline]
    pub(super) fn release_connection(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.receive.owed += bytes;
        if self.receive.owed > self.config.connection_window / 2 {
            let owed = std::mem::take(&mut self.receive.owed);
            self.receive.left += i64::from(owed);
            write_u32_frame(out, kind::WINDOW_UPDATE, 0, owed);
        }
    }

    #[inline]
    pub(super) fn release_stream(&mut self, at: usize, bytes: u32, end: bool, out: &mut Vec<u8>) {
        let stream = &mut self.streams[at];
        stream.owed += bytes;
        if stream.owed > self.config.stream_window / 2 && !end && !stream.has(is::REMOTE_CLOSED) {
            let owed = std::mem::take(&mut stream.owed);
            stream.receive_window += owed as i32;
            write_u32_frame(out, kind::WINDOW_UPDATE, stream.id, owed);
        }
    }
}
