//! What is sent and where to: lists, bodies, templates, methods, addresses, names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Write};
use std::sync::{Arc, Mutex};

use crate::support::{Origin, Request, Server, backends, read_request, run, samples};

/// A server that keeps what it got.
struct Kept {
    server: Server,
    requests: Arc<Mutex<Vec<Request>>>,
    peers: Arc<Mutex<BTreeSet<String>>>,
}

impl Kept {
    fn start() -> Kept {
        let (requests, peers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(BTreeSet::new())));
        let (seen, from_whom) = (requests.clone(), peers.clone());
        let server = Server::start(move |mut stream| {
            from_whom.lock().unwrap().insert(stream.peer_addr().unwrap().ip().to_string());
            let mut from = BufReader::new(stream.try_clone().unwrap());
            while let Some(request) = read_request(&mut from) {
                seen.lock().unwrap().push(request);
                if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                    return;
                }
            }
        });
        Kept { server, requests, peers }
    }

    fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

#[test]
fn a_request_list_is_sent_by_weight_to_several_origins() {
    let (one, two) = (Kept::start(), Kept::start());
    let dir = tempfile::tempdir().unwrap();
    let (list, file) = (dir.path().join("list"), dir.path().join("samples.csv"));
    let lines = [
        format!("GET {} weight=6", one.server.url("/a?x=1")),
        format!("DELETE {}", two.server.url("/b")),
        format!(
            r#"{{"method": "PUT", "url": "{}", "headers": {{"x-own": "yes"}}, "body": "text", "weight": 3}}"#,
            two.server.url("/c")
        ),
    ];
    fs::write(&list, lines.join("\n")).unwrap();
    for io in backends() {
        let flags =
            format!("-n 1000 -c 10 --io {io} --requests {} --samples {}", list.display(), file.display());
        let record = run(&flags, "").fine();
        assert_eq!(record["totals"]["ok"], 1_000);
        let (at_one, at_two) = (one.requests(), two.requests());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for request in at_one.iter().chain(&at_two) {
            let line = request.head.split(" HTTP/1.1").next().unwrap().to_owned();
            *seen.entry(line).or_default() += 1;
        }
        assert_eq!(at_one.len(), seen["GET /a?x=1"], "{io}");
        for (line, expected) in [("GET /a?x=1", 600), ("DELETE /b", 100), ("PUT /c", 300)] {
            assert!(seen[line].abs_diff(expected) < 70, "{io}: {line}: {}, not {expected}", seen[line]);
        }
        let put = at_two.iter().find(|r| r.head.starts_with("PUT")).unwrap();
        assert_eq!((put.body.as_slice(), put.field("x-own")), (b"text".as_slice(), Some("yes")));
        assert_eq!(put.field("host"), Some(two.server.url("").trim_start_matches("http://")));
        let of_list: BTreeSet<u64> = samples(&file).iter().map(|s| s.request).collect();
        assert_eq!(of_list, BTreeSet::from([0, 1, 2]));
        // Ten workers, two origins, a pool of ten for each.
        assert!(record["totals"]["conns_opened"].as_u64().unwrap() <= 20, "{io}");
    }
}

#[test]
fn a_body_from_a_file_arrives_whole() {
    let origin = Origin::start("");
    let kept = Kept::start();
    let dir = tempfile::tempdir().unwrap();
    let body = dir.path().join("body");
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    fs::write(&body, &bytes).unwrap();
    for io in backends() {
        let flags = format!("-n 6 -c 2 -m POST -D {} --io {io}", body.display());
        let totals = &run(&flags, &origin.url("/echo")).fine()["totals"];
        assert!(totals["bytes_out"].as_u64().unwrap() > 18_000_000, "{io}: {totals}");
        assert!(totals["bytes_in"].as_u64().unwrap() > 18_000_000, "{io}: {totals}");
        run(&flags, &kept.server.url("/")).fine();
        let got = kept.requests();
        assert_eq!(got.len(), 6);
        assert!(got.iter().all(|r| r.body == bytes), "{io}");
    }
}

#[test]
fn templates_are_filled_in_path_headers_and_body() {
    for io in backends() {
        let kept = Kept::start();
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        let line = format!(
            r#"{{"method": "POST", "url": "{}", "headers": {{"x-id": "{{{{uuid}}}}"}}, "body": "n={{{{counter}}}}"}}"#,
            kept.server.url("/item/{{counter}}?r={{random:10-19}}")
        );
        fs::write(&list, line).unwrap();
        let flags = format!("-n 200 -c 6 --instances 3 --io {io} --requests {}", list.display());
        run(&flags, "").fine();
        let got = kept.requests();
        let mut counters = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for request in &got {
            let target = request.target();
            let (path, random) = target.split_once("?r=").expect("both templates");
            assert!((10..=19).contains(&random.parse().unwrap()), "{target}");
            let counter: u64 = path.strip_prefix("/item/").unwrap().parse().unwrap();
            assert_eq!(request.body, format!("n={counter}").into_bytes());
            counters.insert(counter);
            ids.insert(request.field("x-id").unwrap().to_owned());
        }
        assert_eq!((got.len(), counters.len(), ids.len()), (200, 200, 200), "{io}");
    }
}

