//! What the origin counts, and how it is told.
//!
//! Each counter has one writer, the thread it belongs to, so adding is a load and a store; anyone may read. Zeroing does
//! not touch them: it remembers what they were, and `Stats` is the difference.
//!
//! A connection that has asked for nothing but `/_weir/…` is a control connection. It is left out of all of this, so that
//! looking at the counters does not change them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::fault::FaultKind;

/// What `/_weir/stats` answers, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub connections: Connections,
    pub tls_handshakes: TlsHandshakes,
    /// Read to their end, whatever became of them.
    pub requests: u64,
    /// Answers by status, those that a fault cut short included.
    pub responses: BTreeMap<u16, u64>,
    /// Faults played, by kind. `refuse` counts how often the ports were closed.
    pub faults: BTreeMap<String, u64>,
    /// How many connections had so many requests; the open ones with what they have had so far.
    pub requests_per_connection: BTreeMap<u64, u64>,
    /// Closed connections that `requests_per_connection` has no room for: it holds 10,000 different numbers.
    pub requests_per_connection_left_out: u64,
    pub queue: Queue,
    pub threads: Vec<ThreadStats>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    pub accepted: u64,
    pub open: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsHandshakes {
    pub full: u64,
    pub resumed: u64,
}

/// The queue in front of the limit of `concurrency`; all zero without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub under_way: u64,
    pub waiting: u64,
    pub peak: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStats {
    pub accepted: u64,
    pub open: u64,
    pub requests: u64,
}

/// Different numbers of requests per connection that one thread tells apart.
const HISTOGRAM_SIZE: usize = 10_000;
const STATUSES: usize = 600;
/// Connections in one piece of `Counters::live`.
const LIVE_PIECE: usize = 1024;

pub(crate) fn bump(counter: &AtomicU64) {
    add(counter, 1);
}

/// One writer only: not an atomic addition.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

fn lower(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_sub(1), Relaxed);
}

/// Requests so far of the connections in a thread's slots, in pieces that never move.
type LivePiece = [AtomicU64; LIVE_PIECE];

/// Of one thread. `Recorder` writes them.
pub(crate) struct Counters {
    accepted: AtomicU64,
    open: AtomicU64,
    full: AtomicU64,
    resumed: AtomicU64,
    requests: AtomicU64,
    responses: [AtomicU64; STATUSES],
    faults: [AtomicU64; FaultKind::COUNT],
    live: Mutex<Vec<Arc<LivePiece>>>,
    closed: Mutex<Closed>,
}

/// How many requests closed connections had.
#[derive(Default)]
struct Closed {
    histogram: BTreeMap<u64, u64>,
    left_out: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            full: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            responses: [const { AtomicU64::new(0) }; STATUSES],
            faults: [const { AtomicU64::new(0) }; FaultKind::COUNT],
            live: Mutex::default(),
            closed: Mutex::default(),
        }
    }
}

/// The one writer of a thread's counters.
pub(crate) struct Recorder {
    counters: Arc<Counters>,
    /// The same pieces as in `counters`, within reach without the lock.
    live: Vec<Arc<LivePiece>>,
}

impl Recorder {
    pub fn new(counters: Arc<Counters>) -> Recorder {
        Recorder { counters, live: Vec::new() }
    }

    pub fn accepted(&mut self, slot: usize) {
        bump(&self.counters.accepted);
        bump(&self.counters.open);
        while self.live.len() <= slot / LIVE_PIECE {
            let piece = Arc::new([const { AtomicU64::new(0) }; LIVE_PIECE]);
            self.live.push(Arc::clone(&piece));
            lock(&self.counters.live).push(piece);
        }
    }

    pub fn handshake(&self, resumed: bool) {
        bump(self.handshakes(resumed));
    }

    fn handshakes(&self, resumed: bool) -> &AtomicU64 {
        if resumed { &self.counters.resumed } else { &self.counters.full }
    }

    /// The connection turns out to be one that asks for counters. `resumed`: its TLS handshake, if it had one.
    pub fn hide(&self, resumed: Option<bool>) {
        lower(&self.counters.accepted);
        lower(&self.counters.open);
        if let Some(resumed) = resumed {
            lower(self.handshakes(resumed));
        }
    }

    /// And then asks for something else.
    pub fn unhide(&self, resumed: Option<bool>) {
        bump(&self.counters.accepted);
        bump(&self.counters.open);
        if let Some(resumed) = resumed {
            self.handshake(resumed);
        }
    }

