//! What is written, and what is held back.

use weir_wire::h2::{
    Client, Config, ErrorCode, Event, Field, Indexing, PreparedHead, Release, RequestError, RequestLine,
    Server, StreamGone,
};

use crate::bytes::*;
use crate::drive;

fn head(method: &[u8]) -> PreparedHead {
    let line = RequestLine { method, scheme: b"http", authority: b"a", path: b"/" };
    PreparedHead::request(line, &[]).unwrap()
}

fn ok() -> PreparedHead {
    PreparedHead::response(200, &[]).unwrap()
}

/// A client that has said hello, and what it wrote is gone.
fn client(settings_of_server: &[(u16, u32)]) -> Client {
    let mut out = Vec::new();
    let mut client = Client::new(Config::CLIENT, &mut out);
    pass(&mut client, &settings(settings_of_server));
    client
}

/// The events of `input` as text, and the frames written.
fn pass(client: &mut Client, mut input: &[u8]) -> String {
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    loop {
        let (used, event) = client.next(input, &mut out).unwrap();
        input = &input[used..];
        match event {
            Event::NeedMore => break,
            Event::WindowOpened(stream) => seen.push(format!("opened {stream:?}")),
            Event::Reset { stream, tag, code, .. } => seen.push(format!("reset {stream} ({tag}) {code}")),
            Event::GoAway { last, .. } => seen.push(format!("goaway {last}")),
            Event::Data { bytes, .. } => seen.push(format!("data {}", bytes.len())),
            _ => {}
        }
    }
    let frames = drive::frames(&out);
    [seen.join("; "), frames].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

fn send(client: &mut Client, stream: u32, bytes: &[u8], end: bool) -> (usize, String) {
    let mut out = Vec::new();
    let sent = client.send_data(stream, bytes, end, &mut out).unwrap();
    (sent, drive::frames(&out))
}

#[test]
fn content_waits_for_the_stream_s_window() {
    let mut client = client(&[(4, 4)]);
    let stream = client.request(&head(b"POST"), &[], false, 9, &mut Vec::new()).unwrap();
    assert_eq!(client.sendable(stream), 4);
    assert_eq!(send(&mut client, stream, b"abcdef", true), (4, "DATA 1 abcd".into()));
    assert_eq!(send(&mut client, stream, b"ef", true), (0, String::new()));
    assert_eq!(pass(&mut client, &window_update(stream, 1)), "opened Some((1, 9))");
    assert_eq!(send(&mut client, stream, b"ef", true), (1, "DATA 1 e".into()));
    assert_eq!(pass(&mut client, &window_update(stream, 10)), "opened Some((1, 9))");
    assert_eq!(send(&mut client, stream, b"f", true), (1, "DATA 1 f end".into()));
    assert_eq!(client.send_data(stream, b"x", true, &mut Vec::new()), Err(StreamGone));
    // Nobody waits any more, so nobody is told.
    assert_eq!(pass(&mut client, &window_update(stream, 10)), "");
}

#[test]
fn a_window_that_a_setting_makes_negative_must_be_made_good_first() {
    let mut client = client(&[(4, 4)]);
    let stream = client.request(&head(b"POST"), &[], false, 9, &mut Vec::new()).unwrap();
    assert_eq!(send(&mut client, stream, b"abcdef", true).0, 4);
    assert_eq!(pass(&mut client, &settings(&[(4, 1)])), "SETTINGS ACK");
    assert_eq!(client.sendable(stream), 0);
    assert_eq!(pass(&mut client, &window_update(stream, 3)), "");
    assert_eq!(pass(&mut client, &window_update(stream, 1)), "opened Some((1, 9))");
    assert_eq!(send(&mut client, stream, b"ef", true), (1, "DATA 1 e".into()));
    assert_eq!(pass(&mut client, &settings(&[(4, 2)])), "opened None | SETTINGS ACK");
    assert_eq!(send(&mut client, stream, b"f", true), (1, "DATA 1 f end".into()));
}

#[test]
fn content_waits_for_the_connection_s_window() {
    let mut client = client(&[(4, 1 << 20)]);
    let streams = [(); 2].map(|()| client.request(&head(b"POST"), &[], false, 9, &mut Vec::new()).unwrap());
    let content = vec![b'x'; 70_000];
    let mut out = Vec::new();
    assert_eq!(client.send_data(streams[0], &content, true, &mut out), Ok(65_535));
    // Frames take turns only if they are small.
    assert_eq!(drive::frames(&out).matches("DATA").count(), 4);
    assert_eq!(client.send_data(streams[1], b"", true, &mut out), Ok(0), "an end needs no window");
    assert_eq!(client.send_data(streams[0], &content[65_535..], true, &mut out), Ok(0));
    assert_eq!(pass(&mut client, &window_update(0, 5000)), "opened None");
    assert_eq!(client.send_data(streams[0], &content[65_535..], true, &mut out), Ok(4465));
    assert!(drive::frames(&out).ends_with(" end"));
}

#[test]
fn a_frame_s_head_alone_is_written_for_content_that_the_caller_writes() {
    let mut client = client(&[(4, 3)]);
    let stream = client.request(&head(b"POST"), &[], false, 9, &mut Vec::new()).unwrap();
    let mut out = Vec::new();
    assert_eq!(client.data_head(stream, 5, true, &mut out), Ok(3));
    out.extend_from_slice(b"abc");
    assert_eq!(drive::frames(&out), "DATA 1 abc");
}

#[test]
fn nobody_is_told_of_a_window_that_was_not_closed() {
    let mut client = client(&[(4, 1 << 20)]);
    let stream = client.request(&head(b"POST"), &[], false, 9, &mut Vec::new()).unwrap();
    // The frame is full, not the window.
    assert_eq!(client.data_head(stream, 20_000, true, &mut Vec::new()), Ok(16_384));
    assert_eq!(pass(&mut client, &[window_update(stream, 1), window_update(0, 1)].concat()), "");
}

#[test]
fn requests_are_refused_for_a_reason() {
    let get = head(b"GET");
    let mut out = Vec::new();
    let mut fresh = Client::new(Config { assumed_max_streams: 2, ..Config::CLIENT }, &mut out);
    for expected in [Ok(1), Ok(3), Err(RequestError::TooManyStreams)] {
        assert_eq!(fresh.request(&get, &[], true, 0, &mut out), expected, "before SETTINGS");
    }
    let mut client = client(&[(3, 1)]);
    assert_eq!(client.max_streams(), 1);
    assert_eq!(client.request(&get, &[], true, 5, &mut out), Ok(1));
    assert_eq!(client.request(&get, &[], true, 6, &mut out), Err(RequestError::TooManyStreams));
    assert_eq!(pass(&mut client, &frame(HEADERS, WHOLE, 1, OK)), "");
    assert_eq!(client.request(&get, &[], true, 6, &mut out), Ok(3));
    assert_eq!(pass(&mut client, &goaway(1, 0)), "goaway 1; reset 3 (6) REFUSED_STREAM");
    assert_eq!(client.request(&get, &[], true, 6, &mut out), Err(RequestError::GoingAway));
    assert!(client.next(&[0xff; 20], &mut out).is_err());
    assert_eq!(client.can_request(), Err(RequestError::Failed));
}

#[test]
fn a_reset_stream_is_gone_and_what_still_comes_is_ignored() {
    let mut client = client(&[]);
    let mut out = Vec::new();
    let stream = client.request(&head(b"GET"), &[], true, 5, &mut out).unwrap();
    out.clear();
    assert!(client.reset(stream, ErrorCode::CANCEL, &mut out));
    assert!(!client.reset(stream, ErrorCode::CANCEL, &mut out));
    assert_eq!(drive::frames(&out), "RST_STREAM 1 CANCEL");
    assert_eq!(client.active_streams(), 0);
    let late = [frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, END_STREAM, 1, b"late"), rst_stream(1, 0)];
    assert_eq!(pass(&mut client, &late.concat()), "");
    assert_eq!(client.counters().ignored, 2);
}

