//! A histogram cut into a few bars of equal width, for the text report.

use super::Histogram;

/// Values up to `upper_ms` and above the bar before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub upper_ms: f64,
    pub count: u64,
}

impl Histogram {
    /// As hey draws it: the smallest value, then `n` bars of equal width up to the largest one. The counts add up to
    /// all values. A single bar if all values are equal, none if there are none.
    pub fn linear_buckets(&self, n: usize) -> Vec<Bar> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut bars = bars_between(self.min_ns, self.max_ns, n);
        let mut at = 0;
        for bucket in self.buckets() {
            // By its lower end, so that the smallest value is in the bar that ends with it. The last bar takes what rounding would leave above it.
            while at + 1 < bars.len() && bucket.from_ns as f64 / 1e6 > bars[at].upper_ms {
                at += 1;
            }
            bars[at].count += bucket.count;
        }
        bars
    }
}

fn bars_between(min_ns: u64, max_ns: u64, n: usize) -> Vec<Bar> {
    let width_ns = (max_ns - min_ns) as f64 / n.max(1) as f64;
    let last = if max_ns == min_ns { 0 } else { n.max(1) };
    (0..=last).map(|i| Bar { upper_ms: (min_ns as f64 + width_ns * i as f64) / 1e6, count: 0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    fn check(values_ms: &[u64], n: usize, expected: &[(f64, u64)]) {
        let mut histogram = Histogram::default();
        values_ms.iter().for_each(|&ms| histogram.record(Nanos::from_millis(ms)));
        let bars: Vec<_> = histogram.linear_buckets(n).iter().map(|bar| (bar.upper_ms, bar.count)).collect();
        assert_eq!(bars, expected, "{values_ms:?}");
    }

    #[test]
    fn bars_are_of_equal_width_and_begin_with_the_smallest_value() {
        check(&[10, 11, 12, 20], 2, &[(10.0, 1), (15.0, 2), (20.0, 1)]);
        check(&[0, 0, 0, 4], 4, &[(0.0, 3), (1.0, 0), (2.0, 0), (3.0, 0), (4.0, 1)]);
    }

    #[test]
    fn equal_values_are_one_bar() {
        check(&[7, 7, 7], 10, &[(7.0, 3)]);
    }

    #[test]
    fn no_values_are_no_bars() {
        check(&[], 10, &[]);
    }
}
