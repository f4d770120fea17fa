//! The Huffman code of RFC 7541 appendix B.
//!
//! The code is canonical: within one length, codes ascend with the symbols, and a longer code follows a shorter one. So
//! the lengths alone give the code, and all tables below are computed from them by the compiler.
//!
//! The decoder looks eleven bits up at once, which are two symbols more often than not; longer codes are rare (no
//! printable character but a few signs) and found by their length. The table takes 8 KiB; a wider one would save little and
//! push other things out of the first-level cache.

use super::decode::InvalidHuffman;

const EOS: u16 = 256;
const LOOKUP_BITS: u32 = 11;
const BITS_MAX: usize = 30;

#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Everything that follows from `LENGTHS`.
struct Code {
    /// By symbol: the code, right-aligned.
    codes: [u32; 257],
    /// By the next eleven bits.
    lookup: [Found; 1 << LOOKUP_BITS],
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// By length: the first code of that length and the end of its codes, left-aligned in 32 bits.
    first: [u32; BITS_MAX + 1],
    end: [u64; BITS_MAX + 1],
    /// By length: where its symbols begin in `symbols`.
    offset: [u16; BITS_MAX + 1],
}

/// One or two symbols that some bits begin with.
#[derive(Clone, Copy)]
struct Found {
    symbols: [u8; 2],
    /// Bits of the first; 0 if its code is longer than what was looked up.
    first_bits: u8,
    /// Bits of both, in the lower half, and how many they are, in the upper.
    taken: u8,
}

const fn code() -> Code {
    let mut it = Code {
        codes: [0; 257],
        lookup: [Found { symbols: [0; 2], first_bits: 0, taken: 0 }; 1 << LOOKUP_BITS],
        symbols: [0; 257],
        first: [0; BITS_MAX + 1],
        end: [0; BITS_MAX + 1],
        offset: [0; BITS_MAX + 1],
    };
    let (mut next, mut rank, mut length) = (0u32, 0, 1);
    while length <= BITS_MAX {
        next <<= 1;
        it.first[length] = next << (32 - length);
        it.offset[length] = rank;
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                it.codes[symbol] = next;
                it.symbols[rank as usize] = symbol as u16;
                fill(&mut it.lookup, symbol, next, length as u32);
                next += 1;
                rank += 1;
            }
            symbol += 1;
        }
        it.end[length] = (next as u64) << (32 - length);
        length += 1;
    }
    pair(&mut it.lookup);
    it
}

/// Adds second symbols where the remaining bits hold one.
const fn pair(lookup: &mut [Found; 1 << LOOKUP_BITS]) {
    let mut i = 0;
    while i < lookup.len() {
        let first = lookup[i];
        let second = lookup[(i << first.first_bits) & (lookup.len() - 1)];
        let both = first.first_bits + second.first_bits;
        if first.first_bits > 0 && second.first_bits > 0 && both as u32 <= LOOKUP_BITS {
            lookup[i].symbols[1] = second.symbols[0];
            lookup[i].taken = both | 2 << 4;
        }
        i += 1;
    }
}

const fn fill(lookup: &mut [Found; 1 << LOOKUP_BITS], symbol: usize, code: u32, length: u32) {
    if length > LOOKUP_BITS {
        return;
    }
    let spare = LOOKUP_BITS - length;
    let mut i = 0;
    while i < 1 << spare {
        lookup[((code << spare) + i) as usize] =
            Found { symbols: [symbol as u8, 0], first_bits: length as u8, taken: length as u8 | 1 << 4 };
        i += 1;
    }
}

static CODE: Code = code();

/// Appends what `input` stands for. The padding must be the beginning of EOS and shorter than a byte (section 5.2). On
/// an error nothing is appended.
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidHuffman> {
    let start = out.len();
    // No code is shorter than five bits. Places are cheaper to write to than the end of a vector.
    out.resize(start + input.len() * 8 / 5 + 2, 0);
    let decoded = decode_into(input, &mut out[start..]);
    out.truncate(start + decoded.unwrap_or(0));
    decoded.map(|_| ())
}

