//! A client and a server in one place, doing at random what they may do: everything arrives once and in order, no rule is
//! broken, nobody waits for ever.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_wire::h2::{
    Cause, Client, Config, ErrorCode, Event, Field, PreparedHead, Release, RequestLine, Server,
};

#[derive(Clone, Debug)]
enum Step {
    /// A request with so much content each way.
    Request {
        up: usize,
        down: usize,
        trailers: bool,
    },
    /// So much of what is on the way arrives, in per mille.
    ToServer(usize),
    ToClient(usize),
    ClientResets(prop::sample::Index),
    ServerResets(prop::sample::Index),
    Pings,
    LimitsStreams(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![Just(0), 1..50usize, 1..3000usize, 1..30_000usize];
    prop_oneof![
        6 => (size(), size(), any::<bool>()).prop_map(|(up, down, trailers)| Step::Request { up, down, trailers }),
        6 => (0..1001usize).prop_map(Step::ToServer),
        6 => (0..1001usize).prop_map(Step::ToClient),
        1 => any::<prop::sample::Index>().prop_map(Step::ClientResets),
        1 => any::<prop::sample::Index>().prop_map(Step::ServerResets),
        1 => Just(Step::Pings),
        1 => (1..20u32).prop_map(Step::LimitsStreams),
    ]
}

fn config(base: Config) -> impl Strategy<Value = Config> {
    let window = || prop_oneof![40..200u32, 1000..70_000u32, Just(1 << 20)];
    (window(), 65_535..200_000u32, any::<bool>(), 0..5000u32, any::<bool>()).prop_map(
        move |(stream_window, connection_window, by_caller, header_table_bytes, lazy_values)| Config {
            stream_window,
            connection_window,
            header_table_bytes,
            lazy_values: lazy_values && base.lazy_values,
            release: if by_caller { Release::ByCaller } else { Release::OnReceipt },
            ..base
        },
    )
}

/// One direction of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    size: usize,
    sent: usize,
    ended: bool,
    /// The window was closed; nothing is tried before `WindowOpened`.
    waiting: bool,
    received: usize,
    complete: bool,
}

#[derive(Clone, Debug, Default)]
struct Exchange {
    up: Flow,
    down: Flow,
    trailers: bool,
    answered: bool,
    /// Either side reset it, or it was refused.
    reset: bool,
}

struct World {
    client: Client,
    server: Server,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    exchanges: BTreeMap<u32, Exchange>,
    post: PreparedHead,
    ok: PreparedHead,
    trailers: PreparedHead,
    pings: usize,
    pongs: usize,
    by_caller: (bool, bool),
}

/// What the byte at a place of a stream's content is.
fn content(stream: u32, from: usize, to: usize) -> Vec<u8> {
    (from..to).map(|at| (at as u32).wrapping_mul(31).wrapping_add(stream) as u8).collect()
}

impl Flow {
    fn receive(&mut self, stream: u32, bytes: &[u8], end: bool) {
        assert!(!self.complete, "content after the end of {stream}");
        assert_eq!(bytes, content(stream, self.received, self.received + bytes.len()), "content of {stream}");
        self.received += bytes.len();
        if end {
            self.complete();
        }
    }

    fn complete(&mut self) {
        assert!(!self.complete && self.received == self.size, "{self:?} ended");
        self.complete = true;
    }
}

