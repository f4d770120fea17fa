//! A record as people read it on a terminal of 80 columns. Pure: the same record gives the same text.
//!
//! Sections carry hey's names and line formats, because people grep them; Phases, Connections, Gates and Verdict are
//! ours. Computes no statistic: what is not in the record comes from its histograms.

mod explain;
mod headline;

use std::fmt::Write;

use weir_model::plan::{Arrival, Pace, Plan, Rate, Scheme, Stop};
use weir_model::record::{Host, Record};
use weir_model::sample::Phase;
use weir_model::stats::{Histogram, Summary};
use weir_model::units::{Nanos, format_count, format_ms, format_percent, format_rate};
use weir_model::verdict::Status;

pub use headline::headline;

use crate::style::{Colour, Style};

/// Percentiles of the latency distribution: hey's, and two that matter to services.
const PERCENTILES: [f64; 9] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
const HISTOGRAM_BARS: usize = 10;
const HISTOGRAM_WIDTH: usize = 40;
const SHARE_WIDTH: usize = 16;
const LINE_WIDTH: usize = 80;
const TAB: usize = 8;

pub fn render(record: &Record, style: Style) -> String {
    let report = Report::of(record, style);
    let sections = [
        report.title(),
        report.summary(),
        report.histogram(),
        report.distribution(),
        report.phases(),
        report.connections(),
        report.status(),
        report.errors(),
        report.gates(),
        report.verdict(),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    filled.join("\n")
}

/// What most failed requests failed by, and what to do about it.
pub fn commonest_error(record: &Record) -> Option<(String, Option<String>)> {
    let (name, n) = record.errors.iter().max_by_key(|(_, n)| **n)?;
    let explained = explain::explain(name, &record.plan);
    Some((format!("{} times {name}, {}", format_count(*n), explained.what), explained.advice))
}

/// The table of phases alone.
pub fn phases(record: &Record, style: Style) -> String {
    Report::of(record, style).phases()
}

struct Report<'a> {
    record: &'a Record,
    response: Histogram,
    service: Histogram,
    style: Style,
    /// Digits after the point of seconds, so that the fastest response shows three of its own.
    digits: usize,
}

