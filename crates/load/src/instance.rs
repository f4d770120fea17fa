//! One client instance: starts requests when their time has come, hands them to the pools, moves their bytes, and
//! turns what became of them into samples. One thread, one event loop, one pool for each origin; shares nothing.
//!
//! ```text
//!   schedule / workers --start--> Pool --Assign--> connection --response--> finish --> Sample --> Fold
//!                                  ^  \--Reject--> finish                     |
//!                                  '------------------ Released ------------- '
//! ```
//!
//! Two orders are chosen on purpose. A worker's next request is handed to the pool right after the release of its last
//! connection, before anything else that came in the same batch is looked at: both bodies of the loop then behave
//! alike, and an idle cap does not bite in a closed loop (see `model::pool`). A worker whose request failed goes on
//! only in the next turn of the loop, so that requests that fail at once cannot starve the sockets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rand::RngExt;
use weir_model::pool::{self, Action, ConnId, Policy, Pool, PoolError, ReqId, Validate};
use weir_model::sample::{Dial, Failure, Kind, Outcome, Phase, Sample};
use weir_model::tick::{Counters, Fold, Gauges, Reading, Tick};
use weir_model::units::Nanos;
use weir_net::{Cause, Conn, Event, Net, Stage, Timers, clock};
use weir_wire::h1;

use crate::failure::{describe, kind_of};
use crate::message::{Filler, Message};
use crate::request::{NOBODY, Request, Requests};
use crate::schedule::Schedule;
use crate::target::{Route, Target};
use crate::wire::{Link, Progress, Wire};

/// A tick is one second.
const TICK: Nanos = Nanos::from_secs(1);
/// Workers of a closed loop begin one after the other: thousands of SYNs at once overflow the listener's backlog,
/// and the retransmissions one second later would be measured as the server's.
const WORKER_STAGGER: Nanos = Nanos::from_micros(50);
/// A sleeping processor takes tens of microseconds to wake, so an open loop wakes this long before a request is due and
/// polls; but for no more than one part in eight of the gap between requests, which bounds what it costs.
const EARLY_MAX: Nanos = Nanos::from_micros(60);
const EARLY_SHARE: u64 = 8;
/// A run whose dials have all failed for so long has nothing to measure.
const GIVE_UP_AFTER: Nanos = Nanos::from_millis(800);
/// Then the sockets are looked at, and whether the run is to stop, however far behind the schedule the loop is.
const STARTS_AT_ONCE: u32 = 1024;
/// What was due before the end and is not started so long after it never is: the verdict says how much is missing.
const LATENESS_MAX: Nanos = Nanos::from_secs(1);
/// Larger requests are handed to the kernel in pieces, so that a connection never holds a copy of the whole.
const PIECE_BYTES: usize = 256 * 1024;

/// What an instance has to do; everything in it is its own share.
pub(crate) struct Job {
    pub messages: Arc<Vec<Message>>,
    pub targets: Vec<Target>,
    pub work: Work,
    /// Measured requests to start.
    pub quota: Option<u64>,
    pub warmup: Nanos,
    /// Of the measured part.
    pub duration: Option<Nanos>,
    pub timeout: Nanos,
    pub policy: Policy,
    pub seed: u64,
    pub filler: Filler,
    pub keep_samples: bool,
}

pub(crate) enum Work {
    Closed { workers: u32 },
    Open(Schedule),
}

/// How far a stop has gone: 0 not at all, 1 nothing new starts, 2 what is in flight is given up.
pub(crate) type StopLevel = Arc<AtomicU8>;

/// What an instance tells while it runs.
pub(crate) enum Report {
    Tick(Box<Tick>, Vec<Sample>),
    Ended { last_index: u64, gave_up: Option<String> },
}

/// Passes a report on; false if nobody listens any more.
pub(crate) type Reporter = Box<dyn Fn(Report) -> bool + Send>;

/// One origin: its pool, its connections, its address.
struct Lane {
    pool: Pool,
    target: Target,
    wires: Vec<Wire>,
    /// Dials that wait for the name's address.
    unresolved: Vec<(u32, u32)>,
}

/// What a pool asked for, with what only the moment of asking knew.
enum Todo {
    Pool(Action),
    Fail(ReqId, Failure),
}

struct DialDeadline {
    at: Nanos,
    lane: u16,
    conn: u32,
    serial: u32,
}

