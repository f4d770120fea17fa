//! The loop against itself and against plain std sockets; every test runs on both bodies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use weir_net::tls::{Authority, ClientOptions, ClientTls, ServerOptions, ServerTls};
use weir_net::{Backend, Cause, Conn, Endpoint, Event, Net, NetConfig, Stage, clock};

const SECOND: u64 = 1_000_000_000;

/// A body that this kernel lacks is skipped, and said so.
fn on_both(test: impl Fn(Net)) {
    for backend in [Backend::Mio, Backend::Uring] {
        match Net::new(NetConfig { backend: Some(backend) }) {
            Ok(net) => test(net),
            Err(e) => eprintln!("{} is not available here: {e}", backend.name()),
        }
    }
}

/// The next event; fails after twenty seconds without one, so that a bug is not a hang.
fn next(net: &mut Net) -> Event {
    let deadline = clock::now() + 20 * SECOND;
    loop {
        if let Some(event) = net.next_event() {
            return event;
        }
        assert!(clock::now() < deadline, "no event for 20 s");
        net.wait(Some(deadline)).expect("the loop works");
    }
}

fn loopback() -> Endpoint {
    Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn std_listener() -> (TcpListener, Endpoint) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let at = Endpoint::Tcp(listener.local_addr().expect("bound"));
    (listener, at)
}

/// Dials a std listener, and returns both ends once they are connected.
fn dialled(net: &mut Net) -> (Conn, TcpStream) {
    let (listener, at) = std_listener();
    let conn = net.connect(&at, None, None);
    assert!(matches!(next(net), Event::Connected(c) if c == conn));
    (conn, listener.accept().expect("a client").0)
}

/// Reads until `len` bytes are here.
fn read(net: &mut Net, conn: Conn, len: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < len {
        match next(net) {
            Event::Received(c) if c == conn => got.extend_from_slice(net.data()),
            Event::Sent(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    got
}

#[test]
fn bytes_go_both_ways_and_the_end_is_seen() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        net.send(conn, b"ping");
        assert!(matches!(next(&mut net), Event::Sent(c) if c == conn));
        let mut buf = [0; 4];
        peer.read_exact(&mut buf).expect("four bytes");
        assert_eq!(&buf, b"ping");
        peer.write_all(b"pong").expect("written");
        drop(peer);
        assert_eq!(read(&mut net, conn, 4), b"pong");
        assert!(matches!(next(&mut net), Event::Eof(c) if c == conn));
        net.close(conn);
        net.wait(Some(0)).expect("the loop works");
        while net.next_event().is_some() {}
        assert_eq!(net.open_conns(), 0);
    });
}

#[test]
fn large_writes_arrive_whole_and_sent_comes_once() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        let big: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
        let expected = big.clone();
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; expected.len()];
            peer.read_exact(&mut got).expect("all of it");
            assert!(got == expected, "the bytes are in order");
            peer.write_all(&got).expect("written");
        });
        net.send(conn, &big);
        assert!(matches!(next(&mut net), Event::Sent(c) if c == conn));
        assert!(read(&mut net, conn, big.len()) == big, "the bytes come back in order");
        reader.join().expect("the peer is content");
    });
}

#[test]
fn queued_bytes_leave_before_a_close_and_the_owner_hears_no_more() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        net.send(conn, &vec![7; 3_000_000]);
        net.close(conn);
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).map(|_| got.len())
        });
        while net.open_conns() > 0 {
            net.wait(Some(clock::now() + SECOND)).expect("the loop works");
            assert!(net.next_event().is_none());
        }
        assert_eq!(reader.join().expect("no panic").expect("no error"), 3_000_000);
    });
}

#[test]
fn a_reset_is_told_as_one() {
    on_both(|mut net| {
        let (conn, peer) = dialled(&mut net);
        socket2::SockRef::from(&peer).set_linger(Some(std::time::Duration::ZERO)).expect("set");
        drop(peer);
        match next(&mut net) {
            Event::Failed(c, e) => {
                assert_eq!((c, e.stage), (conn, Stage::Open));
                assert!(matches!(e.cause, Cause::Reset), "{e:?}");
            }
            other => panic!("unexpected {other:?}"),
        }
        assert_eq!(net.open_conns(), 0);
    });
}

