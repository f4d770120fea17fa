//! What received bytes mean.

use super::StreamId;
use super::connection::HeadFound;
use super::frame::ErrorCode;
use super::headers::Place;
use super::hpack::Fields;
use super::settings::PeerSettings;

/// `tag` is what the caller gave the stream (0 if nothing), so that it need not look the stream up again. After an event
/// that ends a stream on both sides, and after `Reset`, the stream is gone: its id is of no further use.
#[derive(Debug)]
pub enum Event<'a, H> {
    /// All of the input was taken; pass more.
    NeedMore,
    /// The head of a request or of a final response.
    Head(H),
    /// Client: an interim response (1xx). The final one is still to come.
    Informational { stream: StreamId, tag: u32, status: u16 },
    /// A piece of content, without padding. Empty only where `end` is set.
    Data { stream: StreamId, tag: u32, bytes: &'a [u8], end: bool },
    /// Fields after the content. Nothing follows.
    Trailers { stream: StreamId, tag: u32, fields: Fields<'a> },
    /// The stream ended early. What was not sent on it will not be sent, nothing more is received. A server sees it also of
    /// streams whose head was malformed and never shown.
    Reset { stream: StreamId, tag: u32, code: ErrorCode, cause: Cause },
    /// The peer opens or takes no more streams than those up to `last`. A `Reset` follows for each of ours above it.
    GoAway { last: StreamId, code: ErrorCode },
    /// The peer's settings have changed; the acknowledgement was written.
    Settings(PeerSettings),
    /// Content that did not fit may be sent: on this stream (with its tag), or, if `None`, on any stream that has some.
    /// Comes only after `send_data` took less than it was given.
    WindowOpened(Option<(StreamId, u32)>),
    /// The answer to `ping`, with its data.
    Pong([u8; 8]),
}

/// Who ended a stream early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The peer, by RST_STREAM.
    Peer,
    /// We, because the peer broke the rules of the stream. RST_STREAM was written. The text says what was wrong.
    Error(&'static str),
    /// The peer's GOAWAY: it has not seen the stream, so the request may be sent again elsewhere.
    GoAway,
}

/// An event before it borrows anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    NeedMore,
    Head(HeadFound, Place),
    Informational { stream: StreamId, tag: u32, status: u16 },
    Data { stream: StreamId, tag: u32, from: usize, to: usize, end: bool },
    Trailers(HeadFound, Place),
    Reset { stream: StreamId, tag: u32, code: ErrorCode, cause: Cause },
    GoAway { last: StreamId, code: ErrorCode },
    Settings,
    WindowOpened(Option<(StreamId, u32)>),
    Pong([u8; 8]),
}
