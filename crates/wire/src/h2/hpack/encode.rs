//! Writes header blocks.
//!
//! A [`PreparedHead`] holds everything about a message that does not change from one to the next: its strings already
//! in their shorter form, its places in the static table. The first time a connection writes it, its fields enter the
//! dynamic table; from the second time on it is a handful of references, kept as bytes until the table changes.
//!
//! ```text
//! 1st  82 86 41 8c f1e3… 84 7a 88 25b6…      literals with incremental indexing
//! 2nd  82 86 bf 84 be                        references
//! 3rd  the same bytes, copied
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::huffman;
use super::kind::{Kind, is_value};
use super::static_table::{static_field, static_name};
use super::table::{Entry, OVERHEAD, Table};

/// Bytes of the dynamic table that we use at most, whatever the peer allows. More would hold no more of what repeats.
const TABLE_BYTES: usize = 4096;
/// Prepared heads whose references one connection keeps as bytes.
const KEPT: usize = 8;

/// Whether a field may enter the peer's dynamic table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// It will be sent again.
    #[default]
    Insert,
    /// It will not.
    Pass,
    /// It is secret: nobody on the way may index it either (RFC 7541 section 7.1.3).
    Never,
}

/// A field to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    pub indexing: Indexing,
}

impl<'a> Field<'a> {
    pub const fn new(name: &'a [u8], value: &'a [u8]) -> Field<'a> {
        Field { name, value, indexing: Indexing::Insert }
    }
}

/// What stands in the request line of HTTP/1.1. Empty parts are left out (CONNECT has neither scheme nor path), or
/// follow with each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLine<'a> {
    pub method: &'a [u8],
    pub scheme: &'a [u8],
    pub authority: &'a [u8],
    pub path: &'a [u8],
}

/// A field that HTTP/2 cannot carry: a name that is no lower-case token, one that speaks of the connection, or a value
/// with a line end, a NUL, or white space at its ends. Holds the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField(pub Vec<u8>);

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/2 cannot carry the field `{}`", self.0.escape_ascii())
    }
}

impl std::error::Error for InvalidField {}

/// The head of a request or response, made once and sent often, on any number of connections.
#[derive(Clone, Debug)]
pub struct PreparedHead {
    /// Equal ids mean equal contents.
    id: u64,
    text: Vec<u8>,
    fields: Vec<Prepared>,
    status: u16,
    head_method: bool,
}

#[derive(Clone, Debug)]
struct Prepared {
    name: Range<usize>,
    value: Range<usize>,
    /// What a literal says after its first byte or index: the name, unless the static table has it, and the value.
    literal: Range<usize>,
    name_index: u8,
    /// Name and value; 0 if not in the static table.
    field_index: u8,
    indexing: Indexing,
    hash: u32,
}

