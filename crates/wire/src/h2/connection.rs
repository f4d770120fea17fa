//! One connection's state, and the way through received bytes: frames are found here and DATA is handled here, because
//! its pieces are passed on as they come. The other frames are handled whole: `headers.rs` and `control.rs`.

use std::fmt;

use super::event::{Cause, Event, Step};
use super::frame::{
    ErrorCode, FrameHead, HEAD_BYTES, flag, kind, write_goaway, write_settings, write_u32_frame,
};
use super::headers::{OpenBlock, Place};
use super::hpack::{Decoder, Encoder, Fields};
use super::settings::{Config, MAX_31, PeerSettings, Release, WINDOW};
use super::streams::{ResetLog, Streams, UNKNOWN, is};
use super::{PREFACE, StreamId};

/// Which end of the connection we are.
pub trait Side: fmt::Debug + Sized {
    /// The head of a message that the other end sends.
    type Head<'a>: fmt::Debug;
    #[doc(hidden)]
    const SERVER: bool;
    #[doc(hidden)]
    fn head<'a>(found: HeadFound, fields: Fields<'a>) -> Self::Head<'a>;
}

/// What is known of a received head besides its fields.
#[derive(Clone, Copy, Debug)]
pub struct HeadFound {
    pub(super) stream: StreamId,
    pub(super) tag: u32,
    pub(super) end: bool,
}

/// Why a connection cannot go on. A GOAWAY that says so was written; close once it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    pub code: ErrorCode,
    pub reason: &'static str,
}

impl ConnectionError {
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> ConnectionError {
        ConnectionError { code, reason }
    }

    pub(super) const fn protocol(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    pub(super) const fn frame_size(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::FRAME_SIZE_ERROR, reason)
    }

    pub(super) const fn calm(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason)
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for ConnectionError {}

/// What happened without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Streams that the peer opened above our limit, answered with `REFUSED_STREAM`.
    pub refused: u64,
    /// Streams that the peer opened above the last one that our GOAWAY named; the peer knows to repeat them elsewhere.
    pub unprocessed: u64,
    /// PINGs answered.
    pub pings: u64,
    /// Frames of unknown kinds, and frames on streams that we had reset.
    pub ignored: u64,
}

/// Where in the received bytes we are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rx {
    /// Inside the client's preface, after so many bytes.
    Preface(usize),
    /// Before a frame.
    Frame,
    /// Inside a frame whose beginning is in `partial`.
    Partial,
    /// Before the byte that says how much padding a DATA frame has.
    PadLength(FrameHead),
    Data(DataFrame),
    /// Inside bytes that nobody wants.
    Skip(u32),
    Failed(ConnectionError),
}

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

/// The receiving side of the connection's own flow control.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    /// Bytes that the peer may send.
    pub(super) left: i64,
    /// Bytes that were released, of which the peer was not yet told.
    pub(super) owed: u32,
}

/// One HTTP/2 connection: [`super::Client`] or [`super::Server`].
#[derive(Debug)]
pub struct Connection<S: Side> {
    pub(super) config: Config,
    pub(super) peer: PeerSettings,
    pub(super) rx: Rx,
    /// A frame that was split between reads; kept until the call after the event that shows it.
    pub(super) partial: Vec<u8>,
    /// The header block that CONTINUATION frames will complete, and its bytes so far.
    pub(super) open_block: Option<OpenBlock>,
    pub(super) block: Vec<u8>,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) streams: Streams,
    /// Bytes of content that we may send on all streams together.
    pub(super) send_window: i64,
    pub(super) receive: ReceiveWindow,
    /// More was to be sent than `send_window` took.
    pub(super) blocked: bool,
    /// `WindowOpened` for the connection is due.
    pub(super) opened: bool,
    /// The peer's first SETTINGS have come.
    pub(super) introduced: bool,
    /// SETTINGS that the peer has not acknowledged.
    pub(super) acks_awaited: u32,
    /// Client: the next id to use.
    pub(super) next_id: u32,
    /// Server: the highest id that the client has used.
    pub(super) highest_id: u32,
    /// Server: the last range of ids that the client left out, which closed them unused.
    pub(super) skipped: (u32, u32),
    /// Server: the last id that our GOAWAY named.
    pub(super) accept_up_to: u32,
    /// Our GOAWAY was written.
    pub(super) goaway_sent: bool,
    /// The last id that the peer's GOAWAY named.
    pub(super) goaway_received: Option<u32>,
    /// Streams that the peer's GOAWAY gave up, highest first.
    pub(super) given_up: Vec<StreamId>,
    pub(super) reset_log: ResetLog,
    pub(super) resets_left: u32,
    pub(super) idle_frames_left: u32,
    pub(super) counters: Counters,
    side: std::marker::PhantomData<S>,
}

