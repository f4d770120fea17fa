//! Whether a run measured what it was asked to measure. Judges the generator, never the server: a slow server is a
//! result, a late generator is a mistake.
//!
//! Each rule looks at the evidence and gives at most one reason. The run is as good as its worst reason.

use serde::{Deserialize, Serialize};

use crate::plan::{Arrival, Pace, Plan};
use crate::pool::DialRace;
use crate::record::Totals;
use crate::sample::{Kind, Phase};
use crate::tick::{Tick, Timeline};
use crate::units::{format_count, format_ms, format_percent, format_rate};

/// Fewer requests than this say nothing about a distribution: one outlier in ten is its 90th percentile.
pub const REQUESTS_MIN: u64 = 10;

/// Lag below this is the noise of a scheduler: pacing on an idle machine stays under 100 µs.
pub const LAG_NOISE_MS: f64 = 0.2;

/// When 99 of 100 starts are later than a tenth of the median response, the response times above the median carry
/// the generator's own lateness in their second digit.
pub const LAG_SUSPECT_SHARE: f64 = 0.1;

/// When half of the starts are later than half the median response, most of what was measured is the generator.
pub const LAG_INVALID_SHARE: f64 = 0.5;

/// A thread that is busier than this has no time to be on time: by Little's law its own queue grows beyond ten.
pub const CPU_SUSPECT_SHARE: f64 = 0.9;

/// Below this the load was another one than asked for, though similar.
pub const RATE_SUSPECT_SHARE: f64 = 0.95;

/// Below this a comparison with a run at the asked rate misleads.
pub const RATE_INVALID_SHARE: f64 = 0.8;

/// A schedule's progress is judged once it has run for a second; until then one late start decides it.
pub const SCHEDULE_MIN_S: f64 = 1.0;

/// Standard deviations that independent (Poisson) arrivals may fall short of their mean: 1 run in 740.
pub const POISSON_SIGMAS: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Valid,
    Suspect,
    Invalid,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Status::Valid => "VALID",
            Status::Suspect => "SUSPECT",
            Status::Invalid => "INVALID",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub status: Status,
    /// Empty for a valid run.
    pub reasons: Vec<Reason>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable, kebab-case.
    pub id: String,
    /// What this reason alone would make of the run.
    pub status: Status,
    /// A sentence with the figures.
    pub text: String,
}

/// What the rules look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    pub requests: u64,
    pub ok: u64,
    /// Handed to the pool, but neither done nor still in flight. The warm-up counts here too.
    pub lost: u64,
    /// The commonest failure and how many had it.
    pub commonest_error: Option<(String, u64)>,
    pub open: Option<OpenLoop>,
    pub lag_p50_ms: f64,
    pub lag_p99_ms: f64,
    pub response_p50_ms: f64,
    /// CPU time over what its threads could have had, 0 to 1.
    pub cpu_share: f64,
    /// Connections that a closed loop must have opened at once, if the pool says how many.
    pub conns_asked: Option<u64>,
    pub conns_peak: u64,
    /// Requests that failed for want of ports or files on this machine.
    pub out_of_ports: u64,
    pub out_of_files: u64,
    /// Times above 1 h.
    pub clamped: u64,
}

/// How far a schedule was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpenLoop {
    pub rate_asked: f64,
    /// Requests started per second.
    pub rate_started: f64,
    /// The least share of `rate_asked` that chance explains, 1 for evenly spaced arrivals.
    pub share_by_chance: f64,
}

impl Verdict {
    pub fn judge(evidence: &Evidence) -> Verdict {
        let reasons: Vec<Reason> = RULES.iter().filter_map(|rule| rule(evidence)).collect();
        let status = reasons.iter().map(|reason| reason.status).max().unwrap_or(Status::Valid);
        Verdict { status, reasons }
    }
}

type Rule = fn(&Evidence) -> Option<Reason>;

const RULES: [Rule; 11] = [
    no_requests,
    all_failed,
    samples_lost,
    too_few_requests,
    rate_not_reached,
    generator_lag,
    generator_cpu,
    conns_not_reached,
    out_of_ports,
    out_of_files,
    times_clamped,
];

fn reason(id: &str, status: Status, text: String) -> Option<Reason> {
    Some(Reason { id: id.to_owned(), status, text })
}

