//! Single values as people type them. Each parser says what it expected; none knows a flag's name.

use std::net::{IpAddr, SocketAddr};

use weir_model::units::{self, Nanos, UsageError};

/// `--ramp FROM:TO:TIME`, rates in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    pub from_per_s: f64,
    pub to_per_s: f64,
    pub over: Nanos,
}

/// `HOST:PORT`, or curl's `HOST1:PORT1:HOST2:PORT2`, in which `only_for` is the first pair; empty parts match all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    pub only_for: Option<(String, Option<u16>)>,
    pub host: String,
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addrs(pub Vec<IpAddr>);

/// Above this a range is taken for a mistake: each address has about 28,000 ports.
const ADDRS_MAX: usize = 4096;

/// A span above zero: `250us`, `1.5s`, `2m`; a bare number is seconds.
pub fn span(text: &str) -> Result<Nanos, String> {
    let span = units::parse_duration(text).map_err(in_one)?;
    if span == Nanos::ZERO { Err("must be above 0".to_owned()) } else { Ok(span) }
}

/// A count above zero: `500`, `10k`, `2m`.
pub fn count(text: &str) -> Result<u64, String> {
    match count_or_zero(text)? {
        0 => Err("must be above 0".to_owned()),
        n => Ok(n),
    }
}

pub fn count_or_zero(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(in_one)
}

/// Any whole number, as a seed is.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Bytes: `512`, `2k`, `64KiB`.
pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(in_one)
}

/// The flag and the value are said before it.
fn in_one(error: UsageError) -> String {
    error.hint
}

pub fn count_u32(text: &str) -> Result<u32, String> {
    count(text).and_then(fits_u32)
}

pub fn count_u32_or_zero(text: &str) -> Result<u32, String> {
    count_or_zero(text).and_then(fits_u32)
}

fn fits_u32(n: u64) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| format!("must be at most {}", u32::MAX))
}

/// Requests per second above zero; `0.5` is one every two seconds, `10k` ten thousand a second.
pub fn rate(text: &str) -> Result<f64, String> {
    units::parse_rate(text).map_err(in_one)
}

pub fn ramp(text: &str) -> Result<Ramp, String> {
    let [from, to, over] = text.split(':').collect::<Vec<_>>()[..] else {
        return Err("expected FROM:TO:TIME, such as 100:2000:30s".to_owned());
    };
    // A ramp may begin with nothing; one that ends with nothing would never send the rest of a count.
    let from_per_s = if from == "0" { 0.0 } else { rate(from)? };
    Ok(Ramp { from_per_s, to_per_s: rate(to)?, over: span(over)? })
}

pub fn header(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once(':') else {
        return Err("expected `Name: value`".to_owned());
    };
    header_parts(name, value)
}

/// Checks a name and a value against RFC 9110 section 5: a token, and a value without control characters.
pub fn header_parts(name: &str, value: &str) -> Result<(String, String), String> {
    if !is_token(name) {
        return Err(format!("`{name}` is no header name"));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err("a header value has no line ends".to_owned());
    }
    if value.contains(|c: char| c.is_ascii_control() && c != '\t') {
        return Err("a header value has no control characters".to_owned());
    }
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

/// RFC 9110 section 5.6.2.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

pub fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub fn listen_addr(text: &str) -> Result<SocketAddr, String> {
    let with_host = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    with_host.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:8080".to_owned())
}

pub fn connect_to(text: &str) -> Result<ConnectTo, String> {
    let expected = || "expected HOST:PORT or HOST1:PORT1:HOST2:PORT2".to_owned();
    match split_colons(text)[..] {
        [host, port] if !host.is_empty() => {
            Ok(ConnectTo { only_for: None, host: bare_host(host), port: port_number(port)? })
        }
        [host1, port1, host2, port2] if !host2.is_empty() => {
            let only_for = match (host1, port1) {
                ("", "") => None,
                (host, "") => Some((bare_host(host), None)),
                (host, port) => Some((bare_host(host), Some(port_number(port)?))),
            };
            Ok(ConnectTo { only_for, host: bare_host(host2), port: port_number(port2)? })
        }
        _ => Err(expected()),
    }
}

/// Splits at colons outside brackets, so that `[::1]:80` is two parts.
fn split_colons(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        inside = (inside || c == '[') && c != ']';
        c == ':' && !inside
    })
    .collect()
}

fn bare_host(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn port_number(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is no port: expected 1 to 65535")),
    }
}

