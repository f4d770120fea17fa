//! Every length has a limit: what just fits is taken, one more is refused, and no more is ever kept.

use weir_wire::h1::{Limits, RequestKind};

use crate::{drive, splits::same_however_cut};

const LIMITS: Limits =
    Limits { head_bytes: 60, headers: 3, line_bytes: 24, chunk_line_bytes: 6, trailer_bytes: 20 };

fn response(input: &str) -> String {
    same_however_cut(input.as_bytes(), |pieces| {
        drive::responses(&[RequestKind::Other], pieces.iter().copied(), LIMITS)
    })
}

fn request(input: &str) -> String {
    same_however_cut(input.as_bytes(), |pieces| drive::requests(pieces.iter().copied(), LIMITS))
}

fn check(input: &str, seen: String, expected_end: &str) {
    assert!(seen.ends_with(expected_end), "{input:?}: expected …{expected_end}, found {seen}");
}

#[test]
fn what_just_fits_is_taken_and_one_more_is_refused() {
    const FINE: &str = "done keep-alive; idle";
    for (input, expected) in [
        (format!("HTTP/1.1 204 {}\r\n\r\n", "x".repeat(9)), FINE),
        (format!("HTTP/1.1 204 {}\r\n\r\n", "x".repeat(10)), "error: start line too large"),
        (format!("HTTP/1.1 204 {}", "x".repeat(100)), "error: start line too large"),
        (format!("HTTP/1.1 204 \r\nA: {}\r\n\r\n", "x".repeat(38)), FINE),
        (format!("HTTP/1.1 204 \r\nA: {}\r\n\r\n", "x".repeat(39)), "error: head too large"),
        (format!("HTTP/1.1 204 \r\nA: {}", "x".repeat(100)), "error: head too large"),
        (format!("HTTP/1.1 204 \r\nA: {}\r\nBad line", "x".repeat(60)), "error: head too large"),
        ("HTTP/1.1 204 \r\nA: b\r\nA: b\r\nA: b\r\n\r\n".into(), FINE),
        (
            "HTTP/1.1 204 \r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n".into(),
            "error: number of header fields too large",
        ),
    ] {
        check(&input, response(&input), expected);
    }
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, expected) in [
        ("1;xy\r\na\r\n0\r\n\r\n", FINE),
        ("1;xyz\r\na\r\n0\r\n\r\n", "error: chunk-size line too large"),
        ("0000001\r\n", "error: chunk-size line too large"),
        ("1;xyzxyzxyz", "error: chunk-size line too large"),
        ("0\r\nA: 0123456789012\r\n\r\n", FINE),
        ("0\r\nA: 01234567890123\r\n\r\n", "error: trailer section too large"),
        ("0\r\nA: 0123456789012345678901234567890123456789", "error: trailer section too large"),
        ("0\r\na:\r\na:\r\na:\r\n\r\n", FINE),
        ("0\r\na:\r\na:\r\na:\r\na:\r\n\r\n", "error: number of header fields too large"),
    ] {
        let input = format!("{CHUNKED}{body}");
        check(&input, response(&input), expected);
    }
}

#[test]
fn a_request_that_is_too_long_says_which_part() {
    for (input, expected) in [
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(8)), "done; idle"),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9)), "error: start line too large"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nB: {}\r\n\r\n", "x".repeat(28)), "done; idle"),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nB: {}\r\n\r\n", "x".repeat(29)), "error: head too large"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nB:\r\nC:\r\nD:\r\n\r\n".into(),
            "error: number of header fields too large",
        ),
    ] {
        check(&input, request(&input), expected);
    }
    // Empty lines before a request are not part of its head.
    let input = format!("{}GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n".repeat(40));
    check(&input, request(&input), "done; idle");
}

#[test]
fn a_head_of_a_megabyte_is_refused_without_being_kept() {
    let head = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(1 << 20));
    for piece_bytes in [1000, 1 << 16, 1 << 22] {
        let pieces = head.as_bytes().chunks(piece_bytes);
        let seen = drive::responses(&[RequestKind::Other], pieces, Limits::default());
        assert_eq!(seen, "error: head too large", "in pieces of {piece_bytes}");
    }
}

#[test]
fn limits_beyond_what_positions_hold_are_as_good_as_none() {
    let limits = Limits {
        head_bytes: usize::MAX,
        headers: usize::MAX,
        line_bytes: usize::MAX,
        chunk_line_bytes: usize::MAX,
        trailer_bytes: usize::MAX,
    };
    let input: &[u8] = b"HTTP/1.1 204 \r\nA: b\r\n\r\n";
    for pieces in [vec![input], input.chunks(1).collect()] {
        let seen = drive::responses(&[RequestKind::Other], pieces, limits);
        assert_eq!(seen, "204 Http11 None keep-alive A=b; done keep-alive; idle");
    }
}
