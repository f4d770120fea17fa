//! What a connection policy does, seen from both sides.

use serde_json::Value;

use crate::support::{Origin, Sample, assert_near, backends, on_each_backend, run, samples};

#[test]
fn a_pool_of_a_hundred_for_four_hundred_workers_shows_its_queue() {
    let origin = Origin::start("--latency 100ms");
    on_each_backend(|io| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("samples.csv");
        let flags = format!("-c 400 --pool 100 -z 3s --io {io} --samples {}", file.display());
        let record = run(&flags, &origin.url("/")).fine();
        // N/X: 100 connections, each busy with a request for X. X is 0.1 s and what a busy machine adds.
        let ms = |of: &Value| of["mean"].as_f64().unwrap();
        let busy = ms(&record["latency"]["service"]);
        let rate = record["totals"]["rate"].as_f64().unwrap();
        assert_near("rate", rate, 100.0 / busy * 1e3, 5.0);
        assert!(rate <= 1_000.0, "{rate}/s is more than the origin allows");
        assert_near("server p50", record["phases"]["server"]["p50"].as_f64().unwrap(), 100.0, 10.0);
        assert_near("wait p50", record["phases"]["wait"]["p50"].as_f64().unwrap(), 3.0 * busy, 10.0);
        assert_eq!(record["totals"]["conns_opened"], 100);
        assert_eq!(record["totals"]["peak_queue"], 300);
        assert_eq!(record["totals"]["peak_in_flight"], 400);
        assert_eq!(samples(&file).len() as u64, record["totals"]["requests"].as_u64().unwrap());
    });
}

#[test]
fn per_request_opens_a_connection_for_each_request() {
    for io in backends() {
        let origin = Origin::start("");
        let record = run(&format!("--profile per-request -n 500 -c 20 --io {io}"), &origin.url("/")).fine();
        assert_eq!(record["totals"]["conns_opened"], 500, "{io}");
        assert_eq!(record["totals"]["reuse_ratio"], 0.0, "{io}");
        assert_eq!(origin.accepted(), 500, "{io}");
        assert_eq!(origin.stats()["requests_per_connection"]["1"], 500, "{io}");
    }
}

/// About 20 requests in flight, which come and go independently of each other.
const CHURN: &str = "--profile go-nethttp -q 2000 --arrival poisson -z 1500ms --seed 1";

#[test]
fn two_idle_connections_are_too_few_for_independent_arrivals() {
    on_each_backend(|io| {
        let origin = Origin::start("--latency 10ms");
        let record = run(&format!("{CHURN} --io {io}"), &origin.url("/")).fine();
        let opened = record["totals"]["conns_opened"].as_u64().unwrap();
        let requests = record["totals"]["requests"].as_u64().unwrap();
        assert!(opened * 20 > requests, "{io}: {opened} connections for {requests} requests is no churn");
        assert_eq!(origin.accepted(), opened, "{io}");
    });
}

#[test]
fn a_hundred_idle_connections_are_enough() {
    on_each_backend(|io| {
        let origin = Origin::start("--latency 10ms");
        let record = run(&format!("{CHURN} --max-idle 100 --io {io}"), &origin.url("/")).fine();
        let total = |name: &str| record["totals"][name].as_u64().unwrap();
        assert!(total("conns_opened") <= total("peak_in_flight"), "{io}: {}", record["totals"]);
        assert_eq!(total("conns_closed"), 0, "{io}");
        assert_eq!(origin.accepted(), total("conns_opened"), "{io}");
    });
}

#[test]
fn an_idle_cap_does_not_bite_in_a_closed_loop() {
    for io in backends() {
        let origin = Origin::start("--latency 10ms");
        let record = run(&format!("--profile go-nethttp -c 20 -n 1000 --io {io}"), &origin.url("/")).fine();
        assert_eq!(record["totals"]["conns_opened"], 20, "{io}");
        assert_eq!(origin.accepted(), 20, "{io}");
    }
}

/// 100 requests a second is what ten connections can do.
const OVERLOAD: &str = "--pool 10 -q 500 -z 1500ms --seed 1";

