//! Reads heads and trailer sections line by line.
//!
//! A head that lies whole in the input is read in place by [`Scan::all`], which gives up at the first line that is
//! incomplete or wrong. From that line on [`Partial`] takes over: it copies line after line, so that each byte is looked at
//! once however the head was split, and it alone reports errors. Both read a line with the same functions, so every split
//! of the bytes gives the same answer.

use super::chars::{is_token_byte, is_value_byte, target_end, token_end, value_end};
use super::fields::Fields;
use super::types::{Error, Headers, Limits, Part, Version};

/// `Limits` in half the space: one lies in every connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) head_bytes: u32,
    pub(crate) headers: u32,
    pub(crate) line_bytes: u32,
    pub(crate) chunk_line_bytes: u32,
    pub(crate) trailer_bytes: u32,
}

impl Caps {
    pub(crate) fn new(limits: Limits) -> Caps {
        // Positions in a head are kept in 32 bits.
        let cap = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(u32::MAX / 2);
        Caps {
            head_bytes: cap(limits.head_bytes),
            headers: cap(limits.headers),
            line_bytes: cap(limits.line_bytes).min(cap(limits.head_bytes)),
            chunk_line_bytes: cap(limits.chunk_line_bytes),
            trailer_bytes: cap(limits.trailer_bytes),
        }
    }
}

/// What is being read: they differ in the start line and in the fields that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Response,
    Request,
    Trailers,
}

/// A status line or a request line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) method_end: u32,
    pub(crate) target_end: u32,
}

/// What is wrong with a line.
enum Flaw {
    Incomplete,
    Wrong(Error),
}

impl From<&'static str> for Flaw {
    fn from(reason: &'static str) -> Flaw {
        Flaw::Wrong(Error::Malformed(reason))
    }
}

/// How far a head has been read.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// Where the next line begins.
    at: usize,
    /// Where the field lines begin; zero before the start line is read.
    pub(crate) fields_at: usize,
    pub(crate) start: Start,
    pub(crate) count: u32,
    pub(crate) fields: Fields,
}

impl Scan {
    #[inline(always)]
    pub(crate) fn new() -> Scan {
        let start = Start { version: Version::Http11, status: 0, method_end: 0, target_end: 0 };
        Scan { at: 0, fields_at: 0, start, count: 0, fields: Fields::default() }
    }

