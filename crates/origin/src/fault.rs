//! What can go wrong on purpose, and how often.
//!
//! One table drives parsing, help, counting and the tests; `serve.rs` plays the faults.

use rand::{Rng, RngExt};

use crate::error::OriginError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    Refuse,
    Reset,
    HalfClose,
    Close,
    Truncate,
    ResetMidBody,
    Stall,
    Hang,
    Malformed,
    HugeHead,
    Drip,
    ServerError,
    BadChunk,
    CloseOnReuse,
    Extra,
}

struct Described {
    kind: FaultKind,
    name: &'static str,
    help: &'static str,
}

const fn described(kind: FaultKind, name: &'static str, help: &'static str) -> Described {
    Described { kind, name, help }
}

/// In the order of the enum, which indexes the counters.
const TABLE: [Described; 15] = [
    described(
        FaultKind::Refuse,
        "refuse",
        "the ports are closed for that share of each second; 1 is for good",
    ),
    described(FaultKind::Reset, "reset", "RST instead of an answer"),
    described(FaultKind::HalfClose, "half-close", "FIN before the answer, and reading goes on"),
    described(FaultKind::Close, "close", "closes instead of answering"),
    described(FaultKind::Truncate, "truncate", "half of the announced body, then FIN"),
    described(FaultKind::ResetMidBody, "reset-mid-body", "half of the announced body, then RST"),
    described(FaultKind::Stall, "stall", "half of the announced body, then silence"),
    described(FaultKind::Hang, "hang", "no answer at all, and the connection stays open"),
    described(FaultKind::Malformed, "malformed", "bytes that are not HTTP, then FIN"),
    described(FaultKind::HugeHead, "huge-head", "a response head of 1 MB"),
    described(FaultKind::Drip, "drip", "the body byte by byte, each after a pause"),
    described(FaultKind::ServerError, "5xx", "status 503"),
    described(FaultKind::BadChunk, "bad-chunk", "a chunked body with a chunk size that is no number"),
    described(
        FaultKind::CloseOnReuse,
        "close-on-reuse",
        "answers the first request of a connection and closes at the next one without an answer",
    ),
    described(FaultKind::Extra, "extra", "more bytes after the end of the response"),
];

impl FaultKind {
    pub const COUNT: usize = TABLE.len();

    /// In the order of the help text.
    pub fn all() -> impl Iterator<Item = FaultKind> {
        TABLE.iter().map(|row| row.kind)
    }

    pub const fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// What happens, in a few words without a full stop.
    pub const fn help(self) -> &'static str {
        TABLE[self as usize].help
    }
}

/// A kind of fault, and the share of requests (of time, for `refuse`; of reuses, for `close-on-reuse`) that get it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// 0 to 1.
    pub rate: f64,
}

impl Fault {
    /// `KIND:RATE`, the rate as a share (`0.1`) or in percent (`10%`); `KIND` alone is always.
    pub fn parse(text: &str) -> Result<Fault, OriginError> {
        let (name, rate) = text.split_once(':').unwrap_or((text, "1"));
        let kind = FaultKind::all().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
            OriginError::new(format!("fault: unknown kind `{name}`"), format!("one of {}", names.join(", ")))
        })?;
        let rate = share(rate).ok_or_else(|| {
            OriginError::new(
                format!("fault {name}: cannot read the rate `{rate}`"),
                "a share from 0 to 1, as in `reset:0.05`, or percent, as in `reset:5%`",
            )
        })?;
        Ok(Fault { kind, rate })
    }
}

fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The faults of an origin, ready to be drawn from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Per request, each with the sum of the rates up to and with its own.
    cumulated: Vec<(FaultKind, f64)>,
    /// The share of each second in which the ports are closed.
    pub refuse: f64,
}

impl Faults {
    pub fn new(faults: &[Fault]) -> Result<Faults, OriginError> {
        let mut all = Faults::default();
        let mut sum = 0.0;
        for fault in faults {
            if fault.kind == FaultKind::Refuse {
                all.refuse += fault.rate;
            } else {
                sum += fault.rate;
                all.cumulated.push((fault.kind, sum));
            }
        }
        // A little more than 1, because ten times 0.1 is.
        if sum.max(all.refuse) > 1.0 + 1e-9 {
            return Err(OriginError::new(
                format!("faults: the rates add up to {:.3}", sum.max(all.refuse)),
                "a request gets one fault at most: the rates of all kinds together may be 1",
            ));
        }
        Ok(all)
    }

