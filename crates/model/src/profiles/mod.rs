//! Named pool policies: our own and those of real client libraries, each value with its source.
//!
//! A profile says what a library does unless its user changes it. What a `Policy` cannot say (thread scheduling, locks,
//! event-loop affinity) is not in it; the comments in each file name what comes nearest. Nothing here runs a pool.

mod fixed;
mod go_nethttp;
mod hackney_1;
mod node_http_agent;
mod okhttp;
mod per_request;
mod reactor_netty;
mod unlimited;

use crate::pool::Policy;

/// The width at which `all` shows the profiles that have one, as many as hey and oha have workers by default.
pub const WIDTH: u32 = 50;

/// One named set of pool parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// As typed after `--profile`.
    pub id: &'static str,
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    pub policy: Policy,
    /// `(parameter of Policy, where its value is read)`: `repository@version:path::symbol`, the path alone where a
    /// file has no such feature, or `weir` where the value is our own choice. Every value that differs from
    /// `Policy::default()` is listed.
    pub sources: &'static [(&'static str, &'static str)],
}

/// The sources of a profile that is no library's.
const OURS: &[(&str, &str)] = &[
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
];

const TABLE: [fn(u32) -> Profile; 8] = [
    fixed::profile,
    per_request::profile,
    unlimited::profile,
    go_nethttp::profile,
    reactor_netty::profile,
    okhttp::profile,
    hackney_1::profile,
    node_http_agent::profile,
];

/// All profiles, our own first. Those that are as wide as the load are shown for `WIDTH` workers.
pub fn all() -> Vec<Profile> {
    TABLE.iter().map(|profile| profile(WIDTH)).collect()
}

/// The profile of that id. `width` is the number of workers of one instance; only `fixed` depends on it.
pub fn find(id: &str, width: u32) -> Option<Profile> {
    TABLE.iter().map(|profile| profile(width)).find(|profile| profile.id == id)
}
