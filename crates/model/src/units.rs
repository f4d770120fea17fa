//! Instants, spans and counts as people type and read them.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A user's mistake: what is wrong, lower case with the value in backticks, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    pub message: String,
    pub hint: String,
}

impl UsageError {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), hint: hint.into() }
    }
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\nhint: {}", self.message, self.hint)
    }
}

impl std::error::Error for UsageError {}

/// Nanoseconds: a span, or an instant as the span since the run's zero on one monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    pub const MAX: Nanos = Nanos(u64::MAX);

    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// Rounds to the nearest nanosecond; negative or non-finite spans are zero.
    pub fn from_secs_f64(s: f64) -> Nanos {
        Nanos((s * 1e9).round() as u64)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

/// A span as people type it: `10s`, `1.5s`, `500ms`, `1m30s`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Nanos, UsageError> {
    let fail = || {
        UsageError::new(
            format!("`{text}` is no duration"),
            "write a number and h, m, s, ms, us or ns, for example 10s, 500ms or 1m30s; a bare number is seconds",
        )
    };
    if let Some(seconds) = decimal(text) {
        return scaled(seconds, 1e9).map(Nanos).ok_or_else(fail);
    }
    let mut rest = text;
    let mut total_ns: u64 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = number_and_unit(rest);
        let scale = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(fail)?.1;
        let part_ns = decimal(number).and_then(|n| scaled(n, scale)).ok_or_else(fail)?;
        total_ns = total_ns.checked_add(part_ns).ok_or_else(fail)?;
        rest = after;
    }
    if text.is_empty() { Err(fail()) } else { Ok(Nanos(total_ns)) }
}

const DURATION_UNITS: [(&str, f64); 8] = [
    ("h", 3600e9),
    ("m", 60e9),
    ("min", 60e9),
    ("s", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("µs", 1e3),
    ("ns", 1.0),
];

/// A number of things: `200`, `10k`, `1.5k`, `1m` (a million), `1_000`.
pub fn parse_count(text: &str) -> Result<u64, UsageError> {
    let fail = || {
        UsageError::new(
            format!("`{text}` is no count"),
            "write a whole number, or one with k or m: 200, 10k, 1m",
        )
    };
    let (number, unit, after) = number_and_unit(text);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return Err(fail()),
    };
    whole(number, scale).filter(|_| after.is_empty()).ok_or_else(fail)
}

/// Bytes: `512`, `2k`, `1MB`, `64KiB`. Without an `i` the units are decimal: `2k` is 2,000 bytes.
pub fn parse_size(text: &str) -> Result<u64, UsageError> {
    let fail = || {
        UsageError::new(
            format!("`{text}` is no size"),
            "write bytes, or a number with k, M or G (decimal) or Ki, Mi or Gi (binary): 512, 2k, 1MB, 64KiB",
        )
    };
    let (number, unit, after) = number_and_unit(text);
    let unit = unit.to_ascii_lowercase();
    let scale = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(fail()),
    };
    whole(number, scale).filter(|_| after.is_empty()).ok_or_else(fail)
}

/// Requests per second, above zero: `2000`, `2k`, `0.5`, `300/s`, `600/m`.
pub fn parse_rate(text: &str) -> Result<f64, UsageError> {
    let fail = || {
        UsageError::new(
            format!("`{text}` is no rate"),
            "write requests per second, for example 2000, 2k or 0.5, or per minute as 600/m",
        )
    };
    let (amount, per) = text.split_once('/').unwrap_or((text, "s"));
    let (number, unit, after) = number_and_unit(amount);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        _ => return Err(fail()),
    };
    let per_s = match per {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(fail()),
    };
    let rate = decimal(number).filter(|_| after.is_empty()).map(|n| n * scale / per_s);
    rate.filter(|rate| *rate > 0.0).ok_or_else(fail)
}

/// The digits at the front, the letters after them, and what is left.
fn number_and_unit(text: &str) -> (&str, &str, &str) {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(letters);
    (number, unit, after)
}

