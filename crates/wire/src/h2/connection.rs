//! One connection's state, and the way through received bytes: where frames begin and end. What they mean is decided in
//! `data.rs`, `headers.rs` and `control.rs`.

use std::fmt;

use super::data::DataFrame;
use super::event::{Cause, Event, Step};
use super::frame::{
    ErrorCode, FrameHead, HEAD_BYTES, flag, kind, write_goaway, write_settings, write_u32_frame,
};
use super::headers::{OpenBlock, Place};
use super::hpack::{Decoder, Encoder, Fields};
use super::settings::{Config, MAX_31, PeerSettings, WINDOW};
use super::streams::{ResetLog, Streams, is};
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
    /// The peer's GOAWAY was received.
    pub(super) goaway_received: bool,
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
            goaway_received: false,
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
        if (self.opened || !self.given_up.is_empty())
            && let Some(step) = self.overdue()
        {
            return Ok((0, step));
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

    pub(super) fn skip(&mut self, bytes: u32) {
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

    /// Is this an id that was never used?
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        match S::SERVER {
            true => stream.is_multiple_of(2) || stream > self.highest_id,
            false => stream.is_multiple_of(2) || stream >= self.next_id,
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