pub(crate) struct Instance {
    net: Net,
    /// The run's zero on the loop's clock.
    zero: u64,
    now: Nanos,
    /// When the events of this batch were there.
    batch: Nanos,

    messages: Arc<Vec<Message>>,
    weights: Weights,
    filler: Filler,
    lanes: Vec<Lane>,
    /// By the loop's connection index: whose it is.
    owners: Vec<(u16, u32)>,
    requests: Requests,
    scratch: Vec<Action>,
    todo: VecDeque<(u16, Todo)>,
    pool_wakes: Timers<u16>,
    dial_deadlines: VecDeque<DialDeadline>,

    work: Work,
    /// Workers of a closed loop that have begun.
    launched: u32,
    /// Moments at which workers became free.
    free_workers: VecDeque<Nanos>,
    /// The same, after a failure: they go on in the next turn.
    failed_workers: Vec<Nanos>,
    next_arrival: Nanos,
    /// How long before an arrival the loop stops sleeping and polls.
    early: Nanos,

    quota: Option<u64>,
    measured_from: Nanos,
    end: Option<Nanos>,
    timeout: Nanos,
    starting: bool,
    draining: bool,
    stop: StopLevel,
    gave_up: Option<String>,
    /// Whose dial it was, and why it failed.
    last_dial_failure: Option<(u16, Failure, String)>,

    fold: Fold,
    tick_end: Nanos,
    tick_index: u64,
    counters: Counters,
    samples: Option<Vec<Sample>>,
    report: Reporter,
}

/// Chooses among the request list.
struct Weights {
    cumulative: Vec<u64>,
}

impl Weights {
    fn new(messages: &[Message]) -> Weights {
        let sums = messages.iter().scan(0, |sum, m| {
            *sum += u64::from(m.weight);
            Some(*sum)
        });
        Weights { cumulative: sums.collect() }
    }

    fn pick(&self, rng: &mut impl rand::Rng) -> u16 {
        if self.cumulative.len() == 1 {
            return 0;
        }
        let total = *self.cumulative.last().expect("a plan has a request");
        let x = rng.random_range(0..total);
        self.cumulative.partition_point(|sum| *sum <= x) as u16
    }
}

impl Instance {
    pub fn new(net: Net, job: Job, stop: StopLevel, report: Reporter) -> Instance {
        let lanes = job.targets.into_iter().enumerate().map(|(i, target)| Lane {
            pool: Pool::new(job.policy.clone(), job.seed.wrapping_add(i as u64)),
            target,
            wires: Vec::new(),
            unresolved: Vec::new(),
        });
        let mut work = job.work;
        let (next_arrival, early) = match &mut work {
            Work::Open(schedule) => {
                (schedule.next_due(), EARLY_MAX.min(Nanos(schedule.gap().0 / EARLY_SHARE)))
            }
            Work::Closed { .. } => (Nanos::MAX, Nanos::ZERO),
        };
        Instance {
            net,
            zero: 0,
            now: Nanos::ZERO,
            batch: Nanos::ZERO,
            weights: Weights::new(&job.messages),
            messages: job.messages,
            filler: job.filler,
            lanes: lanes.collect(),
            owners: Vec::new(),
            requests: Requests::new(),
            scratch: Vec::new(),
            todo: VecDeque::new(),
            pool_wakes: Timers::default(),
            dial_deadlines: VecDeque::new(),
            work,
            launched: 0,
            free_workers: VecDeque::new(),
            failed_workers: Vec::new(),
            next_arrival,
            early,
            quota: job.quota,
            measured_from: job.warmup,
            end: job.duration.map(|d| job.warmup + d),
            timeout: job.timeout,
            starting: true,
            draining: false,
            stop,
            gave_up: None,
            last_dial_failure: None,
            fold: Fold::new(job.warmup),
            tick_end: Nanos::ZERO,
            tick_index: 0,
            counters: Counters::default(),
            samples: job.keep_samples.then(Vec::new),
            report,
        }
    }