/// Digits with at most one point; `_` may group them. No sign, no exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'_');
    let text = text.replace('_', "");
    if plain && text.bytes().any(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Rounded to a whole number, `None` above what 64 bits hold.
fn scaled(n: f64, scale: f64) -> Option<u64> {
    let product = (n * scale).round();
    (product < u64::MAX as f64).then_some(product as u64)
}

/// Only if the product is a whole number: half a request is a mistake.
fn whole(number: &str, scale: f64) -> Option<u64> {
    let n = decimal(number)?;
    let product = scaled(n, scale)?;
    ((n * scale - product as f64).abs() < 1e-6).then_some(product)
}

/// Shortest text that `parse_duration` reads as the same span: `90s`, `500ms`, `0s`.
impl std::fmt::Display for Nanos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        match units.into_iter().find(|(_, ns)| self.0.is_multiple_of(*ns)) {
            Some((unit, ns)) => write!(f, "{}{unit}", self.0 / ns),
            None => write!(f, "{}ns", self.0),
        }
    }
}

/// Milliseconds as people read them, to three digits: `850 µs`, `12.3 ms`, `1.50 s`.
pub fn format_ms(ms: f64) -> String {
    match ms.abs() {
        0.0 => "0 ms".to_owned(),
        a if a < 0.0009995 => format!("{} ns", three_digits(ms * 1e6)),
        a if a < 0.9995 => format!("{} µs", three_digits(ms * 1e3)),
        a if a < 999.5 => format!("{} ms", three_digits(ms)),
        _ => format!("{} s", three_digits(ms / 1e3)),
    }
}

/// Bytes as people read them, decimal: `512 B`, `2.00 kB`, `1.25 MB`.
pub fn format_bytes(bytes: u64) -> String {
    let n = bytes as f64;
    match n {
        n if n < 1e3 => format!("{bytes} B"),
        n if n < 999.5e3 => format!("{} kB", three_digits(n / 1e3)),
        n if n < 999.5e6 => format!("{} MB", three_digits(n / 1e6)),
        n if n < 999.5e9 => format!("{} GB", three_digits(n / 1e9)),
        _ => format!("{} TB", three_digits(n / 1e12)),
    }
}

/// `50,000`.
pub fn format_count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Per second: `12,345`, `98.7`, `0.50`.
pub fn format_rate(per_s: f64) -> String {
    if per_s >= 99.95 { format_count(per_s.round() as u64) } else { three_digits(per_s) }
}

/// A share from 0 to 1: `0.03 %`, `99.9 %`, `100 %`. Only what is all, or nothing, reads 100 % or 0 %.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "< 0.01 %".to_owned(),
        p if p < 1.0 => format!("{p:.2} %"),
        p if p >= 100.0 => format!("{p:.0} %"),
        p if p >= 99.995 => "> 99.99 %".to_owned(),
        p if p >= 99.95 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// A figure of no known unit: whole numbers as counts, others to four digits after the point.
pub fn format_number(n: f64) -> String {
    if n.fract() == 0.0 && (0.0..1e15).contains(&n) { format_count(n as u64) } else { format!("{n:.4}") }
}

