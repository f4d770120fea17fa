//! Folds samples into ticks: the only place where requests become figures.
//!
//! A tick is one second of one client instance. Ticks of the instances merge into the second of the run, and the
//! seconds of a run into its totals, so the series and the totals come from one fold. Opens no connection and reads
//! no clock: the loader brings samples, gauges and counters, and says when a second is over.
//!
//! ```text
//! samples --Fold--> Tick (1 s, one instance) --Timeline--> Point (1 s, all instances), totals, warm-up
//! ```
//!
//! A request belongs to the tick in which it was done. A failed request is counted, and its response time is kept
//! apart from those of successes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::{Failure, Phase, Sample};
use crate::stats::Histogram;
use crate::units::Nanos;

/// Which part of a run a tick belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Measured apart.
    Warmup,
    #[default]
    Measured,
    /// Nothing starts any more; what is in flight is waited for.
    Drain,
}

/// What is so at one moment, summed over the connections of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Requests from `Acquire` to their end, waiting ones included.
    pub in_flight: u64,
    /// Requests in the pool's queue.
    pub queue: u64,
    /// Connections that are dialled and not closed.
    pub open: u64,
    pub idle: u64,
}

impl Gauges {
    fn zip(self, other: Gauges, f: impl Fn(u64, u64) -> u64) -> Gauges {
        Gauges {
            in_flight: f(self.in_flight, other.in_flight),
            queue: f(self.queue, other.queue),
            open: f(self.open, other.open),
            idle: f(self.idle, other.idle),
        }
    }

    fn max(self, other: Gauges) -> Gauges {
        self.zip(other, u64::max)
    }

    fn sum(self, other: Gauges) -> Gauges {
        self.zip(other, |a, b| a + b)
    }
}

/// What has happened since the instance began. Only ever grows; the fold takes the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests handed to the pool.
    pub started: u64,
    /// Connections whose dial succeeded.
    pub opened: u64,
    pub closed: u64,
    pub dials_failed: u64,
    pub tls_full: u64,
    pub tls_resumed: u64,
    /// CPU time of the instance's thread, user and system.
    pub cpu: Nanos,
}

impl Counters {
    fn zip(self, other: Counters, f: impl Fn(u64, u64) -> u64) -> Counters {
        Counters {
            started: f(self.started, other.started),
            opened: f(self.opened, other.opened),
            closed: f(self.closed, other.closed),
            dials_failed: f(self.dials_failed, other.dials_failed),
            tls_full: f(self.tls_full, other.tls_full),
            tls_resumed: f(self.tls_resumed, other.tls_resumed),
            cpu: Nanos(f(self.cpu.0, other.cpu.0)),
        }
    }

    fn sum(self, other: Counters) -> Counters {
        self.zip(other, |a, b| a + b)
    }

    fn since(self, earlier: Counters) -> Counters {
        self.zip(earlier, |now, then| now - then)
    }
}

/// Distributions over the successes, and one over the failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distributions {
    /// In the order of `Phase::ALL`.
    pub phases: [Histogram; 8],
    pub response: Histogram,
    pub service: Histogram,
    /// Response times of failures: a timeout shows as one exact value.
    pub failed: Histogram,
}

impl Distributions {
    pub fn phase(&self, phase: Phase) -> &Histogram {
        &self.phases[phase as usize]
    }

    fn merge(&mut self, other: &Distributions) {
        for (ours, theirs) in self.phases.iter_mut().zip(&other.phases) {
            ours.merge(theirs);
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
    }
}

/// The fold of one second, of the warm-up, or of a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tick {
    /// Counted from the instance's first tick; ticks of different instances with one index are the same second.
    pub index: u64,
    pub stage: Stage,
    pub start: Nanos,
    pub end: Nanos,
    /// Requests that were done, failed ones included.
    pub requests: u64,
    pub ok: u64,
    pub errors: BTreeMap<Failure, u64>,
    /// Every complete answer, by status; a 404 is here and in `errors`.
    pub status: BTreeMap<u16, u64>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Requests that were served on a connection that had served before.
    pub reused: u64,
    /// Requests that were assigned a connection: those of which `reused` is a share.
    pub assigned: u64,
    pub retries: u64,
    pub times: Distributions,
    pub gauges_end: Gauges,
    /// Highest of each gauge. Merged over instances it is the sum of their peaks, an upper bound.
    pub gauges_peak: Gauges,
    pub counters: Counters,
    /// Latest intended start and latest start of its requests: how far the schedule has come.
    pub intended_last: Nanos,
    pub started_last: Nanos,
}

