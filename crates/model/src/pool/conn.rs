//! What the pool remembers of one connection. Answers questions about it and changes nothing else.

use super::policy::{HintRule, KeepAliveHint, Policy};
use crate::units::Nanos;

/// No request: the id that a dense index never reaches.
pub(super) const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The number is free.
    Gone,
    Dialling,
    Open,
}

#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub(super) state: State,
    /// Takes no more requests, and is closed after the last one.
    pub(super) draining: bool,
    /// The server closed it while it was idle, and nobody has looked.
    pub(super) half_closed: bool,
    /// Dialled for the pool's own store, not for a request.
    pub(super) spare: bool,
    /// While dialling: the request that waits with this dial, or `NOBODY`.
    pub(super) origin: u32,
    pub(super) slots: u32,
    pub(super) running: u32,
    /// Requests ever assigned to it, and how many it may be assigned.
    pub(super) served: u64,
    pub(super) serves_max: u64,
    /// Its place by age among all that were ever dialled.
    pub(super) birth: u64,
    pub(super) born: Nanos,
    /// End of its lifetime.
    pub(super) dies: Nanos,
    /// Longest idle time, from the policy or from the server's hint.
    pub(super) idle_max: Nanos,
    pub(super) idle_since: Nanos,
    /// While idle: when it must be closed.
    pub(super) due: Nanos,
    /// Its entry among the timers, at or before `due`; `MAX` if it has none.
    pub(super) timer: Nanos,
}

impl Conn {
    pub(super) fn gone() -> Conn {
        Conn {
            state: State::Gone,
            draining: false,
            half_closed: false,
            spare: false,
            origin: NOBODY,
            slots: 0,
            running: 0,
            served: 0,
            serves_max: 0,
            birth: 0,
            born: Nanos::ZERO,
            dies: Nanos::MAX,
            idle_max: Nanos::MAX,
            idle_since: Nanos::ZERO,
            due: Nanos::MAX,
            timer: Nanos::MAX,
        }
    }

    pub(super) fn dialling(origin: u32, policy: &Policy) -> Conn {
        Conn {
            state: State::Dialling,
            spare: origin == NOBODY,
            origin,
            serves_max: serves_max(policy),
            idle_max: policy.idle_timeout.unwrap_or(Nanos::MAX),
            ..Conn::gone()
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Open && self.running == 0
    }

    /// It will never take another request.
    pub(super) fn is_spent(&self) -> bool {
        self.draining || self.served >= self.serves_max
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.running < self.slots && !self.is_spent()
    }

    pub(super) fn heed(&mut self, hint: KeepAliveHint, policy: &Policy) {
        if policy.keepalive_hint == HintRule::Ignore {
            return;
        }
        if let Some(timeout) = hint.timeout {
            self.idle_max = idle_max(timeout, policy);
            self.draining |= self.idle_max == Nanos::ZERO;
        }
        if let Some(more) = hint.max {
            // Never more than was said before: a connection that was given up stays so.
            self.serves_max = self.serves_max.min(self.served + u64::from(more));
        }
    }
}

fn serves_max(policy: &Policy) -> u64 {
    if policy.reuse { policy.max_requests_per_conn.unwrap_or(u64::MAX) } else { 1 }
}

fn idle_max(hinted: Nanos, policy: &Policy) -> Nanos {
    let own = policy.idle_timeout.unwrap_or(Nanos::MAX);
    match policy.keepalive_hint {
        HintRule::Ignore => own,
        HintRule::Obey => hinted,
        HintRule::ObeyMinus(margin) => hinted.saturating_sub(margin),
        HintRule::ObeyIfSmaller => own.min(hinted),
    }
}
