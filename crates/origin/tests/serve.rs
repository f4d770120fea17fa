//! What a client sees of an origin, over real sockets and on every event loop.

mod support;

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use support::{Client, End, dial, get, loopback, on_each_backend, start, stats_when};
use weir_model::units::Nanos;
use weir_net::Endpoint;
use weir_origin::{Connections, Latency, Origin, OriginConfig, Stats};

#[test]
fn it_answers_twelve_bytes_and_keeps_the_connection() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        for _ in 0..3 {
            let response = client.get("/any/path?at=all");
            assert_eq!((response.status, response.text()), (200, "weir origin\n"));
            assert_eq!(response.field("connection"), None);
            assert!(response.field("date").unwrap().ends_with(" GMT"));
        }
    });
}

#[test]
fn paths_and_queries_choose_the_answer() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        let mut check = |target: &str, status: u16, bytes: usize| {
            let response = client.get(target);
            assert_eq!((response.status, response.body.len()), (status, bytes), "{target}");
        };
        check("/bytes/2048", 200, 2048);
        check("/bytes/0", 200, 0);
        check("/status/503", 503, 12);
        check("/x?status=404&bytes=1ki&chunked=1", 404, 1024);
        check("/bytes/0?chunked=1", 200, 0);
        check("/bytes/20m", 200, 20_000_000);
        check("/bytes/3m?chunked=1", 200, 3_000_000);
        check("/status/204", 204, 0);
        check("/bytes/what", 400, 39);
        check("/", 200, 12);
    });
}

#[test]
fn head_gets_the_head_of_the_same_answer() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        for _ in 0..2 {
            client.send("HEAD /bytes/1g HTTP/1.1\r\nHost: o\r\n\r\n");
            assert_eq!(client.head_response().field("content-length"), Some("1000000000"));
        }
    });
}

#[test]
fn an_echo_returns_the_body_however_it_came() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\r\nping");
        assert_eq!(client.response().text(), "ping");
        client.send("POST /echo?chunked=1 HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send("2\r\npo\r\n").send("2\r\nng\r\n0\r\n\r\n");
        let response = client.response();
        assert_eq!((response.text(), response.field("transfer-encoding")), ("pong", Some("chunked")));
        client
            .send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 300000\r\n\r\n")
            .send(vec![b'x'; 300_000]);
        assert_eq!(client.response().body, vec![b'x'; 300_000]);
        client.send("POST / HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\r\nping");
        assert_eq!(client.response().text(), "weir origin\n");
    });
}

#[test]
fn a_client_that_asks_first_is_told_to_continue() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(client.response().status, 100);
        assert_eq!(client.send("hi").response().text(), "hi");
    });
}

#[test]
fn an_echo_that_is_too_long_is_refused_in_a_way_that_arrives() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client
            .send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 20000000\r\n\r\n")
            .send(vec![b'x'; 20_000_000]);
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (413, Some("close")));
        assert_eq!(client.end(), End::Fin);
    });
}

#[test]
fn what_is_no_request_is_told_why_and_closed() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let check = |request: &[u8], status: u16| {
            let mut client = dial(&origin);
            let response = client.send(request).response();
            assert_eq!((response.status, response.field("connection")), (status, Some("close")));
            assert_eq!(client.end(), End::Fin);
        };
        check(b"\x16\x03\x01 hello\r\n\r\n", 400);
        check(b"GET / HTTP/1.1\r\n\r\n", 400);
        check(format!("GET /{} HTTP/1.1\r\nHost: o\r\n\r\n", "x".repeat(20_000)).as_bytes(), 414);
        check(format!("GET / HTTP/1.1\r\nHost: o\r\nX: {}\r\n\r\n", "x".repeat(70_000)).as_bytes(), 431);
        check(b"POST / HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: rot13, chunked\r\n\r\n", 501);
        check(b"GET / HTTP/2.0\r\nHost: o\r\n\r\n", 505);
        let stats = origin.stats();
        assert_eq!(stats.requests, 0);
        assert_eq!(stats.responses, BTreeMap::from([(400, 2), (414, 1), (431, 1), (501, 1), (505, 1)]));
    });
}