    pub fn request(&self, slot: usize) {
        bump(&self.counters.requests);
        bump(&self.live[slot / LIVE_PIECE][slot % LIVE_PIECE]);
    }

    pub fn response(&self, status: u16) {
        bump(&self.counters.responses[usize::from(status)]);
    }

    pub fn fault(&self, kind: FaultKind) {
        bump(&self.counters.faults[kind as usize]);
    }

    /// `requests` is `None` for a control connection.
    pub fn closed(&self, slot: usize, requests: Option<u64>) {
        self.live[slot / LIVE_PIECE][slot % LIVE_PIECE].store(0, Relaxed);
        let Some(requests) = requests else { return };
        lower(&self.counters.open);
        let mut closed = lock(&self.counters.closed);
        if closed.histogram.len() < HISTOGRAM_SIZE || closed.histogram.contains_key(&requests) {
            *closed.histogram.entry(requests).or_default() += 1;
        } else {
            closed.left_out += 1;
        }
    }
}

impl Counters {
    pub fn stats(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let open = load(&self.open);
        let thread = ThreadStats { accepted: load(&self.accepted), open, requests: load(&self.requests) };
        let closed = lock(&self.closed);
        let mut stats = Stats {
            connections: Connections { accepted: thread.accepted, open },
            tls_handshakes: TlsHandshakes { full: load(&self.full), resumed: load(&self.resumed) },
            requests: thread.requests,
            requests_per_connection: closed.histogram.clone(),
            requests_per_connection_left_out: closed.left_out,
            threads: vec![thread],
            ..Stats::default()
        };
        drop(closed);
        stats.responses.extend((0..).zip(&self.responses).map(|(n, c)| (n, load(c))).filter(|(_, c)| *c > 0));
        stats.faults.extend(
            FaultKind::all()
                .zip(&self.faults)
                .map(|(k, c)| (k.name().to_string(), load(c)))
                .filter(|(_, c)| *c > 0),
        );
        self.add_live(&mut stats.requests_per_connection, open);
        stats
    }

    fn add_live(&self, histogram: &mut BTreeMap<u64, u64>, open: u64) {
        let mut unused = open;
        for requests in lock(&self.live).iter().flat_map(|piece| piece.iter()) {
            let requests = requests.load(Relaxed);
            if requests > 0 {
                *histogram.entry(requests).or_default() += 1;
                unused = unused.saturating_sub(1);
            }
        }
        if unused > 0 {
            *histogram.entry(0).or_default() += unused;
        }
    }

    pub fn forget_closed(&self) {
        *lock(&self.closed) = Closed::default();
    }
}

/// A thread that panicked while it counted leaves a count, not a broken structure.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Stats {
    /// The sum over threads, which stay listed in this order.
    pub(crate) fn merge(mut self, other: Stats) -> Stats {
        self.connections.accepted += other.connections.accepted;
        self.connections.open += other.connections.open;
        self.tls_handshakes.full += other.tls_handshakes.full;
        self.tls_handshakes.resumed += other.tls_handshakes.resumed;
        self.requests += other.requests;
        merge_counts(&mut self.responses, other.responses);
        merge_counts(&mut self.faults, other.faults);
        merge_counts(&mut self.requests_per_connection, other.requests_per_connection);
        self.requests_per_connection_left_out += other.requests_per_connection_left_out;
        self.threads.extend(other.threads);
        self
    }

    /// What came after `base`. What is open or waits is what it is; closed connections were forgotten with the base.
    pub(crate) fn since(mut self, base: &Stats) -> Stats {
        reduce(&mut self.connections.accepted, base.connections.accepted);
        reduce(&mut self.tls_handshakes.full, base.tls_handshakes.full);
        reduce(&mut self.tls_handshakes.resumed, base.tls_handshakes.resumed);
        reduce(&mut self.requests, base.requests);
        subtract_counts(&mut self.responses, &base.responses);
        subtract_counts(&mut self.faults, &base.faults);
        for (thread, base) in self.threads.iter_mut().zip(&base.threads) {
            reduce(&mut thread.accepted, base.accepted);
            reduce(&mut thread.requests, base.requests);
        }
        self
    }
}

/// A connection that turned out to be a control connection after the base was taken is in the base, and nowhere else.
fn reduce(count: &mut u64, base: u64) {
    *count = count.saturating_sub(base);
}

fn merge_counts<K: Ord>(into: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key).or_default() += count;
    }
}

