//! The default: the pool never is what a run measures, and never opens a connection that no worker needs.

use super::{OURS, Profile};
use crate::pool::Policy;

/// As wide as the load, so a worker never waits for another. Nothing expires and nothing is repeated: what the server
/// closes is noticed at once, and a request that hits such a close shows as the failure that it is. Most recently used
/// first, so that connections that are not needed stay quiet.
pub(super) fn profile(width: u32) -> Profile {
    Profile {
        id: "fixed",
        name: "Fixed pool",
        about: "a connection for each worker, kept for the whole run",
        policy: Policy { max_conns: Some(width), max_idle: Some(width), ..Policy::default() },
        sources: OURS,
    }
}