#[test]
fn a_stream_that_is_reset_inside_a_frame_does_not_cost_the_connection_its_window() {
    for release in [Release::OnReceipt, Release::ByCaller] {
        let mut out = Vec::new();
        let config = Config { release, connection_window: 65_535, ..Config::CLIENT };
        let mut client = Client::new(config, &mut out);
        pass(&mut client, &settings(&[]));
        for _ in 0..100 {
            let stream = client.request(&head(b"GET"), &[], true, 5, &mut out).unwrap();
            let answer =
                [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream, vec![0; 10_000])].concat();
            let (first, rest) = answer.split_at(5000);
            let seen = pass(&mut client, first);
            let passed: usize =
                seen.split(" | ").next().unwrap().strip_prefix("data ").unwrap().parse().unwrap();
            client.reset(stream, ErrorCode::CANCEL, &mut out);
            if release == Release::ByCaller {
                client.release(stream, passed, &mut out);
            }
            // A window that leaks would be exceeded in the seventh round.
            pass(&mut client, rest);
        }
    }
}

#[test]
fn content_is_released_in_large_portions() {
    let mut out = Vec::new();
    let config = Config { stream_window: 1000, connection_window: 65_535, ..Config::CLIENT };
    let mut client = Client::new(config, &mut out);
    pass(&mut client, &settings(&[]));
    client.request(&head(b"GET"), &[], true, 5, &mut out).unwrap();
    assert_eq!(pass(&mut client, &frame(HEADERS, END_HEADERS, 1, OK)), "");
    assert_eq!(pass(&mut client, &frame(DATA, 0, 1, [0; 500])), "data 500");
    assert_eq!(pass(&mut client, &frame(DATA, 0, 1, [0; 10])), "data 10 | WINDOW_UPDATE 1 510");
    assert_eq!(pass(&mut client, &frame(DATA, END_STREAM, 1, [0; 900])), "data 900");
}