impl Report<'_> {
    fn of(record: &Record, style: Style) -> Report<'_> {
        // A payload that cannot be read leaves its sections out; the figures of the summary stand for themselves.
        let response = record.latency.response.histogram().unwrap_or_default();
        let service = record.latency.service.histogram().unwrap_or_default();
        let digits = if record.latency.response.min < 10.0 { 6 } else { 4 };
        Report { record, response, service, style, digits }
    }

    fn secs(&self, ms: f64) -> String {
        format!("{:.*}", self.digits, ms / 1e3)
    }

    fn title(&self) -> String {
        let plan = &self.record.plan;
        let mut out = String::new();
        line(&mut out, &self.style.paint(Colour::Bold, &target(plan)));
        line(&mut out, &format!("  {}", load(plan)));
        line(&mut out, &format!("  {}", pool(plan)));
        line(&mut out, &self.style.paint(Colour::Dim, &format!("  {}", generator(&self.record.host))));
        if self.record.interrupted {
            line(&mut out, &self.style.paint(Colour::Yellow, "  Interrupted: this is a part of the run."));
        }
        out
    }

    fn summary(&self) -> String {
        let Record { totals, latency, .. } = self.record;
        let response = &latency.response;
        let mut out = self.heading("Summary");
        line(&mut out, &format!("  Total:\t{:.4} secs", totals.duration_s + totals.drain_s));
        if response.count > 0 {
            line(&mut out, &format!("  Slowest:\t{} secs", self.secs(response.max)));
            line(&mut out, &format!("  Fastest:\t{} secs", self.secs(response.min)));
            line(&mut out, &format!("  Average:\t{} secs", self.secs(response.mean)));
        }
        line(&mut out, &format!("  Requests/sec:\t{:.4}", totals.rate));
        if let Some(asked) = totals.rate_asked {
            line(&mut out, &format!("  Asked for:\t{asked:.4}"));
        }
        out.push('\n');
        line(&mut out, &format!("  Requests:\t{}", self.requests()));
        line(&mut out, &format!("  Total data:\t{} bytes", totals.bytes_in));
        let answers: u64 = self.record.status.values().sum();
        if let Some(bytes) = totals.bytes_in.checked_div(answers) {
            line(&mut out, &format!("  Size/request:\t{bytes} bytes"));
        }
        line(&mut out, &format!("  CPU time:\t{}", self.cpu()));
        if let Some(warmup) = &self.record.warmup {
            let requests = format_count(warmup.requests);
            let text = format!(
                "  Warm-up:\t{requests} requests in {:.4} secs, not counted above",
                warmup.duration_s
            );
            line(&mut out, &text);
        }
        out
    }

    fn requests(&self) -> String {
        let totals = &self.record.totals;
        let all = format_count(totals.requests);
        match totals.errors {
            0 if totals.requests == 0 => all,
            0 => format!("{all} (all ok)"),
            errors => format!("{all} ({} ok, {} failed)", format_count(totals.ok), format_count(errors)),
        }
    }

    fn cpu(&self) -> String {
        let totals = &self.record.totals;
        let each = totals.cpu_s * 1e3 / totals.requests.max(1) as f64;
        format!("{:.4} secs, {} a request", totals.cpu_s, format_ms(each))
    }

    fn histogram(&self) -> String {
        let bars = self.response.linear_buckets(HISTOGRAM_BARS);
        let Some(most) = bars.iter().map(|bar| bar.count).max().filter(|&most| most > 0) else {
            return String::new();
        };
        let mut out = self.heading("Response time histogram");
        let width = most.to_string().len() + 2;
        let digits = self.digits.max(3);
        for bar in &bars {
            let length = (bar.count as f64 / most as f64 * HISTOGRAM_WIDTH as f64).round() as usize;
            let count = format!("[{}]", bar.count);
            let drawn = self.style.paint(Colour::Cyan, &"■".repeat(length));
            line(&mut out, format!("  {:.digits$} {count:<width$} |{drawn}", bar.upper_ms / 1e3).trim_end());
        }
        out
    }

    fn distribution(&self) -> String {
        if self.response.is_empty() {
            return String::new();
        }
        let mut out = self.heading("Latency distribution");
        for percent in PERCENTILES.into_iter().filter(|&percent| is_shown(percent, self.response.count())) {
            let of = |histogram: &Histogram| self.secs(histogram.percentile(percent).as_millis_f64());
            let service = self.style.paint(Colour::Dim, &format!("(service {})", of(&self.service)));
            line(
                &mut out,
                &format!("  {:<6} in {} secs  {service}", format!("{percent}%"), of(&self.response)),
            );
        }
        out
    }

    fn phases(&self) -> String {
        let Record { latency, phases, .. } = self.record;
        if latency.response.count == 0 {
            return String::new();
        }
        let mut out = self.heading("Phases");
        let columns =
            format!("  {:<9}{:>9}{:>10}{:>10}{:>10}{:>10}", "", "mean", "p50", "p99", "max", "share");
        line(&mut out, &self.style.paint(Colour::Dim, &columns));
        for phase in Phase::ALL {
            self.phase_line(&mut out, phase.name(), phases.phase(phase));
        }
        self.sum_line(&mut out, "response", &latency.response);
        self.sum_line(&mut out, "service", &latency.service);
        out
    }

    fn phase_line(&self, out: &mut String, name: &str, phase: &Summary) {
        if phase.max == 0.0 {
            let nothing = format!("  {name:<9}{:>9}{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", "-", "-");
            return line(out, &self.style.paint(Colour::Dim, &nothing));
        }
        let share = phase.mean / self.record.latency.response.mean;
        let bar = self.style.paint(Colour::Cyan, &share_bar(share));
        line(out, format!("{}{:>10}  {bar}", times(name, phase), format_percent(share)).trim_end());
    }

    fn sum_line(&self, out: &mut String, name: &str, sum: &Summary) {
        line(out, &self.style.paint(Colour::Bold, &times(name, sum)));
    }

    fn connections(&self) -> String {
        let totals = &self.record.totals;
        let mut out = self.heading("Connections");
        let mut row = |name: &str, value: String| line(&mut out, &format!("  {name:<21}{value}"));
        row("Opened:", format_count(totals.conns_opened));
        if totals.dials_failed > 0 {
            row("Failed to open:", format_count(totals.dials_failed));
        }
        if totals.conns_opened + totals.reused > 0 {
            row("Reused:", format!("{} of requests", format_percent(totals.reuse_ratio)));
        }
        if has_tls(&self.record.plan) {
            let resumed = format_count(totals.tls_resumed);
            row("TLS handshakes:", format!("{} ({resumed} resumed)", format_count(totals.tls_handshakes)));
        }
        if let Some(each) = requests_per_conn(self.record) {
            row("Requests/connection:", format!("{each:.1}"));
        }
        row("Peak open:", format_count(totals.peak_conns));
        row("Peak queue:", format_count(totals.peak_queue));
        if totals.retries > 0 {
            row("Retries:", format_count(totals.retries));
        }
        out
    }

    fn status(&self) -> String {
        if self.record.status.is_empty() {
            return String::new();
        }
        let mut out = self.heading("Status code distribution");
        for (status, n) in &self.record.status {
            let code = self.style.paint(status_colour(*status), &format!("[{status}]"));
            line(&mut out, &format!("  {code}\t{n} responses"));
        }
        out
    }

    fn errors(&self) -> String {
        if self.record.errors.is_empty() {
            return String::new();
        }
        let mut out = self.heading("Error distribution");
        let mut errors: Vec<(&String, &u64)> = self.record.errors.iter().collect();
        errors.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), (*name).clone()));
        for (name, n) in errors {
            let explained = explain::explain(name, &self.record.plan);
            let said = broken(&format!("{name}: {}", explained.what), LINE_WIDTH - TAB);
            let said = said.join("\n\t").replacen(name, &self.style.paint(Colour::Red, name), 1);
            line(&mut out, &format!("  [{n}]\t{said}"));
            if let Some(advice) = explained.advice {
                wrapped(&mut out, &advice, "\t");
            }
        }
        out
    }

    fn gates(&self) -> String {
        if self.record.gates.is_empty() {
            return String::new();
        }
        let mut out = self.heading("Gates");
        let width = self.record.gates.iter().map(|gate| gate.expr.chars().count()).max().unwrap_or(0);
        for gate in &self.record.gates {
            let (colour, word) = if gate.ok { (Colour::Green, "ok  ") } else { (Colour::Red, "FAIL") };
            let word = self.style.paint(colour, word);
            line(&mut out, &format!("  {word}  {:<width$}  {}", gate.expr, gate.actual));
        }
        out
    }

    fn verdict(&self) -> String {
        let verdict = &self.record.verdict;
        let colour = match verdict.status {
            Status::Valid => Colour::Green,
            Status::Suspect => Colour::Yellow,
            Status::Invalid => Colour::Red,
        };
        let mut out = String::new();
        let heading = self.style.paint(Colour::Bold, "Verdict:");
        line(&mut out, &format!("{heading} {}", self.style.paint(colour, verdict.status.name())));
        for reason in &verdict.reasons {
            hanging(&mut out, "  - ", &format!("{}: {}", reason.id, reason.text));
        }
        if let Some(headline) = headline(self.record) {
            wrapped(&mut out, &headline, "  ");
        }
        out
    }

    fn heading(&self, name: &str) -> String {
        format!("{}\n", self.style.paint(Colour::Bold, &format!("{name}:")))
    }
}

