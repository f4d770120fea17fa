//! How long one HTTP/2 exchange takes each side: `cargo run --release -p weir-wire --example h2_speed`.
//! Nanoseconds per request with its response, the best of many rounds; bytes are those on the wire.

use std::hint::black_box;
use std::time::Instant;

use weir_wire::h2::hpack::{huffman_decode, huffman_encode};
use weir_wire::h2::{Client, Config, Event, Field, PreparedHead, RequestLine, Server};

/// Requests written, or answers read, at a time.
const BATCH: usize = 32;
const ROUNDS: usize = 20_000;

fn main() {
    let get = request();
    let small = response(&[(b"content-type", b"text/plain"), (b"content-length", b"12")]);
    client_side("client, nginx, 6 literals", &get, |_| nginx_answers(true));
    client_side("client, 6 literals for the table", &get, |_| nginx_answers(false));
    client_side("client, weir, references", &get, |client_bytes| weir_answers(client_bytes, &small));
    server_side("server, references", &get, &small, &[]);
    server_side("server, references and a path", &pathless(), &small, &[(b":path", b"/items/4711?a=b")]);
    huffman();
}

fn request() -> PreparedHead {
    let line = RequestLine { method: b"GET", scheme: b"https", authority: b"127.0.0.1:8443", path: b"/" };
    PreparedHead::request(line, &[Field::new(b"user-agent", b"weir/0.1.0"), Field::new(b"accept", b"*/*")])
        .expect("valid")
}

fn pathless() -> PreparedHead {
    let line = RequestLine { method: b"GET", scheme: b"https", authority: b"127.0.0.1:8443", path: b"" };
    PreparedHead::request(line, &[Field::new(b"user-agent", b"weir/0.1.0")]).expect("valid")
}

fn response(fields: &[(&[u8], &[u8])]) -> PreparedHead {
    let fields: Vec<Field<'_>> = fields.iter().map(|(name, value)| Field::new(name, value)).collect();
    PreparedHead::response(200, &fields).expect("valid")
}

/// One answer as nginx 1.22 writes it: a table of size 0 if the client spoke of tables, then literals that would enter it,
/// Huffman-coded where that is shorter.
fn nginx_block(gives_up_table: bool) -> Vec<u8> {
    let mut block = if gives_up_table { vec![0x20] } else { Vec::new() };
    block.push(0x88);
    for (index, value) in [
        (54, &b"nginx/1.22.1"[..]),
        (33, b"Thu, 20 Nov 2025 14:00:12 GMT"),
        (31, b"text/html"),
        (28, b"12"),
        (44, b"Thu, 20 Nov 2025 13:00:00 GMT"),
        (34, b"\"691f0c10-c\""),
    ] {
        block.push(0x40 | index);
        let mut coded = Vec::new();
        huffman_encode(value, &mut coded);
        if coded.len() < value.len() {
            block.push(0x80 | coded.len() as u8);
            block.extend_from_slice(&coded);
        } else {
            block.push(value.len() as u8);
            block.extend_from_slice(value);
        }
    }
    block
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// What a server sends in answer to `count` requests, in batches; the first batch begins with its SETTINGS.
fn nginx_answers(gives_up_table: bool) -> Vec<Vec<u8>> {
    let (first, later) = (nginx_block(gives_up_table), nginx_block(false));
    let mut stream = 1;
    (0..ROUNDS)
        .map(|round| {
            let mut bytes = if round == 0 { frame(4, 0, 0, &[]) } else { Vec::new() };
            for _ in 0..BATCH {
                let block = if stream == 1 { &first } else { &later };
                bytes.extend(frame(1, 4, stream, block));
                bytes.extend(frame(0, 1, stream, b"hello world\n"));
                stream += 2;
            }
            bytes
        })
        .collect()
}

fn weir_answers(client_bytes: &[Vec<u8>], ok: &PreparedHead) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut server = Server::new(Config::SERVER, &mut out);
    client_bytes
        .iter()
        .map(|bytes| {
            serve(&mut server, bytes, ok, &mut out);
            std::mem::take(&mut out)
        })
        .collect()
}

