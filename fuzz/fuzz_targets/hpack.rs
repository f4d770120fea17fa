//! Any bytes as header blocks, each after a byte that says how long it is: no panic, the table within its limit, a lazy
//! decoder agrees with one that reads everything, and what was decoded survives encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::h2::hpack::{Decoder, Encoder, Fields};
use weir_wire::h2::{Field, PreparedHead};

type Owned = Vec<(Vec<u8>, Vec<u8>)>;

fn owned(fields: Fields<'_>) -> Option<Owned> {
    fields.map(|(name, value)| Some((name.to_vec(), value.bytes().ok()?.into_owned()))).collect()
}

fuzz_target!(|input: &[u8]| {
    let (mut strict, mut lazy) = (Decoder::new(4096, 16_384, false), Decoder::new(4096, 16_384, true));
    let (mut encoder, mut again) = (Encoder::new(), Decoder::new(4096, 65_536, false));
    let mut rest = input;
    while let Some((&len, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        let (full, partial) = (strict.decode(block), lazy.decode(block));
        if full.is_err() {
            // The lazy one may go on where only a value that nobody reads is broken; then the two part.
            return;
        }
        assert_eq!(partial, Ok(()));
        let fields = owned(strict.fields(block));
        assert_eq!(owned(lazy.fields(block)), fields);
        assert!(strict.table_bytes() <= 4096 && strict.table_bytes() == lazy.table_bytes());
        assert!(strict.held_bytes() < 1 << 20);
        round_trip(&fields.expect("a strict decoder leaves nothing coded"), &mut encoder, &mut again);
    }
});

fn round_trip(fields: &Owned, encoder: &mut Encoder, decoder: &mut Decoder) {
    let borrowed: Vec<Field<'_>> = fields.iter().map(|(name, value)| Field::new(name, value)).collect();
    let Ok(head) = PreparedHead::trailers(&borrowed) else { return };
    for _ in 0..2 {
        let mut block = Vec::new();
        encoder.encode(&head, &[], &mut block);
        decoder.decode(&block).expect("valid");
        assert_eq!(owned(decoder.fields(&block)).as_ref(), Some(fields));
    }
}