    /// `zero` is the run's beginning on the loop's clock, the same for all instances.
    pub fn run(mut self, zero: u64) {
        self.zero = zero;
        self.tick_end = self.tick_end_after(Nanos::ZERO);
        for lane in 0..self.lanes.len() {
            self.tell(lane as u16, pool::Event::Tick);
        }
        loop {
            self.start_what_is_due();
            self.settle();
            if !self.starting && self.requests.live() == 0 {
                break;
            }
            self.sleep();
            while let Some(event) = self.net.next_event() {
                self.handle(event);
                self.settle();
            }
            self.expire();
            self.settle();
            self.end_ticks();
        }
        self.refresh_now();
        // What lies before the end of the warm-up and what after it are different ticks.
        while self.now >= self.tick_end {
            self.roll(self.tick_end);
        }
        self.roll(self.now);
        if let Some(late) = self.fold.stragglers() {
            self.send(late);
        }
        let ended = Report::Ended { last_index: self.tick_index - 1, gave_up: self.gave_up.take() };
        // Nobody listens any more only if the run was dropped.
        (self.report)(ended);
    }

    fn refresh_now(&mut self) {
        self.now = Nanos(clock::now().saturating_sub(self.zero));
    }

    fn sleep(&mut self) {
        let until = self.next_deadline();
        self.net.wait(Some(self.zero.saturating_add(until.0))).expect("the event loop works");
        self.batch = Nanos(self.net.batch_time().saturating_sub(self.zero));
        self.now = self.batch;
    }

    fn next_deadline(&self) -> Nanos {
        if !self.failed_workers.is_empty() {
            return Nanos::ZERO;
        }
        let mut soonest = self.tick_end;
        let mut consider = |at: Option<Nanos>| soonest = soonest.min(at.unwrap_or(Nanos::MAX));
        if self.starting {
            consider(self.end);
            consider(Some(self.next_start().saturating_sub(self.early)));
        }
        consider(self.pool_wakes.next_at().map(Nanos));
        consider(self.dial_deadlines.front().map(|d| d.at));
        consider(self.requests.oldest().map(|id| self.requests[id].intended + self.timeout));
        soonest
    }

    // Starting.

    fn next_start(&self) -> Nanos {
        match self.work {
            Work::Open(_) => self.next_arrival,
            Work::Closed { workers } if self.launched < workers => {
                Nanos(WORKER_STAGGER.0 * u64::from(self.launched))
            }
            Work::Closed { .. } => Nanos::MAX,
        }
    }

    fn start_what_is_due(&mut self) {
        self.refresh_now();
        self.free_workers.extend(self.failed_workers.drain(..));
        self.check_stop();
        let end = self.end.unwrap_or(Nanos::MAX);
        for _ in 0..STARTS_AT_ONCE {
            if !self.starting || self.next_start() > self.now || self.next_start() >= end {
                break;
            }
            let intended = self.next_start();
            match &mut self.work {
                Work::Open(schedule) => {
                    self.next_arrival = schedule.next_due();
                    self.start(intended);
                }
                Work::Closed { .. } => {
                    self.launched += 1;
                    self.free_workers.push_back(intended);
                }
            }
            self.settle();
        }
        // After what was due before the end, however late the loop woke, unless it is too slow for the schedule.
        let all_started = self.next_start() >= end || self.now.saturating_sub(end) >= LATENESS_MAX;
        if self.starting && self.now >= end && all_started {
            self.stop_starting(end);
        }
    }

    fn check_stop(&mut self) {
        let level = self.stop.load(Ordering::Relaxed);
        if self.starting && level > 0 {
            self.stop_starting(self.now);
        }
        if level > 1 {
            while let Some(id) = self.requests.oldest() {
                self.abandon(id, Kind::Interrupted);
                self.settle();
            }
        }
    }

    /// The measured part is over at `at`; what is in flight is waited for.
    fn stop_starting(&mut self, at: Nanos) {
        self.starting = false;
        self.free_workers.clear();
        while self.tick_end < at {
            self.roll(self.tick_end);
        }
        if self.tick_end > at {
            self.roll(at);
            self.tick_end = self.tick_end_after(at);
        } else {
            self.roll(self.tick_end);
        }
        self.draining = true;
    }

    /// Starts a request that was due at `intended`, unless the run is at its end.
    fn start(&mut self, intended: Nanos) {
        if !self.starting || self.end.is_some_and(|end| intended >= end) {
            return;
        }
        if intended >= self.measured_from {
            // However late the loop is, no measured request ends in a tick of the warm-up.
            while self.tick_end <= self.measured_from {
                self.roll(self.tick_end);
            }
            if !self.take_from_quota() {
                return;
            }
        }
        self.refresh_now();
        let message = self.weights.pick(&mut self.filler.rng);
        let lane = self.messages[message as usize].origin as u16;
        let id = self.admit(message, lane, intended);
        self.acquire(id);
        self.observe();
    }