#[test]
fn our_reset_arrives_as_one() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        net.reset(conn);
        net.wait(Some(0)).expect("the loop works");
        while net.next_event().is_some() {}
        let e = peer.read(&mut [0; 1]).expect_err("a reset");
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_refused_dial_fails_in_its_stage() {
    on_both(|mut net| {
        let (listener, at) = std_listener();
        drop(listener);
        let conn = net.connect(&at, None, None);
        match next(&mut net) {
            Event::Failed(c, e) => {
                assert_eq!((c, e.stage), (conn, Stage::Connect));
                assert!(matches!(e.cause, Cause::Refused), "{e:?}");
            }
            other => panic!("unexpected {other:?}"),
        }
    });
}

#[test]
fn a_dial_that_is_given_up_says_nothing() {
    on_both(|mut net| {
        let (_listener, at) = std_listener();
        for _ in 0..100 {
            let conn = net.connect(&at, None, None);
            net.close(conn);
        }
        while net.open_conns() > 0 {
            net.wait(Some(clock::now() + SECOND / 100)).expect("the loop works");
            assert!(net.next_event().is_none());
        }
    });
}

#[test]
fn a_paused_connection_is_read_after_resume_even_if_the_peer_has_left() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        net.pause(conn);
        net.wait(Some(0)).expect("the loop works");
        while net.next_event().is_some() {}
        peer.write_all(b"late").expect("written");
        drop(peer);
        net.wait(Some(clock::now() + SECOND / 50)).expect("the loop works");
        assert!(net.next_event().is_none());
        net.resume(conn);
        assert_eq!(read(&mut net, conn, 4), b"late");
        assert!(matches!(next(&mut net), Event::Eof(c) if c == conn));
    });
}

#[test]
fn after_shutdown_the_peer_sees_the_end_and_can_still_answer() {
    on_both(|mut net| {
        let (conn, mut peer) = dialled(&mut net);
        net.send(conn, b"question");
        net.shutdown(conn);
        let peer = std::thread::spawn(move || {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).expect("read");
            peer.write_all(b"answer").expect("written");
            got
        });
        assert_eq!(read(&mut net, conn, 6), b"answer");
        assert_eq!(peer.join().expect("no panic"), b"question");
    });
}

