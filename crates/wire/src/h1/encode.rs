//! Writes heads and chunks. Appends to the caller's buffer and allocates nothing else.
//!
//! Names and values are the caller's: check what a user typed with [`super::is_token`] and [`super::is_field_value`] first.

use super::types::{BodyKind, Version};

/// `GET /path HTTP/1.1`, the fields, the empty line. Host is one of the fields; `body` adds Content-Length or
/// Transfer-Encoding.
pub fn write_request_head<'h>(
    _out: &mut Vec<u8>,
    _method: &[u8],
    _target: &[u8],
    _fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    _body: BodyKind,
) {
    unimplemented!()
}

/// `HTTP/1.1 200 OK`, the fields, Content-Length or Transfer-Encoding as `body` says, the empty line.
pub fn write_response_head<'h>(
    _out: &mut Vec<u8>,
    _status: u16,
    _fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    _body: BodyKind,
) {
    unimplemented!()
}

/// `HTTP/1.1 200 OK` and the line end; the reason is the registered one, or none.
pub fn write_status_line(_out: &mut Vec<u8>, _version: Version, _status: u16) {
    unimplemented!()
}

/// One field line.
pub fn write_field(_out: &mut Vec<u8>, _name: &[u8], _value: &[u8]) {
    unimplemented!()
}

/// One field line with a decimal value.
pub fn write_field_u64(_out: &mut Vec<u8>, _name: &[u8], _value: u64) {
    unimplemented!()
}

/// One chunk; nothing if `data` is empty, because an empty chunk ends the body.
pub fn write_chunk(_out: &mut Vec<u8>, _data: &[u8]) {
    unimplemented!()
}

/// The size line of a chunk whose data and line end the caller writes.
pub fn write_chunk_head(_out: &mut Vec<u8>, _len: u64) {
    unimplemented!()
}

/// The last chunk, the trailer fields, the empty line.
pub fn write_last_chunk<'h>(_out: &mut Vec<u8>, _trailers: impl IntoIterator<Item = (&'h [u8], &'h [u8])>) {
    unimplemented!()
}

/// Decimal digits.
pub fn write_u64(_out: &mut Vec<u8>, _value: u64) {
    unimplemented!()
}

/// Lower-case hexadecimal digits.
pub fn write_hex(_out: &mut Vec<u8>, _value: u64) {
    unimplemented!()
}
