//! Any bytes as what a server sends to a client with four requests open: no panic, bounded memory, and the same events
//! and replies however they are cut. The server's first SETTINGS are put before the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::h2::Config;

#[allow(dead_code)]
mod cuts;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/h2/drive.rs"]
mod drive;

fuzz_target!(|input: &[u8]| {
    let mut choices = cuts::Choices::from(input);
    let config = choices.h2(Config::CLIENT);
    let input = [&[0, 0, 0, 4, 0, 0, 0, 0, 0], input].concat();
    let whole = drive::client([&input[..]], config);
    assert_eq!(drive::client(choices.pieces(&input), config), whole, "in pieces");
    assert_eq!(drive::client(input.chunks(1), config), whole, "byte by byte");
});
