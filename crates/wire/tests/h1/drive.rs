//! Drives a decoder over pieces of input, holds it to its protocol with the caller, and puts down what it saw as text.
//! Where the input was cut does not show: neighbouring body pieces are one, `Full` is `Head`, `Body` and `Done`.
//!
//! ```text
//! 200 1.1 Length(5) keep-alive; body hello; done keep-alive; idle
//! ```

use std::fmt::Write;

use weir_wire::h1::{
    Error, Headers, Limits, RequestDecoder, RequestEvent, RequestHead, RequestKind, ResponseDecoder,
    ResponseEvent, ResponseHead,
};

/// What was seen, in order. `body` is the piece of body not yet written down.
#[derive(Default)]
struct Log {
    text: String,
    body: Vec<u8>,
}

impl Log {
    fn add(&mut self, event: &str) {
        if !self.body.is_empty() {
            let body = std::mem::take(&mut self.body);
            self.add(&format!("body {}", body.escape_ascii()));
        }
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.push_str(event);
    }

    fn body(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }

    fn trailers(&mut self, lines: Headers<'_>) {
        self.add(&format!("trailers{}", fields(lines)));
    }

    fn response(&mut self, head: &ResponseHead<'_>) {
        let mut text = format!(
            "{} {:?} {:?} {}{}",
            head.status,
            head.version,
            head.body,
            kept(head.keep_alive),
            fields(head.headers())
        );
        if let Some(hint) = head.keep_alive_hint {
            write!(text, " hint {:?} {:?}", hint.timeout_s, hint.max).unwrap();
        }
        agrees_with_httparse(head.raw, |fields, raw| {
            httparse::Response::new(fields).parse(raw).map(|status| status.unwrap())
        });
        self.add(&text);
    }

    fn request(&mut self, head: &RequestHead<'_>) {
        let ascii = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let mut text = format!(
            "{} {} {:?} {:?} {:?} {}{}",
            ascii(head.method),
            ascii(head.target),
            head.form,
            head.version,
            head.body,
            kept(head.keep_alive),
            fields(head.headers())
        );
        if head.expect_continue {
            text.push_str(" expects 100");
        }
        agrees_with_httparse(head.raw, |fields, raw| {
            httparse::Request::new(fields).parse(raw).map(|status| status.unwrap())
        });
        assert_eq!(head.host, head.header("hOsT").unwrap_or_default(), "host is the Host field");
        self.add(&text);
    }
}

/// A head that we accept is one for httparse too, and as long: a second opinion on everything that comes this way.
fn agrees_with_httparse<'a>(
    raw: &'a [u8],
    parse: impl FnOnce(&mut [httparse::Header<'a>], &'a [u8]) -> Result<usize, httparse::Error>,
) {
    let line_end = raw.iter().position(|&b| b == b'\r').expect("a head has a line end");
    let line = &raw[..line_end];
    let version = if line.starts_with(b"HTTP/") { &line[..8] } else { &line[line.len() - 8..] };
    // Of versions above 1.1, which are read as 1.1, httparse knows nothing.
    if version == b"HTTP/1.1" || version == b"HTTP/1.0" {
        let parsed = parse(&mut [httparse::EMPTY_HEADER; 300], raw);
        assert_eq!(parsed, Ok(raw.len()), "httparse on {}", raw.escape_ascii());
    }
}

fn fields(lines: Headers<'_>) -> String {
    lines.map(|(name, value)| format!(" {}={}", name.escape_ascii(), value.escape_ascii())).collect()
}

fn kept(keep_alive: bool) -> &'static str {
    if keep_alive { "keep-alive" } else { "close" }
}

fn failure(error: Error) -> String {
    match error {
        Error::Malformed(reason) => format!("malformed: {reason}"),
        other => format!("error: {other}"),
    }
}

