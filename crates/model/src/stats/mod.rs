//! Distributions of times: the only place of the project where a percentile is computed.
//!
//! A `Histogram` counts values in HDR buckets (3 significant digits from 1 µs to 1 h) and keeps what buckets lose,
//! the count, the sum, the smallest and the largest value, exactly and apart. It merges, and travels as the
//! HdrHistogram V2 compressed base64 payload that other tools read. It does not know what was measured: `tick` does.
//!
//! ```text
//! 0 ns       512 ns                                        1 h
//!  |-- below --|-- buckets, allocated as far as values go --|-- clamped: counted at 1 h, and said --
//! ```
//!
//! Most phases of most requests are zero (a reused connection dials nothing), so a histogram that only ever saw
//! values below its resolution owns no buckets.

mod bars;
mod buckets;
mod summary;

pub use bars::Bar;
pub use summary::{HdrError, Summary};

use self::buckets::{Bucket, Buckets, UNIT_NS};
use crate::units::Nanos;

/// Lowest discernible value: 1 µs.
const LOW_NS: u64 = 1_000;
/// Highest value with a bucket of its own: 1 h.
const HIGH_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

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
    buckets: Buckets,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            below: 0,
            clamped: 0,
            buckets: Buckets::default(),
        }
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

    /// Counts many values, for less than one by one: the buckets of one histogram stay in the cache meanwhile, and
    /// values that are all zero, as dials mostly are, are never looked at singly.
    pub fn record_all(&mut self, values_ns: &[u64]) {
        if values_ns.is_empty() {
            return;
        }
        self.count += values_ns.len() as u64;
        if values_ns.iter().fold(0, |any, value_ns| any | value_ns) == 0 {
            self.min_ns = 0;
            self.below += values_ns.len() as u64;
            return;
        }
        self.sum_ns += sum(values_ns);
        for &value_ns in values_ns {
            self.min_ns = self.min_ns.min(value_ns);
            self.max_ns = self.max_ns.max(value_ns);
            self.count_in_bucket(value_ns, 1);
        }
    }

    #[inline]
    fn count_in_bucket(&mut self, value_ns: u64, n: u64) {
        if value_ns < UNIT_NS {
            self.below += n;
            return;
        }
        if value_ns > HIGH_NS {
            self.clamped += n;
        }
        self.buckets.add(value_ns.min(HIGH_NS), n);
    }

    /// Adds what the other one counted. Associative and commutative.
    pub fn merge(&mut self, other: &Histogram) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.below += other.below;
        self.clamped += other.clamped;
        self.buckets.merge(&other.buckets);
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
    /// value. One below 512 ns is reported as the smallest. Zero if nothing was recorded.
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

    /// Every bucket that holds something, upwards, cut to the exact extremes.
    fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let below = (self.below > 0).then_some(Bucket { from_ns: 0, value_ns: 0, count: self.below });
        let within = |ns: u64| ns.clamp(self.min_ns, self.max_ns);
        let all = below.into_iter().chain(self.buckets.iter());
        all.map(move |b| Bucket { from_ns: within(b.from_ns), value_ns: within(b.value_ns), ..b })
    }
}

fn sum(values_ns: &[u64]) -> u128 {
    // 64 bits hold the sum of 2^16 spans of three days each, and add up several times as fast as 128.
    let fits = values_ns.len() <= 1 << 16 && values_ns.iter().fold(0, |any, v| any | v) < 1 << 48;
    if fits {
        u128::from(values_ns.iter().sum::<u64>())
    } else {
        values_ns.iter().map(|&v| u128::from(v)).sum()
    }
}

