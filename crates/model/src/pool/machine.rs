//! The state machine itself: one procedure per event, and `serve`, which all of them end with. The rules are in the
//! module above.

use std::collections::BTreeSet;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::backoff::Backoff;
use super::conn::{Conn, NOBODY, State};
use super::line::{End, Free, Idle, Line};
use super::policy::*;
use super::{Action, ConnId, Counts, Event, PoolError, ReqId};
use crate::units::Nanos;

/// What the pool remembers of a request.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    since: Nanos,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Not waiting.
    Outside,
    Queued,
    /// Waiting, with the dial of this connection started for it.
    WithDial(u32),
}

/// The policy's limits with "none" as the largest number, so that each check is one comparison.
#[derive(Clone, Copy, Debug)]
struct Limits {
    conns: u32,
    idle: u32,
    inflight: u32,
    pending: u32,
    acquire: Nanos,
}

impl Limits {
    fn of(policy: &Policy) -> Limits {
        Limits {
            conns: policy.max_conns.unwrap_or(u32::MAX),
            idle: policy.max_idle.unwrap_or(u32::MAX),
            inflight: policy.max_inflight.unwrap_or(u32::MAX),
            pending: policy.max_pending.unwrap_or(u32::MAX),
            acquire: policy.acquire_timeout.unwrap_or(Nanos::MAX),
        }
    }

    /// Connections that may be kept in store.
    fn store(&self, wanted: u32) -> u32 {
        wanted.min(self.conns).min(self.idle)
    }
}

/// The connections of one origin of one client instance, and the requests that wait for them.
#[derive(Clone, Debug)]
pub struct Pool {
    policy: Policy,
    limits: Limits,
    rng: Xoshiro256PlusPlus,

    conns: Vec<Conn>,
    /// Numbers of connections that are gone.
    vacant: Vec<u32>,
    /// Open connections with a free slot.
    free: Free,
    /// Open connections that run nothing.
    idle: Idle,
    dialling: u32,
    busy: u32,
    births: u64,

    waiters: Vec<Waiter>,
    /// Waiting requests that have no dial of their own.
    queued: Line,
    /// All waiting requests, where the policy asks for the first of them; otherwise nothing.
    waiting: Option<Line>,
    /// Waiting requests that have a dial of their own.
    with_dial: u32,
    running: u32,

    /// Eager: dial again below so many open connections.
    floor: u32,
    /// Prewarm: dial up to so many with the first request.
    prewarm: u32,
    redial: Backoff,

    /// The earliest `WakeAt` that has not come yet.
    wake: Nanos,
    /// The next sweep; `MAX` while nothing is idle.
    sweep: Nanos,
    /// `IdleCheck::Timer`: at most one entry per connection, at or before the time when it is due. An entry is not
    /// moved when its connection is used again, only when it comes up: so a busy connection costs no timer at all.
    timers: BTreeSet<(Nanos, u32)>,
}

