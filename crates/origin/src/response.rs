//! Writes responses, whole and broken ones, straight into the connection's buffer.
//!
//! The usual head is kept ready made and renewed once a second, for its Date. A body of any length is written piece by
//! piece, so that none is ever held.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_wire::h1::{
    Version, write_chunk, write_field, write_field_u64, write_last_chunk, write_status_line, write_u64,
};

use crate::client::Request;
use crate::fault::FaultKind;
use crate::route::{Answer, Content};

/// What `Fill` bodies are made of, again and again: twelve bytes.
const TEXT: &[u8; 12] = b"weir origin\n";

/// `TEXT` as often as fits; any piece of a body is a slice of it.
static FILL: [u8; 12 * 1366] = {
    let mut fill = [0; 12 * 1366];
    let mut at = 0;
    while at < fill.len() {
        fill[at] = TEXT[at % TEXT.len()];
        at += 1;
    }
    fill
};

/// The most that one call of `Tail::write` adds.
const PIECE_BYTES: u64 = 64 << 10;

/// A filler line is `X-Filler: `, 1012 times `x` and the line end: 1 KiB, so 1024 of them are 1 MiB.
pub(crate) const HUGE_HEAD_LINES: u32 = 1024;
const FILLER_VALUE_BYTES: usize = 1012;

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// 204 and 304 have no body.
    Bodiless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    Text,
    Json,
    Octets,
}

impl ContentType {
    const fn name(self) -> &'static [u8] {
        match self {
            ContentType::Text => b"text/plain",
            ContentType::Json => b"application/json",
            ContentType::Octets => b"application/octet-stream",
        }
    }
}

/// What a head says about the connection's future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing: HTTP/1.1 keeps it.
    Implied,
    Close,
    /// `Connection: keep-alive`, and what the origin knows about the end.
    KeepAlive {
        timeout_s: Option<u64>,
        requests_left: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    pub framing: Framing,
    pub content_type: ContentType,
    pub persistence: Persistence,
}

/// Writes heads; knows the date.
pub(crate) struct Heads {
    usual: Head,
    /// The usual head up to its Date.
    prepared: Vec<u8>,
    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and the line end.
    date: Vec<u8>,
    stale_at_ns: u64,
    server_timing: bool,
}

impl Heads {
    pub fn new(usual: Head, server_timing: bool) -> Heads {
        Heads { usual, prepared: Vec::new(), date: Vec::new(), stale_at_ns: 0, server_timing }
    }

    /// The date is good until then, on the caller's clock.
    pub fn is_stale(&self, now_ns: u64) -> bool {
        now_ns >= self.stale_at_ns
    }

    pub fn renew(&mut self, now_ns: u64, date: SystemTime) {
        let since_epoch = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.stale_at_ns = now_ns + 1_000_000_000 - u64::from(since_epoch.subsec_nanos());
        self.date.clear();
        write_field(&mut self.date, b"Date", httpdate::fmt_http_date(date).as_bytes());
        self.prepared.clear();
        let mut prepared = std::mem::take(&mut self.prepared);
        self.write_fields(&mut prepared, &self.usual);
        self.prepared = prepared;
    }

    /// The whole head. `took_ns`: since the request was complete.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, head: &Head, took_ns: u64) {
        self.write_open(out, head, took_ns);
        out.extend_from_slice(b"\r\n");
    }

    /// The head without the empty line that ends it.
    #[inline]
    pub fn write_open(&self, out: &mut Vec<u8>, head: &Head, took_ns: u64) {
        if *head == self.usual {
            out.extend_from_slice(&self.prepared);
        } else {
            self.write_fields(out, head);
        }
        if self.server_timing {
            write_server_timing(out, took_ns);
        }
    }

    fn write_fields(&self, out: &mut Vec<u8>, head: &Head) {
        write_status_line(out, Version::Http11, head.status);
        out.extend_from_slice(&self.date);
        if head.framing != Framing::Bodiless {
            write_field(out, b"Content-Type", head.content_type.name());
        }
        match head.framing {
            Framing::Length(bytes) => write_field_u64(out, b"Content-Length", bytes),
            Framing::Chunked => write_field(out, b"Transfer-Encoding", b"chunked"),
            Framing::Bodiless => {}
        }
        match head.persistence {
            Persistence::Implied => {}
            Persistence::Close => write_field(out, b"Connection", b"close"),
            Persistence::KeepAlive { timeout_s, requests_left } => {
                write_keep_alive(out, timeout_s, requests_left)
            }
        }
    }
}