#[test]
fn a_listener_serves_many_clients_and_then_none() {
    on_both(|mut net| {
        let listener = net.listen(&loopback(), None, false).expect("a port");
        let addr = net.local_addr(listener).expect("bound");
        let clients: Vec<_> = (0..50u8)
            .map(|i| {
                std::thread::spawn(move || {
                    let mut s = TcpStream::connect(addr).expect("accepted");
                    s.write_all(&[i; 100]).expect("written");
                    let mut got = [0; 100];
                    s.read_exact(&mut got).expect("echoed");
                    assert_eq!(got, [i; 100]);
                })
            })
            .collect();
        let mut ended = 0;
        while ended < 50 {
            match next(&mut net) {
                Event::Received(c) => {
                    let bytes = net.data().to_vec();
                    net.send(c, &bytes);
                }
                Event::Eof(c) => {
                    net.close(c);
                    ended += 1;
                }
                Event::Accepted(..) | Event::Sent(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        for c in clients {
            c.join().expect("every client got its bytes back");
        }
        net.unlisten(listener);
        net.wait(Some(0)).expect("the loop works");
        while net.next_event().is_some() {}
        let e = TcpStream::connect(addr).expect_err("nobody listens");
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn held_connections_are_not_read_before_resume() {
    on_both(|mut net| {
        let listener = net.listen(&loopback(), None, true).expect("a port");
        let addr = net.local_addr(listener).expect("bound");
        let mut client = TcpStream::connect(addr).expect("in the backlog");
        client.write_all(b"early").expect("written");
        let Event::Accepted(l, conn) = next(&mut net) else { panic!("expected a client") };
        assert_eq!(l, listener);
        net.wait(Some(clock::now() + SECOND / 50)).expect("the loop works");
        assert!(net.next_event().is_none());
        net.resume(conn);
        assert_eq!(read(&mut net, conn, 5), b"early");
    });
}

#[test]
fn unix_sockets_work_on_both_sides() {
    on_both(|mut net| {
        let path = std::env::temp_dir().join(format!("weir-net-{}-{:?}", std::process::id(), net.backend()));
        let at = Endpoint::Unix(path.clone());
        let listener = net.listen(&at, None, false).expect("a path");
        let client = net.connect(&at, None, None);
        let (mut connected, mut server) = (false, None);
        while !(connected && server.is_some()) {
            match next(&mut net) {
                Event::Connected(c) if c == client => connected = true,
                Event::Accepted(_, c) => server = Some(c),
                other => panic!("unexpected {other:?}"),
            }
        }
        net.send(client, b"hello");
        assert_eq!(read(&mut net, server.expect("accepted"), 5), b"hello");
        net.unlisten(listener);
        assert!(!path.exists());
    });
}

fn server_tls(authority: &Authority, names: &[&str]) -> Arc<ServerTls> {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    let identity = authority.issue(&names).expect("valid names");
    ServerTls::new(&ServerOptions {
        chain_pem: identity.chain_pem.into_bytes(),
        key_pem: identity.key_pem.into_bytes(),
        client_authorities_pem: None,
        resumption: true,
        tls12: true,
        tls13: true,
        alpn: vec![b"http/1.1".to_vec()],
    })
    .expect("a valid configuration")
}

fn client_tls(authority: &Authority, change: impl Fn(&mut ClientOptions)) -> Arc<ClientTls> {
    let mut options = ClientOptions {
        verify: true,
        authorities_pem: Some(authority.cert_pem().into_bytes()),
        identity_pem: None,
        resumption: true,
        tls12: true,
        tls13: true,
        alpn: vec![b"http/1.1".to_vec()],
    };
    change(&mut options);
    ClientTls::new(&options).expect("a valid configuration")
}

/// One connection, one exchange; returns whether the handshake was resumed, or the client's error.
fn tls_exchange(net: &mut Net, at: &Endpoint, tls: &Arc<ClientTls>) -> Result<bool, Cause> {
    let client = net.connect(at, None, Some((tls, "localhost")));
    let (mut resumed, mut server) = (false, None);
    let big = vec![b'x'; 100_000];
    let mut got = 0;
    loop {
        match next(net) {
            Event::Secured(c, s) if c == client => {
                resumed = s.resumed;
                assert_eq!(s.alpn, Some(weir_net::Alpn::Http11));
                net.send(c, b"question");
            }
            Event::Accepted(_, c) => server = Some(c),
            Event::Received(c) if Some(c) == server => {
                assert_eq!(net.data(), b"question");
                net.send(c, &big);
            }
            Event::Received(c) if c == client => {
                got += net.data().len();
                if got == big.len() {
                    net.close(client);
                }
            }
            Event::Eof(c) if Some(c) == server => {
                net.close(c);
                return Ok(resumed);
            }
            Event::Failed(c, e) if c == client => {
                net.close(server.expect("accepted before"));
                return Err(e.cause);
            }
            Event::Connected(_) | Event::Secured(..) | Event::Sent(_) | Event::Failed(..) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[test]
fn tls_carries_bytes_and_resumes_its_sessions_if_allowed() {
    let authority = Authority::generate("test");
    on_both(|mut net| {
        let listener =
            net.listen(&loopback(), Some(server_tls(&authority, &["localhost"])), false).expect("a port");
        let at = Endpoint::Tcp(net.local_addr(listener).expect("bound"));
        for (tls12, tls13) in [(true, false), (false, true)] {
            let tls = client_tls(&authority, |o| (o.tls12, o.tls13) = (tls12, tls13));
            assert!(!tls_exchange(&mut net, &at, &tls).expect("trusted"));
            assert!(tls_exchange(&mut net, &at, &tls).expect("trusted"));
            let tls = client_tls(&authority, |o| (o.tls12, o.tls13, o.resumption) = (tls12, tls13, false));
            assert!(!tls_exchange(&mut net, &at, &tls).expect("trusted"));
            assert!(!tls_exchange(&mut net, &at, &tls).expect("trusted"));
        }
    });
}

#[test]
fn an_untrusted_certificate_is_an_error_unless_anyone_is_believed() {
    let (authority, other) = (Authority::generate("test"), Authority::generate("other"));
    on_both(|mut net| {
        let good = server_tls(&authority, &["localhost"]);
        let wrong_name = server_tls(&authority, &["example.org"]);
        for (server, trust, verify, ok) in [
            (&good, &authority, true, true),
            (&good, &other, true, false),
            (&wrong_name, &authority, true, false),
            (&good, &other, false, true),
            (&wrong_name, &authority, false, true),
        ] {
            let listener = net.listen(&loopback(), Some(server.clone()), false).expect("a port");
            let at = Endpoint::Tcp(net.local_addr(listener).expect("bound"));
            let tls = client_tls(trust, |o| o.verify = verify);
            match tls_exchange(&mut net, &at, &tls) {
                Ok(_) => assert!(ok),
                Err(cause) => assert!(!ok && matches!(cause, Cause::Untrusted(_)), "{cause:?}"),
            }
            net.unlisten(listener);
        }
    });
}

#[test]
fn a_self_signed_certificate_is_trusted_where_it_is_given_and_for_its_name_and_time() {
    let server = |name: &str, years: (i32, i32)| {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a valid name");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let key = rcgen::KeyPair::generate().expect("randomness");
        let pem = params.self_signed(&key).expect("valid parameters").pem();
        let options = ServerOptions {
            chain_pem: pem.clone().into_bytes(),
            key_pem: key.serialize_pem().into_bytes(),
            client_authorities_pem: None,
            resumption: true,
            tls12: true,
            tls13: true,
            alpn: vec![b"http/1.1".to_vec()],
        };
        (ServerTls::new(&options).expect("a valid configuration"), pem)
    };
    let (good, trust) = server("localhost", (1975, 4096));
    let (_, other) = server("localhost", (1975, 4096));
    let (wrong_name, trust_name) = server("example.org", (1975, 4096));
    let (expired, trust_expired) = server("localhost", (1975, 1976));
    let authority = Authority::generate("test");
    on_both(|mut net| {
        for (server, given, ok) in [
            (&good, &trust, true),
            (&good, &other, false),
            (&wrong_name, &trust_name, false),
            (&expired, &trust_expired, false),
        ] {
            let listener = net.listen(&loopback(), Some(server.clone()), false).expect("a port");
            let at = Endpoint::Tcp(net.local_addr(listener).expect("bound"));
            let tls = client_tls(&authority, |o| o.authorities_pem = Some(given.clone().into_bytes()));
            match tls_exchange(&mut net, &at, &tls) {
                Ok(_) => assert!(ok),
                Err(cause) => assert!(!ok && matches!(cause, Cause::Untrusted(_)), "{cause:?}"),
            }
            net.unlisten(listener);
        }
    });
}

#[test]
fn plain_bytes_in_place_of_tls_are_an_error_of_the_handshake() {
    on_both(|mut net| {
        let authority = Authority::generate("test");
        let (listener, at) = std_listener();
        let tls = client_tls(&authority, |_| {});
        let conn = net.connect(&at, None, Some((&tls, "localhost")));
        assert!(matches!(next(&mut net), Event::Connected(_)));
        let mut peer = listener.accept().expect("a client").0;
        peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("written");
        match next(&mut net) {
            Event::Failed(c, e) => {
                assert_eq!((c, e.stage), (conn, Stage::Handshake));
                assert!(matches!(e.cause, Cause::Tls(_)), "{e:?}");
            }
            other => panic!("unexpected {other:?}"),
        }
    });
}

#[test]
fn names_are_resolved_and_unknown_names_are_not() {
    on_both(|mut net| {
        net.resolve("localhost", 80, 1);
        net.resolve("name.invalid", 80, 2);
        let mut answers = Vec::new();
        while answers.len() < 2 {
            if let Event::Resolved(key, answer) = next(&mut net) {
                answers.push((key, answer.is_ok()));
            }
        }
        assert_eq!(answers, [(1, true), (2, false)]);
    });
}

#[test]
fn another_thread_can_wake_the_loop() {
    on_both(|mut net| {
        for _ in 0..3 {
            let waker = net.waker();
            let thread = std::thread::spawn(move || waker.wake());
            assert!(matches!(next(&mut net), Event::Woken));
            thread.join().expect("no panic");
        }
    });
}

#[test]
fn waiting_ends_at_its_time_and_not_before() {
    on_both(|mut net| {
        for us in [0, 50, 500, 5_000] {
            let until = clock::now() + us * 1_000;
            while clock::now() < until {
                net.wait(Some(until)).expect("the loop works");
                assert!(net.next_event().is_none());
            }
        }
    });
}

#[test]
fn a_client_can_choose_its_own_address() {
    on_both(|mut net| {
        let (listener, at) = std_listener();
        let conn = net.connect(&at, Some("127.0.0.9".parse().expect("an address")), None);
        assert!(matches!(next(&mut net), Event::Connected(c) if c == conn));
        assert_eq!(listener.accept().expect("a client").1.ip().to_string(), "127.0.0.9");
    });
}