impl PreparedHead {
    pub fn request(line: RequestLine<'_>, fields: &[Field<'_>]) -> Result<PreparedHead, InvalidField> {
        let mut head = PreparedHead::empty(0, line.method == b"HEAD");
        for (name, value) in [
            (&b":method"[..], line.method),
            (b":scheme", line.scheme),
            (b":authority", line.authority),
            (b":path", line.path),
        ] {
            if !value.is_empty() {
                check(name, value)?;
                head.push(&Field::new(name, value));
            }
        }
        head.push_all(fields)?;
        Ok(head)
    }

    /// `status` is from 100 to 999.
    pub fn response(status: u16, fields: &[Field<'_>]) -> Result<PreparedHead, InvalidField> {
        let mut head = PreparedHead::empty(status, false);
        let digits = status.to_string();
        head.push(&Field::new(b":status", digits.as_bytes()));
        head.push_all(fields)?;
        Ok(head)
    }

    pub fn trailers(fields: &[Field<'_>]) -> Result<PreparedHead, InvalidField> {
        let mut head = PreparedHead::empty(0, false);
        head.push_all(fields)?;
        Ok(head)
    }

    /// 0 if this is no response's head.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The request's method is HEAD: its response has no content.
    pub(crate) fn is_head_method(&self) -> bool {
        self.head_method
    }

    fn empty(status: u16, head_method: bool) -> PreparedHead {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        PreparedHead { id, text: Vec::new(), fields: Vec::new(), status, head_method }
    }

    fn push_all(&mut self, fields: &[Field<'_>]) -> Result<(), InvalidField> {
        for field in fields {
            check(field.name, field.value)?;
            if field.name[0] == b':' {
                return Err(InvalidField(field.name.to_vec()));
            }
            self.push(field);
        }
        Ok(())
    }

    fn push(&mut self, field: &Field<'_>) {
        let name_index = static_name(field.name);
        let name = self.append(|text| text.extend_from_slice(field.name));
        let value = self.append(|text| text.extend_from_slice(field.value));
        let literal = self.append(|text| {
            if name_index == 0 {
                write_string(text, field.name);
            }
            write_string(text, field.value);
        });
        let field_index = static_field(field.name, field.value);
        let hash = hash(field.name, field.value);
        let indexing = field.indexing;
        self.fields.push(Prepared { name, value, literal, name_index, field_index, indexing, hash });
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
        let start = self.text.len();
        write(&mut self.text);
        start..self.text.len()
    }
}

/// May HTTP/2 carry this?
fn check(name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
    let fine = match Kind::of(name) {
        Kind::Invalid | Kind::Connection | Kind::UnknownPseudo => false,
        Kind::Te => value == b"trailers",
        _ => true,
    };
    if fine && is_value(value) { Ok(()) } else { Err(InvalidField(name.to_vec())) }
}

/// One direction's encoding state.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// Rises with every change of the table: references written before are of no use after.
    generation: u64,
    /// The peer changed its limit: the least value since the last block.
    update: Option<usize>,
    kept: Vec<Kept>,
    /// Which of `kept` is overwritten next.
    oldest: usize,
}

/// References to a prepared head's fields.
#[derive(Debug)]
struct Kept {
    head: u64,
    generation: u64,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    pub fn new() -> Encoder {
        Encoder { table: Table::new(TABLE_BYTES), generation: 0, update: None, kept: Vec::new(), oldest: 0 }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn limit(&mut self, table_bytes: u32) {
        let size = (table_bytes as usize).min(TABLE_BYTES);
        if size == self.table.size_max() {
            return;
        }
        // A limit that fell and rose again has emptied the table all the same (RFC 7541 section 4.2).
        self.update = Some(self.update.unwrap_or(usize::MAX).min(size));
        self.generation += 1;
        self.table.resize(size);
    }

    /// Appends `head`, with `extra` fields that differ from message to message: those whose names begin with a colon
    /// first, the others last. Extra fields are the caller's to check; they enter no table and are not compressed,
    /// because the bytes saved cost more than they are worth on a fast network.
    #[inline]
    pub fn encode(&mut self, head: &PreparedHead, extra: &[(&[u8], &[u8])], out: &mut Vec<u8>) {
        if self.update.is_some() {
            self.write_update(out);
        }
        let pseudo = extra.iter().take_while(|field| field.0.first() == Some(&b':')).count();
        let (before, after) = extra.split_at(pseudo);
        before.iter().for_each(|(name, value)| write_plain(out, name, value));
        match self.kept.iter().find(|kept| kept.head == head.id && kept.generation == self.generation) {
            Some(kept) => out.extend_from_slice(&kept.bytes),
            None => self.encode_fields(head, out),
        }
        after.iter().for_each(|(name, value)| write_plain(out, name, value));
    }

    #[cold]
    fn write_update(&mut self, out: &mut Vec<u8>) {
        let Some(least) = self.update.take() else { return };
        if least < self.table.size_max() {
            write_int(out, 0x20, 5, least);
        }
        write_int(out, 0x20, 5, self.table.size_max());
    }

    #[inline(never)]
    fn encode_fields(&mut self, head: &PreparedHead, out: &mut Vec<u8>) {
        let (start, generation) = (out.len(), self.generation);
        for field in &head.fields {
            self.encode_field(head, field, out);
        }
        if generation == self.generation {
            self.keep(head.id, &out[start..]);
        }
    }

    fn encode_field(&mut self, head: &PreparedHead, field: &Prepared, out: &mut Vec<u8>) {
        if field.field_index != 0 && field.indexing != Indexing::Never {
            return write_int(out, 0x80, 7, field.field_index.into());
        }
        let literal = &head.text[field.literal.clone()];
        match field.indexing {
            Indexing::Pass => write_int(out, 0x00, 4, field.name_index.into()),
            Indexing::Never => write_int(out, 0x10, 4, field.name_index.into()),
            Indexing::Insert => match self.find(head, field) {
                Some(index) => return write_int(out, 0x80, 7, index + 62),
                None if self.insert(head, field) => write_int(out, 0x40, 6, field.name_index.into()),
                None => write_int(out, 0x00, 4, field.name_index.into()),
            },
        }
        out.extend_from_slice(literal);
    }

    fn find(&self, head: &PreparedHead, field: &Prepared) -> Option<usize> {
        let (name, value) = (&head.text[field.name.clone()], &head.text[field.value.clone()]);
        self.table.entries().position(|entry| {
            entry.meta == field.hash && self.table.name(entry) == name && self.table.value(entry) == value
        })
    }

    /// False if the entry is so large that it would drive most others out.
    fn insert(&mut self, head: &PreparedHead, field: &Prepared) -> bool {
        if field.name.len() + field.value.len() + OVERHEAD > self.table.size_max() / 2 {
            return false;
        }
        self.table.compact();
        let at = self.table.text.len() as u32;
        self.table.text.extend_from_slice(&head.text[field.name.clone()]);
        self.table.text.extend_from_slice(&head.text[field.value.clone()]);
        let (name_len, value_len) = (field.name.len() as u32, field.value.len() as u32);
        self.table.insert(Entry { at, name_len, value_len, meta: field.hash });
        self.generation += 1;
        true
    }

    fn keep(&mut self, head: u64, bytes: &[u8]) {
        let place = match self.kept.iter().position(|kept| kept.head == head) {
            Some(place) => place,
            None if self.kept.len() < KEPT => {
                self.kept.push(Kept { head, generation: 0, bytes: Vec::new() });
                self.kept.len() - 1
            }
            None => {
                self.oldest = (self.oldest + 1) % KEPT;
                self.oldest
            }
        };
        let kept = &mut self.kept[place];
        (kept.head, kept.generation) = (head, self.generation);
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
    }

    /// Entries in the dynamic table.
    pub fn entries(&self) -> usize {
        self.table.len()
    }
}

/// An integer (RFC 7541 section 5.1) after the bits of `first`.
fn write_int(out: &mut Vec<u8>, first: u8, prefix: u32, mut value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        return out.push(first | value as u8);
    }
    out.push(first | mask as u8);
    value -= mask;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A string literal (section 5.2) in the shorter of its two forms.
fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let coded = huffman::encoded_len(bytes);
    if coded < bytes.len() {
        write_int(out, 0x80, 7, coded);
        huffman::encode(bytes, out);
    } else {
        write_int(out, 0x00, 7, bytes.len());
        out.extend_from_slice(bytes);
    }
}

fn write_plain(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(check(name, value).is_ok(), "expected a field that HTTP/2 can carry");
    let index = common_name(name);
    write_int(out, 0x00, 4, index.into());
    if index == 0 {
        write_int(out, 0x00, 7, name.len());
        out.extend_from_slice(name);
    }
    write_int(out, 0x00, 7, value.len());
    out.extend_from_slice(value);
}

/// The static index of names that differ from message to message; 0 for all others.
fn common_name(name: &[u8]) -> u8 {
    match name {
        b":authority" => 1,
        b":method" => 2,
        b":path" => 4,
        b":scheme" => 6,
        b":status" => 8,
        b"age" => 21,
        b"content-length" => 28,
        b"content-range" => 30,
        b"content-type" => 31,
        b"date" => 33,
        b"etag" => 34,
        b"last-modified" => 44,
        b"location" => 46,
        b"range" => 50,
        b"retry-after" => 53,
        _ => 0,
    }
}

/// FNV-1a, over both and a separator.
fn hash(name: &[u8], value: &[u8]) -> u32 {
    let step = |hash: u32, b: &u8| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193);
    let name = name.iter().fold(0x811c_9dc5, step);
    value.iter().fold(step(name, &0), step)
}