#[test]
fn the_caller_s_release_slows_the_peer_down() {
    let mut out = Vec::new();
    let config = Config { stream_window: 1000, release: Release::ByCaller, ..Config::CLIENT };
    let mut client = Client::new(config, &mut out);
    pass(&mut client, &settings(&[]));
    client.request(&head(b"GET"), &[], true, 5, &mut out).unwrap();
    let answer = [frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, [0; 1000])].concat();
    assert_eq!(pass(&mut client, &answer), "data 1000");
    out.clear();
    client.release(1, 400, &mut out);
    assert!(out.is_empty());
    client.release(1, 400, &mut out);
    assert_eq!(drive::frames(&out), "WINDOW_UPDATE 1 800");
}

fn server(config: Config, input: &[u8]) -> (Server, Vec<u8>) {
    let mut out = Vec::new();
    let mut server = Server::new(config, &mut out);
    feed(
        &mut server,
        &[&weir_wire::h2::PREFACE[..], &settings(&[]), &frame(SETTINGS, ACK, 0, []), input].concat(),
        &mut out,
    );
    out.clear();
    (server, out)
}

fn feed(server: &mut Server, mut input: &[u8], out: &mut Vec<u8>) -> Vec<u32> {
    let mut heads = Vec::new();
    loop {
        let (used, event) = server.next(input, out).unwrap();
        input = &input[used..];
        match event {
            Event::NeedMore => return heads,
            Event::Head(head) => heads.push(head.stream),
            _ => {}
        }
    }
}

