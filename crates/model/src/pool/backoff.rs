//! When an eager pool may dial again after a failure. Only paces: what to dial is the pool's business.

use crate::units::Nanos;

/// Doubles from `FIRST` to `LONGEST`. Failures before `until` belong to the same round and do not double again; a pool
/// that did without failure for `LONGEST` starts anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    /// No dial before this instant.
    pub(super) until: Nanos,
    step: Nanos,
}

impl Backoff {
    const FIRST: Nanos = Nanos::from_millis(100);
    pub(super) const LONGEST: Nanos = Nanos::from_secs(10);

    pub(super) fn failed(&mut self, now: Nanos) {
        if now < self.until {
            return;
        }
        let quiet = now - self.until > Backoff::LONGEST;
        self.step = if quiet || self.step == Nanos::ZERO { Backoff::FIRST } else { self.doubled() };
        self.until = now.saturating_add(self.step);
    }

    fn doubled(&self) -> Nanos {
        Nanos(self.step.0 * 2).min(Backoff::LONGEST)
    }
}
