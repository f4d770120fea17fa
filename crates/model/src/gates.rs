//! Pass or fail: k6's threshold grammar, extended to phases and totals.
//!
//! ```text
//! gate    = metric op value
//! op      = < | <= | > | >= | == | !=
//! metric  = [dist .] stat                   p(99)<200ms   wait.p(99)<5ms   service.avg<=10ms
//!         | errors [ "[phase/kind]" ]       errors<0.1%   errors[wait/pending_limit]==0
//!         | status "[" 100-599 "]"          status[503]<1%
//!         | total                           rate>=1000    reuse_ratio>0.99   conns_opened<=10
//! dist    = response (also when absent) | service | failed | a phase
//! stat    = p(0-100) | avg | med | min | max | count
//! ```
//!
//! White space means nothing. A time needs its unit. `errors` and `status` are counts, or shares of all requests when
//! the value is in percent. A gate on times that no request has fails: nothing was shown to be fast.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::{Record, Totals, share};
use crate::sample::{Kind, Phase};
use crate::stats::{Histogram, Summary};
use crate::units::{self, Nanos, UsageError};

/// One condition on a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    expr: String,
    metric: Metric,
    op: Op,
    /// Milliseconds, a count, a share from 0 to 1, or whatever the total is.
    value: f64,
}