impl Pool {
    /// `seed` decides all that the policy leaves to chance: the same seed and events give the same actions.
    ///
    /// # Panics
    /// On a policy that `Policy::check` refuses.
    pub fn new(policy: Policy, seed: u64) -> Pool {
        if let Err(problem) = policy.check() {
            panic!("a pool needs a checked policy: {problem}");
        }
        let limits = Limits::of(&policy);
        let (eager, prewarm) = match policy.dial {
            DialMode::Lazy => (0, 0),
            DialMode::Eager(n) => (n, 0),
            DialMode::Prewarm(n) => (0, n),
        };
        let end = match policy.order {
            WaiterOrder::Fifo => End::First,
            WaiterOrder::Lifo => End::Last,
            WaiterOrder::Random => End::Any,
        };
        let free = match policy.pick {
            IdlePick::Mru => Free::Recency(Line::new(End::Last)),
            IdlePick::Lru => Free::Recency(Line::new(End::First)),
            IdlePick::Random => Free::Recency(Line::new(End::Any)),
            IdlePick::FirstFit => Free::Oldest(BTreeSet::new()),
            IdlePick::LastSlot => Free::Youngest(BTreeSet::new()),
        };
        let everybody = policy.race == DialRace::Race || policy.acquire_clock == AcquireClock::WaitDial;
        let in_order =
            policy.idle_evict == IdleEvict::LongestIdle || matches!(policy.idle_check, IdleCheck::Sweep(_));
        Pool {
            limits,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            conns: Vec::new(),
            vacant: Vec::new(),
            free,
            idle: Idle::new(in_order),
            dialling: 0,
            busy: 0,
            births: 0,
            waiters: Vec::new(),
            queued: Line::new(end),
            waiting: everybody.then(|| Line::new(end)),
            with_dial: 0,
            running: 0,
            floor: limits.store(eager),
            prewarm: limits.store(prewarm),
            redial: Backoff::default(),
            wake: Nanos::MAX,
            sweep: Nanos::MAX,
            timers: BTreeSet::new(),
            policy,
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn counts(&self) -> Counts {
        Counts {
            dialling: self.dialling,
            running: self.running,
            busy_conns: self.busy,
            idle: self.idle.len(),
            pending: self.queued.len(),
            open: self.open(),
        }
    }

    /// Appends what is to be done, in order. `now` never goes back. Events must be true to the state: one about an
    /// unknown connection or request is a bug of the caller, and an assert where it would corrupt the pool.
    pub fn on(&mut self, now: Nanos, event: Event, actions: &mut Vec<Action>) {
        // First what the event takes away or adds, so that nothing about to be decided names what is gone.
        match event {
            Event::Cancel(req) => self.stop_waiting(req.0),
            Event::Closed(conn) => self.closed(now, conn.0),
            Event::Draining(conn) => self.draining(now, conn.0, actions),
            Event::Slots(conn, slots) => self.slots_changed(conn.0, slots),
            Event::Hint(conn, hint) => self.hinted(conn.0, hint),
            _ => {}
        }
        if now >= self.wake {
            self.pass_time(now, actions);
        }
        match event {
            Event::Acquire(req) => self.acquire(now, req.0, actions),
            Event::Released(conn) => self.released(now, conn.0, actions),
            Event::Dialled(conn, slots) => self.dialled(now, conn.0, slots, actions),
            Event::DialFailed(conn) => self.dial_failed(now, conn.0, actions),
            Event::Cancel(_) | Event::Closed(_) | Event::Draining(_) | Event::Slots(..) => {
                self.serve(now, actions);
            }
            Event::Hint(..) | Event::Tick => {}
        }
        if self.open() < self.floor {
            self.fill_up(now, actions);
        }
    }

    fn open(&self) -> u32 {
        self.dialling + self.busy + self.idle.len()
    }

    /// Whether one more queued request may have a connection or a dial.
    fn may_start(&self) -> bool {
        self.running + self.with_dial < self.limits.inflight
    }

    fn may_dial(&self) -> bool {
        self.open() < self.limits.conns
    }
}

/// Requests.
impl Pool {
    fn acquire(&mut self, now: Nanos, req: u32, actions: &mut Vec<Action>) {
        if self.queued.is_empty() && self.may_start() {
            if let Some(conn) = self.pick(now, actions) {
                self.assign(req, conn, actions);
            } else if self.may_dial() {
                self.wait(now, req, actions);
                self.dial_for(req, actions);
            } else {
                self.queue(now, req, actions);
            }
        } else {
            self.queue(now, req, actions);
        }
        if self.prewarm > 0 {
            let wanted = std::mem::take(&mut self.prewarm);
            self.dial_spares(wanted, actions);
        }
    }

    fn queue(&mut self, now: Nanos, req: u32, actions: &mut Vec<Action>) {
        let dials = if self.policy.pending_counts_dials { self.with_dial } else { 0 };
        if self.queued.len() + dials >= self.limits.pending {
            actions.push(Action::Reject(ReqId(req), PoolError::PendingLimit));
            return;
        }
        self.wait(now, req, actions);
        self.waiters[req as usize].place = Place::Queued;
        self.queued.push(req);
        self.arm(now.saturating_add(self.limits.acquire), actions);
    }

    fn wait(&mut self, now: Nanos, req: u32, actions: &mut Vec<Action>) {
        if req as usize >= self.waiters.len() {
            self.waiters.resize(req as usize + 1, Waiter { since: Nanos::ZERO, place: Place::Outside });
        }
        let waiter = &mut self.waiters[req as usize];
        assert_eq!(waiter.place, Place::Outside, "Acquire of request {req}, which is waiting already");
        waiter.since = now;
        if let Some(waiting) = &mut self.waiting {
            waiting.push(req);
        }
        if self.policy.acquire_clock == AcquireClock::WaitDial {
            self.arm(now.saturating_add(self.limits.acquire), actions);
        }
    }

    /// Its dial, if it has one, goes on for whoever waits then.
    fn stop_waiting(&mut self, req: u32) {
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(req);
        }
        match std::mem::replace(&mut self.waiters[req as usize].place, Place::Outside) {
            Place::Outside => panic!("request {req} is not waiting"),
            Place::Queued => self.queued.remove(req),
            Place::WithDial(conn) => {
                self.with_dial -= 1;
                self.conns[conn as usize].origin = NOBODY;
            }
        }
    }

    fn assign(&mut self, req: u32, id: u32, actions: &mut Vec<Action>) {
        let conn = &mut self.conns[id as usize];
        if conn.running == 0 {
            self.idle.remove(id);
            self.busy += 1;
        }
        conn.running += 1;
        conn.served += 1;
        self.running += 1;
        if !conn.has_free_slot() {
            self.free.remove(id, conn.birth);
        }
        actions.push(Action::Assign(ReqId(req), ConnId(id)));
    }

    /// Keeps the promise that nobody is queued while a slot or the right to dial is there.
    fn serve(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        while let Some(req) = self.next_for_a_free_slot() {
            if !self.may_be_assigned(req) {
                return;
            }
            let Some(conn) = self.pick(now, actions) else { break };
            self.stop_waiting(req);
            self.assign(req, conn, actions);
        }
        while self.may_start() && self.may_dial() {
            let Some(req) = self.queued.pick(&mut self.rng) else { break };
            self.queued.remove(req);
            self.dial_for(req, actions);
        }
    }

    fn next_for_a_free_slot(&mut self) -> Option<u32> {
        match self.policy.race {
            DialRace::Bound => self.queued.pick(&mut self.rng),
            DialRace::Race => self.waiting.as_ref()?.pick(&mut self.rng),
        }
    }

    /// A request with a dial counts against `max_inflight` already.
    fn may_be_assigned(&self, req: u32) -> bool {
        self.waiters[req as usize].place != Place::Queued || self.may_start()
    }

    /// A connection for one more request; those that turn out to be no good are closed on the way.
    fn pick(&mut self, now: Nanos, actions: &mut Vec<Action>) -> Option<u32> {
        while let Some(id) = self.free.pick(&mut self.rng) {
            if self.looks_good(id, now) {
                return Some(id);
            }
            self.close(now, id, actions);
        }
        None
    }

    /// What this client can see of a connection before it uses it.
    fn looks_good(&self, id: u32, now: Nanos) -> bool {
        let conn = &self.conns[id as usize];
        if conn.running > 0 {
            return true;
        }
        let expired = self.policy.idle_check == IdleCheck::OnAcquire && conn.due <= now;
        let found_closed = conn.half_closed
            && match self.policy.validate {
                Validate::Never | Validate::Event => false,
                Validate::Probe => true,
                Validate::ProbeAfter(span) => now.saturating_sub(conn.idle_since) >= span,
            };
        !expired && !found_closed
    }
}

/// Connections.
impl Pool {
    fn dial_for(&mut self, req: u32, actions: &mut Vec<Action>) {
        let conn = self.dial(req, actions);
        self.waiters[req as usize].place = Place::WithDial(conn);
        self.with_dial += 1;
    }

