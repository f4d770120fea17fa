//! Ctrl-C at any moment, and servers that die: what was measured is told, and adds up.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Origin, on_each_backend, run, samples, start, wait_until};

/// Whatever moment it is, the parts add up to the whole.
#[track_caller]
fn assert_consistent(record: &Value) {
    let n = |name: &str| record["totals"][name].as_u64().unwrap();
    let sum = |map: &Value| map.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum::<u64>();
    assert_eq!(n("requests"), n("ok") + n("errors"));
    assert_eq!(sum(&record["errors"]), n("errors"));
    assert_eq!(record["latency"]["response"]["count"], n("ok"));
    assert_eq!(record["phases"]["server"]["count"], n("ok"));
    let series = record["series"].as_array().unwrap();
    for name in ["requests", "ok", "errors"] {
        let measured = series.iter().filter(|point| point["stage"] != "warmup");
        let over_series: u64 = measured.map(|point| point[name].as_u64().unwrap()).sum();
        assert_eq!(over_series, n(name), "{name} of the series");
    }
}

fn requests(origin: &Origin) -> u64 {
    origin.stats()["requests"].as_u64().unwrap()
}

fn kept(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn an_interrupted_run_is_told_as_far_as_it_came() {
    on_each_backend(|io| {
        for (load, after_ms) in [
            ("-c 20", 60),
            ("-c 20 --instances 2", 1_370),
            ("-q 500", 740),
            ("-c 50 --pool 5", 410),
            ("-c 20 --warmup 10s", 350),
            ("-q 5m --max-pending 10", 300),
        ] {
            let origin = Origin::start("--latency 5ms");
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("run.json");
            let flags = format!("{load} -z 30s --format json --quiet --io {io} -o {}", file.display());
            let run = start(&flags, &origin.url("/"));
            wait_until("the run is under way", || requests(&origin) > 0);
            std::thread::sleep(Duration::from_millis(after_ms));
            run.signal("INT");
            let ended = run.end();
            assert_eq!(ended.status, 130, "{load} {io}: {}", ended.stderr);
            let record = ended.record();
            assert_eq!(record["interrupted"], true, "{load} {io}");
            // What was in flight was waited for.
            let errors = record["errors"].as_object().unwrap();
            assert!(errors.keys().all(|error| error == "wait/pending_limit"), "{load} {io}: {errors:?}");
            assert!(record["totals"]["duration_s"].as_f64().unwrap() < 29.0, "{load} {io}");
            assert_consistent(&record);
            assert_eq!(kept(&file), record, "{load} {io}");
        }
    });
}

#[test]
fn an_interrupted_run_is_told_in_text_too() {
    let origin = Origin::start("--latency 5ms");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let run = start(&format!("-c 5 -z 30s --quiet -o {}", file.display()), &origin.url("/"));
    wait_until("the run is under way", || requests(&origin) > 100);
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.status, 130);
    assert!(ended.stdout.contains("Interrupted: this is a part of the run."), "{}", ended.stdout);
    assert!(ended.stdout.contains("Latency distribution:"), "{}", ended.stdout);
    let record = kept(&file);
    assert_eq!(record["interrupted"], true);
    assert_consistent(&record);
}

#[test]
fn the_second_signal_gives_up_what_is_in_flight() {
    on_each_backend(|io| {
        for load in ["-c 10", "-c 10 --pool 3", "-c 10 --instances 2", "-q 200 --profile unlimited"] {
            let origin = Origin::start("--fault hang");
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("samples.csv");
            let flags = format!("{load} -z 30s -t 25s --format json --quiet --io {io}");
            let run = start(&format!("{flags} --samples {}", file.display()), &origin.url("/"));
            wait_until("requests hang", || requests(&origin) >= 3);
            run.signal("INT");
            // Two signals at once are one.
            std::thread::sleep(Duration::from_millis(300));
            run.signal("INT");
            let ended = run.end();
            assert_eq!(ended.status, 130, "{load} {io}: {}", ended.stderr);
            let record = ended.record();
            assert_eq!(record["interrupted"], true);
            assert_eq!(record["totals"]["ok"], 0, "{load} {io}");
            assert!(record["totals"]["requests"].as_u64().unwrap() >= 3, "{load} {io}");
            for (error, n) in record["errors"].as_object().unwrap() {
                assert!(error.ends_with("/interrupted"), "{load} {io}: {error} {n}");
            }
            assert_eq!(samples(&file).len() as u64, record["totals"]["requests"].as_u64().unwrap());
            assert_consistent(&record);
        }
    });
}

#[test]
fn a_rate_that_nobody_reaches_ends_in_time_and_serves_meanwhile() {
    on_each_backend(|io| {
        let origin = Origin::start("");
        let flags = format!("-q 5m --pool 10 --max-pending 10 -z 500ms --io {io}");
        let ended = run(&flags, &origin.url("/"));
        let record = ended.record();
        assert_eq!(ended.status, 4, "{io}: {}", record["verdict"]);
        assert_eq!(record["verdict"]["reasons"][0]["id"], "rate-not-reached", "{io}");
        // Ten connections at the first turn of the loop, and no more if it never came back to them.
        assert!(record["totals"]["ok"].as_u64().unwrap() > 20, "{io}: {}", record["totals"]);
        assert_consistent(&record);
    });
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_found_again() {
    on_each_backend(|io| {
        for load in ["-c 10", "-q 300 --profile go-nethttp"] {
            let origin = Origin::start("--latency 2ms");
            let addr = origin.addr().to_owned();
            let run =
                start(&format!("{load} -z 2500ms -t 2s --format json --quiet --io {io}"), &origin.url("/"));
            wait_until("the run is under way", || requests(&origin) > 50);
            origin.kill();
            std::thread::sleep(Duration::from_millis(300));
            let back = Origin::start_at(&addr, "--latency 2ms");
            let ended = run.end();
            let record = ended.fine();
            assert!(record["totals"]["errors"].as_u64().unwrap() > 0, "{load} {io}");
            assert!(
                record["errors"]["connect/refused"].as_u64().unwrap() > 0,
                "{load} {io}: {}",
                record["errors"]
            );
            assert!(requests(&back) > 50, "{load} {io}: it was not found again");
            let series = record["series"].as_array().unwrap();
            let last = series.iter().rev().find(|point| point["requests"].as_u64() > Some(0)).unwrap();
            assert!(last["ok"].as_u64().unwrap() > 0, "{load} {io}: {last}");
            assert_consistent(&record);
        }
    });
}
