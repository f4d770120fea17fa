//! Every fault, as a client feels it, on every event loop.

mod support;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use support::{Client, End, Response, dial, get, on_each_backend, start, stats_when};
use weir_net::Backend;
use weir_origin::{Fault, FaultKind, Latency, Origin, Queue, Stats};

fn faulty(backend: Backend, kind: FaultKind, rate: f64) -> Origin {
    start(backend, |config| {
        config.faults = vec![Fault { kind, rate }];
        config.drip_interval = Duration::from_millis(1);
    })
}

/// What a client gets for `GET /bytes/24`.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// Nobody listens.
    Refused,
    /// Not a byte, then this.
    Nothing(End),
    /// So many of the 24 bytes, then this.
    Part(usize, End),
    /// Bytes that a client cannot understand.
    Garbage,
    /// A whole response of this status, with a head of a megabyte or not.
    Whole(u16, Head),
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    Usual,
    Huge,
}

/// What each fault looks like from outside.
fn expected(kind: FaultKind) -> Seen {
    match kind {
        FaultKind::Refuse => Seen::Refused,
        FaultKind::Reset => Seen::Nothing(End::Rst),
        FaultKind::HalfClose | FaultKind::Close => Seen::Nothing(End::Fin),
        FaultKind::Truncate => Seen::Part(12, End::Fin),
        FaultKind::ResetMidBody => Seen::Part(12, End::Rst),
        FaultKind::Stall => Seen::Part(12, End::Timeout),
        FaultKind::Hang => Seen::Nothing(End::Timeout),
        FaultKind::Malformed | FaultKind::BadChunk => Seen::Garbage,
        FaultKind::HugeHead => Seen::Whole(200, Head::Huge),
        FaultKind::ServerError => Seen::Whole(503, Head::Usual),
        FaultKind::Drip | FaultKind::CloseOnReuse | FaultKind::Extra => Seen::Whole(200, Head::Usual),
    }
}

fn see(origin: &Origin, kind: FaultKind) -> Seen {
    if TcpStream::connect(origin.http_addrs()[0]).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {
        return Seen::Refused;
    }
    let mut client = dial(origin);
    client.send(get("/bytes/24"));
    if kind == FaultKind::Hang && client.is_silent() {
        return Seen::Nothing(End::Timeout);
    }
    match client.try_head() {
        Ok(head) => see_body(&mut client, &head, kind),
        Err(End::NotHttp) => Seen::Garbage,
        Err(end) => Seen::Nothing(end),
    }
}

fn see_body(client: &mut Client, head: &Response, kind: FaultKind) -> Seen {
    let size = if head.fields.contains_key("x-filler") { Head::Huge } else { Head::Usual };
    if head.field("content-length").is_none() {
        assert_eq!(client.try_chunks(), Err(End::NotHttp));
        return Seen::Garbage;
    }
    let half = client.take(12).expect("every response has this much");
    if kind == FaultKind::Stall && client.is_silent() {
        return Seen::Part(half.len(), End::Timeout);
    }
    match client.take(12) {
        Ok(_) => Seen::Whole(head.status, size),
        Err(end) => Seen::Part(half.len(), end),
    }
}

#[test]
fn every_fault_is_what_it_says_and_is_counted() {
    on_each_backend(|backend| {
        for kind in FaultKind::all() {
            let origin = faulty(backend, kind, 1.0);
            assert_eq!(see(&origin, kind), expected(kind), "{}", kind.name());
            let played = origin.stats().faults.get(kind.name()).copied();
            // Nothing is reused here.
            let wanted = if kind == FaultKind::CloseOnReuse { None } else { Some(1) };
            assert_eq!(played, wanted, "{}", kind.name());
        }
    });
}

#[test]
fn no_fault_outlives_its_client() {
    on_each_backend(|backend| {
        for kind in FaultKind::all().filter(|kind| *kind != FaultKind::Refuse) {
            let origin = start(backend, |config| {
                config.faults = vec![Fault { kind, rate: 1.0 }];
                config.concurrency = Some(1);
            });
            see(&origin, kind);
            let stats =
                stats_when(&origin, |stats| stats.connections.open == 0 && stats.queue.under_way == 0);
            assert_eq!(stats.requests, 1, "{}", kind.name());
        }
    });
}

