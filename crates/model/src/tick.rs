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
    /// The end of the tick. Nominal (whole seconds, the end of the warm-up, the stop), so that instances agree; the
    /// last one of a run that stops by count ends when its last request is done, for rates are taken over ticks.
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
    /// Successes that were done during the measured part, whenever they were intended.
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
            Stage::Warmup => {
                // Stragglers: done while the measured load was on, so they are part of its rate as much as those that
                // the drain will do are not.
                if tick.length() == Nanos::ZERO {
                    self.ok_measured += tick.ok;
                }
                self.warmup.merge_second(tick);
            }
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

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{Dial, Kind};

    const SECOND: Nanos = Nanos::from_secs(1);

    fn sample_from((at, spans, failure, status): (u64, [u64; 8], Option<Failure>, u16)) -> Sample {
        let [lag, wait, dns, connect, tls, send, server, receive] = spans;
        let started = at + lag;
        let acquired = started + wait + dns + connect + tls;
        Sample {
            intended: Nanos(at),
            started: Nanos(started),
            acquired: Nanos(acquired),
            sent: Nanos(acquired + send),
            first_byte: Nanos(acquired + send + server),
            done: Nanos(acquired + send + server + receive),
            dial: Dial { dns: Nanos(dns), connect: Nanos(connect), tls: Nanos(tls) },
            outcome: failure.map_or(Ok(()), Err),
            status,
            reused: dns + connect + tls == 0,
            retries: (at % 2) as u8,
            request: 0,
            bytes_in: server % 1_000,
            bytes_out: send % 100,
        }
    }

    fn ok_at(at: Nanos, took: Nanos) -> Sample {
        sample_from((at.0, [0, 0, 0, 0, 0, 0, took.0, 0], None, 200))
    }

    fn failure() -> impl Strategy<Value = Option<Failure>> {
        prop_oneof![
            4 => Just(None),
            1 => Just(Some(Failure::new(Phase::Wait, Kind::PendingLimit))),
            1 => Just(Some(Failure::new(Phase::Server, Kind::Timeout))),
        ]
    }

    fn span_ns() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 0..1_000_u64, 0..100_000_000_u64]
    }

    fn sample() -> impl Strategy<Value = Sample> {
        let spans = proptest::array::uniform8(span_ns());
        let status = prop_oneof![Just(0_u16), Just(200), Just(503)];
        (0..10_000_000_000_u64, spans, failure(), status).prop_map(sample_from)
    }

    /// Ticks of different seconds, in random order of their contents.
    fn tick() -> impl Strategy<Value = Tick> {
        (vec(sample(), 0..20), 0..1_000_u64, proptest::array::uniform4(0..100_u64)).prop_map(
            |(samples, index, [in_flight, queue, open, idle])| {
                let gauges = Gauges { in_flight, queue, open, idle };
                let mut tick = Tick {
                    index,
                    start: Nanos::from_secs(index),
                    end: Nanos::from_secs(index + 1),
                    gauges_end: gauges,
                    gauges_peak: gauges,
                    counters: Counters { opened: open, cpu: Nanos(queue), ..Counters::default() },
                    ..Tick::default()
                };
                samples.iter().for_each(|sample| tick.add(sample));
                tick
            },
        )
    }

    fn merged(merge: fn(&mut Tick, &Tick), parts: &[&Tick]) -> Tick {
        parts.iter().fold(Tick::default(), |mut whole, part| {
            merge(&mut whole, part);
            whole
        })
    }

    fn reading(end: Nanos) -> Reading {
        Reading { end, ..Reading::default() }
    }

    proptest! {
        // A tick has eleven histograms, and comparing them is slow without optimisation.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn merges_are_associative_and_commutative(a in tick(), b in tick(), c in tick()) {
            prop_assume!(a.index != b.index && b.index != c.index && a.index != c.index);
            for merge in [Tick::merge, Tick::merge_second] {
                prop_assert_eq!(merged(merge, &[&a, &b]), merged(merge, &[&b, &a]));
                let (ab, bc) = (merged(merge, &[&a, &b]), merged(merge, &[&b, &c]));
                prop_assert_eq!(merged(merge, &[&ab, &c]), merged(merge, &[&a, &bc]));
            }
        }

        #[test]
        fn a_fold_equals_counting_one_by_one(samples in vec(sample(), 0..400)) {
            let (mut fold, mut singly) = (Fold::new(Nanos::ZERO), Tick::default());
            for sample in &samples {
                fold.add(sample);
                singly.add(sample);
            }
            singly.end = SECOND;
            prop_assert_eq!(fold.roll(&reading(SECOND)), singly);
        }

        #[test]
        fn a_run_is_the_merge_of_its_ticks(samples in vec(sample(), 0..400), seconds in 1..10_usize) {
            let (mut whole, mut parts) = (Fold::new(Nanos::ZERO), Fold::new(Nanos::ZERO));
            let mut timeline = Timeline::new(1);
            for (i, chunk) in samples.chunks(samples.len() / seconds + 1).enumerate() {
                for sample in chunk {
                    whole.add(sample);
                    parts.add(sample);
                }
                timeline.push(&parts.roll(&reading(Nanos::from_secs(i as u64 + 1))));
            }
            let whole = whole.roll(&reading(timeline.total.end));
            prop_assert_eq!(timeline.points.iter().map(|p| p.requests).sum::<u64>(), samples.len() as u64);
            prop_assert_eq!(timeline.total, whole);
        }

        #[test]
        fn phases_sum_to_the_response(samples in vec(sample(), 0..100)) {
            let mut tick = Tick::default();
            samples.iter().for_each(|sample| tick.add(sample));
            let phases: u128 = tick.times.phases.iter().map(Histogram::sum_ns).sum();
            prop_assert_eq!(phases, tick.times.response.sum_ns());
        }
    }

    #[test]
    fn failures_are_counted_and_keep_out_of_the_latencies() {
        let timeout = Failure::new(Phase::Server, Kind::Timeout);
        let mut tick = Tick::default();
        tick.add(&ok_at(Nanos::ZERO, Nanos::from_millis(5)));
        tick.add(&sample_from((0, [0, 0, 0, 0, 0, 0, 20_000_000_000, 0], Some(timeout), 0)));
        assert_eq!((tick.requests, tick.ok, tick.failed()), (2, 1, 1));
        assert_eq!(tick.errors, BTreeMap::from([(timeout, 1)]));
        assert_eq!(tick.status, BTreeMap::from([(200, 1)]));
        assert_eq!(tick.times.response.max(), Nanos::from_millis(5));
        assert_eq!(tick.times.failed.percentile(50.0), Nanos::from_secs(20));
    }

    #[test]
    fn a_request_without_a_connection_says_nothing_of_reuse() {
        let mut tick = Tick::default();
        for phase in [Phase::Wait, Phase::Connect, Phase::Send] {
            tick.add(&sample_from((0, [0; 8], Some(Failure::new(phase, Kind::Reset)), 0)));
        }
        assert_eq!((tick.assigned, tick.reused), (1, 1));
    }

    #[test]
    fn requests_of_the_warm_up_that_end_late_stay_its_own() {
        let mut fold = Fold::new(SECOND);
        fold.add(&ok_at(Nanos::ZERO, Nanos::from_millis(1)));
        let warm = fold.roll(&reading(SECOND));
        fold.add(&ok_at(Nanos::from_millis(999), Nanos::from_millis(2)));
        fold.add(&ok_at(SECOND, Nanos::from_millis(3)));
        let measured = fold.roll(&reading(Nanos::from_secs(2)));
        let late = fold.stragglers().expect("one request was late");
        let facts = |tick: &Tick| (tick.stage, tick.requests, tick.times.response.max());
        assert_eq!(facts(&warm), (Stage::Warmup, 1, Nanos::from_millis(1)));
        assert_eq!(facts(&late), (Stage::Warmup, 1, Nanos::from_millis(2)));
        assert_eq!(facts(&measured), (Stage::Measured, 1, Nanos::from_millis(3)));

        let mut timeline = Timeline::new(1);
        for tick in [&warm, &measured, &late] {
            timeline.push(tick);
        }
        assert_eq!((timeline.warmup.requests, timeline.total.requests, timeline.points.len()), (2, 1, 2));
        assert_eq!(timeline.warmup.length(), SECOND);
    }

    #[test]
    fn counters_are_differences_and_peaks_begin_anew() {
        let mut fold = Fold::new(Nanos::ZERO);
        let opened = |opened| Counters { opened, ..Counters::default() };
        let open = |open| Gauges { open, ..Gauges::default() };
        fold.observe(open(9));
        let first =
            fold.roll(&Reading { end: SECOND, counters: opened(10), gauges: open(3), draining: false });
        let second = fold.roll(&Reading {
            end: Nanos::from_secs(2),
            counters: opened(14),
            gauges: open(2),
            draining: false,
        });
        assert_eq!((first.counters.opened, first.gauges_peak.open, first.gauges_end.open), (10, 9, 3));
        assert_eq!((second.counters.opened, second.gauges_peak.open, second.index), (4, 2, 1));
    }

    /// Ticks of one second each, with one request and one connection.
    fn ticks(seconds: u64) -> Vec<Tick> {
        let mut fold = Fold::new(Nanos::ZERO);
        (0..seconds)
            .map(|second| {
                fold.add(&ok_at(Nanos::from_secs(second), Nanos::from_millis(1)));
                let gauges = Gauges { open: 1, ..Gauges::default() };
                fold.roll(&Reading { end: Nanos::from_secs(second + 1), gauges, ..Reading::default() })
            })
            .collect()
    }

    #[test]
    fn a_second_is_whole_when_every_instance_has_delivered_it() {
        let (one, other) = (ticks(2), ticks(2));
        let mut timeline = Timeline::new(2);
        assert_eq!(timeline.push(&one[0]), None);
        assert_eq!(timeline.push(&one[1]), None);
        let first = timeline.push(&other[0]).expect("both delivered the first second");
        let second = timeline.push(&other[1]).expect("both delivered the second one");
        assert_eq!((first.t, first.requests, first.open), (0.0, 2, 2));
        assert_eq!((second.t, second.requests, second.rate), (1.0, 2, 2.0));
        assert_eq!((timeline.total.requests, timeline.total.gauges_peak.open), (4, 2));
        assert_eq!(timeline.measured, Nanos::from_secs(2));
    }

    #[test]
    fn later_seconds_do_not_wait_for_an_instance_that_has_ended() {
        let (short, long, slow) = (ticks(1), ticks(3), ticks(3));
        let mut timeline = Timeline::new(3);
        timeline.push(&short[0]);
        long.iter().for_each(|tick| assert_eq!(timeline.push(tick), None));
        timeline.push(&slow[0]).expect("all three delivered the first second");
        assert_eq!(timeline.push(&slow[1]), None, "nobody said that one has ended");
        let freed = timeline.instance_ended(0);
        assert_eq!(freed.iter().map(|p| (p.t, p.requests)).collect::<Vec<_>>(), [(1.0, 2)]);
        assert_eq!(timeline.push(&slow[2]).map(|p| p.requests), Some(2));
        assert_eq!((timeline.finish(), timeline.total.requests), (vec![], 7));
    }

    #[test]
    fn what_not_every_instance_delivered_is_counted_at_the_end() {
        let mut timeline = Timeline::new(2);
        ticks(2).iter().for_each(|tick| assert_eq!(timeline.push(tick), None));
        assert_eq!(timeline.finish().len(), 2);
        assert_eq!(timeline.total.requests, 2);
    }

    #[test]
    fn a_drain_counts_requests_but_not_towards_the_rate() {
        let mut fold = Fold::new(Nanos::ZERO);
        let mut timeline = Timeline::new(1);
        fold.add(&ok_at(Nanos::ZERO, Nanos::from_millis(500)));
        timeline.push(&fold.roll(&reading(SECOND)));
        fold.add(&ok_at(Nanos::from_millis(900), Nanos::from_millis(700)));
        let drain = fold.roll(&Reading { draining: true, ..reading(Nanos::from_millis(1_600)) });
        timeline.push(&drain);
        assert_eq!(drain.stage, Stage::Drain);
        assert_eq!((timeline.total.requests, timeline.ok_measured, timeline.measured), (2, 1, SECOND));
    }
}