/// A percentile that needs more requests than there were is the maximum again.
fn is_shown(percent: f64, count: u64) -> bool {
    percent <= 99.0 || (100.0 - percent) / 100.0 * count as f64 >= 1.0
}

fn times(name: &str, s: &Summary) -> String {
    let [mean, p50, p99, max] = [s.mean, s.p50, s.p99, s.max].map(format_ms);
    format!("  {name:<9}{mean:>9}{p50:>10}{p99:>10}{max:>10}")
}

/// Drawn to an eighth of a column.
fn share_bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (SHARE_WIDTH * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn status_colour(status: u16) -> Colour {
    match status {
        0..=399 => Colour::Green,
        400..=499 => Colour::Yellow,
        _ => Colour::Red,
    }
}

fn has_tls(plan: &Plan) -> bool {
    plan.requests.iter().any(|request| request.scheme == Scheme::Https)
}

/// Over the requests that got a connection. `None` where the warm-up has opened connections, which it counts apart.
fn requests_per_conn(record: &Record) -> Option<f64> {
    let totals = &record.totals;
    if record.warmup.is_some() || totals.conns_opened == 0 {
        return None;
    }
    let assigned =
        if totals.reuse_ratio > 0.0 { totals.reused as f64 / totals.reuse_ratio } else { totals.ok as f64 };
    Some(assigned / totals.conns_opened as f64)
}

/// `GET http://127.0.0.1:8080/`, and how many others there are.
pub fn target(plan: &Plan) -> String {
    let Some(first) = plan.requests.first() else { return String::new() };
    let scheme = match first.scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    let host = if first.host.contains(':') { format!("[{}]", first.host) } else { first.host.clone() };
    let url = format!("{} {scheme}://{host}:{}{}", first.method, first.port, first.path);
    match plan.requests.len() - 1 {
        0 => url,
        others => format!("{url} and {} more", format_count(others as u64)),
    }
}

/// `400 workers, for 10 s`.
pub fn load(plan: &Plan) -> String {
    let pace = match &plan.pace {
        Pace::Closed { workers } => format!("{} workers", format_count(u64::from(*workers))),
        Pace::Open { rate, arrival } => format!("{}, {}", rate_words(*rate), arrival_words(*arrival)),
    };
    let stop = match plan.stop {
        Stop { requests: Some(n), duration: None } => format!("{} requests", format_count(n)),
        Stop { requests: None, duration: Some(t) } => format!("for {}", span(t)),
        Stop { requests: Some(n), duration: Some(t) } => {
            format!("{} requests or {}", format_count(n), span(t))
        }
        Stop { requests: None, duration: None } => "until interrupted".to_owned(),
    };
    let warmup = match plan.warmup {
        Nanos::ZERO => String::new(),
        warmup => format!(", after a warm-up of {}", span(warmup)),
    };
    format!("{pace}, {stop}{warmup}")
}

fn rate_words(rate: Rate) -> String {
    match rate {
        Rate::Constant { per_s } => format!("{} requests/s", format_rate(per_s)),
        Rate::Ramp { from_per_s, to_per_s, over } => {
            format!(
                "{} to {} requests/s within {}",
                format_rate(from_per_s),
                format_rate(to_per_s),
                span(over)
            )
        }
    }
}

fn arrival_words(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Constant => "evenly spaced",
        Arrival::Poisson => "Poisson arrivals",
        Arrival::Burst => "in bursts each second",
    }
}

