//! What both sides send: content under flow control, resets, pings, the end.

use std::fmt;

use super::StreamId;
use super::connection::{Connection, Counters, Side};
use super::frame::{
    ErrorCode, FrameHead, HEAD_BYTES, flag, kind, write_goaway, write_head, write_ping, write_u32_frame,
};
use super::hpack::PreparedHead;
use super::settings::{PeerSettings, Release};
use super::streams::is;

/// Frames of content are no larger than this even if the peer would take more, so that streams take turns.
const CONTENT_MAX: usize = 16_384;

/// The stream is not open for sending: the peer or we reset it, or its end was sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamGone;

impl fmt::Display for StreamGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream is closed")
    }
}

impl std::error::Error for StreamGone {}

impl<S: Side> Connection<S> {
    /// Writes as much of `bytes` as the windows allow and says how much that was; `end` is sent with the last of it. If
    /// less than all was taken, `WindowOpened` says when to offer the rest.
    pub fn send_data(
        &mut self,
        stream: StreamId,
        bytes: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize, StreamGone> {
        let mut sent = 0;
        loop {
            let now = self.data_head(stream, bytes.len() - sent, end, out)?;
            out.extend_from_slice(&bytes[sent..sent + now]);
            sent += now;
            if now == 0 || sent == bytes.len() {
                return Ok(sent);
            }
        }
    }

    /// Writes only the head of one DATA frame, for content that the caller writes itself: exactly as many bytes as are
    /// returned, before anything else. 0 means that the windows are closed, or, if `available` is 0, that an empty frame
    /// with `end` was written. `end` counts only if all that is available fits.
    #[inline]
    pub fn data_head(
        &mut self,
        stream: StreamId,
        available: usize,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize, StreamGone> {
        let at = self.streams.find(stream).ok_or(StreamGone)?;
        let it = &mut self.streams[at];
        if it.has(is::LOCAL_CLOSED) {
            return Err(StreamGone);
        }
        debug_assert!(it.has(is::HEAD_SENT), "expected a head before content");
        let window = self.send_window.min(it.send_window.into()).max(0) as usize;
        let now = available.min(window).min(CONTENT_MAX);
        if now == window && now < available {
            if i64::from(it.send_window) <= now as i64 {
                it.flags |= is::BLOCKED;
            }
            self.blocked |= self.send_window <= now as i64;
        }
        let end = end && now == available;
        if now == 0 && !end {
            return Ok(0);
        }
        it.send_window -= now as i32;
        self.send_window -= now as i64;
        write_head(out, now, kind::DATA, if end { flag::END_STREAM } else { 0 }, stream);
        if end {
            it.flags |= is::LOCAL_CLOSED;
            self.forget_closed(at);
        }
        self.useful();
        Ok(now)
    }

    /// Bytes of content that the windows allow on this stream now; 0 if it is gone.
    pub fn sendable(&self, stream: StreamId) -> usize {
        let Some(at) = self.streams.find(stream) else { return 0 };
        self.send_window.min(self.streams[at].send_window.into()).max(0) as usize
    }

    /// Ends the message that we send with fields. Trailers are not subject to flow control; send the content first.
    pub fn send_trailers(
        &mut self,
        stream: StreamId,
        trailers: &PreparedHead,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamGone> {
        let at = self.streams.find(stream).ok_or(StreamGone)?;
        if self.streams[at].has(is::LOCAL_CLOSED) {
            return Err(StreamGone);
        }
        debug_assert!(self.streams[at].has(is::HEAD_SENT), "expected a head before trailers");
        self.write_headers(stream, trailers, &[], true, out);
        self.streams[at].flags |= is::LOCAL_CLOSED;
        self.forget_closed(at);
        Ok(())
    }

    /// Gives up a stream: RST_STREAM is written, and what the peer still sends on it is ignored. No event follows.
    /// Returns false, and writes nothing, if the stream is gone already.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let Some(at) = self.streams.find(stream) else { return false };
        self.streams.remove(at);
        self.reset_log.add(stream);
        write_u32_frame(out, kind::RST_STREAM, stream, code.0);
        true
    }

    /// With [`Release::ByCaller`]: so many bytes of received content were consumed, and the peer may send as many more.
    /// The stream may be gone; the connection's window is opened all the same. Never release more than was received.
    pub fn release(&mut self, stream: StreamId, bytes: usize, out: &mut Vec<u8>) {
        debug_assert!(self.config.release == Release::ByCaller, "expected to be configured for release");
        self.release_connection(bytes as u32, out);
        if let Some(at) = self.streams.find(stream) {
            self.release_stream(at, bytes as u32, false, out);
        }
    }

    /// Writes a PING; `Pong` brings its data back.
    pub fn ping(&mut self, data: [u8; 8], out: &mut Vec<u8>) {
        // Its answer is no idle frame.
        self.useful();
        write_ping(out, 0, data);
    }

    /// Writes a GOAWAY: the peer's streams up to the last one seen are served, later ones are not. Idempotent but for the
    /// frame; a client names no stream, because no server opens any.
    pub fn go_away(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.accept_up_to = self.accept_up_to.min(self.highest_id);
        self.goaway_sent = true;
        write_goaway(out, self.accept_up_to, code, "");
    }

    /// Marks an open stream with the caller's own word, which its events bring along.
    pub fn set_tag(&mut self, stream: StreamId, tag: u32) {
        if let Some(at) = self.streams.find(stream) {
            self.streams[at].tag = tag;
        }
    }

    /// Streams that are open or half closed.
    pub fn active_streams(&self) -> usize {
        self.streams.len()
    }

    /// Our GOAWAY was written, or the peer's was received: no further stream will be opened.
    pub fn is_going_away(&self) -> bool {
        self.goaway_sent || self.goaway_received
    }

    /// What the peer has announced. Before its first SETTINGS: the protocol's initial values.
    pub fn peer_settings(&self) -> &PeerSettings {
        &self.peer
    }

    /// The peer's first SETTINGS have come.
    pub fn has_settings(&self) -> bool {
        self.introduced
    }

    /// All SETTINGS that we have sent are acknowledged.
    pub fn settings_acknowledged(&self) -> bool {
        self.acks_awaited == 0
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Forgives all that was held against the peer (see [`super::Limits`]). For whoever has a clock: a second is long
    /// enough for what an honest peer does.
    pub fn calm(&mut self) {
        self.resets_left = self.config.limits.resets;
        self.idle_frames_left = self.config.limits.idle_frames;
    }

    /// Bytes of memory held between calls, beyond the struct itself.
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity()
            + self.block.capacity()
            + self.decoder.held_bytes()
            + self.streams.held_bytes()
    }

    /// HEADERS, and CONTINUATION if one frame cannot take the block.
    #[inline]
    pub(super) fn write_headers(
        &mut self,
        stream: StreamId,
        head: &PreparedHead,
        extra: &[(&[u8], &[u8])],
        end: bool,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let end = if end { flag::END_STREAM } else { 0 };
        write_head(out, 0, kind::HEADERS, flag::END_HEADERS | end, stream);
        self.encoder.encode(head, extra, out);
        let len = out.len() - start - HEAD_BYTES;
        if len > self.peer.max_frame_bytes as usize {
            return split(out, start, self.peer.max_frame_bytes as usize, stream, end);
        }
        let [_, a, b, c] = (len as u32).to_be_bytes();
        out[start..start + 3].copy_from_slice(&[a, b, c]);
    }
}

/// Makes several frames of the one that begins at `start`.
#[cold]
fn split(out: &mut Vec<u8>, start: usize, frame_max: usize, stream: StreamId, end: u8) {
    let block = out.split_off(start + HEAD_BYTES);
    out.truncate(start);
    let frames = block.len().div_ceil(frame_max);
    for (number, part) in block.chunks(frame_max).enumerate() {
        let (kind, first) = if number == 0 { (kind::HEADERS, end) } else { (kind::CONTINUATION, 0) };
        let last = if number + 1 == frames { flag::END_HEADERS } else { 0 };
        let head = FrameHead { len: part.len() as u32, kind, flags: first | last, stream };
        out.extend_from_slice(&head.bytes());
        out.extend_from_slice(part);
    }
}
