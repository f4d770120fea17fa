//! What connections report of valid input.

use weir_wire::h2::{Config, Match, PREFACE, preface};

use crate::bytes::*;
use crate::drive;
use crate::splits::same_however_cut;

fn check_server(input: &[Vec<u8>], expected: &str, expected_out: &str) {
    let input = [&PREFACE[..], &settings(&[]), &input.concat()].concat();
    let log = same_however_cut(&input, |pieces| drive::server(pieces.iter().copied(), Config::SERVER));
    assert_eq!(log.text, ["settings", expected].join(if expected.is_empty() { "" } else { "; " }));
    assert_eq!(
        drive::frames(&log.out),
        format!("SETTINGS; WINDOW_UPDATE 0 16711681; SETTINGS ACK{expected_out}")
    );
}

fn check_client(input: &[Vec<u8>], expected: &str, expected_out: &str) {
    let input = [settings(&[]), input.concat()].concat();
    let log = same_however_cut(&input, |pieces| drive::client(pieces.iter().copied(), Config::CLIENT));
    assert_eq!(log.text, ["settings", expected].join(if expected.is_empty() { "" } else { "; " }));
    let start = "SETTINGS; WINDOW_UPDATE 0 1073676289; HEADERS 1 end; HEADERS 3 end; HEADERS 5 end; HEADERS 7; SETTINGS ACK";
    assert_eq!(drive::frames(&log.out), format!("{start}{expected_out}"));
}

#[test]
fn a_request_is_seen_with_its_content_and_trailers() {
    check_server(&[frame(HEADERS, WHOLE, 1, GET)], "head 1 GET http a / end", "");
    check_server(
        &[
            frame(HEADERS, END_HEADERS, 1, with(&with(POST, "content-length", "7"), "x", "y")),
            frame(DATA, 0, 1, b"abc"),
            frame(DATA, PADDED, 1, b"\x03defxxx"),
            frame(DATA, END_STREAM, 1, b"g"),
        ],
        "head 1 POST http a / length 7 content-length=7 x=y; data 1 abcdefg end",
        "",
    );
    check_server(
        &[
            frame(HEADERS, 0, 1, &POST[..3]),
            frame(CONTINUATION, 0, 1, []),
            frame(CONTINUATION, END_HEADERS, 1, &POST[3..]),
            frame(DATA, 0, 1, b"abc"),
            frame(HEADERS, END_STREAM | PADDED, 1, [&[2, 0, 1, b't'][..], &[0, 0]].concat()),
            frame(CONTINUATION, END_HEADERS, 1, [1, b'u']),
        ],
        "head 1 POST http a /; data 1 abc; trailers 1 t=u",
        "",
    );
    check_server(
        &[
            frame(HEADERS, WHOLE | PRIO | PADDED, 3, [&[1, 0, 0, 0, 1, 16][..], GET, &[0]].concat()),
            frame(HEADERS, END_HEADERS, 5, POST),
            frame(DATA, END_STREAM, 5, []),
        ],
        "head 3 GET http a / end; head 5 POST http a /; data 5  end",
        "",
    );
}

#[test]
fn other_frames_are_answered_or_reported() {
    check_server(&[frame(PING, 0, 0, b"12345678")], "", "; PING ACK");
}

#[test]
fn what_a_client_reports_of_frames_without_messages() {
    check_client(
        &[frame(PING, ACK, 0, b"12345678"), settings(&[(3, 7)]), rst_stream(3, 7)],
        "pong 12345678; settings; reset 3 REFUSED_STREAM Peer",
        "; SETTINGS ACK",
    );
    check_client(
        &[goaway(3, 0), frame(HEADERS, WHOLE, 3, OK), goaway(1, 2)],
        "goaway 3 NO_ERROR; reset 5 REFUSED_STREAM GoAway; reset 7 REFUSED_STREAM GoAway; head 3 200 end; \
goaway 1 INTERNAL_ERROR",
        "",
    );
}

#[test]
fn a_response_is_seen_with_its_content_and_trailers() {
    check_client(
        &[
            frame(HEADERS, END_HEADERS, 3, literal(":status", "103")),
            frame(HEADERS, END_HEADERS, 1, with(OK, "content-length", "3")),
            frame(HEADERS, WHOLE, 5, with(&[0x8d], "content-length", "3")),
            frame(DATA, END_STREAM, 1, b"abc"),
            frame(HEADERS, END_HEADERS, 3, [0x8e]),
            frame(DATA, 0, 3, b"de"),
            frame(HEADERS, WHOLE, 3, literal("t", "u")),
        ],
        "interim 3 103; head 1 200 length 3 content-length=3; head 5 404 length 3 content-length=3 end; data 1 abc end; \
head 3 500; data 3 de; trailers 3 t=u",
        "",
    );
}

#[test]
fn the_preface_tells_http_2_from_http_1() {
    for (input, expected) in [
        (&b""[..], Match::NeedMore),
        (b"P", Match::NeedMore),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", Match::NeedMore),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Match::Yes),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", Match::Yes),
        (b"GET / HTTP/1.1\r\n", Match::No),
        (b"POST / HTTP/1.1\r\n", Match::No),
        (b"PRI * HTTP/1.1\r\n", Match::No),
    ] {
        assert_eq!(preface(input), expected, "{}", input.escape_ascii());
    }
}