/// `pool fixed, 100 connections`.
pub fn pool(plan: &Plan) -> String {
    let conns = match (plan.pool.reuse, plan.pool.max_conns) {
        (false, _) => "a new connection for each request".to_owned(),
        (true, None) => "no limit on connections".to_owned(),
        (true, Some(1)) => "1 connection".to_owned(),
        (true, Some(n)) => format!("{} connections", format_count(u64::from(n))),
    };
    let instances = match plan.instances {
        1 => String::new(),
        n => format!(" each, {n} instances"),
    };
    format!("pool `{}`: {conns}{instances}", plan.profile)
}

/// `weir 0.1.0, uring, 2 CPUs, Linux 6.1.0`, so that a report that is pasted somewhere says where it comes from.
fn generator(host: &Host) -> String {
    let Host { weir, io, cpus, kernel, .. } = host;
    format!("weir {weir}, {io}, {cpus} CPUs, Linux {kernel}")
}

/// A span that somebody chose, without digits that say nothing: `10 s`, `1.5 s`, `250 ms`.
pub fn span(span: Nanos) -> String {
    match span.0 {
        ns if ns >= 1_000_000_000 => format!("{} s", ns as f64 / 1e9),
        ns if ns >= 1_000_000 => format!("{} ms", ns as f64 / 1e6),
        ns => format!("{} µs", ns as f64 / 1e3),
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes every write");
}

/// Breaks at spaces, so that each line with its indent fits.
fn wrapped(out: &mut String, text: &str, indent: &str) {
    let width = LINE_WIDTH - if indent == "\t" { TAB } else { indent.chars().count() };
    for part in broken(text, width) {
        line(out, &format!("{indent}{part}"));
    }
}

/// The same, with a label before the first line, under which the others begin.
pub fn hanging(out: &mut String, label: &str, text: &str) {
    let indent = label.chars().count();
    for (index, part) in broken(text, LINE_WIDTH - indent).iter().enumerate() {
        let before = if index == 0 { label.to_owned() } else { " ".repeat(indent) };
        line(out, &format!("{before}{part}"));
    }
}

fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in text.split(' ') {
        if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut current));
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use weir_model::gates::Gate;
    use weir_model::sample::{Failure, Kind};

    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_through_a_pool_that_is_too_small() {
        insta::assert_snapshot!(render(&fixture::record(), Style::Plain));
    }

    #[test]
    fn colours_add_nothing_but_colours() {
        let record = fixture::record();
        let coloured = render(&record, Style::Colours);
        assert_ne!(coloured, render(&record, Style::Plain));
        assert_eq!(without_colours(&coloured), render(&record, Style::Plain));
    }

    #[test]
    fn errors_are_explained_with_what_to_do() {
        let errors = [
            (Phase::Wait, Kind::PendingLimit, 0, 30),
            (Phase::Server, Kind::Timeout, 0, 7),
            (Phase::Connect, Kind::NoPorts, 0, 3),
            (Phase::Connect, Kind::NoFiles, 0, 2),
            (Phase::Receive, Kind::Status5xx, 503, 2),
            (Phase::Tls, Kind::Untrusted, 0, 1),
        ];
        let failed = errors.into_iter().flat_map(|(phase, kind, status, n)| {
            (0..n).map(move |nth| fixture::failed(nth, Failure::new(phase, kind), status))
        });
        let mut plan = fixture::plan();
        plan.pool.max_pending = Some(20);
        let gates = ["p(99)<200ms", "errors<0.1%", "reuse_ratio>0.5"];
        let gates: Vec<Gate> = gates.iter().map(|gate| Gate::parse(gate).unwrap()).collect();
        let record = fixture::record_of(plan, (0..200).map(fixture::sample).chain(failed), &gates);
        insta::assert_snapshot!(render(&record, Style::Plain));
    }

    #[test]
    fn a_run_in_which_every_request_failed() {
        let failed = (0..20).map(|nth| fixture::failed(nth, Failure::new(Phase::Connect, Kind::Refused), 0));
        insta::assert_snapshot!(render(&fixture::record_of(fixture::plan(), failed, &[]), Style::Plain));
    }

    #[test]
    fn an_interrupted_run_says_so() {
        let mut record = fixture::record();
        record.interrupted = true;
        assert!(render(&record, Style::Plain).contains("Interrupted: this is a part of the run."));
    }

    #[test]
    fn a_stored_record_renders_as_the_live_one() {
        let record = fixture::record();
        let stored: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(render(&stored, Style::Plain), render(&record, Style::Plain));
    }

    #[test]
    fn no_line_is_wider_than_80_columns() {
        for text in [render(&fixture::record(), Style::Plain)] {
            for line in text.lines() {
                let width = line.replace('\t', "        ").chars().count();
                assert!(width <= LINE_WIDTH, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_load_is_said_in_words() {
        let plan = |pace, stop| Plan { pace, stop, ..fixture::plan() };
        let count = Stop { requests: Some(50_000), duration: None };
        let both = Stop { requests: Some(50_000), duration: Some(Nanos::from_millis(1_500)) };
        let ramp = Rate::Ramp { from_per_s: 100.0, to_per_s: 2_000.0, over: Nanos::from_secs(30) };
        let cases = [
            (plan(Pace::Closed { workers: 400 }, count), "400 workers, 50,000 requests"),
            (
                plan(Pace::Open { rate: Rate::Constant { per_s: 2e3 }, arrival: Arrival::Poisson }, both),
                "2,000 requests/s, Poisson arrivals, 50,000 requests or 1.5 s",
            ),
            (
                plan(Pace::Open { rate: ramp, arrival: Arrival::Constant }, both),
                "100 to 2,000 requests/s within 30 s, evenly spaced, 50,000 requests or 1.5 s",
            ),
        ];
        for (plan, expected) in cases {
            assert_eq!(load(&plan), expected);
        }
    }

    fn without_colours(text: &str) -> String {
        let mut plain = String::new();
        for (index, part) in text.split("\x1b[").enumerate() {
            let visible = if index == 0 { part } else { part.split_once('m').expect("a code ends with m").1 };
            plain.push_str(visible);
        }
        plain
    }
}
