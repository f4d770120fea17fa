//! One thread of the origin: an event loop, its connections, and what happens to each request.
//!
//! ```text
//! Reading -> [Queued at the gate] -> [UnderWay, the latency] -> answer, or a fault -> Sending | Dripping -> Reading
//!                                                                            Silent, Lingering: until the client goes
//! ```
//!
//! Decides when; what is written is in `response.rs`, what is read in `client.rs`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use weir_model::units::Nanos;
use weir_net::tls::ServerTls;
use weir_net::{Conn, Endpoint, Event, Listener, Net, Timers, clock};

use crate::client::{Client, State, Step, Visibility};
use crate::fault::{FaultKind, Faults};
use crate::gate::Ticket;
use crate::latency::Latency;
use crate::origin::Shared;
use crate::response::{Head, Heads, Keepalive, Tail, Then, response, spoil};
use crate::route::{Answer, Content};
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

/// A place to listen at, and the listener while it is open.
pub(crate) struct Port {
    pub endpoint: Endpoint,
    pub tls: Option<Arc<ServerTls>>,
    pub listener: Option<Listener>,
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

const SECOND: Nanos = Nanos::from_secs(1);

/// Between attempts to open a port again that somebody else has taken.
const PORT_RETRY: Nanos = Nanos::from_millis(20);

const NOT_HTTP: &[u8] = b"SSH-2.0-weir\x00\xff\r\n\r\n";
const EXTRA: &[u8] = b"bytes that belong to no response\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(crate) struct Worker {
    net: Net,
    script: Arc<Script>,
    shared: Arc<Shared>,
    thread: u32,
    ports: Vec<Port>,
    /// By the slot of their connection.
    clients: Vec<Option<Client>>,
    next_id: u32,
    timers: Timers<Wake>,
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
        let usual = crate::client::Request { answer: script.usual, ..Default::default() };
        let (usual, _) = response(&usual, 1, &script.keepalive);
        Worker {
            net,
            thread,
            ports,
            clients: Vec::new(),
            next_id: 0,
            timers: Timers::default(),
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
        self.schedule_ports();
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
            self.set_timer(self.now_ns + delay.0, Due::Resume, slot);
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
        self.set_timer(self.now_ns + LINGER.0, Due::Linger, slot);
    }

