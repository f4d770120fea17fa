//! One thread of the origin: an event loop, its connections, and what happens to each request.
//!
//! ```text
//! Reading -> [Queued at the gate] -> [UnderWay, the latency] -> answer, or a fault -> Sending | Dripping -> Reading
//!                                                                            Silent, Lingering: until the client goes
//! ```
//!
//! Decides when; what is written is in `response.rs`, what is read in `client.rs`.

mod answering;
mod ports;
mod reading;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use weir_model::units::Nanos;
use weir_net::{Conn, Event, Net, Timers, clock};

pub(crate) use ports::Port;
use ports::Ports;

use crate::client::{Client, Request, State, Visibility};
use crate::fault::{FaultKind, Faults};
use crate::gate::Ticket;
use crate::latency::Latency;
use crate::origin::Shared;
use crate::response::{Heads, Keepalive, response};
use crate::route::Answer;
use crate::stats::{Recorder, lock};

/// What every thread does alike.
pub(crate) struct Script {
    pub usual: Answer,
    pub latency: Latency,
    pub keepalive: Keepalive,
    pub keepalive_timeout: Option<Nanos>,
    pub accept_delay: Option<Nanos>,
    pub faults: Faults,
    pub drip_interval: Nanos,
    pub server_timing: bool,
    pub seed: u64,
}

/// A deadline of a connection, or of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wake {
    what: Due,
    slot: u32,
    id: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The latency is over.
    Answer,
    /// The next byte of a drip.
    Drip,
    /// The connection may have been idle for too long.
    Idle,
    /// An accepted connection may be read.
    Resume,
    /// The client had its time to read the last response.
    Linger,
    /// `refuse`: the ports close, or open again.
    Ports,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fin,
    Rst,
    /// The other side has seen to it.
    Gone,
}

/// Events that are handled before the timers are looked at again.
const EVENTS_PER_LOOK: u32 = 64;

/// How long a client may go on sending after its last response.
const LINGER: Nanos = Nanos::from_secs(2);

pub(crate) struct Worker {
    net: Net,
    script: Arc<Script>,
    shared: Arc<Shared>,
    thread: u32,
    ports: Ports,
    /// By the slot of their connection.
    clients: Vec<Option<Client>>,
    next_id: u32,
    timers: Timers<Wake>,
    /// Connections whose next piece of a response is due.
    streams: Vec<Conn>,
    /// Requests whose turn has come, here or on the way from other threads.
    granted: VecDeque<Ticket>,
    rng: Xoshiro256PlusPlus,
    heads: Heads,
    recorder: Recorder,
    now_ns: u64,
}

impl Worker {
    /// `ports` are open.
    pub fn new(net: Net, thread: u32, ports: Vec<Port>, script: Arc<Script>, shared: Arc<Shared>) -> Worker {
        let ports = Ports {
            all: ports,
            hold: script.accept_delay.is_some(),
            refuse: script.faults.refuse,
            started_ns: shared.started_ns,
        };
        let usual = Request { answer: script.usual, ..Default::default() };
        let (usual, _) = response(&usual, 1, &script.keepalive);
        Worker {
            net,
            thread,
            ports,
            clients: Vec::new(),
            next_id: 0,
            timers: Timers::default(),
            streams: Vec::new(),
            granted: VecDeque::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(script.seed.wrapping_add(u64::from(thread))),
            heads: Heads::new(usual, script.server_timing),
            recorder: Recorder::new(Arc::clone(&shared.threads[thread as usize].counters)),
            now_ns: clock::now(),
            script,
            shared,
        }
    }

    /// Serves until the origin is stopped; calls `ready` once it does. An error is one of the event loop itself.
    pub fn run(mut self, ready: impl FnOnce()) -> io::Result<()> {
        self.turn_ports();
        // What was asked of the loop so far happens in `wait`.
        self.net.wait(Some(0))?;
        self.handle_batch();
        ready();
        while !self.shared.is_stopping() {
            self.net.wait(self.timers.next_at())?;
            self.handle_batch();
            self.handle_timers();
        }
        Ok(())
    }

    fn handle_batch(&mut self) {
        self.now_ns = self.net.batch_time();
        if self.heads.is_stale(self.now_ns) {
            self.heads.renew(self.now_ns, SystemTime::now());
        }
        let mut handled = 0;
        while let Some(event) = self.net.next_event() {
            self.handle(event);
            handled += 1;
            // A long batch must not make latencies longer.
            if handled % EVENTS_PER_LOOK == 0 {
                self.handle_timers();
                self.now_ns = self.net.batch_time();
            }
        }
        self.send_pieces();
        self.serve_granted();
    }