/// What a client sends for all rounds, without having seen an answer: streams are only limited by the assumption.
fn requests(get: &PreparedHead, extra: &[(&[u8], &[u8])]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let assumed = (ROUNDS * BATCH) as u32;
    let mut client = Client::new(Config { assumed_max_streams: assumed, ..Config::CLIENT }, &mut out);
    (0..ROUNDS)
        .map(|_| {
            ask(&mut client, get, extra, &mut out);
            std::mem::take(&mut out)
        })
        .collect()
}

fn ask(client: &mut Client, get: &PreparedHead, extra: &[(&[u8], &[u8])], out: &mut Vec<u8>) {
    for tag in 0..BATCH as u32 {
        client.request(get, extra, true, tag, out).expect("a free stream");
    }
}

fn serve(server: &mut Server, mut input: &[u8], ok: &PreparedHead, out: &mut Vec<u8>) {
    loop {
        let (used, event) = server.next(input, out).expect("valid");
        input = &input[used..];
        match event {
            Event::NeedMore => return,
            Event::Head(head) => {
                black_box(head.path);
                let stream = head.stream;
                server.respond(stream, ok, &[], false, out).expect("open");
                server.send_data(stream, b"hello world\n", true, out).expect("open");
            }
            _ => {}
        }
    }
}

fn read(client: &mut Client, mut input: &[u8], out: &mut Vec<u8>) -> u32 {
    let mut seen = 0;
    loop {
        let (used, event) = client.next(input, out).expect("valid");
        input = &input[used..];
        match event {
            Event::NeedMore => return seen,
            Event::Head(head) => seen += u32::from(head.status),
            Event::Data { bytes, .. } => seen += bytes.len() as u32,
            _ => {}
        }
    }
}

fn client_side(name: &str, get: &PreparedHead, answers: impl Fn(&[Vec<u8>]) -> Vec<Vec<u8>>) {
    let asked = requests(get, &[]);
    let answers = answers(&asked);
    let bytes = (asked[1].len() + answers[1].len()) / BATCH;
    report(name, bytes, || {
        let mut out = Vec::with_capacity(1 << 16);
        let mut client = Client::new(Config::CLIENT, &mut out);
        let start = Instant::now();
        for answer in &answers {
            out.clear();
            ask(&mut client, get, &[], &mut out);
            black_box(read(&mut client, black_box(answer), &mut out));
        }
        start.elapsed().as_nanos() as f64
    });
}

fn server_side(name: &str, get: &PreparedHead, ok: &PreparedHead, extra: &[(&[u8], &[u8])]) {
    let asked = requests(get, extra);
    report(name, asked[1].len() / BATCH, || {
        let mut out = Vec::with_capacity(1 << 16);
        let mut server = Server::new(Config::SERVER, &mut out);
        let start = Instant::now();
        for bytes in &asked {
            out.clear();
            serve(&mut server, black_box(bytes), ok, &mut out);
            black_box(&out);
        }
        start.elapsed().as_nanos() as f64
    });
}

fn huffman() {
    let value = b"Thu, 20 Nov 2025 14:00:12 GMT";
    let (mut coded, mut plain) = (Vec::new(), Vec::new());
    huffman_encode(value, &mut coded);
    let start = Instant::now();
    const TIMES: u32 = 1_000_000;
    for _ in 0..TIMES {
        plain.clear();
        huffman_decode(black_box(&coded), &mut plain).expect("valid");
        black_box(&plain);
    }
    println!(
        "{:>36}: {:6.1} ns",
        "Huffman decoding of a date",
        start.elapsed().as_nanos() as f64 / f64::from(TIMES)
    );
}

fn report(name: &str, bytes: usize, mut work_ns: impl FnMut() -> f64) {
    let best = (0..10).map(|_| work_ns()).fold(f64::MAX, f64::min);
    println!("{name:>36}: {:6.1} ns  ({bytes} bytes)", best / (ROUNDS * BATCH) as f64);
}
