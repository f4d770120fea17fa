//! The server's side: reads requests.

use super::body::{Body, Step};
use super::chars::is_host;
use super::fields::Coding;
use super::head::{Caps, Partial, Scan, Section};
use super::types::{BodyKind, Error, Headers, Limits, Version, header_lines};

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
        header_lines(self.raw)
    }

    /// The value of the first field of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(name)
    }

    /// Host and port that the request is for: those of the target where it names them, else of the Host field
    /// (RFC 9112 section 3.3).
    pub fn authority(&self) -> &'a [u8] {
        match self.form {
            TargetForm::Origin | TargetForm::Asterisk => self.host,
            TargetForm::Authority => self.target,
            TargetForm::Absolute => split_absolute(self.target).map_or(self.host, |(authority, _)| authority),
        }
    }

    /// The path with its query, as in origin form. It is empty, or begins with `?`, if an absolute target has no path.
    pub fn path(&self) -> &'a [u8] {
        match self.form {
            TargetForm::Absolute => split_absolute(self.target).map_or(&[], |(_, path)| path),
            _ => self.target,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// All of the input was taken; pass more, or `eof`.
    NeedMore,
    /// A whole request at once: equal to `Head`, `Body` (if not empty) and `Done`. Comes instead of them when the
    /// input holds all of it and its body has a length, or it has none.
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
///
/// After a request that ends the connection (`keep_alive` false) further input is taken and dropped, as RFC 9112 section
/// 9.6 demands. After an error everything is `Malformed`. Some 50 bytes when nothing is buffered; a head or trailer
/// section split between reads is kept on the heap until the call after the event that shows it.
#[derive(Debug)]
pub struct RequestDecoder {
    state: State,
    partial: Option<Box<Partial>>,
    caps: Caps,
    keep_alive: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Body(Body),
    Closed,
    Broken,
}

impl RequestDecoder {
    pub fn new(limits: Limits) -> RequestDecoder {
        RequestDecoder { state: State::Head, partial: None, caps: Caps::new(limits), keep_alive: true }
    }

    #[inline]
    pub fn decode<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        match self.state {
            State::Head if self.partial.is_none() => self.head(input),
            _ => self.rest(input),
        }
    }

    /// The peer closed its side: fine between requests, `Truncated` inside one.
    pub fn eof(&mut self) -> Result<(), Error> {
        match &self.state {
            State::Closed => Ok(()),
            State::Head if self.is_idle() => Ok(()),
            State::Body(body) if body.is_complete() => Ok(()),
            State::Head | State::Body(_) => Err(self.fail(Error::Truncated)),
            State::Broken => Err(AFTER_ERROR),
        }
    }

    /// Between requests: not a byte of the next one has arrived, save for an empty line.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Head) && self.partial.as_ref().is_none_or(|partial| partial.is_empty())
    }

    /// Bytes of a head or trailer section kept because its end has not arrived.
    pub fn buffered_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.bytes().len())
    }

    /// A head of which nothing has arrived yet.
    #[inline]
    fn head<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        let mut blank = 0;
        while input[blank..].starts_with(b"\r\n") {
            blank += 2;
        }
        let input = &input[blank..];
        let mut scan = Scan::new();
        let Some(end) = scan.all::<true>(input, &self.caps) else {
            return self.begin_split(input, blank, scan);
        };
        let (raw, rest) = input.split_at(end);
        let head = match conclude(&scan, raw) {
            Ok(head) => head,
            Err(error) => return Err(self.fail(error)),
        };
        let used = blank + end;
        let body_bytes = match head.body {
            BodyKind::None => Some(0),
            BodyKind::Length(n) if n <= rest.len() as u64 => Some(n as usize),
            _ => None,
        };
        if let Some(n) = body_bytes {
            self.state = if head.keep_alive { State::Head } else { State::Closed };
            return Ok((used + n, RequestEvent::Full { head, body: &rest[..n] }));
        }
        self.state = State::Body(Body::new(head.body));
        self.keep_alive = head.keep_alive;
        Ok((used, RequestEvent::Head(head)))
    }

    #[cold]
    #[inline(never)]
    fn begin_split<'a>(
        &'a mut self,
        input: &'a [u8],
        blank: usize,
        scan: Scan,
    ) -> Result<(usize, RequestEvent<'a>), Error> {
        if input.is_empty() {
            return Ok((blank, RequestEvent::NeedMore));
        }
        let (read, partial) = Partial::resume(input, scan);
        self.partial = Some(partial);
        let (more, event) = self.go_on(&input[read..])?;
        Ok((blank + read + more, event))
    }

    /// Anything but the beginning of a head.
    #[inline(never)]
    fn rest<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        match &mut self.state {
            State::Head => self.go_on(input),
            State::Body(_) => self.body(input),
            State::Closed => {
                self.partial = None;
                Ok((input.len(), RequestEvent::NeedMore))
            }
            State::Broken => Err(AFTER_ERROR),
        }
    }

    /// Goes on with a head that was split.
    fn go_on<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        let partial = self.partial.get_or_insert_with(|| Partial::new(&[], Scan::new()));
        let (used, ended) = match partial.feed(input, Section::Request, &self.caps) {
            Ok(fed) => fed,
            Err(error) => return Err(self.fail(error)),
        };
        if !ended {
            if partial.bytes().is_empty() {
                self.partial = None;
            }
            return Ok((used, RequestEvent::NeedMore));
        }
        if let Err(error) = conclude(&partial.scan, partial.bytes()) {
            return Err(self.fail(error));
        }
        // Judged twice: the head of the first time would keep `self` borrowed where it fails.
        let Some(partial) = &self.partial else { return Err(AFTER_ERROR) };
        let head = conclude(&partial.scan, partial.bytes())?;
        self.state = State::Body(Body::new(head.body));
        self.keep_alive = head.keep_alive;
        Ok((used, RequestEvent::Head(head)))
    }

    fn body<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, RequestEvent<'a>), Error> {
        let State::Body(body) = &mut self.state else { return Err(AFTER_ERROR) };
        let (used, step) = match body.step(&mut self.partial, input, &self.caps) {
            Ok(taken) => taken,
            Err(error) => {
                self.state = State::Broken;
                return Err(error);
            }
        };
        let event = match step {
            Step::NeedMore => RequestEvent::NeedMore,
            Step::Data(data) => RequestEvent::Body(data),
            Step::Trailers(lines) => RequestEvent::Trailers(lines),
            Step::End => {
                self.state = if self.keep_alive { State::Head } else { State::Closed };
                RequestEvent::Done
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

/// RFC 9112 sections 3.2 and 6.3.
#[inline]
fn conclude<'a>(scan: &Scan, raw: &'a [u8]) -> Result<RequestHead<'a>, Error> {
    let (version, fields) = (scan.start.version, &scan.fields);
    let method = &raw[..scan.start.method_end as usize];
    let target = &raw[scan.start.method_end as usize + 1..scan.start.target_end as usize];
    let form = target_form(method, target)?;
    if let Some(reason) = fields.fault {
        return Err(Error::Malformed(reason));
    }
    let host = match fields.host {
        Some((from, to)) => &raw[from as usize..to as usize],
        None if version == Version::Http11 => return Err(Error::Malformed("no Host")),
        None => &[],
    };
    let body = match (fields.coding, fields.length) {
        (Coding::Absent, None) => BodyKind::None,
        (Coding::Absent, Some(n)) => BodyKind::Length(n),
        (_, Some(_)) => return Err(Error::Malformed("both Transfer-Encoding and Content-Length")),
        _ if version == Version::Http10 => return Err(Error::Malformed("Transfer-Encoding in HTTP/1.0")),
        _ if fields.coding_unknown => return Err(Error::Unsupported("transfer coding")),
        (Coding::Chunked, None) => BodyKind::Chunked,
        (Coding::Other, None) => return Err(Error::Malformed("chunked is not the last transfer coding")),
    };
    // An HTTP/1.0 client would not know what 100 means; without a body there is nothing to wait for.
    let expect_continue = fields.expect_continue
        && version == Version::Http11
        && !matches!(body, BodyKind::None | BodyKind::Length(0));
    let keep_alive = fields.persistent(version);
    Ok(RequestHead { method, target, form, version, body, keep_alive, expect_continue, host, raw })
}

