//! The generator: pace x stop x pool x protocol, one loop per thread; samples out, folded per second.
//!
//! A client instance is one pool on one thread with one event loop. Threads share nothing while they run: each sends
//! its ticks over a channel once a second, and `Running` merges them.
#![forbid(unsafe_code)]

use std::fmt;

use weir_model::plan::Plan;
use weir_model::sample::Sample;
use weir_model::tick::Tick;

/// A run that cannot start: what is wrong, and what to do about it.
#[derive(Debug)]
pub struct LoadError {
    pub message: String,
    pub hint: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// One second of the run, over all instances.
#[derive(Debug)]
pub struct Update {
    pub tick: Tick,
    /// Part of the warm-up, which is measured apart.
    pub warmup: bool,
    /// Every request of this second, if samples were asked for.
    pub samples: Vec<Sample>,
}

/// What is known only at the end.
#[derive(Clone, Debug)]
pub struct Finished {
    /// From the end of the warm-up to the last answer, in seconds.
    pub duration_s: f64,
    /// `io_uring` or `mio`.
    pub io: &'static str,
    /// Was stopped by a `Stopper`.
    pub interrupted: bool,
}

/// A run under way. An iterator of its seconds, in order; blocks until the next one is complete.
pub struct Running {}

/// Stops a run from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {}

impl Stopper {
    /// First call: no new requests, those in flight are waited for (up to the timeout). Second call: they are given
    /// up and counted as `interrupted`.
    pub fn stop(&self) {
        unimplemented!()
    }
}

impl Running {
    /// Checks what can be checked without sending (files, names, certificates, limits), then starts the threads.
    pub fn start(plan: &Plan, keep_samples: bool) -> Result<Running, LoadError> {
        let _ = (plan, keep_samples);
        unimplemented!()
    }

    pub fn stopper(&self) -> Stopper {
        unimplemented!()
    }

    /// The next second of the run; `None` once it is over.
    pub fn next_update(&mut self) -> Option<Update> {
        unimplemented!()
    }

    /// After the last update.
    pub fn finish(self) -> Finished {
        unimplemented!()
    }
}
