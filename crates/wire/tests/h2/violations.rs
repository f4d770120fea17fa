//! What a peer may not do, and whether it costs the stream or the connection. Sections are those of RFC 9113 and RFC 7541.

use weir_wire::h2::{Config, Event, PREFACE, Release, Server};

use crate::bytes::*;
use crate::drive::{self, Log};
use crate::splits::same_however_cut;

/// `connection CODE`, `stream ID CODE`, or `fine`; holds the log to having written what it says.
fn verdict(log: &Log) -> String {
    let frames = drive::frames(&log.out);
    if let Some((code, _)) = log.failed {
        assert!(frames.contains("GOAWAY") && frames.ends_with(&code.to_string()), "{frames}");
        return format!("connection {code}");
    }
    assert!(!frames.contains("GOAWAY"), "{frames}");
    match log.stream_errors[..] {
        [] => "fine".into(),
        [(stream, code, _), ..] => {
            assert!(frames.contains(&format!("RST_STREAM {stream} {code}")), "{frames}");
            format!("stream {stream} {code}")
        }
    }
}

fn check_server(name: &str, input: &[Vec<u8>], expected: &str) {
    let input = [&PREFACE[..], &settings(&[]), &input.concat()].concat();
    let log = same_however_cut(&input, |pieces| drive::server(pieces.iter().copied(), Config::SERVER));
    assert_eq!(verdict(&log), expected, "{name}: {} | {}", log.text, drive::frames(&log.out));
}

fn check_client(name: &str, input: &[Vec<u8>], expected: &str) {
    let input = [settings(&[]), input.concat()].concat();
    let log = same_however_cut(&input, |pieces| drive::client(pieces.iter().copied(), Config::CLIENT));
    assert_eq!(verdict(&log), expected, "{name}: {} | {}", log.text, drive::frames(&log.out));
}

/// A request whose content follows.
fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, POST)
}

/// A whole request: the stream is half closed at the server.
fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream, GET)
}

fn block(block: impl AsRef<[u8]>) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, block)
}

const PROTOCOL: &str = "connection PROTOCOL_ERROR";
const SIZE: &str = "connection FRAME_SIZE_ERROR";
const FLOW: &str = "connection FLOW_CONTROL_ERROR";
const COMPRESSION: &str = "connection COMPRESSION_ERROR";
const CLOSED: &str = "connection STREAM_CLOSED";
const MALFORMED: &str = "stream 1 PROTOCOL_ERROR";

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    for (name, input, expected) in [
        ("3.4 another protocol", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), PROTOCOL),
        ("3.4 one byte differs", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx".to_vec(), PROTOCOL),
        ("3.4 no SETTINGS", [&PREFACE[..], &frame(PING, 0, 0, [0; 8])].concat(), PROTOCOL),
        ("3.4 an ACK is no introduction", [&PREFACE[..], &frame(SETTINGS, ACK, 0, [])].concat(), PROTOCOL),
    ] {
        let log = same_however_cut(&input, |pieces| drive::server(pieces.iter().copied(), Config::SERVER));
        assert_eq!(verdict(&log), expected, "{name}");
    }
    let log = same_however_cut(&frame(HEADERS, WHOLE, 1, OK), |pieces| {
        drive::client(pieces.iter().copied(), Config::CLIENT)
    });
    assert_eq!(verdict(&log), PROTOCOL, "3.4 a server that does not introduce itself");
}

