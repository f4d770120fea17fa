//! What servers accept and refuse, and how they find where the next request begins.

use weir_wire::h1::{Error, Limits, Part, RequestDecoder, RequestEvent, RequestHead};

use crate::{drive, splits::same_however_cut};

fn seen(input: &[u8]) -> String {
    same_however_cut(input, |pieces| drive::requests(pieces.iter().copied(), Limits::default()))
}

fn check(input: &[u8], expected: &str) {
    assert_eq!(seen(input), expected, "{}", input.escape_ascii());
}

fn check_all(cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        check(input.as_bytes(), expected);
    }
}

#[test]
fn a_request_without_framing_fields_has_no_body() {
    check_all(&[
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / Origin Http11 None keep-alive Host=a; done; idle"),
        (
            "POST /x?y HTTP/1.1\r\nhost:a:80 \r\n\r\n",
            "POST /x?y Origin Http11 None keep-alive host=a:80; done; idle",
        ),
        ("GET / HTTP/1.0\r\n\r\n", "GET / Origin Http10 None close; done; idle"),
        ("get / HTTP/1.1\r\nHost:\r\n\r\n", "get / Origin Http11 None keep-alive Host=; done; idle"),
        (
            "M-SEARCH!~ / HTTP/1.3\r\nHost: a\r\n\r\n",
            "M-SEARCH!~ / Origin Http11 None keep-alive Host=a; done; idle",
        ),
    ]);
}

#[test]
fn framing_fields_give_the_body() {
    const H: &str = "POST / HTTP/1.1\r\nHost: a\r\n";
    const SEEN: &str = "POST / Origin Http11 ";
    for (rest, expected) in [
        ("Content-Length: 2\r\n\r\nab", "Length(2) keep-alive Host=a Content-Length=2; body ab; done; idle"),
        ("Content-Length: 0\r\n\r\n", "Length(0) keep-alive Host=a Content-Length=0; done; idle"),
        (
            "Content-Length: 1,1\r\n\r\na",
            "Length(1) keep-alive Host=a Content-Length=1,1; body a; done; idle",
        ),
        (
            "Content-Length: 2\r\n\r\na",
            "Length(2) keep-alive Host=a Content-Length=2; body a; error: closed inside a message",
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "Chunked keep-alive Host=a Transfer-Encoding=chunked; body a; done; idle",
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\nT: u\r\n\r\n",
            "Chunked keep-alive Host=a Transfer-Encoding=gzip, chunked; trailers T=u; done; idle",
        ),
        (
            "Transfer-Encoding: gzip\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n",
            "Chunked keep-alive Host=a Transfer-Encoding=gzip transfer-encoding=Chunked; done; idle",
        ),
    ] {
        check(format!("{H}{rest}").as_bytes(), &format!("{SEEN}{expected}"));
    }
}