/// `Keep-Alive: timeout=5, max=99`, as far as there is something to say.
fn write_keep_alive(out: &mut Vec<u8>, timeout_s: Option<u64>, requests_left: Option<u64>) {
    write_field(out, b"Connection", b"keep-alive");
    if timeout_s.is_none() && requests_left.is_none() {
        return;
    }
    out.extend_from_slice(b"Keep-Alive: ");
    if let Some(timeout_s) = timeout_s {
        out.extend_from_slice(b"timeout=");
        write_u64(out, timeout_s);
    }
    if let Some(requests) = requests_left {
        out.extend_from_slice(if timeout_s.is_some() { b", max=" } else { b"max=" });
        write_u64(out, requests);
    }
    out.extend_from_slice(b"\r\n");
}

/// Milliseconds with microseconds behind the point.
fn write_server_timing(out: &mut Vec<u8>, took_ns: u64) {
    out.extend_from_slice(b"Server-Timing: origin;dur=");
    let us = took_ns / 1_000;
    write_u64(out, us / 1_000);
    let fraction = us % 1_000;
    let digit = |n: u64| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[
        b'.',
        digit(fraction / 100),
        digit(fraction / 10),
        digit(fraction),
        b'\r',
        b'\n',
    ]);
}

/// What is still to be sent of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Lines that make the head huge, and the empty line that ends it. 0: the head is out.
    pub filler_lines: u32,
    pub source: Source,
    pub sent: u64,
    /// Where the body stops. Less than what the head announced, if it is to be cut.
    pub end: u64,
    /// In chunks; the last one is due once the body is out.
    pub chunked: bool,
    pub last_chunk_due: bool,
    pub then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Fill,
    /// What the client's `Request` holds.
    Held,
    Text(&'static str),
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Next,
    Close,
    Reset,
    Silence,
    /// Bytes that nobody asked for, then the next request.
    Extra,
}

impl Tail {
    pub fn is_done(&self) -> bool {
        self.filler_lines == 0 && self.sent == self.end && !self.last_chunk_due
    }

    /// Adds the next piece: `limit` bytes of the body at most, and never more than `PIECE_BYTES`.
    pub fn write(&mut self, out: &mut Vec<u8>, held: &[u8], limit: u64) {
        if self.filler_lines > 0 {
            return self.write_filler(out);
        }
        let mut budget = limit.min(PIECE_BYTES).min(self.end - self.sent);
        while budget > 0 {
            let piece = self.piece(held, budget);
            match self.chunked {
                true => write_chunk(out, piece),
                false => out.extend_from_slice(piece),
            }
            self.sent += piece.len() as u64;
            budget -= piece.len() as u64;
        }
        if self.sent == self.end && std::mem::take(&mut self.last_chunk_due) {
            write_last_chunk(out, []);
        }
    }