    fn take_from_quota(&mut self) -> bool {
        match &mut self.quota {
            None => true,
            // The share of more instances than there are requests.
            Some(0) => {
                self.starting = false;
                false
            }
            Some(left) => {
                *left -= 1;
                self.starting = *left > 0;
                true
            }
        }
    }

    fn admit(&mut self, message: u16, lane: u16, intended: Nanos) -> u32 {
        let started = self.now.max(intended);
        let id = self.requests.admit(Request::new(message, lane, intended, started));
        self.counters.started += 1;
        id
    }

    fn acquire(&mut self, id: u32) {
        let lane = self.requests[id].lane;
        let asked_before = self.todo.len();
        self.tell(lane, pool::Event::Acquire(ReqId(id)));
        let dial = self.todo.iter().skip(asked_before).find_map(|(_, todo)| match todo {
            Todo::Pool(Action::Dial(conn)) => Some(conn.0),
            _ => None,
        });
        self.requests[id].dial = dial.unwrap_or(NOBODY);
    }

    // The pool.

    fn tell(&mut self, lane: u16, event: pool::Event) {
        self.lanes[lane as usize].pool.on(self.now, event, &mut self.scratch);
        self.todo.extend(self.scratch.drain(..).map(|action| (lane, Todo::Pool(action))));
    }

    fn dial_failed(&mut self, lane: u16, conn: u32, failure: Failure, text: String) {
        self.counters.dials_failed += 1;
        self.last_dial_failure = Some((lane, failure, text));
        self.forget(lane, conn);
        self.lanes[lane as usize].pool.on(self.now, pool::Event::DialFailed(ConnId(conn)), &mut self.scratch);
        self.todo.extend(self.scratch.drain(..).map(|action| match action {
            Action::Reject(id, PoolError::DialFailed(_)) => (lane, Todo::Fail(id, failure)),
            action => (lane, Todo::Pool(action)),
        }));
    }

    /// Does what the pools asked for, and lets workers that became free by it go on.
    fn settle(&mut self) {
        loop {
            while let Some((lane, todo)) = self.todo.pop_front() {
                match todo {
                    Todo::Pool(action) => self.act(lane, action),
                    Todo::Fail(id, failure) => self.finish(id.0, Err(failure), self.now),
                }
            }
            match self.free_workers.pop_front() {
                Some(intended) => self.start(intended),
                None => return,
            }
        }
    }

    fn act(&mut self, lane: u16, action: Action) {
        match action {
            Action::Assign(id, conn) => self.assign(id.0, lane, conn.0),
            Action::Dial(conn) => self.dial(lane, conn.0),
            Action::Close(conn) => self.close(lane, conn.0),
            Action::WakeAt(at) => self.pool_wakes.at(at.0, lane),
            Action::Reject(id, error) => {
                let kind = match error {
                    PoolError::PendingLimit => Kind::PendingLimit,
                    PoolError::AcquireTimeout => Kind::AcquireTimeout,
                    PoolError::DialFailed(_) => unreachable!("translated where the dial failed"),
                };
                self.finish(id.0, Err(Failure::new(Phase::Wait, kind)), self.now);
            }
        }
    }

    fn observe(&mut self) {
        let gauges = self.gauges();
        self.fold.observe(gauges);
    }

    fn gauges(&self) -> Gauges {
        let mut gauges = Gauges { in_flight: self.requests.live(), ..Gauges::default() };
        for lane in &self.lanes {
            let counts = lane.pool.counts();
            gauges.queue += u64::from(counts.pending);
            gauges.open += u64::from(counts.open - counts.dialling);
            gauges.idle += u64::from(counts.idle);
        }
        gauges
    }

    // Dialling and closing.

    fn wire(&mut self, lane: u16, conn: u32) -> &mut Wire {
        &mut self.lanes[lane as usize].wires[conn as usize]
    }

    fn dial(&mut self, lane: u16, conn: u32) {
        let now = self.now;
        let Lane { wires, pool, target, unresolved } = &mut self.lanes[lane as usize];
        while wires.len() <= conn as usize {
            wires.push(Wire::new());
        }
        let wire = &mut wires[conn as usize];
        debug_assert!(wire.link == Link::Gone && wire.request == NOBODY, "the pool reuses only what is gone");
        let serial = wire.serial + 1;
        *wire = Wire { link: Link::Resolving, dial_start: now, resolved: now, serial, ..Wire::new() };
        if let Some(limit) = pool.policy().connect_timeout {
            self.dial_deadlines.push_back(DialDeadline { at: now + limit, lane, conn, serial });
        }
        match target.route(now) {
            Route::Connect(endpoint) => self.connect(lane, conn, &endpoint),
            Route::Wait => unresolved.push((conn, serial)),
            Route::Unknown(why) => {
                self.dial_failed(lane, conn, Failure::new(Phase::Dns, Kind::NotFound), why)
            }
            Route::Resolve(host, port) => {
                unresolved.push((conn, serial));
                self.net.resolve(&host, port, u64::from(lane));
            }
        }
    }

