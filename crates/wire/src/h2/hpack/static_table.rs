//! The static table (RFC 7541 appendix A).

use super::kind::Kind;

/// Index 1 is the first.
pub(crate) const STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// What each entry's name means, by index; 0 is unused.
pub(crate) static STATIC_KIND: [Kind; 62] = kinds();

const fn kinds() -> [Kind; 62] {
    let mut kinds = [Kind::Invalid; 62];
    let mut i = 0;
    while i < STATIC.len() {
        kinds[i + 1] = Kind::of(STATIC[i].0);
        i += 1;
    }
    kinds
}

/// The first index with this name; 0 if there is none.
pub(crate) fn static_name(name: &[u8]) -> u8 {
    STATIC.iter().position(|entry| entry.0 == name).map_or(0, |i| i as u8 + 1)
}

/// The index with this name and value; 0 if there is none.
pub(crate) fn static_field(name: &[u8], value: &[u8]) -> u8 {
    STATIC.iter().position(|entry| *entry == (name, value)).map_or(0, |i| i as u8 + 1)
}