    /// Reads a head that lies whole in `input`: its length, or `None` at the first line that is incomplete or wrong.
    #[inline(always)]
    pub(crate) fn all<const REQUEST: bool>(&mut self, input: &[u8], caps: &Caps) -> Option<usize> {
        let read = if REQUEST { self.request_line(input) } else { self.status_line(input) };
        if read.is_err() || self.at > caps.line_bytes as usize {
            (self.at, self.fields_at) = (0, 0);
            return None;
        }
        loop {
            let line = self.at;
            match self.field_line::<REQUEST, true>(input) {
                Ok(last) if self.at <= caps.head_bytes as usize && self.count <= caps.headers => {
                    if last {
                        return Some(self.at);
                    }
                }
                Ok(last) => {
                    // A limit: step back, so that `Partial` meets the same line and reports it.
                    self.at = line;
                    self.count -= u32::from(!last);
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// Reads one complete line of `head`, the one that begins at `self.at`. True: it was the empty line at the end.
    fn line(&mut self, head: &[u8], section: Section) -> Result<bool, Error> {
        let read = match section {
            Section::Trailers => self.field_line::<false, false>(head),
            Section::Response if self.fields_at == 0 => self.status_line(head),
            Section::Response => self.field_line::<false, true>(head),
            Section::Request if self.fields_at == 0 => self.request_line(head),
            Section::Request => self.field_line::<true, true>(head),
        };
        read.map_err(|flaw| match flaw {
            Flaw::Wrong(error) => error,
            Flaw::Incomplete => Error::Malformed("line cut short"),
        })
    }

    /// `HTTP/1.1 200 OK`. The space after the code may be missing together with the reason: servers do that.
    #[inline(always)]
    fn status_line(&mut self, head: &[u8]) -> Result<bool, Flaw> {
        let Some(line) = head.first_chunk::<13>() else { return Err(Flaw::Incomplete) };
        self.start.version = version(first_8(line))?;
        let code = [line[9], line[10], line[11]].map(|b| b.wrapping_sub(b'0'));
        if line[8] != b' ' || code[0] == 0 || code.iter().any(|&digit| digit > 9) {
            return Err("invalid status code".into());
        }
        self.start.status = u16::from(code[0]) * 100 + u16::from(code[1]) * 10 + u16::from(code[2]);
        let end = match line[12] {
            b' ' => value_end(head, 13),
            b'\r' => 12,
            _ => return Err("invalid status code".into()),
        };
        self.at = line_end(head, end)?;
        self.fields_at = self.at;
        Ok(false)
    }

    /// `GET /path HTTP/1.1`.
    #[inline(always)]
    fn request_line(&mut self, head: &[u8]) -> Result<bool, Flaw> {
        let method_end = token_end(head, 0);
        if method_end == 0 {
            return Err("not an HTTP request".into());
        }
        expect(head, method_end, b' ', "invalid method")?;
        let target_end = target_end(head, method_end + 1);
        if target_end == method_end + 1 {
            return Err("missing or invalid request target".into());
        }
        expect(head, target_end, b' ', "invalid request target")?;
        let Some(word) = head[target_end + 1..].first_chunk::<8>() else { return Err(Flaw::Incomplete) };
        self.start.version = version(*word)?;
        let end = target_end + 9;
        match head.get(end) {
            Some(b'\r' | b'\n') => self.at = line_end(head, end)?,
            Some(_) => return Err("invalid HTTP version".into()),
            None => return Err(Flaw::Incomplete),
        }
        (self.start.method_end, self.start.target_end) = (method_end as u32, target_end as u32);
        self.fields_at = self.at;
        Ok(false)
    }

    /// `name: value`, or the empty line.
    #[inline(always)]
    fn field_line<const REQUEST: bool, const NOTE: bool>(&mut self, head: &[u8]) -> Result<bool, Flaw> {
        let line = self.at;
        let colon = token_end(head, line);
        if head.get(colon) != Some(&b':') || colon == line {
            return self.no_name(head, colon);
        }
        let mut from = colon + 1;
        while let Some(b' ' | b'\t') = head.get(from) {
            from += 1;
        }
        let end = value_end(head, from);
        let next = line_end(head, end)?;
        self.at = next;
        self.count += 1;
        if NOTE {
            self.fields.note::<REQUEST>(head, (line, colon), (from, end));
        }
        Ok(false)
    }

    /// A line that does not begin with a name and a colon: the empty line, or an error.
    #[inline(always)]
    fn no_name(&mut self, head: &[u8], stop: usize) -> Result<bool, Flaw> {
        if stop == self.at && head.get(stop) == Some(&b'\r') {
            self.at = line_end(head, stop)?;
            return Ok(true);
        }
        Err(name_flaw(head.get(stop).copied(), stop == self.at))
    }
}

#[cold]
fn name_flaw(stop: Option<u8>, at_start: bool) -> Flaw {
    match stop {
        None => Flaw::Incomplete,
        Some(b':') => "field without a name".into(),
        Some(b' ' | b'\t') if at_start => "folded field line".into(),
        Some(b' ' | b'\t') => "white space in or after a field name".into(),
        Some(b'\n') if at_start => "bare LF".into(),
        Some(b'\r' | b'\n') => "field line without a colon".into(),
        Some(_) => "invalid field name".into(),
    }
}

#[inline(always)]
fn expect(head: &[u8], at: usize, byte: u8, reason: &'static str) -> Result<(), Flaw> {
    match head.get(at) {
        Some(&b) if b == byte => Ok(()),
        Some(_) => Err(reason.into()),
        None => Err(Flaw::Incomplete),
    }
}

/// `at` is where a value ended: what follows must be CRLF. Gives the start of the next line.
#[inline(always)]
fn line_end(head: &[u8], at: usize) -> Result<usize, Flaw> {
    match head.get(at..at + 2) {
        Some(b"\r\n") => Ok(at + 2),
        _ => Err(end_flaw(head.get(at).copied(), head.get(at + 1).copied())),
    }
}

#[cold]
fn end_flaw(stop: Option<u8>, next: Option<u8>) -> Flaw {
    match (stop, next) {
        (None, _) | (Some(b'\r'), None) => Flaw::Incomplete,
        (Some(b'\r'), _) => "bare CR".into(),
        (Some(b'\n'), _) => "bare LF".into(),
        (Some(b), _) if is_value_byte(b) => "text after the line's end".into(),
        _ => "control character".into(),
    }
}

#[inline(always)]
fn first_8(line: &[u8; 13]) -> [u8; 8] {
    [line[0], line[1], line[2], line[3], line[4], line[5], line[6], line[7]]
}

#[inline(always)]
fn version(word: [u8; 8]) -> Result<Version, Flaw> {
    match &word {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        _ => other_version(word),
    }
}

#[cold]
fn other_version(word: [u8; 8]) -> Result<Version, Flaw> {
    match word {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Flaw::Wrong(Error::Version)),
        _ => Err("invalid HTTP version".into()),
    }
}

/// A head or trailer section whose end has not arrived. Lives only as long.
#[derive(Debug)]
pub(crate) struct Partial {
    bytes: Vec<u8>,
    pub(crate) scan: Scan,
}

impl Partial {
    /// Goes on where `scan` gave up; `read` are the complete lines before.
    pub(crate) fn new(read: &[u8], scan: Scan) -> Box<Partial> {
        Box::new(Partial { bytes: read.to_vec(), scan })
    }

    /// The complete lines `scan` has read of `input`.
    pub(crate) fn resume(input: &[u8], scan: Scan) -> (usize, Box<Partial>) {
        (scan.at, Partial::new(&input[..scan.at], scan))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn field_lines(&self) -> Headers<'_> {
        Headers::new(&self.bytes[self.scan.fields_at..])
    }

    /// Takes lines from `input` until the section ends: how many bytes, and whether it has ended.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        section: Section,
        caps: &Caps,
    ) -> Result<(usize, bool), Error> {
        let mut used = 0;
        while used < input.len() {
            let rest = &input[used..];
            let (take, complete) = match memchr::memchr(b'\n', rest) {
                Some(lf) => (lf + 1, true),
                None => (rest.len(), false),
            };
            used += take;
            self.append(&rest[..take], section, caps)?;
            if self.is_blank(section) {
                self.bytes.clear();
            } else if complete && self.end_line(section, caps)? {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    /// Nothing but what may precede a request line.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.bytes.as_slice(), b"" | b"\r")
    }

    /// An empty line before a request line (RFC 9112 section 2.2).
    fn is_blank(&self, section: Section) -> bool {
        section == Section::Request && self.bytes == b"\r\n"
    }

    /// Appends a piece of the current line, and no more than shows that a limit is exceeded.
    fn append(&mut self, piece: &[u8], section: Section, caps: &Caps) -> Result<(), Error> {
        let (cap, part) = match section {
            Section::Trailers => (caps.trailer_bytes, Part::Trailers),
            _ if self.scan.fields_at == 0 => (caps.line_bytes, Part::StartLine),
            _ => (caps.head_bytes, Part::Head),
        };
        let cap = cap as usize;
        let room = cap + 1 - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        self.check_start(section)?;
        if self.bytes.len() > cap { Err(Error::TooLarge(part)) } else { Ok(()) }
    }

    /// Tells another protocol by its first bytes, before a line end that may never come.
    fn check_start(&self, section: Section) -> Result<(), Error> {
        const START: &[u8] = b"HTTP/";
        let bytes = self.bytes.as_slice();
        match (section, bytes) {
            _ if self.scan.fields_at > 0 => Ok(()),
            (Section::Trailers, _) | (_, []) => Ok(()),
            (Section::Response, _) if bytes.starts_with(START) || START.starts_with(bytes) => Ok(()),
            (Section::Response, _) => Err(Error::Malformed("not an HTTP response")),
            (Section::Request, [b'\r'] | [b'\r', b'\n', ..]) => Ok(()),
            (Section::Request, [b'\r', ..]) => Err(Error::Malformed("bare CR")),
            (Section::Request, [b'\n', ..]) => Err(Error::Malformed("bare LF")),
            (Section::Request, [b, ..]) if is_token_byte(*b) => Ok(()),
            (Section::Request, _) => Err(Error::Malformed("not an HTTP request")),
        }
    }

    fn end_line(&mut self, section: Section, caps: &Caps) -> Result<bool, Error> {
        let ended = self.scan.line(&self.bytes, section)?;
        if self.scan.count > caps.headers {
            return Err(Error::TooLarge(Part::Headers));
        }
        Ok(ended)
    }
}
