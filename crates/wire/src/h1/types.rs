//! The words both directions share.

use std::fmt;

/// Lengths that a peer may not exceed. Exceeding one is `Error::TooLarge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, from the start line to the empty line, both included.
    pub head_bytes: usize,
    /// Field lines in a head, and again in a trailer section.
    pub headers: usize,
    /// Bytes of a request line or status line, line end included.
    pub line_bytes: usize,
    /// Bytes of a chunk-size line with its extensions, line end included.
    pub chunk_line_bytes: usize,
    /// Bytes of a trailer section, the empty line included.
    pub trailer_bytes: usize,
}

impl Limits {
    pub const DEFAULT: Limits = Limits {
        head_bytes: 64 << 10,
        headers: 256,
        line_bytes: 16 << 10,
        chunk_line_bytes: 4 << 10,
        trailer_bytes: 16 << 10,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Minor versions above 1 are read as 1.1 (RFC 9110 section 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    Http10,
    Http11,
}

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    None,
    Length(u64),
    Chunked,
    /// Responses only.
    UntilClose,
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    StartLine,
    Head,
    Headers,
    ChunkLine,
    Trailers,
}

impl Part {
    pub const fn name(self) -> &'static str {
        match self {
            Part::StartLine => "start line",
            Part::Head => "head",
            Part::Headers => "number of header fields",
            Part::ChunkLine => "chunk-size line",
            Part::Trailers => "trailer section",
        }
    }
}

/// Why the bytes of a peer cannot be used. The connection is of no further use after any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not HTTP/1, or not HTTP/1 whose framing can be trusted. The text says what was wrong.
    Malformed(&'static str),
    TooLarge(Part),
    /// Valid, but not something we speak: an unknown transfer coding, a protocol switch.
    Unsupported(&'static str),
    /// A major version other than 1.
    Version,
    /// The peer closed inside a message.
    Truncated,
    /// The peer closed before the first byte of an awaited response.
    ClosedBeforeResponse,
}

impl Error {
    /// The status with which a server answers a request that failed so.
    pub const fn status(self) -> u16 {
        match self {
            Error::TooLarge(Part::StartLine) => 414,
            Error::TooLarge(Part::Head | Part::Headers | Part::Trailers) => 431,
            Error::Unsupported(_) => 501,
            Error::Version => 505,
            Error::Malformed(_)
            | Error::TooLarge(Part::ChunkLine)
            | Error::Truncated
            | Error::ClosedBeforeResponse => 400,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(reason) => write!(f, "malformed: {reason}"),
            Error::TooLarge(part) => write!(f, "{} too large", part.name()),
            Error::Unsupported(what) => write!(f, "unsupported: {what}"),
            Error::Version => f.write_str("unsupported HTTP version"),
            Error::Truncated => f.write_str("closed inside a message"),
            Error::ClosedBeforeResponse => f.write_str("closed before the response"),
        }
    }
}

impl std::error::Error for Error {}

/// The field lines of a checked head or trailer section, in order: `(name, value)`, the name as it was sent, the
/// value without the white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    /// `lines` must be field lines that a decoder has accepted.
    pub(crate) fn new(lines: &'a [u8]) -> Headers<'a> {
        Headers { rest: lines }
    }

    /// The value of the first field of this name, in any case.
    pub fn find(mut self, name: &str) -> Option<&'a [u8]> {
        self.by_ref().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let end = memchr::memchr(b'\r', self.rest)?;
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], trim(&line[colon + 1..])))
    }
}

/// The value of the first field `name` in a raw head (start line included) that a decoder has accepted.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    header_lines(head).find(name)
}

/// The field lines of a raw head that a decoder has accepted.
pub(crate) fn header_lines(head: &[u8]) -> Headers<'_> {
    let start = memchr::memchr(b'\n', head).map_or(head.len(), |lf| lf + 1);
    Headers::new(&head[start..])
}

/// Without the optional white space (SP, HTAB) at both ends.
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
