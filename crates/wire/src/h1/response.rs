//! The client's side: reads responses.

use super::body::{Body, Step};
use super::fields::{Coding, KeepAliveHint};
use super::head::{Caps, Partial, Scan, Section};
use super::types::{BodyKind, Error, Headers, Limits, Version, header_lines};

/// What the response answers, as far as it decides where its body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    Head,
    Connect,
    #[default]
    Other,
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
        header_lines(self.raw)
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
    /// A whole response at once: equal to `Head`, `Body` (if not empty) and `Done`. Comes instead of them when the
    /// input holds all of it and its body has a length, or it has none.
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
///
/// Bytes that follow a complete response without a further `expect` are `Malformed`. So is everything after an error: a new
/// connection wants a new decoder.
/// Some 50 bytes when nothing is buffered; a head or trailer section split between reads is kept on the heap until the
/// call after the event that shows it.
#[derive(Debug)]
pub struct ResponseDecoder {
    state: State,
    partial: Option<Box<Partial>>,
    caps: Caps,
    request: RequestKind,
    keep_alive: bool,
    /// An interim response has come: the server lives, its close is no stale connection.
    interim: bool,
}

#[derive(Debug)]
enum State {
    Idle,
    Head,
    Body(Body),
    Broken,
}

impl ResponseDecoder {
    pub fn new(limits: Limits) -> ResponseDecoder {
        ResponseDecoder {
            state: State::Idle,
            partial: None,
            caps: Caps::new(limits),
            request: RequestKind::Other,
            keep_alive: true,
            interim: false,
        }
    }

    /// A request was, or is about to be, sent: its response is awaited. One at a time.
    #[inline]
    pub fn expect(&mut self, request: RequestKind) {
        debug_assert!(self.is_idle(), "expected no response under way, found {:?}", self.state);
        self.state = State::Head;
        self.request = request;
        self.interim = false;
    }