impl Tick {
    /// Counts one request. `Fold` does the same with less work per request.
    pub fn add(&mut self, sample: &Sample) {
        self.count(sample);
        self.count_status(sample.status, 1);
        if sample.outcome.is_ok() {
            for (histogram, span) in self.times.phases.iter_mut().zip(sample.phases()) {
                histogram.record(span);
            }
            self.times.response.record(sample.response());
            self.times.service.record(sample.service());
        }
    }

    /// Everything but the status and the distributions of successes.
    #[inline]
    fn count(&mut self, sample: &Sample) {
        self.requests += 1;
        self.bytes_in += sample.bytes_in;
        self.bytes_out += sample.bytes_out;
        self.retries += u64::from(sample.retries);
        self.intended_last = self.intended_last.max(sample.intended);
        self.started_last = self.started_last.max(sample.started);
        match sample.outcome {
            Ok(()) => self.ok += 1,
            Err(failure) => self.count_failure(sample, failure),
        }
        if reached_a_connection(sample) {
            self.assigned += 1;
            self.reused += u64::from(sample.reused);
        }
    }

    fn count_status(&mut self, status: u16, n: u64) {
        if status != 0 && n > 0 {
            *self.status.entry(status).or_default() += n;
        }
    }

    fn count_failure(&mut self, sample: &Sample, failure: Failure) {
        *self.errors.entry(failure).or_default() += 1;
        self.times.failed.record(sample.response());
    }

    /// Adds the same second of another instance: gauges and counters are summed. Associative and commutative.
    pub fn merge(&mut self, other: &Tick) {
        self.gauges_end = self.gauges_end.sum(other.gauges_end);
        self.gauges_peak = self.gauges_peak.sum(other.gauges_peak);
        self.merge_counts(other);
    }

    /// Adds another second of the run: the end's gauges are those of the later one, the peaks the higher ones.
    /// Associative; commutative for ticks that do not end at the same time.
    pub fn merge_second(&mut self, other: &Tick) {
        if other.end >= self.end {
            self.gauges_end = other.gauges_end;
        }
        self.gauges_peak = self.gauges_peak.max(other.gauges_peak);
        self.merge_counts(other);
    }

    fn merge_counts(&mut self, other: &Tick) {
        match (self.end, other.end) {
            (_, Nanos::ZERO) => {}
            (Nanos::ZERO, _) => self.be_at(other.index, other.stage, other.start),
            _ => self.be_at(
                self.index.min(other.index),
                self.stage.min(other.stage),
                self.start.min(other.start),
            ),
        }
        self.end = self.end.max(other.end);
        self.requests += other.requests;
        self.ok += other.ok;
        merge_map(&mut self.errors, &other.errors);
        merge_map(&mut self.status, &other.status);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.reused += other.reused;
        self.assigned += other.assigned;
        self.retries += other.retries;
        self.times.merge(&other.times);
        self.counters = self.counters.sum(other.counters);
        self.intended_last = self.intended_last.max(other.intended_last);
        self.started_last = self.started_last.max(other.started_last);
    }

    fn be_at(&mut self, index: u64, stage: Stage, start: Nanos) {
        (self.index, self.stage, self.start) = (index, stage, start);
    }

    pub fn length(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }

    pub fn failed(&self) -> u64 {
        self.requests - self.ok
    }
}

/// A request that failed before it got a connection says nothing about reuse.
fn reached_a_connection(sample: &Sample) -> bool {
    match sample.outcome {
        Ok(()) => true,
        Err(failure) => failure.phase >= Phase::Send,
    }
}

fn merge_map<K: Ord + Copy>(ours: &mut BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) {
    for (&key, &n) in theirs {
        *ours.entry(key).or_default() += n;
    }
}

/// What the loader knows at the end of a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// The end of the tick. Nominal (whole seconds, the end of the warm-up, the stop), so that instances agree.
    pub end: Nanos,
    /// The run was stopped, by duration or by hand, and what was in flight was waited for. Not for a run that stops
    /// by count: its last requests are part of the work that it was given.
    pub draining: bool,
    pub gauges: Gauges,
    /// Since the instance began.
    pub counters: Counters,
}

/// Times of a success: eight phases, response, service.
const COLUMNS: usize = 10;
/// Samples kept before they are folded: 10 columns of 128 are 10 KB, which leaves most of a first-level cache free.
const BUFFERED: usize = 128;

/// The fold of one instance: samples in, a tick a second out.
pub struct Fold {
    measured_from: Nanos,
    tick: Tick,
    /// Requests of the warm-up that were done after its end.
    stragglers: Tick,
    counters: Counters,
    columns: Box<[[u64; BUFFERED]; COLUMNS]>,
    buffered: usize,
    /// The last request's status, and how many had it in a row: most runs see one status only.
    status: u16,
    status_run: u64,
}