/// What became of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResult {
    /// As it was typed.
    pub expr: String,
    pub ok: bool,
    /// What was measured, with its unit, or why there is nothing to compare.
    pub actual: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Metric {
    Time(Dist, Stat),
    Samples(Dist),
    Errors(Option<String>, Measure),
    Status(u16, Measure),
    Total(&'static Total),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Dist {
    Response,
    Service,
    Failed,
    Phase(Phase),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stat {
    Percentile(f64),
    Mean,
    Min,
    Max,
}

/// What a number of requests is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Count,
    /// Of all requests.
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Le,
    Lt,
    Ge,
    Gt,
    Eq,
    Ne,
}

/// A figure of the totals that a gate can name.
#[derive(Debug)]
struct Total {
    name: &'static str,
    of: fn(&Totals) -> f64,
}

impl PartialEq for Total {
    fn eq(&self, other: &Total) -> bool {
        self.name == other.name
    }
}

const TOTALS: [Total; 14] = [
    Total { name: "requests", of: |t| t.requests as f64 },
    Total { name: "ok", of: |t| t.ok as f64 },
    Total { name: "rate", of: |t| t.rate },
    Total { name: "reuse_ratio", of: |t| t.reuse_ratio },
    Total { name: "conns_opened", of: |t| t.conns_opened as f64 },
    Total { name: "conns_closed", of: |t| t.conns_closed as f64 },
    Total { name: "dials_failed", of: |t| t.dials_failed as f64 },
    Total { name: "tls_handshakes", of: |t| t.tls_handshakes as f64 },
    Total { name: "retries", of: |t| t.retries as f64 },
    Total { name: "peak_conns", of: |t| t.peak_conns as f64 },
    Total { name: "peak_queue", of: |t| t.peak_queue as f64 },
    Total { name: "peak_in_flight", of: |t| t.peak_in_flight as f64 },
    Total { name: "bytes_in", of: |t| t.bytes_in as f64 },
    Total { name: "cpu_s", of: |t| t.cpu_s },
];

impl Gate {
    pub fn parse(text: &str) -> Result<Gate, UsageError> {
        let (expr, packed) = (text.trim().to_owned(), without_spaces(text));
        let fail =
            |error: UsageError| UsageError::new(format!("gate `{expr}`: {}", error.message), error.hint);
        let (left, op, right) = split(&packed).map_err(fail)?;
        let (metric, value) = metric_and_value(left, right).map_err(fail)?;
        Ok(Gate { metric, op, value, expr })
    }

    pub fn check(&self, record: &Record) -> GateResult {
        let (ok, actual) = match self.metric.measure(record) {
            Ok(measured) => (self.op.holds(measured, self.value), self.metric.show(measured)),
            Err(missing) => (false, missing),
        };
        GateResult { expr: self.expr.clone(), ok, actual }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expr)
    }
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text before, and after, the operator.
fn split(text: &str) -> Result<(&str, Op, &str), UsageError> {
    let no_operator = || {
        UsageError::new("no comparison", "write a metric, one of < <= > >= == !=, and a value: p(99)<200ms")
    };
    let at = text.find(['<', '>', '=', '!']).ok_or_else(no_operator)?;
    let (left, rest) = text.split_at(at);
    let (op, right) = Op::ALL
        .iter()
        .find_map(|(symbol, op)| Some((*op, rest.strip_prefix(symbol)?)))
        .ok_or_else(no_operator)?;
    if left.is_empty() || right.is_empty() || right.starts_with(['<', '>', '=', '!']) {
        return Err(no_operator());
    }
    Ok((left, op, right))
}

impl Op {
    /// Longer symbols first, so that `<=` is not read as `<`.
    const ALL: [(&str, Op); 6] =
        [("<=", Op::Le), (">=", Op::Ge), ("==", Op::Eq), ("!=", Op::Ne), ("<", Op::Lt), (">", Op::Gt)];

    fn holds(self, measured: f64, value: f64) -> bool {
        match self {
            Op::Le => measured <= value,
            Op::Lt => measured < value,
            Op::Ge => measured >= value,
            Op::Gt => measured > value,
            Op::Eq => measured == value,
            Op::Ne => measured != value,
        }
    }
}

fn metric_and_value(left: &str, right: &str) -> Result<(Metric, f64), UsageError> {
    if let Some(total) = TOTALS.iter().find(|total| total.name == left) {
        return Ok((Metric::Total(total), number(right)?));
    }
    if let Some((name, key)) = left.strip_suffix(']').and_then(|l| l.split_once('[')) {
        return keyed(name, key, right);
    }
    if left == "errors" {
        let (measure, value) = count_or_share(right)?;
        return Ok((Metric::Errors(None, measure), value));
    }
    let (dist, stat) = match left.split_once('.') {
        // The point of `p(99.9)` is no separator.
        Some((dist, stat)) if !dist.contains('(') => (dist_named(dist)?, stat),
        _ => (Dist::Response, left),
    };
    if stat == "count" {
        return Ok((Metric::Samples(dist), number(right)?));
    }
    Ok((Metric::Time(dist, stat_named(stat)?), milliseconds(right)?))
}

/// `errors[wait/pending_limit]`, `status[503]`.
fn keyed(name: &str, key: &str, right: &str) -> Result<(Metric, f64), UsageError> {
    let (measure, value) = count_or_share(right)?;
    match name {
        "errors" => Ok((Metric::Errors(Some(failure_named(key)?), measure), value)),
        "status" => Ok((Metric::Status(status_named(key)?, measure), value)),
        _ => Err(unknown_metric(name)),
    }
}

fn failure_named(key: &str) -> Result<String, UsageError> {
    let known = key.split_once('/').is_some_and(|(phase, kind)| {
        Phase::ALL.iter().any(|p| p.name() == phase) && Kind::ALL.iter().any(|k| k.name() == kind)
    });
    if known {
        return Ok(key.to_owned());
    }
    let kinds = Kind::ALL.map(Kind::name).join(", ");
    Err(UsageError::new(
        format!("unknown error `{key}`"),
        format!("write phase/kind, for example wait/pending_limit; the kinds are {kinds}"),
    ))
}

fn status_named(key: &str) -> Result<u16, UsageError> {
    key.parse().ok().filter(|status| (100..600).contains(status)).ok_or_else(|| {
        UsageError::new(format!("`{key}` is no status"), "write a number from 100 to 599: status[503]<1%")
    })
}

fn dist_named(name: &str) -> Result<Dist, UsageError> {
    match name {
        "response" => Ok(Dist::Response),
        "service" => Ok(Dist::Service),
        "failed" => Ok(Dist::Failed),
        _ => Phase::ALL
            .into_iter()
            .find(|phase| phase.name() == name)
            .map(Dist::Phase)
            .ok_or_else(|| unknown_metric(name)),
    }
}

fn stat_named(name: &str) -> Result<Stat, UsageError> {
    match name {
        "avg" => Ok(Stat::Mean),
        "med" => Ok(Stat::Percentile(50.0)),
        "min" => Ok(Stat::Min),
        "max" => Ok(Stat::Max),
        _ => match name.strip_prefix("p(").and_then(|p| p.strip_suffix(')')) {
            Some(percent) => percent_named(percent).map(Stat::Percentile),
            None => Err(unknown_metric(name)),
        },
    }
}

fn percent_named(text: &str) -> Result<f64, UsageError> {
    text.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| {
        UsageError::new(format!("`p({text})` is no percentile"), "write a number from 0 to 100: p(99.9)<1s")
    })
}