pub fn local_addrs(text: &str) -> Result<Addrs, String> {
    let mut addrs = Vec::new();
    for part in text.split(',') {
        match part.trim().split_once('-') {
            Some((first, last)) => addrs.extend(range(ip(first)?, ip(last)?)?),
            None => addrs.push(ip(part)?),
        }
    }
    Ok(Addrs(addrs))
}

fn ip(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is no IP address"))
}

fn range(first: IpAddr, last: IpAddr) -> Result<Vec<IpAddr>, String> {
    let (from, to) = (bits(first), bits(last));
    if first.is_ipv4() != last.is_ipv4() || from > to {
        return Err(format!("`{first}-{last}` is no range: the first address must not be above the last"));
    }
    if to - from >= ADDRS_MAX as u128 {
        return Err(format!("`{first}-{last}` is more than {ADDRS_MAX} addresses"));
    }
    Ok((from..=to).map(|bits| from_bits(bits, first)).collect())
}

fn bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn from_bits(bits: u128, like: IpAddr) -> IpAddr {
    match like {
        // The caller's range lies between two IPv4 addresses.
        IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(bits.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug>(parse: impl Fn(&str) -> Result<T, String>, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(format!("{:?}", parse(text)), *expected, "of `{text}`");
        }
    }

    #[test]
    fn counts_take_thousands_and_refuse_nothing() {
        check(count, &[("500", "Ok(500)"), ("10k", "Ok(10000)"), ("0", "Err(\"must be above 0\")")]);
        assert!(count("ten").is_err() && count("-1").is_err());
    }

    #[test]
    fn a_bare_number_is_seconds() {
        check(
            span,
            &[
                ("2", "Ok(Nanos(2000000000))"),
                ("250us", "Ok(Nanos(250000))"),
                ("1.5s", "Ok(Nanos(1500000000))"),
                ("0", "Err(\"must be above 0\")"),
            ],
        );
    }

    #[test]
    fn a_ramp_has_three_parts() {
        check(
            ramp,
            &[
                ("100:2k:30s", "Ok(Ramp { from_per_s: 100.0, to_per_s: 2000.0, over: Nanos(30000000000) })"),
                ("0:10:1s", "Ok(Ramp { from_per_s: 0.0, to_per_s: 10.0, over: Nanos(1000000000) })"),
                ("100:200", "Err(\"expected FROM:TO:TIME, such as 100:2000:30s\")"),
            ],
        );
    }

    #[test]
    fn headers_are_a_token_and_a_line() {
        check(
            header,
            &[
                ("X-A: b: c ", r#"Ok(("X-A", "b: c"))"#),
                ("X-Empty:", r#"Ok(("X-Empty", ""))"#),
                ("no colon", r#"Err("expected `Name: value`")"#),
                ("a b: c", r#"Err("`a b` is no header name")"#),
                ("a: b\r\nc: d", r#"Err("a header value has no line ends")"#),
                ("a: b\tc", r#"Ok(("a", "b\tc"))"#),
                ("a: b\x01c", r#"Err("a header value has no control characters")"#),
            ],
        );
    }

    #[test]
    fn connect_to_takes_both_forms_and_brackets() {
        check(
            connect_to,
            &[
                ("a:80", r#"Ok(ConnectTo { only_for: None, host: "a", port: 80 })"#),
                ("[::1]:80", r#"Ok(ConnectTo { only_for: None, host: "::1", port: 80 })"#),
                ("a:80:b:81", r#"Ok(ConnectTo { only_for: Some(("a", Some(80))), host: "b", port: 81 })"#),
                ("::b:81", r#"Ok(ConnectTo { only_for: None, host: "b", port: 81 })"#),
                ("a", r#"Err("expected HOST:PORT or HOST1:PORT1:HOST2:PORT2")"#),
                ("a:0", r#"Err("`0` is no port: expected 1 to 65535")"#),
            ],
        );
    }

    #[test]
    fn local_addresses_are_lists_and_ranges() {
        check(
            local_addrs,
            &[
                ("127.0.0.2-127.0.0.4", "Ok(Addrs([127.0.0.2, 127.0.0.3, 127.0.0.4]))"),
                ("10.0.0.1,::1", "Ok(Addrs([10.0.0.1, ::1]))"),
                (
                    "127.0.0.9-127.0.0.2",
                    r#"Err("`127.0.0.9-127.0.0.2` is no range: the first address must not be above the last")"#,
                ),
                ("x", r#"Err("`x` is no IP address")"#),
            ],
        );
        assert!(local_addrs("10.0.0.0-10.255.255.255").is_err());
    }
}