    fn dial(&mut self, origin: u32, actions: &mut Vec<Action>) -> u32 {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.conns.push(Conn::gone());
            self.conns.len() as u32 - 1
        });
        self.conns[id as usize] = Conn::dialling(origin, &self.policy);
        self.dialling += 1;
        actions.push(Action::Dial(ConnId(id)));
        id
    }

    fn dial_spares(&mut self, wanted: u32, actions: &mut Vec<Action>) {
        while self.open() < wanted {
            self.dial(NOBODY, actions);
        }
    }

    fn fill_up(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        if now < self.redial.until {
            self.arm(self.redial.until, actions);
        } else {
            self.dial_spares(self.floor, actions);
        }
    }

    fn dialled(&mut self, now: Nanos, id: u32, slots: u32, actions: &mut Vec<Action>) {
        assert_eq!(
            self.conns[id as usize].state,
            State::Dialling,
            "Dialled({id}) of a dial that is not running"
        );
        if slots == 0 {
            self.end_failed_dial(now, id, actions);
            actions.push(Action::Close(ConnId(id)));
            return self.serve(now, actions);
        }
        let dies = self.draw_death(now);
        self.births += 1;
        self.dialling -= 1;
        let conn = &mut self.conns[id as usize];
        let origin = std::mem::replace(&mut conn.origin, NOBODY);
        conn.state = State::Open;
        conn.slots = slots;
        conn.birth = self.births;
        conn.born = now;
        conn.dies = dies;
        let lost = origin == NOBODY && !conn.spare;
        self.free.insert(id, conn.birth);
        self.become_idle(now, id, actions);
        if origin != NOBODY {
            self.stop_waiting(origin);
            self.assign(origin, id, actions);
        }
        self.serve(now, actions);
        if lost && self.policy.surplus == Surplus::Close && self.conns[id as usize].is_idle() {
            self.close(now, id, actions);
        } else {
            self.trim(now, id, actions);
        }
    }

    fn draw_death(&mut self, now: Nanos) -> Nanos {
        let Some(lifetime) = self.policy.max_lifetime else { return Nanos::MAX };
        let longest = u128::from(lifetime.0) * u128::from(self.policy.lifetime_jitter_percent) / 100;
        let cut = if longest == 0 { 0 } else { self.rng.random_range(0..=longest as u64) };
        now.saturating_add(Nanos(lifetime.0 - cut))
    }

    fn dial_failed(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        assert_eq!(
            self.conns[id as usize].state,
            State::Dialling,
            "DialFailed({id}) of a dial that is not running"
        );
        self.end_failed_dial(now, id, actions);
        self.serve(now, actions);
    }

    fn end_failed_dial(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        let origin = self.conns[id as usize].origin;
        if origin != NOBODY {
            self.stop_waiting(origin);
            actions.push(Action::Reject(ReqId(origin), PoolError::DialFailed(ConnId(id))));
        }
        self.redial.failed(now);
        self.forget(now, id);
    }

    fn released(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        let conn = &mut self.conns[id as usize];
        assert!(conn.running > 0, "Released({id}) of a connection that runs no request");
        conn.running -= 1;
        self.running -= 1;
        conn.draining |= conn.dies <= now;
        let ended = conn.running == 0;
        if conn.is_spent() {
            self.retire(now, id, ended, actions);
            return self.serve(now, actions);
        }
        if conn.has_free_slot() {
            if self.hand_over(now, id, actions) {
                return;
            }
            self.free.insert(id, self.conns[id as usize].birth);
        }
        if ended {
            self.busy -= 1;
            self.become_idle(now, id, actions);
        }
        self.serve(now, actions);
        self.trim(now, id, actions);
    }

    /// Gives the slot that came free straight to a waiter, if no other slot is free that it might be given instead. The
    /// same as `serve` would do, without putting the connection on its lists and taking it off again.
    fn hand_over(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) -> bool {
        if !self.free.is_empty() {
            return false;
        }
        let Some(req) = self.next_for_a_free_slot() else { return false };
        if !self.may_be_assigned(req) {
            return false;
        }
        let queued = self.waiters[req as usize].place == Place::Queued;
        self.stop_waiting(req);
        let conn = &mut self.conns[id as usize];
        conn.running += 1;
        conn.served += 1;
        self.running += 1;
        actions.push(Action::Assign(ReqId(req), ConnId(id)));
        if !queued {
            self.serve(now, actions);
        }
        true
    }

    /// A connection that is spent: no request may start on it, and after the last one it is closed.
    fn retire(&mut self, now: Nanos, id: u32, ended: bool, actions: &mut Vec<Action>) {
        self.free.remove(id, self.conns[id as usize].birth);
        if ended {
            self.busy -= 1;
            self.idle.insert(id);
            self.close(now, id, actions);
        }
    }

    fn become_idle(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        self.idle.insert(id);
        let conn = &mut self.conns[id as usize];
        conn.idle_since = now;
        conn.due = now.saturating_add(conn.idle_max).min(conn.dies);
        if conn.due < Nanos::MAX {
            self.watch(now, id, actions);
        }
    }

    /// Sees to it that an idle connection is looked at when it is due.
    fn watch(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        match self.policy.idle_check {
            IdleCheck::OnAcquire => {}
            IdleCheck::Timer => {
                let conn = &mut self.conns[id as usize];
                if conn.due < conn.timer {
                    self.timers.remove(&(conn.timer, id));
                    conn.timer = conn.due;
                    self.timers.insert((conn.due, id));
                    self.arm(self.conns[id as usize].due, actions);
                }
            }
            IdleCheck::Sweep(span) => {
                if self.sweep == Nanos::MAX {
                    self.sweep = next_multiple(now, span);
                    self.arm(self.sweep, actions);
                }
            }
        }
    }

    /// Closes one connection if there is one idle too many, now that this one may be idle.
    fn trim(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        let counted = match self.policy.idle_cap_basis {
            IdleCapBasis::Idle => self.idle.len(),
            IdleCapBasis::AllConns => self.open(),
        };
        if counted <= self.limits.idle || !self.conns[id as usize].is_idle() {
            return;
        }
        let victim = match self.policy.idle_evict {
            IdleEvict::Released => id,
            IdleEvict::LongestIdle => self.idle.front().unwrap_or(id),
        };
        self.close(now, victim, actions);
        self.serve(now, actions);
    }

    fn hinted(&mut self, id: u32, hint: KeepAliveHint) {
        let conn = &mut self.conns[id as usize];
        conn.heed(hint, &self.policy);
        if conn.is_spent() {
            self.free.remove(id, conn.birth);
        }
    }

    fn slots_changed(&mut self, id: u32, slots: u32) {
        let conn = &mut self.conns[id as usize];
        assert_eq!(conn.state, State::Open, "Slots({id}) of a connection that is not open");
        let had = conn.has_free_slot();
        conn.slots = slots;
        match (had, conn.has_free_slot()) {
            (false, true) => self.free.insert(id, conn.birth),
            (true, false) => self.free.remove(id, conn.birth),
            _ => {}
        }
    }

    fn draining(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        let conn = &mut self.conns[id as usize];
        assert_eq!(conn.state, State::Open, "Draining({id}) of a connection that is not open");
        conn.draining = true;
        self.free.remove(id, conn.birth);
        if conn.is_idle() {
            self.close(now, id, actions);
        }
    }

    fn closed(&mut self, now: Nanos, id: u32) {
        let conn = &mut self.conns[id as usize];
        assert_eq!(conn.state, State::Open, "Closed({id}) of a connection that is not open");
        if conn.running == 0 && self.policy.validate != Validate::Event {
            conn.half_closed = true;
        } else {
            self.forget(now, id);
        }
    }

    fn close(&mut self, now: Nanos, id: u32, actions: &mut Vec<Action>) {
        self.forget(now, id);
        actions.push(Action::Close(ConnId(id)));
    }

    /// Takes a connection off every list, whatever its state.
    fn forget(&mut self, now: Nanos, id: u32) {
        let conn = &mut self.conns[id as usize];
        match conn.state {
            State::Gone => panic!("connection {id} is gone already"),
            State::Dialling => self.dialling -= 1,
            State::Open if conn.running > 0 => {
                self.busy -= 1;
                self.running -= conn.running;
            }
            State::Open => self.idle.remove(id),
        }
        if conn.state == State::Open {
            self.free.remove(id, conn.birth);
            if conn.served == 0 && now.saturating_sub(conn.born) < Backoff::LONGEST {
                self.redial.failed(now);
            }
        }
        self.timers.remove(&(conn.timer, id));
        *conn = Conn::gone();
        self.vacant.push(id);
    }
}

