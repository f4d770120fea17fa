//! One request's life, as the moments at which it changed hands.
//!
//! ```text
//! intended   started              acquired   sent     first_byte    done
//!    |-- lag --|-- wait dns connect tls --|-- send --|-- server --|-- receive --|
//! ```
//!
//! The phases are differences of neighbouring moments, so they add up to the response time exactly.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The eight phases of a request, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Lag,
    Wait,
    Dns,
    Connect,
    Tls,
    Send,
    Server,
    Receive,
}

impl Phase {
    pub const ALL: [Phase; 8] = [
        Phase::Lag,
        Phase::Wait,
        Phase::Dns,
        Phase::Connect,
        Phase::Tls,
        Phase::Send,
        Phase::Server,
        Phase::Receive,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Phase::Lag => "lag",
            Phase::Wait => "wait",
            Phase::Dns => "dns",
            Phase::Connect => "connect",
            Phase::Tls => "tls",
            Phase::Send => "send",
            Phase::Server => "server",
            Phase::Receive => "receive",
        }
    }
}

/// Who ended a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The generator itself: its pool, its limits, its machine.
    Us,
    /// The server, or the network on its behalf.
    Origin,
    /// Nobody answered in time.
    Timeout,
}

/// Why a request failed. `name` is what follows the slash in `phase/kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The pool's queue was full.
    PendingLimit,
    /// The pool's queue did not give a connection in time.
    AcquireTimeout,
    /// The time for the whole request (`--timeout`) or for the dial was over.
    Timeout,
    /// The run was interrupted before the request ended.
    Interrupted,
    /// The name has no address.
    NotFound,
    /// ECONNREFUSED.
    Refused,
    /// ENETUNREACH, EHOSTUNREACH.
    Unreachable,
    /// ECONNRESET, EPIPE.
    Reset,
    /// The peer closed in the right order of packets, before the answer was complete.
    Closed,
    /// The peer closed inside a body whose end had not come.
    Truncated,
    /// Bytes that are not HTTP, or not HTTP that may be trusted (RFC 9112 sections 6.3 and 11).
    Malformed,
    /// A head or a line longer than the limit.
    TooLarge,
    /// EADDRNOTAVAIL, EADDRINUSE: no ephemeral port left.
    NoPorts,
    /// EMFILE, ENFILE.
    NoFiles,
    /// The certificate is not signed by anyone we trust, is expired, or names another host.
    Untrusted,
    /// The server wants a client certificate, or refused ours.
    ClientCert,
    /// Any other failure of the TLS handshake or record layer.
    Tls,
    /// A complete answer with a status from 400 to 499.
    Status4xx,
    /// A complete answer with a status from 500 to 599.
    Status5xx,
    /// Any other error of the operating system.
    Io,
}

impl Kind {
    pub const ALL: [Kind; 20] = [
        Kind::PendingLimit,
        Kind::AcquireTimeout,
        Kind::Timeout,
        Kind::Interrupted,
        Kind::NotFound,
        Kind::Refused,
        Kind::Unreachable,
        Kind::Reset,
        Kind::Closed,
        Kind::Truncated,
        Kind::Malformed,
        Kind::TooLarge,
        Kind::NoPorts,
        Kind::NoFiles,
        Kind::Untrusted,
        Kind::ClientCert,
        Kind::Tls,
        Kind::Status4xx,
        Kind::Status5xx,
        Kind::Io,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Kind::PendingLimit => "pending_limit",
            Kind::AcquireTimeout => "acquire_timeout",
            Kind::Timeout => "timeout",
            Kind::Interrupted => "interrupted",
            Kind::NotFound => "not_found",
            Kind::Refused => "refused",
            Kind::Unreachable => "unreachable",
            Kind::Reset => "reset",
            Kind::Closed => "closed",
            Kind::Truncated => "truncated",
            Kind::Malformed => "malformed",
            Kind::TooLarge => "too_large",
            Kind::NoPorts => "no_ports",
            Kind::NoFiles => "no_files",
            Kind::Untrusted => "untrusted",
            Kind::ClientCert => "client_cert",
            Kind::Tls => "tls",
            Kind::Status4xx => "status_4xx",
            Kind::Status5xx => "status_5xx",
            Kind::Io => "io",
        }
    }

    pub const fn side(self) -> Side {
        match self {
            Kind::PendingLimit | Kind::Interrupted | Kind::NoPorts | Kind::NoFiles => Side::Us,
            Kind::AcquireTimeout | Kind::Timeout => Side::Timeout,
            _ => Side::Origin,
        }
    }
}

/// A request that failed: in which phase, and why. Shown as `phase/kind`, for example `wait/pending_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Failure {
    pub phase: Phase,
    pub kind: Kind,
}

impl Failure {
    pub const fn new(phase: Phase, kind: Kind) -> Failure {
        Failure { phase, kind }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.phase.name(), self.kind.name())
    }
}

/// How a request ended. A failure is data, and is never mixed into the latencies of successes.
pub type Outcome = Result<(), Failure>;

/// One request, from the moment the schedule wanted it to its last byte.
///
/// Moments are nanoseconds since the run's zero. Moments that a failed request did not reach are equal to `done`, so
/// that its phases still add up; `outcome` says in which phase it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the schedule wanted it; in a closed loop, when its worker became free.
    pub intended: Nanos,
    /// When it was handed to the pool.
    pub started: Nanos,
    /// When a slot on a usable connection was assigned to it.
    pub acquired: Nanos,
    /// When its last byte was in the kernel's hands.
    pub sent: Nanos,
    /// When the first byte of the response head was here.
    pub first_byte: Nanos,
    /// When the last byte of the body was here.
    pub done: Nanos,
    /// The part of the dial of its connection that overlaps with its wait; zero on a reused connection.
    pub dial: Dial,
    pub outcome: Outcome,
    /// The response's status, 0 if there was none.
    pub status: u16,
    /// False for the first request on its connection.
    pub reused: bool,
    /// Further attempts after the first, on a connection that turned out to be stale.
    pub retries: u8,
    /// Which entry of the plan's request list it was.
    pub request: u16,
    /// Heads and bodies as received, without TLS framing.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// Spans of a dial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dial {
    pub dns: Nanos,
    pub connect: Nanos,
    pub tls: Nanos,
}

impl Dial {
    pub fn total(self) -> Nanos {
        self.dns + self.connect + self.tls
    }
}

impl Sample {
    /// The eight phases in the order of `Phase::ALL`; their sum is `response` exactly.
    pub fn phases(&self) -> [Nanos; 8] {
        [
            self.started - self.intended,
            (self.acquired - self.started) - self.dial.total(),
            self.dial.dns,
            self.dial.connect,
            self.dial.tls,
            self.sent - self.acquired,
            self.first_byte - self.sent,
            self.done - self.first_byte,
        ]
    }

    /// What the caller of the service waited, from the intended start on.
    pub fn response(&self) -> Nanos {
        self.done - self.intended
    }

    /// What the connection was busy with this request.
    pub fn service(&self) -> Nanos {
        self.done - self.acquired
    }
}