#[test]
fn frames_that_no_state_allows_cost_the_connection() {
    for (name, input, expected) in [
        (
            "4.1 unknown kinds are ignored",
            vec![frame(0x16, 0xff, 0, b"whatever"), frame(0xff, 0, 9, [])],
            "fine",
        ),
        ("4.1 the reserved bit is ignored", vec![frame(HEADERS, WHOLE, 0x8000_0001, GET)], "fine"),
        ("4.1 unknown flags are ignored", vec![frame(PING, 0xf6, 0, [0; 8])], "fine"),
        ("4.2 DATA above the size", vec![post(1), frame(DATA, 0, 1, vec![0; 16_385])], SIZE),
        ("4.2 HEADERS above the size", vec![frame(HEADERS, WHOLE, 1, vec![0; 16_385])], SIZE),
        ("4.2 an unknown frame above the size", vec![frame(0x20, 0, 1, vec![0; 16_385])], SIZE),
        (
            "4.3 a frame inside a block",
            vec![frame(HEADERS, 0, 1, GET), frame(PRIORITY, 0, 1, [0; 5])],
            PROTOCOL,
        ),
        ("4.3 a stream inside a block", vec![frame(HEADERS, 0, 1, GET), get(3)], PROTOCOL),
        (
            "4.3 an unknown frame inside a block",
            vec![frame(HEADERS, 0, 1, GET), frame(0x20, 0, 1, [])],
            PROTOCOL,
        ),
        ("5.1 idle: DATA", vec![frame(DATA, END_STREAM, 1, b"a")], PROTOCOL),
        ("5.1 idle: RST_STREAM", vec![rst_stream(1, 8)], PROTOCOL),
        ("5.1 idle: WINDOW_UPDATE", vec![window_update(1, 100)], PROTOCOL),
        ("5.1 idle: CONTINUATION", vec![frame(CONTINUATION, END_HEADERS, 1, GET)], PROTOCOL),
        ("5.1 idle: PRIORITY", vec![frame(PRIORITY, 0, 1, [0, 0, 0, 3, 9])], "fine"),
        ("5.1 half closed: WINDOW_UPDATE", vec![get(1), window_update(1, 100)], "fine"),
        ("5.1 half closed: PRIORITY", vec![get(1), frame(PRIORITY, 0, 1, [0, 0, 0, 3, 9])], "fine"),
        ("5.1 half closed: DATA", vec![get(1), frame(DATA, END_STREAM, 1, b"a")], "stream 1 STREAM_CLOSED"),
        ("5.1 half closed: HEADERS", vec![get(1), get(1)], "stream 1 STREAM_CLOSED"),
        ("5.1 half closed: CONTINUATION", vec![get(1), frame(CONTINUATION, END_HEADERS, 1, GET)], PROTOCOL),
        (
            "5.1 closed by the peer's reset: DATA",
            vec![post(1), rst_stream(1, 8), frame(DATA, 0, 1, b"a")],
            CLOSED,
        ),
        ("5.1 closed by the peer's reset: HEADERS", vec![post(1), rst_stream(1, 8), get(1)], CLOSED),
        (
            "5.1 closed: PRIORITY",
            vec![post(1), rst_stream(1, 8), frame(PRIORITY, 0, 1, [0, 0, 0, 3, 9])],
            "fine",
        ),
        ("5.1 closed: WINDOW_UPDATE", vec![post(1), rst_stream(1, 8), window_update(1, 1)], "fine"),
        ("5.1 closed: RST_STREAM", vec![post(1), rst_stream(1, 8), rst_stream(1, 8)], "fine"),
        ("5.1.1 an even id", vec![get(2)], PROTOCOL),
        ("5.1.1 an id below an earlier one", vec![get(5), get(3)], PROTOCOL),
        ("5.1.1 an id left out is closed, not idle", vec![get(5), window_update(3, 1)], "fine"),
        ("6.1 DATA on stream 0", vec![frame(DATA, 0, 0, b"a")], PROTOCOL),
        ("6.1 more padding than payload", vec![post(1), frame(DATA, PADDED, 1, [5, 1, 2, 3, 4])], PROTOCOL),
        ("6.1 all of it padding", vec![post(1), frame(DATA, PADDED, 1, [4, 1, 2, 3, 4])], "fine"),
        ("6.1 padding of no length", vec![post(1), frame(DATA, PADDED, 1, [])], SIZE),
        ("6.2 HEADERS on stream 0", vec![frame(HEADERS, WHOLE, 0, GET)], PROTOCOL),
        (
            "6.2 more padding than payload",
            vec![frame(HEADERS, WHOLE | PADDED, 1, [[7].as_slice(), GET].concat())],
            PROTOCOL,
        ),
        ("6.2 cut in its priority", vec![frame(HEADERS, WHOLE | PRIO, 1, [0; 4])], SIZE),
        ("6.2 cut before its padding length", vec![frame(HEADERS, WHOLE | PADDED, 1, [])], SIZE),
        ("6.3 PRIORITY on stream 0", vec![frame(PRIORITY, 0, 0, [0, 0, 0, 1, 1])], PROTOCOL),
        (
            "6.3 PRIORITY of a wrong length",
            vec![post(1), frame(PRIORITY, 0, 1, [0; 4])],
            "stream 1 FRAME_SIZE_ERROR",
        ),
        ("6.3 the same on no stream", vec![frame(PRIORITY, 0, 1, [0; 4])], SIZE),
        (
            "5.3.1 a stream that depends on itself",
            vec![post(1), frame(PRIORITY, 0, 1, [0, 0, 0, 1, 1])],
            MALFORMED,
        ),
        (
            "5.3.1 the same in HEADERS",
            vec![frame(HEADERS, WHOLE | PRIO, 1, [&[0, 0, 0, 1, 1], GET].concat())],
            MALFORMED,
        ),
        ("5.3.1 the same before it exists", vec![frame(PRIORITY, 0, 1, [0x80, 0, 0, 1, 1])], PROTOCOL),
        ("6.4 RST_STREAM on stream 0", vec![rst_stream(0, 8)], PROTOCOL),
        ("6.4 RST_STREAM of a wrong length", vec![post(1), frame(RST_STREAM, 0, 1, [0; 3])], SIZE),
        ("6.5 SETTINGS on a stream", vec![frame(SETTINGS, 0, 1, [])], PROTOCOL),
        ("6.5 SETTINGS of a wrong length", vec![frame(SETTINGS, 0, 0, [0; 5])], SIZE),
        ("6.5 ACK with a payload", vec![frame(SETTINGS, ACK, 0, [0; 6])], SIZE),
        ("6.5 ACK out of the blue", vec![frame(SETTINGS, ACK, 0, []), frame(SETTINGS, ACK, 0, [])], "fine"),
        ("6.5.2 ENABLE_PUSH", vec![settings(&[(2, 2)])], PROTOCOL),
        ("6.5.2 ENABLE_PUSH by a client", vec![settings(&[(2, 1)])], "fine"),
        ("6.5.2 INITIAL_WINDOW_SIZE", vec![settings(&[(4, 1 << 31)])], FLOW),
        ("6.5.2 MAX_FRAME_SIZE below", vec![settings(&[(5, 16_383)])], PROTOCOL),
        ("6.5.2 MAX_FRAME_SIZE above", vec![settings(&[(5, 1 << 24)])], PROTOCOL),
        ("6.5.2 MAX_FRAME_SIZE at its ends", vec![settings(&[(5, 16_384), (5, (1 << 24) - 1)])], "fine"),
        ("6.5.2 unknown settings are ignored", vec![settings(&[(0xff, 1), (0, 0)])], "fine"),
        ("6.6 PUSH_PROMISE", vec![get(1), frame(PUSH_PROMISE, END_HEADERS, 1, [0, 0, 0, 2])], PROTOCOL),
        ("6.7 PING on a stream", vec![frame(PING, 0, 1, [0; 8])], PROTOCOL),
        ("6.7 PING of a wrong length", vec![frame(PING, 0, 0, [0; 7])], SIZE),
        ("6.8 GOAWAY on a stream", vec![frame(GOAWAY, 0, 1, [0; 8])], PROTOCOL),
        ("6.8 GOAWAY too short", vec![frame(GOAWAY, 0, 0, [0; 7])], SIZE),
        ("6.8 GOAWAY with an unknown code", vec![goaway(0, 0xff)], "fine"),
        ("6.9 WINDOW_UPDATE of zero", vec![window_update(0, 0)], PROTOCOL),
        ("6.9 the same on a stream", vec![post(1), window_update(1, 0)], MALFORMED),
        ("6.9 WINDOW_UPDATE of a wrong length", vec![frame(WINDOW_UPDATE, 0, 0, [0; 3])], SIZE),
        ("6.9.1 a window of 2^31", vec![window_update(0, 0x7fff_ffff)], FLOW),
        ("6.9.1 a window of 2^31 - 1", vec![window_update(0, 0x7fff_ffff - 65_535)], "fine"),
        (
            "6.9.1 the same on a stream",
            vec![post(1), window_update(1, 0x7fff_ffff)],
            "stream 1 FLOW_CONTROL_ERROR",
        ),
        (
            "6.9.2 a setting takes a window above",
            vec![post(1), window_update(1, 0x7fff_0000), settings(&[(4, 0x1_0000)])],
            FLOW,
        ),
        (
            "6.10 CONTINUATION on another stream",
            vec![frame(HEADERS, 0, 1, GET), frame(CONTINUATION, 4, 3, [])],
            PROTOCOL,
        ),
        (
            "6.10 CONTINUATION on stream 0",
            vec![frame(HEADERS, 0, 1, GET), frame(CONTINUATION, 4, 0, [])],
            PROTOCOL,
        ),
        ("6.10 CONTINUATION after the end", vec![get(1), frame(CONTINUATION, 4, 1, [])], PROTOCOL),
        (
            "6.10 CONTINUATION after DATA",
            vec![post(1), frame(DATA, 0, 1, b"a"), frame(CONTINUATION, 4, 1, [])],
            PROTOCOL,
        ),
        (
            "6.10 as many as there are",
            vec![
                frame(HEADERS, END_STREAM, 1, &GET[..2]),
                frame(CONTINUATION, 0, 1, []),
                frame(CONTINUATION, 4, 1, &GET[2..]),
            ],
            "fine",
        ),
    ] {
        check_server(name, &input, expected);
    }
}