    /// The fault of this request, if it gets one. `reused`: the connection has answered before.
    pub fn draw(&self, reused: bool, rng: &mut impl Rng) -> Option<FaultKind> {
        if self.cumulated.is_empty() {
            return None;
        }
        let at: f64 = rng.random();
        let kind = self.cumulated.iter().find(|(_, until)| at < *until)?.0;
        (kind != FaultKind::CloseOnReuse || reused).then_some(kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn every_kind_has_its_row_a_unique_name_and_a_help_text() {
        let mut names: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{}", row.name);
            assert_eq!(Fault::parse(row.name).unwrap(), Fault { kind: row.kind, rate: 1.0 });
            assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{}", row.name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), FaultKind::COUNT);
    }

    #[test]
    fn rates_are_shares_or_percent() {
        let check =
            |text: &str, kind, rate| assert_eq!(Fault::parse(text).unwrap(), Fault { kind, rate }, "{text}");
        check("reset:0.05", FaultKind::Reset, 0.05);
        check("reset:5%", FaultKind::Reset, 0.05);
        check("5xx:1", FaultKind::ServerError, 1.0);
        check("hang:0", FaultKind::Hang, 0.0);
    }

    #[test]
    fn mistakes_get_a_hint() {
        let check = |text: &str, message: &str, hint: &str| {
            let error = Fault::parse(text).unwrap_err();
            assert_eq!(error.message, message);
            assert!(error.hint.contains(hint), "{}", error.hint);
        };
        check("explode:1", "fault: unknown kind `explode`", "half-close");
        check("reset:2", "fault reset: cannot read the rate `2`", "0 to 1");
        check("reset:-1%", "fault reset: cannot read the rate `-1%`", "percent");
        check("reset:", "fault reset: cannot read the rate ``", "0.05");
        check("reset:NaN", "fault reset: cannot read the rate `NaN`", "0.05");
    }

    #[test]
    fn rates_beyond_one_are_refused() {
        let fault = |kind, rate| Fault { kind, rate };
        assert!(Faults::new(&[fault(FaultKind::Reset, 0.6), fault(FaultKind::Hang, 0.4)]).is_ok());
        assert!(Faults::new(&[fault(FaultKind::Reset, 0.6), fault(FaultKind::Refuse, 0.6)]).is_ok());
        let error = Faults::new(&[fault(FaultKind::Reset, 0.6), fault(FaultKind::Hang, 0.5)]).unwrap_err();
        assert_eq!(error.message, "faults: the rates add up to 1.100");
    }

    #[test]
    fn each_kind_is_drawn_at_its_rate() {
        let faults = Faults::new(&[
            Fault { kind: FaultKind::Reset, rate: 0.1 },
            Fault { kind: FaultKind::Hang, rate: 0.3 },
        ])
        .unwrap();
        let mut rng = StdRng::seed_from_u64(1);
        let mut counts = BTreeMap::new();
        for _ in 0..10_000 {
            *counts.entry(faults.draw(false, &mut rng)).or_insert(0) += 1;
        }
        let near = |kind, want: i32| (counts[&kind] - want).abs() < 200;
        assert!(near(Some(FaultKind::Reset), 1_000) && near(Some(FaultKind::Hang), 3_000), "{counts:?}");
        assert!(near(None, 6_000), "{counts:?}");
    }

    #[test]
    fn the_first_request_of_a_connection_is_never_a_reuse() {
        let faults = Faults::new(&[Fault { kind: FaultKind::CloseOnReuse, rate: 1.0 }]).unwrap();
        let mut rng = StdRng::seed_from_u64(1);
        assert_eq!(faults.draw(false, &mut rng), None);
        assert_eq!(faults.draw(true, &mut rng), Some(FaultKind::CloseOnReuse));
    }
}