#[test]
fn a_full_queue_refuses_at_once_and_serves_the_rest_in_order() {
    let origin = Origin::start("--latency 100ms");
    on_each_backend(|io| {
        let (errors, samples) = overload(&origin, &format!("{OVERLOAD} --max-pending 20 --io {io}"));
        assert_eq!(errors, ["wait/pending_limit"], "{io}");
        for s in samples.iter().filter(|s| !s.ok()) {
            assert_eq!(s.done, s.started, "{io}: refused at once");
        }
        // At most 20 stand before it, and ten are served each 100 ms.
        let longest = samples.iter().filter(|s| s.ok()).map(|s| s.phases[1]).max().unwrap();
        assert!(longest < 400_000_000, "{io}: {longest} ns in a queue of 20");
        assert_in_order(&samples);
    });
}

#[test]
fn who_waits_too_long_is_told_so_at_that_time() {
    let origin = Origin::start("--latency 100ms");
    on_each_backend(|io| {
        let (errors, samples) = overload(&origin, &format!("{OVERLOAD} --acquire-timeout 50ms --io {io}"));
        assert_eq!(errors, ["wait/acquire_timeout"], "{io}");
        let mut waited: Vec<u64> = samples.iter().filter(|s| !s.ok()).map(|s| s.done - s.started).collect();
        waited.sort_unstable();
        assert!(waited[0] >= 50_000_000, "{io}: {} ns is too early", waited[0]);
        let nearly_all = waited[waited.len() * 9 / 10];
        assert!(nearly_all < 60_000_000, "{io}: {nearly_all} ns is late");
        assert_in_order(&samples);
    });
}

/// The kinds of errors, and all requests.
#[track_caller]
fn overload(origin: &Origin, flags: &str) -> (Vec<String>, Vec<Sample>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.csv");
    let record = run(&format!("{flags} --samples {}", file.display()), &origin.url("/")).fine();
    let samples = samples(&file);
    let ok = samples.iter().filter(|s| s.ok()).count();
    assert_eq!(samples.len(), 750);
    assert!((100..=200).contains(&ok), "{ok} successes of ten connections in 1.5 s");
    assert_eq!(record["totals"]["ok"], ok);
    assert_eq!(record["latency"]["response"]["count"], ok, "a failure has no latency of a success");
    let errors = record["errors"].as_object().unwrap();
    assert_eq!(errors.values().map(|n| n.as_u64().unwrap()).sum::<u64>() as usize, 750 - ok);
    (errors.keys().cloned().collect(), samples)
}

/// Who started earlier got its connection earlier.
#[track_caller]
fn assert_in_order(samples: &[Sample]) {
    let mut served: Vec<(u64, u64)> =
        samples.iter().filter(|s| s.ok()).map(|s| (s.started, s.acquired)).collect();
    served.sort_unstable();
    let overtaken = served.windows(2).find(|pair| pair[1].1 < pair[0].1);
    assert!(overtaken.is_none(), "{overtaken:?}");
}

#[test]
fn limits_on_a_connection_renew_it() {
    for (flags, at_least) in
        [("--requests-per-conn 10", 100), ("--max-lifetime 100ms", 8), ("--no-keepalive", 1_000)]
    {
        let origin = Origin::start("--latency 2ms");
        let record = run(&format!("-n 1000 -c 4 {flags}"), &origin.url("/")).fine();
        let opened = record["totals"]["conns_opened"].as_u64().unwrap();
        assert!(opened >= at_least, "{flags}: {opened}");
        assert_eq!(record["totals"]["errors"], 0, "{flags}");
        assert_eq!(origin.accepted(), opened, "{flags}");
    }
}

#[test]
fn a_server_that_limits_its_connections_costs_no_request() {
    for flags in ["--close", "--keepalive-requests 10", "--keepalive-requests 10 --announce-keepalive"] {
        for io in backends() {
            let origin = Origin::start(flags);
            let record = run(&format!("-n 1000 -c 4 --io {io}"), &origin.url("/")).fine();
            assert_eq!(record["totals"]["ok"], 1_000, "{flags} {io}");
            let opened = record["totals"]["conns_opened"].as_u64().unwrap();
            assert!(opened >= 100, "{flags} {io}: {opened}");
            assert_eq!(origin.accepted(), opened, "{flags} {io}");
        }
    }
}
