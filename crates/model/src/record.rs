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
//! - `rate`: successes that were done within `duration_s`, per second, whether the warm-up started them or not. That is hey's and oha's `Requests/sec` where
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
        let verdict = Verdict::judge(&Evidence::of(&plan, interrupted, &totals, timeline));
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::{Arrival, Io, NetOptions, Request, Scheme, Stop, Tls, TlsVersion};
    use crate::pool::Policy;
    use crate::sample::{Dial, Failure, Kind, Sample};
    use crate::tick::{Counters, Fold, Gauges, Reading};

    pub(crate) fn plan(pace: Pace, stop: Stop) -> Plan {
        Plan {
            requests: vec![Request {
                method: "GET".to_owned(),
                scheme: Scheme::Http,
                host: "127.0.0.1".to_owned(),
                port: 8080,
                path: "/".to_owned(),
                headers: Vec::new(),
                body: None,
                weight: 1,
            }],
            pace,
            stop,
            warmup: Nanos::ZERO,
            timeout: Nanos::from_secs(20),
            profile: "fixed".to_owned(),
            pool: Policy { max_conns: Some(2), ..Policy::default() },
            instances: 1,
            tls: Tls {
                verify: true,
                cacert: None,
                cert: None,
                key: None,
                resumption: true,
                min_version: TlsVersion::V1_2,
                max_version: TlsVersion::V1_3,
            },
            net: NetOptions { io: Io::Auto, connect_to: None, unix_socket: None, local_addrs: Vec::new() },
            seed: 1,
            gates: Vec::new(),
        }
    }

    pub(crate) fn header(plan: Plan) -> Header {
        Header {
            started_at: "2026-01-02T03:04:05Z".to_owned(),
            interrupted: false,
            plan,
            host: Host::default(),
        }
    }

    pub(crate) fn by_count(requests: u64) -> Stop {
        Stop { requests: Some(requests), duration: None }
    }

    /// Twenty requests by two workers on two connections: the first two dial, the last one fails.
    pub(crate) fn small_run() -> Timeline {
        let mut fold = Fold::new(Nanos::ZERO);
        for i in 0..20 {
            fold.add(&sample(i));
        }
        let gauges = Gauges { open: 2, idle: 2, ..Gauges::default() };
        fold.observe(Gauges { in_flight: 2, queue: 1, open: 2, idle: 0 });
        let counters = Counters {
            started: 20,
            opened: 2,
            tls_full: 1,
            tls_resumed: 1,
            cpu: Nanos::from_millis(20),
            ..Counters::default()
        };
        let mut timeline = Timeline::new(1);
        timeline.push(&fold.roll(&Reading { end: Nanos::from_secs(1), gauges, counters, draining: false }));
        timeline
    }

    /// Request `i` of 0 to 19: `i + 1` ms at the server, and 1 ms each of dns, connect and tls on a new connection.
    fn sample(i: u64) -> Sample {
        let at = Nanos::from_millis(i * 10);
        let one = Nanos::from_millis(u64::from(i < 2));
        let dial = Dial { dns: one, connect: one, tls: one };
        let acquired = at + dial.total();
        let done = acquired + Nanos::from_millis(i + 1);
        let failed = i == 19;
        Sample {
            intended: at,
            started: at,
            acquired,
            sent: acquired,
            first_byte: done,
            done,
            dial,
            outcome: if failed { Err(Failure::new(Phase::Server, Kind::Status5xx)) } else { Ok(()) },
            status: if failed { 503 } else { 200 },
            reused: i >= 2,
            retries: 0,
            request: 0,
            bytes_in: 100,
            bytes_out: 50,
        }
    }

    pub(crate) fn small_record() -> Record {
        let plan = plan(Pace::Closed { workers: 2 }, by_count(20));
        let gates = ["p(99)<200ms", "errors==0"].map(|expr| Gate::parse(expr).unwrap());
        Record::build(header(plan), &small_run(), &gates)
    }

    #[test]
    fn a_record_is_written_as_the_schema_says() {
        insta::assert_snapshot!(shape_of(&small_record()));
    }

    /// The JSON without the plan, which others define, and the payloads, whose bytes are the compressor's choice.
    fn shape_of(record: &Record) -> String {
        let plan = serde_json::to_string_pretty(&record.plan).unwrap().replace('\n', "\n  ");
        let text = serde_json::to_string_pretty(record).unwrap().replace(&plan, "\"…\"");
        let lines = text.lines().map(|line| match line.split_once("\"hdr\": ") {
            Some((indent, _)) => format!("{indent}\"hdr\": \"…\""),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_record_is_read_back_as_it_was() {
        let record = small_record();
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }

    #[test]
    fn gates_on_a_record_that_was_read_back_give_the_same() {
        let record = small_record();
        let back: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        for expr in ["p(37)<1us", "wait.p(99)<1ns", "service.p(99.9)>1h", "avg<1ns", "reuse_ratio>1"] {
            let gate = Gate::parse(expr).unwrap();
            assert_eq!(gate.check(&back), gate.check(&record));
        }
    }

    #[test]
    fn a_run_without_ticks_has_a_record_too() {
        let plan = plan(Pace::Closed { workers: 2 }, by_count(20));
        let record = Record::build(header(plan), &Timeline::new(1), &[Gate::parse("p(50)<1s").unwrap()]);
        assert_eq!((record.totals.requests, record.totals.rate, record.warmup.is_none()), (0, 0.0, true));
        assert_eq!((record.gates_ok(), record.gates[0].actual.as_str()), (false, "no successful request"));
    }

    #[test]
    fn a_ramp_asks_for_its_mean_and_then_for_its_end() {
        let check = |over_s, duration_s, expected: f64| {
            let found = ramp_mean(100.0, 300.0, over_s, duration_s);
            assert!((found - expected).abs() < 1e-9, "over {over_s} s of {duration_s} s: {found}");
        };
        check(10.0, 10.0, 200.0);
        check(10.0, 5.0, 150.0);
        check(10.0, 20.0, 250.0);
        check(0.0, 20.0, 300.0);
        check(10.0, 0.0, 300.0);
    }

    #[test]
    fn only_an_open_loop_asks_for_a_rate() {
        let rate = Rate::Constant { per_s: 50.0 };
        assert_eq!(rate_asked(&Pace::Closed { workers: 1 }, Nanos::from_secs(1)), None);
        assert_eq!(
            rate_asked(&Pace::Open { rate, arrival: Arrival::Poisson }, Nanos::from_secs(1)),
            Some(50.0)
        );
    }
}