#[test]
fn pipelined_requests_are_answered_in_order_whatever_they_take() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client.send(
            ["/delay/30ms?bytes=1", "/bytes/2", "/delay/10ms?bytes=3", "/bytes/300000", "/bytes/5"]
                .map(get)
                .concat(),
        );
        let lengths: Vec<usize> = (0..5).map(|_| client.response().body.len()).collect();
        assert_eq!(lengths, [1, 2, 3, 300_000, 5]);
    });
}

#[test]
fn a_client_that_pipelines_too_much_is_read_no_further_and_loses_nothing() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client.send(get("/delay/20ms"));
        client.send(get("/bytes/1").repeat(20_000));
        client.response();
        for _ in 0..20_000 {
            assert_eq!(client.response().text(), "w");
        }
    });
}

#[test]
fn a_request_that_comes_byte_by_byte_is_one_request() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        for byte in get("/bytes/5").bytes() {
            client.send([byte]);
        }
        assert_eq!(client.response().text(), "weir ");
        assert_eq!(origin.stats().requests, 1);
    });
}

#[test]
fn latency_is_never_shorter_than_it_should_be_and_is_told() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.latency = Latency::Constant(Nanos::from_millis(15)));
        let mut client = dial(&origin);
        let began = Instant::now();
        let usual = client.get("/").server_ms();
        let asked = client.get("/delay/25ms").server_ms();
        let elapsed_ms = began.elapsed().as_secs_f64() * 1e3;
        assert!(usual >= 15.0 && asked >= 25.0, "{usual} {asked}");
        assert!(usual + asked <= elapsed_ms + 0.01, "{usual} + {asked} told, {elapsed_ms} passed");
    });
}

#[test]
fn no_more_requests_are_under_way_than_allowed_and_the_rest_wait_in_order() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.concurrency = Some(1));
        // Nobody reads this response, so it stays under way.
        let mut first = dial(&origin);
        first.send(get("/bytes/1g"));
        let mut others: Vec<Client> = (0..3).map(|_| dial(&origin)).collect();
        for (n, client) in (1..).zip(&mut others) {
            stats_when(&origin, |stats| stats.requests == n);
            client.send(get("/delay/1ms"));
        }
        stats_when(&origin, |stats| stats.queue.under_way == 1 && stats.queue.waiting == 3);
        drop(first);
        let took: Vec<f64> = others.iter_mut().rev().map(|client| client.response().server_ms()).collect();
        assert!(took.iter().all(|ms| *ms >= 1.0), "{took:?}");
        let queue = origin.stats().queue;
        assert_eq!((queue.under_way, queue.waiting, queue.peak), (0, 0, 3));
    });
}

#[test]
fn a_long_response_gives_its_place_back_once_it_is_out() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.concurrency = Some(1));
        let (mut first, mut second) = (dial(&origin), dial(&origin));
        first.send(get("/bytes/20m"));
        stats_when(&origin, |stats| stats.requests == 1);
        second.send(get("/"));
        stats_when(&origin, |stats| stats.queue.waiting == 1);
        assert_eq!(first.response().body.len(), 20_000_000);
        assert_eq!(second.response().status, 200);
    });
}

#[test]
fn the_limit_holds_over_all_threads() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            config.threads = 3;
            config.concurrency = Some(2);
        });
        let mut clients: Vec<Client> = (0..24).map(|_| dial(&origin)).collect();
        for client in &mut clients {
            client.send(get("/delay/3ms"));
        }
        while origin.stats().queue.waiting > 0 {
            assert!(origin.stats().queue.under_way <= 2);
        }
        for client in &mut clients {
            assert_eq!(client.response().status, 200);
        }
        let stats = origin.stats();
        assert_eq!((stats.requests, stats.queue.under_way, stats.threads.len()), (24, 0, 3));
    });
}