#[test]
fn a_response_has_heads_content_and_trailers() {
    let (mut server, mut out) = server(Config::SERVER, &frame(HEADERS, WHOLE, 1, GET));
    let hints = PreparedHead::response(103, &[Field::new(b"link", b"</a>")]).unwrap();
    let trailers = PreparedHead::trailers(&[Field::new(b"t", b"u")]).unwrap();
    server.respond(1, &hints, &[], false, &mut out).unwrap();
    server.respond(1, &ok(), &[(b"content-length", b"2")], false, &mut out).unwrap();
    assert_eq!(server.send_data(1, b"ab", false, &mut out), Ok(2));
    server.send_trailers(1, &trailers, &mut out).unwrap();
    assert_eq!(drive::frames(&out), "HEADERS 1; HEADERS 1; DATA 1 ab; HEADERS 1 end");
    assert_eq!(server.respond(1, &ok(), &[], true, &mut out), Err(StreamGone));
    assert_eq!(server.active_streams(), 0);
}

#[test]
fn a_goaway_names_the_last_stream_and_later_ones_are_not_served() {
    let (mut server, mut out) = server(Config::SERVER, &frame(HEADERS, WHOLE, 1, GET));
    server.go_away_soon(&mut out);
    assert_eq!(feed(&mut server, &frame(HEADERS, WHOLE, 3, GET), &mut out), [3]);
    server.go_away(ErrorCode::NO_ERROR, &mut out);
    // A later one is decoded for the table's sake and then forgotten.
    let later = [
        frame(HEADERS, END_HEADERS, 5, [POST, &[0x40, 1, b'x', 1, b'y']].concat()),
        frame(DATA, END_STREAM, 5, b"abc"),
        window_update(5, 1),
    ];
    assert_eq!(feed(&mut server, &later.concat(), &mut out), [0; 0]);
    server.respond(1, &ok(), &[], true, &mut out).unwrap();
    server.respond(3, &ok(), &[], true, &mut out).unwrap();
    assert_eq!(server.respond(5, &ok(), &[], true, &mut out), Err(StreamGone));
    assert_eq!(server.counters().unprocessed, 1);
    assert_eq!(
        drive::frames(&out),
        "GOAWAY 2147483647 NO_ERROR; GOAWAY 3 NO_ERROR; HEADERS 1 end; HEADERS 3 end"
    );
}

#[test]
fn the_limit_on_streams_can_be_changed() {
    let (mut server, mut out) =
        server(Config { max_streams: 1, ..Config::SERVER }, &frame(HEADERS, WHOLE, 1, GET));
    assert_eq!(feed(&mut server, &frame(HEADERS, WHOLE, 3, GET), &mut out), [0; 0]);
    server.set_max_streams(2, &mut out);
    assert_eq!(feed(&mut server, &frame(HEADERS, WHOLE, 5, GET), &mut out), [5]);
    assert_eq!(drive::frames(&out), "RST_STREAM 3 REFUSED_STREAM; SETTINGS");
    assert_eq!(server.counters().refused, 1);
}

#[test]
fn a_block_larger_than_a_frame_is_continued() {
    let value = vec![b'~'; 40_000];
    let field = Field { name: b"x", value: &value, indexing: Indexing::Pass };
    let big = PreparedHead::response(200, &[field]).unwrap();
    let (mut server, mut out) = server(Config::SERVER, &frame(HEADERS, WHOLE, 1, GET));
    server.respond(1, &big, &[], true, &mut out).unwrap();
    assert_eq!(drive::frames(&out), "HEADERS 1 end; CONTINUATION 1; CONTINUATION 1");
    let mut client = client(&[]);
    client.request(&head(b"GET"), &[], true, 0, &mut Vec::new()).unwrap();
    let (used, event) = client.next(&out, &mut Vec::new()).unwrap();
    let Event::Head(response) = event else { panic!("expected a head, found {event:?}") };
    assert_eq!((used, response.header("x").unwrap().bytes().unwrap().len()), (out.len(), 40_000));
}
