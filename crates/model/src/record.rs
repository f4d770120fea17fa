//! A run as it is written down: the JSON schema `weir.run/1`, out and in.
//!
//! Filled once, from a plan and the folded ticks, and then read: the text report, gates, comparisons and charts all
//! start from a `Record`, so that a stored run renders as the live one did. Decides nothing but definitions:
//!
//! - `requests`: everything that was started, answered or not, until the last one in flight was done.
//! - `ok`: a complete answer with a status below 400. `errors`: all the others.
//! - `duration_s`: how long the load was on, from the end of the warm-up. For a run that stops by duration, or is
//!   interrupted, that is until the stop; `drain_s` is the time it then took for requests in flight to end. For a run
//!   that stops by count it lasts until the last request is done, and there is no drain.
//! - `rate`: successes that were done within `duration_s`, per second. That is hey's and oha's `Requests/sec` where
//!   every request succeeds, and does not sink when the last request takes long.
//! - `rate_asked`: what the schedule asked for on average over `duration_s`; null in a closed loop.
//! - `reuse_ratio`: of the requests that got a connection, the share that got one which had served before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gates::{Gate, GateResult};
use crate::plan::{Pace, Plan, Rate};
use crate::sample::Phase;
use crate::stats::Summary;
use crate::tick::{Distributions, Point, Tick, Timeline, per_second};
use crate::units::Nanos;
use crate::verdict::{Evidence, Verdict};

pub const SCHEMA: &str = "weir.run/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `weir.run/1`.
    pub schema: String,
    /// RFC 3339.
    pub started_at: String,
    /// Ctrl-C came before the run was over.
    pub interrupted: bool,
    pub plan: Plan,
    pub host: Host,
    pub verdict: Verdict,
    pub totals: Totals,
    /// Complete answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Failed requests by `phase/kind`.
    pub errors: BTreeMap<String, u64>,
    pub latency: Latency,
    pub phases: Phases,
    /// Null if there was no warm-up.
    pub warmup: Option<Warmup>,
    pub series: Vec<Point>,
    pub sockets: Vec<Value>,
    pub findings: Vec<Value>,
    pub gates: Vec<GateResult>,
}

/// The machine that offered the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    pub name: String,
    pub os: String,
    pub kernel: String,
    pub arch: String,
    pub cpu: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Soft limit on open files.
    pub files_max: u64,
    /// The io backend that ran: `uring` or `mio`.
    pub io: String,
    /// Version of Weir.
    pub weir: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub requests: u64,
    pub ok: u64,
    pub errors: u64,
    /// Heads and bodies, without TLS framing.
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub duration_s: f64,
    pub drain_s: f64,
    pub rate_asked: Option<f64>,
    pub rate: f64,
    pub conns_opened: u64,
    pub conns_closed: u64,
    pub dials_failed: u64,
    /// Full and resumed ones.
    pub tls_handshakes: u64,
    pub tls_resumed: u64,
    /// Requests on a connection that had served before.
    pub reused: u64,
    /// From 0 to 1; 0 if no request got a connection.
    pub reuse_ratio: f64,
    /// Attempts after the first.
    pub retries: u64,
    /// Peaks are sums over the instances of each one's peak within a second.
    pub peak_conns: u64,
    pub peak_queue: u64,
    pub peak_in_flight: u64,
    pub cpu_s: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// From the intended start to the last byte, of successes.
    pub response: Summary,
    /// From the connection to the last byte, of successes.
    pub service: Summary,
    /// From the intended start to the end, of failures.
    #[serde(default)]
    pub failed: Summary,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    pub lag: Summary,
    pub wait: Summary,
    pub dns: Summary,
    pub connect: Summary,
    pub tls: Summary,
    pub send: Summary,
    pub server: Summary,
    pub receive: Summary,
}

/// What happened before the run proper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Warmup {
    pub requests: u64,
    pub ok: u64,
    pub errors: u64,
    pub duration_s: f64,
    pub conns_opened: u64,
    pub tls_handshakes: u64,
    pub response: Summary,
}

/// What a record is made of, beside the ticks.
#[derive(Clone, Debug)]
pub struct Header {
    pub started_at: String,
    pub interrupted: bool,
    pub plan: Plan,
    pub host: Host,
}

