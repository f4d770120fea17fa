//! The parameters of a pool. A profile is one named set of these values.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Every limit is per pool, that is per origin and client instance. `None` is unlimited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Dialling, running and idle connections together.
    pub max_conns: Option<u32>,
    /// Idle connections; above it one is closed.
    pub max_idle: Option<u32>,
    /// Which one that is.
    pub idle_evict: IdleEvict,
    /// Which connections count against `max_idle`.
    pub idle_cap_basis: IdleCapBasis,
    /// Requests on a connection, or with a dial of their own, at once (OkHttp's Dispatcher); more of them wait.
    pub max_inflight: Option<u32>,
    /// Requests that may wait; `Some(0)` fails at once when no slot is free.
    pub max_pending: Option<u32>,
    /// Requests that wait with a dial of their own count as pending too, when another wants to queue (Vert.x).
    pub pending_counts_dials: bool,
    pub order: WaiterOrder,
    /// Longest wait in the queue.
    pub acquire_timeout: Option<Nanos>,
    /// What runs against `acquire_timeout`.
    pub acquire_clock: AcquireClock,
    pub dial: DialMode,
    pub race: DialRace,
    pub surplus: Surplus,
    /// Longest dial: name, connect and TLS together.
    pub connect_timeout: Option<Nanos>,
    pub pick: IdlePick,
    /// False: a connection serves one request and is closed.
    pub reuse: bool,
    pub idle_timeout: Option<Nanos>,
    pub idle_check: IdleCheck,
    pub keepalive_hint: HintRule,
    pub max_lifetime: Option<Nanos>,
    /// Each connection's `max_lifetime` is shortened by a random part of it, at most this percentage.
    pub lifetime_jitter_percent: u8,
    pub max_requests_per_conn: Option<u64>,
    pub validate: Validate,
    pub retry: Retry,
}

impl Default for Policy {
    /// No limits, most recently used first, nothing expires, nothing is retried.
    fn default() -> Policy {
        Policy {
            max_conns: None,
            max_idle: None,
            idle_evict: IdleEvict::Released,
            idle_cap_basis: IdleCapBasis::Idle,
            max_inflight: None,
            max_pending: None,
            pending_counts_dials: false,
            order: WaiterOrder::Fifo,
            acquire_timeout: None,
            acquire_clock: AcquireClock::Wait,
            dial: DialMode::Lazy,
            race: DialRace::Bound,
            surplus: Surplus::Keep,
            connect_timeout: None,
            pick: IdlePick::Mru,
            reuse: true,
            idle_timeout: None,
            idle_check: IdleCheck::Timer,
            keepalive_hint: HintRule::Ignore,
            max_lifetime: None,
            lifetime_jitter_percent: 0,
            max_requests_per_conn: None,
            validate: Validate::Event,
            retry: Retry::NONE,
        }
    }
}

impl Policy {
    /// Values with which no request could ever run, or that have no meaning. `Pool::new` takes only checked policies.
    ///
    /// # Errors
    /// The parameter, its value, and why it is refused.
    pub fn check(&self) -> Result<(), String> {
        let zero = [
            ("max_conns", self.max_conns == Some(0)),
            ("max_inflight", self.max_inflight == Some(0)),
            ("max_requests_per_conn", self.max_requests_per_conn == Some(0)),
        ];
        if let Some((name, _)) = zero.iter().find(|(_, is_zero)| *is_zero) {
            return Err(format!("pool.{name}: `0` lets no request run; leave it out for no limit"));
        }
        if self.idle_check == IdleCheck::Sweep(Nanos::ZERO) {
            return Err("pool.idle_check: a sweep each `0` s never ends; use `timer`".to_string());
        }
        if self.lifetime_jitter_percent > 100 {
            let percent = self.lifetime_jitter_percent;
            return Err(format!("pool.lifetime_jitter_percent: `{percent}` is more than 100"));
        }
        Ok(())
    }
}

/// Which connection an idle cap closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleEvict {
    /// The one that was just given back (Go).
    Released,
    /// The one that has been idle longest (OkHttp).
    LongestIdle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleCapBasis {
    Idle,
    /// httpcore 1.0.9 compares the idle cap with all connections.
    AllConns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaiterOrder {
    /// First come, first served.
    Fifo,
    /// Last come, first served.
    Lifo,
    /// Each waiter alike.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcquireClock {
    /// Only the time in the queue; it stops for good when a dial starts for the request.
    Wait,
    /// The queue and the dial.
    WaitDial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialMode {
    /// When a request finds no idle connection.
    Lazy,
    /// So many at the start, and dialled again when fewer are left; never more than `max_conns` and `max_idle` allow.
    Eager(u32),
    /// So many once the first request has come, its own dial included; not dialled again.
    Prewarm(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialRace {
    /// The request that caused a dial waits for that connection.
    Bound,
    /// It takes whichever comes first: its dial, or a connection that another request gave back.
    Race,
}

/// What becomes of a dial that lost the race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surplus {
    /// It serves the next waiter, or is parked if the idle cap has room.
    Keep,
    /// It serves the next waiter, or is closed.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdlePick {
    /// Most recently released first.
    Mru,
    /// Least recently released first.
    Lru,
    /// The oldest connection with a free slot, by the end of its dial (OkHttp).
    FirstFit,
    /// The youngest connection with a free slot (Vert.x).
    LastSlot,
    /// Each alike.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleCheck {
    /// Each connection at its own time.
    Timer,
    /// When a request would take it; until then it counts as idle.
    OnAcquire,
    /// All of them at each multiple of this span. Between two sweeps an expired connection may be used.
    Sweep(Nanos),
}

/// `Keep-Alive: timeout=, max=` of a response (RFC 2068 section 19.7.1.1). A timeout of zero, less the margin where
/// there is one, and `max=0` mean that the connection is not used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAliveHint {
    pub timeout: Option<Nanos>,
    /// Requests that the server will still take on this connection.
    pub max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintRule {
    Ignore,
    /// In place of `idle_timeout`.
    Obey,
    /// The same, less a margin against the race with the server's close (Node, undici).
    ObeyMinus(Nanos),
    /// Only if it is shorter than `idle_timeout`; no `idle_timeout` is longer than any hint.
    ObeyIfSmaller,
}

/// How a pool learns that the server closed an idle connection. Except with `Event` the caller keeps the half-closed
/// socket until the pool says `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validate {
    /// It does not: the next request on it fails, or is retried.
    Never,
    /// At once: something reads it while it is idle.
    Event,
    /// By looking when a request would take it.
    Probe,
    /// The same, but only if it was idle for so long.
    ProbeAfter(Nanos),
}

/// When a request that failed on a reused connection is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts after the first. `u8::MAX` is as good as no limit: each attempt uses up one stale connection.
    pub attempts: u8,
    pub methods: RetryMethods,
    pub when: RetryWhen,
}

impl Retry {
    pub const NONE: Retry = Retry { attempts: 0, methods: RetryMethods::None, when: RetryWhen::Unwritten };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryMethods {
    None,
    GetHead,
    /// GET, HEAD, PUT, DELETE, OPTIONS, TRACE (RFC 9110 section 9.2.2).
    Idempotent,
    /// Any method, if the request has no body.
    Bodyless,
    /// Any method while none of its bytes was written, afterwards GET, HEAD, OPTIONS and TRACE (Go).
    Replayable,
    /// Every method.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryWhen {
    /// Only if none of its bytes was written.
    Unwritten,
    /// If no byte of an answer came.
    NoResponseByte,
}
