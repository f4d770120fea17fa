//! The lines of `--samples FILE`.

use std::collections::BTreeMap;
use std::path::Path;

/// A request; times in nanoseconds.
pub struct Sample {
    pub intended: u64,
    pub started: u64,
    pub acquired: u64,
    pub sent: u64,
    pub first_byte: u64,
    pub done: u64,
    /// lag, wait, dns, connect, tls, send, server, receive.
    pub phases: [u64; 8],
    /// `ok` or `phase/kind`.
    pub outcome: String,
    pub request: u64,
    pub warmup: bool,
}

impl Sample {
    pub fn ok(&self) -> bool {
        self.outcome == "ok"
    }

    pub fn response_ms(&self) -> f64 {
        (self.done - self.intended) as f64 / 1e6
    }
}

/// Reads the file, and checks what holds for every sample whatever became of it.
#[track_caller]
pub fn samples(path: &Path) -> Vec<Sample> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    let samples: Vec<Sample> = lines.map(|line| sample(&names, line)).collect();
    for (s, line) in samples.iter().zip(text.lines().skip(1)) {
        let moments = [s.intended, s.started, s.acquired, s.sent, s.first_byte, s.done];
        assert!(moments.is_sorted(), "a moment before the one before it: {line}");
        assert_eq!(s.phases.iter().sum::<u64>(), s.done - s.intended, "the phases do not add up: {line}");
    }
    samples
}

fn sample(names: &[&str], line: &str) -> Sample {
    let values: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
    assert_eq!(values.len(), names.len(), "{line}");
    let number = |name: &str| values[name].parse().unwrap_or_else(|e| panic!("{name}: {e}: {line}"));
    let phases = ["lag", "wait", "dns", "connect", "tls", "send", "server", "receive"];
    Sample {
        intended: number("intended_ns"),
        started: number("started_ns"),
        acquired: number("acquired_ns"),
        sent: number("sent_ns"),
        first_byte: number("first_byte_ns"),
        done: number("done_ns"),
        phases: phases.map(|phase| number(&format!("{phase}_ns"))),
        outcome: values["outcome"].to_owned(),
        request: number("request"),
        warmup: values["warmup"] == "1",
    }
}
