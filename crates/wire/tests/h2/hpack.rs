//! HPACK by the examples of RFC 7541 appendix C, by a second opinion, and by round trips.

use proptest::prelude::*;
use weir_wire::h2::hpack::{
    BlockError, Decoder, Encoder, InvalidHuffman, Value, huffman_decode, huffman_encode, huffman_len,
};
use weir_wire::h2::{Field, Indexing, PreparedHead, RequestLine};

use crate::drive;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Blocks in turn: each in hexadecimal, its fields without pseudo-header fields, and the size of the table after it.
fn check(table_bytes: Option<u32>, blocks: &[(&str, &str, usize)]) {
    for lazy in [false, true] {
        let mut decoder = Decoder::new(4096, 65_536, lazy);
        for (number, (block, expected, size)) in blocks.iter().enumerate() {
            let mut bytes = hex(block);
            if let (0, Some(limit)) = (number, table_bytes) {
                // The examples agree on a smaller table beforehand.
                bytes.splice(0..0, [0x3f, (limit - 31) as u8 & 0x7f | 0x80, ((limit - 31) >> 7) as u8]);
            }
            decoder.decode(&bytes).unwrap();
            assert_eq!(drive::fields(decoder.fields(&bytes)).trim(), *expected, "{block}");
            assert_eq!(decoder.table_bytes(), *size, "{block}");
        }
    }
}

#[test]
fn appendix_c_2_single_fields() {
    check(
        None,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key=custom-header",
            55,
        )],
    );
    check(None, &[("040c 2f73 616d 706c 652f 7061 7468", "", 0)]);
    check(None, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password=secret", 0)]);
    check(None, &[("82", "", 0)]);
}

#[test]
fn appendix_c_3_and_4_requests() {
    let fields = ["", "cache-control=no-cache", "custom-key=custom-value"];
    check(
        None,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", fields[0], 57),
            ("8286 84be 5808 6e6f 2d63 6163 6865", fields[1], 110),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", fields[2], 164),
        ],
    );
    check(
        None,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", fields[0], 57),
            ("8286 84be 5886 a8eb 1064 9cbf", fields[1], 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", fields[2], 164),
        ],
    );
}

#[test]
fn appendix_c_5_and_6_responses_with_eviction() {
    let fields = [
        "cache-control=private date=Mon, 21 Oct 2013 20:13:21 GMT location=https://www.example.com",
        "cache-control=private date=Mon, 21 Oct 2013 20:13:21 GMT location=https://www.example.com",
        "cache-control=private date=Mon, 21 Oct 2013 20:13:22 GMT location=https://www.example.com content-encoding=gzip \
set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];
    check(
        Some(256),
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d \
          546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                fields[0],
                222,
            ),
            ("4803 3330 37c1 c0bf", fields[1], 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f \
          6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b \
          2076 6572 7369 6f6e 3d31",
                fields[2],
                215,
            ),
        ],
    );
    check(
        Some(256),
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
          8f0b 97c8 e9ae 82ae 43d3",
                fields[0],
                222,
            ),
            ("4883 640e ffc1 c0bf", fields[1], 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 \
          dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                fields[2],
                215,
            ),
        ],
    );
}

#[test]
fn a_field_may_refer_to_what_its_own_block_drives_out() {
    // A table of 40 bytes holds one short entry; the second insertion names the first and drives it out.
    check(None, &[("3f09 4001 6101 62 7e01 63", "a=b a=c", 34), ("be", "a=c", 34)]);
    check(None, &[("3f09 4001 6101 62 be 7e01 63 be", "a=b a=b a=c a=c", 34)]);
}

#[test]
fn what_does_not_fit_empties_the_table() {
    check(
        None,
        &[("3f09 4001 6101 62", "a=b", 34), ("4001 610a 3031 3233 3435 3637 3839", "a=0123456789", 0)],
    );
}

