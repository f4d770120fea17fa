//! What a field's name means to framing (RFC 9113 sections 8.2 and 8.3).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing.
    Other,
    Method,
    Scheme,
    Authority,
    Path,
    Status,
    /// A pseudo-header field that nobody defined, or that belongs to an extension we did not announce.
    UnknownPseudo,
    ContentLength,
    Te,
    /// Speaks of an HTTP/1 connection (section 8.2.2).
    Connection,
    /// No lower-case token.
    Invalid,
}

impl Kind {
    #[inline]
    pub(crate) const fn of(name: &[u8]) -> Kind {
        match name {
            b":method" => Kind::Method,
            b":scheme" => Kind::Scheme,
            b":authority" => Kind::Authority,
            b":path" => Kind::Path,
            b":status" => Kind::Status,
            [b':', ..] => Kind::UnknownPseudo,
            b"content-length" => Kind::ContentLength,
            b"te" => Kind::Te,
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                Kind::Connection
            }
            _ if is_lower_token(name) => Kind::Other,
            _ => Kind::Invalid,
        }
    }

    pub(crate) fn from_u8(n: u8) -> Kind {
        const ALL: [Kind; 11] = [
            Kind::Other,
            Kind::Method,
            Kind::Scheme,
            Kind::Authority,
            Kind::Path,
            Kind::Status,
            Kind::UnknownPseudo,
            Kind::ContentLength,
            Kind::Te,
            Kind::Connection,
            Kind::Invalid,
        ];
        ALL[n as usize]
    }
}

const LOWER_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let set = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
    let mut i = 0;
    while i < set.len() {
        table[set[i] as usize] = true;
        i += 1;
    }
    table
};

/// May `name` be a field name in HTTP/2? Capitals may not (section 8.2.1).
pub(crate) const fn is_lower_token(name: &[u8]) -> bool {
    let mut i = 0;
    while i < name.len() {
        if !LOWER_TOKEN[name[i] as usize] {
            return false;
        }
        i += 1;
    }
    !name.is_empty()
}

/// May `value` be a field value in HTTP/2? No NUL, CR, LF, no white space at its ends (section 8.2.1).
#[inline]
pub(crate) fn is_value(value: &[u8]) -> bool {
    if let ([b' ' | b'\t', ..], _) | (_, [.., b' ' | b'\t']) = (value, value) {
        return false;
    }
    // No early exit, so that the compiler takes many bytes at a time.
    !value.iter().fold(false, |bad, &b| bad | (b == 0) | (b == b'\r') | (b == b'\n'))
}
