//! A caller without sockets: plays dials, requests and a server's moods against a pool, and checks every action against
//! its own books. It knows what the pool may do, not how the pool decides.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use weir_model::pool::{
    Action, ConnId, Counts, DialMode, DialRace, Event, HintRule, IdleCapBasis, IdleCheck, KeepAliveHint,
    Policy, Pool, PoolError, ReqId, Validate, WaiterOrder,
};
use weir_model::units::Nanos;

/// One request: how long after the last one it comes, how long it runs, and how long it waits at most.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub gap_us: u64,
    pub work_us: u64,
    pub patience_us: Option<u64>,
}

/// What the server and the network are like, in percent of the occasions.
#[derive(Clone, Copy, Debug)]
pub struct Moods {
    pub dial_fails: u32,
    pub closes: u32,
    pub drains: u32,
    pub hints: u32,
    pub changes_slots: u32,
    pub slots_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    Arrive(u32),
    GiveUp(u32),
    DialEnds(u32, u64),
    WorkEnds(u32, u32, u64),
    ServerCloses(u32, u64),
    ServerDrains(u32, u64),
    SlotsChange(u32, u64, u32),
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Gone,
    Dialling,
    Open,
}

/// The books on one connection. `number` tells apart the connections that had the same id.
#[derive(Clone, Debug)]
struct Conn {
    life: Life,
    number: u64,
    slots: u32,
    running: BTreeSet<u32>,
    served: u64,
    serves_max: u64,
    draining: bool,
    half_closed: bool,
    born: Nanos,
    idle_since: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    NotYet,
    Waiting,
    Running,
    Served,
    Lost,
    Rejected,
    Cancelled,
}

pub type Trace = Vec<(Nanos, Event, Vec<Action>)>;

pub struct World {
    pool: Pool,
    policy: Policy,
    moods: Moods,
    arrivals: Vec<Arrival>,
    rng: Xoshiro256PlusPlus,
    now: Nanos,
    jobs: BinaryHeap<Reverse<(Nanos, u64, Job)>>,
    jobs_made: u64,
    conns: Vec<Conn>,
    dials: u64,
    fates: Vec<Fate>,
    since: Vec<Nanos>,
    /// In order of arrival.
    waiting: Vec<u32>,
    /// Who is queued and whose dial is whose; kept only where it can be known from outside.
    line: Option<Line>,
    trace: Trace,
}

/// First come, first served, and no dial that is not some request's.
#[derive(Default)]
struct Line {
    queued: VecDeque<u32>,
    dials: BTreeMap<u32, u32>,
}

/// Plays all arrivals to their end and returns what happened.
pub fn run(policy: &Policy, moods: Moods, arrivals: &[Arrival], seed: u64) -> Trace {
    let mut world = World::new(policy, moods, arrivals, seed);
    let mut at = Nanos::ZERO;
    for (req, arrival) in arrivals.iter().enumerate() {
        at += Nanos::from_micros(arrival.gap_us);
        world.later(at, Job::Arrive(req as u32));
    }
    world.send(Event::Tick);
    let mut steps = 0;
    while !world.everybody_is_done() {
        let Some(Reverse((at, _, job))) = world.jobs.pop() else {
            panic!("stranded: {:?} with {:?}", world.waiting, world.pool.counts());
        };
        steps += 1;
        assert!(steps < 200 * arrivals.len() + 5_000, "it does not settle");
        world.now = at;
        world.play(job);
    }
    world.trace
}

impl World {
    fn new(policy: &Policy, moods: Moods, arrivals: &[Arrival], seed: u64) -> World {
        let knowable = policy.order == WaiterOrder::Fifo && policy.dial == DialMode::Lazy;
        World {
            pool: Pool::new(policy.clone(), seed),
            policy: policy.clone(),
            moods,
            arrivals: arrivals.to_vec(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed),
            now: Nanos::ZERO,
            jobs: BinaryHeap::new(),
            jobs_made: 0,
            conns: Vec::new(),
            dials: 0,
            fates: vec![Fate::NotYet; arrivals.len()],
            since: vec![Nanos::ZERO; arrivals.len()],
            waiting: Vec::new(),
            line: knowable.then(Line::default),
            trace: Vec::new(),
        }
    }

