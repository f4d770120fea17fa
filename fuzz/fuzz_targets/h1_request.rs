//! Any bytes as requests: no panic, no more kept than the limits allow, and the same events however they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
mod cuts;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/h1/drive.rs"]
mod drive;

fuzz_target!(|input: &[u8]| {
    let mut choices = cuts::Choices::from(input);
    let limits = choices.limits();
    let whole = drive::requests([input], limits);
    assert_eq!(drive::requests(choices.pieces(input), limits), whole, "in pieces");
    assert_eq!(drive::requests(input.chunks(1), limits), whole, "byte by byte");
});
