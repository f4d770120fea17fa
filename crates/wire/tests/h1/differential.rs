//! Heads that are valid by construction read as httparse reads them.

use proptest::prelude::*;
use weir_wire::h1::{
    Limits, RequestDecoder, RequestEvent, RequestKind, ResponseDecoder, ResponseEvent, Version,
};

/// Names that no decoder interprets.
fn name() -> impl Strategy<Value = String> {
    "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}".prop_filter("interpreted", |name| {
        let interpreted =
            ["host", "connection", "content-length", "transfer-encoding", "expect", "keep-alive"];
        !interpreted.contains(&name.to_ascii_lowercase().as_str())
    })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let inner = prop_oneof![
        10 => (b'!'..=b'~').boxed(),
        2 => prop_oneof![Just(b' '), Just(b'\t')].boxed(),
        1 => (0x80..=0xffu8).boxed(),
    ];
    prop::collection::vec(inner, 0..60)
}

fn fields() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    prop::collection::vec((name(), value()), 0..20)
}

fn head(start: &str, fields: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = start.as_bytes().to_vec();
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn ours<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Fields {
    lines.map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// httparse keeps trailing white space in some versions; RFC 9112 section 5.1 excludes it from the value.
fn theirs(headers: &[httparse::Header<'_>]) -> Fields {
    let trimmed = |value: &[u8]| value.trim_ascii_end().to_vec();
    headers.iter().map(|header| (header.name.as_bytes().to_vec(), trimmed(header.value))).collect()
}

proptest! {
    #[test]
    fn response_heads(status in 200..1000u16, minor in 0..2u8, reason in "[ -~]{0,30}", fields in fields()) {
        let input = head(&format!("HTTP/1.{minor} {status} {reason}\r\nContent-Length: 0\r\n"), &fields);
        let mut room = [httparse::EMPTY_HEADER; 32];
        let mut expected = httparse::Response::new(&mut room);
        prop_assert_eq!(expected.parse(&input).unwrap().unwrap(), input.len());

        let mut decoder = ResponseDecoder::new(Limits::default());
        decoder.expect(RequestKind::Other);
        let (used, event) = decoder.decode(&input).unwrap();
        let ResponseEvent::Full { head, .. } = event else { panic!("expected Full, found {event:?}") };
        prop_assert_eq!(used, input.len());
        prop_assert_eq!(Some(head.status), expected.code);
        prop_assert_eq!(head.version == Version::Http11, expected.version == Some(1));
        prop_assert_eq!(ours(head.headers()), theirs(expected.headers));
    }

    #[test]
    fn request_heads(method in "[A-Z-]{1,12}", target in "/[!-\"$-~]{0,80}", fields in fields()) {
        prop_assume!(method != "CONNECT");
        let input = head(&format!("{method} {target} HTTP/1.1\r\nHost: a\r\n"), &fields);
        let mut room = [httparse::EMPTY_HEADER; 32];
        let mut expected = httparse::Request::new(&mut room);
        prop_assert_eq!(expected.parse(&input).unwrap().unwrap(), input.len());

        let mut decoder = RequestDecoder::new(Limits::default());
        let (used, event) = decoder.decode(&input).unwrap();
        let RequestEvent::Full { head, .. } = event else { panic!("expected Full, found {event:?}") };
        prop_assert_eq!(used, input.len());
        prop_assert_eq!(head.method, expected.method.unwrap().as_bytes());
        prop_assert_eq!(head.target, expected.path.unwrap().as_bytes());
        prop_assert_eq!(ours(head.headers()), theirs(expected.headers));
    }
}