pub(super) type Stepped = Result<Option<Step>, ConnectionError>;

impl<S: Side> Connection<S> {
    pub(super) fn start(config: Config, out: &mut Vec<u8>) -> Connection<S> {
        config.assert_valid();
        if !S::SERVER {
            out.extend_from_slice(PREFACE);
        }
        write_settings(out, config.announced(S::SERVER));
        if config.connection_window > WINDOW {
            write_u32_frame(out, kind::WINDOW_UPDATE, 0, config.connection_window - WINDOW);
        }
        Connection {
            config,
            peer: PeerSettings::INITIAL,
            rx: if S::SERVER { Rx::Preface(0) } else { Rx::Frame },
            partial: Vec::new(),
            open_block: None,
            block: Vec::new(),
            decoder: Decoder::new(
                config.header_table_bytes,
                config.max_header_list_bytes,
                config.lazy_values,
            ),
            encoder: Encoder::new(),
            streams: Streams::default(),
            send_window: WINDOW.into(),
            receive: ReceiveWindow { left: config.connection_window.into(), owed: 0 },
            blocked: false,
            opened: false,
            introduced: false,
            acks_awaited: 1,
            next_id: 1,
            highest_id: 0,
            skipped: (0, 0),
            accept_up_to: MAX_31,
            goaway_sent: false,
            goaway_received: None,
            given_up: Vec::new(),
            reset_log: ResetLog::default(),
            resets_left: config.limits.resets,
            idle_frames_left: config.limits.idle_frames,
            counters: Counters::default(),
            side: std::marker::PhantomData,
        }
    }

