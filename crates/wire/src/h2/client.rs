//! The side that asks.

use std::fmt;

use super::StreamId;
use super::connection::{Connection, HeadFound, Side};
use super::hpack::{Fields, PreparedHead, Value};
use super::settings::{Config, MAX_31};
use super::streams::{Stream, is};

#[derive(Debug)]
pub struct ClientSide;

/// A client's connection.
pub type Client = Connection<ClientSide>;

/// A final response's head.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    pub stream: StreamId,
    pub tag: u32,
    pub status: u16,
    /// Nothing follows.
    pub end: bool,
    /// As announced. It was, or will be, held against the content.
    pub content_length: Option<u64>,
    pub fields: Fields<'a>,
}

impl<'a> ResponseHead<'a> {
    /// The value of the first field of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<Value<'a>> {
        self.fields.find(name)
    }
}

/// Why a request cannot be sent on this connection, or not now. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// As many streams are open as the server takes.
    TooManyStreams,
    /// A GOAWAY was sent or received: a new connection is wanted.
    GoingAway,
    /// All ids are used up: a new connection is wanted.
    NoMoreIds,
    /// The connection has failed.
    Failed,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestError::TooManyStreams => "too many concurrent streams",
            RequestError::GoingAway => "the connection is going away",
            RequestError::NoMoreIds => "all stream ids are used up",
            RequestError::Failed => "the connection has failed",
        })
    }
}

impl std::error::Error for RequestError {}

impl Side for ClientSide {
    type Head<'a> = ResponseHead<'a>;
    const SERVER: bool = false;

    #[inline]
    fn head<'a>(found: HeadFound, fields: Fields<'a>) -> ResponseHead<'a> {
        let summary = fields.summary();
        ResponseHead {
            stream: found.stream,
            tag: found.tag,
            status: summary.status,
            end: found.end,
            content_length: summary.content_length,
            fields,
        }
    }
}

impl Connection<ClientSide> {
    /// Writes the preface, SETTINGS, and the connection's window.
    ///
    /// # Panics
    /// If a size in `config` is outside what it says.
    pub fn new(config: Config, out: &mut Vec<u8>) -> Client {
        Connection::start(config, out)
    }

    /// Writes a request's head on a new stream. `extra` fields differ from request to request; those whose names begin with
    /// a colon complete the request line. `end`: the request has no content.
    #[inline]
    pub fn request(
        &mut self,
        head: &PreparedHead,
        extra: &[(&[u8], &[u8])],
        end: bool,
        tag: u32,
        out: &mut Vec<u8>,
    ) -> Result<StreamId, RequestError> {
        self.can_request()?;
        let id = self.next_id;
        self.next_id += 2;
        let mut stream = Stream::new(id, tag, self.peer.stream_window, self.config.stream_window);
        stream.flags = is::HEAD_SENT;
        if end {
            stream.flags |= is::LOCAL_CLOSED;
        }
        if head.is_head_method() {
            stream.flags |= is::TO_HEAD;
        }
        self.streams.insert(stream);
        self.write_headers(id, head, extra, end, out);
        Ok(id)
    }

    /// Would `request` succeed?
    #[inline]
    pub fn can_request(&self) -> Result<(), RequestError> {
        if self.streams.len() >= self.max_streams() as usize {
            return Err(RequestError::TooManyStreams);
        }
        if self.is_failed() {
            return Err(RequestError::Failed);
        }
        if self.is_going_away() {
            return Err(RequestError::GoingAway);
        }
        if self.next_id > MAX_31 {
            return Err(RequestError::NoMoreIds);
        }
        Ok(())
    }

    /// Streams that may be open at a time: what the server says, or before it does, what the configuration assumes.
    #[inline]
    pub fn max_streams(&self) -> u32 {
        match self.introduced {
            true => self.peer.max_streams,
            false => self.config.assumed_max_streams,
        }
    }
}