fn three_digits(n: f64) -> String {
    match n.abs() {
        a if a < 9.995 => format!("{n:.2}"),
        a if a < 99.95 => format!("{n:.1}"),
        _ => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(parse: fn(&str) -> Result<T, UsageError>, cases: &[(&str, T)]) {
        for (text, expected) in cases {
            assert_eq!(parse(text).as_ref(), Ok(expected), "{text}");
        }
    }

    fn refused<T: std::fmt::Debug>(parse: fn(&str) -> Result<T, UsageError>, what: &str, cases: &[&str]) {
        for text in cases {
            let error = parse(text).expect_err(text);
            assert_eq!(error.message, format!("`{text}` is no {what}"));
            assert!(error.hint.starts_with("write "), "{}", error.hint);
        }
    }

    #[test]
    fn durations() {
        let cases = [
            ("10s", Nanos::from_secs(10)),
            ("3m", Nanos::from_secs(180)),
            ("1h", Nanos::from_secs(3600)),
            ("500ms", Nanos::from_millis(500)),
            ("250us", Nanos::from_micros(250)),
            ("250µs", Nanos::from_micros(250)),
            ("20ns", Nanos(20)),
            ("10", Nanos::from_secs(10)),
            ("0.25", Nanos::from_millis(250)),
            ("1.5s", Nanos::from_millis(1_500)),
            (".5s", Nanos::from_millis(500)),
            ("1m30s", Nanos::from_secs(90)),
            ("1h1m1s1ms", Nanos(3_661_001_000_000)),
            ("0", Nanos::ZERO),
        ];
        check(parse_duration, &cases);
        let bad = [
            "", "s", "10x", "-1s", "1e3", "1 s", "1.2.3s", "1s2", ".", "s10", "10S", "6000000h", "inf", "NaN",
        ];
        refused(parse_duration, "duration", &bad);
    }

    #[test]
    fn counts() {
        let cases = [
            ("200", 200),
            ("10k", 10_000),
            ("1.5K", 1_500),
            ("1m", 1_000_000),
            ("2G", 2_000_000_000),
            ("1_000", 1_000),
            ("0", 0),
        ];
        check(parse_count, &cases);
        refused(parse_count, "count", &["", "k", "1.5", "-1", "10kb", "1k5", "1e3", "99999999999999999999"]);
    }

    #[test]
    fn sizes() {
        let cases = [
            ("512", 512),
            ("512B", 512),
            ("2k", 2_000),
            ("1MB", 1_000_000),
            ("1.5mb", 1_500_000),
            ("64KiB", 65_536),
            ("1Mi", 1_048_576),
            ("1g", 1_000_000_000),
        ];
        check(parse_size, &cases);
        refused(parse_size, "size", &["", "b", "0.5", "1kk", "2x", "-2k", "1 MB"]);
    }

    #[test]
    fn rates() {
        let cases = [
            ("2000", 2_000.0),
            ("2k", 2_000.0),
            ("0.5", 0.5),
            ("300/s", 300.0),
            ("600/m", 10.0),
            ("1m", 1e6),
        ];
        check(parse_rate, &cases);
        refused(parse_rate, "rate", &["", "0", "-5", "fast", "5/x", "5/", "10ks", "1e3"]);
    }

    proptest! {
        #[test]
        fn a_shown_duration_is_read_as_the_same(ns in any::<u64>(), scale in prop_oneof![Just(1), Just(1_000), Just(1_000_000_000)]) {
            // Numbers above 2^53 are rounded on their way through floating point.
            let span = Nanos(ns % (1 << 52) / scale * scale);
            prop_assert_eq!(parse_duration(&span.to_string()), Ok(span));
        }
    }

    #[test]
    fn durations_are_shown_in_the_largest_whole_unit() {
        let shown = [
            Nanos::from_secs(90),
            Nanos::from_millis(1_500),
            Nanos::from_micros(250),
            Nanos(1_001),
            Nanos::ZERO,
        ];
        assert_eq!(shown.map(|span| span.to_string()), ["90s", "1500ms", "250us", "1001ns", "0s"]);
    }

    #[test]
    fn milliseconds_are_shown_to_three_digits() {
        let cases = [
            (0.0, "0 ms"),
            (0.000511, "511 ns"),
            (0.0009996, "1.00 µs"),
            (0.0123, "12.3 µs"),
            (0.9994, "999 µs"),
            (0.9996, "1.00 ms"),
            (12.34, "12.3 ms"),
            (99.96, "100 ms"),
            (999.6, "1.00 s"),
            (20_000.0, "20.0 s"),
        ];
        for (ms, expected) in cases {
            assert_eq!(format_ms(ms), expected, "{ms}");
        }
    }

    #[test]
    fn counts_sizes_and_rates_are_shown_short() {
        assert_eq!(
            [0, 999, 1_000, 50_000, 1_234_567].map(format_count),
            ["0", "999", "1,000", "50,000", "1,234,567"]
        );
        assert_eq!([0, 512, 2_048, 1_250_000].map(format_bytes), ["0 B", "512 B", "2.05 kB", "1.25 MB"]);
        assert_eq!([0.5, 98.76, 99.96, 12_345.6].map(format_rate), ["0.50", "98.8", "100", "12,346"]);
        assert_eq!([19.0, 0.9, 1_000.5].map(format_number), ["19", "0.9000", "1000.5000"]);
    }

    #[test]
    fn only_nothing_is_zero_percent_and_only_all_is_a_hundred() {
        let cases = [
            (0.0, "0 %"),
            (0.00001, "< 0.01 %"),
            (0.0003, "0.03 %"),
            (0.05, "5.0 %"),
            (0.949, "94.9 %"),
            (0.9996, "99.96 %"),
            (0.99999, "> 99.99 %"),
            (1.0, "100 %"),
        ];
        for (share, expected) in cases {
            assert_eq!(format_percent(share), expected, "{share}");
        }
    }
}
