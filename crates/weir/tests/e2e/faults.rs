//! Bad servers: each is counted under its `phase/kind`, on both bodies of the event loop, and the run ends by itself.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;
use weir_origin::FaultKind;

use crate::support::{Origin, Server, backends, free_port, on_each_backend, read_request, run, samples};

/// Enough for any answer, and short enough to wait for those that never come.
const IMPATIENT: &str = "-n 6 -c 3 --timeout 300ms";

/// What a fault of the origin is to a client that gets nothing else.
fn expected(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Refuse => "connect/refused",
        FaultKind::Reset => "server/reset",
        FaultKind::HalfClose | FaultKind::Close => "server/closed",
        FaultKind::Truncate => "receive/truncated",
        FaultKind::ResetMidBody => "receive/reset",
        FaultKind::Stall | FaultKind::Drip => "receive/timeout",
        FaultKind::Hang => "server/timeout",
        FaultKind::Malformed | FaultKind::BadChunk => "receive/malformed",
        FaultKind::HugeHead => "receive/too_large",
        FaultKind::ServerError => "server/status_5xx",
        FaultKind::CloseOnReuse => "server/closed",
        // The answer itself is whole; its connection is not used again.
        FaultKind::Extra => "ok",
    }
}

#[test]
fn every_fault_of_the_origin_has_its_name() {
    for kind in FaultKind::all() {
        let origin = Origin::start(&format!("--fault {}", kind.name()));
        on_each_backend(|io| {
            // Long enough for a drip not to be over in time.
            let ended = run(&format!("{IMPATIENT} --io {io}"), &origin.url("/bytes/2048"));
            let (name, record) = (format!("{} with {io}", kind.name()), ended.record());
            match kind {
                FaultKind::CloseOnReuse => {
                    assert_eq!(record["errors"][expected(kind)], 3, "{name}: {}", record["errors"]);
                    assert_eq!(record["totals"]["ok"], 3, "{name}");
                    assert_eq!(ended.status, 0, "{name}");
                }
                FaultKind::Extra => {
                    assert_eq!(record["totals"]["ok"], 6, "{name}: {}", record["errors"]);
                    assert_eq!(record["totals"]["conns_opened"], 6, "{name}");
                }
                _ => assert_only(&record, expected(kind), 6, &name),
            }
            if expected(kind) != "ok" && kind != FaultKind::CloseOnReuse {
                assert_eq!(ended.status, 1, "{name}");
                assert!(ended.stderr.contains("no request succeeded"), "{name}: {}", ended.stderr);
                assert!(ended.stderr.contains("\nhint: "), "{name}: {}", ended.stderr);
            }
        });
    }
}

/// All requests failed in this way, and none of them is among the latencies of successes.
#[track_caller]
fn assert_only(record: &Value, error: &str, requests: u64, name: &str) {
    let totals = &record["totals"];
    assert_eq!(record["errors"], serde_json::json!({ error: requests }), "{name}");
    assert_eq!((&totals["requests"], &totals["errors"]), (&requests.into(), &requests.into()), "{name}");
    for distribution in ["response", "service"] {
        assert_eq!(record["latency"][distribution]["count"], 0, "{name}: {distribution}");
    }
    for (phase, times) in record["phases"].as_object().unwrap() {
        assert_eq!(times["count"], 0, "{name}: {phase}");
    }
    assert_eq!(record["latency"]["failed"]["count"], requests, "{name}");
}

#[test]
fn a_fault_at_a_rate_leaves_the_other_requests_alone() {
    for io in backends() {
        let origin = Origin::start("--fault reset:10% --fault 5xx:10% --fault truncate:10% --seed 1");
        let record = run(&format!("-n 1000 -c 10 --io {io}"), &origin.url("/")).fine();
        let played = &origin.stats()["faults"];
        let ok = record["totals"]["ok"].as_u64().unwrap();
        assert_eq!(record["latency"]["response"]["count"], ok);
        for (fault, error) in
            [("reset", "server/reset"), ("5xx", "server/status_5xx"), ("truncate", "receive/truncated")]
        {
            let found = &record["errors"][error];
            assert_eq!(*found, played[fault], "{error} with {io}");
            assert!((50..150).contains(&found.as_u64().unwrap()), "{error} with {io}: {found}");
        }
        assert_eq!(record["errors"].as_object().unwrap().len(), 3, "{}", record["errors"]);
    }
}

