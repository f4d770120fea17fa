//! Reads header blocks.
//!
//! A block is read once, completely, because the table must be kept. What is read is noted as places, not copied: a
//! [`Text`] says where the bytes are (the block, the table, the static table, or what was decoded aside). A lazy
//! decoder leaves Huffman-coded values of fields that framing does not need as they are, until somebody asks.

use std::borrow::Cow;
use std::fmt;

use super::huffman;
use super::kind::{Kind, is_value};
use super::static_table::{STATIC, STATIC_KIND};
use super::table::{Entry, OVERHEAD, Table};

/// Bytes that are no Huffman code of anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHuffman;

impl fmt::Display for InvalidHuffman {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid Huffman code")
    }
}

impl std::error::Error for InvalidHuffman {}

/// Why a block cannot be used. The tables of the two sides differ from here on: the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// Not HPACK. The text says what was wrong.
    Invalid(&'static str),
    /// The fields are longer than the limit on the header list.
    TooLarge,
}

impl From<InvalidHuffman> for BlockError {
    fn from(_: InvalidHuffman) -> BlockError {
        BlockError::Invalid("invalid Huffman code")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Source {
    Block,
    /// In the block, Huffman-coded.
    Coded,
    /// Decoded aside, gone with the next block.
    Aside,
    Table,
    /// `at` is the entry's place in `STATIC`.
    StaticName,
    StaticValue,
}

/// Where some bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    at: u32,
    /// The length, and the source in the lowest three bits.
    len: u32,
}

impl Text {
    const EMPTY: Text = Text { at: 0, len: Source::Block as u32 };

    #[inline(always)]
    fn new(source: Source, at: usize, len: usize) -> Text {
        Text { at: at as u32, len: (len as u32) << 3 | source as u32 }
    }

    #[inline(always)]
    fn source(self) -> Source {
        match self.len & 7 {
            0 => Source::Block,
            1 => Source::Coded,
            2 => Source::Aside,
            3 => Source::Table,
            4 => Source::StaticName,
            _ => Source::StaticValue,
        }
    }

    #[inline(always)]
    fn len(self) -> usize {
        (self.len >> 3) as usize
    }
}

/// What framing needs to know of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// The first thing found that makes the message malformed.
    pub(crate) fault: Option<&'static str>,
    /// The method is CONNECT.
    pub(crate) connect: bool,
    /// A bit per pseudo-header field seen, `1 << Kind`.
    pub(crate) pseudo: u16,
    /// 0 without `:status`.
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) method: Text,
    pub(crate) scheme: Text,
    pub(crate) authority: Text,
    pub(crate) path: Text,
}

impl Summary {
    const EMPTY: Summary = Summary {
        fault: None,
        connect: false,
        pseudo: 0,
        status: 0,
        content_length: None,
        method: Text::EMPTY,
        scheme: Text::EMPTY,
        authority: Text::EMPTY,
        path: Text::EMPTY,
    };

    #[inline]
    pub(crate) fn saw(&self, kind: Kind) -> bool {
        self.pseudo & (1 << kind as u16) != 0
    }

    #[cold]
    pub(crate) fn blame(&mut self, reason: &'static str) {
        self.fault.get_or_insert(reason);
    }
}

/// One direction's decoding state: the dynamic table, and what was found in the last block.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that the peer may choose, in bytes.
    size_limit: usize,
    /// The limit has fallen below what the peer uses: its next block must begin by saying that it knows.
    update_required: bool,
    list_bytes_max: usize,
    lazy: bool,
    list_bytes: usize,
    fields: Vec<(Text, Text)>,
    aside: Vec<u8>,
    summary: Summary,
}

/// A literal's name or value, as it stands in the block.
#[derive(Clone, Copy)]
struct Literal {
    coded: bool,
    at: usize,
    end: usize,
}

/// A field whose bytes are known.
struct Found {
    kind: Kind,
    name: Text,
    value: Text,
    /// The value holds no byte that it may not hold, as far as it was looked at.
    value_fine: bool,
}

const VALUE_BAD: u32 = 1 << 8;

impl Decoder {
    /// `table_bytes` is what our SETTINGS_HEADER_TABLE_SIZE says, or will say; `list_bytes_max` limits the length of all
    /// names and values of one block, counting 32 bytes more for each field (RFC 9113 section 10.5.1).
    pub fn new(table_bytes: u32, list_bytes_max: u32, lazy: bool) -> Decoder {
        Decoder {
            // Until the peer knows of our setting, the initial value holds (RFC 9113 section 6.5.3).
            table: Table::new(4096),
            size_limit: (table_bytes as usize).max(4096),
            update_required: false,
            list_bytes_max: list_bytes_max as usize,
            lazy,
            list_bytes: 0,
            fields: Vec::new(),
            aside: Vec::new(),
            summary: Summary::EMPTY,
        }
    }