impl Fold {
    /// Requests that were intended before `measured_from` belong to the warm-up, whenever they are done.
    pub fn new(measured_from: Nanos) -> Fold {
        Fold {
            measured_from,
            tick: Tick { stage: stage_at(Nanos::ZERO, measured_from, false), ..Tick::default() },
            stragglers: Tick {
                stage: Stage::Warmup,
                start: measured_from,
                end: measured_from,
                ..Tick::default()
            },
            counters: Counters::default(),
            columns: Box::new([[0; BUFFERED]; COLUMNS]),
            buffered: 0,
            status: 0,
            status_run: 0,
        }
    }

    /// Counts a request that is done.
    #[inline]
    pub fn add(&mut self, sample: &Sample) {
        if sample.intended < self.measured_from && self.tick.stage != Stage::Warmup {
            return self.stragglers.add(sample);
        }
        self.tick.count(sample);
        if sample.status != self.status {
            self.end_status_run(sample.status);
        }
        self.status_run += 1;
        if sample.outcome.is_ok() {
            self.buffer(sample);
        }
    }

    /// Takes note of the gauges for the peaks. Cheap; call it whenever they may have risen.
    #[inline]
    pub fn observe(&mut self, gauges: Gauges) {
        self.tick.gauges_peak = self.tick.gauges_peak.max(gauges);
    }

    /// The requests that are done so far in this tick, for those who look in between.
    pub fn requests(&self) -> u64 {
        self.tick.requests
    }

    /// Ends the tick and begins the next one. A tick must not span the end of the warm-up.
    pub fn roll(&mut self, reading: &Reading) -> Tick {
        self.flush();
        self.end_status_run(self.status);
        self.observe(reading.gauges);
        let stage = stage_at(reading.end, self.measured_from, false);
        let next = Tick { index: self.tick.index + 1, stage, start: reading.end, ..Tick::default() };
        let mut tick = std::mem::replace(&mut self.tick, next);
        tick.stage = stage_at(tick.start, self.measured_from, reading.draining);
        tick.end = reading.end;
        tick.gauges_end = reading.gauges;
        tick.counters = reading.counters.since(self.counters);
        self.counters = reading.counters;
        tick
    }

    /// Requests of the warm-up that were done after it, if any, as a tick of no length. To be called once, after the
    /// last `roll`.
    pub fn stragglers(&mut self) -> Option<Tick> {
        let stragglers = std::mem::take(&mut self.stragglers);
        (stragglers.requests > 0).then_some(stragglers)
    }

    fn end_status_run(&mut self, next: u16) {
        self.tick.count_status(self.status, self.status_run);
        (self.status, self.status_run) = (next, 0);
    }

    #[inline]
    fn buffer(&mut self, sample: &Sample) {
        let at = self.buffered;
        for (column, span) in self.columns.iter_mut().zip(sample.phases()) {
            column[at] = span.0;
        }
        self.columns[8][at] = sample.response().0;
        self.columns[9][at] = sample.service().0;
        self.buffered += 1;
        if self.buffered == BUFFERED {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let n = std::mem::take(&mut self.buffered);
        let times = &mut self.tick.times;
        let histograms = times.phases.iter_mut().chain([&mut times.response, &mut times.service]);
        for (column, histogram) in self.columns.iter().zip(histograms) {
            histogram.record_all(&column[..n]);
        }
    }
}

fn stage_at(start: Nanos, measured_from: Nanos, draining: bool) -> Stage {
    match draining {
        _ if start < measured_from => Stage::Warmup,
        true => Stage::Drain,
        false => Stage::Measured,
    }
}

/// The ticks of all instances, in order: what a run keeps. Holds one tick's buckets per stage, however long the run.
pub struct Timeline {
    instances: usize,
    /// Last tick of each instance that has ended.
    ended: Vec<u64>,
    /// Seconds that not every instance has delivered yet.
    pending: BTreeMap<u64, Pending>,
    pub warmup: Tick,
    /// Measured and drain ticks together.
    pub total: Tick,
    /// Seconds of the measured part, that is without drain.
    pub measured: Nanos,
    /// Successes of the measured part.
    pub ok_measured: u64,
    pub points: Vec<Point>,
}

struct Pending {
    tick: Tick,
    instances: usize,
}

impl Timeline {
    pub fn new(instances: u32) -> Timeline {
        Timeline {
            instances: instances as usize,
            ended: Vec::new(),
            pending: BTreeMap::new(),
            warmup: Tick { stage: Stage::Warmup, ..Tick::default() },
            total: Tick::default(),
            measured: Nanos::ZERO,
            ok_measured: 0,
            points: Vec::new(),
        }
    }

