//! How many requests may be under way at once: the thread pool of a server, as its clients feel it.
//!
//! Whoever finds no room waits in one queue over all threads, first come first served. Holds numbers only: who wakes
//! whose thread is the loop's business.

use std::collections::VecDeque;

/// A request that waits: the connection `id` in `slot` of `thread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub thread: u32,
    pub slot: u32,
    pub id: u32,
}

#[derive(Debug)]
pub(crate) struct Gate {
    limit: u32,
    under_way: u32,
    queue: VecDeque<Ticket>,
    queue_peak: usize,
}

impl Gate {
    pub fn new(limit: u32) -> Gate {
        Gate { limit, under_way: 0, queue: VecDeque::new(), queue_peak: 0 }
    }

    /// True: go on. False: the ticket comes out of `leave` in its turn.
    pub fn enter(&mut self, ticket: Ticket) -> bool {
        if self.under_way < self.limit {
            self.under_way += 1;
            return true;
        }
        self.queue.push_back(ticket);
        self.queue_peak = self.queue_peak.max(self.queue.len());
        false
    }

    /// One is done. The first in the queue takes its place; if that one has gone away meanwhile, it has to leave too.
    pub fn leave(&mut self) -> Option<Ticket> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.under_way = self.under_way.checked_sub(1).expect("whoever leaves has entered");
        }
        next
    }

    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub fn queue_peak(&self) -> usize {
        self.queue_peak
    }

    pub fn reset_peak(&mut self) {
        self.queue_peak = self.queue.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(id: u32) -> Ticket {
        Ticket { thread: 0, slot: id, id }
    }

    #[test]
    fn as_many_as_the_limit_are_under_way_and_the_rest_wait_in_order() {
        let mut gate = Gate::new(2);
        let entered: Vec<bool> = (0..5).map(|id| gate.enter(ticket(id))).collect();
        assert_eq!(entered, [true, true, false, false, false]);
        assert_eq!((gate.under_way(), gate.waiting(), gate.queue_peak()), (2, 3, 3));
        let next: Vec<_> = (0..5).map(|_| gate.leave()).collect();
        assert_eq!(next, [Some(ticket(2)), Some(ticket(3)), Some(ticket(4)), None, None]);
        assert_eq!((gate.under_way(), gate.waiting(), gate.queue_peak()), (0, 0, 3));
    }

    #[test]
    fn the_peak_starts_again_from_what_waits_now() {
        let mut gate = Gate::new(1);
        (0..4).for_each(|id| {
            gate.enter(ticket(id));
        });
        gate.leave();
        gate.reset_peak();
        assert_eq!(gate.queue_peak(), 2);
    }
}