fn no_requests(e: &Evidence) -> Option<Reason> {
    if e.requests > 0 {
        return None;
    }
    reason("no-requests", Status::Invalid, "no request was sent".to_owned())
}

fn all_failed(e: &Evidence) -> Option<Reason> {
    if e.requests == 0 || e.ok > 0 {
        return None;
    }
    let mostly = match &e.commonest_error {
        Some((error, n)) => format!(", {} of them by {error}", format_count(*n)),
        None => String::new(),
    };
    let text = format!("all {} requests failed{mostly}", format_count(e.requests));
    reason("all-failed", Status::Invalid, text)
}

fn samples_lost(e: &Evidence) -> Option<Reason> {
    if e.lost == 0 {
        return None;
    }
    let text = format!("{} requests were started and never counted", format_count(e.lost));
    reason("samples-lost", Status::Invalid, text)
}

fn too_few_requests(e: &Evidence) -> Option<Reason> {
    if e.requests == 0 || e.requests >= REQUESTS_MIN {
        return None;
    }
    let text = format!("{} requests are too few for a distribution; send {REQUESTS_MIN} or more", e.requests);
    reason("too-few-requests", Status::Suspect, text)
}

fn rate_not_reached(e: &Evidence) -> Option<Reason> {
    let open = e.open.filter(|open| open.rate_asked > 0.0)?;
    let share = open.rate_started / open.rate_asked;
    let status = match share {
        s if s < RATE_INVALID_SHARE * open.share_by_chance => Status::Invalid,
        s if s < RATE_SUSPECT_SHARE * open.share_by_chance => Status::Suspect,
        _ => return None,
    };
    let text = format!(
        "started {} requests/s of the {} asked for ({})",
        format_rate(open.rate_started),
        format_rate(open.rate_asked),
        format_percent(share)
    );
    reason("rate-not-reached", status, text)
}

fn generator_lag(e: &Evidence) -> Option<Reason> {
    e.open?;
    let late = |lag_ms: f64, share: f64| lag_ms > LAG_NOISE_MS && lag_ms > share * e.response_p50_ms;
    let (status, which, lag_ms) = if late(e.lag_p50_ms, LAG_INVALID_SHARE) {
        (Status::Invalid, "p50", e.lag_p50_ms)
    } else if late(e.lag_p99_ms, LAG_SUSPECT_SHARE) {
        (Status::Suspect, "p99", e.lag_p99_ms)
    } else {
        return None;
    };
    let text = format!(
        "the generator itself started requests late: lag {which} is {} at a median response time of {}",
        format_ms(lag_ms),
        format_ms(e.response_p50_ms)
    );
    reason("generator-lag", status, text)
}

fn generator_cpu(e: &Evidence) -> Option<Reason> {
    if e.cpu_share <= CPU_SUSPECT_SHARE {
        return None;
    }
    let text = format!(
        "the generator's threads were busy {} of the time, so the generator may be what limits; add instances",
        format_percent(e.cpu_share)
    );
    reason("generator-cpu", Status::Suspect, text)
}

fn conns_not_reached(e: &Evidence) -> Option<Reason> {
    let asked = e.conns_asked.filter(|&asked| e.conns_peak < asked)?;
    let text = format!(
        "at most {} connections were open of the {} asked for",
        format_count(e.conns_peak),
        format_count(asked)
    );
    reason("conns-not-reached", Status::Suspect, text)
}

fn out_of_ports(e: &Evidence) -> Option<Reason> {
    if e.out_of_ports == 0 {
        return None;
    }
    let text = format!(
        "{} requests failed because this machine had no free port left; use more source addresses or fewer connections",
        format_count(e.out_of_ports)
    );
    reason("out-of-ports", Status::Suspect, text)
}

fn out_of_files(e: &Evidence) -> Option<Reason> {
    if e.out_of_files == 0 {
        return None;
    }
    let text = format!(
        "{} requests failed because this process had no file descriptor left; raise `ulimit -n`",
        format_count(e.out_of_files)
    );
    reason("out-of-files", Status::Suspect, text)
}

fn times_clamped(e: &Evidence) -> Option<Reason> {
    if e.clamped == 0 {
        return None;
    }
    let text =
        format!("{} response times were above 1 h and count as 1 h in percentiles", format_count(e.clamped));
    reason("times-clamped", Status::Suspect, text)
}

