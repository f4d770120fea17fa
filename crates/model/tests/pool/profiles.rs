//! The built-in profiles: complete, sourced, and each true to what its library is known for.

use std::collections::BTreeSet;

use weir_model::pool::{DialRace, Policy, Pool, RetryMethods};
use weir_model::profiles::{self, Profile};

use crate::script::*;

fn policy(id: &str) -> Policy {
    profiles::find(id, 300).unwrap_or_else(|| panic!("profile {id}")).policy
}

/// Parameters that a reader wants a source for even where they have the default value.
const ALWAYS_SOURCED: [&str; 11] = [
    "max_conns",
    "max_idle",
    "max_pending",
    "acquire_timeout",
    "pick",
    "race",
    "idle_timeout",
    "keepalive_hint",
    "max_lifetime",
    "validate",
    "retry",
];

fn parameters(policy: &Policy) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(policy).expect("a policy serialises") {
        serde_json::Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

#[test]
fn the_profiles_are_those_that_are_promised() {
    let ids: Vec<_> = profiles::all().iter().map(|profile| profile.id).collect();
    let expected = [
        "fixed",
        "per-request",
        "unlimited",
        "go-nethttp",
        "reactor-netty",
        "okhttp",
        "hackney-1",
        "node-http-agent",
    ];
    assert_eq!(ids, expected);
    assert_eq!(profiles::find("go-nethttps", 1), None);
}

#[test]
fn every_profile_has_a_policy_that_can_run_and_one_line_about_it() {
    for profile in profiles::all() {
        assert_eq!(profile.policy.check(), Ok(()), "{}", profile.id);
        assert!(!profile.name.is_empty() && !profile.about.is_empty(), "{}", profile.id);
        assert!(!profile.about.contains('\n') && profile.about.len() < 110, "{}", profile.id);
    }
}

#[test]
fn every_value_that_is_not_the_default_and_every_important_default_has_a_source() {
    let defaults = parameters(&Policy::default());
    for Profile { id, policy, sources, .. } in profiles::all() {
        let sourced: BTreeSet<&str> = sources.iter().map(|&(parameter, _)| parameter).collect();
        assert_eq!(sourced.len(), sources.len(), "{id}: a parameter is listed twice");
        for (name, value) in parameters(&policy) {
            let needs_one = value != defaults[&name] || ALWAYS_SOURCED.contains(&name.as_str());
            assert!(!needs_one || sourced.contains(name.as_str()), "{id}: no source for {name}");
        }
        for name in sourced {
            assert!(defaults.contains_key(name), "{id}: {name} is not a parameter");
        }
    }
}

#[test]
fn every_source_is_ours_or_a_place_in_a_versioned_repository() {
    let ours = ["fixed", "per-request", "unlimited"];
    for profile in profiles::all() {
        for (parameter, source) in profile.sources {
            let place = format!("{}: {parameter}: {source}", profile.id);
            assert_eq!(*source == "weir", ours.contains(&profile.id), "{place}");
            if *source != "weir" {
                let (repository, rest) = source.split_once('@').expect(&place);
                let (version, path_and_symbol) = rest.split_once(':').expect(&place);
                let (path, symbol) = path_and_symbol.split_once("::").unwrap_or((path_and_symbol, "absent"));
                assert!(path.contains('.'), "{place}: a file");
                assert_eq!(repository.split('/').count(), 2, "{place}");
                assert!([version, path, symbol].iter().all(|part| !part.is_empty()), "{place}");
            }
        }
    }
}

#[test]
fn per_request_opens_a_connection_for_every_request() {
    let mut pool = Pool::new(policy("per-request"), 1);
    for round in 0..5 {
        assert_eq!(play(&mut pool, round, acquire(0)), [dial(0)]);
        assert_eq!(play(&mut pool, round, dialled(0)), [assign(0, 0)]);
        assert_eq!(play(&mut pool, round, released(0)), [close(0)]);
    }
}

#[test]
fn fixed_is_as_wide_as_the_load_and_keeps_every_connection() {
    let mut pool = running(policy("fixed"), 300);
    assert_eq!(play(&mut pool, 1, acquire(300)), [], "the 301st waits");
    assert_eq!(play(&mut pool, 2, released(7)), [assign(300, 7)]);
    (0..300).for_each(|conn| assert_eq!(play(&mut pool, 3, released(conn)), []));
    assert!(wakes(&mut pool, 1_000_000, TICK).is_empty());
    assert_eq!(pool.counts().idle, 300);
}

#[test]
fn unlimited_opens_what_it_needs_and_closes_nothing() {
    let mut pool = idle(policy("unlimited"), 1_000);
    assert_eq!(play(&mut pool, 1_000_000, TICK), []);
    assert_eq!(pool.counts().idle, 1_000);
}

#[test]
fn go_keeps_two_idle_connections_of_a_burst_of_twenty() {
    let mut pool = running(policy("go-nethttp"), 20);
    let closed: Vec<_> = (0..20).flat_map(|conn| play(&mut pool, 1, released(conn))).collect();
    assert_eq!(closed, (2..20).map(close).collect::<Vec<_>>());
    assert_eq!(pool.counts().idle, 2);
}

#[test]
fn go_takes_a_freed_connection_while_its_own_dial_runs_and_parks_the_dial() {
    let mut pool = running(policy("go-nethttp"), 1);
    assert_eq!(play(&mut pool, 1, acquire(1)), [dial(1)]);
    assert_eq!(play(&mut pool, 2, released(0)), [assign(1, 0)]);
    assert_eq!(play(&mut pool, 3, dialled(1)), []);
    assert_eq!(pool.counts().idle, 1);
}

#[test]
fn go_closes_an_idle_connection_after_90_s() {
    let mut pool = idle(policy("go-nethttp"), 1);
    assert_eq!(play(&mut pool, 90_000, TICK), []);
    assert_eq!(play(&mut pool, 90_001, TICK), [close(0)]);
}

#[test]
fn go_repeats_a_post_only_if_nothing_of_it_was_written() {
    let retry = policy("go-nethttp").retry;
    assert_eq!(retry.methods, RetryMethods::Replayable);
    assert!(retry.allows(9, "POST", true, false, false));
    assert!(!retry.allows(0, "POST", true, true, false));
    assert!(retry.allows(9, "GET", false, true, false));
    assert!(!retry.allows(0, "GET", false, true, true));
}

#[test]
fn reactor_netty_queues_the_501st_and_rejects_the_1501st() {
    let mut pool = running(policy("reactor-netty"), 500);
    (500..1_500).for_each(|req| assert_eq!(play(&mut pool, 1, acquire(req)), []));
    assert_eq!(pool.counts().pending, 1_000);
    assert_eq!(play(&mut pool, 1, acquire(1_500)), [queue_full(1_500)]);
    assert_eq!(play(&mut pool, 2, released(3)), [assign(500, 3)]);
    assert_eq!(play(&mut pool, 45_000, TICK), []);
    assert_eq!(play(&mut pool, 45_001, TICK).len(), 999);
}

#[test]
fn reactor_netty_uses_the_connection_that_was_idle_longest_and_looks_at_it_first() {
    let mut pool = idle(policy("reactor-netty"), 3);
    assert_eq!(play(&mut pool, 2, closed(0)), []);
    assert_eq!(play(&mut pool, 3, acquire(9)), [close(0), assign(9, 1)]);
}

#[test]
fn okhttp_keeps_the_five_that_were_used_last_for_five_minutes() {
    let mut pool = running(policy("okhttp"), 8);
    let closed: Vec<_> = (0..8).flat_map(|conn| play(&mut pool, 1, released(conn))).collect();
    assert_eq!(closed, [close(0), close(1), close(2)]);
    assert_eq!(play(&mut pool, 300_000, TICK), []);
    assert_eq!(play(&mut pool, 300_001, TICK).len(), 5);
}

#[test]
fn okhttp_takes_the_first_idle_connection_in_the_order_of_creation() {
    let mut pool = running(policy("okhttp"), 3);
    [2, 0, 1].iter().for_each(|&conn| assert_eq!(play(&mut pool, 1, released(conn)), []));
    assert_eq!(play(&mut pool, 2, acquire(0)), [assign(0, 0)]);
    assert_eq!(play(&mut pool, 2, acquire(1)), [assign(1, 1)]);
}

#[test]
fn okhttp_sends_a_get_on_a_connection_that_the_server_closed_and_repeats_it() {
    let mut pool = idle(policy("okhttp"), 1);
    play(&mut pool, 2, closed(0));
    assert_eq!(play(&mut pool, 3, acquire(0)), [assign(0, 0)]);
    assert!(policy("okhttp").retry.allows(0, "POST", true, true, false));
}

#[test]
fn hackney_1_queues_the_51st_for_at_most_8_s() {
    let mut pool = running(policy("hackney-1"), 50);
    assert_eq!(wakes(&mut pool, 1, acquire(50)), [8_001]);
    assert_eq!(play(&mut pool, 8_000, TICK), []);
    assert_eq!(play(&mut pool, 8_001, TICK), [too_late(50)]);
}

#[test]
fn hackney_1_does_not_count_the_dial_against_the_8_s() {
    let mut pool = Pool::new(policy("hackney-1"), 1);
    assert_eq!(play(&mut pool, 0, acquire(0)), [dial(0)]);
    assert_eq!(play(&mut pool, 7_999_000, dialled(0)), [assign(0, 0)]);
}

#[test]
fn node_ignores_the_servers_hint_and_keeps_256() {
    let mut pool = running(policy("node-http-agent"), 257);
    (0..256).for_each(|conn| {
        play(&mut pool, 1, hint(conn, Some(5_000), Some(0)));
        assert_eq!(play(&mut pool, 1, released(conn)), []);
    });
    assert_eq!(play(&mut pool, 1, released(256)), [close(256)]);
    assert_eq!(play(&mut pool, 1_000_000, TICK), []);
}

#[test]
fn only_go_lets_a_request_race_its_dial() {
    let racing: Vec<_> =
        profiles::all().into_iter().filter(|p| p.policy.race == DialRace::Race).map(|p| p.id).collect();
    assert_eq!(racing, ["go-nethttp"]);
}
