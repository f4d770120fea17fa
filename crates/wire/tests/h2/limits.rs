//! What a peer may do to exhaust us is bounded, and what an honest peer does is not.

use weir_wire::h2::{
    Client, Config, ErrorCode, Event, Field, Indexing, Limits, PREFACE, PreparedHead, RequestLine, Server,
};

use crate::bytes::*;
use crate::drive;

const LIMITS: Limits = Limits { block_bytes: 20_000, block_frames: 4, resets: 10, idle_frames: 50 };
const SERVER: Config = Config { limits: LIMITS, max_header_list_bytes: 1000, ..Config::SERVER };

/// What a client sends that does not acknowledge our SETTINGS.
fn ignorant() -> Vec<u8> {
    [&PREFACE[..], &settings(&[])].concat()
}

fn start() -> Vec<u8> {
    [&PREFACE[..], &settings(&[]), &frame(SETTINGS, ACK, 0, [])].concat()
}

/// `step` gives the frames of each round. Expects the connection to end within the limits, for `reason`.
fn check_flood(name: &str, reason: &str, step: impl Fn(u32) -> Vec<u8>) {
    let flood: Vec<u8> = (0..2000).flat_map(&step).collect();
    let log = drive::server([&[start(), flood].concat()[..]], SERVER);
    assert_eq!(log.failed, Some((ErrorCode::ENHANCE_YOUR_CALM, log.failed.unwrap().1)), "{name}");
    assert_eq!(log.failed.unwrap().1, reason, "{name}");
    assert!(log.out.len() < 10_000, "{name}: {} bytes of replies", log.out.len());
}

#[test]
fn floods_end_the_connection() {
    let id = |round: u32| 2 * round + 1;
    let get = |round| frame(HEADERS, WHOLE, id(round), GET);
    let post = |round| frame(HEADERS, END_HEADERS, id(round), POST);
    let first = |round: u32, rest: Vec<u8>| if round == 0 { [post(0), rest].concat() } else { rest };
    check_flood("PING", "too many PINGs", |_| frame(PING, 0, 0, [0; 8]));
    check_flood("SETTINGS", "too many SETTINGS", |_| settings(&[(4, 1)]));
    check_flood("SETTINGS acknowledgements", "too many SETTINGS acknowledgements", |_| {
        frame(SETTINGS, ACK, 0, [])
    });
    check_flood("PRIORITY", "too many PRIORITY frames", |_| frame(PRIORITY, 0, 1, [0, 0, 0, 3, 1]));
    check_flood("unknown frames", "too many unknown frames", |_| frame(99, 0, 0, []));
    check_flood("GOAWAY", "too many GOAWAYs", |_| goaway(0, 0));
    check_flood("connection windows", "too many WINDOW_UPDATEs", |_| window_update(0, 1));
    check_flood("stream windows", "too many WINDOW_UPDATEs", |n| first(n, window_update(1, 1)));
    check_flood("empty DATA", "too many empty DATA frames", |n| first(n, frame(DATA, 0, 1, [])));
    check_flood("padding only", "too many empty DATA frames", |n| first(n, frame(DATA, PADDED, 1, [1, 0])));
    check_flood("rapid reset", "too many resets", |n| [get(n), rst_stream(id(n), 8)].concat());
    check_flood("made you reset", "too many resets", |n| [get(n), window_update(id(n), 0)].concat());
    check_flood("malformed requests", "too many resets", |n| frame(HEADERS, WHOLE, id(n), [0x82]));
    check_flood("streams above the limit", "too many resets", get);
    let flood: Vec<u8> = (0..2000).flat_map(get).collect();
    let log = drive::server([&[ignorant(), flood].concat()[..]], SERVER);
    let reason = "too many streams before the acknowledgement of SETTINGS";
    assert_eq!(log.failed, Some((ErrorCode::ENHANCE_YOUR_CALM, reason)));
    check_flood("empty CONTINUATION", "header block of too many frames", |n| match n {
        0 => frame(HEADERS, 0, 1, GET),
        _ => frame(CONTINUATION, 0, 1, []),
    });
    check_flood("long CONTINUATION", "header block too large", |n| match n {
        0 => frame(HEADERS, 0, 1, GET),
        _ => frame(CONTINUATION, 0, 1, [0; 16_000]),
    });
    check_flood("RST_STREAM of what is closed", "too many RST_STREAM on closed streams", |n| {
        first(n, rst_stream(1, 8))
    });
}