#[test]
fn malformed_requests_cost_the_stream() {
    for (name, input, expected) in [
        ("8.2.1 capitals in a name", block(with(GET, "X-a", "b")), MALFORMED),
        ("8.2.1 white space in a name", block(with(GET, "x a", "b")), MALFORMED),
        ("8.2.1 an empty name", block(with(GET, "", "b")), MALFORMED),
        ("8.2.1 a colon in a name", block(with(GET, "x:y", "b")), MALFORMED),
        ("8.2.1 a line end in a value", block(with(GET, "x", "a\r\nb: c")), MALFORMED),
        ("8.2.1 a NUL in a value", block(with(GET, "x", "a\0")), MALFORMED),
        ("8.2.1 white space before a value", block(with(GET, "x", " a")), MALFORMED),
        ("8.2.1 white space after a value", block(with(GET, "x", "a\t")), MALFORMED),
        ("8.2.1 an empty value", block(with(GET, "x", "")), "fine"),
        ("8.2.1 obs-text in a value", block(with(GET, "x", "ä b")), "fine"),
        ("8.2.2 connection", block(with(GET, "connection", "keep-alive")), MALFORMED),
        ("8.2.2 keep-alive", block(with(GET, "keep-alive", "timeout=1")), MALFORMED),
        ("8.2.2 proxy-connection", block(with(GET, "proxy-connection", "x")), MALFORMED),
        ("8.2.2 transfer-encoding", block(with(GET, "transfer-encoding", "chunked")), MALFORMED),
        ("8.2.2 transfer-encoding by its index", block([GET, &[0x0f, 42, 1, b'x']].concat()), MALFORMED),
        ("8.2.2 upgrade", block(with(GET, "upgrade", "h2c")), MALFORMED),
        ("8.2.2 te", block(with(GET, "te", "gzip")), MALFORMED),
        ("8.2.2 te: trailers", block(with(GET, "te", "trailers")), "fine"),
        ("8.3 an unknown pseudo-header field", block(with(GET, ":x", "y")), MALFORMED),
        ("8.3 a response's pseudo-header field", block([GET, OK].concat()), MALFORMED),
        ("8.3 :protocol, which was not announced", block(with(GET, ":protocol", "websocket")), MALFORMED),
        ("8.3 a pseudo-header field after a field", block([&literal("x", "y"), GET].concat()), MALFORMED),
        ("8.3.1 :method missing", block(&GET[1..]), MALFORMED),
        ("8.3.1 :scheme missing", block([0x82, 0x84]), MALFORMED),
        ("8.3.1 :path missing", block([0x82, 0x86]), MALFORMED),
        ("8.3.1 :authority missing", block([0x82, 0x86, 0x84]), "fine"),
        ("8.3.1 nothing at all", block([]), MALFORMED),
        ("8.3.1 :method twice", block([&[0x82], GET].concat()), MALFORMED),
        ("8.3.1 :scheme twice", block([&[0x86], GET].concat()), MALFORMED),
        ("8.3.1 :path twice", block([&[0x84], GET].concat()), MALFORMED),
        ("8.3.1 :authority twice", block([GET, &[0x01, 1, b'a']].concat()), MALFORMED),
        ("8.3.1 an empty :path", block([0x82, 0x86, 0x04, 0]), MALFORMED),
        ("8.3.1 an empty :method", block([0x02, 0, 0x86, 0x84]), MALFORMED),
        ("8.3.1 an empty :authority", block([0x82, 0x86, 0x84, 0x01, 0]), MALFORMED),
        ("8.5 CONNECT", block([[0x02, 7].as_slice(), b"CONNECT", &[0x01, 1, b'a']].concat()), "fine"),
        (
            "8.5 CONNECT with a path",
            block([[0x02, 7].as_slice(), b"CONNECT", &[0x01, 1, b'a', 0x84]].concat()),
            MALFORMED,
        ),
        ("8.5 CONNECT to nobody", block([[0x02, 7].as_slice(), b"CONNECT"].concat()), MALFORMED),
        ("8.1.1 a length of something", block(with(GET, "content-length", "1")), MALFORMED),
        ("8.1.1 a length of nothing", block(with(GET, "content-length", "0")), "fine"),
        ("8.1.1 no length", block(with(GET, "content-length", "x")), MALFORMED),
        (
            "8.1.1 two lengths",
            block(with(&with(GET, "content-length", "0"), "content-length", "1")),
            MALFORMED,
        ),
        (
            "8.1.1 the same length twice",
            block(with(&with(GET, "content-length", "0"), "content-length", "0")),
            "fine",
        ),
    ] {
        check_server(name, &[input], expected);
    }
}

