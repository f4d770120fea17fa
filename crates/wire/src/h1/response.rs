//! The client's side: reads responses.

use super::types::{BodyKind, Error, Headers, Limits, Version};

/// What the response answers, as far as it decides where its body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    Head,
    Connect,
    #[default]
    Other,
}

/// `Keep-Alive: timeout=5, max=100`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAliveHint {
    /// Seconds that the server keeps an idle connection.
    pub timeout_s: Option<u32>,
    /// Further requests that the server will take on this connection.
    pub max: Option<u32>,
}

/// A final response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    pub status: u16,
    pub version: Version,
    pub body: BodyKind,
    /// The connection may carry another request after this response.
    pub keep_alive: bool,
    pub keep_alive_hint: Option<KeepAliveHint>,
    /// The head as received, from the status line to the empty line.
    pub raw: &'a [u8],
}

impl<'a> ResponseHead<'a> {
    /// Reads the field lines again: costs nothing unless called.
    pub fn headers(&self) -> Headers<'a> {
        unimplemented!()
    }

    /// The value of the first field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// All of the input was taken; pass more, or `eof`. Without a request outstanding: nothing to do.
    NeedMore,
    /// An interim response (1xx other than 101); the final one is still to come.
    Informational(u16),
    /// A whole response at once: equal to `Head`, `Body` (if not empty) and `Done`. Comes instead of them whenever the input holds
    /// all of it and the body has a length or there is none.
    Full { head: ResponseHead<'a>, body: &'a [u8] },
    /// A head; `Body`, `Trailers` and `Done` follow.
    Head(ResponseHead<'a>),
    /// A piece of the body, without chunk framing; never empty.
    Body(&'a [u8]),
    /// The trailer section of a chunked body, if it is not empty.
    Trailers(Headers<'a>),
    /// The response is complete.
    Done { keep_alive: bool },
}

/// Call `expect` before each response, then `decode` with what was received: it takes some of the input and returns how
/// much, with one event. Call it again with the rest until it answers `NeedMore`, `Full` or `Done`.
#[derive(Debug)]
pub struct ResponseDecoder {
    _limits: Limits,
}

impl ResponseDecoder {
    pub fn new(limits: Limits) -> ResponseDecoder {
        ResponseDecoder { _limits: limits }
    }

    /// A request was, or is about to be, sent: its response is awaited. One at a time.
    pub fn expect(&mut self, _request: RequestKind) {
        unimplemented!()
    }

    pub fn decode<'a>(&'a mut self, _input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        unimplemented!()
    }

    /// The peer closed. `Ok(true)`: that ended a body delimited by close, the response is complete. `Ok(false)`: no
    /// response was awaited, nothing is lost.
    pub fn eof(&mut self) -> Result<bool, Error> {
        unimplemented!()
    }

    /// No response is awaited or under way.
    pub fn is_idle(&self) -> bool {
        unimplemented!()
    }

    /// Bytes of a head or trailer section kept because its end has not arrived.
    pub fn buffered_bytes(&self) -> usize {
        unimplemented!()
    }
}
