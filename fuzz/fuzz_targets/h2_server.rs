//! Any bytes as what a client sends: no panic, bounded memory, and the same events and replies however they are cut.
//! Inputs without the preface get it, so that the engine need not find it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::h2::{Config, PREFACE};

#[allow(dead_code)]
mod cuts;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/h2/drive.rs"]
mod drive;

fuzz_target!(|input: &[u8]| {
    let mut choices = cuts::Choices::from(input);
    let config = choices.h2(Config::SERVER);
    let input = match input.starts_with(b"PRI") {
        true => input.to_vec(),
        false => [&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0], input].concat(),
    };
    let whole = drive::server([&input[..]], config);
    assert_eq!(drive::server(choices.pieces(&input), config), whole, "in pieces");
    assert_eq!(drive::server(input.chunks(1), config), whole, "byte by byte");
});