    /// The next bytes of the body that lie in one place.
    fn piece<'a>(&self, held: &'a [u8], budget: u64) -> &'a [u8] {
        let (from, all): (usize, &'a [u8]) = match self.source {
            Source::Fill => ((self.sent % TEXT.len() as u64) as usize, &FILL),
            Source::Held => (self.sent as usize, held),
            Source::Text(text) => (self.sent as usize, text.as_bytes()),
        };
        let until = all.len().min(from.saturating_add(budget as usize));
        &all[from..until]
    }

    fn write_filler(&mut self, out: &mut Vec<u8>) {
        let lines = self.filler_lines.min((PIECE_BYTES >> 10) as u32);
        for _ in 0..lines {
            write_field(out, b"X-Filler", &[b'x'; FILLER_VALUE_BYTES]);
        }
        self.filler_lines -= lines;
        if self.filler_lines == 0 {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// What the origin says of its connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    pub timeout_s: Option<u64>,
    pub requests: Option<u64>,
    pub announce: bool,
    pub silent_close: bool,
    pub close: bool,
}

impl Keepalive {
    /// What the answer to request number `requests` says, and what follows it.
    fn after(&self, request: &Request, requests: u64) -> (Persistence, Then) {
        let requests_left = self.requests.map(|max| max.saturating_sub(requests));
        let asked_to_close = self.close || !request.keep_alive;
        if asked_to_close || (requests_left == Some(0) && !self.silent_close) {
            return (Persistence::Close, Then::Close);
        }
        let then = if requests_left == Some(0) { Then::Close } else { Then::Next };
        let persistence = if self.announce {
            Persistence::KeepAlive { timeout_s: self.timeout_s, requests_left }
        } else if request.version == Version::Http10 {
            Persistence::KeepAlive { timeout_s: None, requests_left: None }
        } else {
            Persistence::Implied
        };
        (persistence, then)
    }
}

/// The response to a request, in full: `requests` is its number on the connection.
pub(crate) fn response(request: &Request, requests: u64, keepalive: &Keepalive) -> (Head, Tail) {
    let Answer { status, content, chunked, .. } = request.answer;
    let (source, bytes, content_type) = match content {
        Content::Fill(bytes) => (Source::Fill, bytes, ContentType::Text),
        Content::Echo => (Source::Held, request.held.len() as u64, ContentType::Octets),
        Content::Text(text) => (Source::Text(text), text.len() as u64, ContentType::Text),
        Content::Stats | Content::Reset => (Source::Held, request.held.len() as u64, ContentType::Json),
    };
    let framing = match status {
        204 | 304 => Framing::Bodiless,
        _ if chunked && request.version == Version::Http11 => Framing::Chunked,
        _ => Framing::Length(bytes),
    };
    let (persistence, then) = keepalive.after(request, requests);
    let has_body = framing != Framing::Bodiless && !request.head_only;
    let chunked = framing == Framing::Chunked && has_body;
    let end = if has_body { bytes } else { 0 };
    let tail = Tail { filler_lines: 0, source, sent: 0, end, chunked, last_chunk_due: chunked, then };
    (Head { status, framing, content_type, persistence }, tail)
}

/// A chunk, and then one whose size is no number.
const BAD_CHUNKS: &str = "c\r\nweir origin\n\r\nzz\r\nweir origin\n\r\n";

/// Breaks a response. `serve.rs` plays the faults that write none.
pub(crate) fn spoil(fault: FaultKind, head_only: bool, head: &mut Head, tail: &mut Tail) {
    match fault {
        FaultKind::Truncate => cut(head_only, head, tail, Then::Close),
        FaultKind::ResetMidBody => cut(head_only, head, tail, Then::Reset),
        FaultKind::Stall => cut(head_only, head, tail, Then::Silence),
        FaultKind::HugeHead => tail.filler_lines = HUGE_HEAD_LINES,
        FaultKind::ServerError => head.status = 503,
        FaultKind::BadChunk => {
            head.framing = Framing::Chunked;
            let end = if head_only { 0 } else { BAD_CHUNKS.len() as u64 };
            let source = Source::Text(BAD_CHUNKS);
            *tail = Tail {
                filler_lines: 0,
                source,
                sent: 0,
                end,
                chunked: false,
                last_chunk_due: false,
                then: Then::Close,
            };
        }
        FaultKind::Extra => tail.then = Then::Extra,
        FaultKind::Drip
        | FaultKind::Refuse
        | FaultKind::Reset
        | FaultKind::HalfClose
        | FaultKind::Close
        | FaultKind::Hang
        | FaultKind::Malformed
        | FaultKind::CloseOnReuse => {}
    }
}

/// Half of the body, then something else. A body that has no half to give is made two bytes long.
fn cut(head_only: bool, head: &mut Head, tail: &mut Tail, then: Then) {
    if !head_only && tail.end < 2 {
        *tail = Tail { source: Source::Fill, end: 2, ..*tail };
        head.status = if head.framing == Framing::Bodiless { 200 } else { head.status };
        head.framing = if tail.chunked { Framing::Chunked } else { Framing::Length(2) };
    }
    tail.end /= 2;
    tail.last_chunk_due = false;
    tail.then = then;
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPALIVE: Keepalive =
        Keepalive { timeout_s: None, requests: None, announce: false, silent_close: false, close: false };

    fn request(answer: Answer) -> Request {
        Request { answer, ..Request::default() }
    }

    fn fill(bytes: u64) -> Answer {
        Answer::usual(200, bytes)
    }

    fn heads() -> Heads {
        let (usual, _) = response(&request(fill(12)), 1, &KEEPALIVE);
        let mut heads = Heads::new(usual, true);
        heads.renew(0, UNIX_EPOCH + Duration::from_millis(784_111_777_250));
        heads
    }

    /// The bytes of a response, and how many pieces they came in.
    fn written(head: &Head, mut tail: Tail, held: &[u8]) -> (String, usize) {
        let mut out = Vec::new();
        if tail.filler_lines > 0 {
            heads().write_open(&mut out, head, 12_345_678);
        } else {
            heads().write(&mut out, head, 12_345_678);
        }
        let mut pieces = 0;
        while !tail.is_done() {
            tail.write(&mut out, held, u64::MAX);
            pieces += 1;
        }
        (String::from_utf8(out).unwrap(), pieces)
    }

    fn check(request: &Request, expected: &str) {
        let (head, tail) = response(request, 1, &KEEPALIVE);
        assert_eq!(written(&head, tail, &request.held).0, expected);
    }

    const START: &str = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    const TIMING: &str = "Server-Timing: origin;dur=12.345\r\n\r\n";

    #[test]
    fn the_usual_answer_is_twelve_bytes() {
        let expected =
            format!("{START}Content-Type: text/plain\r\nContent-Length: 12\r\n{TIMING}weir origin\n");
        check(&request(fill(12)), &expected);
    }

    #[test]
    fn head_gets_the_head_alone() {
        let head_only = Request { head_only: true, ..request(fill(5000)) };
        check(&head_only, &format!("{START}Content-Type: text/plain\r\nContent-Length: 5000\r\n{TIMING}"));
        let chunked = Request { head_only: true, ..request(Answer { chunked: true, ..fill(5000) }) };
        check(
            &chunked,
            &format!("{START}Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n{TIMING}"),
        );
    }

    #[test]
    fn a_204_has_neither_body_nor_length() {
        let answer = Answer { status: 204, ..fill(12) };
        check(&request(answer), &format!("{START}{TIMING}").replace("200 OK", "204 No Content"));
    }

    #[test]
    fn chunks_end_with_the_last_one() {
        let head = format!("{START}Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n{TIMING}");
        check(
            &request(Answer { chunked: true, ..fill(14) }),
            &format!("{head}e\r\nweir origin\nwe\r\n0\r\n\r\n"),
        );
        check(&request(Answer { chunked: true, ..fill(0) }), &format!("{head}0\r\n\r\n"));
        let old = Request {
            version: Version::Http10,
            keep_alive: false,
            ..request(Answer { chunked: true, ..fill(2) })
        };
        let plain = format!(
            "{START}Content-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n{TIMING}we"
        );
        check(&old, &plain);
    }

    #[test]
    fn an_echo_is_what_was_sent() {
        let echo =
            Request { held: b"ping".to_vec(), ..request(Answer { content: Content::Echo, ..fill(0) }) };
        let head = format!("{START}Content-Type: application/octet-stream\r\nContent-Length: 4\r\n{TIMING}");
        check(&echo, &format!("{head}ping"));
    }

    #[test]
    fn long_bodies_come_in_pieces_of_one_text() {
        let check = |bytes: u64| {
            let (head, tail) = response(&request(fill(bytes)), 1, &KEEPALIVE);
            let (text, pieces) = written(&head, tail, &[]);
            let body = text.split_once("\r\n\r\n").unwrap().1;
            assert_eq!(body.len() as u64, bytes);
            assert!(body.bytes().zip(TEXT.iter().cycle()).all(|(got, want)| got == *want), "{bytes}");
            assert_eq!(pieces as u64, bytes.div_ceil(PIECE_BYTES), "{bytes}");
        };
        for bytes in [1, 12, 16_391, 16_393, 65_536, 65_537, 1_000_000] {
            check(bytes);
        }
    }

    #[test]
    fn the_head_says_how_the_connection_goes_on() {
        let check = |keepalive: Keepalive,
                     keep_alive: bool,
                     version,
                     requests: u64,
                     expected: (Persistence, Then)| {
            let request = Request { keep_alive, version, ..request(fill(1)) };
            assert_eq!(keepalive.after(&request, requests), expected, "{keepalive:?} {requests}");
        };
        let says = |timeout_s, requests_left| Persistence::KeepAlive { timeout_s, requests_left };
        let (old, new) = (Version::Http10, Version::Http11);
        check(KEEPALIVE, true, new, 9, (Persistence::Implied, Then::Next));
        check(KEEPALIVE, false, new, 9, (Persistence::Close, Then::Close));
        check(KEEPALIVE, true, old, 9, (says(None, None), Then::Next));
        check(Keepalive { close: true, ..KEEPALIVE }, true, new, 1, (Persistence::Close, Then::Close));
        let three = Keepalive { requests: Some(3), timeout_s: Some(5), ..KEEPALIVE };
        check(three, true, new, 2, (Persistence::Implied, Then::Next));
        check(three, true, new, 3, (Persistence::Close, Then::Close));
        check(Keepalive { silent_close: true, ..three }, true, new, 3, (Persistence::Implied, Then::Close));
        check(Keepalive { announce: true, ..three }, true, new, 1, (says(Some(5), Some(2)), Then::Next));
    }

    #[test]
    fn the_keep_alive_field_says_what_is_known() {
        let check = |timeout_s, requests_left, expected: &str| {
            let mut out = Vec::new();
            write_keep_alive(&mut out, timeout_s, requests_left);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(None, None, "Connection: keep-alive\r\n");
        check(Some(5), None, "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n");
        check(None, Some(7), "Connection: keep-alive\r\nKeep-Alive: max=7\r\n");
        check(Some(5), Some(7), "Connection: keep-alive\r\nKeep-Alive: timeout=5, max=7\r\n");
    }

    #[test]
    fn server_timing_has_three_decimals() {
        let check = |took_ns: u64, expected: &str| {
            let mut out = Vec::new();
            write_server_timing(&mut out, took_ns);
            assert_eq!(String::from_utf8(out).unwrap(), format!("Server-Timing: origin;dur={expected}\r\n"));
        };
        check(0, "0.000");
        check(999, "0.000");
        check(7_000, "0.007");
        check(12_345_678, "12.345");
        check(100_000_000_000, "100000.000");
    }

    #[test]
    fn the_date_is_renewed_when_its_second_is_over() {
        let heads = heads();
        // 250 ms of this second were over at 0.
        assert!(!heads.is_stale(749_999_999));
        assert!(heads.is_stale(750_000_000));
    }

    #[test]
    fn spoilt_responses_are_spoilt_as_they_should() {
        let check = |fault, answer: Answer, expected: &str, then| {
            let request = request(answer);
            let (mut head, mut tail) = response(&request, 1, &KEEPALIVE);
            spoil(fault, false, &mut head, &mut tail);
            assert_eq!(tail.then, then, "{fault:?}");
            let (text, _) = written(&head, tail, &[]);
            assert!(text.ends_with(expected), "{fault:?}: {text}");
        };
        let length = |bytes: u64, body: &str| format!("Content-Length: {bytes}\r\n{TIMING}{body}");
        check(FaultKind::Truncate, fill(12), &length(12, "weir o"), Then::Close);
        check(FaultKind::Truncate, fill(0), &length(2, "w"), Then::Close);
        check(FaultKind::Truncate, Answer { status: 204, ..fill(9) }, &length(2, "w"), Then::Close);
        check(FaultKind::ResetMidBody, fill(12), &length(12, "weir o"), Then::Reset);
        check(FaultKind::Stall, fill(12), &length(12, "weir o"), Then::Silence);
        check(
            FaultKind::Stall,
            Answer { chunked: true, ..fill(4) },
            &format!("{TIMING}2\r\nwe\r\n"),
            Then::Silence,
        );
        check(FaultKind::BadChunk, fill(12), &format!("chunked\r\n{TIMING}{BAD_CHUNKS}"), Then::Close);
        check(FaultKind::Extra, fill(2), &length(2, "we"), Then::Extra);
        check(FaultKind::ServerError, fill(2), &length(2, "we"), Then::Next);
    }

    #[test]
    fn a_huge_head_is_a_megabyte_of_fields_and_then_the_response() {
        let (mut head, mut tail) = response(&request(fill(12)), 1, &KEEPALIVE);
        spoil(FaultKind::HugeHead, false, &mut head, &mut tail);
        let (text, pieces) = written(&head, tail, &[]);
        let (fields, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(fields.len() > 1 << 20, "{}", fields.len());
        assert_eq!(fields.matches("\r\nX-Filler: x").count(), 1024);
        assert_eq!(body, "weir origin\n");
        assert_eq!(pieces, 17);
    }
}
