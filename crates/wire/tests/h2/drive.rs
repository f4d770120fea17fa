//! Drives a connection over pieces of input and puts down what it saw, and what it wrote, as text. Where the input was cut
//! does not show: neighbouring pieces of content are one.
//!
//! ```text
//! settings; head 1 GET http a / x=y; data 1 hello end | SETTINGS ACK
//! ```

use weir_wire::h2::{
    Cause, Client, Config, Connection, ErrorCode, Event, Fields, RequestHead, ResponseHead, Server, Side,
};

/// What was seen, in order, and what was written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub text: String,
    /// The stream and the content not yet written down.
    content: Option<(u32, Vec<u8>)>,
    pub out: Vec<u8>,
    pub failed: Option<(ErrorCode, &'static str)>,
    /// Streams that were reset by us because of an error.
    pub stream_errors: Vec<(u32, ErrorCode, &'static str)>,
}

impl Log {
    fn add(&mut self, event: &str) {
        self.flush("");
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.push_str(event);
    }

    fn flush(&mut self, end: &str) {
        if let Some((stream, bytes)) = self.content.take() {
            self.add(&format!("data {stream} {}{end}", bytes.escape_ascii()));
        }
    }

    fn data(&mut self, stream: u32, bytes: &[u8], end: bool) {
        assert!(end || !bytes.is_empty(), "empty data must end the stream");
        if self.content.as_ref().is_some_and(|content| content.0 != stream) {
            self.flush("");
        }
        self.content.get_or_insert((stream, Vec::new())).1.extend_from_slice(bytes);
        if end {
            self.flush(" end");
        }
    }
}

/// The two heads, as text.
pub trait Shown {
    fn shown(&self) -> String;
}

impl Shown for RequestHead<'_> {
    fn shown(&self) -> String {
        let ascii = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let length = self.content_length.map(|n| format!(" length {n}")).unwrap_or_default();
        format!(
            "head {} {} {} {} {}{length}{}{}",
            self.stream,
            ascii(self.method),
            ascii(self.scheme),
            ascii(self.authority),
            ascii(self.path),
            fields(self.fields),
            if self.end { " end" } else { "" },
        )
    }
}

impl Shown for ResponseHead<'_> {
    fn shown(&self) -> String {
        let length = self.content_length.map(|n| format!(" length {n}")).unwrap_or_default();
        let end = if self.end { " end" } else { "" };
        assert_eq!(self.tag, self.stream + 100, "the tag comes back");
        format!("head {} {}{length}{}{end}", self.stream, self.status, fields(self.fields))
    }
}

pub fn fields(fields: Fields<'_>) -> String {
    fields
        .map(|(name, value)| {
            let value = value.bytes().map(|bytes| bytes.escape_ascii().to_string());
            format!(" {}={}", name.escape_ascii(), value.unwrap_or_else(|error| format!("({error})")))
        })
        .collect()
}

fn note<H: Shown>(log: &mut Log, event: Event<'_, H>) {
    match event {
        Event::NeedMore => {}
        Event::Head(head) => log.add(&head.shown()),
        Event::Informational { stream, status, .. } => log.add(&format!("interim {stream} {status}")),
        Event::Data { stream, bytes, end, .. } => log.data(stream, bytes, end),
        Event::Trailers { stream, fields: f, .. } => log.add(&format!("trailers {stream}{}", fields(f))),
        Event::Reset { stream, code, cause, .. } => {
            if let Cause::Error(reason) = cause {
                log.stream_errors.push((stream, code, reason));
            }
            log.add(&format!("reset {stream} {code} {cause:?}"));
        }
        Event::GoAway { last, code } => log.add(&format!("goaway {last} {code}")),
        Event::Settings(_) => log.add("settings"),
        Event::WindowOpened(stream) => log.add(&format!("opened {:?}", stream.map(|(id, _)| id))),
        Event::Pong(data) => log.add(&format!("pong {}", data.escape_ascii())),
    }
}

