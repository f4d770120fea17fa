//! The counts of a histogram, in the layout of HdrHistogram.
//!
//! Buckets are as wide as their values are large: from 2^20 ns on, every doubling of the value has 1,024 buckets, so
//! each is at most 1/1024 of its values wide, which is 3 significant digits. Below, all are 512 ns wide.
//!
//! ```text
//! value   0      512    1024 …      2^20           2^21            2^22
//! width      512    512      …  512      1024  …        2048   …
//! index   0      1      2    …      2048           3072            4096
//! ```
//!
//! The `hdrhistogram` crate has the same layout, and `summary` lets it write and read the payload. It does not count
//! here because its checks and its running figures cost three times as much per value, and values are counted on the
//! thread that measures: `examples/fold_cost.rs`.

/// Width of the first buckets: the largest power of two that is not above the lowest discernible value, 1 µs.
pub(super) const UNIT_NS: u64 = 1 << UNIT_BITS;
const UNIT_BITS: u32 = 9;
/// Buckets per doubling.
const HALF: usize = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;
/// Below this value all buckets are of one width.
const LINEAR_BITS: u32 = UNIT_BITS + HALF_BITS + 1;

/// Grows to the doubling of its largest value and no further: equal contents have equal lengths.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Buckets {
    counts: Vec<u64>,
}

/// A bucket that holds something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    /// The smallest value that belongs to it.
    pub(super) from_ns: u64,
    /// The largest value that belongs to it.
    pub(super) value_ns: u64,
    pub(super) count: u64,
}

impl Buckets {
    #[inline]
    pub(super) fn add(&mut self, value_ns: u64, n: u64) {
        let index = index_of(value_ns);
        match self.counts.get_mut(index) {
            Some(count) => *count += n,
            None => {
                self.grow(index);
                self.counts[index] += n;
            }
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.counts.resize((index / HALF + 1) * HALF, 0);
    }

    pub(super) fn merge(&mut self, other: &Buckets) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
    }

    /// Upwards.
    pub(super) fn iter(&self) -> impl Iterator<Item = Bucket> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(index, &count)| Bucket { from_ns: lowest_of(index), value_ns: highest_of(index), count })
    }
}

#[inline]
fn index_of(value_ns: u64) -> usize {
    let doublings = 64 - (value_ns | ((1 << LINEAR_BITS) - 1)).leading_zeros() - LINEAR_BITS;
    ((doublings as usize) << HALF_BITS) + (value_ns >> (doublings + UNIT_BITS)) as usize
}

fn lowest_of(index: usize) -> u64 {
    let doublings = (index >> HALF_BITS).saturating_sub(1);
    let within = (index - (doublings << HALF_BITS)) as u64;
    within << (doublings as u32 + UNIT_BITS)
}

fn highest_of(index: usize) -> u64 {
    lowest_of(index + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_hdrhistogram() {
        let theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap();
        let edges =
            (9..42).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, 3 << (bits - 1)]);
        for value_ns in edges.chain([0, 1, 511, 999_999, 123_456_789, 3_600_000_000_000]) {
            let value_ns = value_ns.min(3_600_000_000_000);
            assert_eq!(highest_of(index_of(value_ns)), theirs.highest_equivalent(value_ns), "{value_ns} ns");
        }
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for index in 0..24 * HALF {
            let highest = highest_of(index);
            assert_eq!((index_of(highest), index_of(highest + 1)), (index, index + 1));
        }
    }
}
