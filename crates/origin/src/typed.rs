//! Spans and sizes as people type them, in flags and in URLs. Works on bytes, because a URL is not text.

use weir_model::units::Nanos;

/// `10ms`, `1.5s`, `250us`, `3m`, `1h`; a bare number is seconds. `None` if it is not a span.
pub(crate) fn span(text: &[u8]) -> Option<Nanos> {
    let (number, unit) = split_unit(text);
    let unit_ns: u64 = match unit {
        b"ns" => 1,
        b"us" | b"\xc2\xb5s" => 1_000,
        b"ms" => 1_000_000,
        b"" | b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => return None,
    };
    Some(Nanos(scaled(number, unit_ns)?))
}

/// `2048`, `4k`, `1.5m`, `1g`, with or without a final `b`: powers of 1024. `None` if it is not a size.
pub(crate) fn size_bytes(text: &[u8]) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let unit_bytes: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" | b"kb" | b"kib" => 1 << 10,
        b"m" | b"mb" | b"mib" => 1 << 20,
        b"g" | b"gb" | b"gib" => 1 << 30,
        _ => return None,
    };
    scaled(number, unit_bytes)
}

/// A status that ends an exchange: 200 to 599. `None` otherwise, also for the interim 1xx.
pub(crate) fn status(text: &[u8]) -> Option<u16> {
    let status: u16 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (200..=599).contains(&status).then_some(status)
}

fn split_unit(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap_or(text.len());
    text.split_at(end)
}

/// The number times the unit, if it is a number and the product fits.
fn scaled(number: &[u8], unit: u64) -> Option<u64> {
    let text = std::str::from_utf8(number).ok()?;
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let product = (text.parse::<f64>().ok()? * unit as f64).round();
    (product < u64::MAX as f64).then_some(product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_take_units_and_a_bare_number_is_seconds() {
        let check = |text: &str, ns: Option<u64>| assert_eq!(span(text.as_bytes()), ns.map(Nanos), "{text}");
        check("10ms", Some(10_000_000));
        check("0", Some(0));
        check("2", Some(2_000_000_000));
        check("1.5s", Some(1_500_000_000));
        check("250us", Some(250_000));
        check("250µs", Some(250_000));
        check("7ns", Some(7));
        check("3m", Some(180_000_000_000));
        check("1h", Some(3_600_000_000_000));
        for wrong in ["", "ms", "-1s", "10 ms", "1.2.3s", "10fortnights", "99999999999999h"] {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        let check = |text: &str, bytes: Option<u64>| assert_eq!(size_bytes(text.as_bytes()), bytes, "{text}");
        check("0", Some(0));
        check("2048", Some(2048));
        check("4k", Some(4096));
        check("1.5KiB", Some(1536));
        check("1g", Some(1 << 30));
        check("18446744073709551615", Some(u64::MAX));
        for wrong in ["", "k", "-1", "1x", "18446744073709551616g"] {
            check(wrong, None);
        }
    }

    #[test]
    fn statuses_are_final_ones() {
        let check =
            |text: &str, expected: Option<u16>| assert_eq!(status(text.as_bytes()), expected, "{text}");
        check("200", Some(200));
        check("599", Some(599));
        for wrong in ["100", "199", "600", "ok", "", "+200x"] {
            check(wrong, None);
        }
    }
}
