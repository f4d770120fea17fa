//! When requests start: paces, ramps, and what a server's pause does to those that were due in it.

use std::io::{BufReader, Write};
use std::time::{Duration, Instant};

use crate::support::{Origin, Sample, Server, on_each_backend, read_request, run, samples};

/// All requests of a run that went well.
#[track_caller]
fn measured(flags: &str, url: &str) -> Vec<Sample> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.csv");
    let record = run(&format!("{flags} --samples {}", file.display()), url).fine();
    let samples = samples(&file);
    assert_eq!(samples.len(), record["totals"]["requests"].as_u64().unwrap() as usize);
    samples
}

/// Times at which requests were due, in order, in seconds.
fn due(samples: &[Sample]) -> Vec<f64> {
    let mut due: Vec<f64> = samples.iter().map(|s| s.intended as f64 / 1e9).collect();
    due.sort_by(f64::total_cmp);
    due
}

#[test]
fn a_constant_rate_starts_exactly_as_many_as_it_asks_for() {
    let origin = Origin::start("--latency 2ms");
    on_each_backend(|io| {
        for instances in [1, 3] {
            let flags = format!("-q 1000 -z 1s --instances {instances} --io {io}");
            let due = due(&measured(&flags, &origin.url("/")));
            assert_eq!(due.len(), 1_000, "{flags}");
            for (i, at) in due.iter().enumerate() {
                assert!((at - i as f64 / 1e3).abs() < 1e-6, "{flags}: request {i} was due at {at}");
            }
        }
    });
}

#[test]
fn bursts_come_at_the_top_of_each_second() {
    let origin = Origin::start("");
    on_each_backend(|io| {
        let due = due(&measured(&format!("-q 300 -z 2s --arrival burst --io {io}"), &origin.url("/")));
        assert_eq!(due.iter().filter(|at| **at == 0.0).count(), 300);
        assert_eq!(due.iter().filter(|at| **at == 1.0).count(), 300);
        assert_eq!(due.len(), 600);
    });
}

#[test]
fn poisson_arrivals_are_spread_as_they_should_be() {
    let origin = Origin::start("");
    // 2,000 expected, with a standard deviation of 45.
    let due = due(&measured("-q 1000 -z 2s --arrival poisson --seed 3", &origin.url("/")));
    assert!((1_800..2_200).contains(&due.len()), "{}", due.len());
    let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = variance.sqrt() / mean;
    assert!((0.9..1.1).contains(&variation), "an exponential's variation is 1, not {variation}");
}

#[test]
fn a_ramp_starts_the_integral_of_its_rate() {
    let origin = Origin::start("");
    on_each_backend(|io| {
        let due = due(&measured(&format!("--ramp 0:1000:2s -z 2s --io {io}"), &origin.url("/")));
        assert!((999..=1_001).contains(&due.len()), "{io}: {}", due.len());
        let early = due.iter().filter(|at| **at < 1.0).count();
        assert!((249..=251).contains(&early), "{io}: {early} in the first half");
    });
}

#[test]
fn a_warm_up_is_marked_in_the_samples() {
    let origin = Origin::start("--latency 1ms");
    let samples = measured_with_warmup(&origin);
    let (before, after): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|s| s.warmup);
    assert_eq!((before.len(), after.len()), (150, 200));
    assert!(before.iter().all(|s| s.intended < 300_000_000));
    assert!(after.iter().all(|s| s.intended >= 300_000_000));
}

#[track_caller]
fn measured_with_warmup(origin: &Origin) -> Vec<Sample> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.csv");
    let flags = format!("-q 500 -n 200 --warmup 300ms --samples {}", file.display());
    let record = run(&flags, &origin.url("/")).fine();
    assert_eq!(record["totals"]["requests"], 200);
    assert_eq!(record["warmup"]["requests"], 150);
    samples(&file)
}

/// All its connections stand still from `STALL_FROM` to `STALL_TO` after the first request.
fn stalling() -> Server {
    let begun = std::sync::OnceLock::new();
    Server::start(move |mut stream| {
        stream.set_nodelay(true).unwrap();
        let mut from = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut from).is_some() {
            let age = begun.get_or_init(Instant::now).elapsed();
            if (STALL_FROM..STALL_TO).contains(&age) {
                std::thread::sleep(STALL_TO - age);
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    })
}

const STALL_FROM: Duration = Duration::from_millis(500);
const STALL_TO: Duration = Duration::from_millis(1_500);

#[test]
fn a_pause_of_the_server_counts_for_every_request_that_was_due_in_it() {
    on_each_backend(|io| {
        let server = stalling();
        // Ten connections: a tool that measures from the send on would see ten slow requests.
        let samples = measured(&format!("-q 200 -z 2s --pool 10 --io {io}"), &server.url("/"));
        assert_eq!(samples.len(), 400);
        let longest = samples.iter().map(Sample::response_ms).fold(0.0, f64::max);
        assert!(longest > 900.0, "{io}: {longest} ms");
        // Due from 0.5 s to 1.4 s: 180.
        let slow = samples.iter().filter(|s| s.response_ms() > 100.0).count();
        assert!((150..=260).contains(&slow), "{io}: {slow} slow requests");
        let slow_service = samples.iter().filter(|s| s.done - s.acquired > 100_000_000).count();
        assert!(slow_service <= 10, "{io}: {slow_service} of ten connections");
    });
}