#[test]
fn a_huge_head_is_a_megabyte() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::HugeHead, 1.0);
        let mut client = dial(&origin);
        client.send(get("/"));
        let head = client.take(1 << 20).unwrap();
        assert!(!head.windows(4).any(|window| window == b"\r\n\r\n"));
        client.skip_head();
        assert_eq!(client.take(12).unwrap(), b"weir origin\n");
    });
}

#[test]
fn a_reused_connection_is_closed_without_an_answer() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::CloseOnReuse, 1.0);
        let mut client = dial(&origin);
        assert_eq!(client.get("/").status, 200);
        assert_eq!(client.send(get("/")).end(), End::Fin);
        assert_eq!(origin.stats().faults["close-on-reuse"], 1);
    });
}

#[test]
fn extra_bytes_follow_a_response_that_is_whole() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::Extra, 1.0);
        let mut client = dial(&origin);
        assert_eq!(client.get("/").text(), "weir origin\n");
        let extra = b"bytes that belong to no response\r\n";
        assert_eq!(client.take(extra.len()).unwrap(), extra);
    });
}

#[test]
fn after_a_half_close_the_origin_still_reads() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::HalfClose, 1.0);
        let mut client = dial(&origin);
        assert_eq!(client.send(get("/")).end(), End::Fin);
        client.send(get("/").repeat(1000));
        assert_eq!(origin.stats().connections.open, 1);
        drop(client);
        assert_eq!(stats_when(&origin, |stats| stats.connections.open == 0).requests, 1);
    });
}

#[test]
fn faults_come_at_their_rate_and_the_other_requests_are_answered() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::ServerError, 0.3);
        let mut client = dial(&origin);
        let bad = (0..500).filter(|_| client.get("/").status == 503).count() as u64;
        assert!((100..200).contains(&bad), "{bad} of 500");
        assert_eq!(origin.stats().faults["5xx"], bad);
        assert_eq!(origin.stats().responses[&503], bad);
    });
}

#[test]
fn ports_that_refuse_for_a_share_of_each_second_open_again() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            config.faults = vec![Fault { kind: FaultKind::Refuse, rate: 0.3 }];
            config.threads = 2;
        });
        let addr = origin.http_addrs()[0];
        let dials = |wanted: bool| {
            while TcpStream::connect(addr).is_ok() != wanted {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        dials(true);
        dials(false);
        dials(true);
        assert!(origin.stats().faults["refuse"] >= 1);
    });
}

#[test]
fn what_is_about_the_origin_itself_gets_no_fault() {
    on_each_backend(|backend| {
        let origin = faulty(backend, FaultKind::Reset, 1.0);
        assert_eq!(dial(&origin).get("/_weir/stats").status, 200);
    });
}

#[test]
fn clients_that_leave_at_any_moment_leave_nothing_behind() {
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            let kinds = FaultKind::all().filter(|kind| *kind != FaultKind::Refuse);
            config.faults = kinds.map(|kind| Fault { kind, rate: 0.05 }).collect();
            config.latency = Latency::parse("uniform:0ms-2ms").unwrap();
            config.concurrency = Some(3);
            config.threads = 2;
            config.keepalive_timeout = Some(Duration::from_millis(5));
            config.keepalive_requests = Some(4);
        });
        let requests = [
            get("/"),
            get("/bytes/300000").repeat(3),
            get("/?chunked=1&bytes=100000").repeat(9),
            "POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 100000\r\n\r\n".to_string(),
            "POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n".to_string(),
            "GET / HTTP/1.1\r\nHos".to_string(),
            "not HTTP at all\r\n\r\n".to_string(),
        ];
        let mut clients = std::collections::VecDeque::new();
        for (n, request) in requests.iter().cycle().take(700).enumerate() {
            let mut client = dial(&origin);
            client.send(request);
            if n % 3 == 0 {
                client.shutdown_write();
            }
            clients.push_back(client);
            // Those that stay hold some of the places, and some of the queue.
            if clients.len() > 40 {
                clients.pop_front();
            }
        }
        drop(clients);
        let is_over = |stats: &Stats| {
            stats.connections.open == 0 && stats.queue == Queue { peak: stats.queue.peak, ..Queue::default() }
        };
        let stats = stats_when(&origin, is_over);
        assert_eq!(stats.connections.accepted, 700);
        assert_eq!(stats.requests_per_connection.values().sum::<u64>(), 700);
    });
}