#[test]
fn framing_that_two_servers_could_read_differently_is_refused() {
    const H: &str = "POST / HTTP/1.1\r\nHost: a\r\n";
    const TAIL: &str = "\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (fields, expected) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "malformed: both Transfer-Encoding and Content-Length",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "malformed: both Transfer-Encoding and Content-Length",
        ),
        (
            "Transfer-Encoding: identity\r\nContent-Length: 5",
            "malformed: both Transfer-Encoding and Content-Length",
        ),
        ("Content-Length: 5\r\nContent-Length: 6", "malformed: differing Content-Length"),
        ("Content-Length: 5, 6", "malformed: differing Content-Length"),
        ("Content-Length: +5", "malformed: invalid Content-Length"),
        ("Content-Length: -5", "malformed: invalid Content-Length"),
        ("Content-Length: 0x5", "malformed: invalid Content-Length"),
        ("Content-Length: 5 6", "malformed: invalid Content-Length"),
        ("Content-Length: 5,", "malformed: invalid Content-Length"),
        ("Content-Length:", "malformed: invalid Content-Length"),
        ("Content-Length: \"5\"", "malformed: invalid Content-Length"),
        ("Content-Length: 184467440737095516160", "malformed: invalid Content-Length"),
        ("Transfer-Encoding: gzip", "malformed: chunked is not the last transfer coding"),
        ("Transfer-Encoding: chunked, gzip", "malformed: a transfer coding after chunked"),
        ("Transfer-Encoding: chunked, chunked", "malformed: a transfer coding after chunked"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "malformed: a transfer coding after chunked",
        ),
        ("Transfer-Encoding:", "malformed: empty Transfer-Encoding"),
        ("Transfer-Encoding: xchunked", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: x, chunked", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: identity", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: identity, chunked", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: chunked;q=1", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: \"chunked\"", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: gzip;x=\"a,chunked\"", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: 'chunked'", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: chun\u{212a}ed", "error: unsupported: transfer coding"),
        ("Transfer-Encoding: \u{b}chunked", "malformed: control character"),
        ("Transfer-Encoding: chunked\u{c}", "malformed: control character"),
        ("Transfer-Encoding: \0chunked", "malformed: control character"),
        ("Transfer-Encoding : chunked", "malformed: white space in or after a field name"),
        ("Transfer-Encoding\t: chunked", "malformed: white space in or after a field name"),
        ("Transfer-Encoding\u{b}: chunked", "malformed: invalid field name"),
        (" Transfer-Encoding: chunked", "malformed: folded field line"),
        ("X: y\r\n Transfer-Encoding: chunked", "malformed: folded field line"),
        ("Transfer-Encoding:\r\n chunked", "malformed: folded field line"),
        ("X: y\nTransfer-Encoding: chunked", "malformed: bare LF"),
        ("X: y\rTransfer-Encoding: chunked", "malformed: bare CR"),
        ("\u{feff}Transfer-Encoding: chunked", "malformed: invalid field name"),
        ("Content-Length 5", "malformed: white space in or after a field name"),
        ("Content-Length\0: 5", "malformed: invalid field name"),
        ("Content-Length: 5\r", "malformed: bare CR"),
        ("GET /smuggled HTTP/1.1", "malformed: white space in or after a field name"),
    ] {
        check(format!("{H}{fields}{TAIL}").as_bytes(), expected);
    }
    check(
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "malformed: Transfer-Encoding in HTTP/1.0",
    );
}

#[test]
fn names_that_only_resemble_framing_fields_do_not_frame() {
    for field in [
        "Content_Length: 5",
        "XContent-Length: 5",
        "Content-Length5: 5",
        "Content-Lengtk: 5",
        "Transfer_Encoding: chunked",
        "Transfer-Encodin: chunked",
        "Ho.st: b",
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
        let expected =
            format!("GET / Origin Http11 None keep-alive Host=a {}; done; idle", field.replace(": ", "="));
        check(input.as_bytes(), &expected);
    }
}

#[test]
fn chunks_are_read_as_strictly_as_in_responses() {
    const H: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const SEEN: &str = "POST / Origin Http11 Chunked keep-alive Host=a Transfer-Encoding=chunked; ";
    for (body, expected) in [
        (
            "1\r\na\r\n0\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
            "body a; done; GET /b Origin Http10 None close; done; idle",
        ),
        ("1\na\n0\n\n", "malformed: invalid chunk size"),
        ("1;\na\r\n", "malformed: control character in chunk extension"),
        ("0x1\r\na\r\n", "malformed: invalid chunk size"),
        ("1\r\naXX\r\n", "body a; malformed: chunk longer than its size"),
        ("1\r\na", "body a; error: closed inside a message"),
        ("0\r\nGET /smuggled HTTP/1.1\r\n\r\n", "malformed: white space in or after a field name"),
    ] {
        check(format!("{H}{body}").as_bytes(), &format!("{SEEN}{expected}"));
    }
}

#[test]
fn a_host_is_needed_once() {
    check_all(&[
        ("GET / HTTP/1.1\r\n\r\n", "malformed: no Host"),
        ("GET http://a/ HTTP/1.1\r\n\r\n", "malformed: no Host"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "malformed: more than one Host"),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "malformed: more than one Host"),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "malformed: invalid Host"),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "malformed: invalid Host"),
        ("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n", "malformed: invalid Host"),
        (
            "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
            "GET / Origin Http11 None keep-alive Host=[::1]:8080; done; idle",
        ),
    ]);
}