    fn connect(&mut self, lane: u16, conn: u32, endpoint: &weir_net::Endpoint) {
        let Lane { wires, target, .. } = &mut self.lanes[lane as usize];
        let source = target.next_source();
        let tls = target.tls.as_ref().map(|tls| (tls, target.server_name.as_str()));
        let net = self.net.connect(endpoint, source, tls);
        let wire = &mut wires[conn as usize];
        wire.link = Link::Connecting;
        wire.net = Some(net);
        wire.addresses_tried += 1;
        if self.owners.len() <= net.index() {
            self.owners.resize(net.index() + 1, (0, NOBODY));
        }
        self.owners[net.index()] = (lane, conn);
    }

    fn resolved(&mut self, lane: u16, answer: Result<Vec<std::net::SocketAddr>, weir_net::ResolveError>) {
        let text = answer.as_ref().err().map(|e| e.0.clone()).unwrap_or_default();
        let Lane { target, unresolved, .. } = &mut self.lanes[lane as usize];
        target.resolved(answer.map_err(|e| e.0), self.now);
        let waiting = std::mem::take(unresolved);
        for (conn, serial) in waiting {
            let now = self.now;
            let wire = self.wire(lane, conn);
            if wire.serial != serial || wire.link != Link::Resolving {
                continue;
            }
            wire.resolved = now;
            match self.lanes[lane as usize].target.address() {
                Some(endpoint) => self.connect(lane, conn, &endpoint),
                None => self.dial_failed(lane, conn, Failure::new(Phase::Dns, Kind::NotFound), text.clone()),
            }
        }
    }

    fn opened(&mut self, lane: u16, conn: u32) {
        let batch = self.batch;
        let wire = self.wire(lane, conn);
        wire.link = Link::Open;
        wire.secured = batch;
        self.counters.opened += 1;
        self.tell(lane, pool::Event::Dialled(ConnId(conn), 1));
        self.observe();
    }

    /// The socket is gone or unwanted; the pool knows.
    fn close(&mut self, lane: u16, conn: u32) {
        if let Some(net) = self.wire(lane, conn).net.take() {
            // A peer that does not read would keep a graceful close waiting.
            if self.net.unsent(net) > 0 { self.net.reset(net) } else { self.net.close(net) }
        }
        self.forget(lane, conn);
    }

    fn forget(&mut self, lane: u16, conn: u32) {
        let wire = self.wire(lane, conn);
        let was_open = wire.link == Link::Open;
        wire.link = Link::Gone;
        wire.net = None;
        self.counters.closed += u64::from(was_open);
    }

    // Requests on connections.

    fn assign(&mut self, id: u32, lane: u16, conn: u32) {
        let request = &mut self.requests[id];
        let wire = &mut self.lanes[lane as usize].wires[conn as usize];
        request.acquired = self.now.max(request.started);
        request.dial_spans = if wire.dial_start >= request.started { wire.spans() } else { Dial::default() };
        request.conn = conn;
        request.reused = std::mem::replace(&mut wire.used, true);
        request.sent = None;
        request.first_byte = None;
        wire.request = id;
        let Some(net) = wire.net else {
            // Its close was not noticed while it was idle; the kernel would refuse the write.
            self.attempt_failed(lane, conn, Kind::Reset);
            return;
        };
        if wire.half_closed {
            // The kernel would take the bytes, and the read behind them finds the end at once.
            request.sent = Some(request.acquired);
            self.attempt_failed(lane, conn, Kind::Closed);
            return;
        }
        let message = &self.messages[request.message as usize];
        wire.decoder.expect(message.kind);
        wire.handed_bytes = 0;
        match message.fixed() {
            Some(bytes) => {
                let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
                wire.handed_bytes = piece.len();
                request.bytes_out += piece.len() as u64;
                self.net.send(net, piece);
            }
            None => self.net.send_with(net, |out| {
                let before = out.len();
                message.write(&mut self.filler, out);
                request.bytes_out += (out.len() - before) as u64;
            }),
        }
    }

