//! What clients accept, refuse, and how they find the end.

use weir_wire::h1::{Limits, RequestKind, ResponseDecoder, ResponseEvent, header};

use crate::{drive, splits::same_however_cut};

const GET: &[RequestKind] = &[RequestKind::Other];
const HEAD: &[RequestKind] = &[RequestKind::Head];
const CONNECT: &[RequestKind] = &[RequestKind::Connect];

fn check(requests: &[RequestKind], input: &[u8], expected: &str) {
    let seen = same_however_cut(input, |pieces| {
        drive::responses(requests, pieces.iter().copied(), Limits::default())
    });
    assert_eq!(seen, expected, "{}", input.escape_ascii());
}

fn check_all(requests: &[RequestKind], cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        check(requests, input.as_bytes(), expected);
    }
}

#[test]
fn a_length_ends_the_body() {
    check_all(
        GET,
        &[
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                "200 Http11 Length(5) keep-alive Content-Length=5; body hello; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
                "200 Http11 Length(0) keep-alive content-length=0; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: \t 05 \t\r\n\r\nhello",
                "200 Http11 Length(5) keep-alive CONTENT-LENGTH=05; body hello; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
                "200 Http11 Length(2) keep-alive Content-Length=2, 2; body ab; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
                "200 Http11 Length(2) keep-alive Content-Length=2 Content-Length=2; body ab; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nab",
                "200 Http11 Length(18446744073709551615) keep-alive Content-Length=18446744073709551615; body ab; error: closed inside a message",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                "200 Http11 Length(5) keep-alive Content-Length=5; body hell; error: closed inside a message",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
                "200 Http11 Length(5) keep-alive Content-Length=5; body hello; done keep-alive; malformed: a response without a request",
            ),
        ],
    );
}

#[test]
fn a_length_that_cannot_be_trusted_is_malformed() {
    for value in [
        "",
        "x",
        "-1",
        "+1",
        "0x5",
        "1 2",
        "1,2",
        "5,",
        ",5",
        "5;",
        "5.0",
        "1e3",
        "18446744073709551616",
        "99999999999999999999999",
        "\u{663}",
    ] {
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n");
        let expected = if value == "1,2" { "differing Content-Length" } else { "invalid Content-Length" };
        check(GET, input.as_bytes(), &format!("malformed: {expected}"));
    }
    check_all(
        GET,
        &[
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "malformed: differing Content-Length",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "malformed: both Transfer-Encoding and Content-Length",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
                "malformed: both Transfer-Encoding and Content-Length",
            ),
            (
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "malformed: Transfer-Encoding in HTTP/1.0",
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n", "malformed: empty Transfer-Encoding"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: ,\r\n\r\n", "malformed: empty Transfer-Encoding"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
                "malformed: a transfer coding after chunked",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                "malformed: a transfer coding after chunked",
            ),
        ],
    );
}

#[test]
fn chunks_frame_the_body() {
    const H: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    const SEEN: &str = "200 Http11 Chunked keep-alive Transfer-Encoding=chunked; ";
    for (body, expected) in [
        ("0\r\n\r\n", "done keep-alive; idle"),
        ("5\r\nhello\r\n0\r\n\r\n", "body hello; done keep-alive; idle"),
        ("1\r\na\r\n2\r\nbc\r\n00\r\n\r\n", "body abc; done keep-alive; idle"),
        ("00A\r\n0123456789\r\n0\r\n\r\n", "body 0123456789; done keep-alive; idle"),
        ("a\r\n0123456789\r\n0000000000000000\r\n\r\n", "body 0123456789; done keep-alive; idle"),
        ("2;x\r\nab\r\n0;y=\"z;\"\r\n\r\n", "body ab; done keep-alive; idle"),
        ("2 \t; x = 1\r\nab\r\n0\r\n\r\n", "body ab; done keep-alive; idle"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "body \\r\\n; done keep-alive; idle"),
        ("0\r\nA: b\r\nc:d \r\n\r\n", "trailers A=b c=d; done keep-alive; idle"),
        ("0\r\nContent-Length: 7\r\n\r\n", "trailers Content-Length=7; done keep-alive; idle"),
        ("FFFFFFFFFFFFFFFF\r\nabc", "body abc; error: closed inside a message"),
        ("", "error: closed inside a message"),
        ("5", "error: closed inside a message"),
        ("2\r\nab", "body ab; error: closed inside a message"),
        ("2\r\nab\r\n", "body ab; error: closed inside a message"),
        ("0\r\n", "error: closed inside a message"),
        ("0\r\n\r", "error: closed inside a message"),
        ("0\r\nA: b\r\n", "error: closed inside a message"),
        ("10000000000000000\r\n", "malformed: chunk size of more than 16 digits"),
        ("00000000000000005\r\nhello", "malformed: chunk size of more than 16 digits"),
        ("-1\r\n", "malformed: invalid chunk size"),
        ("+1\r\n", "malformed: invalid chunk size"),
        ("0x1\r\n", "malformed: invalid chunk size"),
        (" 1\r\n", "malformed: invalid chunk size"),
        ("1 \r\n", "malformed: invalid chunk size"),
        ("1 2\r\n", "malformed: invalid chunk size"),
        ("g\r\n", "malformed: invalid chunk size"),
        ("\r\n", "malformed: invalid chunk size"),
        (";x\r\n", "malformed: invalid chunk size"),
        ("1_0\r\n", "malformed: invalid chunk size"),
        ("1\n", "malformed: invalid chunk size"),
        ("1\ra", "malformed: bare CR in chunk size line"),
        ("1;\n", "malformed: control character in chunk extension"),
        ("1;a\0\r\n", "malformed: control character in chunk extension"),
        ("1;\rb\r\n", "malformed: bare CR in chunk size line"),
        ("1\r\nab\r\n", "body a; malformed: chunk longer than its size"),
        ("1\r\na\n", "body a; malformed: chunk longer than its size"),
        ("1\r\na\r\r", "body a; malformed: chunk longer than its size"),
        ("1\r\na0\r\n\r\n", "body a; malformed: chunk longer than its size"),
        ("0\r\nA b\r\n\r\n", "malformed: white space in or after a field name"),
        ("0\r\n\n", "malformed: bare LF"),
        ("0\r\nHTTP/1.1 200 OK\r\n\r\n", "malformed: invalid field name"),
        ("0\r\n\r\nx", "done keep-alive; malformed: a response without a request"),
    ] {
        check(GET, format!("{H}{body}").as_bytes(), &format!("{SEEN}{expected}"));
    }
}