/// Time.
impl Pool {
    fn pass_time(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.wake = Nanos::MAX;
        self.time_out_waiters(now, actions);
        self.run_timers(now, actions);
        if self.sweep <= now {
            self.sweep_idle(now, actions);
        }
        self.serve(now, actions);
        self.arm(self.next_deadline(), actions);
    }

    fn time_out_waiters(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        while let Some(req) = self.next_to_time_out()
            && self.times_out_at(req) <= now
        {
            self.stop_waiting(req);
            actions.push(Action::Reject(ReqId(req), PoolError::AcquireTimeout));
        }
    }

    /// Both lines are in order of arrival, and the timeout is the same for all.
    fn next_to_time_out(&self) -> Option<u32> {
        match self.policy.acquire_clock {
            AcquireClock::Wait => self.queued.front(),
            AcquireClock::WaitDial => self.waiting.as_ref()?.front(),
        }
    }

    fn times_out_at(&self, req: u32) -> Nanos {
        self.waiters[req as usize].since.saturating_add(self.limits.acquire)
    }

    fn run_timers(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        while let Some(&(at, id)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let conn = &mut self.conns[id as usize];
            conn.timer = Nanos::MAX;
            if !conn.is_idle() {
                // It gets a new timer when it is idle again.
                continue;
            }
            if conn.due <= now {
                self.close(now, id, actions);
            } else {
                conn.timer = conn.due;
                self.timers.insert((conn.due, id));
            }
        }
    }

    fn sweep_idle(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let mut next = self.idle.front();
        while let Some(id) = next {
            next = self.idle.after(id);
            if self.conns[id as usize].due <= now {
                self.close(now, id, actions);
            }
        }
        self.sweep = match self.policy.idle_check {
            IdleCheck::Sweep(span) if self.idle.len() > 0 => next_multiple(now, span),
            _ => Nanos::MAX,
        };
    }

    fn next_deadline(&self) -> Nanos {
        let timer = self.timers.first().map_or(Nanos::MAX, |&(at, _)| at);
        let waiter = self.next_to_time_out().map_or(Nanos::MAX, |req| self.times_out_at(req));
        timer.min(waiter).min(self.sweep)
    }

    /// Asks for a `Tick`, unless an earlier one is under way, which will ask again.
    fn arm(&mut self, at: Nanos, actions: &mut Vec<Action>) {
        if at < self.wake {
            self.wake = at;
            actions.push(Action::WakeAt(at));
        }
    }
}

/// The first multiple of a span after an instant.
fn next_multiple(now: Nanos, span: Nanos) -> Nanos {
    Nanos((now.0 / span.0).saturating_add(1).saturating_mul(span.0))
}