/// Which value in ascending order is the percentile: ⌈p/100 · n⌉, from 1 to n.
fn rank_of(percent: f64, count: u64) -> u64 {
    let exact = percent / 100.0 * count as f64;
    // 99.9 % of 1000 is 999 and not 999.0000000000001.
    let whole = (exact - exact.round()).abs() <= exact * 1e-12;
    let rank = if whole { exact.round() } else { exact.ceil() };
    (rank as u64).clamp(1, count)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HOUR_NS: u64 = HIGH_NS;

    fn of(values_ns: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.record_all(values_ns);
        histogram
    }

    fn merged(parts: &[&Histogram]) -> Histogram {
        parts.iter().fold(Histogram::default(), |mut whole, part| {
            whole.merge(part);
            whole
        })
    }

    /// Zero, below the resolution, everyday, and beyond the highest bucket.
    fn span_ns() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..2_000_u64,
            1_000..2_000_000_u64,
            1_000_000..60_000_000_000_u64,
            HOUR_NS - 10..HOUR_NS + 10,
            Just(u64::MAX),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn merge_is_associative_and_commutative(a in vec(span_ns(), 0..40), b in vec(span_ns(), 0..40), c in vec(span_ns(), 0..40)) {
            let (a, b, c) = (of(&a), of(&b), of(&c));
            prop_assert_eq!(merged(&[&a, &b]), merged(&[&b, &a]));
            prop_assert_eq!(merged(&[&merged(&[&a, &b]), &c]), merged(&[&a, &merged(&[&b, &c])]));
        }

        #[test]
        fn merge_equals_recording_everything_in_one(a in vec(span_ns(), 0..40), b in vec(span_ns(), 0..40)) {
            let together: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged(&[&of(&a), &of(&b)]), of(&together));
        }

        #[test]
        fn a_slice_counts_as_its_values_one_by_one(values in vec(span_ns(), 0..100)) {
            let mut singly = Histogram::default();
            values.iter().for_each(|&v| singly.record(Nanos(v)));
            prop_assert_eq!(singly, of(&values));
        }

        #[test]
        fn quantiles_are_monotone_and_between_the_extremes(values in vec(span_ns(), 1..100), p in 0.0..100.0, q in 0.0..100.0) {
            let histogram = of(&values);
            let (low, high) = (histogram.percentile(f64::min(p, q)), histogram.percentile(f64::max(p, q)));
            prop_assert!(histogram.min() <= low && low <= high && high <= histogram.max());
        }

        #[test]
        fn a_percentile_is_the_value_of_its_rank_to_three_digits(mut values in vec(0..HOUR_NS, 1..100), percent in 0.0..=100.0) {
            let found_ns = of(&values).percentile(percent).0;
            values.sort_unstable();
            let exact_ns = values[rank_of(percent, values.len() as u64) as usize - 1];
            let tolerance_ns = (exact_ns / 1_000).max(UNIT_NS);
            prop_assert!(found_ns.abs_diff(exact_ns) <= tolerance_ns, "{found_ns} for {exact_ns}");
        }

        #[test]
        fn count_sum_and_extremes_are_exact(values in vec(span_ns(), 1..100)) {
            let histogram = of(&values);
            let exact: u128 = values.iter().map(|&v| u128::from(v)).sum();
            prop_assert_eq!(histogram.sum_ns(), exact);
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.min().0, *values.iter().min().unwrap());
            prop_assert_eq!(histogram.max().0, *values.iter().max().unwrap());
            prop_assert_eq!(histogram.clamped(), values.iter().filter(|&&v| v > HOUR_NS).count() as u64);
        }

        #[test]
        fn bars_hold_every_value(values in vec(span_ns(), 1..100), n in 1..20_usize) {
            let histogram = of(&values);
            let bars = histogram.linear_buckets(n);
            prop_assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), histogram.count());
            prop_assert!(bars.windows(2).all(|pair| pair[0].upper_ms <= pair[1].upper_ms));
        }
    }

    #[test]
    fn ranks_count_from_one_and_survive_floating_point() {
        let check = |percent, count, rank| assert_eq!(rank_of(percent, count), rank, "p{percent} of {count}");
        check(0.0, 10, 1);
        check(50.0, 1, 1);
        check(50.0, 10, 5);
        check(50.0, 11, 6);
        check(99.0, 100, 99);
        check(99.9, 1_000, 999);
        check(99.9, 1_001, 1_000);
        check(99.9, 1_000_000_000_000, 999_000_000_000);
        check(100.0, 10, 10);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.min(), empty.max(), empty.percentile(99.0)),
            (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO)
        );
        assert_eq!((empty.mean_ms(), empty.linear_buckets(10)), (0.0, vec![]));
    }

    #[test]
    fn only_zeros_own_no_buckets() {
        let zeros = of(&[0; 1_000]);
        assert_eq!(zeros.buckets, Buckets::default());
        assert_eq!((zeros.count(), zeros.percentile(100.0)), (1_000, Nanos::ZERO));
    }

    #[test]
    fn one_value_is_every_percentile_exactly() {
        let one = of(&[123_456_789]);
        for percent in [0.0, 1.0, 50.0, 99.9, 100.0] {
            assert_eq!(one.percentile(percent), Nanos(123_456_789));
        }
    }

    #[test]
    fn values_above_an_hour_are_clamped_and_counted() {
        let long = of(&[1_000_000, HOUR_NS, HOUR_NS + 1, 5 * HOUR_NS]);
        assert_eq!((long.clamped(), long.max().0), (2, 5 * HOUR_NS));
        assert!(long.percentile(100.0).0.abs_diff(HOUR_NS) <= HOUR_NS / 1_000);
    }
}