    /// The peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of `table_bytes`.
    pub fn acknowledged(&mut self, table_bytes: u32) {
        self.size_limit = table_bytes as usize;
        self.update_required |= self.table.size_max() > self.size_limit;
    }

    /// Reads one complete header block.
    #[inline]
    pub fn decode(&mut self, block: &[u8]) -> Result<(), BlockError> {
        self.table.compact();
        self.aside.clear();
        self.fields.clear();
        self.summary = Summary::EMPTY;
        self.list_bytes = 0;
        let mut at = self.size_updates(block)?;
        while at < block.len() {
            at = self.field(block, at)?;
        }
        Ok(())
    }

    /// The fields of the last block, which must be given again.
    pub fn fields<'a>(&'a self, block: &'a [u8]) -> Fields<'a> {
        Fields { decoder: self, block, next: 0 }
    }

    /// Bytes that the dynamic table counts for now.
    pub fn table_bytes(&self) -> usize {
        self.table.size()
    }

    /// Bytes of memory held, used or not.
    pub fn held_bytes(&self) -> usize {
        self.table.text.capacity()
            + self.aside.capacity()
            + self.fields.capacity() * size_of::<(Text, Text)>()
    }

    pub(crate) fn summary(&mut self) -> &mut Summary {
        &mut self.summary
    }

    /// Of the last block's request line: are the method, the path and the authority empty?
    #[inline]
    pub(crate) fn request_emptiness(&self) -> [bool; 3] {
        [self.summary.method, self.summary.path, self.summary.authority].map(|text| text.len() == 0)
    }

    /// `text` is of the last block, and was not left coded.
    #[inline]
    pub(crate) fn text<'a>(&'a self, block: &'a [u8], text: Text) -> &'a [u8] {
        let at = text.at as usize;
        match text.source() {
            Source::Block | Source::Coded => &block[at..at + text.len()],
            Source::Aside => &self.aside[at..at + text.len()],
            Source::Table => &self.table.text[at..at + text.len()],
            Source::StaticName => STATIC[at].0,
            Source::StaticValue => STATIC[at].1,
        }
    }

    /// Size updates stand at the beginning of a block only (RFC 7541 section 4.2).
    #[inline]
    fn size_updates(&mut self, block: &[u8]) -> Result<usize, BlockError> {
        let mut at = 0;
        while block.get(at).is_some_and(|b| b >> 5 == 1) {
            let size = int(block, &mut at, 5)?;
            if size > self.size_limit {
                return Err(BlockError::Invalid("table size update above the limit"));
            }
            self.table.resize(size);
            self.update_required = false;
        }
        match self.update_required {
            true => Err(BlockError::Invalid("table size update missing")),
            false => Ok(at),
        }
    }

    #[inline]
    fn field(&mut self, block: &[u8], mut at: usize) -> Result<usize, BlockError> {
        let first = block[at];
        let found = match first {
            0x80.. => {
                let index = int(block, &mut at, 7)?;
                self.indexed(index)?
            }
            0x40..0x80 => self.inserted(block, &mut at)?,
            0x20..0x40 => return Err(BlockError::Invalid("table size update after a field")),
            _ => self.passing(block, &mut at)?,
        };
        self.note(block, found)?;
        Ok(at)
    }

    #[inline]
    fn indexed(&mut self, index: usize) -> Result<Found, BlockError> {
        if index > STATIC.len() {
            let entry = self.entry(index)?;
            let (name, value) = entry_texts(&entry);
            let value_fine = entry.meta & VALUE_BAD == 0;
            return Ok(Found { kind: Kind::from_u8(entry.meta as u8), name, value, value_fine });
        }
        if index == 0 {
            return Err(BlockError::Invalid("index 0"));
        }
        let (name, value) = STATIC[index - 1];
        Ok(Found {
            kind: STATIC_KIND[index],
            name: Text::new(Source::StaticName, index - 1, name.len()),
            value: Text::new(Source::StaticValue, index - 1, value.len()),
            value_fine: true,
        })
    }

    fn entry(&self, index: usize) -> Result<Entry, BlockError> {
        self.table.entry(index - STATIC.len() - 1).ok_or(BlockError::Invalid("index beyond the table"))
    }

    /// A literal that enters the table (section 6.2.1).
    fn inserted(&mut self, block: &[u8], at: &mut usize) -> Result<Found, BlockError> {
        if self.lazy && self.table.size_max() < OVERHEAD {
            // Nothing fits: it would only empty a table that is empty.
            return self.literal(block, at, 6);
        }
        let index = int(block, at, 6)?;
        let start = self.table.text.len();
        let kind = self.append_name(block, at, index)?;
        let name_len = self.table.text.len() - start;
        let value = literal(block, at)?;
        append(block, value, &mut self.table.text)?;
        let value_len = self.table.text.len() - start - name_len;
        let value_fine = is_value(&self.table.text[start + name_len..]);
        let meta = kind as u32 | if value_fine { 0 } else { VALUE_BAD };
        let entry = Entry { at: start as u32, name_len: name_len as u32, value_len: value_len as u32, meta };
        self.table.insert(entry);
        let (name, value) = entry_texts(&entry);
        Ok(Found { kind, name, value, value_fine })
    }

