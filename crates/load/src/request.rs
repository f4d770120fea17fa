//! The requests that are under way, and what each has been through. Starts, sends and ends none: `instance` does.

use weir_model::sample::{Dial, Outcome, Phase, Sample};
use weir_model::units::Nanos;

/// No request, no connection: both are dense indices.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A request from its start to its end.
pub(crate) struct Request {
    pub message: u16,
    pub lane: u16,
    /// The connection that serves it, or `NOBODY`.
    pub conn: u32,
    /// The connection whose dial its `Acquire` started, or `NOBODY`.
    pub dial: u32,
    pub intended: Nanos,
    pub started: Nanos,
    pub acquired: Nanos,
    pub sent: Option<Nanos>,
    pub first_byte: Option<Nanos>,
    pub dial_spans: Dial,
    pub status: u16,
    pub reused: bool,
    pub retries: u8,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Neighbours in the order of `intended`, which is that of their timeouts.
    earlier: u32,
    later: u32,
}

impl Request {
    /// At its start: it has no connection and has reached nothing.
    pub fn new(message: u16, lane: u16, intended: Nanos, started: Nanos) -> Request {
        Request {
            message,
            lane,
            conn: NOBODY,
            dial: NOBODY,
            intended,
            started,
            acquired: Nanos::ZERO,
            sent: None,
            first_byte: None,
            dial_spans: Dial::default(),
            status: 0,
            reused: false,
            retries: 0,
            bytes_in: 0,
            bytes_out: 0,
            earlier: NOBODY,
            later: NOBODY,
        }
    }

    /// The phase in which a request on a connection is.
    pub fn phase(&self) -> Phase {
        match (self.sent, self.first_byte) {
            (_, Some(_)) => Phase::Receive,
            (Some(_), None) => Phase::Server,
            (None, None) => Phase::Send,
        }
    }

    /// Moments that were not reached are `done`, so that the phases add up.
    pub fn sample(&self, outcome: Outcome, done: Nanos) -> Sample {
        let acquired = if self.conn == NOBODY { done.max(self.started) } else { self.acquired };
        let sent = self.sent.filter(|_| self.conn != NOBODY);
        let first_byte = self.first_byte.filter(|_| self.conn != NOBODY);
        let done = done.max(first_byte.or(sent).unwrap_or(acquired));
        Sample {
            intended: self.intended,
            started: self.started,
            acquired,
            sent: sent.unwrap_or(done),
            first_byte: first_byte.unwrap_or(done),
            done,
            dial: if self.conn == NOBODY { Dial::default() } else { self.dial_spans },
            outcome,
            status: self.status,
            reused: self.reused,
            retries: self.retries,
            request: self.message,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }
}

/// A slab whose entries form a list in the order of their starts. All timeouts are equally long, so the head of the
/// list is the next to expire, and keeping the order costs no timer for each request.
pub(crate) struct Requests {
    slots: Vec<Request>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    live: u64,
}

impl Requests {
    pub fn new() -> Requests {
        Requests { slots: Vec::new(), free: Vec::new(), oldest: NOBODY, newest: NOBODY, live: 0 }
    }

    pub fn live(&self) -> u64 {
        self.live
    }

    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NOBODY).then_some(self.oldest)
    }

    pub fn admit(&mut self, mut request: Request) -> u32 {
        request.earlier = self.newest;
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = request;
                id
            }
            None => {
                self.slots.push(request);
                (self.slots.len() - 1) as u32
            }
        };
        match self.newest {
            NOBODY => self.oldest = id,
            newest => self[newest].later = id,
        }
        self.newest = id;
        self.live += 1;
        id
    }

    pub fn remove(&mut self, id: u32) {
        let Request { earlier, later, .. } = self[id];
        match earlier {
            NOBODY => self.oldest = later,
            earlier => self[earlier].later = later,
        }
        match later {
            NOBODY => self.newest = earlier,
            later => self[later].earlier = earlier,
        }
        self.free.push(id);
        self.live -= 1;
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = Request;
    fn index(&self, id: u32) -> &Request {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    fn index_mut(&mut self, id: u32) -> &mut Request {
        &mut self.slots[id as usize]
    }
}