#[test]
fn a_request_line_has_its_grammar() {
    const TAIL: &str = "\r\nHost: a\r\n\r\n";
    for (line, expected) in [
        ("GET /", "malformed: invalid request target"),
        ("GET", "malformed: invalid method"),
        ("GET  / HTTP/1.1", "malformed: missing or invalid request target"),
        ("GET /  HTTP/1.1", "malformed: invalid HTTP version"),
        ("GET / HTTP/1.1 ", "malformed: invalid HTTP version"),
        ("GET\t/ HTTP/1.1", "malformed: invalid method"),
        ("GET /\tHTTP/1.1", "malformed: invalid request target"),
        (" GET / HTTP/1.1", "malformed: not an HTTP request"),
        (" / HTTP/1.1", "malformed: not an HTTP request"),
        (" * HTTP/1.1", "malformed: not an HTTP request"),
        ("G(T / HTTP/1.1", "malformed: invalid method"),
        ("GET /a b HTTP/1.1", "malformed: invalid HTTP version"),
        ("GET /a\0b HTTP/1.1", "malformed: invalid request target"),
        ("GET /\u{e4} HTTP/1.1", "malformed: invalid request target"),
        ("GET /a#b HTTP/1.1", "malformed: invalid request target"),
        ("GET a HTTP/1.1", "malformed: invalid request target"),
        ("GET * HTTP/1.1", "malformed: invalid request target"),
        ("GET a:80 HTTP/1.1", "malformed: invalid request target"),
        ("GET http:/a HTTP/1.1", "malformed: invalid request target"),
        ("GET http:///a HTTP/1.1", "malformed: invalid request target"),
        ("GET http://u@a/ HTTP/1.1", "malformed: invalid request target"),
        ("GET 1http://a/ HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT / HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT a HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT :80 HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT a: HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT a:99999 HTTP/1.1", "malformed: invalid request target"),
        ("CONNECT http://a:80 HTTP/1.1", "malformed: invalid request target"),
        ("GET / http/1.1", "malformed: invalid HTTP version"),
        ("GET / HTTP/1.10", "malformed: invalid HTTP version"),
        ("GET / HTTP/11", "malformed: invalid HTTP version"),
        ("GET / HTTP/1", "malformed: invalid HTTP version"),
        ("GET / HTTP/1.a", "malformed: invalid HTTP version"),
        ("GET / HTTP/2.0", "error: unsupported HTTP version"),
        ("GET / HTTP/0.9", "error: unsupported HTTP version"),
        ("PRI * HTTP/2.0", "error: unsupported HTTP version"),
        ("GET / HTTP/1.1\n", "malformed: bare LF"),
        ("GET / HTTP/1.1\rX", "malformed: bare CR"),
        ("\0", "malformed: not an HTTP request"),
        ("\u{16}\u{3}\u{1}", "malformed: not an HTTP request"),
        ("\nGET / HTTP/1.1", "malformed: bare LF"),
        ("\rGET / HTTP/1.1", "malformed: bare CR"),
    ] {
        let seen = seen(format!("{line}{TAIL}").as_bytes());
        assert_eq!(seen, expected, "{line}");
    }
}

#[test]
fn each_target_form_is_told() {
    fn check(line: &str, expected: (&str, &str, &str)) {
        let input = format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut decoder = RequestDecoder::new(Limits::default());
        let event = decoder.decode(input.as_bytes()).unwrap().1;
        let RequestEvent::Full { head, .. } = event else { panic!("expected Full, found {event:?}") };
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let form = format!("{:?}", head.form);
        assert_eq!((form.as_str(), text(head.authority()), text(head.path())), expected, "{line}");
    }
    check("GET /a?b", ("Origin", "h", "/a?b"));
    check("GET //a", ("Origin", "h", "//a"));
    check("GET http://x:1/a?b", ("Absolute", "x:1", "/a?b"));
    check("GET HTTPS://x", ("Absolute", "x", ""));
    check("GET http://x?b", ("Absolute", "x", "?b"));
    check("OPTIONS *", ("Asterisk", "h", "*"));
    check("OPTIONS /", ("Origin", "h", "/"));
    check("CONNECT x:443", ("Authority", "x:443", "x:443"));
    check("CONNECT [::1]:443", ("Authority", "[::1]:443", "[::1]:443"));
}