#[test]
fn the_last_coding_decides() {
    check_all(
        GET,
        &[
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, CHUNKED\r\n\r\n0\r\n\r\n",
                "200 Http11 Chunked keep-alive Transfer-Encoding=gzip, CHUNKED; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "200 Http11 Chunked keep-alive Transfer-Encoding=gzip Transfer-Encoding=chunked; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked ,\r\n\r\n0\r\n\r\n",
                "200 Http11 Chunked keep-alive Transfer-Encoding=, chunked ,; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
                "200 Http11 UntilClose close Transfer-Encoding=gzip; body abc; done at close",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nabc",
                "200 Http11 UntilClose close Transfer-Encoding=xchunked; body abc; done at close",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\nabc",
                "200 Http11 UntilClose close Transfer-Encoding=chunked;q=1; body abc; done at close",
            ),
        ],
    );
}

#[test]
fn without_a_length_the_close_ends_the_body() {
    check_all(
        GET,
        &[
            ("HTTP/1.1 200 OK\r\n\r\nabc", "200 Http11 UntilClose close; body abc; done at close"),
            ("HTTP/1.1 200 OK\r\n\r\n", "200 Http11 UntilClose close; done at close"),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc",
                "200 Http10 UntilClose close Connection=keep-alive; body abc; done at close",
            ),
        ],
    );
}

#[test]
fn some_responses_have_no_body_whatever_they_say() {
    check_all(
        HEAD,
        &[
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                "200 Http11 None keep-alive Content-Length=5; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "200 Http11 None keep-alive Transfer-Encoding=chunked; done keep-alive; idle",
            ),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "404 Http11 None keep-alive; done keep-alive; idle"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                "200 Http11 None keep-alive Content-Length=x; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
                "200 Http11 None keep-alive Content-Length=1; done keep-alive; malformed: a response without a request",
            ),
        ],
    );
    check_all(
        GET,
        &[
            ("HTTP/1.1 204 No Content\r\n\r\n", "204 Http11 None keep-alive; done keep-alive; idle"),
            (
                "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n",
                "204 Http11 None keep-alive Content-Length=3; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
                "304 Http11 None keep-alive Content-Length=3; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
                "205 Http11 Length(0) keep-alive Content-Length=0; done keep-alive; idle",
            ),
        ],
    );
    check_all(
        CONNECT,
        &[
            (
                "HTTP/1.1 200 Connection established\r\n\r\n",
                "200 Http11 None keep-alive; done keep-alive; idle",
            ),
            (
                "HTTP/1.0 200 Connection established\r\n\r\n",
                "200 Http10 None keep-alive; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                "200 Http11 None keep-alive Content-Length=3 Transfer-Encoding=chunked; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 502 No\r\nContent-Length: 1\r\n\r\nx",
                "502 Http11 Length(1) keep-alive Content-Length=1; body x; done keep-alive; idle",
            ),
        ],
    );
}

