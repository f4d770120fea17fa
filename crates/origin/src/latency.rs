//! How long an answer takes: a distribution, drawn from once per request.
//!
//! Time passes elsewhere; this only says how much.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, LogNormal, Normal};
use weir_model::units::{Nanos, parse_duration};

use crate::error::OriginError;

#[derive(Clone, Debug, PartialEq)]
pub enum Latency {
    Constant(Nanos),
    /// Every span between the two is as likely.
    Uniform {
        min: Nanos,
        max: Nanos,
    },
    /// Draws below zero count as zero.
    Normal {
        mean: Nanos,
        deviation: Nanos,
    },
    /// `median * exp(sigma * N(0, 1))`: the long right tail of real services.
    Lognormal {
        median: Nanos,
        sigma: f64,
    },
    /// As often as it was observed.
    Observed(Histogram),
}

impl Latency {
    pub const ZERO: Latency = Latency::Constant(Nanos::ZERO);

    /// What `parse` reads, for help texts.
    pub const GRAMMAR: &'static str =
        "100ms, uniform:10ms-20ms, normal:100ms,10ms, lognormal:100ms,0.5 (median, sigma) or histogram:FILE";

    /// Reads [`Latency::GRAMMAR`]. A histogram's file is read here and now.
    pub fn parse(text: &str) -> Result<Latency, OriginError> {
        let parsed = match text.split_once(':') {
            None => span(text).map(Latency::Constant),
            Some(("uniform", range)) => uniform(range),
            Some(("normal", rest)) => normal(rest),
            Some(("lognormal", rest)) => lognormal(rest),
            Some(("histogram", file)) => return Histogram::read(Path::new(file)).map(Latency::Observed),
            Some(_) => None,
        };
        parsed.ok_or_else(|| {
            OriginError::new(format!("latency: cannot read `{text}`"), format!("one of {}", Self::GRAMMAR))
        })
    }

    pub fn sample(&self, rng: &mut impl Rng) -> Nanos {
        match self {
            Latency::Constant(span) => *span,
            Latency::Uniform { min, max } => Nanos(rng.random_range(min.0..=max.0)),
            Latency::Normal { mean, deviation } => {
                let normal = Normal::new(mean.as_secs_f64(), deviation.as_secs_f64());
                Nanos::from_secs_f64(normal.expect("a finite deviation").sample(rng).max(0.0))
            }
            Latency::Lognormal { median, sigma } => {
                let factor = LogNormal::new(0.0, *sigma).expect("a finite sigma").sample(rng);
                Nanos::from_secs_f64(median.as_secs_f64() * factor)
            }
            Latency::Observed(histogram) => histogram.sample(rng),
        }
    }
}

fn span(text: &str) -> Option<Nanos> {
    parse_duration(text).ok()
}

fn uniform(range: &str) -> Option<Latency> {
    let (min, max) = range.split_once('-')?;
    let (min, max) = (span(min)?, span(max)?);
    (min <= max).then_some(Latency::Uniform { min, max })
}

fn normal(rest: &str) -> Option<Latency> {
    let (mean, deviation) = rest.split_once(',')?;
    Some(Latency::Normal { mean: span(mean)?, deviation: span(deviation)? })
}

fn lognormal(rest: &str) -> Option<Latency> {
    let (median, sigma) = rest.split_once(',')?;
    let sigma: f64 = sigma.parse().ok()?;
    (sigma.is_finite() && sigma >= 0.0).then_some(Latency::Lognormal { median: span(median)?, sigma })
}

/// Latencies as they were observed, each with how often.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    /// The value, and how many observations were of it or of one before it.
    cumulated: Arc<[(Nanos, u64)]>,
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} values of {} observations)", self.cumulated.len(), self.total())
    }
}

impl Histogram {
    /// A text file in milliseconds: lines `value_ms,count`, or the percentile distribution that HdrHistogram prints
    /// (`.hgrm`: value, percentile, total count, 1/(1-percentile)). Empty lines, `#` lines and column names are skipped.
    pub fn read(file: &Path) -> Result<Histogram, OriginError> {
        let text = std::fs::read_to_string(file).map_err(|e| {
            OriginError::new(
                format!("latency: {}: {e}", file.display()),
                "histogram:FILE names a readable text file",
            )
        })?;
        Histogram::parse(&text).map_err(|wrong| {
            OriginError::new(
                format!("latency: {}: {wrong}", file.display()),
                "lines `value_ms,count`, or an HdrHistogram percentile distribution in milliseconds",
            )
        })
    }

    /// The error names the line.
    pub fn parse(text: &str) -> Result<Histogram, String> {
        let mut cumulated = Vec::new();
        let mut total = 0;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| holds_data(line)) {
            let row = Row::parse(line)
                .ok_or_else(|| format!("line {}: cannot read `{}`", number + 1, line.trim()))?;
            let before = total;
            total =
                row.cumulate(total).ok_or_else(|| format!("line {}: the total count falls", number + 1))?;
            if total > before {
                cumulated.push((row.value, total));
            }
        }
        if cumulated.is_empty() {
            return Err("holds no observations".to_string());
        }
        Ok(Histogram { cumulated: cumulated.into() })
    }

    fn total(&self) -> u64 {
        self.cumulated.last().map_or(0, |(_, count)| *count)
    }

    fn sample(&self, rng: &mut impl Rng) -> Nanos {
        let nth = rng.random_range(0..self.total());
        let index = self.cumulated.partition_point(|(_, count)| *count <= nth);
        self.cumulated[index].0
    }
}

