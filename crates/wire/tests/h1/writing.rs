//! What is written is what was meant, and reads back as such.

use proptest::prelude::*;
use weir_wire::h1::{
    BodyKind, Limits, RequestKind, Version, write_chunk, write_chunk_head, write_field, write_field_u64,
    write_hex, write_last_chunk, write_request_head, write_response_head, write_status_line, write_u64,
};

use crate::drive;

fn check(write: impl Fn(&mut Vec<u8>), expected: &str) {
    let mut out = b"before ".to_vec();
    write(&mut out);
    assert_eq!(out.escape_ascii().to_string(), format!("before {}", expected.as_bytes().escape_ascii()));
}

const FIELDS: [(&[u8], &[u8]); 2] = [(b"Host", b"a"), (b"X", b"")];

#[test]
fn heads_are_written_in_full() {
    check(
        |out| write_request_head(out, b"GET", b"/a", FIELDS, BodyKind::None),
        "GET /a HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n",
    );
    check(
        |out| write_request_head(out, b"PUT", b"*", [], BodyKind::Length(12)),
        "PUT * HTTP/1.1\r\nContent-Length: 12\r\n\r\n",
    );
    check(
        |out| write_request_head(out, b"PUT", b"/", [], BodyKind::Chunked),
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    check(
        |out| write_response_head(out, 200, FIELDS, BodyKind::Length(0)),
        "HTTP/1.1 200 OK\r\nHost: a\r\nX: \r\nContent-Length: 0\r\n\r\n",
    );
    check(|out| write_response_head(out, 599, [], BodyKind::UntilClose), "HTTP/1.1 599 \r\n\r\n");
    check(|out| write_status_line(out, Version::Http10, 200), "HTTP/1.0 200 OK\r\n");
    check(|out| write_status_line(out, Version::Http11, 503), "HTTP/1.1 503 Service Unavailable\r\n");
    check(|out| write_field(out, b"A", b"b c"), "A: b c\r\n");
    check(|out| write_field_u64(out, b"A", 7), "A: 7\r\n");
}

#[test]
fn chunks_are_written_with_their_size() {
    check(|out| write_chunk(out, b"hello world, hello"), "12\r\nhello world, hello\r\n");
    check(|out| write_chunk(out, b""), "");
    check(|out| write_chunk_head(out, u64::MAX), "ffffffffffffffff\r\n");
    check(|out| write_last_chunk(out, []), "0\r\n\r\n");
    check(|out| write_last_chunk(out, FIELDS), "0\r\nHost: a\r\nX: \r\n\r\n");
}

proptest! {
    #[test]
    fn numbers_are_written_as_the_standard_library_does(n in any::<u64>(), shift in 0..64u32) {
        let n = n >> shift;
        let mut out = Vec::new();
        write_u64(&mut out, n);
        out.push(b' ');
        write_hex(&mut out, n);
        prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{n} {n:x}"));
    }

    #[test]
    fn what_was_written_reads_back(
        status in 200..600u16,
        value in "[ -~]{0,20}",
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..5),
    ) {
        let value = value.trim();
        let mut out = Vec::new();
        write_response_head(&mut out, status, [(&b"X-Y"[..], value.as_bytes())], BodyKind::Chunked);
        let bodiless = status == 204 || status == 304;
        if !bodiless {
            chunks.iter().for_each(|data| write_chunk(&mut out, data));
            write_last_chunk(&mut out, [(&b"T"[..], value.as_bytes())]);
        }
        let shown = value.as_bytes().escape_ascii().to_string();
        let body = chunks.concat();
        let kind = if bodiless { "None" } else { "Chunked" };
        let mut expected = format!("{status} Http11 {kind} keep-alive X-Y={shown} Transfer-Encoding=chunked; ");
        if !bodiless && !body.is_empty() {
            expected += &format!("body {}; ", body.escape_ascii());
        }
        if !bodiless {
            expected += &format!("trailers T={shown}; ");
        }
        expected += "done keep-alive; idle";
        prop_assert_eq!(drive::responses(&[RequestKind::Other], out.chunks(7), Limits::default()), expected);
    }
}