fn unknown_metric(name: &str) -> UsageError {
    let totals = TOTALS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    let phases = Phase::ALL.map(Phase::name).join(", ");
    UsageError::new(
        format!("unknown metric `{name}`"),
        format!(
            "times are p(N), avg, med, min, max, alone or after response, service, failed, {phases} and a point; \
             others are errors, errors[phase/kind], status[N], {totals}"
        ),
    )
}

fn milliseconds(text: &str) -> Result<f64, UsageError> {
    if text.parse::<f64>().is_ok() {
        return Err(UsageError::new(
            format!("`{text}` has no unit"),
            format!("a time needs one: {text}ms, {text}s, {text}us"),
        ));
    }
    units::parse_duration(text).map(Nanos::as_millis_f64)
}

fn count_or_share(text: &str) -> Result<(Measure, f64), UsageError> {
    match text.strip_suffix('%') {
        Some(percent) => Ok((Measure::Share, number(percent)? / 100.0)),
        None => Ok((Measure::Count, number(text)?)),
    }
}

fn number(text: &str) -> Result<f64, UsageError> {
    text.parse().ok().filter(|n: &f64| n.is_finite()).ok_or_else(|| {
        UsageError::new(format!("`{text}` is no number"), "write digits, with a point if need be: rate>=1000")
    })
}

impl Metric {
    fn measure(&self, record: &Record) -> Result<f64, String> {
        match self {
            Metric::Time(dist, stat) => stat.of(dist.summary(record)).map_err(|why| dist.missing(why)),
            Metric::Samples(dist) => Ok(dist.summary(record).count as f64),
            Metric::Errors(None, measure) => measure.of(record.totals.errors, record),
            Metric::Errors(Some(key), measure) => {
                measure.of(record.errors.get(key).copied().unwrap_or(0), record)
            }
            Metric::Status(status, measure) => {
                measure.of(record.status.get(status).copied().unwrap_or(0), record)
            }
            Metric::Total(total) => Ok((total.of)(&record.totals)),
        }
    }

    fn show(&self, measured: f64) -> String {
        match self {
            Metric::Time(..) => units::format_ms(measured),
            Metric::Errors(_, Measure::Share) | Metric::Status(_, Measure::Share) => {
                units::format_percent(measured)
            }
            _ => units::format_number(measured),
        }
    }
}

impl Measure {
    fn of(self, n: u64, record: &Record) -> Result<f64, String> {
        match self {
            Measure::Count => Ok(n as f64),
            Measure::Share if record.totals.requests == 0 => Err("no request".to_owned()),
            Measure::Share => Ok(share(n, record.totals.requests)),
        }
    }
}

/// Why a distribution has no such figure.
enum Missing {
    Empty,
    Unreadable(String),
}

impl Dist {
    fn summary(self, record: &Record) -> &Summary {
        match self {
            Dist::Response => &record.latency.response,
            Dist::Service => &record.latency.service,
            Dist::Failed => &record.latency.failed,
            Dist::Phase(phase) => record.phases.phase(phase),
        }
    }

    fn missing(self, why: Missing) -> String {
        match (why, self) {
            (Missing::Unreadable(error), _) => error,
            (Missing::Empty, Dist::Failed) => "no failed request".to_owned(),
            (Missing::Empty, _) => "no successful request".to_owned(),
        }
    }
}