fn holds_data(line: &str) -> bool {
    line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// One line: a value and how often it came, alone or with all before it.
struct Row {
    value: Nanos,
    count: Count,
}

enum Count {
    Own(u64),
    Total(u64),
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        if let Some((value, count)) = line.split_once(',') {
            return Some(Row { value: millis(value)?, count: Count::Own(count.trim().parse().ok()?) });
        }
        let mut columns = line.split_whitespace();
        let value = millis(columns.next()?)?;
        let _percentile: f64 = columns.next()?.parse().ok()?;
        Some(Row { value, count: Count::Total(columns.next()?.parse().ok()?) })
    }

    fn cumulate(&self, total: u64) -> Option<u64> {
        match self.count {
            Count::Own(count) => total.checked_add(count),
            Count::Total(count) => (count >= total).then_some(count),
        }
    }
}

fn millis(text: &str) -> Option<Nanos> {
    let ms: f64 = text.trim().parse().ok()?;
    (ms.is_finite() && ms >= 0.0).then(|| Nanos::from_secs_f64(ms / 1e3))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn sorted_samples(latency: &Latency) -> Vec<Nanos> {
        let mut rng = StdRng::seed_from_u64(7);
        let mut samples: Vec<Nanos> = (0..10_001).map(|_| latency.sample(&mut rng)).collect();
        samples.sort();
        samples
    }

    #[test]
    fn the_grammar_is_read() {
        let check = |text: &str, expected| assert_eq!(Latency::parse(text).unwrap(), expected, "{text}");
        check("100ms", Latency::Constant(MS(100)));
        check("0", Latency::ZERO);
        check("uniform:10ms-20ms", Latency::Uniform { min: MS(10), max: MS(20) });
        check("normal:100ms,10ms", Latency::Normal { mean: MS(100), deviation: MS(10) });
        check("lognormal:100ms,0.5", Latency::Lognormal { median: MS(100), sigma: 0.5 });
    }

    #[test]
    fn what_is_not_in_the_grammar_is_refused_with_a_hint() {
        for wrong in [
            "",
            "fast",
            "uniform:20ms-10ms",
            "uniform:10ms",
            "normal:10ms",
            "lognormal:1s,-1",
            "pareto:1,2",
            "lognormal:1s,NaN",
        ] {
            let error = Latency::parse(wrong).unwrap_err();
            assert_eq!(error.message, format!("latency: cannot read `{wrong}`"));
            assert!(error.hint.contains("uniform:10ms-20ms"));
        }
    }

    #[test]
    fn a_histogram_that_is_not_there_is_named() {
        let error = Latency::parse("histogram:/nowhere/at/all.csv").unwrap_err();
        assert!(error.message.starts_with("latency: /nowhere/at/all.csv: "), "{}", error.message);
    }

    #[test]
    fn samples_follow_the_distribution() {
        let check = |latency: Latency, median_ms: f64, p90_ms: f64| {
            let sorted = sorted_samples(&latency);
            let near = |got: Nanos, want_ms: f64| (got.as_millis_f64() - want_ms).abs() <= want_ms * 0.03;
            assert!(near(sorted[5_000], median_ms), "{latency:?}: median {:?}", sorted[5_000]);
            assert!(near(sorted[9_000], p90_ms), "{latency:?}: p90 {:?}", sorted[9_000]);
        };
        check(Latency::Constant(MS(5)), 5.0, 5.0);
        check(Latency::Uniform { min: MS(10), max: MS(20) }, 15.0, 19.0);
        // z(0.9) = 1.2816.
        check(Latency::Normal { mean: MS(100), deviation: MS(10) }, 100.0, 112.816);
        check(Latency::Lognormal { median: MS(100), sigma: 0.5 }, 100.0, 189.8);
    }

    #[test]
    fn the_same_seed_gives_the_same_latencies() {
        let latency = Latency::Lognormal { median: MS(100), sigma: 0.5 };
        assert_eq!(sorted_samples(&latency), sorted_samples(&latency));
    }

    #[test]
    fn a_draw_below_zero_is_zero() {
        let sorted = sorted_samples(&Latency::Normal { mean: MS(1), deviation: MS(100) });
        assert_eq!(sorted[0], Nanos::ZERO);
    }

    #[test]
    fn both_histogram_formats_are_read_and_drawn_from() {
        let check = |text: &str| {
            let sorted = sorted_samples(&Latency::Observed(Histogram::parse(text).unwrap()));
            assert_eq!((sorted[0], sorted[5_000], sorted[9_500]), (MS(10), MS(10), MS(200)));
            let share = sorted.iter().filter(|s| **s == MS(200)).count() as f64 / 10_001.0;
            assert!((share - 0.1).abs() < 0.02, "{share}");
        };
        check("value_ms,count\n# a comment\n\n10,90\n200,10\n");
        check(concat!(
            "       Value     Percentile TotalCount 1/(1-Percentile)\n\n",
            "      10.000 0.000000000000         90           1.00\n",
            "      10.000 0.500000000000         90           2.00\n",
            "     200.000 1.000000000000        100\n",
            "#[Mean    =       29.000, StdDeviation   =       57.000]\n",
        ));
    }

    #[test]
    fn a_broken_histogram_names_the_line() {
        let check = |text: &str, expected: &str| assert_eq!(Histogram::parse(text).unwrap_err(), expected);
        check("", "holds no observations");
        check("10,0\n", "holds no observations");
        check("10,1\n20\n", "line 2: cannot read `20`");
        check("-1,5\n", "line 1: cannot read `-1,5`");
        check("1 0.1 50 1.0\n2 0.2 40 1.2\n", "line 2: the total count falls");
    }
}
