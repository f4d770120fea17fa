//! Chooses which connection serves which request. Holds no sockets and reads no clock; its caller does both.
//!
//! Events in, actions out, time as an argument. The pool knows connection ids, whether one is draining, and free
//! slots (1 for HTTP/1.1, many for HTTP/2). One pool is one origin of one client instance.

mod policy;

pub use policy::*;

use crate::units::Nanos;

/// A connection of this pool. The pool chooses it in `Action::Dial` and may reuse the number after the connection is
/// gone (`Closed`, `DialFailed`, or its own `Action::Close`), so it is a small dense index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// A request, numbered by the caller. In use from `Acquire` to `Assign`, `Reject` or `Cancel`.
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
    /// The other side closed it, or it failed. A request that was running on it has ended too.
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
    /// The dial that it was bound to, or that it had started, failed.
    DialFailed(ConnId),
}