    /// Takes one tick of one instance. Returns the second as a whole once every instance has delivered it. A tick of
    /// no length is counted, and is no second.
    pub fn push(&mut self, tick: &Tick) -> Option<Point> {
        if tick.length() == Nanos::ZERO {
            self.count(tick);
            return None;
        }
        let pending =
            self.pending.entry(tick.index).or_insert_with(|| Pending { tick: Tick::default(), instances: 0 });
        pending.tick.merge(tick);
        pending.instances += 1;
        if pending.instances < self.expected(tick.index) {
            return None;
        }
        let whole = self.pending.remove(&tick.index).expect("it was just there");
        Some(self.close(&whole.tick))
    }

    /// An instance has delivered its last tick before the others: later seconds do not wait for it.
    pub fn instance_ended(&mut self, last_index: u64) -> Vec<Point> {
        self.ended.push(last_index);
        let (whole, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|(index, pending)| pending.instances >= self.expected(*index));
        self.pending = pending;
        self.close_all(whole)
    }

    /// Instances that have such a tick.
    fn expected(&self, index: u64) -> usize {
        self.instances - self.ended.iter().filter(|last| **last < index).count()
    }

    /// Takes the seconds that not every instance has delivered. To be called once, after the last tick.
    pub fn finish(&mut self) -> Vec<Point> {
        let rest = std::mem::take(&mut self.pending);
        self.close_all(rest)
    }

    fn close_all(&mut self, seconds: BTreeMap<u64, Pending>) -> Vec<Point> {
        seconds.into_values().map(|second| self.close(&second.tick)).collect()
    }

    fn close(&mut self, tick: &Tick) -> Point {
        self.count(tick);
        let point = Point::of(tick);
        self.points.push(point.clone());
        point
    }

    fn count(&mut self, tick: &Tick) {
        match tick.stage {
            Stage::Warmup => self.warmup.merge_second(tick),
            Stage::Measured => {
                self.measured += tick.length();
                self.ok_measured += tick.ok;
                self.total.merge_second(tick);
            }
            Stage::Drain => self.total.merge_second(tick),
        }
    }
}

/// One second of a run, as the series keeps it. Times in milliseconds, gauges at the second's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Start of the second, in seconds since the run's zero.
    pub t: f64,
    /// Its length in seconds; the last one is often shorter.
    pub length_s: f64,
    pub stage: Stage,
    pub requests: u64,
    pub ok: u64,
    pub errors: u64,
    /// Successes per second.
    pub rate: f64,
    /// Of the response times of successes.
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    pub in_flight: u64,
    pub queue: u64,
    pub queue_peak: u64,
    pub open: u64,
    pub idle: u64,
    pub conns_opened: u64,
    pub conns_closed: u64,
    pub cpu_s: f64,
    /// Means of the phases.
    pub phases: PhaseMeans,
}

/// Mean of each phase over the successes, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseMeans {
    pub lag: f64,
    pub wait: f64,
    pub dns: f64,
    pub connect: f64,
    pub tls: f64,
    pub send: f64,
    pub server: f64,
    pub receive: f64,
}

impl Point {
    fn of(tick: &Tick) -> Point {
        let response = &tick.times.response;
        Point {
            t: tick.start.as_secs_f64(),
            length_s: tick.length().as_secs_f64(),
            stage: tick.stage,
            requests: tick.requests,
            ok: tick.ok,
            errors: tick.failed(),
            rate: per_second(tick.ok, tick.length()),
            p50: response.percentile(50.0).as_millis_f64(),
            p99: response.percentile(99.0).as_millis_f64(),
            max: response.max().as_millis_f64(),
            in_flight: tick.gauges_end.in_flight,
            queue: tick.gauges_end.queue,
            queue_peak: tick.gauges_peak.queue,
            open: tick.gauges_end.open,
            idle: tick.gauges_end.idle,
            conns_opened: tick.counters.opened,
            conns_closed: tick.counters.closed,
            cpu_s: tick.counters.cpu.as_secs_f64(),
            phases: PhaseMeans::of(&tick.times),
        }
    }
}

impl PhaseMeans {
    fn of(times: &Distributions) -> PhaseMeans {
        let mean = |phase| times.phase(phase).mean_ms();
        PhaseMeans {
            lag: mean(Phase::Lag),
            wait: mean(Phase::Wait),
            dns: mean(Phase::Dns),
            connect: mean(Phase::Connect),
            tls: mean(Phase::Tls),
            send: mean(Phase::Send),
            server: mean(Phase::Server),
            receive: mean(Phase::Receive),
        }
    }
}

/// Zero for no time at all.
pub(crate) fn per_second(n: u64, length: Nanos) -> f64 {
    if length == Nanos::ZERO { 0.0 } else { n as f64 / length.as_secs_f64() }
}