#[inline]
fn target_form(method: &[u8], target: &[u8]) -> Result<TargetForm, Error> {
    if target[0] == b'/' && method != b"CONNECT" {
        return Ok(TargetForm::Origin);
    }
    other_form(method, target).ok_or(Error::Malformed("invalid request target"))
}

#[cold]
fn other_form(method: &[u8], target: &[u8]) -> Option<TargetForm> {
    if method == b"CONNECT" {
        let colon = memchr::memrchr(b':', target).filter(|&colon| colon > 0)?;
        let port = std::str::from_utf8(&target[colon + 1..]).ok()?;
        let valid =
            is_host(target) && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
        return valid.then_some(TargetForm::Authority);
    }
    if target == b"*" {
        return (method == b"OPTIONS").then_some(TargetForm::Asterisk);
    }
    split_absolute(target).map(|_| TargetForm::Absolute)
}

/// `http://host:port/path?query` as (`host:port`, `/path?query`). Userinfo is refused (RFC 9110 section 4.2.4).
fn split_absolute(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', target)?;
    let (scheme, rest) = (&target[..colon], target[colon..].strip_prefix(b"://")?);
    let word = scheme.iter().all(|&b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let end = rest.iter().position(|&b| b == b'/' || b == b'?').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let valid = word && scheme.first()?.is_ascii_alphabetic() && !authority.is_empty() && is_host(authority);
    valid.then_some((authority, path))
}
