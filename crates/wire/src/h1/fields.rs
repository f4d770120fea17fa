//! What the field lines of one head say about framing and about the connection. Other fields pass unread.

use super::chars::is_host;
use super::types::{Version, trim};

/// `Keep-Alive: timeout=5, max=100`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAliveHint {
    /// Seconds that the server keeps an idle connection.
    pub timeout_s: Option<u32>,
    /// Further requests that the server will take on this connection.
    pub max: Option<u32>,
}

/// What Transfer-Encoding says. Several lines are one list (RFC 9110 section 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    #[default]
    Absent,
    /// `chunked` is the last coding: the body frames itself.
    Chunked,
    /// Something else is last.
    Other,
}

/// Gathered line by line; judged when the head is complete, because a response to HEAD is bound by none of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) length: Option<u64>,
    pub(crate) coding: Coding,
    /// A coding that is not in the registry was named.
    pub(crate) coding_unknown: bool,
    /// The first framing field that contradicts its grammar or an earlier one.
    pub(crate) fault: Option<&'static str>,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    pub(crate) hint: Option<KeepAliveHint>,
    /// Where in the head the Host value stands.
    pub(crate) host: Option<(u32, u32)>,
}

impl Fields {
    /// RFC 9112 section 9.3.
    pub(crate) fn persistent(&self, version: Version) -> bool {
        !self.close && (self.keep_alive || version == Version::Http11)
    }

    /// Takes note of a field that matters to either side. `head[name.0..name.1]` is a valid token.
    #[inline(always)]
    pub(crate) fn note<const REQUEST: bool>(
        &mut self,
        head: &[u8],
        name: (usize, usize),
        value: (usize, usize),
    ) {
        // Length first: most fields are passed over by it alone.
        match name.1 - name.0 {
            4 if REQUEST && same(head, name, b"host") => self.note_host(head, value),
            6 if REQUEST && same(head, name, b"expect") => self.note_expect(&head[value.0..value.1]),
            10 if same(head, name, b"connection") => self.note_connection(&head[value.0..value.1]),
            10 if !REQUEST && same(head, name, b"keep-alive") => self.note_hint(&head[value.0..value.1]),
            14 if same(head, name, b"content-length") => self.note_length(&head[value.0..value.1]),
            17 if same(head, name, b"transfer-encoding") => self.note_coding(&head[value.0..value.1]),
            _ => {}
        }
    }

    #[cold]
    fn blame(&mut self, reason: &'static str) {
        self.fault.get_or_insert(reason);
    }

    fn note_host(&mut self, head: &[u8], value: (usize, usize)) {
        let host = trim(&head[value.0..value.1]);
        if self.host.is_some() {
            self.blame("more than one Host");
        }
        if !is_host(host) {
            self.blame("invalid Host");
        }
        self.host = Some((value.0 as u32, (value.0 + host.len()) as u32));
    }

    #[cold]
    fn note_expect(&mut self, value: &[u8]) {
        self.expect_continue |= trim(value).eq_ignore_ascii_case(b"100-continue");
    }

    #[inline]
    fn note_connection(&mut self, value: &[u8]) {
        // As nearly everyone writes them; the list does the same, slower.
        match value {
            b"keep-alive" => self.keep_alive = true,
            b"close" => self.close = true,
            _ => self.note_connection_list(value),
        }
    }

    #[cold]
    fn note_connection_list(&mut self, value: &[u8]) {
        for token in value.split(|&b| b == b',').map(trim) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    #[cold]
    fn note_hint(&mut self, value: &[u8]) {
        let hint = self.hint.get_or_insert_default();
        for param in value.split(|&b| b == b',').map(trim) {
            let Some(equals) = memchr::memchr(b'=', param) else { continue };
            let number = decimal(trim(&param[equals + 1..])).and_then(|n| u32::try_from(n).ok());
            match trim(&param[..equals]).to_ascii_lowercase().as_slice() {
                b"timeout" => hint.timeout_s = number,
                b"max" => hint.max = number,
                _ => {}
            }
        }
    }

    #[inline]
    fn note_length(&mut self, value: &[u8]) {
        match (decimal(value), self.length) {
            (Some(n), None) => self.length = Some(n),
            _ => self.note_length_list(value),
        }
    }

    #[cold]
    fn note_length_list(&mut self, value: &[u8]) {
        // A list of equal values counts as one (RFC 9112 section 6.3, rule 5).
        for element in value.split(|&b| b == b',').map(trim) {
            match (decimal(element), self.length) {
                (None, _) => self.blame("invalid Content-Length"),
                (Some(n), Some(earlier)) if n != earlier => self.blame("differing Content-Length"),
                (n, _) => self.length = n,
            }
        }
    }

    #[inline]
    fn note_coding(&mut self, value: &[u8]) {
        match (value, self.coding) {
            (b"chunked", Coding::Absent) => self.coding = Coding::Chunked,
            _ => self.note_coding_list(value),
        }
    }

    #[cold]
    fn note_coding_list(&mut self, value: &[u8]) {
        let before = self.coding;
        for element in value.split(|&b| b == b',').map(trim).filter(|e| !e.is_empty()) {
            self.note_one_coding(element);
        }
        if before == Coding::Absent && self.coding == Coding::Absent {
            self.blame("empty Transfer-Encoding");
        }
    }

    fn note_one_coding(&mut self, element: &[u8]) {
        const KNOWN: [&[u8]; 5] = [b"gzip", b"deflate", b"compress", b"x-gzip", b"x-compress"];
        if self.coding == Coding::Chunked {
            self.blame("a transfer coding after chunked");
        }
        if element.eq_ignore_ascii_case(b"chunked") {
            self.coding = Coding::Chunked;
            return;
        }
        self.coding = Coding::Other;
        self.coding_unknown |= !KNOWN.iter().any(|known| element.eq_ignore_ascii_case(known));
    }
}

/// Compares a token with a lower-case word, eight bytes at a time. Setting bit 5 makes capitals small; the only other
/// byte it turns into a letter or a hyphen is CR, which no token holds.
#[inline(always)]
fn same<const N: usize>(head: &[u8], name: (usize, usize), word: &[u8; N]) -> bool {
    let Some(name) = head[name.0..name.1].first_chunk::<N>() else { return false };
    let mut differ = 0;
    let mut i = 0;
    while i < N {
        differ |= (name[i] | 0x20) ^ word[i];
        i += 1;
    }
    differ == 0
}

/// Digits and nothing else, below 2^64.
#[inline(always)]
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    // Nineteen digits cannot overflow.
    if digits.len() > 19 {
        return decimal_long(digits);
    }
    let mut n = 0u64;
    for &b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n = n * 10 + u64::from(digit);
    }
    Some(n)
}

#[cold]
fn decimal_long(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |n, b| {
        b.is_ascii_digit().then_some(())?;
        n.checked_mul(10)?.checked_add(u64::from(b - b'0'))
    })
}