    fn sent(&mut self, lane: u16, conn: u32) {
        let at = Nanos(self.net.sent_at().saturating_sub(self.zero));
        let wire = &mut self.lanes[lane as usize].wires[conn as usize];
        let (Some(net), false) = (wire.net, wire.request == NOBODY) else { return };
        let request = &mut self.requests[wire.request];
        if self.net.unsent(net) > 0 {
            return;
        }
        match self.messages[request.message as usize].fixed() {
            Some(bytes) if wire.handed_bytes < bytes.len() => {
                let rest = &bytes[wire.handed_bytes..];
                let piece = &rest[..rest.len().min(PIECE_BYTES)];
                wire.handed_bytes += piece.len();
                request.bytes_out += piece.len() as u64;
                self.net.send(net, piece);
            }
            // A server may speak before it has read everything: that has ended the sending in the sample.
            _ => {
                request.sent.get_or_insert(at.max(request.acquired));
            }
        }
    }

    fn received(&mut self, lane: u16, conn: u32) {
        let batch = self.batch;
        let wire = &mut self.lanes[lane as usize].wires[conn as usize];
        if wire.request == NOBODY {
            // Bytes that nobody asked for: the connection cannot be trusted any more.
            self.tell(lane, pool::Event::Draining(ConnId(conn)));
            return;
        }
        let request = &mut self.requests[wire.request];
        let data = self.net.data();
        request.bytes_in += data.len() as u64;
        if request.first_byte.is_none() {
            let sent = match request.sent {
                // Both were told in one batch, which on a busy processor ended long after the sending did: it counts
                // from the call that handed the bytes over.
                Some(sent) if sent == batch => {
                    let handed_over = Nanos(self.net.handed_over_at().saturating_sub(self.zero));
                    handed_over.max(request.acquired)
                }
                Some(sent) => sent,
                // The server speaks before it has read everything, which ends the sending.
                None => batch.max(request.acquired),
            };
            request.sent = Some(sent);
            // The answer to what was sent after the batch had begun is stamped with the batch as well.
            request.first_byte = Some(batch.max(sent));
        }
        match wire.read(request, data) {
            Ok(Progress::NeedMore) => {}
            Ok(Progress::Complete { clean }) => self.completed(lane, conn, clean),
            Err(error) => {
                let kind = match error {
                    h1::Error::TooLarge(_) => Kind::TooLarge,
                    _ => Kind::Malformed,
                };
                self.attempt_failed(lane, conn, kind);
            }
        }
    }

    /// The response is complete, and the connection usable if it was a clean end.
    fn completed(&mut self, lane: u16, conn: u32, clean: bool) {
        let wire = &mut self.lanes[lane as usize].wires[conn as usize];
        let id = std::mem::replace(&mut wire.request, NOBODY);
        let whole = wire.net.is_some_and(|net| self.net.unsent(net) == 0)
            && self.messages[self.requests[id].message as usize]
                .fixed()
                .is_none_or(|bytes| wire.handed_bytes == bytes.len());
        let (reusable, hint) = (clean && wire.keep_alive && whole, wire.hint);
        if !reusable {
            self.tell(lane, pool::Event::Draining(ConnId(conn)));
        } else if let Some(hint) = hint {
            self.tell(lane, pool::Event::Hint(ConnId(conn), hint));
        }
        self.tell(lane, pool::Event::Released(ConnId(conn)));
        let status = self.requests[id].status;
        let outcome = match status {
            400..=499 => Err(Failure::new(Phase::Server, Kind::Status4xx)),
            500.. => Err(Failure::new(Phase::Server, Kind::Status5xx)),
            _ => Ok(()),
        };
        self.finish(id, outcome, self.batch);
    }

    /// The connection failed under its request: repeated if the policy allows it, otherwise a failure.
    fn attempt_failed(&mut self, lane: u16, conn: u32, kind: Kind) {
        let id = std::mem::replace(&mut self.wire(lane, conn).request, NOBODY);
        self.close(lane, conn);
        self.tell(lane, pool::Event::Closed(ConnId(conn)));
        let retry = self.lanes[lane as usize].pool.policy().retry;
        let request = &mut self.requests[id];
        let message = &self.messages[request.message as usize];
        let again = request.reused
            && matches!(kind, Kind::Reset | Kind::Closed)
            && retry.allows(
                request.retries,
                &message.method,
                message.has_body,
                request.sent.is_some(),
                request.first_byte.is_some(),
            );
        if again {
            request.retries += 1;
            request.conn = NOBODY;
            self.acquire(id);
        } else {
            let failure = Failure::new(request.phase(), kind);
            self.finish(id, Err(failure), self.now);
        }
    }

