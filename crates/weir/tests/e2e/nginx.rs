//! Exactly as many requests as were asked for, on all three sides: in the record, in the text, in the server's log.

use crate::support::{Nginx, backends, run, start};

#[test]
fn fifty_thousand_requests_are_fifty_thousand_everywhere() {
    for io in backends() {
        let nginx = Nginx::start();
        let record = run(&format!("-c 300 -n 50000 --io {io}"), &nginx.url()).fine();
        assert_eq!(record["totals"]["requests"], 50_000, "{io}");
        assert_eq!(record["totals"]["ok"], 50_000, "{io}");
        assert_eq!(record["status"]["200"], 50_000, "{io}");
        assert_eq!(record["totals"]["conns_opened"], 300, "{io}");
        assert_eq!(record["host"]["io"], *io);
        assert_eq!(nginx.requests_logged(), 50_000, "{io}");
    }
}

#[test]
fn the_text_says_the_same_number() {
    let nginx = Nginx::start();
    let ended = start("-c 300 -n 50000 --quiet", &nginx.url()).end();
    assert!(ended.stdout.contains("  Requests:\t50,000 (all ok)"), "{}", ended.stdout);
    assert!(ended.stdout.contains("  [200]\t50000 responses"), "{}", ended.stdout);
    assert_eq!(nginx.requests_logged(), 50_000);
}

#[test]
fn exactly_so_many_are_sent_whatever_divides_them() {
    for (flags, requests) in [
        ("-n 50000 -c 300 --instances 2", 50_000),
        ("-n 10000 -c 100 --instances 3", 10_000),
        ("-n 1001 -c 7", 1_001),
        ("-n 1001 -c 7 --instances 3", 1_001),
        ("-n 3 -c 50", 3),
        ("-n 2 -c 5 --instances 3", 2),
        ("-n 1", 1),
        ("-n 1001 -c 7 --no-keepalive", 1_001),
        ("-n 501 -q 2000 --instances 2", 501),
        ("-n 2 -q 1000 --instances 3", 2),
        ("-n 301 -q 2000 --arrival poisson", 301),
    ] {
        for io in backends() {
            let nginx = Nginx::start();
            let record = run(&format!("{flags} --io {io}"), &nginx.url()).fine();
            assert_eq!(record["totals"]["requests"], requests, "{flags} {io}");
            assert_eq!(record["totals"]["ok"], requests, "{flags} {io}");
            assert_eq!(nginx.requests_logged(), requests, "{flags} {io}");
        }
    }
}

#[test]
fn the_warm_up_comes_on_top_of_the_count() {
    for flags in ["-n 1001 -c 7", "-n 2 -c 5 --instances 3", "-n 301 -q 1000"] {
        let nginx = Nginx::start();
        let record = run(&format!("{flags} --warmup 300ms"), &nginx.url()).fine();
        let asked: u64 = flags.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(record["totals"]["requests"], asked, "{flags}");
        let before = record["warmup"]["requests"].as_u64().unwrap();
        assert!(before > 0, "{flags}");
        assert_eq!(nginx.requests_logged() as u64, asked + before, "{flags}");
    }
}