    /// Appends the name to the table's text.
    fn append_name(&mut self, block: &[u8], at: &mut usize, index: usize) -> Result<Kind, BlockError> {
        let start = self.table.text.len();
        if index == 0 {
            let name = literal(block, at)?;
            append(block, name, &mut self.table.text)?;
            return Ok(Kind::of(&self.table.text[start..]));
        }
        if index <= STATIC.len() {
            self.table.text.extend_from_slice(STATIC[index - 1].0);
            return Ok(STATIC_KIND[index]);
        }
        let entry = self.entry(index)?;
        let from = entry.at as usize;
        self.table.text.extend_from_within(from..from + entry.name_len as usize);
        Ok(Kind::from_u8(entry.meta as u8))
    }

    /// A literal that does not enter the table (sections 6.2.2 and 6.2.3).
    #[inline]
    fn passing(&mut self, block: &[u8], at: &mut usize) -> Result<Found, BlockError> {
        self.literal(block, at, 4)
    }

    #[inline]
    fn literal(&mut self, block: &[u8], at: &mut usize, prefix: u32) -> Result<Found, BlockError> {
        let index = int(block, at, prefix)?;
        let (kind, name) = match index {
            0 => {
                let name = literal(block, at)?;
                let name = self.read(block, name)?;
                (Kind::of(self.text(block, name)), name)
            }
            1..=61 => {
                let name = STATIC[index - 1].0;
                (STATIC_KIND[index], Text::new(Source::StaticName, index - 1, name.len()))
            }
            _ => {
                let entry = self.entry(index)?;
                (Kind::from_u8(entry.meta as u8), entry_texts(&entry).0)
            }
        };
        let value = literal(block, at)?;
        if self.lazy && value.coded && kind == Kind::Other {
            let value = Text::new(Source::Coded, value.at, value.end - value.at);
            return Ok(Found { kind, name, value, value_fine: true });
        }
        let value = self.read(block, value)?;
        let value_fine = is_value(self.text(block, value));
        Ok(Found { kind, name, value, value_fine })
    }

    /// Makes a literal readable.
    #[inline]
    fn read(&mut self, block: &[u8], literal: Literal) -> Result<Text, BlockError> {
        if !literal.coded {
            return Ok(Text::new(Source::Block, literal.at, literal.end - literal.at));
        }
        let start = self.aside.len();
        huffman::decode(&block[literal.at..literal.end], &mut self.aside)?;
        Ok(Text::new(Source::Aside, start, self.aside.len() - start))
    }

    /// After each field, because one inserted name may be repeated at the price of a byte.
    #[inline]
    fn count(&mut self, bytes: usize) -> Result<(), BlockError> {
        self.list_bytes += bytes;
        if self.list_bytes > self.list_bytes_max {
            return Err(BlockError::TooLarge);
        }
        Ok(())
    }

    #[inline]
    fn note(&mut self, block: &[u8], found: Found) -> Result<(), BlockError> {
        self.count(found.name.len() + found.value.len() + OVERHEAD)?;
        if !found.value_fine {
            self.summary.blame("invalid field value");
        }
        match found.kind {
            Kind::Other => {}
            Kind::ContentLength => self.note_length(block, found.value),
            kind @ (Kind::Method | Kind::Scheme | Kind::Authority | Kind::Path | Kind::Status) => {
                self.note_pseudo(block, kind, found.value);
                return Ok(());
            }
            kind => self.note_odd(block, kind, found.value),
        }
        self.fields.push((found.name, found.value));
        Ok(())
    }

    #[inline]
    fn note_pseudo(&mut self, block: &[u8], kind: Kind, value: Text) {
        if !self.fields.is_empty() {
            self.summary.blame("pseudo-header field after a field");
        }
        if self.summary.saw(kind) {
            self.summary.blame("pseudo-header field twice");
        }
        self.summary.pseudo |= 1 << kind as u16;
        match kind {
            Kind::Method => {
                self.summary.method = value;
                self.summary.connect = self.text(block, value) == b"CONNECT";
            }
            Kind::Scheme => self.summary.scheme = value,
            Kind::Authority => self.summary.authority = value,
            Kind::Path => self.summary.path = value,
            _ => match *self.text(block, value) {
                [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                    self.summary.status =
                        u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
                }
                _ => self.summary.blame("invalid :status"),
            },
        }
    }

