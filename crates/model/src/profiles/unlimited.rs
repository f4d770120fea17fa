//! A pool that keeps every connection and limits nothing: shows how many connections a load would open.

use super::Profile;
use crate::pool::Policy;

pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "unlimited",
        name: "Unlimited pool",
        about: "reuses whatever is idle, dials whenever nothing is, closes nothing",
        policy: Policy::default(),
        sources: &[
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