    fn start_idling(&mut self, slot: usize) {
        let Some(timeout) = self.script.keepalive_timeout else { return };
        let deadline_ns = self.now_ns + timeout.0;
        let client = self.client(slot);
        client.idle_deadline_ns = deadline_ns;
        // One timer a connection, set again when it comes too early: cheaper than one a request.
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

    // Requests.

    fn received(&mut self, slot: usize) {
        let mut at = 0;
        loop {
            let Some(client) = &mut self.clients[slot] else { return };
            let bytes = &self.net.data()[at..];
            match client.state {
                State::Reading => {}
                State::Silent | State::Lingering => return,
                _ => {
                    if client.hold_back(bytes) && !client.paused {
                        client.paused = true;
                        self.net.pause(client.conn);
                    }
                    return;
                }
            }
            let (taken, step) = client.read(bytes, self.script.usual);
            let is_all = taken == bytes.len();
            at += taken;
            if !self.take_step(slot, step, is_all) {
                return;
            }
        }
    }

    /// Reads what was held back, now that its turn may have come.
    fn catch_up(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else { return };
        let backlog = std::mem::take(&mut client.backlog);
        let mut at = 0;
        while !backlog.is_empty() {
            let Some(client) = &mut self.clients[slot] else { return };
            if !matches!(client.state, State::Reading) {
                break;
            }
            let (taken, step) = client.read(&backlog[at..], self.script.usual);
            at += taken;
            if !self.take_step(slot, step, at == backlog.len()) {
                break;
            }
        }
        let Some(client) = &mut self.clients[slot] else { return };
        match client.state {
            State::Silent | State::Lingering => {}
            State::Reading if client.eof => self.end(slot, End::Fin),
            State::Reading => {
                if std::mem::take(&mut client.paused) {
                    self.net.resume(client.conn);
                }
            }
            _ => client.backlog = backlog[at..].to_vec(),
        }
    }

    /// True if there may be more to read, be it in the decoder. `is_all`: no byte is left.
    fn take_step(&mut self, slot: usize, step: Step, is_all: bool) -> bool {
        match step {
            Step::NeedMore => false,
            Step::More => true,
            Step::Expects => {
                let conn = self.client(slot).conn;
                self.net.send(conn, CONTINUE);
                true
            }
            Step::Complete => {
                self.complete(slot);
                !is_all
            }
            Step::Refused(status) => {
                self.client(slot).request.refuse(status);
                self.refuse(slot);
                false
            }
        }
    }

    fn complete(&mut self, slot: usize) {
        let now_ns = self.now_ns;
        let client = self.client(slot);
        client.ready_ns = now_ns;
        if client.request.answer.control {
            return self.answer_control(slot);
        }
        client.requests += 1;
        if client.visibility == Visibility::Hidden {
            client.visibility = Visibility::Shown;
            let resumed = client.resumed;
            self.recorder.unhide(resumed);
        }
        self.recorder.request(slot);
        if self.enter(slot) {
            self.begin(slot);
        }
    }

    /// The request's turn has come: its latency runs from now.
    fn begin(&mut self, slot: usize) {
        let delay = self.client(slot).request.answer.delay;
        let delay = delay.unwrap_or_else(|| self.script.latency.sample(&mut self.rng));
        if delay == Nanos::ZERO {
            return self.answer(slot);
        }
        self.client(slot).state = State::UnderWay;
        self.set_timer(self.now_ns.saturating_add(delay.0), Due::Answer, slot);
    }

    // The gate.

    /// True if the request may go on; otherwise it is called in its turn.
    fn enter(&mut self, slot: usize) -> bool {
        let Some(gate) = &self.shared.gate else { return true };
        let client = self.clients[slot].as_mut().expect("it has just sent a request");
        let ticket = Ticket { thread: self.thread, slot: slot as u32, id: client.id };
        client.entered = lock(gate).enter(ticket);
        if !client.entered {
            client.state = State::Queued;
        }
        client.entered
    }

    /// A place is free, and the next one in the queue gets it, on whichever thread it is.
    fn leave(&mut self) {
        let Some(gate) = &self.shared.gate else { return };
        let Some(next) = lock(gate).leave() else { return };
        if next.thread == self.thread {
            self.granted.push_back(next);
        } else {
            self.shared.grant(next);
        }
    }

    fn serve_granted(&mut self) {
        while let Some(Ticket { slot, id, .. }) = self.granted.pop_front() {
            let slot = slot as usize;
            self.now_ns = clock::now();
            match &mut self.clients[slot] {
                Some(client) if client.id == id => {
                    client.entered = true;
                    self.begin(slot);
                    self.catch_up(slot);
                }
                // It has gone away while it waited.
                _ => self.leave(),
            }
        }
    }

    // Answers.

    fn answer(&mut self, slot: usize) {
        let reused = self.client(slot).requests > 1;
        let fault = self.script.faults.draw(reused, &mut self.rng);
        match fault {
            None => self.respond(slot),
            Some(kind) => {
                self.recorder.fault(kind);
                self.play(slot, kind);
            }
        }
    }

    fn respond(&mut self, slot: usize) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let (head, tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.recorder.response(head.status);
        self.start_response(slot, &head, tail);
    }

    fn play(&mut self, slot: usize, kind: FaultKind) {
        let conn = self.client(slot).conn;
        match kind {
            FaultKind::Reset => self.end_answered(slot, End::Rst),
            FaultKind::Close | FaultKind::CloseOnReuse => self.end_answered(slot, End::Fin),
            FaultKind::Hang => self.client(slot).state = State::Silent,
            FaultKind::HalfClose => {
                self.client(slot).state = State::Silent;
                self.net.shutdown(conn);
            }
            FaultKind::Malformed => {
                self.net.send(conn, NOT_HTTP);
                self.end_answered(slot, End::Fin);
            }
            _ => self.respond_badly(slot, kind),
        }
    }

    fn respond_badly(&mut self, slot: usize, kind: FaultKind) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let (mut head, mut tail) = response(&client.request, client.requests, &self.script.keepalive);
        spoil(kind, client.request.head_only, &mut head, &mut tail);
        self.recorder.response(head.status);
        if kind == FaultKind::Drip {
            self.start_drip(slot, &head, tail);
        } else {
            self.start_response(slot, &head, tail);
        }
    }

    /// Ends a connection whose request is no longer under way.
    fn end_answered(&mut self, slot: usize, how: End) {
        self.client(slot).state = State::Silent;
        self.end(slot, how);
    }