impl World {
    fn new(client: Config, server: Config) -> World {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let line = RequestLine { method: b"POST", scheme: b"https", authority: b"example.com", path: b"" };
        World {
            client: Client::new(client, &mut to_server),
            server: Server::new(server, &mut to_client),
            to_server,
            to_client,
            exchanges: BTreeMap::new(),
            post: PreparedHead::request(line, &[Field::new(b"user-agent", b"weir")]).unwrap(),
            ok: PreparedHead::response(200, &[Field::new(b"server", b"weir"), Field::new(b"x-a", b"b c")])
                .unwrap(),
            trailers: PreparedHead::trailers(&[Field::new(b"x-sum", b"1234")]).unwrap(),
            pings: 0,
            pongs: 0,
            by_caller: (client.release == Release::ByCaller, server.release == Release::ByCaller),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Request { up, down, trailers } => self.request(up, down, trailers),
            Step::ToServer(share) => self.deliver_to_server(share),
            Step::ToClient(share) => self.deliver_to_client(share),
            Step::ClientResets(pick) => {
                if let Some(id) = self.pick(pick)
                    && self.client.reset(id, ErrorCode::CANCEL, &mut self.to_server)
                {
                    self.exchanges.get_mut(&id).unwrap().reset = true;
                }
            }
            Step::ServerResets(pick) => {
                if let Some(id) = self.pick(pick)
                    && self.server.reset(id, ErrorCode::INTERNAL_ERROR, &mut self.to_client)
                {
                    self.exchanges.get_mut(&id).unwrap().reset = true;
                }
            }
            Step::Pings => {
                self.pings += 2;
                self.client.ping([1; 8], &mut self.to_server);
                self.server.ping([2; 8], &mut self.to_client);
            }
            Step::LimitsStreams(n) => self.server.set_max_streams(n, &mut self.to_client),
        }
        self.pump();
    }

    fn pick(&self, pick: prop::sample::Index) -> Option<u32> {
        (!self.exchanges.is_empty())
            .then(|| *self.exchanges.keys().nth(pick.index(self.exchanges.len())).unwrap())
    }

    fn request(&mut self, up: usize, down: usize, trailers: bool) {
        let path = format!("/{up}/{down}");
        let end = up == 0 && !trailers;
        let extra: &[(&[u8], &[u8])] =
            &[(b":path", path.as_bytes()), (b"x-trailers", if trailers { b"1" } else { b"0" })];
        let Ok(id) = self.client.request(&self.post, extra, end, 7, &mut self.to_server) else { return };
        let up = Flow { size: up, ended: end, ..Flow::default() };
        let down = Flow { size: down, ..Flow::default() };
        assert!(self.exchanges.insert(id, Exchange { up, down, trailers, ..Exchange::default() }).is_none());
    }

    /// Everybody sends what the windows allow, unless told to wait.
    fn pump(&mut self) {
        for (&id, it) in &mut self.exchanges {
            if !it.reset && !it.up.ended && !it.up.waiting {
                let rest = content(id, it.up.sent, it.up.size);
                let end = !it.trailers;
                let Ok(sent) = self.client.send_data(id, &rest, end, &mut self.to_server) else { continue };
                it.up.sent += sent;
                it.up.waiting = sent < rest.len();
                it.up.ended = !it.up.waiting;
                if it.up.ended && it.trailers {
                    self.client.send_trailers(id, &self.trailers, &mut self.to_server).unwrap();
                }
            }
            if !it.reset && it.answered && !it.down.ended && !it.down.waiting {
                let rest = content(id, it.down.sent, it.down.size);
                let Ok(sent) = self.server.send_data(id, &rest, true, &mut self.to_client) else { continue };
                it.down.sent += sent;
                it.down.waiting = sent < rest.len();
                it.down.ended = !it.down.waiting;
            }
        }
    }