#[test]
fn a_client_that_leaves_gives_its_place_back() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.concurrency = Some(1));
        let mut first = dial(&origin);
        let mut second = dial(&origin);
        first.send(get("/delay/30ms"));
        stats_when(&origin, |stats| stats.requests == 1);
        second.send(get("/"));
        stats_when(&origin, |stats| stats.requests == 2);
        drop((first, second));
        // Both of them: the one whose latency runs, and the one that waits behind it.
        stats_when(&origin, |stats| stats.connections.open == 0 && stats.queue.under_way == 0);
        assert_eq!(dial(&origin).get("/").status, 200);
    });
}

#[test]
fn idle_connections_get_a_fin_and_busy_ones_do_not() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.keepalive_timeout = Some(Duration::from_millis(200)));
        let mut unused = dial(&origin);
        let mut client = dial(&origin);
        client.send(get("/delay/250ms").repeat(2));
        assert_eq!((client.response().status, client.response().status), (200, 200));
        assert_eq!((client.end(), unused.end()), (End::Fin, End::Fin));
        let stats = stats_when(&origin, |stats| stats.connections.open == 0);
        assert_eq!(stats.requests_per_connection, BTreeMap::from([(0, 1), (2, 1)]));
    });
}

#[test]
fn the_last_answer_of_a_connection_says_so() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            config.keepalive_requests = Some(2);
            config.keepalive_timeout = Some(Duration::from_secs(7));
            config.announce_keepalive = true;
        });
        let mut client = dial(&origin);
        assert_eq!(client.get("/").field("keep-alive"), Some("timeout=7, max=1"));
        let last = client.get("/");
        assert_eq!((last.field("connection"), last.field("keep-alive")), (Some("close"), None));
        assert_eq!(client.end(), End::Fin);
    });
}

#[test]
fn a_silent_close_comes_as_a_surprise() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            config.keepalive_requests = Some(1);
            config.silent_close = true;
        });
        let mut client = dial(&origin);
        assert_eq!(client.get("/").field("connection"), None);
        assert_eq!(client.end(), End::Fin);
    });
}

#[test]
fn connections_are_closed_when_either_side_says_so() {
    on_each_backend(|backend| {
        let usual = start(backend, |_| {});
        let closing = start(backend, |config| config.close = true);
        let check = |origin: &Origin, request: &str, connection: Option<&str>, closes: bool| {
            let mut client = dial(origin);
            assert_eq!(client.send(request).response().field("connection"), connection, "{request}");
            if closes {
                assert_eq!(client.end(), End::Fin, "{request}");
            } else {
                assert_eq!(client.get("/").status, 200, "{request}");
            }
        };
        check(&usual, "GET / HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n", Some("close"), true);
        check(&usual, "GET / HTTP/1.0\r\n\r\n", Some("close"), true);
        check(&usual, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("keep-alive"), false);
        check(&closing, &get("/"), Some("close"), true);
        check(&closing, &get("/").repeat(3), Some("close"), true);
    });
}

#[test]
fn a_client_that_closes_its_side_still_gets_its_answers() {
    on_each_backend(|backend| {
        let origin = start(backend, |_| {});
        let mut client = dial(&origin);
        client.send(get("/delay/10ms").repeat(2)).shutdown_write();
        assert_eq!((client.response().status, client.response().status), (200, 200));
        assert_eq!(client.end(), End::Fin);
    });
}

#[test]
fn accepted_connections_are_held_for_the_accept_delay() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.accept_delay = Some(Duration::from_millis(30)));
        let began = Instant::now();
        let mut client = dial(&origin);
        let response = client.get("/");
        assert!(began.elapsed() >= Duration::from_millis(30));
        assert_eq!(response.status, 200);
        assert_eq!(client.get("/").status, 200);
    });
}