    fn everybody_is_done(&self) -> bool {
        !self.fates.iter().any(|fate| matches!(fate, Fate::NotYet | Fate::Waiting | Fate::Running))
    }

    fn later(&mut self, at: Nanos, job: Job) {
        self.jobs_made += 1;
        self.jobs.push(Reverse((at, self.jobs_made, job)));
    }

    fn in_us(&mut self, range: std::ops::Range<u64>) -> Nanos {
        let us = self.rng.random_range(range);
        self.now + Nanos::from_micros(us)
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn is(&self, conn: u32, number: u64, life: Life) -> bool {
        let conn = &self.conns[conn as usize];
        conn.number == number && conn.life == life
    }

    fn play(&mut self, job: Job) {
        match job {
            Job::Arrive(req) => self.arrive(req),
            Job::GiveUp(req) => self.give_up(req),
            Job::DialEnds(conn, number) => {
                assert!(self.is(conn, number, Life::Dialling), "nothing ends a dial but itself");
                self.dial_ends(conn);
            }
            Job::WorkEnds(req, conn, number) if self.is(conn, number, Life::Open) => {
                self.work_ends(req, conn)
            }
            Job::ServerCloses(conn, number) if self.is(conn, number, Life::Open) => self.server_closes(conn),
            Job::ServerDrains(conn, number) if self.is(conn, number, Life::Open) => self.drain(conn),
            Job::SlotsChange(conn, number, slots) if self.is(conn, number, Life::Open) => {
                self.conns[conn as usize].slots = slots;
                self.send(Event::Slots(ConnId(conn), slots));
            }
            Job::Tick => self.send(Event::Tick),
            // About a connection that is gone.
            Job::WorkEnds(..) | Job::ServerCloses(..) | Job::ServerDrains(..) | Job::SlotsChange(..) => {}
        }
    }

    fn arrive(&mut self, req: u32) {
        self.fates[req as usize] = Fate::Waiting;
        self.since[req as usize] = self.now;
        self.waiting.push(req);
        if let Some(us) = self.arrivals[req as usize].patience_us {
            let at = self.now + Nanos::from_micros(us);
            self.later(at, Job::GiveUp(req));
        }
        self.send(Event::Acquire(ReqId(req)));
    }

    fn give_up(&mut self, req: u32) {
        if self.fates[req as usize] == Fate::Waiting {
            self.leave(req, Fate::Cancelled);
            self.send(Event::Cancel(ReqId(req)));
        }
    }

    fn dial_ends(&mut self, conn: u32) {
        if self.happens(self.moods.dial_fails) {
            self.conns[conn as usize].life = Life::Gone;
            return self.send(Event::DialFailed(ConnId(conn)));
        }
        let slots = self.rng.random_range(1..=self.moods.slots_max);
        let number = self.conns[conn as usize].number;
        let books = &mut self.conns[conn as usize];
        books.life = Life::Open;
        books.slots = slots;
        books.born = self.now;
        books.idle_since = self.now;
        if self.happens(self.moods.closes) {
            let at = self.in_us(1..5_000);
            self.later(at, Job::ServerCloses(conn, number));
        }
        if self.happens(self.moods.drains) {
            let at = self.in_us(1..5_000);
            self.later(at, Job::ServerDrains(conn, number));
        }
        if self.happens(self.moods.changes_slots) {
            let (at, then) = (self.in_us(1..3_000), self.in_us(3_000..5_000));
            let fewer = self.rng.random_range(0..=slots);
            self.later(at, Job::SlotsChange(conn, number, fewer));
            self.later(then, Job::SlotsChange(conn, number, slots));
        }
        self.send(Event::Dialled(ConnId(conn), slots));
    }

    fn work_ends(&mut self, req: u32, conn: u32) {
        if self.conns[conn as usize].half_closed {
            return self.server_closes(conn);
        }
        if self.happens(self.moods.hints) {
            self.give_a_hint(conn);
        }
        if self.happens(self.moods.drains) {
            self.drain(conn);
        }
        let books = &mut self.conns[conn as usize];
        assert!(books.running.remove(&req), "request {req} runs on connection {conn}");
        if books.running.is_empty() {
            books.idle_since = self.now;
        }
        self.fates[req as usize] = Fate::Served;
        self.send(Event::Released(ConnId(conn)));
    }

    fn give_a_hint(&mut self, conn: u32) {
        let timeout =
            [None, Some(Nanos::ZERO), Some(Nanos::from_micros(700)), Some(Nanos::from_micros(9_000))]
                [self.rng.random_range(0..4)];
        let max = [None, Some(0), Some(1), Some(3)][self.rng.random_range(0..4)];
        let books = &mut self.conns[conn as usize];
        let left = match self.policy.keepalive_hint {
            HintRule::Ignore => None,
            HintRule::ObeyMinus(margin) => timeout.map(|t| t.saturating_sub(margin)),
            HintRule::Obey | HintRule::ObeyIfSmaller => timeout,
        };
        books.draining |= left == Some(Nanos::ZERO);
        if let (Some(max), true) = (max, self.policy.keepalive_hint != HintRule::Ignore) {
            books.serves_max = books.serves_max.min(books.served + u64::from(max));
        }
        self.send(Event::Hint(ConnId(conn), KeepAliveHint { timeout, max }));
    }

    fn drain(&mut self, conn: u32) {
        self.conns[conn as usize].draining = true;
        self.send(Event::Draining(ConnId(conn)));
    }

    fn server_closes(&mut self, conn: u32) {
        let books = &mut self.conns[conn as usize];
        if books.running.is_empty() {
            if self.policy.validate == Validate::Event {
                books.life = Life::Gone;
            }
            books.half_closed = true;
        } else {
            books.life = Life::Gone;
            for req in std::mem::take(&mut books.running) {
                self.fates[req as usize] = Fate::Lost;
            }
        }
        self.send(Event::Closed(ConnId(conn)));
    }

    fn leave(&mut self, req: u32, fate: Fate) {
        assert_eq!(
            self.fates[req as usize],
            Fate::Waiting,
            "request {req} ends once, and only while it waits"
        );
        self.fates[req as usize] = fate;
        self.waiting.retain(|&other| other != req);
        if let Some(line) = &mut self.line {
            line.queued.retain(|&other| other != req);
            line.dials.remove(&req);
        }
    }

    fn send(&mut self, event: Event) {
        let idle_before = self.count().idle;
        let mut actions = Vec::new();
        self.pool.on(self.now, event, &mut actions);
        self.trace.push((self.now, event, actions.clone()));
        for action in actions {
            self.obey(event, action);
        }
        if let (Some(line), Event::Acquire(ReqId(req))) = (&mut self.line, event)
            && self.fates[req as usize] == Fate::Waiting
            && !line.dials.contains_key(&req)
        {
            line.queued.push_back(req);
        }
        self.check_books();
        self.check_limits(idle_before);
        self.check_nobody_is_stranded();
    }

    fn obey(&mut self, event: Event, action: Action) {
        match action {
            Action::Dial(conn) => self.dial(event, conn.0),
            Action::Assign(req, conn) => self.assign(event, req.0, conn.0),
            Action::Reject(req, error) => self.reject(event, req.0, error),
            Action::Close(conn) => {
                let books = &mut self.conns[conn.0 as usize];
                assert_eq!(books.life, Life::Open, "{action:?}");
                assert!(books.running.is_empty(), "{action:?} cuts {:?}", books.running);
                books.life = Life::Gone;
            }
            Action::WakeAt(at) => {
                assert!(at >= self.now, "{action:?} is past");
                self.later(at, Job::Tick);
            }
        }
    }

    fn dial(&mut self, event: Event, conn: u32) {
        let fresh = Conn {
            life: Life::Dialling,
            number: self.dials,
            slots: 0,
            running: BTreeSet::new(),
            served: 0,
            serves_max: serves_max(&self.policy),
            draining: false,
            half_closed: false,
            born: self.now,
            idle_since: self.now,
        };
        self.dials += 1;
        match self.conns.get_mut(conn as usize) {
            Some(books) => {
                assert_eq!(books.life, Life::Gone, "Dial({conn}) of a connection that is there");
                *books = fresh;
            }
            None => {
                assert_eq!(conn as usize, self.conns.len(), "ids are dense");
                self.conns.push(fresh);
            }
        }
        let number = self.conns[conn as usize].number;
        let at = self.in_us(10..2_000);
        self.later(at, Job::DialEnds(conn, number));
        if let Some(line) = &mut self.line {
            let req = match (line.queued.pop_front(), event) {
                (Some(first), _) => first,
                (None, Event::Acquire(ReqId(req))) => req,
                (None, other) => panic!("a dial for nobody after {other:?}"),
            };
            line.dials.insert(req, conn);
        }
    }

    fn assign(&mut self, event: Event, req: u32, conn: u32) {
        self.check_turn(event, req, conn);
        self.leave(req, Fate::Running);
        self.check_fit(conn);
        let books = &mut self.conns[conn as usize];
        books.running.insert(req);
        books.served += 1;
        let (number, stale) = (books.number, books.half_closed);
        let work = if stale { 1 } else { self.arrivals[req as usize].work_us };
        self.later(self.now + Nanos::from_micros(work), Job::WorkEnds(req, conn, number));
    }

    /// The connection can take one more request.
    fn check_fit(&self, conn: u32) {
        let books = &self.conns[conn as usize];
        assert_eq!(books.life, Life::Open, "connection {conn}");
        assert!(!books.draining, "connection {conn} drains");
        assert!((books.running.len() as u32) < books.slots, "connection {conn} is full");
        assert!(books.served < books.serves_max, "connection {conn} has served its number");
        if !books.running.is_empty() {
            return;
        }
        let idle_for = self.now - books.idle_since;
        if books.half_closed {
            match self.policy.validate {
                Validate::Never => {}
                Validate::ProbeAfter(span) if idle_for < span => {}
                other => panic!("connection {conn} is known to be closed: {other:?}"),
            }
        }
        let late = match self.policy.idle_check {
            IdleCheck::Sweep(span) => span,
            IdleCheck::Timer | IdleCheck::OnAcquire => Nanos::ZERO,
        };
        if let (Some(max), HintRule::Ignore) = (self.policy.idle_timeout, self.policy.keepalive_hint) {
            assert!(idle_for < max + late || idle_for == Nanos::ZERO, "connection {conn} expired");
        }
        if let Some(max) = self.policy.max_lifetime {
            assert!(self.now - books.born < max + late, "connection {conn} outlived its time");
        }
    }

    /// It is this request's turn: its own dial, or first come, first served.
    fn check_turn(&self, event: Event, req: u32, conn: u32) {
        let Some(line) = &self.line else { return };
        let own_dial =
            line.dials.get(&req) == Some(&conn) && matches!(event, Event::Dialled(c, _) if c.0 == conn);
        let first = match self.policy.race {
            DialRace::Bound => line.queued.front().copied().or(match event {
                Event::Acquire(new) => Some(new.0),
                _ => None,
            }),
            DialRace::Race => self.waiting.first().copied(),
        };
        assert!(
            own_dial || first == Some(req),
            "request {req} is served before its turn, which is {first:?}'s"
        );
    }

    fn reject(&mut self, event: Event, req: u32, error: PoolError) {
        match error {
            PoolError::PendingLimit => {
                assert_eq!(event, Event::Acquire(ReqId(req)), "a full queue refuses the newcomer");
                assert!(self.policy.max_pending.is_some());
            }
            PoolError::AcquireTimeout => {
                let waited = self.now - self.since[req as usize];
                assert!(Some(waited) >= self.policy.acquire_timeout, "rejected after {waited:?}");
                assert!(self.policy.acquire_timeout.is_some());
            }
            PoolError::DialFailed(conn) => {
                assert_eq!(event, Event::DialFailed(conn));
                if let Some(line) = &self.line {
                    assert_eq!(line.dials.get(&req), Some(&conn.0), "not the dial of request {req}");
                }
            }
        }
        self.leave(req, Fate::Rejected);
    }

    fn count(&self) -> Counts {
        let mut counts = Counts::default();
        for conn in &self.conns {
            let running = conn.running.len() as u32;
            counts.running += running;
            match conn.life {
                Life::Gone => {}
                Life::Dialling => counts.dialling += 1,
                Life::Open if running > 0 => counts.busy_conns += 1,
                Life::Open => counts.idle += 1,
            }
        }
        counts.open = counts.dialling + counts.busy_conns + counts.idle;
        counts
    }

    fn check_books(&self) {
        let pool = self.pool.counts();
        assert_eq!(Counts { pending: 0, ..pool }, self.count());
        assert!(pool.pending <= self.waiting.len() as u32);
        if let Some(line) = &self.line {
            assert_eq!(pool.pending, line.queued.len() as u32);
        }
    }

    fn check_limits(&self, idle_before: u32) {
        let counts = self.pool.counts();
        let within = |value: u32, limit: Option<u32>| limit.is_none_or(|limit| value <= limit);
        assert!(within(counts.open, self.policy.max_conns), "{counts:?}");
        assert!(within(self.started(), self.policy.max_inflight), "{counts:?}");
        assert!(within(counts.pending, self.policy.max_pending), "{counts:?}");
        match self.policy.idle_cap_basis {
            IdleCapBasis::Idle => assert!(within(counts.idle, self.policy.max_idle), "{counts:?}"),
            IdleCapBasis::AllConns if counts.idle > idle_before => {
                assert!(within(counts.open, self.policy.max_idle), "{counts:?}");
            }
            IdleCapBasis::AllConns => {}
        }
    }

    /// Requests that run or have a dial of their own.
    fn started(&self) -> u32 {
        let counts = self.pool.counts();
        counts.running + self.waiting.len() as u32 - counts.pending
    }

    fn check_nobody_is_stranded(&self) {
        let counts = self.pool.counts();
        let may_start = self.policy.max_inflight.is_none_or(|max| self.started() < max);
        let may_dial = self.policy.max_conns.is_none_or(|max| counts.open < max);
        let free = self.conns.iter().any(|conn| {
            let full = conn.running.len() as u32 >= conn.slots;
            let may_be_too_old = self.policy.max_lifetime.is_some_and(|max| {
                let shortest = max.0 - max.0 * u64::from(self.policy.lifetime_jitter_percent) / 100;
                (self.now - conn.born).0 >= shortest
            });
            let spent = conn.draining || conn.served >= conn.serves_max || may_be_too_old;
            conn.life == Life::Open && !full && !spent
        });
        if may_start && counts.pending > 0 {
            assert!(
                !free && !may_dial,
                "somebody waits for nothing: {counts:?} after {:?}",
                self.trace.last()
            );
        }
        if may_start && free && self.policy.race == DialRace::Race {
            let last = self.trace.last();
            assert!(
                self.waiting.is_empty(),
                "somebody waits beside a free connection: {counts:?} after {last:?}"
            );
        }
    }
}

fn serves_max(policy: &Policy) -> u64 {
    if policy.reuse { policy.max_requests_per_conn.unwrap_or(u64::MAX) } else { 1 }
}