    /// Takes some of the input and says how much, with one event; replies are appended to `out`. Call again with the
    /// rest until it answers `NeedMore`.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a, S::Head<'a>>), ConnectionError> {
        match self.advance(input, out) {
            Ok((used, step)) => Ok((used, self.event(input, step))),
            Err(error) => Err(self.fail(error, out)),
        }
    }

    fn event<'a>(&'a self, input: &'a [u8], step: Step) -> Event<'a, S::Head<'a>> {
        match step {
            Step::NeedMore => Event::NeedMore,
            Step::Data { stream, tag, from, to, end } => {
                Event::Data { stream, tag, bytes: &input[from..to], end }
            }
            Step::Head(found, place) => Event::Head(S::head(found, self.fields(input, place))),
            Step::Trailers(found, place) => {
                Event::Trailers { stream: found.stream, tag: found.tag, fields: self.fields(input, place) }
            }
            Step::Informational { stream, tag, status } => Event::Informational { stream, tag, status },
            Step::Settings => Event::Settings(self.peer),
            Step::Reset { stream, tag, code, cause } => Event::Reset { stream, tag, code, cause },
            Step::GoAway { last, code } => Event::GoAway { last, code },
            Step::WindowOpened(stream) => Event::WindowOpened(stream),
            Step::Pong(data) => Event::Pong(data),
        }
    }

    fn fields<'a>(&'a self, input: &'a [u8], place: Place) -> Fields<'a> {
        self.decoder.fields(match place {
            Place::Input(from, to) => &input[from..to],
            Place::Partial(from, to) => &self.partial[from..to],
            Place::Block => &self.block,
        })
    }

    #[inline]
    fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Step), ConnectionError> {
        if self.opened || !self.given_up.is_empty() {
            if let Some(step) = self.overdue() {
                return Ok((0, step));
            }
        }
        let mut at = 0;
        loop {
            let step = match self.rx {
                Rx::Frame => self.whole_frame(input, &mut at, out)?,
                Rx::Data(frame) => self.content(frame, input, &mut at),
                _ => self.other(input, &mut at, out)?,
            };
            if let Some(step) = step {
                return Ok((at, step));
            }
        }
    }

    /// Events that follow an earlier one without any input.
    #[cold]
    fn overdue(&mut self) -> Option<Step> {
        while let Some(stream) = self.given_up.pop() {
            if let Some(at) = self.streams.find(stream) {
                let tag = self.streams.remove(at).tag;
                self.reset_log.add(stream);
                return Some(Step::Reset {
                    stream,
                    tag,
                    code: ErrorCode::REFUSED_STREAM,
                    cause: Cause::GoAway,
                });
            }
        }
        std::mem::take(&mut self.opened).then_some(Step::WindowOpened(None))
    }

    /// A frame of which nothing was taken yet.
    #[inline]
    fn whole_frame(&mut self, input: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stepped {
        let rest = &input[*at..];
        let Some(head) = rest.first_chunk::<HEAD_BYTES>() else { return Ok(Some(self.keep(input, at))) };
        let head = FrameHead::parse(head);
        self.check(&head)?;
        let from = *at + HEAD_BYTES;
        if head.kind == kind::DATA || head.kind > kind::CONTINUATION {
            *at = from;
            return self.streamed(head, out);
        }
        let to = from + head.len as usize;
        let Some(payload) = input.get(from..to) else { return Ok(Some(self.keep(input, at))) };
        *at = to;
        match head.kind {
            kind::HEADERS => self.headers(head, payload, Place::Input(from, to), out),
            _ => self.control(head, payload, out),
        }
    }

    /// Puts the beginning of a frame aside.
    #[cold]
    fn keep(&mut self, input: &[u8], at: &mut usize) -> Step {
        if *at < input.len() {
            self.partial.clear();
            self.partial.extend_from_slice(&input[*at..]);
            self.rx = Rx::Partial;
        }
        *at = input.len();
        Step::NeedMore
    }

    #[inline(never)]
    fn other(&mut self, input: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stepped {
        if let Rx::Failed(error) = self.rx {
            return Err(error);
        }
        if *at == input.len() {
            return Ok(Some(Step::NeedMore));
        }
        match self.rx {
            Rx::Preface(seen) => self.preface(seen, input, at),
            Rx::Partial => self.partial_frame(input, at, out),
            Rx::PadLength(head) => {
                let padding = u32::from(input[*at]);
                *at += 1;
                if padding >= head.len {
                    return Err(ConnectionError::protocol("more padding than payload"));
                }
                self.begin_content(head, head.len - 1 - padding, padding, out)
            }
            Rx::Skip(left) => {
                let now = (input.len() - *at).min(left as usize);
                *at += now;
                self.skip(left - now as u32);
                Ok(None)
            }
            Rx::Frame | Rx::Data(_) | Rx::Failed(_) => Ok(None),
        }
    }

    fn skip(&mut self, bytes: u32) {
        self.rx = if bytes == 0 { Rx::Frame } else { Rx::Skip(bytes) };
    }

    fn preface(&mut self, seen: usize, input: &[u8], at: &mut usize) -> Stepped {
        let now = (input.len() - *at).min(PREFACE.len() - seen);
        if input[*at..*at + now] != PREFACE[seen..seen + now] {
            return Err(ConnectionError::protocol("no HTTP/2 preface"));
        }
        *at += now;
        self.rx = if seen + now == PREFACE.len() { Rx::Frame } else { Rx::Preface(seen + now) };
        Ok(None)
    }

    /// Goes on with a frame that was split.
    fn partial_frame(&mut self, input: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stepped {
        self.fill(HEAD_BYTES, input, at);
        let Some(head) = self.partial.first_chunk::<HEAD_BYTES>() else { return Ok(Some(Step::NeedMore)) };
        let head = FrameHead::parse(head);
        self.check(&head)?;
        if head.kind == kind::DATA || head.kind > kind::CONTINUATION {
            return self.streamed(head, out);
        }
        let end = HEAD_BYTES + head.len as usize;
        self.fill(end, input, at);
        if self.partial.len() < end {
            return Ok(Some(Step::NeedMore));
        }
        self.rx = Rx::Frame;
        let place = Place::Partial(HEAD_BYTES, end);
        let frame = std::mem::take(&mut self.partial);
        let stepped = match head.kind {
            kind::HEADERS => self.headers(head, &frame[HEAD_BYTES..], place, out),
            _ => self.control(head, &frame[HEAD_BYTES..], out),
        };
        self.partial = frame;
        stepped
    }

    /// Takes input until `partial` has `len` bytes.
    fn fill(&mut self, len: usize, input: &[u8], at: &mut usize) {
        let now = len.saturating_sub(self.partial.len()).min(input.len() - *at);
        self.partial.extend_from_slice(&input[*at..*at + now]);
        *at += now;
    }

    /// What a frame's head alone can be blamed for. Called again when the frame was split, so it changes nothing.
    #[inline(always)]
    fn check(&self, head: &FrameHead) -> Result<(), ConnectionError> {
        if !self.introduced && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(ConnectionError::protocol("expected SETTINGS first"));
        }
        if head.len > self.config.max_frame_bytes {
            return Err(ConnectionError::frame_size("frame above MAX_FRAME_SIZE"));
        }
        match &self.open_block {
            None => Ok(()),
            Some(open) if head.kind == kind::CONTINUATION && head.stream == open.stream => Ok(()),
            Some(_) => Err(ConnectionError::protocol("expected CONTINUATION")),
        }
    }

    /// Frames that are not kept until they are complete.
    #[inline]
    fn streamed(&mut self, head: FrameHead, out: &mut Vec<u8>) -> Stepped {
        if head.kind == kind::DATA {
            return self.data(head, out);
        }
        self.counters.ignored += 1;
        self.idle_frame("too many unknown frames")?;
        self.skip(head.len);
        Ok(None)
    }

    /// The head of a DATA frame. The whole frame counts for flow control, padding included (section 6.1).
    #[inline]
    fn data(&mut self, head: FrameHead, out: &mut Vec<u8>) -> Stepped {
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
    fn begin_content(&mut self, head: FrameHead, len: u32, padding: u32, out: &mut Vec<u8>) -> Stepped {
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
    fn content(&mut self, frame: DataFrame, input: &[u8], at: &mut usize) -> Option<Step> {
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

    /// END_STREAM was received.
    #[inline]
    pub(super) fn close_remote(&mut self, at: usize) {
        self.streams[at].flags |= is::REMOTE_CLOSED;
        self.forget_closed(at);
    }

    #[inline]
    pub(super) fn forget_closed(&mut self, at: usize) {
        if self.streams[at].is_closed() {
            self.streams.remove(at);
            self.resets_left = (self.resets_left + 1).min(self.config.limits.resets);
        }
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

    /// Is this an id that was never used?
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        match S::SERVER {
            true => stream % 2 == 0 || stream > self.highest_id,
            false => stream % 2 == 0 || stream >= self.next_id,
        }
    }

    /// A frame on a stream that is not open: harmless if we reset it and the peer may not have known.
    pub(super) fn check_closed(&self, stream: StreamId, frame: &'static str) -> Result<(), ConnectionError> {
        if self.is_idle(stream) {
            return Err(ConnectionError::protocol(match frame {
                "DATA" => "DATA on an idle stream",
                _ => "frame on an idle stream",
            }));
        }
        if self.reset_log.may_hold(stream) || stream > self.accept_up_to {
            return Ok(());
        }
        Err(ConnectionError::new(ErrorCode::STREAM_CLOSED, "frame on a closed stream"))
    }

    /// Ends one stream because of what the peer sent on it.
    #[cold]
    pub(super) fn stream_error(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
        reason: &'static str,
        out: &mut Vec<u8>,
    ) -> Result<Step, ConnectionError> {
        write_u32_frame(out, kind::RST_STREAM, stream, code.0);
        self.reset_log.add(stream);
        let tag = self.streams.find(stream).map_or(0, |at| self.streams.remove(at).tag);
        self.reset_charge()?;
        Ok(Step::Reset { stream, tag, code, cause: Cause::Error(reason) })
    }

    /// Server: the client made a stream end early.
    pub(super) fn reset_charge(&mut self) -> Result<(), ConnectionError> {
        if !S::SERVER {
            return Ok(());
        }
        match self.resets_left.checked_sub(1) {
            Some(left) => self.resets_left = left,
            None => return Err(ConnectionError::calm("too many resets")),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn idle_frame(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        match self.idle_frames_left.checked_sub(1) {
            Some(left) => self.idle_frames_left = left,
            None => return Err(ConnectionError::calm(reason)),
        }
        Ok(())
    }

    /// Something was moved.
    #[inline(always)]
    pub(super) fn useful(&mut self) {
        self.idle_frames_left = (self.idle_frames_left + 8).min(self.config.limits.idle_frames);
    }

    #[cold]
    fn fail(&mut self, error: ConnectionError, out: &mut Vec<u8>) -> ConnectionError {
        if !matches!(self.rx, Rx::Failed(_)) {
            write_goaway(out, self.highest_id.min(self.accept_up_to), error.code, error.reason);
            self.goaway_sent = true;
            self.rx = Rx::Failed(error);
            (self.partial, self.block) = (Vec::new(), Vec::new());
        }
        error
    }
}