#[test]
fn a_small_block_that_stands_for_much_is_refused() {
    // One long entry, referred to again and again.
    let value = "v".repeat(120);
    let entry = [GET, &[0x40, 1, b'x', 120], value.as_bytes()].concat();
    for (times, fine) in [(4, true), (9, false)] {
        let block = [&entry[..], &vec![0xbe; times]].concat();
        let log = drive::server([&[start(), frame(HEADERS, WHOLE, 1, block)].concat()[..]], SERVER);
        let expected = (!fine).then_some((ErrorCode::ENHANCE_YOUR_CALM, "header list too large"));
        assert_eq!(log.failed, expected, "{times} times");
    }
    // Insertions by a name in the table copy it each time; text is bounded by the list, too.
    let block = [&[0x40, 120][..], &[b'n'; 120], &[0], &[0x7e, 0].repeat(4000)].concat();
    let log = drive::server([&[start(), frame(HEADERS, WHOLE, 1, block)].concat()[..]], SERVER);
    assert_eq!(log.failed, Some((ErrorCode::ENHANCE_YOUR_CALM, "header list too large")));
}

fn get() -> PreparedHead {
    let line = RequestLine { method: b"GET", scheme: b"http", authority: b"a", path: b"/" };
    let passing = Field { name: b"x-coded", value: b"weir", indexing: Indexing::Pass };
    PreparedHead::request(line, &[Field::new(b"user-agent", b"weir"), passing]).unwrap()
}

/// Passes all of `input`; a request is answered at once.
fn serve(server: &mut Server, mut input: &[u8], ok: &PreparedHead, out: &mut Vec<u8>) {
    loop {
        let (used, event) = server.next(input, out).unwrap();
        input = &input[used..];
        match event {
            Event::NeedMore => return,
            Event::Head(head) => {
                let stream = head.stream;
                server.respond(stream, ok, &[], true, out).unwrap();
            }
            _ => {}
        }
    }
}

fn read(client: &mut Client, mut input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut heads = 0;
    loop {
        let (used, event) = client.next(input, out).unwrap();
        input = &input[used..];
        match event {
            Event::NeedMore => return heads,
            Event::Head(_) => heads += 1,
            _ => {}
        }
    }
}

#[test]
fn an_honest_peer_may_go_on_for_ever_and_nothing_grows() {
    let (get, ok) = (get(), PreparedHead::response(200, &[Field::new(b"server", b"weir")]).unwrap());
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut client = Client::new(Config { limits: LIMITS, ..Config::CLIENT }, &mut to_server);
    let mut server = Server::new(SERVER, &mut to_client);
    let mut held = (0, 0);
    for round in 0..2000 {
        // Per round: a PING each way, a stream that is cancelled for one that is not.
        client.ping([1; 8], &mut to_server);
        server.ping([2; 8], &mut to_client);
        client.request(&get, &[], true, 0, &mut to_server).unwrap();
        let cancelled = client.request(&get, &[], false, 0, &mut to_server).unwrap();
        client.reset(cancelled, ErrorCode::CANCEL, &mut to_server);
        serve(&mut server, &std::mem::take(&mut to_server), &ok, &mut to_client);
        assert_eq!(read(&mut client, &std::mem::take(&mut to_client), &mut to_server), 1);
        let now = (client.held_bytes(), server.held_bytes());
        if round == 100 {
            held = now;
        }
        assert!(round < 100 || now == held, "held {now:?} in round {round}, {held:?} before");
    }
    assert_eq!(server.counters().pings, 2000);
}

#[test]
fn time_forgives() {
    let mut out = Vec::new();
    let mut server = Server::new(SERVER, &mut out);
    let ok = PreparedHead::response(200, &[]).unwrap();
    serve(&mut server, &start(), &ok, &mut out);
    for _ in 0..10 {
        serve(&mut server, &frame(PING, 0, 0, [0; 8]).repeat(40), &ok, &mut out);
        server.calm();
    }
}

#[test]
fn a_client_that_does_not_know_the_limit_yet_is_not_blamed_for_exceeding_it() {
    let streams: Vec<u8> = (0..50).flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, POST)).collect();
    let config = Config { max_streams: 5, ..SERVER };
    let input = [&PREFACE[..], &settings(&[]), &streams].concat();
    let log = drive::server([&input[..]], config);
    assert_eq!(log.failed, None);
    assert_eq!(drive::frames(&log.out).matches("REFUSED_STREAM").count(), 45);
}

#[test]
fn a_server_cannot_flood_with_interim_responses() {
    let flood = frame(HEADERS, END_HEADERS, 1, literal(":status", "100")).repeat(100);
    let input = [settings(&[]), flood].concat();
    let log = drive::client([&input[..]], Config { limits: LIMITS, ..Config::CLIENT });
    assert_eq!(log.failed, Some((ErrorCode::ENHANCE_YOUR_CALM, "too many interim responses")));
}