impl Stat {
    /// In milliseconds.
    fn of(self, summary: &Summary) -> Result<f64, Missing> {
        if summary.count == 0 {
            return Err(Missing::Empty);
        }
        let histogram: Histogram = summary.histogram().map_err(|e| Missing::Unreadable(e.to_string()))?;
        Ok(match self {
            Stat::Percentile(percent) => histogram.percentile(percent).as_millis_f64(),
            Stat::Mean => summary.mean,
            Stat::Min => summary.min,
            Stat::Max => summary.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::small_record;

    /// Twenty requests of 1 to 20 ms; two dialled 3 ms each, the last one got a 503.
    fn check(expr: &str, expected: (bool, &str)) {
        let result = Gate::parse(expr).unwrap_or_else(|e| panic!("{e}")).check(&small_record());
        assert_eq!((result.ok, result.actual.as_str()), expected, "{expr}");
        assert_eq!(result.expr, expr.trim());
    }

    #[test]
    fn gates_on_times() {
        check("p(99)<200ms", (true, "19.0 ms"));
        check("p(99)<19ms", (false, "19.0 ms"));
        check("max<=19ms", (true, "19.0 ms"));
        check("response.max<19ms", (false, "19.0 ms"));
        check("min>=3ms", (true, "3.00 ms"));
        check("med<1s", (true, "10.0 ms"));
        check("avg > 1ms", (true, "10.3 ms"));
        check(" service . p(50) <= 10.1ms ", (true, "10.0 ms"));
        check("wait.p(99.9)==0ms", (true, "0 ms"));
        check("dns.max<500us", (false, "1.00 ms"));
        check("failed.max<1s", (true, "20.0 ms"));
        check("p(100)!=0s", (true, "19.0 ms"));
    }

    #[test]
    fn gates_on_errors_and_statuses() {
        check("errors==0", (false, "1"));
        check("errors<10", (true, "1"));
        check("errors<0.1%", (false, "5.0 %"));
        check("errors<=5%", (true, "5.0 %"));
        check("errors[server/status_5xx]==1", (true, "1"));
        check("errors[wait/pending_limit]==0", (true, "0"));
        check("status[503]<1%", (false, "5.0 %"));
        check("status[200]>=19", (true, "19"));
        check("status[404]==0", (true, "0"));
    }

    #[test]
    fn gates_on_totals() {
        check("requests==20", (true, "20"));
        check("ok!=20", (true, "19"));
        check("rate>=1000", (false, "19"));
        check("reuse_ratio>0.99", (false, "0.9000"));
        check("conns_opened<=10", (true, "2"));
        check("tls_handshakes==2", (true, "2"));
        check("peak_queue<1", (false, "1"));
        check("cpu_s<0.1", (true, "0.0200"));
        check("response.count==19", (true, "19"));
    }

    #[test]
    fn a_gate_on_times_without_samples_fails() {
        let mut record = small_record();
        record.latency = Default::default();
        record.phases = Default::default();
        let actual = |expr| {
            let result = Gate::parse(expr).unwrap().check(&record);
            assert!(!result.ok, "{expr}");
            result.actual
        };
        assert_eq!(actual("p(99)<1h"), "no successful request");
        assert_eq!(actual("wait.avg>=0ms"), "no successful request");
        assert_eq!(actual("failed.max<1h"), "no failed request");
        record.totals.requests = 0;
        assert_eq!(Gate::parse("errors<1%").unwrap().check(&record).actual, "no request");
    }

    #[test]
    fn every_total_and_phase_can_be_named() {
        let totals = TOTALS.iter().map(|total| format!("{}>=0", total.name));
        let phases = Phase::ALL.map(|phase| format!("{}.avg>=0ms", phase.name()));
        for expr in totals.chain(phases) {
            assert!(Gate::parse(&expr).unwrap().check(&small_record()).ok, "{expr}");
        }
    }

    #[test]
    fn mistakes_are_named_and_have_a_hint() {
        let refused = |expr: &str, message: &str, hint: &str| {
            let error = Gate::parse(expr).expect_err(expr);
            assert_eq!(error.message, format!("gate `{}`: {message}", expr.trim()));
            assert!(error.hint.contains(hint), "{expr}: {}", error.hint);
        };
        refused("p(99)<200", "`200` has no unit", "200ms, 200s");
        refused("p(99)<fast", "`fast` is no duration", "10s, 500ms");
        refused("p(99)<5%", "`5%` is no duration", "ms");
        refused("p(101)<1s", "`p(101)` is no percentile", "from 0 to 100");
        refused("p99<1s", "unknown metric `p99`", "p(N)");
        refused("latency.p(99)<1s", "unknown metric `latency`", "lag, wait, dns");
        refused("wait.mean<1s", "unknown metric `mean`", "avg");
        refused("wait<1s", "unknown metric `wait`", "alone or after");
        refused("rat>10", "unknown metric `rat`", "reuse_ratio");
        refused("rate>fast", "`fast` is no number", "rate>=1000");
        refused("rate>NaN", "`NaN` is no number", "rate>=1000");
        refused("errors[wait/limit]==0", "unknown error `wait/limit`", "pending_limit");
        refused("errors[503]==0", "unknown error `503`", "phase/kind");
        refused("status[99]==0", "`99` is no status", "100 to 599");
        refused("codes[200]==0", "unknown metric `codes`", "status[N]");
        for no_comparison in
            ["", "p(99)", "p(99)200ms", "<1s", "p(99)<", "p(99)=1s", "p(99)=<1s", "p(99)<>1s"]
        {
            refused(no_comparison, "no comparison", "< <= > >= == !=");
        }
    }
}