    /// Our own end of a request: its timeout, or the end of the run.
    fn abandon(&mut self, id: u32, kind: Kind) {
        let Request { lane, conn, dial, .. } = self.requests[id];
        if conn != NOBODY {
            let failure = Failure::new(self.requests[id].phase(), kind);
            self.wire(lane, conn).request = NOBODY;
            self.close(lane, conn);
            self.tell(lane, pool::Event::Closed(ConnId(conn)));
            self.finish(id, Err(failure), self.now);
            return;
        }
        let phase = match dial {
            NOBODY => Phase::Wait,
            dial => match self.wire(lane, dial).link {
                Link::Resolving => Phase::Dns,
                Link::Connecting => Phase::Connect,
                Link::Securing => Phase::Tls,
                Link::Gone | Link::Open => Phase::Wait,
            },
        };
        self.tell(lane, pool::Event::Cancel(ReqId(id)));
        self.finish(id, Err(Failure::new(phase, kind)), self.now);
    }

    fn finish(&mut self, id: u32, outcome: Outcome, done: Nanos) {
        let request = &self.requests[id];
        let sample = request.sample(outcome, done);
        self.fold.add(&sample);
        if let Some(samples) = &mut self.samples {
            samples.push(sample);
        }
        self.requests.remove(id);
        if matches!(self.work, Work::Closed { .. }) && self.starting {
            match outcome {
                Ok(()) => self.free_workers.push_back(sample.done),
                Err(_) => self.failed_workers.push(sample.done),
            }
        }
    }

    // What happens.

    fn handle(&mut self, event: Event) {
        let owner = |owners: &[(u16, u32)], conn: Conn| owners[conn.index()];
        match event {
            Event::Received(c) => {
                let (lane, conn) = owner(&self.owners, c);
                self.received(lane, conn);
            }
            Event::Sent(c) => {
                let (lane, conn) = owner(&self.owners, c);
                self.sent(lane, conn);
            }
            Event::Connected(c) => {
                let (lane, conn) = owner(&self.owners, c);
                let batch = self.batch;
                let secured = self.lanes[lane as usize].target.tls.is_some();
                let wire = self.wire(lane, conn);
                wire.connected = batch;
                wire.link = Link::Securing;
                if !secured {
                    self.opened(lane, conn);
                }
            }
            Event::Secured(c, how) => {
                let (lane, conn) = owner(&self.owners, c);
                match how.resumed {
                    true => self.counters.tls_resumed += 1,
                    false => self.counters.tls_full += 1,
                }
                self.opened(lane, conn);
            }
            Event::Eof(c) => {
                let (lane, conn) = owner(&self.owners, c);
                self.ended(lane, conn);
            }
            Event::Failed(c, error) => {
                let (lane, conn) = owner(&self.owners, c);
                self.failed(lane, conn, error);
            }
            Event::Resolved(lane, answer) => self.resolved(lane as u16, answer),
            Event::Woken => self.check_stop(),
            Event::Accepted(..) => unreachable!("a client listens nowhere"),
        }
    }

    /// The peer has said all that it will say.
    fn ended(&mut self, lane: u16, conn: u32) {
        let wire = self.wire(lane, conn);
        if wire.request == NOBODY {
            self.idle_closed(lane, conn);
            return;
        }
        let (id, end) = (wire.request, wire.decoder.eof());
        let in_body = self.requests[id].status != 0;
        match end {
            Ok(true) => self.completed(lane, conn, false),
            Err(h1::Error::Truncated) if in_body => self.attempt_failed(lane, conn, Kind::Truncated),
            Ok(false) | Err(_) => self.attempt_failed(lane, conn, Kind::Closed),
        }
    }

    /// Whether an idle pool notices depends on how it validates; if it does not, the socket stays half-closed.
    fn idle_closed(&mut self, lane: u16, conn: u32) {
        if self.lanes[lane as usize].pool.policy().validate == Validate::Event {
            self.close(lane, conn);
        } else {
            self.wire(lane, conn).half_closed = true;
        }
        self.tell(lane, pool::Event::Closed(ConnId(conn)));
    }