#[test]
fn content_and_trailers_that_break_the_rules_cost_the_stream() {
    let two = || frame(HEADERS, END_HEADERS, 1, with(POST, "content-length", "2"));
    for (name, input, expected) in [
        ("8.1 a second head", vec![post(1), frame(HEADERS, END_HEADERS, 1, literal("x", "y"))], MALFORMED),
        ("8.1 trailers", vec![post(1), frame(HEADERS, WHOLE, 1, literal("x", "y"))], "fine"),
        ("8.1 empty trailers", vec![post(1), frame(HEADERS, WHOLE, 1, [])], "fine"),
        ("8.1 pseudo-header fields in trailers", vec![post(1), frame(HEADERS, WHOLE, 1, [0x82])], MALFORMED),
        ("8.1 capitals in trailers", vec![post(1), frame(HEADERS, WHOLE, 1, literal("X", "y"))], MALFORMED),
        (
            "8.1.1 as long as said",
            vec![two(), frame(DATA, 0, 1, b"a"), frame(DATA, END_STREAM, 1, b"b")],
            "fine",
        ),
        (
            "8.1.1 as long as said, padded",
            vec![two(), frame(DATA, END_STREAM | PADDED, 1, b"\x02abxx")],
            "fine",
        ),
        ("8.1.1 shorter", vec![two(), frame(DATA, END_STREAM, 1, b"a")], MALFORMED),
        (
            "8.1.1 shorter by an empty end",
            vec![two(), frame(DATA, 0, 1, b"a"), frame(DATA, END_STREAM, 1, [])],
            MALFORMED,
        ),
        ("8.1.1 shorter before trailers", vec![two(), frame(HEADERS, WHOLE, 1, [])], MALFORMED),
        ("8.1.1 longer", vec![two(), frame(DATA, 0, 1, b"abc")], MALFORMED),
        (
            "8.1.1 longer in the end",
            vec![two(), frame(DATA, 0, 1, b"ab"), frame(DATA, END_STREAM, 1, b"c")],
            MALFORMED,
        ),
    ] {
        check_server(name, &input, expected);
    }
}