#[test]
fn no_policy_and_no_fault_upsets_the_books() {
    let faults: Vec<String> = FaultKind::all()
        .filter(|kind| *kind != FaultKind::Refuse)
        .map(|kind| format!("--fault {}:2%", kind.name()))
        .collect();
    let origin = Origin::start(&format!(
        "--latency uniform:0ms-4ms --seed 5 --keepalive-timeout 20ms {}",
        faults.join(" ")
    ));
    for profile in weir_model::profiles::all().iter().map(|profile| profile.id) {
        for load in [
            "-c 20",
            "-q 600 --arrival poisson",
            "-q 600 --instances 2 --pool 4 --max-pending 10 --acquire-timeout 30ms",
        ] {
            on_each_backend(|io| {
                let dir = tempfile::tempdir().unwrap();
                let file = dir.path().join("samples.csv");
                let name = format!("--profile {profile} {load} --io {io}");
                let flags = format!("{name} -n 200 --timeout 100ms --samples {}", file.display());
                let record = run(&flags, &origin.url("/bytes/2048")).record();
                let samples = samples(&file);
                let ok = samples.iter().filter(|s| s.ok()).count();
                assert_eq!(samples.len(), 200, "{name}");
                assert_eq!(record["totals"]["requests"], 200, "{name}");
                assert_eq!(record["totals"]["ok"], ok, "{name}");
                assert_eq!(record["latency"]["response"]["count"], ok, "{name}");
                for s in samples.iter().filter(|s| s.ok()) {
                    assert!(s.response_ms() < 150.0, "{name}: beyond its timeout by far");
                }
            });
        }
    }
}

/// Reads a request, answers with these bytes, and closes.
fn answers(bytes: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Server {
    Server::start(move |stream| {
        let mut from = BufReader::new(stream.try_clone().unwrap());
        if read_request(&mut from).is_some() {
            answer_and_close(stream, &bytes());
        }
    })
}

/// A close with unread bytes would be a RST, which can overtake the answer.
fn answer_and_close(mut stream: TcpStream, bytes: &[u8]) {
    // A client that has seen enough closes in the middle.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn servers_that_speak_badly_are_named() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "a head of 1 MB in one field",
            format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(1 << 20)).into_bytes(),
            "receive/too_large",
        ),
        (
            "a head of 1 MB in many fields",
            format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Field: some value\r\n".repeat(50_000)).into_bytes(),
            "receive/too_large",
        ),
        ("a line without end", vec![b'H'; 1 << 20], "receive/malformed"),
        ("garbage", (0..=255).cycle().take(10_000).collect(), "receive/malformed"),
        ("another protocol", b"220 mail.example ESMTP\r\n".to_vec(), "receive/malformed"),
        ("a bad status", b"HTTP/1.1 99999 No\r\n\r\n".to_vec(), "receive/malformed"),
        (
            "two lengths",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
            "receive/malformed",
        ),
        ("a negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_vec(), "receive/malformed"),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(), "receive/closed"),
        (
            "chunks that stop",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe".to_vec(),
            "receive/truncated",
        ),
        (
            "chunks without the last one",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(),
            "receive/truncated",
        ),
        (
            "less than announced",
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello".to_vec(),
            "receive/truncated",
        ),
        (
            "an endless chunk size",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_vec(),
            "receive/malformed",
        ),
        ("nothing", b"".to_vec(), "server/closed"),
    ];
    for (what, bytes, error) in cases {
        let server = answers(move || bytes.clone());
        for io in backends() {
            let ended = run(&format!("{IMPATIENT} --io {io}"), &server.url("/"));
            assert_only(&ended.record(), error, 6, &format!("{what} with {io}"));
            assert_eq!(ended.status, 1, "{what} with {io}");
        }
    }
}

#[test]
fn a_body_that_ends_with_its_connection_is_whole() {
    let server = answers(|| b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec());
    for io in backends() {
        let record = run(&format!("{IMPATIENT} --io {io}"), &server.url("/")).fine();
        assert_eq!(record["totals"]["ok"], 6);
        assert_eq!(record["totals"]["conns_opened"], 6);
    }
}

