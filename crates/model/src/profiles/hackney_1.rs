//! hackney 1.x, and so HTTPoison 1.x and 2.x, with the default pool.

use super::Profile;
use crate::pool::{AcquireClock, DialRace, IdlePick, Policy, Retry, Validate};
use crate::units::Nanos;

/// The 50 are checkouts over all hosts; one pool here has one host, where checkouts and idle connections together come to
/// the same 50, because an idle connection is always taken before a new one is opened.
pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "hackney-1",
        name: "hackney 1 / HTTPoison",
        about: "50 connections, any number of requests may wait, each at most 8 s",
        policy: Policy {
            max_conns: Some(50),
            acquire_timeout: Some(Nanos::from_secs(8)),
            acquire_clock: AcquireClock::Wait,
            race: DialRace::Bound,
            connect_timeout: Some(Nanos::from_secs(8)),
            pick: IdlePick::Mru,
            idle_timeout: Some(Nanos::from_secs(150)),
            validate: Validate::Event,
            retry: Retry::NONE,
            ..Policy::default()
        },
        sources: &[
            ("max_conns", "benoitc/hackney@1.25.0:src/hackney.app.src::max_connections"),
            ("max_idle", "benoitc/hackney@1.25.0:src/hackney_pool.erl::store_socket"),
            ("max_pending", "benoitc/hackney@1.25.0:src/hackney_pool.erl::queues"),
            ("order", "benoitc/hackney@1.25.0:src/hackney_pool.erl::add_to_queue"),
            ("acquire_timeout", "benoitc/hackney@1.25.0:src/hackney_pool.erl::do_checkout"),
            ("acquire_clock", "benoitc/hackney@1.25.0:src/hackney_pool.erl::do_checkout"),
            ("race", "benoitc/hackney@1.25.0:src/hackney_pool.erl::do_checkout"),
            ("connect_timeout", "benoitc/hackney@1.25.0:src/hackney_pool.erl::do_checkout"),
            ("pick", "benoitc/hackney@1.25.0:src/hackney_pool.erl::store_socket"),
            ("idle_timeout", "benoitc/hackney@1.25.0:src/hackney.app.src::timeout"),
            ("keepalive_hint", "benoitc/hackney@1.25.0:src/hackney_pool.erl"),
            ("max_lifetime", "benoitc/hackney@1.25.0:src/hackney_pool.erl"),
            ("max_requests_per_conn", "benoitc/hackney@1.25.0:src/hackney_pool.erl"),
            ("validate", "benoitc/hackney@1.25.0:src/hackney_pool.erl::find_connection"),
            ("retry", "benoitc/hackney@1.25.0:src/hackney.erl"),
        ],
    }
}
