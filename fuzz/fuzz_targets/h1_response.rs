//! Any bytes as responses: no panic, no more kept than the limits allow, and the same events however they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::h1::RequestKind::{Connect, Head, Other};

#[allow(dead_code)]
mod cuts;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/h1/drive.rs"]
mod drive;

fuzz_target!(|input: &[u8]| {
    let mut choices = cuts::Choices::from(input);
    let limits = choices.limits();
    for requests in [&[Other; 4][..], &[Head, Other, Head, Other], &[Connect, Other]] {
        let whole = drive::responses(requests, [input], limits);
        assert_eq!(drive::responses(requests, choices.pieces(input), limits), whole, "in pieces");
        assert_eq!(drive::responses(requests, input.chunks(1), limits), whole, "byte by byte");
    }
});