    #[inline]
    pub fn decode<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        match self.state {
            State::Head if self.partial.is_none() => self.head(input),
            _ => self.rest(input),
        }
    }

    /// The peer closed. `Ok(true)`: that ended a body delimited by close, the response is complete. `Ok(false)`: no
    /// response was awaited, nothing is lost.
    pub fn eof(&mut self) -> Result<bool, Error> {
        match &self.state {
            State::Idle => Ok(false),
            State::Body(body) if matches!(body, Body::UntilClose) || body.is_complete() => {
                self.state = State::Idle;
                self.partial = None;
                Ok(true)
            }
            State::Head if self.partial.is_none() && !self.interim => {
                Err(self.fail(Error::ClosedBeforeResponse))
            }
            State::Head | State::Body(_) => Err(self.fail(Error::Truncated)),
            State::Broken => Err(AFTER_ERROR),
        }
    }

    /// No response is awaited or under way.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Bytes of a head or trailer section kept because its end has not arrived.
    pub fn buffered_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.bytes().len())
    }

    /// A head of which nothing has arrived yet.
    #[inline]
    fn head<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        let mut scan = Scan::new();
        let Some(end) = scan.all::<false>(input, &self.caps) else { return self.begin_split(input, scan) };
        let (raw, rest) = input.split_at(end);
        if scan.start.status < 200 {
            return self.informational(end, scan.start.status);
        }
        let head = match conclude(&scan, raw, self.request) {
            Ok(head) => head,
            Err(error) => return Err(self.fail(error)),
        };
        let body_bytes = match head.body {
            BodyKind::None => Some(0),
            BodyKind::Length(n) if n <= rest.len() as u64 => Some(n as usize),
            _ => None,
        };
        if let Some(n) = body_bytes {
            self.state = State::Idle;
            return Ok((end + n, ResponseEvent::Full { head, body: &rest[..n] }));
        }
        self.state = State::Body(Body::new(head.body));
        self.keep_alive = head.keep_alive;
        Ok((end, ResponseEvent::Head(head)))
    }

    #[cold]
    #[inline(never)]
    fn begin_split<'a>(
        &'a mut self,
        input: &'a [u8],
        scan: Scan,
    ) -> Result<(usize, ResponseEvent<'a>), Error> {
        if input.is_empty() {
            return Ok((0, ResponseEvent::NeedMore));
        }
        let (used, partial) = Partial::resume(input, scan);
        self.partial = Some(partial);
        let (more, event) = self.go_on(&input[used..])?;
        Ok((used + more, event))
    }

    /// Anything but the beginning of a head.
    #[inline(never)]
    fn rest<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        match &mut self.state {
            State::Head => self.go_on(input),
            State::Body(_) => self.body(input),
            State::Idle if input.is_empty() => {
                self.partial = None;
                Ok((0, ResponseEvent::NeedMore))
            }
            State::Idle => Err(self.fail(Error::Malformed("a response without a request"))),
            State::Broken => Err(AFTER_ERROR),
        }
    }

    /// Goes on with a head that was split.
    fn go_on<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        let partial = self.partial.get_or_insert_with(|| Partial::new(&[], Scan::new()));
        let (used, ended) = match partial.feed(input, Section::Response, &self.caps) {
            Ok(fed) => fed,
            Err(error) => return Err(self.fail(error)),
        };
        if !ended {
            return Ok((used, ResponseEvent::NeedMore));
        }
        let status = partial.scan.start.status;
        if status < 200 {
            self.partial = None;
            return self.informational(used, status);
        }
        if let Err(error) = conclude(&partial.scan, partial.bytes(), self.request) {
            return Err(self.fail(error));
        }
        // Judged twice: the head of the first time would keep `self` borrowed where it fails.
        let Some(partial) = &self.partial else { return Err(AFTER_ERROR) };
        let head = conclude(&partial.scan, partial.bytes(), self.request)?;
        self.state = State::Body(Body::new(head.body));
        self.keep_alive = head.keep_alive;
        Ok((used, ResponseEvent::Head(head)))
    }

    #[cold]
    fn informational<'a>(&mut self, used: usize, status: u16) -> Result<(usize, ResponseEvent<'a>), Error> {
        if status == 101 {
            return Err(self.fail(Error::Unsupported("switch of protocols")));
        }
        self.interim = true;
        Ok((used, ResponseEvent::Informational(status)))
    }

    fn body<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, ResponseEvent<'a>), Error> {
        let State::Body(body) = &mut self.state else { return Err(AFTER_ERROR) };
        let (used, step) = match body.step(&mut self.partial, input, &self.caps) {
            Ok(taken) => taken,
            Err(error) => {
                self.state = State::Broken;
                return Err(error);
            }
        };
        let event = match step {
            Step::NeedMore => ResponseEvent::NeedMore,
            Step::Data(data) => ResponseEvent::Body(data),
            Step::Trailers(lines) => ResponseEvent::Trailers(lines),
            Step::End => {
                self.state = State::Idle;
                ResponseEvent::Done { keep_alive: self.keep_alive }
            }
        };
        Ok((used, event))
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Broken;
        self.partial = None;
        error
    }
}

const AFTER_ERROR: Error = Error::Malformed("bytes after an error");

/// The rules of RFC 9112 section 6.3, in its order.
#[inline]
fn conclude<'a>(scan: &Scan, raw: &'a [u8], request: RequestKind) -> Result<ResponseHead<'a>, Error> {
    let (status, version, fields) = (scan.start.status, scan.start.version, &scan.fields);
    let tunnel = request == RequestKind::Connect && (200..300).contains(&status);
    let bodiless = tunnel || request == RequestKind::Head || status == 204 || status == 304;
    let body = match (fields.coding, fields.length) {
        _ if bodiless => BodyKind::None,
        _ if fields.fault.is_some() => return Err(Error::Malformed(fields.fault.unwrap_or_default())),
        (Coding::Absent, Some(n)) => BodyKind::Length(n),
        (Coding::Absent, None) => BodyKind::UntilClose,
        (_, Some(_)) => return Err(Error::Malformed("both Transfer-Encoding and Content-Length")),
        _ if version == Version::Http10 => return Err(Error::Malformed("Transfer-Encoding in HTTP/1.0")),
        (Coding::Chunked, None) => BodyKind::Chunked,
        (Coding::Other, None) => BodyKind::UntilClose,
    };
    // A tunnel stays open whatever the proxy says of its own connection.
    let keep_alive = tunnel || (body != BodyKind::UntilClose && fields.persistent(version));
    Ok(ResponseHead { status, version, body, keep_alive, keep_alive_hint: fields.hint, raw })
}