#[test]
fn the_counters_leave_out_whoever_asks_for_them() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| config.threads = 2);
        for n in [1, 1, 3] {
            let mut client = dial(&origin);
            (0..n).for_each(|_| assert_eq!(client.get("/").status, 200));
        }
        let mut open = dial(&origin);
        open.get("/status/503");
        let mut watcher = dial(&origin);
        stats_when(&origin, |stats| stats.connections.open <= 2);
        let json = watcher.get("/_weir/stats");
        assert_eq!(json.field("content-type"), Some("application/json"));
        let stats: Stats = serde_json::from_slice(&json.body).unwrap();
        assert_eq!(stats.connections, Connections { accepted: 4, open: 1 });
        assert_eq!(stats.requests, 6);
        assert_eq!(stats.responses, BTreeMap::from([(200, 5), (503, 1)]));
        assert_eq!(stats.requests_per_connection, BTreeMap::from([(1, 3), (3, 1)]));
        assert_eq!(stats.threads.iter().map(|thread| thread.requests).sum::<u64>(), 6);

        assert_eq!(watcher.send("POST /_weir/reset HTTP/1.1\r\nHost: o\r\n\r\n").response().status, 200);
        open.get("/");
        let stats = origin.stats();
        assert_eq!((stats.requests, stats.connections), (1, Connections { accepted: 0, open: 1 }));
        assert_eq!(stats.requests_per_connection, BTreeMap::from([(2, 1)]));
    });
}

#[test]
fn the_same_seed_draws_the_same_faults() {
    on_each_backend(|backend| {
        let statuses = |seed: u64| -> Vec<u16> {
            let origin = start(backend, |config| {
                config.faults = vec![weir_origin::Fault::parse("5xx:0.5").unwrap()];
                config.seed = seed;
            });
            let mut client = dial(&origin);
            (0..40).map(|_| client.get("/").status).collect()
        };
        assert_eq!(statuses(1), statuses(1));
        assert_ne!(statuses(1), statuses(2));
    });
}

#[test]
fn unix_sockets_are_served_and_removed() {
    on_each_backend(|backend| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("origin.sock");
        let origin = start(backend, |config| {
            config.http = vec![Endpoint::Unix(path.clone()), loopback()];
            config.threads = 2;
        });
        assert_eq!(origin.http_addrs().len(), 1);
        let mut client = Client::on(UnixStream::connect(&path).unwrap());
        assert_eq!((client.get("/").status, client.get("/").status), (200, 200));
        drop(origin);
        assert!(!path.exists());
    });
}

#[test]
fn stopping_ends_the_threads_and_closes_the_ports() {
    on_each_backend(|backend| {
        let mut origin = start(backend, |config| config.threads = 2);
        let addr = origin.http_addrs()[0];
        let mut client = dial(&origin);
        client.get("/");
        origin.stopper().stop();
        origin.wait().unwrap();
        assert!(matches!(client.end(), End::Fin | End::Rst));
        assert!(std::net::TcpStream::connect(addr).is_err());
        assert_eq!(origin.stats().requests, 1);
    });
}

#[test]
fn what_cannot_be_served_is_refused_with_a_hint() {
    let check = |change: fn(&mut OriginConfig), message: &str, hint: &str| {
        let mut config = OriginConfig { http: vec![loopback()], ..OriginConfig::default() };
        change(&mut config);
        let error = Origin::start(&config).err().expect(message);
        assert_eq!((error.message.as_str(), error.hint.as_str()), (message, hint));
    };
    check(|c| c.http.clear(), "the origin listens nowhere", "give it an address for http or https");
    check(|c| c.threads = 0, "threads: `0` cannot serve", "1 or more");
    check(|c| c.status = 101, "status: `101` is no final status", "200 to 599");
    check(
        |c| c.concurrency = Some(0),
        "concurrency: `0` would answer nothing",
        "1 or more, or no limit at all",
    );
    check(|c| c.keepalive_requests = Some(0), "keepalive-requests: `0` would answer nothing", "1 or more");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let config = OriginConfig { http: vec![Endpoint::Tcp(taken)], ..OriginConfig::default() };
    let error = Origin::start(&config).err().expect("the port is taken");
    assert!(error.message.starts_with(&format!("cannot listen at {taken}: ")), "{}", error.message);
    assert!(error.hint.starts_with("another program listens there"), "{}", error.hint);
    drop(listener);
}
