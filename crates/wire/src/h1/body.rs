//! Where a body ends: by length, by its chunks, by the connection's end (RFC 9112 sections 6 and 7).

use super::head::{Caps, Partial, Scan, Section};
use super::types::{BodyKind, Error, Headers, Part};

#[derive(Debug)]
pub(crate) enum Body {
    /// Bytes to come; zero when the body is complete.
    Length(u64),
    UntilClose,
    Chunked(Chunk),
    Trailers,
}

impl Body {
    pub(crate) fn new(kind: BodyKind) -> Body {
        match kind {
            BodyKind::None => Body::Length(0),
            BodyKind::Length(n) => Body::Length(n),
            BodyKind::Chunked => Body::Chunked(Chunk::new()),
            BodyKind::UntilClose => Body::UntilClose,
        }
    }

    /// Every byte of it has been taken.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self, Body::Length(0))
    }

    /// Takes some of `input`. `partial` holds a head that was split, until this is called, and then split trailers.
    pub(crate) fn step<'a>(
        &mut self,
        partial: &'a mut Option<Box<Partial>>,
        input: &'a [u8],
        caps: &Caps,
    ) -> Result<(usize, Step<'a>), Error> {
        if !matches!(self, Body::Trailers) {
            *partial = None;
        }
        match self {
            Body::Length(0) => Ok((0, Step::End)),
            _ if input.is_empty() => Ok((0, Step::NeedMore)),
            Body::Length(left) => {
                let data = &input[..input.len().min(usize::try_from(*left).unwrap_or(usize::MAX))];
                *left -= data.len() as u64;
                Ok((data.len(), Step::Data(data)))
            }
            Body::UntilClose => Ok((input.len(), Step::Data(input))),
            Body::Chunked(chunk) => match chunk.step(input, caps)? {
                (used, Some(step)) => Ok((used, step)),
                (used, None) => {
                    *self = Body::Trailers;
                    let (more, step) = self.trailers(partial, &input[used..], caps)?;
                    Ok((used + more, step))
                }
            },
            Body::Trailers => self.trailers(partial, input, caps),
        }
    }

    fn trailers<'a>(
        &mut self,
        partial: &'a mut Option<Box<Partial>>,
        input: &'a [u8],
        caps: &Caps,
    ) -> Result<(usize, Step<'a>), Error> {
        if partial.is_none() && input.starts_with(b"\r\n") {
            *self = Body::Length(0);
            return Ok((2, Step::End));
        }
        if input.is_empty() {
            return Ok((0, Step::NeedMore));
        }
        let section = partial.get_or_insert_with(|| Partial::new(&[], Scan::new()));
        let fed = section.feed(input, Section::Trailers, caps);
        if let Ok((used, false)) = fed {
            return Ok((used, Step::NeedMore));
        }
        *self = Body::Length(0);
        if fed.is_err() || section.scan.count == 0 {
            *partial = None;
        }
        let (used, _) = fed?;
        let step = match partial {
            Some(section) => Step::Trailers(section.field_lines()),
            None => Step::End,
        };
        Ok((used, step))
    }
}

pub(crate) enum Step<'a> {
    NeedMore,
    Data(&'a [u8]),
    Trailers(Headers<'a>),
    End,
}

/// ```text
/// Size hex* -> [Blank] -> [Extension] -> SizeLf -> Data -> DataCr -> DataLf -> Size …
/// ```
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The size so far while it is read; then the bytes of data to come.
    left: u64,
    /// Bytes of the size line so far.
    line_bytes: u32,
    digits: u8,
    at: At,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Size,
    /// White space before an extension.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { left: 0, line_bytes: 0, digits: 0, at: At::Size }
    }

    /// `None`: the last chunk's line has been taken, trailers follow.
    fn step<'a>(&mut self, input: &'a [u8], caps: &Caps) -> Result<(usize, Option<Step<'a>>), Error> {
        for (used, &b) in input.iter().enumerate() {
            if let At::Data = self.at {
                let data = self.data(&input[used..]);
                return Ok((used + data.len(), Some(Step::Data(data))));
            }
            if self.byte(b, caps.chunk_line_bytes)? {
                return Ok((used + 1, None));
            }
        }
        Ok((input.len(), Some(Step::NeedMore)))
    }

    fn data<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let data = &input[..input.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))];
        self.left -= data.len() as u64;
        if self.left == 0 {
            self.at = At::DataCr;
        }
        data
    }

    /// One byte of framing. True: it ended the last chunk's line.
    #[inline]
    fn byte(&mut self, b: u8, line_bytes_max: u32) -> Result<bool, Error> {
        if let At::Size | At::Blank | At::Extension | At::SizeLf = self.at {
            self.line_bytes += 1;
            if self.line_bytes > line_bytes_max {
                return Err(Error::TooLarge(Part::ChunkLine));
            }
        }
        self.at = match (self.at, b) {
            (At::Size, b'0'..=b'9') => self.digit(b - b'0')?,
            (At::Size, b'a'..=b'f') => self.digit(b - b'a' + 10)?,
            (At::Size, b'A'..=b'F') => self.digit(b - b'A' + 10)?,
            (At::Size, _) if self.digits == 0 => return Err(Error::Malformed("invalid chunk size")),
            (At::Size | At::Extension, b'\r') => At::SizeLf,
            (At::Size | At::Blank, b';') => At::Extension,
            (At::Size | At::Blank, b' ' | b'\t') => At::Blank,
            (At::Size | At::Blank, _) => return Err(Error::Malformed("invalid chunk size")),
            (At::Extension, _) if super::chars::is_value_byte(b) => At::Extension,
            (At::Extension, _) => return Err(Error::Malformed("control character in chunk extension")),
            (At::SizeLf, b'\n') if self.left == 0 => return Ok(true),
            (At::SizeLf, b'\n') => At::Data,
            (At::SizeLf, _) => return Err(Error::Malformed("bare CR in chunk size line")),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => {
                *self = Chunk::new();
                At::Size
            }
            (At::DataCr | At::DataLf, _) => return Err(Error::Malformed("chunk longer than its size")),
            (At::Data, _) => At::Data,
        };
        Ok(false)
    }

    fn digit(&mut self, digit: u8) -> Result<At, Error> {
        // Sixteen digits are 64 bits; leading zeros count, they have no use but to hide.
        if self.digits == 16 {
            return Err(Error::Malformed("chunk size of more than 16 digits"));
        }
        self.digits += 1;
        self.left = self.left << 4 | u64::from(digit);
        Ok(At::Size)
    }
}
