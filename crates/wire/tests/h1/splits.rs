//! The ways to cut an input, and the property that they do not matter.

use proptest::prelude::*;
use weir_wire::h1::{Limits, RequestKind};

use crate::drive;

/// Runs `decode` over `input` whole, in every two pieces and byte by byte; all must agree.
pub fn same_however_cut(input: &[u8], decode: impl Fn(&[&[u8]]) -> String) -> String {
    let whole = decode(&[input]);
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        assert_eq!(decode(&[left, right]), whole, "cut at {at}: {}", input.escape_ascii());
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode(&bytes), whole, "byte by byte: {}", input.escape_ascii());
    whole
}

/// `input` cut at the given places, in any order and number.
fn pieces<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    at.sort_unstable();
    at.insert(0, 0);
    at.push(input.len());
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

/// Bytes that are nearly HTTP: parts that decoders decide by, and now and then any byte.
fn nearly_http(parts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        30 => prop::sample::select(parts).prop_map(|part| part.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|b| vec![b]),
    ];
    prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

const RESPONSE_PARTS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 \r\n",
    "HTTP/1.1 101 x\r\n",
    "HTTP/2.0 200 OK\r\n",
    "Content-Length: 5\r\n",
    "content-length:7\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Connection: close\r\n",
    "Keep-Alive: timeout=5\r\n",
    "X: y\r\n",
    "Bad : y\r\n",
    " fold\r\n",
    "\r\n",
    "\r\n",
    "\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\n",
    "3;a=b\r\nabc\r\n",
    "hello",
    "\r",
    "\n",
    "T: v\r\n",
];

const REQUEST_PARTS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\nHost: h\r\n",
    "GET / HTTP/1.0\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "GET http://a/ HTTP/1.1\r\n",
    "Host: a\r\n",
    "Host: b\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "X: y\r\n",
    "Bad : y\r\n",
    " fold\r\n",
    "\r\n",
    "\r\n",
    "\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\n",
    "3;a=b\r\nabc\r\n",
    "hello",
    "\r",
    "\n",
];

fn small_limits() -> impl Strategy<Value = Limits> {
    let sizes = (20..200usize, 0..6usize, 10..60usize, 1..12usize, 2..40usize);
    let small = sizes.prop_map(|(head_bytes, headers, line_bytes, chunk_line_bytes, trailer_bytes)| Limits {
        head_bytes,
        headers,
        line_bytes,
        chunk_line_bytes,
        trailer_bytes,
    });
    prop_oneof![Just(Limits::default()), small]
}

fn kind() -> impl Strategy<Value = RequestKind> {
    prop_oneof![
        4 => Just(RequestKind::Other),
        1 => Just(RequestKind::Head),
        1 => Just(RequestKind::Connect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn cuts_do_not_matter_in_nearly_valid_responses(
        input in nearly_http(RESPONSE_PARTS),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        kinds in prop::collection::vec(kind(), 0..4),
        limits in small_limits(),
    ) {
        let whole = drive::responses(&kinds, [input.as_slice()], limits);
        prop_assert_eq!(&drive::responses(&kinds, pieces(&input, &cuts), limits), &whole);
        prop_assert_eq!(&drive::responses(&kinds, input.chunks(1), limits), &whole);
    }

    #[test]
    fn cuts_do_not_matter_in_nearly_valid_requests(
        input in nearly_http(REQUEST_PARTS),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        limits in small_limits(),
    ) {
        let whole = drive::requests([input.as_slice()], limits);
        prop_assert_eq!(&drive::requests(pieces(&input, &cuts), limits), &whole);
        prop_assert_eq!(&drive::requests(input.chunks(1), limits), &whole);
    }
}