/// Says how many bytes of `out` were written; it is long enough.
fn decode_into(input: &[u8], out: &mut [u8]) -> Result<usize, InvalidHuffman> {
    // The next bit is the highest of `window`; `bits` of them are input, the rest zero.
    let (mut window, mut bits, mut at, mut written) = (0u64, 0u32, 0, 0);
    loop {
        (window, bits, at) = refill(input, window, bits, at);
        // No symbol is longer than 30 bits, so one fits for certain while input is left.
        while bits >= 32 {
            let found = CODE.lookup[(window >> (64 - LOOKUP_BITS)) as usize];
            if found.first_bits == 0 {
                let (symbol, length) = long(window)?;
                out[written] = symbol;
                (window, bits, written) = (window << length, bits - length, written + 1);
                continue;
            }
            // The second may be none and is then overwritten.
            out[written..written + 2].copy_from_slice(&found.symbols);
            let length = u32::from(found.taken & 15);
            (window, bits, written) =
                (window << length, bits - length, written + usize::from(found.taken >> 4));
        }
        if at == input.len() {
            return decode_tail(window, bits, out, written);
        }
    }
}

/// The last bits, symbol by symbol, and the padding.
fn decode_tail(
    mut window: u64,
    mut bits: u32,
    out: &mut [u8],
    mut written: usize,
) -> Result<usize, InvalidHuffman> {
    while bits > 0 {
        let found = CODE.lookup[(window >> (64 - LOOKUP_BITS)) as usize];
        let (symbol, length) = match found.first_bits {
            // A long code that the zeros after the end complete is none.
            0 if bits <= LOOKUP_BITS => return padding(window, bits).map(|()| written),
            0 => long(window)?,
            length => (found.symbols[0], u32::from(length)),
        };
        if length > bits {
            return padding(window, bits).map(|()| written);
        }
        out[written] = symbol;
        (window, bits, written) = (window << length, bits - length, written + 1);
    }
    Ok(written)
}

#[inline(always)]
fn refill(input: &[u8], mut window: u64, mut bits: u32, mut at: usize) -> (u64, u32, usize) {
    if let Some(word) = input.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // Whole bytes only: the lower bits of the word are read again by the next refill.
        let bytes = (63 - bits) / 8;
        let taken = u64::from_be_bytes(*word) & (!0 << (64 - 8 * bytes));
        return (window | taken >> bits, bits + 8 * bytes, at + bytes as usize);
    }
    while bits <= 56 && at < input.len() {
        window |= u64::from(input[at]) << (56 - bits);
        bits += 8;
        at += 1;
    }
    (window, bits, at)
}

#[cold]
fn long(window: u64) -> Result<(u8, u32), InvalidHuffman> {
    let head = (window >> 32) as u32;
    let mut length = LOOKUP_BITS as usize + 1;
    while length < BITS_MAX && u64::from(head) >= CODE.end[length] {
        length += 1;
    }
    let rank = (head - CODE.first[length]) >> (32 - length);
    let place = usize::from(CODE.offset[length]) + rank as usize;
    match CODE.symbols[place.min(256)] {
        EOS => Err(InvalidHuffman),
        symbol => Ok((symbol as u8, length as u32)),
    }
}

fn padding(window: u64, bits: u32) -> Result<(), InvalidHuffman> {
    match bits {
        1..=7 if window >> (64 - bits) == (1 << bits) - 1 => Ok(()),
        _ => Err(InvalidHuffman),
    }
}

/// Bytes that `encode` would append.
pub fn encoded_len(input: &[u8]) -> usize {
    let bits: usize = input.iter().map(|&b| LENGTHS[b as usize] as usize).sum();
    bits.div_ceil(8)
}

/// Appends the code of `input`, padded with ones.
pub fn encode(input: &[u8], out: &mut Vec<u8>) {
    // The bits not yet written are the lowest `bits` of `pending`: fewer than 32 before each symbol.
    let (mut pending, mut bits) = (0u64, 0u32);
    for &b in input {
        let length = u32::from(LENGTHS[b as usize]);
        pending = pending << length | u64::from(CODE.codes[b as usize]);
        bits += length;
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((pending >> bits) as u32).to_be_bytes());
        }
    }
    while bits >= 8 {
        bits -= 8;
        out.push((pending >> bits) as u8);
    }
    if bits > 0 {
        let spare = 8 - bits;
        out.push((pending << spare) as u8 | ((1u16 << spare) - 1) as u8);
    }
}