/// Passes the pieces to a connection; `out` holds what it wrote when it was made.
pub fn run<'p, S: Side>(
    mut connection: Connection<S>,
    out: Vec<u8>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Log
where
    for<'a> S::Head<'a>: Shown,
{
    let mut log = Log { out, ..Log::default() };
    let mut out = std::mem::take(&mut log.out);
    'pieces: for mut piece in pieces {
        loop {
            let (used, more) = match connection.next(piece, &mut out) {
                Ok((used, event)) => {
                    let more = !matches!(event, Event::NeedMore);
                    note(&mut log, event);
                    (used, more)
                }
                Err(error) => {
                    log.failed = Some((error.code, error.reason));
                    break 'pieces;
                }
            };
            assert!(more || used == piece.len(), "NeedMore takes all");
            piece = &piece[used..];
            if !more {
                break;
            }
        }
        assert!(connection.held_bytes() < 4 << 20, "held {} bytes", connection.held_bytes());
    }
    log.flush("");
    if let Some((code, reason)) = log.failed {
        log.add(&format!("error {code}: {reason}"));
        let written = out.len();
        let again = connection.next(b"more", &mut out).expect_err("a failed connection stays so");
        assert_eq!((again.code, out.len()), (code, written), "the same error, and no second GOAWAY");
    }
    log.out = out;
    log
}

pub fn server<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, config: Config) -> Log {
    let mut out = Vec::new();
    let server = Server::new(config, &mut out);
    run(server, out, pieces)
}

/// A client that has sent a GET on streams 1 and 3, a HEAD on 5 and an unfinished POST on 7.
pub fn client<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, config: Config) -> Log {
    use weir_wire::h2::{PreparedHead, RequestLine};
    let mut out = Vec::new();
    let mut client = Client::new(config, &mut out);
    for (number, method) in [b"GET", &b"GET"[..], b"HEAD", b"POST"].into_iter().enumerate() {
        let line = RequestLine { method, scheme: b"http", authority: b"a", path: b"/" };
        let head = PreparedHead::request(line, &[]).unwrap();
        let stream = 2 * number as u32 + 1;
        assert_eq!(client.request(&head, &[], method != b"POST", stream + 100, &mut out), Ok(stream));
    }
    run(client, out, pieces)
}

/// The frames in `out`, as text: `RST_STREAM 1 CANCEL; GOAWAY 3 NO_ERROR`.
pub fn frames(mut out: &[u8]) -> String {
    const NAMES: [&str; 10] = [
        "DATA",
        "HEADERS",
        "PRIORITY",
        "RST_STREAM",
        "SETTINGS",
        "PUSH_PROMISE",
        "PING",
        "GOAWAY",
        "WINDOW_UPDATE",
        "CONTINUATION",
    ];
    out = out.strip_prefix(weir_wire::h2::PREFACE).unwrap_or(out);
    let mut shown = Vec::new();
    while !out.is_empty() {
        let u32_at = |at: usize| u32::from_be_bytes(out[at..at + 4].try_into().unwrap());
        let len = (u32_at(0) >> 8) as usize;
        let (kind, flags, stream) = (out[3], out[4], u32_at(5));
        let detail = match kind {
            3 => format!(" {stream} {}", ErrorCode(u32_at(9))),
            7 => format!(" {} {}", u32_at(9), ErrorCode(u32_at(13))),
            8 => format!(" {stream} {}", u32_at(9)),
            4 | 6 if flags == 1 => " ACK".into(),
            4 | 6 => String::new(),
            0 => format!(
                " {stream} {}{}",
                out[9..9 + len].escape_ascii(),
                if flags & 1 != 0 { " end" } else { "" }
            ),
            _ => format!(" {stream}{}", if flags & 1 != 0 { " end" } else { "" }),
        };
        shown.push(format!("{}{detail}", NAMES[kind as usize]));
        out = &out[9 + len..];
    }
    shown.join("; ")
}