#[test]
fn a_smaller_table_must_be_acknowledged_by_a_size_update() {
    let mut decoder = Decoder::new(100, 65_536, false);
    // Before the acknowledgement, the initial size holds.
    assert_eq!(decoder.decode(&[0x82]), Ok(()));
    decoder.acknowledged(100);
    assert_eq!(decoder.decode(&[0x82]), Err(BlockError::Invalid("table size update missing")));
    let mut decoder = Decoder::new(100, 65_536, false);
    decoder.acknowledged(100);
    assert_eq!(
        decoder.decode(&[0x3f, 70, 0x82]),
        Err(BlockError::Invalid("table size update above the limit"))
    );
    assert_eq!(decoder.decode(&[0x3f, 69, 0x82]), Ok(()));
    assert_eq!(decoder.decode(&[0x82]), Ok(()));
}

#[test]
fn a_lazy_decoder_leaves_values_until_they_are_read() {
    let value = b"Thu, 20 Nov 2025 14:00:12 GMT";
    let mut coded = Vec::new();
    huffman_encode(value, &mut coded);
    // As nginx does: a table of size 0, and literals that would enter it.
    let block = [&[0x20, 0x88, 0x40 | 33, 0x80 | coded.len() as u8][..], &coded].concat();
    let mut decoder = Decoder::new(4096, 65_536, true);
    decoder.decode(&block).unwrap();
    let found = decoder.fields(&block).find("date").unwrap();
    assert_eq!((found, found.plain()), (Value::Huffman(&coded), None));
    assert_eq!(found.bytes().unwrap(), &value[..]);

    let broken = [0x88, 0x0f, 33 - 15, 0x81, 0x00];
    let mut strict = Decoder::new(4096, 65_536, false);
    assert_eq!(strict.decode(&broken), Err(BlockError::Invalid("invalid Huffman code")));
    decoder.decode(&broken).unwrap();
    let found = decoder.fields(&broken).find("date").unwrap();
    assert_eq!(found.bytes(), Err(InvalidHuffman));
}

/// Feeds what an encoder writes to ours and to somebody else's decoder.
fn both(
    encoded: &[u8],
    ours: &mut Decoder,
    theirs: &mut fluke_hpack::Decoder<'_>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    ours.decode(encoded).unwrap();
    let fields: Vec<_> = ours
        .fields(encoded)
        .map(|(name, value)| (name.to_vec(), value.bytes().unwrap().into_owned()))
        .collect();
    let expected: Vec<_> =
        theirs.decode(encoded).unwrap().into_iter().filter(|field| field.0[0] != b':').collect();
    assert_eq!(fields, expected);
    fields
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,15}".prop_filter("interpreted", |name| {
            !["connection", "te", "upgrade", "keep-alive", "content-length"].contains(&name.as_str())
        }),
        prop::sample::select(vec!["server", "date", "cookie", "accept-encoding"]).prop_map(String::from),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[!-~]{0,40}", "[!-~][ -~]{0,200}[!-~]", "[ä-ü]{1,5}", Just(String::new())]
}

fn indexing() -> impl Strategy<Value = Indexing> {
    prop::sample::select(vec![Indexing::Insert, Indexing::Insert, Indexing::Pass, Indexing::Never])
}

type OwnedField = (String, String, Indexing);

