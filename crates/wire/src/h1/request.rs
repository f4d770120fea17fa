//! The server's side: reads requests.

use super::types::{BodyKind, Error, Headers, Limits, Version};

/// RFC 9112 section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, with CONNECT only
    Authority,
    /// `*`, with OPTIONS only
    Asterisk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub form: TargetForm,
    pub version: Version,
    /// Never `UntilClose`.
    pub body: BodyKind,
    /// The client will take another response on this connection.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// The Host field; empty in HTTP/1.0 without one.
    pub host: &'a [u8],
    /// The head as received, from the request line to the empty line.
    pub raw: &'a [u8],
}

impl<'a> RequestHead<'a> {
    pub fn headers(&self) -> Headers<'a> {
        unimplemented!()
    }

    /// The value of the first field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// All of the input was taken; pass more, or `eof`.
    NeedMore,
    /// A whole request at once: equal to `Head`, `Body` (if not empty) and `Done`. Comes instead of them whenever the input holds
    /// all of it and the body has a length or there is none.
    Full { head: RequestHead<'a>, body: &'a [u8] },
    /// A head; `Body`, `Trailers` and `Done` follow.
    Head(RequestHead<'a>),
    /// A piece of the body, without chunk framing; never empty.
    Body(&'a [u8]),
    /// The trailer section of a chunked body, if it is not empty.
    Trailers(Headers<'a>),
    /// The request is complete; the rest of the input is the next one.
    Done,
}

/// Call `decode` with what was received: it takes some of the input and returns how much, with one event. Call it
/// again with the rest until it answers `NeedMore`; pipelined requests come one after the other.
#[derive(Debug)]
pub struct RequestDecoder {
    _limits: Limits,
}

impl RequestDecoder {
    pub fn new(limits: Limits) -> RequestDecoder {
        RequestDecoder { _limits: limits }
    }

    pub fn decode<'a>(&'a mut self, _input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        unimplemented!()
    }

    /// The peer closed its side: fine between requests, `Truncated` inside one.
    pub fn eof(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Between requests: not a byte of the next one has arrived.
    pub fn is_idle(&self) -> bool {
        unimplemented!()
    }

    /// Bytes of a head or trailer section kept because its end has not arrived.
    pub fn buffered_bytes(&self) -> usize {
        unimplemented!()
    }
}