impl Evidence {
    pub fn of(plan: &Plan, interrupted: bool, totals: &Totals, timeline: &Timeline) -> Evidence {
        let total = &timeline.total;
        let times = &total.times;
        let lag = times.phase(Phase::Lag);
        Evidence {
            requests: totals.requests,
            ok: totals.ok,
            lost: lost(timeline),
            commonest_error: commonest_error(total),
            open: open_loop(plan, interrupted, totals, total),
            lag_p50_ms: lag.percentile(50.0).as_millis_f64(),
            lag_p99_ms: lag.percentile(99.0).as_millis_f64(),
            response_p50_ms: times.response.percentile(50.0).as_millis_f64(),
            cpu_share: cpu_share(plan, totals),
            conns_asked: conns_asked(plan, totals.requests),
            conns_peak: totals.peak_conns,
            out_of_ports: failed_by(total, Kind::NoPorts),
            out_of_files: failed_by(total, Kind::NoFiles),
            clamped: times.response.clamped() + times.failed.clamped(),
        }
    }
}

fn lost(timeline: &Timeline) -> u64 {
    let Timeline { warmup, total, .. } = timeline;
    let started = warmup.counters.started + total.counters.started;
    // Only a record of a run that still goes on has requests in flight.
    started.saturating_sub(warmup.requests + total.requests + total.gauges_end.in_flight)
}

fn commonest_error(total: &Tick) -> Option<(String, u64)> {
    let (failure, n) = total.errors.iter().max_by_key(|(_, n)| **n)?;
    Some((failure.to_string(), *n))
}

fn failed_by(total: &Tick, kind: Kind) -> u64 {
    total.errors.iter().filter(|(failure, _)| failure.kind == kind).map(|(_, n)| n).sum()
}

fn cpu_share(plan: &Plan, totals: &Totals) -> f64 {
    // The drain is left out: nobody works in it, and it would hide how busy the load was.
    let available_s = totals.duration_s * f64::from(plan.instances.max(1));
    if available_s > 0.0 { (totals.cpu_s / available_s).min(1.0) } else { 0.0 }
}

/// A closed loop whose every worker dials for itself must fill the pool or have a connection per worker.
fn conns_asked(plan: &Plan, requests: u64) -> Option<u64> {
    let Pace::Closed { workers } = plan.pace else { return None };
    if plan.pool.race != DialRace::Bound {
        return None;
    }
    let pool = u64::from(plan.pool.max_conns?) * u64::from(plan.instances);
    Some(pool.min(u64::from(workers)).min(requests))
}

fn open_loop(plan: &Plan, interrupted: bool, totals: &Totals, total: &Tick) -> Option<OpenLoop> {
    let Pace::Open { arrival, .. } = &plan.pace else { return None };
    let rate_asked = totals.rate_asked.filter(|_| totals.duration_s > 0.0)?;
    let expected = rate_asked * totals.duration_s;
    let by_schedule = schedule_share(total);
    let by_clock = plan.stop.duration.is_some() || interrupted;
    // A run that stops by count sends them all, however late: only its schedule can tell.
    let begun = total.counters.started.max(totals.requests) as f64;
    let by_count = if by_clock { begun / expected } else { by_schedule };
    let share_by_chance = match arrival {
        Arrival::Poisson if expected > 0.0 => (1.0 - POISSON_SIGMAS / expected.sqrt()).max(0.0),
        _ => 1.0,
    };
    Some(OpenLoop { rate_asked, rate_started: rate_asked * by_schedule.min(by_count), share_by_chance })
}

