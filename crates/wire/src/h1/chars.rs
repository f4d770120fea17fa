//! Which bytes may stand where (RFC 9110 section 5.6, RFC 9112 sections 3 and 5), and the one scan that is hot.

/// Method or field name.
const TOKEN: u8 = 1;
/// Request target: graphic ASCII without `#`, which starts a fragment and is never sent.
const TARGET: u8 = 2;
/// Host and port: RFC 3986 section 3.2.2 with percent-encoding, and the brackets of IPv6.
const HOST: u8 = 4;
/// Field value or reason phrase: HTAB, SP, graphic ASCII, obs-text.
const VALUE: u8 = 8;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let word = b.is_ascii_alphanumeric();
        if word || is_one_of(b, b"!#$%&'*+-.^_`|~") {
            table[i] |= TOKEN;
        }
        if b.is_ascii_graphic() && b != b'#' {
            table[i] |= TARGET;
        }
        if word || is_one_of(b, b"-._~!$&'()*+,;=%:[]") {
            table[i] |= HOST;
        }
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            table[i] |= VALUE;
        }
        i += 1;
    }
    table
}

const fn is_one_of(b: u8, set: &[u8]) -> bool {
    let mut i = 0;
    while i < set.len() {
        if set[i] == b {
            return true;
        }
        i += 1;
    }
    false
}

fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|&b| CLASS[b as usize] & class != 0)
}

/// May `bytes` be a method or a field name?
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TOKEN)
}

/// May `bytes` be a field value? No line end and no control character but HTAB.
pub fn is_field_value(bytes: &[u8]) -> bool {
    all(bytes, VALUE)
}

/// May `bytes` be a request target? Graphic ASCII without `#`.
pub fn is_target(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TARGET)
}

/// May `bytes` be a Host field's value? It may be empty.
pub(crate) fn is_host(bytes: &[u8]) -> bool {
    all(bytes, HOST)
}

#[inline(always)]
pub(crate) fn is_value_byte(b: u8) -> bool {
    CLASS[b as usize] & VALUE != 0
}

#[inline(always)]
pub(crate) fn is_token_byte(b: u8) -> bool {
    CLASS[b as usize] & TOKEN != 0
}

/// Where the first byte at or after `from` stands that is no token byte; `bytes.len()` if there is none.
#[inline(always)]
pub(crate) fn token_end(bytes: &[u8], from: usize) -> usize {
    class_end(bytes, from, TOKEN)
}

#[inline(always)]
pub(crate) fn target_end(bytes: &[u8], from: usize) -> usize {
    class_end(bytes, from, TARGET)
}

#[inline(always)]
fn class_end(bytes: &[u8], from: usize, class: u8) -> usize {
    let mut at = from;
    while at < bytes.len() && CLASS[bytes[at] as usize] & class != 0 {
        at += 1;
    }
    at
}

/// Where the first byte at or after `from` stands that may not be in a field value; `bytes.len()` if there is none.
///
/// Eight bytes at a time: with `x` the word, a byte below 0x20 borrows in `x - 0x20..`, and a byte equal to 0x7f
/// becomes zero in `x ^ 0x7f..` and borrows in a subtraction of one. A borrow can mark bytes above a marked one
/// wrongly, never below it, and only the lowest mark is used.
#[inline(always)]
pub(crate) fn value_end(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let x = u64::from_le_bytes(*chunk);
        let control = x.wrapping_sub(0x20 * ONES) & !x;
        let delete = x ^ (0x7f * ONES);
        let delete = delete.wrapping_sub(ONES) & !delete;
        let marks = (control | delete) & HIGH;
        if marks == 0 {
            at += 8;
            continue;
        }
        at += marks.trailing_zeros() as usize / 8;
        if bytes[at] != b'\t' {
            return at;
        }
        at += 1;
    }
    class_end(bytes, at, VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_scan_agrees_with_the_table_for_every_byte_at_every_place() {
        for b in 0..=255u8 {
            for at in 0..20 {
                for filler in [b'a', b'\t', 0x80, 0xff, 0x20] {
                    let mut bytes = [filler; 24];
                    bytes[at] = b;
                    bytes[22] = b'\r';
                    let expected = (0..24).find(|&i| !is_value_byte(bytes[i])).unwrap();
                    assert_eq!(value_end(&bytes, 0), expected, "byte {b:#x} at {at} among {filler:#x}");
                }
            }
        }
    }

    #[test]
    fn two_stops_in_one_word_give_the_first() {
        for first in [0u8, b'\r', 0x1f, 0x7f] {
            for second in 0..=255u8 {
                let bytes = [b'a', b'b', first, second, b'c', 0x7f, b'\n', b'd', b'e'];
                assert_eq!(value_end(&bytes, 0), 2, "{first:#x} {second:#x}");
            }
        }
    }

    #[test]
    fn what_may_be_sent() {
        fn check(name: &str, got: bool, expected: bool) {
            assert_eq!(got, expected, "{name}");
        }
        check("token", is_token(b"X-Request_Id.1~"), true);
        check("empty token", is_token(b""), false);
        check("token with space", is_token(b"a b"), false);
        check("token with colon", is_token(b"a:"), false);
        check("empty value", is_field_value(b""), true);
        check("value with tab and obs-text", is_field_value(b"a\tb \xff"), true);
        check("value with CR", is_field_value(b"a\r"), false);
        check("value with NUL", is_field_value(b"a\0"), false);
        check("value with DEL", is_field_value(b"\x7f"), false);
        check("target", is_target(b"/a?b={c}|d"), true);
        check("target with fragment", is_target(b"/a#b"), false);
        check("target with space", is_target(b"/a b"), false);
        check("target with UTF-8", is_target("/ä".as_bytes()), false);
        check("IPv6 host", is_host(b"[::1]:80"), true);
        check("host with userinfo", is_host(b"a@b"), false);
        check("host with path", is_host(b"a/b"), false);
    }
}