proptest! {
    #[test]
    fn huffman_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut coded, mut back) = (vec![1], vec![2, 3]);
        huffman_encode(&bytes, &mut coded);
        prop_assert_eq!(coded.len() - 1, huffman_len(&bytes));
        huffman_decode(&coded[1..], &mut back).unwrap();
        prop_assert_eq!(&back[2..], &bytes[..]);
    }

    #[test]
    fn any_huffman_code_is_decoded_as_others_do(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut ours = Vec::new();
        let theirs = fluke_hpack::huffman::HuffmanDecoder::new().decode(&bytes);
        match huffman_decode(&bytes, &mut ours) {
            Ok(()) => {
                prop_assert_eq!(&theirs.unwrap(), &ours);
                let mut again = Vec::new();
                huffman_encode(&ours, &mut again);
                prop_assert_eq!(again, bytes);
            }
            Err(_) => prop_assert!(ours.is_empty()),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(
        heads in prop::collection::vec(prop::collection::vec((name(), value(), indexing()), 0..8), 1..12),
        order in prop::collection::vec((0..12usize, prop::option::weighted(0.1, 0..5000u32)), 1..60),
    ) {
        let heads: Vec<(Vec<OwnedField>, PreparedHead)> = heads
            .into_iter()
            .map(|fields| {
                let borrowed: Vec<Field<'_>> = fields
                    .iter()
                    .map(|(name, value, indexing)| Field {
                        name: name.as_bytes(),
                        value: value.as_bytes(),
                        indexing: *indexing,
                    })
                    .collect();
                let head = PreparedHead::response(200, &borrowed).unwrap();
                (fields, head)
            })
            .collect();
        let mut encoder = Encoder::new();
        let mut ours = Decoder::new(4096, 1 << 20, true);
        let mut theirs = fluke_hpack::Decoder::new();
        for (number, (pick, limit)) in order.into_iter().enumerate() {
            if let Some(limit) = limit {
                encoder.limit(limit);
            }
            let (fields, head) = &heads[pick % heads.len()];
            let length = number.to_string();
            let mut block = Vec::new();
            encoder.encode(head, &[(b"content-length", length.as_bytes()), (b"x-extra", b"y")], &mut block);
            let mut expected: Vec<(Vec<u8>, Vec<u8>)> =
                fields.iter().map(|(n, v, _)| (n.clone().into_bytes(), v.clone().into_bytes())).collect();
            expected.push((b"content-length".to_vec(), length.into_bytes()));
            expected.push((b"x-extra".to_vec(), b"y".to_vec()));
            prop_assert_eq!(both(&block, &mut ours, &mut theirs), expected);
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6)) {
        for lazy in [false, true] {
            let mut decoder = Decoder::new(4096, 4096, lazy);
            for block in &blocks {
                if decoder.decode(block).is_err() {
                    break;
                }
                drive::fields(decoder.fields(block));
                prop_assert!(decoder.table_bytes() <= 4096);
            }
        }
    }
}

#[test]
fn the_second_time_a_request_is_a_handful_of_bytes() {
    let line = RequestLine { method: b"GET", scheme: b"https", authority: b"www.example.com", path: b"/a/b" };
    let head = PreparedHead::request(
        line,
        &[
            Field::new(b"user-agent", b"weir"),
            Field { name: b"authorization", value: b"secret", indexing: Indexing::Never },
        ],
    )
    .unwrap();
    let mut encoder = Encoder::new();
    let lengths: Vec<usize> = (0..3)
        .map(|_| {
            let mut block = Vec::new();
            encoder.encode(&head, &[], &mut block);
            block.len()
        })
        .collect();
    assert_eq!(lengths, [33, 12, 12]);
    assert_eq!(encoder.entries(), 3, "the secret is not among them");
}

#[test]
fn a_table_that_the_peer_shrank_and_grew_between_two_blocks_is_announced_with_both_sizes() {
    let head = PreparedHead::trailers(&[Field::new(b"x", b"y")]).unwrap();
    let mut encoder = Encoder::new();
    let mut block = Vec::new();
    encoder.encode(&head, &[], &mut block);
    for (limits, expected) in [
        (&[4096][..], "be"),
        (&[100_000], "be"),
        (&[0, 4096], "20 3fe11f 40 0178 0179"),
        (&[], "be"),
        (&[100, 50, 200], "3f13 3fa901 be"),
        (&[0], "20 00 0178 0179"),
    ] {
        limits.iter().for_each(|&limit| encoder.limit(limit));
        block.clear();
        encoder.encode(&head, &[], &mut block);
        assert_eq!(block, hex(expected), "after {limits:?}");
    }
}

#[test]
fn fields_that_cannot_be_carried_are_refused_when_they_are_prepared() {
    for (name, value, fine) in [
        ("x", "y", true),
        ("X", "y", false),
        ("", "y", false),
        (":path", "/", false),
        ("connection", "close", false),
        ("te", "gzip", false),
        ("te", "trailers", true),
        ("x", "a\nb", false),
        ("x", " a", false),
    ] {
        let head = PreparedHead::trailers(&[Field::new(name.as_bytes(), value.as_bytes())]);
        assert_eq!(head.is_ok(), fine, "{name}: {value}");
    }
    let line = RequestLine { method: b"GET", scheme: b"http", authority: b"a", path: b"/\r\n" };
    assert_eq!(
        PreparedHead::request(line, &[]).unwrap_err().to_string(),
        "HTTP/2 cannot carry the field `:path`"
    );
}
