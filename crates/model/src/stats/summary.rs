//! A distribution as it stands in the JSON: milliseconds, and the payload from which every other figure follows.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::{Histogram, empty_counts};
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
        let mut counts = self.counts.clone().unwrap_or_else(empty_counts);
        counts.record_n(0, self.below).expect("zero has a bucket");
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
        histogram.min_ns = histogram.min_ns.min(counts.lowest_equivalent(histogram.min_ns));
        histogram.max_ns = histogram.max_ns.max(counts.highest_equivalent(histogram.max_ns));
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