    fn failed(&mut self, lane: u16, conn: u32, error: weir_net::Error) {
        let wire = self.wire(lane, conn);
        wire.net = None;
        let (link, idle, tried) = (wire.link, wire.request == NOBODY, wire.addresses_tried);
        match link {
            Link::Connecting => {
                let elsewhere = matches!(error.cause, Cause::Refused | Cause::Unreachable | Cause::TimedOut)
                    .then(|| self.lanes[lane as usize].target.another(tried))
                    .flatten();
                match elsewhere {
                    Some(endpoint) => self.connect(lane, conn, &endpoint),
                    None => self.dial_lost(lane, conn, Phase::Connect, error),
                }
            }
            Link::Securing => self.dial_lost(lane, conn, Phase::Tls, error),
            Link::Open if idle => self.idle_closed(lane, conn),
            Link::Open => self.attempt_failed(lane, conn, kind_of(&error.cause)),
            Link::Gone | Link::Resolving => {}
        }
    }

    fn dial_lost(&mut self, lane: u16, conn: u32, phase: Phase, error: weir_net::Error) {
        debug_assert!(error.stage != Stage::Open);
        let kind = kind_of(&error.cause);
        self.dial_failed(lane, conn, Failure::new(phase, kind), describe(&error.cause));
    }

    // Time.

    fn expire(&mut self) {
        while let Some(lane) = self.pool_wakes.pop(self.now.0) {
            self.tell(lane, pool::Event::Tick);
            self.settle();
        }
        while let Some(DialDeadline { at, lane, conn, serial }) = self.dial_deadlines.front() {
            let (at, lane, conn, serial) = (*at, *lane, *conn, *serial);
            let wire = self.wire(lane, conn);
            let phase = match wire.link {
                _ if wire.serial != serial => None,
                Link::Resolving => Some(Phase::Dns),
                Link::Connecting => Some(Phase::Connect),
                Link::Securing => Some(Phase::Tls),
                Link::Gone | Link::Open => None,
            };
            if phase.is_some() && at > self.now {
                break;
            }
            self.dial_deadlines.pop_front();
            if let Some(phase) = phase {
                self.close(lane, conn);
                let text = "no answer in the time for a dial".to_owned();
                self.dial_failed(lane, conn, Failure::new(phase, Kind::Timeout), text);
                self.settle();
            }
        }
        while let Some(id) = self.requests.oldest()
            && self.requests[id].intended + self.timeout <= self.now
        {
            self.abandon(id, Kind::Timeout);
            self.settle();
        }
        self.consider_giving_up();
    }

    /// Nobody answers the dials, and nobody ever did.
    fn consider_giving_up(&mut self) {
        if self.counters.opened > 0 || self.now < GIVE_UP_AFTER || !self.starting {
            return;
        }
        if let Some((lane, failure, text)) = &self.last_dial_failure {
            let place = self.lanes[*lane as usize].target.describe();
            self.gave_up = Some(format!("{place}: no dial succeeded ({failure}: {text})"));
            self.stop_starting(self.now);
            while let Some(id) = self.requests.oldest() {
                self.abandon(id, Kind::Interrupted);
            }
        }
    }

    fn tick_end_after(&self, start: Nanos) -> Nanos {
        if start < self.measured_from {
            return (start + TICK).min(self.measured_from);
        }
        let next = start + TICK;
        match self.end {
            Some(end) if start < end => next.min(end),
            _ => next,
        }
    }

    fn end_ticks(&mut self) {
        while self.now >= self.tick_end && !(self.starting && self.end == Some(self.tick_end)) {
            self.roll(self.tick_end);
        }
    }

    fn roll(&mut self, end: Nanos) {
        self.counters.cpu = Nanos(clock::thread_cpu());
        let reading =
            Reading { end, draining: self.draining, gauges: self.gauges(), counters: self.counters };
        let tick = self.fold.roll(&reading);
        self.tick_index += 1;
        self.tick_end = self.tick_end_after(end);
        self.send(tick);
    }

    fn send(&mut self, tick: Tick) {
        let samples = self.samples.as_mut().map(std::mem::take).unwrap_or_default();
        // Nobody listens any more only if the run was dropped: then it ends too.
        if !(self.report)(Report::Tick(Box::new(tick), samples)) {
            self.starting = false;
            self.stop.store(2, Ordering::Relaxed);
        }
    }
}
