//! Chooses which connection serves which request. Holds no sockets and reads no clock; its caller does both.
//!
//! Events in, actions out, time as an argument. The pool knows connection ids, whether one is draining, and free
//! slots (1 for HTTP/1.1, many for HTTP/2). One pool is one origin of one client instance. It does not know methods,
//! protocols or addresses, never sends a request again (`Retry::allows` is for the caller), and does not watch the
//! length of a dial (`connect_timeout` is the caller's too: it ends in `DialFailed`).
//!
//! # How it works
//!
//! A connection is dialling, then *busy* (it runs requests) or *idle* (it runs none), then gone:
//!
//! ```text
//!            Dialled             assign            last Released
//!   dialling -------> idle/busy --------> busy <---------------------> idle
//!      | DialFailed      \                 | Closed, or last             | Closed, expired, over the idle cap,
//!      v                  \                v Released while draining     v or Draining
//!     gone                 `-- surplus -> gone                          gone
//! ```
//!
//! A request that finds no free slot waits. Either it waits with a *dial of its own*, or it is *queued*. Four sets hold
//! all this, each with O(1) insertion and removal over dense ids (`free` by age: O(log n)):
//!
//! - `free`: connections with a free slot, in the order that `pick` needs;
//! - `idle`: connections that run nothing, longest idle first; for the idle cap and for sweeps;
//! - `queued`: waiting requests without a dial, by arrival; `waiting`: all of them, where a policy needs that.
//!
//! One procedure, `serve`, keeps the pool's promise after every event, that *nobody is queued while a slot or the
//! right to dial is there*: hand free slots to waiters in `order`, then dial for queued ones while the limits allow.
//! The two dial rules differ only in who may take a free slot:
//!
//! - **bound**: the queued. A request with a dial waits for that dial, even if others give connections back.
//! - **race**: everybody who waits. A dial whose request was served by another connection has lost the race; when it
//!   ends it serves the first waiter, or is parked or closed by `surplus`.
//!
//! Limits count like this. `max_conns`: dialling, busy and idle connections. `max_inflight`: running requests and
//! those with a dial. `max_pending`: queued requests; with `pending_counts_dials` an arrival is refused when queued
//! requests and those with a dial together reach it, but a request that may dial is never refused (Vert.x
//! `SimpleConnectionPool.Acquire`).
//!
//! # Rules that others choose differently
//!
//! - **Time passes before anybody is served.** What was due at or before `now` expires first, whether or not its `Tick`
//!   came. Only what an event takes away (`Cancel`, `Closed`, `Draining`) goes before that.
//! - **Release before the next acquire.** In a closed loop the caller sends a worker's `Released` and then the same
//!   worker's next `Acquire`, before the events of other workers. So at most one connection is idle at any time and an
//!   idle cap of 1 or more never bites in a closed loop; it bites when requests arrive independently of completions.
//!   A caller that handles many completions at once must keep this order pair by pair. (A real client with several
//!   threads shows some churn even in a closed loop, since its workers wake late.) With `AllConns` the cap does bite,
//!   as it does in httpcore.
//! - **Half-closed connections.** With `Validate::Never` and `Probe` the pool acts as a client that does not read idle
//!   sockets: after `Closed` on an idle connection the id stays valid, and the caller keeps the half-closed socket
//!   until the pool says `Close`, or assigns it a request, which fails (the caller then sends `Closed` once more).
//! - **An idle connection keeps its place while it has free slots**: HTTP/2 fills one connection before the next.
//! - **A connection expires at its exact age**: idle for `idle_timeout` is too long, one nanosecond less is not.
//! - **A dial that allows no request at once (`Dialled(conn, 0)`) has failed**; the pool says `Close`.
//! - **The caller's first event should be `Tick`**, so that eager pools dial; they redial after each loss. After a
//!   failed dial, or a connection lost within 10 s without having served, redialling waits 100 ms, doubled up to 10 s.

mod backoff;
mod conn;
mod line;
mod machine;
mod policy;
mod retry;

pub use machine::Pool;
pub use policy::*;

use crate::units::Nanos;

/// A connection of this pool. The pool chooses it in `Action::Dial` and may reuse the number after the connection is
/// gone (`Closed`, `DialFailed`, or its own `Action::Close`), so it is a small dense index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// A request, numbered by the caller: a small dense index. In use from `Acquire` to `Assign`, `Reject` or `Cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReqId(pub u32);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request wants a slot.
    Acquire(ReqId),
    /// The request no longer wants one (its own timeout). Only before `Assign`.
    Cancel(ReqId),
    /// The connection can be used, by so many requests at once.
    Dialled(ConnId, u32),
    DialFailed(ConnId),
    /// The server changed how many requests may run at once on it.
    Slots(ConnId, u32),
    /// A request on it has ended, and left it usable.
    Released(ConnId),
    /// The server's `Keep-Alive: timeout=, max=`, before the `Released` that it came with.
    Hint(ConnId, KeepAliveHint),
    /// No new request may start on it (`Connection: close`, GOAWAY); it ends after the last `Released`.
    Draining(ConnId),
    /// The other side closed it, or it failed. The requests that were running on it have ended too, without
    /// `Released`. On an idle connection see `Validate`: the pool may keep it.
    Closed(ConnId),
    /// Time has passed: at a `WakeAt`, and once at the start so that eager pools can dial.
    Tick,
}

/// What to do about it, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Dial(ConnId),
    Assign(ReqId, ConnId),
    Reject(ReqId, PoolError),
    /// The pool has forgotten this connection already: no event about it may follow.
    Close(ConnId),
    /// Send a `Tick` at this time. A later one does not cancel an earlier one.
    WakeAt(Nanos),
}

/// Why a request got no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// The queue was full (`max_pending`).
    PendingLimit,
    /// It waited longer than `acquire_timeout`.
    AcquireTimeout,
    /// The dial that it was bound to, or that it had started, failed. The id is already free for another dial.
    DialFailed(ConnId),
}

/// How many there are of each, at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections whose dial has not ended.
    pub dialling: u32,
    /// Requests in flight: assigned, and neither released nor lost with their connection.
    pub running: u32,
    /// Connections that run at least one request.
    pub busy_conns: u32,
    /// Connections that run none.
    pub idle: u32,
    /// Requests in the queue: waiting, without a dial of their own.
    pub pending: u32,
    /// Dialling, busy and idle connections: what `max_conns` limits.
    pub open: u32,
}