/// Responses to `requests`, received in `pieces`, then the end of the connection.
pub fn responses<'a>(
    requests: &[RequestKind],
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: Limits,
) -> String {
    let mut decoder = ResponseDecoder::new(limits);
    let mut awaited = requests.iter().copied();
    let mut log = Log::default();
    awaited.next().into_iter().for_each(|request| decoder.expect(request));
    for piece in pieces {
        if let Err(error) = response_piece(&mut decoder, &mut awaited, piece, &limits, &mut log) {
            assert_eq!(decoder.buffered_bytes(), 0, "a failed decoder keeps nothing");
            assert!(decoder.decode(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "a failed decoder stays failed");
            log.add(&failure(error));
            return log.text;
        }
    }
    let end = match decoder.eof() {
        Ok(true) => "done at close".to_owned(),
        Ok(false) => "idle".to_owned(),
        Err(error) => failure(error),
    };
    log.add(&end);
    log.text
}

fn response_piece(
    decoder: &mut ResponseDecoder,
    awaited: &mut impl Iterator<Item = RequestKind>,
    mut piece: &[u8],
    limits: &Limits,
    log: &mut Log,
) -> Result<(), Error> {
    loop {
        let (used, event) = decoder.decode(piece)?;
        let (last, ended) = match event {
            ResponseEvent::NeedMore => (true, false),
            ResponseEvent::Informational(status) => {
                log.add(&format!("interim {status}"));
                (false, false)
            }
            ResponseEvent::Full { head, body } => {
                log.response(&head);
                log.body(body);
                log.add(&format!("done {}", kept(head.keep_alive)));
                (false, true)
            }
            ResponseEvent::Head(head) => {
                log.response(&head);
                (false, false)
            }
            ResponseEvent::Body(data) => {
                assert!(!data.is_empty(), "a body piece is not empty");
                log.body(data);
                (false, false)
            }
            ResponseEvent::Trailers(lines) => {
                log.trailers(lines);
                (false, false)
            }
            ResponseEvent::Done { keep_alive } => {
                log.add(&format!("done {}", kept(keep_alive)));
                (false, true)
            }
        };
        assert!(
            decoder.buffered_bytes() <= buffered_bytes_max(limits),
            "no more is kept than the limits say"
        );
        if ended {
            assert_eq!(decoder.buffered_bytes(), 0, "nothing is kept between responses");
            assert!(decoder.is_idle(), "idle after a response");
            awaited.next().into_iter().for_each(|request| decoder.expect(request));
        }
        piece = &piece[used..];
        if last {
            assert!(piece.is_empty(), "NeedMore takes all of the input");
            return Ok(());
        }
    }
}

/// Requests received in `pieces`, then the end of the connection.
pub fn requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> String {
    let mut decoder = RequestDecoder::new(limits);
    let mut log = Log::default();
    for piece in pieces {
        if let Err(error) = request_piece(&mut decoder, piece, &limits, &mut log) {
            assert_eq!(decoder.buffered_bytes(), 0, "a failed decoder keeps nothing");
            assert!(
                decoder.decode(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err(),
                "a failed decoder stays failed"
            );
            log.add(&failure(error));
            return log.text;
        }
    }
    let end = match decoder.eof() {
        Ok(()) => "idle".to_owned(),
        Err(error) => failure(error),
    };
    log.add(&end);
    log.text
}

fn request_piece(
    decoder: &mut RequestDecoder,
    mut piece: &[u8],
    limits: &Limits,
    log: &mut Log,
) -> Result<(), Error> {
    loop {
        let (used, event) = decoder.decode(piece)?;
        let mut last = false;
        match event {
            RequestEvent::NeedMore => last = true,
            RequestEvent::Full { head, body } => {
                log.request(&head);
                log.body(body);
                log.add("done");
            }
            RequestEvent::Head(head) => log.request(&head),
            RequestEvent::Body(data) => {
                assert!(!data.is_empty(), "a body piece is not empty");
                log.body(data);
            }
            RequestEvent::Trailers(lines) => log.trailers(lines),
            RequestEvent::Done => {
                log.add("done");
                assert_eq!(decoder.buffered_bytes(), 0, "nothing is kept between requests");
            }
        }
        assert!(
            decoder.buffered_bytes() <= buffered_bytes_max(limits),
            "no more is kept than the limits say"
        );
        piece = &piece[used..];
        if last {
            assert!(piece.is_empty(), "NeedMore takes all of the input");
            return Ok(());
        }
    }
}

fn buffered_bytes_max(limits: &Limits) -> usize {
    limits.head_bytes.max(limits.trailer_bytes)
}