#[test]
fn interim_responses_precede_the_final_one() {
    check_all(
        GET,
        &[
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 \r\n\r\n",
                "interim 100; interim 103; 204 Http11 None keep-alive; done keep-alive; idle",
            ),
            (
                "HTTP/1.1 102 \r\nContent-Length: 4\r\n\r\nHTTP/1.1 204 \r\n\r\n",
                "interim 102; 204 Http11 None keep-alive; done keep-alive; idle",
            ),
            ("HTTP/1.1 100 Continue\r\n\r\n", "interim 100; error: closed inside a message"),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "error: unsupported: switch of protocols"),
        ],
    );
}

#[test]
fn connection_options_decide_about_reuse() {
    for (version, field, expected) in [
        ("1.1", "X: y", "keep-alive"),
        ("1.1", "Connection: close", "close"),
        ("1.1", "connection: Keep-Alive, CLOSE", "close"),
        ("1.1", "Connection: x\r\nConnection: close", "close"),
        ("1.1", "Connection: closed", "keep-alive"),
        ("1.1", "Connection: x,,close", "close"),
        ("1.1", "Proxy-Connection: close", "keep-alive"),
        ("1.0", "X: y", "close"),
        ("1.0", "Connection: KEEP-alive", "keep-alive"),
        ("1.0", "Connection: keep-alive\r\nConnection: close", "close"),
        ("1.2", "X: y", "keep-alive"),
        ("1.9", "X: y", "keep-alive"),
    ] {
        let input = format!("HTTP/{version} 200 OK\r\n{field}\r\nContent-Length: 0\r\n\r\n");
        let seen = same_however_cut(input.as_bytes(), |pieces| {
            drive::responses(GET, pieces.iter().copied(), Limits::default())
        });
        assert!(seen.ends_with(&format!("done {expected}; idle")), "{input}: {seen}");
    }
}

#[test]
fn the_keep_alive_hint_is_read() {
    for (value, expected) in [
        ("timeout=5, max=100", "Some(5) Some(100)"),
        ("max=1", "None Some(1)"),
        ("TIMEOUT = 60", "Some(60) None"),
        ("timeout=x", "None None"),
        ("timeout=99999999999", "None None"),
        ("timeout=5\r\nKeep-Alive: max=7", "Some(5) Some(7)"),
        ("300", "None None"),
    ] {
        let input = format!("HTTP/1.1 204 \r\nKeep-Alive: {value}\r\n\r\n");
        let seen = same_however_cut(input.as_bytes(), |pieces| {
            drive::responses(GET, pieces.iter().copied(), Limits::default())
        });
        assert!(seen.contains(&format!(" hint {expected};")), "{input}: {seen}");
    }
}

#[test]
fn a_status_line_has_its_grammar() {
    for line in [
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 ",
        "HTTP/1.1 200",
        "HTTP/1.1 200 Tr\u{e8}s\tbien  ",
        "HTTP/1.7 200 OK",
        "HTTP/1.1 999 x",
        "HTTP/1.1 200  ",
    ] {
        let input = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        let seen = same_however_cut(input.as_bytes(), |pieces| {
            drive::responses(GET, pieces.iter().copied(), Limits::default())
        });
        assert!(seen.ends_with("; done keep-alive; idle"), "{input}: {seen}");
    }
    check_all(
        GET,
        &[
            ("HTTP/2.0 200 OK\r\n", "error: unsupported HTTP version"),
            ("HTTP/0.9 200 OK\r\n", "error: unsupported HTTP version"),
            ("HTTP/2 200 OK\r\n\r\n", "malformed: invalid HTTP version"),
            ("HTTP/1.10 200 OK\r\n", "malformed: invalid status code"),
            ("HTTP/1,1 200 OK\r\n", "malformed: invalid HTTP version"),
            ("HTTP/1.x 200 OK\r\n", "malformed: invalid HTTP version"),
            ("HTTP/1.1\r\n\r\n", "malformed: line cut short"),
            ("HTTP/1.1 \r\n\r\n", "malformed: line cut short"),
            ("HTTP/1.1 20\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 099 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 2x0 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 +20 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1  200 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1\t200 OK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 200\tOK\r\n\r\n", "malformed: invalid status code"),
            ("HTTP/1.1 200 OK\n\r\n", "malformed: bare LF"),
            ("HTTP/1.1 200 O\rK\r\n\r\n", "malformed: bare CR"),
            ("HTTP/1.1 200 O\0K\r\n\r\n", "malformed: control character"),
            ("\r\nHTTP/1.1 200 OK\r\n\r\n", "malformed: not an HTTP response"),
            ("http/1.1 200 OK\r\n\r\n", "malformed: not an HTTP response"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "malformed: not an HTTP response"),
            ("HTTPS", "malformed: not an HTTP response"),
        ],
    );
    check(GET, b"\x15\x03\x01\x00\x02\x02\x28", "malformed: not an HTTP response");
    check(GET, b"\x00\x00\x12\x04\x00\x00", "malformed: not an HTTP response");
}

