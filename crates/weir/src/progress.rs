//! What is said while a run lasts, on standard error: one line that is redrawn on a terminal, a line a second elsewhere.

use std::io::{IsTerminal, Write};

use weir_model::plan::{Plan, Stop};
use weir_model::tick::{Point, Stage};
use weir_model::units::{format_count, format_ms, format_rate};

use crate::style::{Colour, Style};

const BAR_WIDTH_MIN: usize = 8;
const BAR_WIDTH_MAX: usize = 24;
/// Columns between two figures.
const GAP: usize = 2;
const LENGTH_MIN_S: f64 = 0.01;
const CLEAR_LINE: &str = "\r\x1b[2K";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Quiet,
    /// Redrawn in place.
    Live,
    Lines,
}

#[derive(Debug)]
pub struct Progress {
    mode: Mode,
    style: Style,
    so_far: SoFar,
}

/// What the progress line counts beside the second at hand.
#[derive(Clone, Debug, PartialEq)]
struct SoFar {
    stop: Stop,
    warmup_s: f64,
    elapsed_s: f64,
    requests: u64,
    errors: u64,
}

impl Progress {
    pub fn new(plan: &Plan, quiet: bool, no_color: bool) -> Progress {
        let stderr = std::io::stderr();
        let mode = match (quiet, stderr.is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Live,
            (false, false) => Mode::Lines,
        };
        Progress { mode, style: Style::of(&stderr, no_color), so_far: SoFar::new(plan) }
    }

    pub fn begin(&self) {
        if self.mode == Mode::Live {
            say(&self.live(&Point::default()));
        }
    }

    pub fn show(&mut self, point: &Point) {
        self.so_far.add(point);
        match self.mode {
            // A second of no length, in which nothing was done, is only where two stages meet.
            _ if point.requests == 0 && point.length_s < LENGTH_MIN_S => {}
            Mode::Quiet => {}
            Mode::Live => say(&self.live(point)),
            Mode::Lines => say(&format!("{}\n", self.so_far.plain(point))),
        }
    }

    /// Clears the line, so that the report begins on an empty one.
    pub fn end(&self) {
        if self.mode == Mode::Live {
            say(CLEAR_LINE);
        }
    }

    fn live(&self, point: &Point) -> String {
        let width =
            terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        let (bar, rest) = self.so_far.live(point, width.saturating_sub(1));
        format!("{CLEAR_LINE}{}{rest}", self.style.paint(Colour::Cyan, &bar))
    }
}

impl SoFar {
    fn new(plan: &Plan) -> SoFar {
        SoFar { stop: plan.stop, warmup_s: plan.warmup.as_secs_f64(), elapsed_s: 0.0, requests: 0, errors: 0 }
    }

    fn add(&mut self, point: &Point) {
        self.elapsed_s = point.t + point.length_s;
        if point.stage != Stage::Warmup {
            self.requests += point.requests;
            self.errors += point.errors;
        }
    }

    /// How much of the run is over, 0 to 1, by whichever limit is nearer.
    fn share(&self) -> f64 {
        let by_count = self.stop.requests.map_or(0.0, |n| self.requests as f64 / n as f64);
        let measured_s = (self.elapsed_s - self.warmup_s).max(0.0);
        let by_time = self.stop.duration.map_or(0.0, |t| measured_s / t.as_secs_f64());
        by_count.max(by_time).min(1.0)
    }