#[test]
fn every_kind_of_answer_is_read_to_its_end() {
    let origin = Origin::start("");
    for io in backends() {
        for (flags, path, status, body_bytes) in [
            ("", "/bytes/5000", "200", 5_000),
            ("", "/bytes/5000?chunked=1", "200", 5_000),
            ("-m POST -d hello", "/bytes/5000?chunked=1", "200", 5_000),
            ("-m HEAD", "/bytes/5000", "200", 0),
            ("-m HEAD", "/bytes/5000?chunked=1", "200", 0),
            ("", "/status/204", "204", 0),
            ("", "/status/304", "304", 0),
            ("", "/bytes/0", "200", 0),
            ("", "/bytes/2m", "200", 2_000_000),
        ] {
            let record = run(&format!("-n 20 -c 2 --io {io} {flags}"), &origin.url(path)).fine();
            let name = format!("{flags} {path} with {io}");
            assert_eq!(record["status"][status], 20, "{name}");
            assert_eq!(record["totals"]["ok"], 20, "{name}");
            assert_eq!(record["totals"]["conns_opened"], 2, "{name}: a connection was not used again");
            let each = record["totals"]["bytes_in"].as_u64().unwrap() / 20;
            assert!((body_bytes..body_bytes + 2_000).contains(&each), "{name}: {each} bytes");
        }
    }
}

#[test]
fn a_status_from_400_on_is_an_error_and_its_connection_is_used_again() {
    let origin = Origin::start("");
    for (status, error) in [("404", "server/status_4xx"), ("503", "server/status_5xx")] {
        let ended = run("-n 20 -c 2", &origin.url(&format!("/status/{status}")));
        let record = ended.record();
        assert_eq!(ended.status, 1);
        assert_eq!(record["status"][status], 20);
        assert_eq!(record["errors"][error], 20);
        assert_eq!(record["totals"]["conns_opened"], 2);
    }
}

#[test]
fn a_unix_socket_and_another_address_get_the_requests_of_the_url() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let origin = Origin::start(&format!("--unix {}", socket.display()));
    let kept = Kept::start();
    for io in backends() {
        let before = origin.accepted();
        let flags = format!("-n 100 -c 4 --io {io} --unix-socket {}", socket.display());
        let record = run(&flags, "http://service.internal:1234/").fine();
        assert_eq!(record["totals"]["ok"], 100);
        assert_eq!(origin.accepted() - before, 4);

        let flags = format!("-n 10 -c 1 --io {io} --connect-to 127.0.0.1:{}", kept.server.port());
        run(&flags, "http://service.internal:1234/").fine();
        let got = kept.requests();
        assert_eq!(got.len(), 10);
        assert!(got.iter().all(|r| r.field("host") == Some("service.internal:1234")));
    }
}

#[test]
fn connections_come_from_each_local_address_in_turn() {
    for io in backends() {
        let kept = Kept::start();
        let flags = format!("-n 80 -c 8 --local-addr 127.0.0.2-127.0.0.5 --io {io}");
        run(&flags, &kept.server.url("/")).fine();
        let peers = kept.peers.lock().unwrap().clone();
        let expected = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"].map(str::to_owned);
        assert_eq!(peers, BTreeSet::from(expected), "{io}");
    }
}

#[test]
fn a_name_is_looked_up_in_a_phase_of_its_own() {
    let origin = Origin::start("");
    let port = origin.addr().rsplit(':').next().unwrap();
    for io in backends() {
        let record = run(&format!("-n 20 -c 1 --io {io}"), &format!("http://localhost:{port}/")).fine();
        let phases = &record["phases"];
        assert_eq!(phases["dns"]["count"], 20, "{io}");
        assert!(phases["dns"]["max"].as_f64().unwrap() > 0.0, "{io}: {}", phases["dns"]);
        let record = run(&format!("-n 20 -c 1 --io {io}"), &origin.url("/")).fine();
        assert_eq!(record["phases"]["dns"]["max"], 0.0, "{io}");
        assert!(record["phases"]["connect"]["max"].as_f64().unwrap() > 0.0, "{io}");
    }
}