#[test]
fn a_field_line_has_its_grammar() {
    for (lines, expected) in [
        ("Na me: v", "white space in or after a field name"),
        ("Name : v", "white space in or after a field name"),
        ("Name\t: v", "white space in or after a field name"),
        ("Name", "field line without a colon"),
        (": v", "field without a name"),
        (" Name: v", "folded field line"),
        ("A: b\r\n c", "folded field line"),
        ("A: b\r\n\tc", "folded field line"),
        ("N\u{e4}me: v", "invalid field name"),
        ("Na\0me: v", "invalid field name"),
        ("Na(me: v", "invalid field name"),
        ("Na@me: v", "invalid field name"),
        ("Na\rme: v", "field line without a colon"),
        ("Name: v\0", "control character"),
        ("Name: v\u{7f}", "control character"),
        ("Name: \u{b}v", "control character"),
        ("Name: v\rw", "bare CR"),
        ("Name: v\r", "bare CR"),
        ("Name: v\nOther: w", "bare LF"),
        ("Name: v\n", "bare LF"),
        ("\nName: v", "bare LF"),
        ("\rName: v", "bare CR"),
    ] {
        let input = format!("HTTP/1.1 204 \r\n{lines}\r\n\r\n");
        check(GET, input.as_bytes(), &format!("malformed: {expected}"));
    }
    check(
        GET,
        b"HTTP/1.1 204 \r\nA:\r\nb: \t \r\nC:d:e\r\n!#$%&'*+-.^_`|~09: \xff\x80 \t x\t\r\n\r\n",
        r"204 Http11 None keep-alive A= b= C=d:e !#$%&\'*+-.^_`|~09=\xff\x80 \t x; done keep-alive; idle",
    );
}

#[test]
fn closes_are_told_apart() {
    check_all(
        GET,
        &[
            ("", "error: closed before the response"),
            ("H", "error: closed inside a message"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", "error: closed inside a message"),
        ],
    );
    check_all(
        &[],
        &[
            ("", "idle"),
            ("x", "malformed: a response without a request"),
            ("HTTP/1.1 408 x\r\n\r\n", "malformed: a response without a request"),
        ],
    );
}

#[test]
fn responses_follow_one_another() {
    let requests = [RequestKind::Other, RequestKind::Head, RequestKind::Other, RequestKind::Other];
    check(
        &requests,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
          HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\
          HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n\
          HTTP/1.1 200 OK\r\n\r\nd",
        "200 Http11 Length(2) keep-alive Content-Length=2; body ab; done keep-alive; \
         200 Http11 None keep-alive Content-Length=2; done keep-alive; \
         200 Http11 Chunked keep-alive Transfer-Encoding=chunked; body c; trailers T=u; done keep-alive; \
         200 Http11 UntilClose close; body d; done at close",
    );
}

#[test]
fn a_response_in_one_piece_is_one_event() {
    let mut decoder = ResponseDecoder::new(Limits::default());
    let input = b"HTTP/1.1 200 OK\r\nServer-Timing: app;dur=1.5\r\nContent-Length: 2\r\n\r\nabX";
    decoder.expect(RequestKind::Other);
    let (used, event) = decoder.decode(input).unwrap();
    let ResponseEvent::Full { head, body } = event else { panic!("expected Full, found {event:?}") };
    assert_eq!((used, body), (input.len() - 1, &b"ab"[..]));
    assert_eq!(head.header("server-timing"), Some(&b"app;dur=1.5"[..]));
    assert_eq!(header(head.raw, "SERVER-TIMING"), head.header("Server-Timing"));
    assert_eq!((head.header("server"), header(b"", "a"), header(b"x", "a")), (None, None, None));
}

#[test]
fn a_decoder_is_small_and_keeps_nothing_between_responses() {
    assert!(size_of::<ResponseDecoder>() <= 100, "{} bytes", size_of::<ResponseDecoder>());
    let mut decoder = ResponseDecoder::new(Limits::default());
    decoder.expect(RequestKind::Other);
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    assert!(matches!(decoder.decode(&input[..20]), Ok((20, ResponseEvent::NeedMore))));
    assert_eq!(decoder.buffered_bytes(), 20);
    assert!(matches!(decoder.decode(&input[20..]), Ok((18, ResponseEvent::Head(_)))));
    assert!(matches!(decoder.decode(&input[38..]), Ok((2, ResponseEvent::Body(b"ab")))));
    assert_eq!(decoder.buffered_bytes(), 0);
    assert!(matches!(decoder.decode(b""), Ok((0, ResponseEvent::Done { keep_alive: true }))));
    assert!(decoder.is_idle());
}