impl Record {
    /// Makes the record of a run that is over (`Timeline::finish` was called), with its verdict and its gates.
    pub fn build(header: Header, timeline: &Timeline, gates: &[Gate]) -> Record {
        let Header { started_at, interrupted, plan, host } = header;
        let total = &timeline.total;
        let totals = Totals::of(&plan, timeline);
        let verdict = Verdict::judge(&Evidence::of(&plan, interrupted, &totals, total));
        let mut record = Record {
            schema: SCHEMA.to_owned(),
            started_at,
            interrupted,
            plan,
            host,
            verdict,
            totals,
            status: total.status.clone(),
            errors: total.errors.iter().map(|(failure, &n)| (failure.to_string(), n)).collect(),
            latency: Latency::of(&total.times),
            phases: Phases::of(&total.times),
            warmup: Warmup::of(&timeline.warmup),
            series: timeline.points.clone(),
            sockets: Vec::new(),
            findings: Vec::new(),
            gates: Vec::new(),
        };
        record.gates = gates.iter().map(|gate| gate.check(&record)).collect();
        record
    }

    /// True if no gate failed.
    pub fn gates_ok(&self) -> bool {
        self.gates.iter().all(|gate| gate.ok)
    }
}

impl Totals {
    fn of(plan: &Plan, timeline: &Timeline) -> Totals {
        let Timeline { total, measured, ok_measured, .. } = timeline;
        let Tick { counters, gauges_peak, .. } = total;
        Totals {
            requests: total.requests,
            ok: total.ok,
            errors: total.failed(),
            bytes_in: total.bytes_in,
            bytes_out: total.bytes_out,
            duration_s: measured.as_secs_f64(),
            drain_s: total.length().saturating_sub(*measured).as_secs_f64(),
            rate_asked: rate_asked(&plan.pace, *measured),
            rate: per_second(*ok_measured, *measured),
            conns_opened: counters.opened,
            conns_closed: counters.closed,
            dials_failed: counters.dials_failed,
            tls_handshakes: counters.tls_full + counters.tls_resumed,
            tls_resumed: counters.tls_resumed,
            reused: total.reused,
            reuse_ratio: share(total.reused, total.assigned),
            retries: total.retries,
            peak_conns: gauges_peak.open,
            peak_queue: gauges_peak.queue,
            peak_in_flight: gauges_peak.in_flight,
            cpu_s: counters.cpu.as_secs_f64(),
        }
    }
}

impl Latency {
    fn of(times: &Distributions) -> Latency {
        Latency {
            response: times.response.summary(),
            service: times.service.summary(),
            failed: times.failed.summary(),
        }
    }
}

impl Phases {
    fn of(times: &Distributions) -> Phases {
        let summary = |phase| times.phase(phase).summary();
        Phases {
            lag: summary(Phase::Lag),
            wait: summary(Phase::Wait),
            dns: summary(Phase::Dns),
            connect: summary(Phase::Connect),
            tls: summary(Phase::Tls),
            send: summary(Phase::Send),
            server: summary(Phase::Server),
            receive: summary(Phase::Receive),
        }
    }

    pub fn phase(&self, phase: Phase) -> &Summary {
        match phase {
            Phase::Lag => &self.lag,
            Phase::Wait => &self.wait,
            Phase::Dns => &self.dns,
            Phase::Connect => &self.connect,
            Phase::Tls => &self.tls,
            Phase::Send => &self.send,
            Phase::Server => &self.server,
            Phase::Receive => &self.receive,
        }
    }
}

impl Warmup {
    fn of(tick: &Tick) -> Option<Warmup> {
        (tick.end > Nanos::ZERO).then(|| Warmup {
            requests: tick.requests,
            ok: tick.ok,
            errors: tick.failed(),
            duration_s: tick.length().as_secs_f64(),
            conns_opened: tick.counters.opened,
            tls_handshakes: tick.counters.tls_full + tick.counters.tls_resumed,
            response: tick.times.response.summary(),
        })
    }
}

/// Mean rate that the schedule asks for over so much time.
fn rate_asked(pace: &Pace, duration: Nanos) -> Option<f64> {
    match pace {
        Pace::Closed { .. } => None,
        Pace::Open { rate: Rate::Constant { per_s }, .. } => Some(*per_s),
        Pace::Open { rate: Rate::Ramp { from_per_s, to_per_s, over }, .. } => {
            Some(ramp_mean(*from_per_s, *to_per_s, over.as_secs_f64(), duration.as_secs_f64()))
        }
    }
}

/// Mean of a rate that goes linearly from one value to another within `over_s` and then stays.
fn ramp_mean(from: f64, to: f64, over_s: f64, duration_s: f64) -> f64 {
    if duration_s <= 0.0 || over_s <= 0.0 {
        return to;
    }
    let ramped_s = duration_s.min(over_s);
    let reached = from + (to - from) * ramped_s / over_s;
    ((from + reached) / 2.0 * ramped_s + to * (duration_s - ramped_s)) / duration_s
}

pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
