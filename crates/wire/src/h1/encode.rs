//! Writes heads and chunks. Appends to the caller's buffer and allocates nothing else.
//!
//! Names and values are the caller's: check what a user typed with [`super::is_token`], [`super::is_field_value`] and
//! [`super::is_target`] first. Debug builds assert it.

use super::chars::{is_field_value, is_target, is_token};
use super::types::{BodyKind, Version};

/// `GET /path HTTP/1.1`, the fields, Content-Length or Transfer-Encoding as `body` says, the empty line. Host is one
/// of the fields. `UntilClose` is no request's body and adds nothing.
pub fn write_request_head<'h>(
    out: &mut Vec<u8>,
    method: &[u8],
    target: &[u8],
    fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    body: BodyKind,
) {
    debug_assert!(is_token(method) && is_target(target), "expected a method and a target");
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_fields(out, fields);
    end_head(out, body);
}

/// `HTTP/1.1 200 OK`, the fields, Content-Length or Transfer-Encoding as `body` says, the empty line.
pub fn write_response_head<'h>(
    out: &mut Vec<u8>,
    status: u16,
    fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    body: BodyKind,
) {
    write_status_line(out, Version::Http11, status);
    write_fields(out, fields);
    end_head(out, body);
}

/// `HTTP/1.1 200 OK` and the line end. The reason is the registered one, or empty. `status` is from 100 to 999.
pub fn write_status_line(out: &mut Vec<u8>, version: Version, status: u16) {
    debug_assert!((100..1000).contains(&status), "expected a status of three digits, found {status}");
    if status == 200 && version == Version::Http11 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(match version {
        Version::Http10 => b"HTTP/1.0 ",
        Version::Http11 => b"HTTP/1.1 ",
    });
    write_u64(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// One field line.
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(is_token(name) && is_field_value(value), "expected a field name and a field value");
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// One field line with a decimal value.
pub fn write_field_u64(out: &mut Vec<u8>, name: &[u8], value: u64) {
    debug_assert!(is_token(name), "expected a field name");
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    write_u64(out, value);
    out.extend_from_slice(b"\r\n");
}

/// One chunk; nothing if `data` is empty, because an empty chunk ends the body.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    write_chunk_head(out, data.len() as u64);
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// The size line of a chunk whose data and line end the caller writes. `len` is not zero.
pub fn write_chunk_head(out: &mut Vec<u8>, len: u64) {
    debug_assert!(len > 0, "expected data: an empty chunk ends the body");
    write_hex(out, len);
    out.extend_from_slice(b"\r\n");
}

/// The last chunk, the trailer fields, the empty line.
pub fn write_last_chunk<'h>(out: &mut Vec<u8>, trailers: impl IntoIterator<Item = (&'h [u8], &'h [u8])>) {
    out.extend_from_slice(b"0\r\n");
    write_fields(out, trailers);
    out.extend_from_slice(b"\r\n");
}

/// Decimal digits.
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    out.extend_from_slice(in_base(&mut digits, value, 10));
}

/// Lower-case hexadecimal digits.
pub fn write_hex(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    out.extend_from_slice(in_base(&mut digits, value, 16));
}

#[inline(always)]
fn in_base(digits: &mut [u8; 20], mut value: u64, base: u64) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(value % base) as usize];
        value /= base;
        if value == 0 {
            return &digits[at..];
        }
    }
}

fn write_fields<'h>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = (&'h [u8], &'h [u8])>) {
    for (name, value) in fields {
        write_field(out, name, value);
    }
}

fn end_head(out: &mut Vec<u8>, body: BodyKind) {
    match body {
        BodyKind::None | BodyKind::UntilClose => {}
        BodyKind::Length(n) => write_field_u64(out, b"Content-Length", n),
        BodyKind::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// RFC 9110 section 15 and RFC 6585.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        511 => "Network Authentication Required",
        _ => "",
    }
}