    fn handle_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        self.now_ns = clock::now();
        while let Some(wake) = self.timers.pop(self.now_ns) {
            self.wake(wake);
            self.serve_granted();
            self.now_ns = clock::now();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Received(conn) => self.received(conn.index()),
            Event::Sent(conn) => self.sent(conn),
            Event::Accepted(_, conn) => self.accepted(conn),
            Event::Secured(conn, secured) => self.secured(conn.index(), secured.resumed),
            Event::Eof(conn) => self.ended(conn.index()),
            Event::Failed(conn, _) => self.end(conn.index(), End::Gone),
            Event::Woken => {
                self.granted.extend(lock(&self.shared.threads[self.thread as usize].granted).drain(..))
            }
            Event::Connected(_) | Event::Resolved(..) => {}
        }
    }

    fn wake(&mut self, wake: Wake) {
        if wake.what == Due::Ports {
            return self.turn_ports();
        }
        let slot = wake.slot as usize;
        let is_there = self.clients[slot].as_ref().is_some_and(|client| client.id == wake.id);
        match wake.what {
            Due::Answer if is_there => {
                self.answer(slot);
                self.catch_up(slot);
            }
            // The client has gone away, but its request was worked on until now.
            Due::Answer => self.leave(),
            _ if !is_there => {}
            Due::Drip => self.drip(slot),
            Due::Idle => self.check_idle(slot),
            Due::Resume => {
                let conn = self.client(slot).conn;
                self.net.resume(conn);
            }
            Due::Linger => self.end(slot, End::Fin),
            Due::Ports => {}
        }
    }

    fn client(&mut self, slot: usize) -> &mut Client {
        self.clients[slot].as_mut().expect("a connection that is not closed has its client")
    }

    /// So long from now; a span that is longer than the clock lasts never ends.
    fn after(&self, span: Nanos) -> u64 {
        self.now_ns.saturating_add(span.0)
    }

    fn set_timer(&mut self, at_ns: u64, what: Due, slot: usize) {
        let id = self.client(slot).id;
        self.timers.at(at_ns, Wake { what, slot: slot as u32, id });
    }

    // Connections.

    fn accepted(&mut self, conn: Conn) {
        let slot = conn.index();
        if slot >= self.clients.len() {
            self.clients.resize_with(slot + 1, || None);
        }
        self.next_id = self.next_id.wrapping_add(1);
        self.clients[slot] = Some(Client::new(conn, self.next_id));
        self.recorder.accepted(slot);
        if let Some(delay) = self.script.accept_delay {
            self.set_timer(self.after(delay), Due::Resume, slot);
        }
        self.start_idling(slot);
    }

    fn secured(&mut self, slot: usize, resumed: bool) {
        self.client(slot).resumed = Some(resumed);
        self.recorder.handshake(resumed);
    }

    /// The client will send no more. What it has sent is still answered.
    fn ended(&mut self, slot: usize) {
        let client = self.client(slot);
        client.eof = true;
        if matches!(client.state, State::Reading | State::Silent | State::Lingering) {
            self.end(slot, End::Fin);
        }
    }

    fn end(&mut self, slot: usize, how: End) {
        let Some(client) = self.clients[slot].take() else { return };
        let shown = client.visibility == Visibility::Shown;
        self.recorder.closed(slot, shown.then_some(client.requests));
        match how {
            End::Fin => self.net.close(client.conn),
            End::Rst => self.net.reset(client.conn),
            End::Gone => {}
        }
        // A request that is under way stays there: its timer leaves.
        if client.entered && !matches!(client.state, State::UnderWay) {
            self.leave();
        }
    }

    /// Says goodbye: our side closes, and what the client still sends is thrown away, because a close with bytes
    /// unread is a RST that may overtake the response.
    fn linger(&mut self, slot: usize) {
        let client = self.client(slot);
        if client.eof {
            return self.end(slot, End::Fin);
        }
        client.state = State::Lingering;
        client.backlog = Vec::new();
        let (conn, paused) = (client.conn, std::mem::take(&mut client.paused));
        self.net.shutdown(conn);
        if paused {
            self.net.resume(conn);
        }
        self.set_timer(self.after(LINGER), Due::Linger, slot);
    }

    fn start_idling(&mut self, slot: usize) {
        let Some(timeout) = self.script.keepalive_timeout else { return };
        let deadline_ns = self.after(timeout);
        let client = self.client(slot);
        client.idle_deadline_ns = deadline_ns;
        // One timer a connection, set again when it comes too early: cheaper than one a request. It outlives its
        // connection, at 40 bytes each until it is due.
        if !std::mem::replace(&mut client.idle_armed, true) {
            self.set_timer(deadline_ns, Due::Idle, slot);
        }
    }

    fn check_idle(&mut self, slot: usize) {
        let now_ns = self.now_ns;
        let client = self.client(slot);
        client.idle_armed = false;
        if !client.is_idle() {
            return;
        }
        let deadline_ns = client.idle_deadline_ns;
        if now_ns >= deadline_ns {
            return self.end(slot, End::Fin);
        }
        client.idle_armed = true;
        self.set_timer(deadline_ns, Due::Idle, slot);
    }

    /// `refuse`: closes the ports, or opens them again.
    fn turn_ports(&mut self) {
        let were_open = self.ports.are_open();
        if let Some(next_ns) = self.ports.turn(&mut self.net, self.now_ns) {
            self.timers.at(next_ns, Wake { what: Due::Ports, slot: 0, id: 0 });
        }
        // All threads do this at the same time: the first counts it for all.
        if were_open && !self.ports.are_open() && self.thread == 0 {
            self.recorder.fault(FaultKind::Refuse);
        }
    }
}
