//! The ways to cut an input, and the property that they do not matter.

use proptest::prelude::*;
use weir_wire::h2::{Config, PREFACE};

use crate::bytes::*;
use crate::drive::{self, Log};

/// Runs `decode` over `input` whole, in every two pieces and byte by byte; all must agree.
pub fn same_however_cut(input: &[u8], decode: impl Fn(&[&[u8]]) -> Log) -> Log {
    let whole = decode(&[input]);
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        assert_eq!(decode(&[left, right]), whole, "cut at {at}: {}", input.escape_ascii());
    }
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(decode(&bytes), whole, "byte by byte: {}", input.escape_ascii());
    whole
}

/// Frames that are nearly right: kinds, flags, ids and payloads that decisions depend on.
fn nearly_http(own: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        4 => prop::sample::select(own).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..12),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![0x7f, 0xff, 0xff, 0xff]),
        1 => Just(vec![0, 3, 0, 0, 0, 1]),
        1 => Just(vec![0, 4, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]),
        1 => Just(vec![0; 8]),
        1 => Just(vec![2, b'x', 0, 0]),
    ];
    let flags = prop::sample::select(vec![0, 1, 4, 5, 5, 5, 8, 0xd, 0x25, 0x2d]);
    let stream = prop::sample::select(vec![0, 0, 1, 1, 3, 5, 7, 2, 9]);
    let one = (0..11u8, flags, stream, payload)
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, payload));
    prop::collection::vec(one, 0..12).prop_map(|frames| frames.concat())
}

const REQUESTS: &[&[u8]] = &[
    GET,
    POST,
    &[0x82, 0x86, 0x84, 0x41, 1, b'b', 0x40, 1, b'x', 1, b'y'],
    &[0x82, 0x86, 0x84, 0xbe, 0xbf],
    &[0x3f, 0x01, 0x83, 0x86, 0x84, 0x01, 1, b'a', 0x0f, 13, 1, b'2'],
    b"hello",
    b"",
];
const RESPONSES: &[&[u8]] = &[
    OK,
    &[0x48, 3, b'1', b'0', b'3'],
    &[0x88, 0x0f, 13, 1, b'5'],
    &[0x8c, 0x40, 1, b'x', 0x82, 0xff, 0xff],
    &[0x89, 0xbe],
    &[0x88, 0x76, 0x82, 0x1c, 0x7f],
    b"hello",
    b"",
];

fn cut<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    at.sort_unstable();
    at.insert(0, 0);
    at.push(input.len());
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn any_cut_of_any_requests(
        frames in nearly_http(REQUESTS),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let input = [&PREFACE[..], &settings(&[]), &frames].concat();
        let whole = drive::server([&input[..]], Config::SERVER);
        prop_assert_eq!(&drive::server(cut(&input, &cuts), Config::SERVER), &whole);
        prop_assert_eq!(&drive::server(input.chunks(1), Config::SERVER), &whole);
    }

    #[test]
    fn any_cut_of_any_responses(
        frames in nearly_http(RESPONSES),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let input = [&settings(&[])[..], &frames].concat();
        let whole = drive::client([&input[..]], Config::CLIENT);
        prop_assert_eq!(&drive::client(cut(&input, &cuts), Config::CLIENT), &whole);
        prop_assert_eq!(&drive::client(input.chunks(1), Config::CLIENT), &whole);
    }
}