    fn deliver_to_server(&mut self, share: usize) {
        let now = self.to_server.len() * share / 1000;
        let input: Vec<u8> = self.to_server.drain(..now).collect();
        let mut input = &input[..];
        loop {
            let (used, event) = self.server.next(input, &mut self.to_client).expect("no rule is broken");
            input = &input[used..];
            let mut answer = None;
            let mut release = None;
            match event {
                Event::NeedMore => break,
                Event::Head(head) => {
                    let it = self.exchanges.get_mut(&head.stream).unwrap();
                    assert_eq!(head.path, format!("/{}/{}", it.up.size, it.down.size).as_bytes());
                    assert_eq!((head.method, head.authority), (&b"POST"[..], &b"example.com"[..]));
                    assert_eq!(head.header("user-agent"), Some(&b"weir"[..]));
                    answer = Some(head.stream);
                    if head.end {
                        it.up.complete();
                    }
                }
                Event::Data { stream, bytes, end, .. } => {
                    self.exchanges.get_mut(&stream).unwrap().up.receive(stream, bytes, end);
                    release = Some((stream, bytes.len()));
                }
                Event::Trailers { stream, .. } => self.exchanges.get_mut(&stream).unwrap().up.complete(),
                Event::WindowOpened(stream) => self.opened(stream.map(|(id, _)| id), |it| &mut it.down),
                Event::Reset { stream, code, cause, .. } => {
                    assert_eq!((code, cause), (ErrorCode::CANCEL, Cause::Peer));
                    assert!(self.exchanges[&stream].reset);
                }
                Event::Pong(_) => self.pongs += 1,
                Event::Settings(_) => {}
                other => panic!("unexpected {other:?}"),
            }
            if let Some(id) = answer {
                self.exchanges.get_mut(&id).unwrap().answered = true;
                self.server.respond(id, &self.ok, &[], false, &mut self.to_client).unwrap();
            }
            if let (Some((id, bytes)), true) = (release, self.by_caller.1) {
                self.server.release(id, bytes, &mut self.to_client);
            }
        }
    }

    fn deliver_to_client(&mut self, share: usize) {
        let now = self.to_client.len() * share / 1000;
        let input: Vec<u8> = self.to_client.drain(..now).collect();
        let mut input = &input[..];
        loop {
            let (used, event) = self.client.next(input, &mut self.to_server).expect("no rule is broken");
            input = &input[used..];
            let mut release = None;
            match event {
                Event::NeedMore => break,
                Event::Head(head) => {
                    assert_eq!((head.status, head.tag, head.end), (200, 7, false));
                    assert_eq!(head.header("x-a").unwrap().bytes().unwrap(), &b"b c"[..]);
                }
                Event::Data { stream, bytes, end, .. } => {
                    self.exchanges.get_mut(&stream).unwrap().down.receive(stream, bytes, end);
                    release = Some((stream, bytes.len()));
                }
                Event::WindowOpened(stream) => self.opened(stream.map(|(id, _)| id), |it| &mut it.up),
                Event::Reset { stream, code, cause, .. } => {
                    assert!(code == ErrorCode::INTERNAL_ERROR || code == ErrorCode::REFUSED_STREAM, "{code}");
                    assert_eq!(cause, Cause::Peer);
                    let it = self.exchanges.get_mut(&stream).unwrap();
                    assert!(it.reset || code == ErrorCode::REFUSED_STREAM);
                    it.reset = true;
                }
                Event::Pong(_) => self.pongs += 1,
                Event::Settings(_) => {}
                other => panic!("unexpected {other:?}"),
            }
            if let (Some((id, bytes)), true) = (release, self.by_caller.0) {
                self.client.release(id, bytes, &mut self.to_server);
            }
        }
    }

    fn opened(&mut self, stream: Option<u32>, flow: impl Fn(&mut Exchange) -> &mut Flow) {
        match stream {
            Some(id) => flow(self.exchanges.get_mut(&id).unwrap()).waiting = false,
            None => self.exchanges.values_mut().for_each(|it| flow(it).waiting = false),
        }
    }

    fn finish(&mut self) {
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            self.deliver_to_server(1000);
            self.pump();
            self.deliver_to_client(1000);
            self.pump();
        }
        for (id, it) in &self.exchanges {
            assert!(it.reset || (it.up.complete && it.down.complete), "stream {id} is stuck: {it:?}");
        }
        assert_eq!((self.client.active_streams(), self.server.active_streams()), (0, 0));
        assert_eq!(self.pings, self.pongs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn everything_arrives_once(
        client in config(Config::CLIENT),
        server in config(Config::SERVER),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(client, server);
        steps.into_iter().for_each(|step| world.step(step));
        world.finish();
    }
}
