//! Deadlines, soonest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of `(time, key)`. It cancels nothing: its owner ignores keys that have become meaningless.
#[derive(Debug)]
pub struct Timers<K> {
    heap: BinaryHeap<Reverse<(u64, u64, K)>>,
    /// Breaks ties in the order of arrival.
    sequence: u64,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<K: Ord> Timers<K> {
    pub fn at(&mut self, time: u64, key: K) {
        self.sequence += 1;
        self.heap.push(Reverse((time, self.sequence, key)));
    }

    /// The soonest deadline.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes the soonest deadline if it is not after `now`.
    pub fn pop(&mut self, now: u64) -> Option<K> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, key))| key)
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