#[test]
fn what_is_sent_on_a_stream_that_we_reset_is_ignored() {
    let malformed = || frame(HEADERS, END_HEADERS, 1, with(POST, "X", "y"));
    for (name, more) in [
        ("DATA", frame(DATA, 0, 1, b"abc")),
        ("padded DATA", frame(DATA, PADDED | END_STREAM, 1, [1, 2, 3])),
        ("trailers", frame(HEADERS, WHOLE, 1, [])),
        ("WINDOW_UPDATE", window_update(1, 1)),
        ("RST_STREAM", rst_stream(1, 8)),
        ("PRIORITY", frame(PRIORITY, 0, 1, [0, 0, 0, 3, 1])),
    ] {
        check_server(name, &[malformed(), more, get(3)], MALFORMED);
    }
}

#[test]
fn blocks_that_are_no_hpack_cost_the_connection() {
    let huffman = |coded: &[u8]| [GET, &[0, 1, b'x', 0x80 | coded.len() as u8], coded].concat();
    for (name, input) in [
        ("2.3.3 an index beyond the table", vec![0xbe]),
        ("2.3.3 a name beyond the table", vec![0x7f, 0]),
        ("4.2 a size update after a field", [GET, &[0x20]].concat()),
        ("5.1 an integer without end", vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ("5.1 an integer cut off", vec![0xff]),
        ("5.2 a string beyond the block", vec![0x40, 3, b'a']),
        ("5.2 a string cut off", vec![0x40]),
        ("5.2 a value cut off", vec![0x40, 1, b'a']),
        ("5.2 padding of eight bits", huffman(&[0x1f, 0xff])),
        ("5.2 padding of zeros", huffman(&[0x18])),
        ("5.2 EOS", huffman(&[0xff, 0xff, 0xff, 0xff])),
        ("6.1 index 0", vec![0x80]),
        ("6.3 a table above the limit", vec![0x3f, 0xe2, 0x1f]),
    ] {
        check_server(name, &[block(&input)], COMPRESSION);
        let trailing = [frame(HEADERS, END_HEADERS, 1, OK), frame(HEADERS, WHOLE, 1, &input)];
        if !name.starts_with("5.2 padding") && !name.starts_with("5.2 EOS") && !input.starts_with(GET) {
            check_client(name, &trailing, COMPRESSION);
        }
    }
}

#[test]
fn a_server_can_break_the_rules_too() {
    let head = |flags: u8, block: &[u8]| frame(HEADERS, flags, 1, block);
    for (name, input, expected) in [
        ("5.1 HEADERS on an idle stream", vec![frame(HEADERS, WHOLE, 9, OK)], PROTOCOL),
        ("5.1 HEADERS on an even stream", vec![frame(HEADERS, WHOLE, 2, OK)], PROTOCOL),
        ("5.1 DATA on an idle stream", vec![frame(DATA, 0, 9, b"a")], PROTOCOL),
        ("5.1 RST_STREAM on an idle stream", vec![rst_stream(9, 0)], PROTOCOL),
        ("5.1 WINDOW_UPDATE on an idle stream", vec![window_update(9, 1)], PROTOCOL),
        ("5.1 HEADERS on a closed stream", vec![head(WHOLE, OK), head(WHOLE, OK)], CLOSED),
        ("5.1 DATA on a closed stream", vec![head(WHOLE, OK), frame(DATA, 0, 1, b"a")], CLOSED),
        (
            "5.1 DATA after the end",
            vec![frame(HEADERS, WHOLE, 7, OK), frame(DATA, 0, 7, b"a")],
            "stream 7 STREAM_CLOSED",
        ),
        ("5.1 RST_STREAM on a closed stream", vec![head(WHOLE, OK), rst_stream(1, 0)], "fine"),
        ("5.1 DATA before the head", vec![frame(DATA, 0, 1, b"a")], MALFORMED),
        ("6.5.2 ENABLE_PUSH by a server", vec![settings(&[(2, 1)])], PROTOCOL),
        ("6.5.2 no push", vec![settings(&[(2, 0)])], "fine"),
        ("6.6 PUSH_PROMISE", vec![frame(PUSH_PROMISE, END_HEADERS, 1, [0, 0, 0, 2, 0x82])], PROTOCOL),
        ("8.3.2 :status missing", vec![head(WHOLE, &literal("x", "y"))], MALFORMED),
        ("8.3.2 a request's pseudo-header field", vec![head(WHOLE, &[0x88, 0x82])], MALFORMED),
        ("8.3.2 :status twice", vec![head(WHOLE, &[0x88, 0x88])], MALFORMED),
        ("8.3.2 a status of two digits", vec![head(WHOLE, &literal(":status", "20"))], MALFORMED),
        ("8.3.2 a status of letters", vec![head(WHOLE, &literal(":status", "2xx"))], MALFORMED),
        ("8.3.2 a status below 100", vec![head(WHOLE, &literal(":status", "099"))], MALFORMED),
        ("8.1 an interim response that ends", vec![head(WHOLE, &literal(":status", "103"))], MALFORMED),
        ("8.6 101", vec![head(END_HEADERS, &literal(":status", "101"))], MALFORMED),
        (
            "8.1 interim responses",
            vec![head(4, &literal(":status", "103")), head(4, &literal(":status", "100")), head(5, OK)],
            "fine",
        ),
        ("8.1 a second head", vec![head(END_HEADERS, OK), head(END_HEADERS, OK)], MALFORMED),
        ("8.2.2 connection", vec![head(WHOLE, &with(OK, "connection", "close"))], MALFORMED),
        (
            "8.1.1 shorter",
            vec![head(4, &with(OK, "content-length", "2")), frame(DATA, 1, 1, b"a")],
            MALFORMED,
        ),
        (
            "8.1.1 longer",
            vec![head(4, &with(OK, "content-length", "2")), frame(DATA, 1, 1, b"abc")],
            MALFORMED,
        ),
        ("8.1.1 nothing of something", vec![head(WHOLE, &with(OK, "content-length", "2"))], MALFORMED),
        ("8.1.1 304 with a length", vec![head(WHOLE, &with(&[0x8b], "content-length", "2"))], "fine"),
        ("8.1.1 the answer to HEAD", vec![frame(HEADERS, WHOLE, 5, with(OK, "content-length", "2"))], "fine"),
        (
            "8.1.1 content in answer to HEAD",
            vec![frame(HEADERS, 4, 5, OK), frame(DATA, 1, 5, b"a")],
            "stream 5 PROTOCOL_ERROR",
        ),
        ("8.1.1 content of 204", vec![head(4, &[0x89]), frame(DATA, 1, 1, b"a")], MALFORMED),
        ("8.1.1 an empty end of 204", vec![head(4, &[0x89]), frame(DATA, 1, 1, [])], "fine"),
        ("6.8 a stream that GOAWAY gave up", vec![goaway(1, 0), frame(HEADERS, WHOLE, 3, OK)], "fine"),
        ("6.8 GOAWAY that takes back another", vec![goaway(1, 0), goaway(3, 0)], "fine"),
        ("6.9.1 a window of 2^31", vec![window_update(0, 0x7fff_ffff)], FLOW),
    ] {
        check_client(name, &input, expected);
    }
}

#[test]
fn more_than_a_window_is_refused() {
    let small = Config { stream_window: 10, connection_window: 65_535, ..Config::SERVER };
    let ack = frame(SETTINGS, ACK, 0, []);
    let start = [&PREFACE[..], &settings(&[])].concat();
    let check = |input: &[Vec<u8>], expected: &str| {
        let log = drive::server([&[start.clone(), input.concat()].concat()[..]], small);
        assert_eq!(verdict(&log), expected, "{}", log.text);
    };
    check(&[ack.clone(), post(1), frame(DATA, 0, 1, [0; 11])], "stream 1 FLOW_CONTROL_ERROR");
    check(&[ack.clone(), post(1), frame(DATA, 0, 1, [0; 10])], "fine");
    check(&[ack.clone(), post(1), frame(DATA, 0, 1, [0; 10]), frame(DATA, 0, 1, [0; 10])], "fine");
    // A client that does not know of the setting yet may use the initial window.
    check(&[post(1), frame(DATA, 0, 1, [0; 11]), ack.clone()], "fine");
    let by_caller = Config { release: Release::ByCaller, ..small };
    for (first, second, expected) in [(9, 1, "fine"), (10, 1, "stream 1 FLOW_CONTROL_ERROR")] {
        let content = [vec![0; first], vec![0; second]].map(|bytes| frame(DATA, 0, 1, bytes)).concat();
        let log = drive::server([&[&start[..], &ack, &post(1), &content].concat()[..]], by_caller);
        assert_eq!(verdict(&log), expected, "{first} and {second}");
    }
    let roomy = Config { stream_window: 1 << 20, ..by_caller };
    let flood = [start, post(1), vec![frame(DATA, 0, 1, [0; 16_384]); 4].concat()].concat();
    assert_eq!(verdict(&drive::server([&flood[..]], roomy)), FLOW);
}

#[test]
fn a_peer_may_use_every_byte_of_what_it_was_granted_and_not_one_more() {
    const WINDOW: usize = 65_535;
    for (stream_window, expected) in [(1 << 20, FLOW), (65_535, "stream 1 FLOW_CONTROL_ERROR")] {
        let connection_window = if stream_window == 65_535 { 1 << 20 } else { 65_535 };
        let config =
            Config { stream_window, connection_window, release: Release::ByCaller, ..Config::SERVER };
        let mut out = Vec::new();
        let mut server = Server::new(config, &mut out);
        let mut pass = |input: &[u8], release: usize| {
            let mut out = Vec::new();
            let mut input = input;
            let verdict = loop {
                match server.next(input, &mut out) {
                    Ok((_, Event::NeedMore)) => break "fine".into(),
                    Ok((_, Event::Reset { stream, code, .. })) => break format!("stream {stream} {code}"),
                    Ok((used, _)) => input = &input[used..],
                    Err(error) => break format!("connection {}", error.code),
                }
            };
            server.release(1, release, &mut out);
            (verdict, drive::frames(&out))
        };
        pass(&[&PREFACE[..], &settings(&[]), &frame(SETTINGS, ACK, 0, []), &post(1)].concat(), 0);
        let all = vec![frame(DATA, 0, 1, [0; 13_107]); 5].concat();
        let granted = format!("WINDOW_UPDATE {} {WINDOW}", u8::from(stream_window == 65_535));
        for _ in 0..3 {
            assert_eq!(pass(&all, WINDOW), ("fine".into(), granted.clone()));
        }
        assert_eq!(pass(&all, 0).0, "fine");
        assert_eq!(pass(&frame(DATA, 0, 1, [0]), 0).0, expected);
    }
}