    #[inline]
    fn note_length(&mut self, block: &[u8], value: Text) {
        match (decimal(self.text(block, value)), self.summary.content_length) {
            (None, _) => self.summary.blame("invalid content-length"),
            (Some(n), Some(earlier)) if n != earlier => self.summary.blame("differing content-length"),
            (n, _) => self.summary.content_length = n,
        }
    }

    #[cold]
    fn note_odd(&mut self, block: &[u8], kind: Kind, value: Text) {
        match kind {
            Kind::Te if self.text(block, value).eq_ignore_ascii_case(b"trailers") => {}
            Kind::Te => self.summary.blame("te other than trailers"),
            Kind::Connection => self.summary.blame("connection-specific field"),
            Kind::UnknownPseudo => self.summary.blame("unknown pseudo-header field"),
            _ => self.summary.blame("invalid field name"),
        }
    }
}

#[inline]
fn entry_texts(entry: &Entry) -> (Text, Text) {
    let (at, name_len) = (entry.at as usize, entry.name_len as usize);
    (
        Text::new(Source::Table, at, name_len),
        Text::new(Source::Table, at + name_len, entry.value_len as usize),
    )
}

fn append(block: &[u8], literal: Literal, out: &mut Vec<u8>) -> Result<(), BlockError> {
    let bytes = &block[literal.at..literal.end];
    match literal.coded {
        true => huffman::decode(bytes, out)?,
        false => out.extend_from_slice(bytes),
    }
    Ok(())
}

/// A string literal (section 5.2).
#[inline]
fn literal(block: &[u8], at: &mut usize) -> Result<Literal, BlockError> {
    let coded = block.get(*at).is_some_and(|b| b & 0x80 != 0);
    let len = int(block, at, 7)?;
    let end = *at + len;
    if end > block.len() {
        return Err(BlockError::Invalid("string beyond the block"));
    }
    let start = std::mem::replace(at, end);
    Ok(Literal { coded, at: start, end })
}

/// An integer (section 5.1), below 2^28 and some more: beyond any length that a limit allows.
#[inline(always)]
fn int(block: &[u8], at: &mut usize, prefix: u32) -> Result<usize, BlockError> {
    const CUT: BlockError = BlockError::Invalid("integer beyond the block");
    let mask = (1usize << prefix) - 1;
    let first = usize::from(*block.get(*at).ok_or(CUT)?) & mask;
    *at += 1;
    if first < mask { Ok(first) } else { long_int(block, at, mask) }
}

fn long_int(block: &[u8], at: &mut usize, mut value: usize) -> Result<usize, BlockError> {
    for shift in [0, 7, 14, 21] {
        let b = *block.get(*at).ok_or(BlockError::Invalid("integer beyond the block"))?;
        *at += 1;
        value += usize::from(b & 0x7f) << shift;
        if b < 0x80 {
            return Ok(value);
        }
    }
    Err(BlockError::Invalid("integer too large"))
}

/// Digits and nothing else, below 2^64.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Plain(&'a [u8]),
    /// Left as it came by a lazy decoder.
    Huffman(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Allocates if the value was left coded. Only then can it fail, or hold a byte that no value may hold.
    pub fn bytes(self) -> Result<Cow<'a, [u8]>, InvalidHuffman> {
        match self {
            Value::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Value::Huffman(coded) => {
                let mut bytes = Vec::new();
                huffman::decode(coded, &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// The value if it was decoded. What a server receives always is.
    pub fn plain(self) -> Option<&'a [u8]> {
        match self {
            Value::Plain(bytes) => Some(bytes),
            Value::Huffman(_) => None,
        }
    }
}

/// The fields of a header block in order, without pseudo-header fields: `(name, value)`, names in lower case.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    decoder: &'a Decoder,
    block: &'a [u8],
    next: usize,
}

impl<'a> Fields<'a> {
    /// The value of the first field of this name, given in lower case.
    pub fn find(mut self, name: &str) -> Option<Value<'a>> {
        self.by_ref().find(|(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }

    pub(crate) fn text(&self, text: Text) -> &'a [u8] {
        self.decoder.text(self.block, text)
    }

    pub(crate) fn summary(&self) -> &'a Summary {
        &self.decoder.summary
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let (name, value) = *self.decoder.fields.get(self.next)?;
        self.next += 1;
        let bytes = self.text(value);
        let value = match value.source() {
            Source::Coded => Value::Huffman(bytes),
            _ => Value::Plain(bytes),
        };
        Some((self.text(name), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.decoder.fields.len() - self.next;
        (left, Some(left))
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        f.debug_map()
            .entries((*self).map(|(name, value)| match value {
                Value::Plain(bytes) => (shown(name), shown(bytes)),
                Value::Huffman(coded) => (shown(name), format!("(coded, {} bytes)", coded.len())),
            }))
            .finish()
    }
}
