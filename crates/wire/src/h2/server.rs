//! The side that answers.

use super::connection::{Connection, HeadFound, Side};
use super::frame::{ErrorCode, write_goaway, write_settings};
use super::hpack::{Fields, PreparedHead};
use super::send::StreamGone;
use super::settings::{Config, MAX_31, MAX_CONCURRENT_STREAMS};
use super::streams::is;
use super::{PREFACE, StreamId};

#[derive(Debug)]
pub struct ServerSide;

/// A server's connection.
pub type Server = Connection<ServerSide>;

/// A request's head. Scheme, path and authority are empty where they were not sent.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub stream: StreamId,
    pub method: &'a [u8],
    pub scheme: &'a [u8],
    pub authority: &'a [u8],
    pub path: &'a [u8],
    /// Nothing follows.
    pub end: bool,
    /// As announced. It was, or will be, held against the content.
    pub content_length: Option<u64>,
    pub fields: Fields<'a>,
}

impl<'a> RequestHead<'a> {
    /// The fields in order; names are in lower case. Empty values stand for those that a lazy configuration left coded.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.map(|(name, value)| (name, value.plain().unwrap_or_default()))
    }

    /// The value of the first field of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(|(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }
}

impl Side for ServerSide {
    type Head<'a> = RequestHead<'a>;
    const SERVER: bool = true;

    #[inline]
    fn head<'a>(found: HeadFound, fields: Fields<'a>) -> RequestHead<'a> {
        let summary = fields.summary();
        RequestHead {
            stream: found.stream,
            method: fields.text(summary.method),
            scheme: fields.text(summary.scheme),
            authority: fields.text(summary.authority),
            path: fields.text(summary.path),
            end: found.end,
            content_length: summary.content_length,
            fields,
        }
    }
}

impl Connection<ServerSide> {
    /// Writes SETTINGS and the connection's window.
    ///
    /// # Panics
    /// If a size in `config` is outside what it says.
    pub fn new(config: Config, out: &mut Vec<u8>) -> Server {
        Connection::start(config, out)
    }

    /// Writes a response's head: an interim one (below 200, `end` false) any number of times, then the final one. `extra`
    /// fields differ from response to response. `end`: the response has no content.
    #[inline]
    pub fn respond(
        &mut self,
        stream: StreamId,
        head: &PreparedHead,
        extra: &[(&[u8], &[u8])],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamGone> {
        let at = self.streams.find(stream).ok_or(StreamGone)?;
        let it = &mut self.streams[at];
        if it.has(is::LOCAL_CLOSED) {
            return Err(StreamGone);
        }
        debug_assert!(!it.has(is::HEAD_SENT), "expected one final head");
        debug_assert!(head.status() >= 200 || !end, "expected a final head to follow");
        if head.status() >= 200 {
            it.flags |= is::HEAD_SENT;
        }
        if end {
            it.flags |= is::LOCAL_CLOSED;
            self.forget_closed(at);
        }
        self.write_headers(stream, head, extra, end, out);
        self.useful();
        Ok(())
    }

    /// Announces another limit on open streams. It applies at once; a client that opens more before it knows gets
    /// `REFUSED_STREAM`.
    pub fn set_max_streams(&mut self, max_streams: u32, out: &mut Vec<u8>) {
        self.config.max_streams = max_streams;
        self.acks_awaited += 1;
        write_settings(out, [(MAX_CONCURRENT_STREAMS, max_streams)].into_iter());
    }

    /// Writes a GOAWAY that refuses nothing yet: the client shall open no more streams, but those already on their way are
    /// served. Call `go_away` a round trip later (RFC 9113 section 6.8).
    pub fn go_away_soon(&mut self, out: &mut Vec<u8>) {
        write_goaway(out, MAX_31.min(self.accept_up_to), ErrorCode::NO_ERROR, "");
    }

    /// The highest id that the client has used.
    pub fn last_stream(&self) -> StreamId {
        self.highest_id
    }
}

/// Whether a connection begins as HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    /// It may; pass more bytes from the beginning.
    NeedMore,
}

/// Tells HTTP/2 from HTTP/1.1 by the first bytes that a client sends. Nothing is taken from them.
pub fn preface(input: &[u8]) -> Match {
    let now = input.len().min(PREFACE.len());
    match input[..now] == PREFACE[..now] {
        false => Match::No,
        true if now == PREFACE.len() => Match::Yes,
        true => Match::NeedMore,
    }
}