    fn start_response(&mut self, slot: usize, head: &Head, mut tail: Tail) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let heads = &self.heads;
        self.net.send_with(client.conn, |out| {
            let took_ns = clock::now().saturating_sub(client.ready_ns);
            if tail.filler_lines > 0 {
                return heads.write_open(out, head, took_ns);
            }
            heads.write(out, head, took_ns);
            tail.write(out, &client.request.held, u64::MAX);
        });
        self.go_on(slot, tail);
    }

    /// After a piece has been queued. A RST must wait until the kernel has it.
    fn go_on(&mut self, slot: usize, tail: Tail) {
        if tail.is_done() && tail.then != Then::Reset {
            self.finish(slot, tail.then);
        } else {
            self.client(slot).state = State::Sending(tail);
        }
    }

    /// The kernel has taken all there was; the next piece, if a response is on its way.
    fn sent(&mut self, conn: Conn) {
        let slot = conn.index();
        let Some(client) = &mut self.clients[slot] else { return };
        let State::Sending(mut tail) = client.state else { return };
        if self.net.unsent(conn) > 0 {
            return;
        }
        if tail.is_done() {
            self.finish(slot, tail.then);
        } else {
            self.net.send_with(conn, |out| tail.write(out, &client.request.held, u64::MAX));
            self.go_on(slot, tail);
        }
        self.catch_up_if_reading(slot);
    }

    fn catch_up_if_reading(&mut self, slot: usize) {
        if self.clients[slot].as_ref().is_some_and(|client| matches!(client.state, State::Reading)) {
            self.catch_up(slot);
        }
    }

    fn start_drip(&mut self, slot: usize, head: &Head, tail: Tail) {
        let client = self.clients[slot].as_mut().expect("it waits for this");
        let took_ns = clock::now().saturating_sub(client.ready_ns);
        self.net.send_with(client.conn, |out| self.heads.write(out, head, took_ns));
        client.state = State::Dripping(tail);
        self.set_timer(self.now_ns + self.script.drip_interval.0, Due::Drip, slot);
    }

    fn drip(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else { return };
        let State::Dripping(mut tail) = client.state else { return };
        self.net.send_with(client.conn, |out| tail.write(out, &client.request.held, 1));
        if tail.is_done() {
            self.finish(slot, tail.then);
            return self.catch_up(slot);
        }
        client.state = State::Dripping(tail);
        self.set_timer(self.now_ns + self.script.drip_interval.0, Due::Drip, slot);
    }

    /// The response is out.
    fn finish(&mut self, slot: usize, then: Then) {
        let client = self.clients[slot].as_mut().expect("it has just been answered");
        // Silence keeps its place at the gate, as a thread that hangs would.
        if then != Then::Silence && std::mem::take(&mut client.entered) {
            self.leave();
        }
        let client = self.client(slot);
        client.request.held = Vec::new();
        client.state = State::Reading;
        let (conn, has_backlog) = (client.conn, !client.backlog.is_empty());
        match then {
            Then::Next => self.start_idling(slot),
            Then::Extra => {
                self.net.send(conn, EXTRA);
                self.start_idling(slot);
            }
            Then::Close if has_backlog => self.linger(slot),
            Then::Close => self.end(slot, End::Fin),
            Then::Reset => self.end(slot, End::Rst),
            Then::Silence => self.client(slot).state = State::Silent,
        }
    }

    /// An answer to bytes that are no request; whatever follows them is not read.
    fn refuse(&mut self, slot: usize) {
        self.client(slot).ready_ns = self.now_ns;
        let client = self.clients[slot].as_ref().expect("it has just sent something");
        let (head, mut tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.recorder.response(head.status);
        let took_ns = clock::now().saturating_sub(client.ready_ns);
        self.net.send_with(client.conn, |out| {
            self.heads.write(out, &head, took_ns);
            tail.write(out, &[], u64::MAX);
        });
        self.linger(slot);
    }

    fn answer_control(&mut self, slot: usize) {
        let client = self.clients[slot].as_mut().expect("it has just sent a request");
        if client.requests == 0 && client.visibility == Visibility::Shown {
            client.visibility = Visibility::Hidden;
            self.recorder.hide(client.resumed);
        }
        if client.request.answer.content == Content::Reset {
            self.shared.reset();
        }
        if matches!(client.request.answer.content, Content::Stats | Content::Reset) {
            client.request.held = serde_json::to_vec_pretty(&self.shared.stats()).expect("numbers and names");
            client.request.held.push(b'\n');
        }
        let (head, tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.start_response(slot, &head, tail);
    }

    // The ports.

    /// `refuse`: closed from the top of each second on, for its share of it.
    fn schedule_ports(&mut self) {
        let share = self.script.faults.refuse;
        if share >= 1.0 {
            self.close_ports();
        } else if share > 0.0 {
            let wake = Wake { what: Due::Ports, slot: 0, id: 0 };
            self.timers.at(self.shared.started_ns + SECOND.0, wake);
        }
    }

    fn turn_ports(&mut self) {
        let into_second_ns = (self.now_ns - self.shared.started_ns) % SECOND.0;
        let closed_ns = (self.script.faults.refuse * SECOND.0 as f64) as u64;
        let next_ns = if into_second_ns < closed_ns {
            self.close_ports();
            closed_ns
        } else if self.open_ports() {
            SECOND.0
        } else {
            into_second_ns + PORT_RETRY.0
        };
        let wake = Wake { what: Due::Ports, slot: 0, id: 0 };
        self.timers.at(self.now_ns - into_second_ns + next_ns, wake);
    }

    fn close_ports(&mut self) {
        let mut closed = false;
        for port in &mut self.ports {
            if let Some(listener) = port.listener.take() {
                self.net.unlisten(listener);
                closed = true;
            }
        }
        if closed && self.thread == 0 {
            self.recorder.fault(FaultKind::Refuse);
        }
    }

    /// False if one of them is taken.
    fn open_ports(&mut self) -> bool {
        let hold = self.script.accept_delay.is_some();
        let mut all = true;
        for port in self.ports.iter_mut().filter(|port| port.listener.is_none()) {
            port.listener = self.net.listen(&port.endpoint, port.tls.clone(), hold).ok();
            all &= port.listener.is_some();
        }
        all
    }
}