fn subtract_counts<K: Ord>(from: &mut BTreeMap<K, u64>, base: &BTreeMap<K, u64>) {
    from.retain(|key, count| {
        reduce(count, base.get(key).copied().unwrap_or(0));
        *count > 0
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> (Arc<Counters>, Recorder) {
        let counters = Arc::new(Counters::default());
        (Arc::clone(&counters), Recorder::new(counters))
    }

    fn requests(recorder: &Recorder, slot: usize, n: u64) {
        (0..n).for_each(|_| recorder.request(slot));
    }

    #[test]
    fn open_and_closed_connections_are_in_one_histogram() {
        let (counters, mut recorder) = recorder();
        // The slot beyond the first piece, too.
        for slot in [0, 1, 2, LIVE_PIECE * 2] {
            recorder.accepted(slot);
        }
        requests(&recorder, 0, 3);
        requests(&recorder, 1, 3);
        requests(&recorder, LIVE_PIECE * 2, 1);
        recorder.closed(0, Some(3));
        let stats = counters.stats();
        assert_eq!(stats.connections, Connections { accepted: 4, open: 3 });
        assert_eq!(stats.requests, 7);
        assert_eq!(stats.requests_per_connection, BTreeMap::from([(0, 1), (1, 1), (3, 2)]));
    }

    #[test]
    fn a_slot_that_is_used_again_starts_from_zero() {
        let (counters, mut recorder) = recorder();
        recorder.accepted(5);
        requests(&recorder, 5, 2);
        recorder.closed(5, Some(2));
        recorder.accepted(5);
        requests(&recorder, 5, 1);
        assert_eq!(counters.stats().requests_per_connection, BTreeMap::from([(1, 1), (2, 1)]));
    }

    #[test]
    fn a_control_connection_leaves_no_trace() {
        let (counters, mut recorder) = recorder();
        recorder.accepted(0);
        recorder.handshake(true);
        recorder.hide(Some(true));
        recorder.closed(0, None);
        assert_eq!(Stats { threads: Vec::new(), ..counters.stats() }, Stats::default());
        recorder.accepted(0);
        recorder.handshake(false);
        recorder.hide(Some(false));
        recorder.unhide(Some(false));
        let stats = counters.stats();
        assert_eq!((stats.connections.open, stats.tls_handshakes.full), (1, 1));
    }

    #[test]
    fn the_histogram_has_a_bound_and_says_what_it_left_out() {
        let (counters, mut recorder) = recorder();
        let most = HISTOGRAM_SIZE as u64;
        for requests in (1..=most + 1).chain([1]) {
            recorder.accepted(0);
            recorder.closed(0, Some(requests));
        }
        let stats = counters.stats();
        assert_eq!(stats.requests_per_connection.len(), HISTOGRAM_SIZE);
        assert_eq!(stats.requests_per_connection_left_out, 1);
        assert_eq!(stats.requests_per_connection[&1], 2);
    }

    #[test]
    fn the_difference_to_a_base_is_what_came_after_it() {
        let (counters, mut recorder) = recorder();
        recorder.accepted(0);
        requests(&recorder, 0, 2);
        recorder.response(200);
        recorder.response(503);
        recorder.fault(FaultKind::Reset);
        let base = counters.stats();
        requests(&recorder, 0, 1);
        recorder.response(200);
        let since = counters.stats().since(&base);
        assert_eq!(since.connections, Connections { accepted: 0, open: 1 });
        assert_eq!((since.requests, since.threads[0].requests), (1, 1));
        assert_eq!(since.responses, BTreeMap::from([(200, 1)]));
        assert_eq!(since.faults, BTreeMap::new());
    }

    #[test]
    fn threads_add_up() {
        let (a, mut writer) = recorder();
        writer.accepted(0);
        requests(&writer, 0, 1);
        let both = a.stats().merge(a.stats());
        assert_eq!((both.requests, both.connections.open, both.threads.len()), (2, 2, 2));
        assert_eq!(both.requests_per_connection, BTreeMap::from([(1, 2)]));
    }

    #[test]
    fn the_json_reads_back() {
        let (counters, mut recorder) = recorder();
        recorder.accepted(0);
        recorder.request(0);
        recorder.response(200);
        let stats = counters.stats();
        let json = serde_json::to_string(&stats).unwrap();
        assert!(json.contains(r#""requests_per_connection":{"1":1}"#), "{json}");
        assert_eq!(serde_json::from_str::<Stats>(&json).unwrap(), stats);
    }
}