    /// A bar if there is room for one, and as many figures as fit into the width.
    fn live(&self, point: &Point, width: usize) -> (String, String) {
        let mut figures = self.position();
        for field in self.fields(point) {
            let field = field.replace(" requests", " req").replace(" ms", "ms").replace(" µs", "µs");
            if figures.chars().count() + GAP + field.chars().count() > width {
                break;
            }
            figures.push_str(&format!("{:GAP$}{field}", ""));
        }
        let room = width.saturating_sub(figures.chars().count() + GAP).min(BAR_WIDTH_MAX);
        if room < BAR_WIDTH_MIN {
            return (String::new(), figures);
        }
        let filled = (self.share() * room as f64).round() as usize;
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(room - filled));
        (bar, format!("{:GAP$}{figures}", ""))
    }

    /// How far it is: `4/10s`, or a percentage where requests are what ends it.
    fn position(&self) -> String {
        let elapsed_s = self.elapsed_s;
        match self.stop.duration {
            Some(whole) if self.stop.requests.is_none() => {
                format!("{elapsed_s:.0}/{:.0}s", (whole.as_secs_f64() + self.warmup_s).ceil())
            }
            _ => format!("{:.0}% {elapsed_s:.0}s", self.share() * 100.0),
        }
    }

    fn plain(&self, point: &Point) -> String {
        format!("{:.1}s  {}", self.elapsed_s, self.fields(point).join("  "))
    }

    /// The most telling first.
    fn fields(&self, point: &Point) -> Vec<String> {
        let mut fields = Vec::new();
        match point.stage {
            Stage::Warmup => fields.push("warm-up".to_owned()),
            Stage::Measured => {}
            Stage::Drain => fields.push("waiting for the last answers".to_owned()),
        }
        if self.errors > 0 {
            fields.push(format!("{} failed", format_count(self.errors)));
        }
        fields.push(format!("{} requests", format_count(self.requests)));
        fields.push(format!("{}/s", format_rate(point.rate)));
        if point.ok > 0 {
            fields.push(format!("p50 {}", format_ms(point.p50)));
            fields.push(format!("p99 {}", format_ms(point.p99)));
        }
        fields.push(format!("{} in flight", format_count(point.in_flight)));
        fields.push(format!("{} queued", format_count(point.queue)));
        fields
    }
}

/// Progress that cannot be said is no reason to end a run.
fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use weir_model::units::Nanos;

    use super::*;

    fn point() -> Point {
        Point {
            t: 3.0,
            length_s: 1.0,
            requests: 998,
            ok: 998,
            rate: 998.0,
            p50: 400.2,
            p99: 401.0,
            in_flight: 400,
            queue: 300,
            ..Point::default()
        }
    }

    fn so_far() -> SoFar {
        let stop = Stop { requests: None, duration: Some(Nanos::from_secs(10)) };
        let mut so_far = SoFar { stop, warmup_s: 0.0, elapsed_s: 0.0, requests: 2994, errors: 0 };
        so_far.add(&point());
        so_far
    }

    #[test]
    fn a_second_is_a_line() {
        insta::assert_snapshot!(
            so_far().plain(&point()),
            @"4.0s  3,992 requests  998/s  p50 400 ms  p99 401 ms  400 in flight  300 queued"
        );
    }

    #[test]
    fn the_live_line_never_exceeds_the_terminal() {
        for width in [20, 40, 60, 79, 200] {
            let (bar, rest) = so_far().live(&point(), width);
            let length = bar.chars().count() + rest.chars().count();
            assert!(length <= width, "{length} of {width}: {rest}");
        }
    }

    #[test]
    fn the_live_line_shows_every_figure_on_80_columns_and_a_bar_on_wider_ones() {
        let line = |width| {
            let (bar, rest) = so_far().live(&point(), width);
            format!("{bar}{rest}")
        };
        insta::assert_snapshot!(
            line(79),
            @"4/10s  3,992 req  998/s  p50 400ms  p99 401ms  400 in flight  300 queued"
        );
        insta::assert_snapshot!(
            line(120),
            @"██████████░░░░░░░░░░░░░░  4/10s  3,992 req  998/s  p50 400ms  p99 401ms  400 in flight  300 queued"
        );
    }

    #[test]
    fn the_nearer_limit_says_how_much_is_over() {
        let both =
            SoFar { stop: Stop { requests: Some(4000), duration: Some(Nanos::from_secs(400)) }, ..so_far() };
        assert_eq!(both.share(), 0.998);
        let neither = SoFar { stop: Stop { requests: None, duration: None }, ..so_far() };
        assert_eq!(neither.share(), 0.0);
    }
}
