//! A distribution as it stands in the JSON: milliseconds, and the payload from which every other figure follows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::{HIGH_NS, Histogram, LOW_NS, SIGNIFICANT_DIGITS};
use crate::units::Nanos;

/// The figures of one distribution. All times in milliseconds; all zero when `count` is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub count: u64,
    pub mean: f64,
    pub min: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// Values above 1 h, which the percentiles take for 1 h.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clamped: u64,
    /// HdrHistogram V2 compressed base64 payload, in nanoseconds.
    pub hdr: String,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A payload that is no HdrHistogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdrError(pub String);

impl std::fmt::Display for HdrError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hdr payload: {}", self.0)
    }
}

impl std::error::Error for HdrError {}

impl Histogram {
    pub fn summary(&self) -> Summary {
        let ms = |percent| self.percentile(percent).as_millis_f64();
        Summary {
            count: self.count,
            mean: self.mean_ms(),
            min: self.min().as_millis_f64(),
            p50: ms(50.0),
            p75: ms(75.0),
            p90: ms(90.0),
            p95: ms(95.0),
            p99: ms(99.0),
            p999: ms(99.9),
            max: self.max().as_millis_f64(),
            clamped: self.clamped,
            hdr: self.to_hdr(),
        }
    }

    /// The HdrHistogram V2 compressed payload as base64, values in nanoseconds.
    pub fn to_hdr(&self) -> String {
        let mut counts =
            Hdr::<u64>::new_with_bounds(LOW_NS, HIGH_NS, SIGNIFICANT_DIGITS).expect("the bounds are valid");
        counts.saturating_record_n(0, self.below);
        for bucket in self.buckets.iter() {
            counts.saturating_record_n(bucket.value_ns, bucket.count);
        }
        let mut payload = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&counts, &mut payload)
            .expect("a vector takes every byte that is written to it");
        STANDARD.encode(payload)
    }

    /// Reads a payload of any HdrHistogram in nanoseconds. What a payload does not hold, the exact mean, minimum and
    /// maximum, is taken from its buckets.
    pub fn from_hdr(payload: &str) -> Result<Histogram, HdrError> {
        let bytes = STANDARD.decode(payload.trim()).map_err(|e| HdrError(e.to_string()))?;
        let counts: Hdr<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|e| HdrError(e.to_string()))?;
        let mut histogram = Histogram::default();
        for bucket in counts.iter_recorded() {
            let value_ns = counts.median_equivalent(bucket.value_iterated_to());
            histogram.record_n(Nanos(value_ns), bucket.count_since_last_iteration());
        }
        if !histogram.is_empty() {
            histogram.min_ns = counts.lowest_equivalent(histogram.min_ns);
            histogram.max_ns = counts.highest_equivalent(histogram.max_ns);
        }
        Ok(histogram)
    }
}

impl Summary {
    /// The histogram that this is the summary of, with the exact figures of the summary. An empty one if the payload
    /// is missing.
    pub fn histogram(&self) -> Result<Histogram, HdrError> {
        if self.count == 0 || self.hdr.is_empty() {
            return Ok(Histogram::default());
        }
        let mut histogram = Histogram::from_hdr(&self.hdr)?;
        if histogram.count != self.count {
            return Err(HdrError(format!("it holds {} values, the summary {}", histogram.count, self.count)));
        }
        histogram.min_ns = ns(self.min);
        histogram.max_ns = ns(self.max);
        histogram.sum_ns = (self.mean * 1e6 * self.count as f64).round() as u128;
        histogram.clamped = self.clamped;
        Ok(histogram)
    }
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PERCENTS: [f64; 7] = [25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

    fn of(values_ns: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.record_all(values_ns);
        histogram
    }

    /// The crate's own quantiles of our payload.
    fn decoded(payload: &str) -> Hdr<u64> {
        let bytes = STANDARD.decode(payload).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    proptest! {
        // Payloads are compressed, which is slow without optimisation.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_payload_decodes_to_the_same_quantiles(values in vec(0..HIGH_NS, 1..100)) {
            let histogram = of(&values);
            let theirs = decoded(&histogram.to_hdr());
            prop_assert_eq!(theirs.len(), histogram.count());
            for percent in PERCENTS {
                let (ours, theirs) = (histogram.percentile(percent).0, theirs.value_at_quantile(percent / 100.0));
                // Theirs is the end of the bucket, ours is no further than the exact extremes.
                let tolerance_ns = (theirs / 1_000).max(512);
                prop_assert!(ours <= theirs && theirs - ours <= tolerance_ns, "p{percent}: {ours} and {theirs}");
            }
        }

        #[test]
        fn a_summary_gives_its_histogram_back(values in vec(0..3 * HIGH_NS, 0..100)) {
            let summary = of(&values).summary();
            let back = summary.histogram().unwrap();
            let again = back.summary();
            prop_assert!((again.mean - summary.mean).abs() <= summary.mean * 1e-9);
            prop_assert_eq!(Summary { mean: summary.mean, ..again }, summary);
            prop_assert_eq!(back.linear_buckets(10), of(&values).linear_buckets(10));
        }

        #[test]
        fn merged_payloads_are_the_payload_of_the_merged(a in vec(0..HIGH_NS, 0..50), b in vec(0..HIGH_NS, 0..50)) {
            let mut merged = Histogram::from_hdr(&of(&a).to_hdr()).unwrap();
            merged.merge(&Histogram::from_hdr(&of(&b).to_hdr()).unwrap());
            let together: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged.to_hdr(), of(&together).to_hdr());
        }
    }

    #[test]
    fn a_payload_is_what_other_implementations_call_v2_compressed() {
        // The cookie 0x1c849314 of every such payload is these letters in base64.
        assert!(of(&[1_000_000]).to_hdr().starts_with("HISTFA"));
    }

    #[test]
    fn an_empty_histogram_has_a_payload_too() {
        let summary = Histogram::default().summary();
        assert_eq!(summary, Summary { hdr: summary.hdr.clone(), ..Summary::default() });
        assert_eq!(Histogram::from_hdr(&summary.hdr).unwrap(), Histogram::default());
    }

    #[test]
    fn a_payload_of_another_precision_is_read() {
        let mut foreign = Hdr::<u64>::new_with_bounds(1, 10_000_000_000, 2).unwrap();
        foreign.record_n(5_000_000, 10).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&foreign, &mut bytes).unwrap();
        let histogram = Histogram::from_hdr(&STANDARD.encode(bytes)).unwrap();
        assert_eq!(histogram.count(), 10);
        assert!(histogram.percentile(50.0).0.abs_diff(5_000_000) < 50_000);
    }

    #[test]
    fn what_is_no_payload_is_an_error() {
        for bad in ["", "!", "AAAA", "HISTFAAAAAA="] {
            assert!(Histogram::from_hdr(bad).is_err(), "`{bad}` was read");
        }
    }

    #[test]
    fn a_payload_of_another_count_is_an_error() {
        let summary = Summary { count: 3, ..of(&[1_000_000]).summary() };
        assert_eq!(
            summary.histogram().unwrap_err().to_string(),
            "hdr payload: it holds 1 values, the summary 3"
        );
    }
}
