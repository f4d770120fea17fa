//! How long one decoded message takes: `cargo run --release -p weir-wire --example head_speed`.
//! Nanoseconds per message, the best of many rounds.

use std::hint::black_box;
use std::time::Instant;

use weir_wire::h1::{
    BodyKind, Limits, RequestDecoder, RequestEvent, RequestKind, ResponseDecoder, ResponseEvent,
    write_response_head,
};

const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Thu, 20 Nov 2025 14:00:12 GMT\r\n\
Content-Type: text/html\r\nContent-Length: 12\r\nLast-Modified: Thu, 20 Nov 2025 13:00:00 GMT\r\n\
Connection: keep-alive\r\nETag: \"691f0c10-c\"\r\nAccept-Ranges: bytes\r\n\r\nhello world\n";
const NGINX_SHORT: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Thu, 20 Nov 2025 14:00:12 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\nhello world\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Thu, 20 Nov 2025 14:00:12 GMT\r\n\
Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nhello world\n\r\n0\r\n\r\n";
const WRK: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const CURL: &[u8] =
    b"GET /index.html HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
const BROWSER: &[u8] = b"GET /assets/app.js?v=12 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux \
x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n\r\n";

fn main() {
    println!(
        "decoder bytes: response {}, request {}",
        size_of::<ResponseDecoder>(),
        size_of::<RequestDecoder>()
    );
    println!("event bytes: response {}, request {}", size_of::<ResponseEvent>(), size_of::<RequestEvent>());
    for (name, bytes) in [("nginx file", NGINX), ("nginx return", NGINX_SHORT), ("chunked", CHUNKED)] {
        let mut decoder = ResponseDecoder::new(Limits::default());
        report(name, bytes.len(), || response(&mut decoder, black_box(bytes)));
    }
    report("nginx return, head only, by httparse", NGINX_SHORT.len(), || {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut fields);
        head.parse(black_box(NGINX_SHORT)).expect("valid").unwrap() + head.headers.len()
    });
    for (name, bytes) in [("wrk", WRK), ("curl", CURL), ("browser", BROWSER)] {
        let mut decoder = RequestDecoder::new(Limits::default());
        report(name, bytes.len(), || request(&mut decoder, black_box(bytes)));
    }
    let mut out = Vec::with_capacity(512);
    report("write head", 0, || {
        out.clear();
        let fields: [(&[u8], &[u8]); 2] =
            [(b"Date", b"Thu, 20 Nov 2025 14:00:12 GMT"), (b"Content-Type", b"text/plain")];
        write_response_head(&mut out, black_box(200), fields, BodyKind::Length(black_box(12)));
        out.len()
    });
}

fn response(decoder: &mut ResponseDecoder, mut input: &[u8]) -> usize {
    decoder.expect(RequestKind::Other);
    let mut seen = 0;
    loop {
        let (used, event) = decoder.decode(input).expect("valid");
        input = &input[used..];
        match event {
            ResponseEvent::Full { head, body } => return seen + head.status as usize + body.len(),
            ResponseEvent::Done { keep_alive } => return seen + keep_alive as usize,
            ResponseEvent::Body(body) => seen += body.len(),
            _ => {}
        }
    }
}

fn request(decoder: &mut RequestDecoder, input: &[u8]) -> usize {
    match decoder.decode(input).expect("valid") {
        (used, RequestEvent::Full { head, .. }) => used + head.target.len() + head.host.len(),
        (used, _) => used,
    }
}

fn report(name: &str, bytes: usize, mut work: impl FnMut() -> usize) {
    const TIMES: u32 = 100_000;
    let mut best = f64::MAX;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(work());
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(TIMES));
    }
    println!("{name:>36}: {best:6.1} ns  ({bytes} bytes)");
}
