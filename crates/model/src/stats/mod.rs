//! Distributions of times: the only place of the project where a percentile is computed.
//!
//! A `Histogram` counts values in HDR buckets (3 significant digits from 1 µs to 1 h) and keeps what buckets lose,
//! the count, the sum, the smallest and the largest value, exactly and apart. It merges, and travels as the
//! HdrHistogram V2 compressed base64 payload that other tools read. It does not know what was measured: `tick` does.
//!
//! ```text
//! 0 ns       512 ns                                          1 h
//!  |-- below --|-- counts, allocated when the first one comes --|-- clamped: counted at 1 h, and said --
//! ```
//!
//! Most phases of most requests are zero (a reused connection dials nothing), so a histogram that only ever saw
//! values below its resolution owns no buckets.

mod bars;
mod summary;

use hdrhistogram::Histogram as Hdr;

pub use bars::Bar;
pub use summary::{HdrError, Summary};

use crate::units::Nanos;

/// Lowest discernible value: 1 µs.
const LOW_NS: u64 = 1_000;
/// Highest value with a bucket of its own: 1 h.
const HIGH_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Where the second bucket begins: the largest power of two that is not above `LOW_NS`.
const BELOW_NS: u64 = 512;

/// Times of one kind. Equal when every bucket and every exact figure is equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    /// Values of the first bucket, which are reported as `min`.
    below: u64,
    /// Values above 1 h, which stand in the bucket of 1 h.
    clamped: u64,
    counts: Option<Box<Hdr<u64>>>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0, below: 0, clamped: 0, counts: None }
    }
}

impl Histogram {
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// Counts the same value `n` times.
    pub fn record_n(&mut self, value: Nanos, n: u64) {
        if n == 0 {
            return;
        }
        self.count += n;
        self.sum_ns += u128::from(value.0) * u128::from(n);
        self.min_ns = self.min_ns.min(value.0);
        self.max_ns = self.max_ns.max(value.0);
        self.count_in_bucket(value.0, n);
    }

    /// Counts many values. Faster than one by one: the exact figures are taken in one pass over the slice, and the
    /// buckets of one histogram stay in the cache meanwhile.
    pub fn record_all(&mut self, values_ns: &[u64]) {
        let Some(block) = Block::of(values_ns) else { return };
        self.count += values_ns.len() as u64;
        self.sum_ns += block.sum_ns;
        self.min_ns = self.min_ns.min(block.min_ns);
        self.max_ns = self.max_ns.max(block.max_ns);
        if block.max_ns < BELOW_NS {
            self.below += values_ns.len() as u64;
            return;
        }
        for &value_ns in values_ns {
            self.count_in_bucket(value_ns, 1);
        }
    }

    #[inline]
    fn count_in_bucket(&mut self, value_ns: u64, n: u64) {
        if value_ns < BELOW_NS {
            self.below += n;
            return;
        }
        if value_ns > HIGH_NS {
            self.clamped += n;
        }
        let counts = self.counts.get_or_insert_with(empty_counts);
        counts.record_n(value_ns.min(HIGH_NS), n).expect("every value up to 1 h has a bucket");
    }

    /// Adds what the other one counted. Associative and commutative.
    pub fn merge(&mut self, other: &Histogram) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.below += other.below;
        self.clamped += other.clamped;
        if let Some(theirs) = &other.counts {
            let ours = self.counts.get_or_insert_with(empty_counts);
            ours.add(theirs.as_ref()).expect("all histograms have the same buckets");
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many values were above 1 h.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Exact. Zero if nothing was recorded.
    pub fn min(&self) -> Nanos {
        if self.is_empty() { Nanos::ZERO } else { Nanos(self.min_ns) }
    }

    /// Exact, above 1 h too.
    pub fn max(&self) -> Nanos {
        Nanos(self.max_ns)
    }

    /// Exact: the sum over all values.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The exact mean in milliseconds; zero if nothing was recorded.
    pub fn mean_ms(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e6 }
    }

    /// The smallest recorded value that at least `percent` of all values do not exceed, to 3 significant digits and
    /// rounded up to the end of its bucket as HdrHistogram does, but never beyond the exact smallest and largest
    /// value. Zero if nothing was recorded.
    pub fn percentile(&self, percent: f64) -> Nanos {
        if self.is_empty() {
            return Nanos::ZERO;
        }
        let rank = rank_of(percent, self.count);
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank {
                return Nanos(bucket.value_ns);
            }
        }
        self.max()
    }

    /// The share of values at or below this one, 0 to 1, to the resolution of the buckets.
    pub fn share_up_to(&self, value: Nanos) -> f64 {
        let up_to: u64 = self.buckets().take_while(|b| b.value_ns <= value.0).map(|b| b.count).sum();
        if self.is_empty() { 0.0 } else { up_to as f64 / self.count as f64 }
    }

    /// Every bucket that holds something, by value upwards.
    fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let below = (self.below > 0).then_some(Bucket { value_ns: 0, count: self.below });
        let above = self.counts.iter().flat_map(|counts| counts.iter_recorded());
        let above =
            above.map(|v| Bucket { value_ns: v.value_iterated_to(), count: v.count_since_last_iteration() });
        below
            .into_iter()
            .chain(above)
            .map(|b| Bucket { value_ns: b.value_ns.clamp(self.min_ns, self.max_ns), count: b.count })
    }
}

/// A bucket and the value it stands for.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    value_ns: u64,
    count: u64,
}

/// The exact figures of a slice of values.
struct Block {
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Block {
    /// `None` for no values.
    fn of(values_ns: &[u64]) -> Option<Block> {
        let min_ns = *values_ns.iter().min()?;
        let max_ns = *values_ns.iter().max()?;
        // A sum in 64 bits is what the compiler can do four at a time, and holds for any slice of sane values.
        let fits = max_ns.checked_mul(values_ns.len() as u64).is_some();
        let sum_ns = if fits {
            u128::from(values_ns.iter().sum::<u64>())
        } else {
            values_ns.iter().map(|&v| u128::from(v)).sum()
        };
        Some(Block { sum_ns, min_ns, max_ns })
    }
}

fn empty_counts() -> Box<Hdr<u64>> {
    let counts = Hdr::new_with_bounds(LOW_NS, HIGH_NS, SIGNIFICANT_DIGITS);
    Box::new(counts.expect("the bounds are valid"))
}

/// Which value in ascending order is the percentile: ⌈p/100 · n⌉, from 1 to n.
fn rank_of(percent: f64, count: u64) -> u64 {
    let exact = percent / 100.0 * count as f64;
    // 99.9 % of 1000 is 999 and not 999.0000000000001.
    let whole = (exact - exact.round()).abs() <= exact * 1e-12;
    let rank = if whole { exact.round() } else { exact.ceil() };
    (rank as u64).clamp(1, count)
}
