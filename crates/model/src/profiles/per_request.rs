//! What a service without a pool does.

use super::Profile;
use crate::pool::Policy;

pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "per-request",
        name: "Connection per request",
        about: "a new connection for every request, closed after it",
        policy: Policy { reuse: false, ..Policy::default() },
        sources: &[
            ("reuse", "weir"),
            ("max_conns", "weir"),
            ("max_idle", "weir"),
            ("max_pending", "weir"),
            ("acquire_timeout", "weir"),
            ("pick", "weir"),
            ("race", "weir"),
            ("idle_timeout", "weir"),
            ("keepalive_hint", "weir"),
            ("max_lifetime", "weir"),
            ("validate", "weir"),
            ("retry", "weir"),
        ],
    }
}