#[test]
fn a_connection_that_dies_when_it_is_reused_is_tried_again_only_where_the_policy_says_so() {
    for io in backends() {
        let server = Server::start(|stream| {
            let mut from = BufReader::new(stream.try_clone().unwrap());
            let mut to = stream;
            if read_request(&mut from).is_some() {
                to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
            // The end comes only when the next request is here.
            read_request(&mut from);
        });
        let record = run(&format!("-n 10 -c 1 --io {io}"), &server.url("/")).fine();
        assert_eq!(record["totals"]["ok"], 5, "{io}: {}", record["errors"]);
        assert_eq!(record["errors"]["server/closed"], 5, "{io}: {}", record["errors"]);

        let record = run(&format!("-n 10 -c 1 --profile go-nethttp --io {io}"), &server.url("/")).fine();
        assert_eq!(record["totals"]["ok"], 10, "{io}: {}", record["errors"]);
        assert_eq!(record["totals"]["retries"], 9, "{io}");
    }
}

#[test]
fn a_server_that_speaks_before_it_has_read_the_body_gets_all_of_it() {
    // More than the kernel holds between the two.
    const BODY_BYTES: usize = 30_000_000;
    let dir = tempfile::tempdir().unwrap();
    let body = dir.path().join("body");
    std::fs::write(&body, vec![b'x'; BODY_BYTES]).unwrap();
    for io in backends() {
        let server = Server::start(|mut stream| {
            stream.read_exact(&mut [0]).unwrap();
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").unwrap();
            let mut from = BufReader::new(stream.try_clone().unwrap());
            let request = read_request(&mut from).expect("a whole request");
            let answer = request.body.len().to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        });
        let flags = format!("-n 1 -m POST -D {} --timeout 10s --io {io}", body.display());
        let record = run(&flags, &server.url("/")).fine();
        assert!(record["totals"]["bytes_out"].as_u64().unwrap() > BODY_BYTES as u64, "{io}");
    }
}

#[test]
fn a_port_where_nobody_listens_ends_the_run_within_seconds() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    on_each_backend(|io| {
        for load in ["-c 10", "-q 100"] {
            let ended = run(&format!("{load} -z 60s --io {io}"), &url);
            assert_eq!(ended.status, 1, "{load} {io}");
            assert!(ended.stderr.contains("connect/refused"), "{load} {io}: {}", ended.stderr);
            assert!(ended.stderr.contains("\nhint: "), "{load} {io}: {}", ended.stderr);
            assert_eq!(ended.record()["totals"]["ok"], 0);
        }
    });
}

#[test]
fn the_place_that_does_not_answer_is_the_one_that_is_named() {
    let silent = Server::start(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    let nobody = free_port();
    // Nobody's handshake ever ends at the first, and the second refuses.
    let lines = format!("GET https://127.0.0.1:{}/\nGET http://127.0.0.1:{nobody}/", silent.port());
    std::fs::write(&list, lines).unwrap();
    let ended = run(&format!("-q 100 -z 20s -k --seed 1 --requests {}", list.display()), "");
    assert_eq!(ended.status, 1);
    let place = format!("127.0.0.1:{nobody}: no dial succeeded (connect/refused");
    assert!(ended.stderr.contains(&place), "{}", ended.stderr);
}

#[test]
fn what_a_server_says_unasked_before_it_closes_is_no_answer() {
    on_each_backend(|io| {
        let server = Server::start(|mut stream| {
            let mut from = BufReader::new(stream.try_clone().unwrap());
            if read_request(&mut from).is_none() {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            // As servers do to a connection that was idle for too long.
            answer_and_close(stream, b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
        });
        let record = run(&format!("-q 10 -n 5 --io {io}"), &server.url("/")).fine();
        assert_eq!(record["totals"]["ok"], 5, "{io}: {}", record["errors"]);
        assert_eq!(record["totals"]["conns_opened"], 5, "{io}");
    });
}

#[test]
fn a_name_that_does_not_exist_is_said_to_be_one() {
    for io in backends() {
        let ended = run(&format!("-n 3 -c 1 --io {io}"), "http://no-such-name.invalid/");
        assert_eq!(ended.status, 1);
        assert!(ended.stderr.contains("dns/not_found"), "{}", ended.stderr);
        assert!(ended.stderr.contains("\nhint: "), "{}", ended.stderr);
    }
}
