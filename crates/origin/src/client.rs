//! One connection to a client: what it is doing, and the request that is being read or answered.
//!
//! Holds no socket's bytes beyond what it must: `serve.rs` moves them, and decides what happens next.

use weir_net::Conn;
use weir_wire::h1::{Limits, RequestDecoder, RequestEvent, RequestHead, Version};

use crate::response::Tail;
use crate::route::{Answer, Content, route};

/// The longest body that `/echo` holds.
const ECHO_BYTES_MAX: usize = 16 << 20;

/// A client that pipelines more than this is not read from until it has had its answers.
const BACKLOG_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Client {
    pub conn: Conn,
    /// Of this connection alone: a slot is used again, an id is not.
    pub id: u32,
    pub state: State,
    decoder: RequestDecoder,
    pub request: Request,
    /// When the request was complete.
    pub ready_ns: u64,
    /// Requests of this connection so far, `/_weir/…` left out.
    pub requests: u64,
    pub visibility: Visibility,
    /// Bytes of later requests, while one is answered.
    pub backlog: Vec<u8>,
    pub paused: bool,
    /// The client sends no more.
    pub eof: bool,
    /// Holds a place at the gate.
    pub entered: bool,
    /// When it has been idle for too long, if it is idle then.
    pub idle_deadline_ns: u64,
    /// A timer for that is set.
    pub idle_armed: bool,
    /// Of the TLS handshake; `None` without one.
    pub resumed: Option<bool>,
}

/// Whether the counters show this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Shown,
    /// It has asked for nothing but counters.
    Hidden,
}

#[derive(Debug)]
pub(crate) enum State {
    /// Between requests, or inside one.
    Reading,
    /// The request waits for its turn.
    Queued,
    /// Its latency runs.
    UnderWay,
    /// The rest of the response goes out piece by piece, as the kernel takes it.
    Sending(Tail),
    /// The same, by the clock.
    Dripping(Tail),
    /// Nothing more is said here, until the client goes away.
    Silent,
    /// The response is out, our side is closed, and what the client still sends is thrown away.
    Lingering,
}

/// What is known of a request once its head is there.
#[derive(Debug)]
pub(crate) struct Request {
    pub answer: Answer,
    pub head_only: bool,
    pub keep_alive: bool,
    pub version: Version,
    /// The body of an `/echo`; later the text of an answer that is made for this request alone.
    pub held: Vec<u8>,
    pub held_too_long: bool,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            answer: Answer::usual(200, 0),
            head_only: false,
            keep_alive: true,
            version: Version::Http11,
            held: Vec::new(),
            held_too_long: false,
        }
    }
}

impl Request {
    fn begin(&mut self, head: &RequestHead<'_>, usual: Answer) {
        self.answer = route(head.method, head.path(), usual);
        self.head_only = head.method == b"HEAD";
        self.keep_alive = head.keep_alive;
        self.version = head.version;
        self.held.clear();
        self.held_too_long = false;
    }

    /// An answer to what could not be read, and nothing after it.
    pub fn refuse(&mut self, status: u16) {
        self.answer = Answer::refusal(status);
        self.head_only = false;
        self.keep_alive = false;
    }

    /// Only an echo needs the body; any other is read and forgotten.
    fn body(&mut self, bytes: &[u8]) {
        if self.answer.content != Content::Echo || self.held_too_long {
            return;
        }
        if self.held.len() + bytes.len() > ECHO_BYTES_MAX {
            self.held_too_long = true;
            return;
        }
        self.held.extend_from_slice(bytes);
    }
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All bytes are taken.
    NeedMore,
    /// There may be more in the rest of the bytes.
    More,
    /// The client waits for `100 Continue`.
    Expects,
    /// The request is complete.
    Complete,
    /// This answer, and no further request.
    Refused(u16),
}

impl Client {
    pub fn new(conn: Conn, id: u32) -> Client {
        Client {
            conn,
            id,
            state: State::Reading,
            decoder: RequestDecoder::new(Limits::DEFAULT),
            request: Request::default(),
            ready_ns: 0,
            requests: 0,
            visibility: Visibility::Shown,
            backlog: Vec::new(),
            paused: false,
            eof: false,
            entered: false,
            idle_deadline_ns: 0,
            idle_armed: false,
            resumed: None,
        }
    }

    /// Reads on in the request. Returns how many of the bytes are used up.
    pub fn read(&mut self, bytes: &[u8], usual: Answer) -> (usize, Step) {
        match self.decoder.decode(bytes) {
            Err(error) => (bytes.len(), Step::Refused(error.status())),
            Ok((taken, event)) => (taken, digest(&mut self.request, &event, usual)),
        }
    }

    /// Nothing of a next request is there.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Reading) && self.backlog.is_empty() && self.decoder.is_idle()
    }

    /// Keeps bytes of later requests for their turn. True if there are too many to go on reading.
    pub fn hold_back(&mut self, bytes: &[u8]) -> bool {
        self.backlog.extend_from_slice(bytes);
        self.backlog.len() > BACKLOG_BYTES_MAX
    }
}

fn digest(request: &mut Request, event: &RequestEvent<'_>, usual: Answer) -> Step {
    match event {
        RequestEvent::NeedMore => Step::NeedMore,
        RequestEvent::Full { head, body } => {
            request.begin(head, usual);
            request.body(body);
            complete(request)
        }
        RequestEvent::Head(head) => {
            request.begin(head, usual);
            if head.expect_continue { Step::Expects } else { Step::More }
        }
        RequestEvent::Body(bytes) => {
            request.body(bytes);
            // There is no point in waiting for the rest of it.
            if request.held_too_long { Step::Refused(413) } else { Step::More }
        }
        RequestEvent::Trailers(_) => Step::More,
        RequestEvent::Done => complete(request),
    }
}

fn complete(request: &Request) -> Step {
    if request.held_too_long { Step::Refused(413) } else { Step::Complete }
}