#[test]
fn connection_options_decide_about_reuse() {
    fn keeps(input: &str) -> bool {
        let mut decoder = RequestDecoder::new(Limits::default());
        let event = decoder.decode(input.as_bytes()).unwrap().1;
        let RequestEvent::Full { head, .. } = event else { panic!("expected Full, found {event:?}") };
        head.keep_alive
    }
    assert!(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(!keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n"));
    assert!(!keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: te, close\r\n\r\n"));
    assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
    assert!(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

#[test]
fn what_follows_the_last_request_is_dropped() {
    check_all(&[
        ("GET / HTTP/1.0\r\n\r\nGET /2 HTTP/1.1\r\n\r\n", "GET / Origin Http10 None close; done; idle"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nxyz",
            "POST / Origin Http11 Length(1) close Host=a Connection=close Content-Length=1; body x; done; idle",
        ),
    ]);
}

#[test]
fn a_client_that_waits_for_100_is_told() {
    fn waits(head: &str) -> bool {
        let mut decoder = RequestDecoder::new(Limits::default());
        match decoder.decode(head.as_bytes()).unwrap().1 {
            RequestEvent::Head(RequestHead { expect_continue, .. }) => expect_continue,
            RequestEvent::Full { head, .. } => head.expect_continue,
            other => panic!("expected a head, found {other:?}"),
        }
    }
    assert!(waits("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n"));
    assert!(waits(
        "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nexpect: 100-continue \r\n\r\n"
    ));
    assert!(!waits("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n"));
    assert!(!waits("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"));
    assert!(!waits("PUT / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"));
    assert!(!waits("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: x\r\n\r\n"));
}

#[test]
fn pipelined_requests_come_one_after_the_other() {
    check(
        b"\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n\
          POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\
          \r\n\r\nPOST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n\
          GET /4 HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
        "GET /1 Origin Http11 None keep-alive Host=a; done; \
         POST /2 Origin Http11 Length(2) keep-alive Host=a Content-Length=2; body ab; done; \
         POST /3 Origin Http11 Chunked keep-alive Host=a Transfer-Encoding=chunked; body c; done; \
         GET /4 Origin Http11 None keep-alive Host=a; done; idle",
    );
}

#[test]
fn closes_are_told_apart() {
    check_all(&[
        ("", "idle"),
        ("\r\n\r\n", "idle"),
        ("\r", "idle"),
        ("G", "error: closed inside a message"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "error: closed inside a message"),
    ]);
}

#[test]
fn errors_have_a_status() {
    for (error, expected) in [
        (Error::Malformed("x"), 400),
        (Error::TooLarge(Part::StartLine), 414),
        (Error::TooLarge(Part::Head), 431),
        (Error::TooLarge(Part::Headers), 431),
        (Error::TooLarge(Part::Trailers), 431),
        (Error::TooLarge(Part::ChunkLine), 400),
        (Error::Unsupported("x"), 501),
        (Error::Version, 505),
        (Error::Truncated, 400),
    ] {
        assert_eq!(error.status(), expected, "{error}");
    }
}

#[test]
fn a_decoder_is_small_and_keeps_nothing_between_requests() {
    assert!(size_of::<RequestDecoder>() <= 100, "{} bytes", size_of::<RequestDecoder>());
    let mut decoder = RequestDecoder::new(Limits::default());
    let input = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(decoder.is_idle());
    assert!(matches!(decoder.decode(&input[..20]), Ok((20, RequestEvent::NeedMore))));
    assert!(!decoder.is_idle());
    assert_eq!(decoder.buffered_bytes(), 20);
    let Ok((7, RequestEvent::Head(head))) = decoder.decode(&input[20..]) else { panic!("expected a head") };
    assert_eq!(head.raw, input);
    assert!(matches!(decoder.decode(b""), Ok((0, RequestEvent::Done))));
    assert_eq!(decoder.buffered_bytes(), 0);
    assert!(decoder.is_idle());
}