/// How far the schedule had come when the last request started, as a share of the time that had passed.
fn schedule_share(total: &Tick) -> f64 {
    let intended = total.intended_last.saturating_sub(total.start).as_secs_f64();
    let started = total.started_last.saturating_sub(total.start).as_secs_f64();
    if started >= SCHEDULE_MIN_S { intended / started } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Rate, Stop};
    use crate::pool::Policy;
    use crate::record::Record;
    use crate::record::tests::{by_count, header, plan, small_record, small_run};
    use crate::sample::Failure;
    use crate::tick::Counters;
    use crate::units::Nanos;

    /// A run in which nothing is wrong.
    fn good() -> Evidence {
        Evidence { requests: 1_000, ok: 1_000, response_p50_ms: 10.0, ..Evidence::default() }
    }

    fn open(started: f64) -> Option<OpenLoop> {
        Some(OpenLoop { rate_asked: 1_000.0, rate_started: started, share_by_chance: 1.0 })
    }

    fn check(evidence: Evidence, status: Status, expected: &[(&str, &str)]) {
        let verdict = Verdict::judge(&evidence);
        let found: Vec<_> = verdict.reasons.iter().map(|r| (r.id.as_str(), r.text.as_str())).collect();
        assert_eq!((verdict.status, found.as_slice()), (status, expected));
    }

    #[test]
    fn a_good_run_is_valid_without_reasons() {
        check(good(), Status::Valid, &[]);
        check(Evidence { open: open(1_000.0), lag_p99_ms: 0.05, ..good() }, Status::Valid, &[]);
    }

    #[test]
    fn requests_must_have_been_sent_and_answered() {
        check(Evidence::default(), Status::Invalid, &[("no-requests", "no request was sent")]);
        check(
            Evidence { ok: 0, commonest_error: Some(("connect/refused".to_owned(), 900)), ..good() },
            Status::Invalid,
            &[("all-failed", "all 1,000 requests failed, 900 of them by connect/refused")],
        );
        check(
            Evidence { requests: 9, ok: 9, ..good() },
            Status::Suspect,
            &[("too-few-requests", "9 requests are too few for a distribution; send 10 or more")],
        );
        check(
            Evidence { lost: 2, ..good() },
            Status::Invalid,
            &[("samples-lost", "2 requests were started and never counted")],
        );
    }

    #[test]
    fn the_asked_rate_must_have_been_reached() {
        check(Evidence { open: open(951.0), ..good() }, Status::Valid, &[]);
        check(
            Evidence { open: open(949.0), ..good() },
            Status::Suspect,
            &[("rate-not-reached", "started 949 requests/s of the 1,000 asked for (94.9 %)")],
        );
        check(
            Evidence { open: open(700.0), ..good() },
            Status::Invalid,
            &[("rate-not-reached", "started 700 requests/s of the 1,000 asked for (70.0 %)")],
        );
        let poisson = OpenLoop { rate_asked: 10.0, rate_started: 8.0, share_by_chance: 0.7 };
        check(Evidence { open: Some(poisson), ..good() }, Status::Valid, &[]);
    }

    #[test]
    fn lag_counts_in_an_open_loop_and_in_proportion() {
        let lag = |p50, p99| Evidence { lag_p50_ms: p50, lag_p99_ms: p99, open: open(1_000.0), ..good() };
        check(lag(0.0, 0.9), Status::Valid, &[]);
        let text = "the generator itself started requests late: lag p99 is 2.00 ms at a median response time of 10.0 ms";
        check(lag(0.0, 2.0), Status::Suspect, &[("generator-lag", text)]);
        let text = "the generator itself started requests late: lag p50 is 6.00 ms at a median response time of 10.0 ms";
        check(lag(6.0, 8.0), Status::Invalid, &[("generator-lag", text)]);
        check(Evidence { response_p50_ms: 0.1, ..lag(0.1, 0.15) }, Status::Valid, &[]);
        check(Evidence { open: None, ..lag(6.0, 8.0) }, Status::Valid, &[]);
    }

    #[test]
    fn the_generator_must_have_had_room() {
        check(Evidence { cpu_share: 0.9, ..good() }, Status::Valid, &[]);
        let text = "the generator's threads were busy 95.0 % of the time, so the generator may be what limits; add instances";
        check(Evidence { cpu_share: 0.95, ..good() }, Status::Suspect, &[("generator-cpu", text)]);
        let text = "at most 290 connections were open of the 300 asked for";
        check(
            Evidence { conns_asked: Some(300), conns_peak: 290, ..good() },
            Status::Suspect,
            &[("conns-not-reached", text)],
        );
        check(Evidence { conns_asked: Some(300), conns_peak: 300, ..good() }, Status::Valid, &[]);
        let ports = "3 requests failed because this machine had no free port left; use more source addresses or fewer connections";
        let files = "4 requests failed because this process had no file descriptor left; raise `ulimit -n`";
        check(
            Evidence { out_of_ports: 3, out_of_files: 4, ..good() },
            Status::Suspect,
            &[("out-of-ports", ports), ("out-of-files", files)],
        );
        let text = "1 response times were above 1 h and count as 1 h in percentiles";
        check(Evidence { clamped: 1, ..good() }, Status::Suspect, &[("times-clamped", text)]);
    }

    #[test]
    fn every_rule_has_an_id_of_its_own_in_kebab_case() {
        let worst = Evidence {
            requests: 5,
            open: open(1.0),
            lag_p50_ms: 1e3,
            cpu_share: 1.0,
            conns_asked: Some(9),
            lost: 1,
            out_of_ports: 1,
            out_of_files: 1,
            clamped: 1,
            ..Evidence::default()
        };
        let mut ids: Vec<String> = Verdict::judge(&worst).reasons.into_iter().map(|r| r.id).collect();
        // `no-requests` and the others exclude each other.
        assert_eq!(ids.len(), RULES.len() - 1);
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')), "{ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len() - 1);
    }

    #[test]
    fn a_small_closed_loop_is_valid() {
        assert_eq!(small_record().verdict, Verdict { status: Status::Valid, reasons: Vec::new() });
    }

    fn ids_of(plan: Plan, timeline: &Timeline) -> Vec<String> {
        let record = Record::build(header(plan), timeline, &[]);
        record.verdict.reasons.into_iter().map(|reason| reason.id).collect()
    }

    #[test]
    fn evidence_of_a_closed_loop_comes_from_the_ticks() {
        let closed = |workers| plan(Pace::Closed { workers }, by_count(20));
        let mut timeline = small_run();
        timeline.total.counters.cpu = Nanos::from_millis(950);
        timeline.total.counters.started = 21;
        timeline.total.errors.insert(Failure::new(Phase::Connect, Kind::NoPorts), 1);
        assert_eq!(ids_of(closed(2), &timeline), ["samples-lost", "generator-cpu", "out-of-ports"],);
        let wide = Plan { pool: Policy { max_conns: Some(3), ..Policy::default() }, ..closed(3) };
        assert_eq!(ids_of(wide, &small_run()), ["conns-not-reached"]);
        let unlimited = Plan { pool: Policy::default(), ..closed(3) };
        assert!(ids_of(unlimited, &small_run()).is_empty());
    }

    #[test]
    fn requests_of_a_run_that_goes_on_are_in_flight_and_not_lost() {
        let mut timeline = small_run();
        timeline.total.counters.started = 22;
        timeline.total.gauges_end.in_flight = 2;
        assert!(ids_of(plan(Pace::Closed { workers: 2 }, by_count(100)), &timeline).is_empty());
    }

    fn open_plan(per_s: f64, arrival: Arrival, stop: Stop) -> Plan {
        plan(Pace::Open { rate: Rate::Constant { per_s }, arrival }, stop)
    }

    #[test]
    fn a_run_by_duration_must_have_started_as_many_as_the_rate_says() {
        let for_a_second = Stop { requests: None, duration: Some(Nanos::from_secs(1)) };
        let ids = |per_s, arrival| ids_of(open_plan(per_s, arrival, for_a_second), &small_run());
        assert!(ids(20.0, Arrival::Constant).is_empty());
        assert_eq!(ids(23.0, Arrival::Constant), ["rate-not-reached"]);
        assert!(ids(23.0, Arrival::Poisson).is_empty(), "chance explains 20 of 23");
        assert_eq!(ids(2_000.0, Arrival::Poisson), ["rate-not-reached"]);
    }

    #[test]
    fn requests_in_flight_count_as_started() {
        let mut timeline = small_run();
        timeline.total.counters.started = 40;
        timeline.total.gauges_end.in_flight = 20;
        let for_a_second = Stop { requests: None, duration: Some(Nanos::from_secs(1)) };
        assert!(ids_of(open_plan(40.0, Arrival::Constant, for_a_second), &timeline).is_empty());
    }

    #[test]
    fn a_run_by_count_must_have_followed_its_schedule() {
        let ids = |intended_last, started_last| {
            let mut timeline = small_run();
            timeline.total.intended_last = Nanos::from_millis(intended_last);
            timeline.total.started_last = Nanos::from_millis(started_last);
            timeline.total.counters = Counters::default();
            ids_of(open_plan(10.0, Arrival::Constant, by_count(20)), &timeline)
        };
        assert!(ids(1_900, 1_901).is_empty());
        assert!(ids(0, 10).is_empty(), "a short run has no rate to speak of");
        assert_eq!(ids(1_900, 2_200), ["rate-not-reached"]);
    }
}
