//! HEADERS and CONTINUATION (RFC 9113 sections 4.3, 6.2 and 6.10), and whether the message they begin or end is well
//! formed (section 8). A block is always decoded, whatever becomes of its stream, because the table must be kept.

use super::StreamId;
use super::connection::{Connection, ConnectionError, HeadFound, Rx, Side, Stepped};
use super::event::Step;
use super::frame::{ErrorCode, FrameHead, flag, kind, write_u32_frame};
use super::hpack::{BlockError, Kind};
use super::settings::WINDOW;
use super::streams::{Stream, UNKNOWN, is};

/// Where a header block stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Input(usize, usize),
    Partial(usize, usize),
    /// Put together from several frames.
    Block,
}

impl Place {
    /// The part of a payload that stands at `self`.
    fn part(self, from: usize, to: usize) -> Place {
        match self {
            Place::Input(start, _) => Place::Input(start + from, start + to),
            Place::Partial(start, _) => Place::Partial(start + from, start + to),
            Place::Block => Place::Block,
        }
    }
}

/// A header block without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlock {
    pub(super) stream: StreamId,
    end: bool,
    target: Target,
    frames: u32,
}

/// What is to become of a block once it is decoded.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// A new request.
    Open,
    /// A response, or trailers.
    Existing,
    /// One stream too many.
    Refused,
    Ignored,
    Fault(ErrorCode, &'static str),
}

impl<S: Side> Connection<S> {
    #[inline]
    pub(super) fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        place: Place,
        out: &mut Vec<u8>,
    ) -> Stepped {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("HEADERS on stream 0"));
        }
        let (from, to, depends_on) = strip(head, payload)?;
        let mut target = self.target(head.stream)?;
        if depends_on == Some(head.stream) && !matches!(target, Target::Ignored) {
            target = Target::Fault(ErrorCode::PROTOCOL_ERROR, "a stream that depends on itself");
        }
        let end = head.has(flag::END_STREAM);
        let block = &payload[from..to];
        if head.has(flag::END_HEADERS) {
            return self.block_complete(head.stream, end, target, block, place.part(from, to), out);
        }
        self.open_block = Some(OpenBlock { stream: head.stream, end, target, frames: 0 });
        self.block.clear();
        self.append_block(block)?;
        Ok(None)
    }

    pub(super) fn continuation(&mut self, head: FrameHead, payload: &[u8], out: &mut Vec<u8>) -> Stepped {
        let Some(open) = self.open_block else {
            return Err(ConnectionError::protocol("CONTINUATION without HEADERS"));
        };
        self.append_block(payload)?;
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        self.open_block = None;
        let block = std::mem::take(&mut self.block);
        let stepped = self.block_complete(open.stream, open.end, open.target, &block, Place::Block, out);
        self.block = block;
        stepped
    }

    fn append_block(&mut self, part: &[u8]) -> Result<(), ConnectionError> {
        let limits = self.config.limits;
        let Some(open) = &mut self.open_block else { return Ok(()) };
        open.frames += 1;
        if open.frames > limits.block_frames {
            return Err(ConnectionError::calm("header block of too many frames"));
        }
        if self.block.len() + part.len() > limits.block_bytes as usize {
            return Err(ConnectionError::calm("header block too large"));
        }
        self.block.extend_from_slice(part);
        Ok(())
    }

    /// Judges the stream id (section 5.1.1) and the stream's state.
    #[inline]
    fn target(&mut self, id: StreamId) -> Result<Target, ConnectionError> {
        if S::SERVER && id > self.highest_id {
            return self.target_new(id);
        }
        let Some(at) = self.streams.find(id) else { return self.target_closed(id) };
        match self.streams[at].has(is::REMOTE_CLOSED) {
            true => Ok(Target::Fault(ErrorCode::STREAM_CLOSED, "HEADERS after END_STREAM")),
            false => Ok(Target::Existing),
        }
    }

    fn target_new(&mut self, id: StreamId) -> Result<Target, ConnectionError> {
        if id.is_multiple_of(2) {
            return Err(ConnectionError::protocol("a client's stream with an even id"));
        }
        if id > self.highest_id + 2 {
            self.skipped = (self.highest_id + 1, id);
        }
        self.highest_id = id;
        if id > self.accept_up_to {
            self.counters.unprocessed += 1;
            self.idle_frame("too many streams after GOAWAY")?;
            return Ok(Target::Ignored);
        }
        match self.streams.len() < self.config.max_streams as usize {
            true => Ok(Target::Open),
            false => Ok(Target::Refused),
        }
    }

    #[cold]
    fn target_closed(&mut self, id: StreamId) -> Result<Target, ConnectionError> {
        if id.is_multiple_of(2) {
            return Err(ConnectionError::protocol("HEADERS on an even stream"));
        }
        if S::SERVER && self.skipped.0 <= id && id < self.skipped.1 {
            return Err(ConnectionError::protocol("a stream id below an earlier one"));
        }
        self.check_closed(id, "HEADERS")?;
        self.counters.ignored += 1;
        self.idle_frame("too many HEADERS on closed streams")?;
        Ok(Target::Ignored)
    }

    #[inline]
    fn block_complete(
        &mut self,
        stream: StreamId,
        end: bool,
        target: Target,
        block: &[u8],
        place: Place,
        out: &mut Vec<u8>,
    ) -> Stepped {
        self.decoder.decode(block).map_err(|error| match error {
            BlockError::Invalid(reason) => ConnectionError::new(ErrorCode::COMPRESSION_ERROR, reason),
            BlockError::TooLarge => ConnectionError::calm("header list too large"),
        })?;
        match target {
            Target::Open => self.open(stream, end, place, out),
            Target::Existing => self.existing(stream, end, place, out),
            Target::Refused => self.refuse(stream, out),
            Target::Ignored => Ok(None),
            Target::Fault(code, reason) => self.stream_error(stream, code, reason, out).map(Some),
        }
    }

    /// Before our SETTINGS are acknowledged, the client cannot know the limit; but it cannot put that off for ever.
    #[cold]
    fn refuse(&mut self, stream: StreamId, out: &mut Vec<u8>) -> Stepped {
        match self.acks_awaited {
            0 => self.reset_charge()?,
            _ => self.idle_frame("too many streams before the acknowledgement of SETTINGS")?,
        }
        self.counters.refused += 1;
        self.reset_log.add(stream);
        write_u32_frame(out, kind::RST_STREAM, stream, ErrorCode::REFUSED_STREAM.0);
        Ok(None)
    }

    #[inline]
    fn open(&mut self, id: StreamId, end: bool, place: Place, out: &mut Vec<u8>) -> Stepped {
        if let Some(reason) = self.request_fault(end) {
            return self.stream_error(id, ErrorCode::PROTOCOL_ERROR, reason, out).map(Some);
        }
        // Until the client has acknowledged our settings, it may use the initial window.
        let least = if self.acks_awaited > 0 { WINDOW } else { 0 };
        let window = self.config.stream_window.max(least);
        let mut stream = Stream::new(id, 0, self.peer.stream_window, window);
        stream.flags = is::HEAD_SEEN | if end { is::REMOTE_CLOSED } else { 0 };
        stream.expected = self.decoder.summary().content_length.unwrap_or(UNKNOWN);
        self.streams.insert(stream);
        self.useful();
        Ok(Some(Step::Head(HeadFound { stream: id, tag: 0, end }, place)))
    }

    /// Sections 8.3.1 and 8.5.
    #[inline]
    fn request_fault(&mut self, end: bool) -> Option<&'static str> {
        const METHOD: u16 = 1 << Kind::Method as u16;
        const SCHEME: u16 = 1 << Kind::Scheme as u16;
        const PATH: u16 = 1 << Kind::Path as u16;
        const AUTHORITY: u16 = 1 << Kind::Authority as u16;
        let summary = *self.decoder.summary();
        if summary.fault.is_some() {
            return summary.fault;
        }
        if end && summary.content_length.is_some_and(|n| n != 0) {
            return Some("content differs from content-length");
        }
        if summary.pseudo & !AUTHORITY != METHOD | SCHEME | PATH {
            // CONNECT names only whom to connect to.
            return match summary.pseudo == METHOD | AUTHORITY && summary.connect {
                true => None,
                false => Some("missing or wrong pseudo-header field"),
            };
        }
        let [method, path, authority] = self.decoder.request_emptiness();
        match (method, path, authority) {
            (true, ..) => Some("empty :method"),
            (_, true, _) => Some("empty :path"),
            (.., true) if summary.saw(Kind::Authority) => Some("empty :authority"),
            _ => None,
        }
    }

    #[inline]
    fn existing(&mut self, id: StreamId, end: bool, place: Place, out: &mut Vec<u8>) -> Stepped {
        // The caller may have reset it while CONTINUATION was awaited.
        let Some(at) = self.streams.find(id) else { return Ok(None) };
        let stream = self.streams[at];
        let found = HeadFound { stream: id, tag: stream.tag, end };
        if stream.has(is::HEAD_SEEN) {
            if let Some(reason) = self.trailers_fault(end, stream.expected) {
                return self.stream_error(id, ErrorCode::PROTOCOL_ERROR, reason, out).map(Some);
            }
            self.close_remote(at);
            self.useful();
            return Ok(Some(Step::Trailers(found, place)));
        }
        let status = self.decoder.summary().status;
        let expected = match self.response_length(stream.has(is::TO_HEAD), end) {
            Ok(expected) => expected,
            Err(reason) => return self.stream_error(id, ErrorCode::PROTOCOL_ERROR, reason, out).map(Some),
        };
        if status < 200 {
            self.idle_frame("too many interim responses")?;
            return Ok(Some(Step::Informational { stream: id, tag: stream.tag, status }));
        }
        self.streams[at].flags |= is::HEAD_SEEN;
        self.streams[at].expected = expected;
        self.useful();
        if end {
            self.close_remote(at);
        }
        Ok(Some(Step::Head(found, place)))
    }

    fn trailers_fault(&mut self, end: bool, expected: u64) -> Option<&'static str> {
        let summary = self.decoder.summary();
        if summary.fault.is_some() {
            return summary.fault;
        }
        match (end, summary.pseudo) {
            (false, _) => Some("trailers without END_STREAM"),
            (_, 1..) => Some("pseudo-header field in trailers"),
            _ if expected != UNKNOWN && expected > 0 => Some("content differs from content-length"),
            _ => None,
        }
    }

    /// How much content a response has: by its length, or none (RFC 9110 section 6.4.1).
    #[inline]
    fn response_length(&mut self, to_head: bool, end: bool) -> Result<u64, &'static str> {
        let summary = self.decoder.summary();
        if let Some(reason) = summary.fault {
            return Err(reason);
        }
        if summary.pseudo != 1 << Kind::Status as u16 {
            return Err("missing or wrong pseudo-header field");
        }
        let status = summary.status;
        if status < 200 && (end || status == 101) {
            return Err("interim response that ends the stream, or 101");
        }
        if to_head || status == 204 || status == 304 {
            return Ok(0);
        }
        match summary.content_length {
            Some(1..) if end => Err("content differs from content-length"),
            length => Ok(length.unwrap_or(UNKNOWN)),
        }
    }

    /// The connection is of no further use.
    pub fn is_failed(&self) -> bool {
        matches!(self.rx, Rx::Failed(_))
    }
}

/// Where the block begins and ends within the payload, and on which stream this one depends.
#[inline]
fn strip(head: FrameHead, payload: &[u8]) -> Result<(usize, usize, Option<u32>), ConnectionError> {
    if !head.has(flag::PADDED | flag::PRIORITY) {
        return Ok((0, payload.len(), None));
    }
    let short = ConnectionError::frame_size("HEADERS shorter than its flags say");
    let (mut from, mut padding) = (0, 0);
    if head.has(flag::PADDED) {
        padding = usize::from(*payload.first().ok_or(short)?);
        from = 1;
    }
    let mut depends_on = None;
    if head.has(flag::PRIORITY) {
        let priority = payload.get(from..from + 5).ok_or(short)?;
        depends_on = Some(u32::from_be_bytes([priority[0] & 0x7f, priority[1], priority[2], priority[3]]));
        from += 5;
    }
    match payload.len().checked_sub(padding) {
        Some(to) if to >= from => Ok((from, to, depends_on)),
        _ => Err(ConnectionError::protocol("more padding than payload")),
    }
}
