//! The listening sockets of a thread, and the `refuse` that closes them for a share of each second.

use std::sync::Arc;

use weir_net::tls::ServerTls;
use weir_net::{Endpoint, Listener, Net};

const SECOND_NS: u64 = 1_000_000_000;

/// Between attempts to open a port again that somebody else has taken.
const RETRY_NS: u64 = 20_000_000;

/// A place to listen at, and the listener while it is open.
pub(crate) struct Port {
    pub endpoint: Endpoint,
    pub tls: Option<Arc<ServerTls>>,
    pub listener: Option<Listener>,
}

/// All ports of a thread: they are open, or they are closed.
pub(crate) struct Ports {
    pub all: Vec<Port>,
    /// Accepted connections wait for `resume`.
    pub hold: bool,
    /// The share of each second in which they are closed.
    pub refuse: f64,
    /// The top of the first second, for all threads alike.
    pub started_ns: u64,
}

impl Ports {
    /// Closes or opens them as is due; returns when to come again, if ever. The first second is whole: whoever starts an
    /// origin sees it listen.
    pub fn turn(&mut self, net: &mut Net, now_ns: u64) -> Option<u64> {
        let (due, next_ns) = due(self.refuse, now_ns.saturating_sub(self.started_ns))?;
        match due {
            Turn::Close => self.close(net),
            Turn::Open if !self.open(net) => return Some(now_ns + RETRY_NS),
            Turn::Open => {}
        }
        Some(next_ns.saturating_add(self.started_ns))
    }

    pub fn are_open(&self) -> bool {
        self.all.iter().any(|port| port.listener.is_some())
    }

    fn close(&mut self, net: &mut Net) {
        self.all
            .iter_mut()
            .filter_map(|port| port.listener.take())
            .for_each(|listener| net.unlisten(listener));
    }

    /// False if one of them is taken.
    fn open(&mut self, net: &mut Net) -> bool {
        let mut all = true;
        for port in self.all.iter_mut().filter(|port| port.listener.is_none()) {
            port.listener = net.listen(&port.endpoint, port.tls.clone(), self.hold).ok();
            all &= port.listener.is_some();
        }
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Open,
    Close,
}

/// What is due `at_ns` after the start, and when the next turn comes. Closed from the top of each second on, save the
/// first, for its share; all of it is closed for good, from the start. `None` if nothing ever happens.
fn due(refuse: f64, at_ns: u64) -> Option<(Turn, u64)> {
    if refuse <= 0.0 {
        return None;
    }
    if refuse >= 1.0 {
        return Some((Turn::Close, u64::MAX));
    }
    let top_ns = at_ns - at_ns % SECOND_NS;
    let closed_until_ns = top_ns + (refuse * SECOND_NS as f64) as u64;
    if top_ns > 0 && at_ns < closed_until_ns {
        Some((Turn::Close, closed_until_ns))
    } else {
        Some((Turn::Open, top_ns + SECOND_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_closed_for_their_share_of_each_second_after_the_first() {
        let check = |refuse, at_ms: u64, expected: Option<(Turn, u64)>| {
            let due = due(refuse, at_ms * 1_000_000).map(|(turn, next_ns)| (turn, next_ns / 1_000_000));
            assert_eq!(due, expected, "{refuse} at {at_ms} ms");
        };
        check(0.0, 1_000, None);
        check(0.25, 0, Some((Turn::Open, 1_000)));
        check(0.25, 999, Some((Turn::Open, 1_000)));
        check(0.25, 1_000, Some((Turn::Close, 1_250)));
        check(0.25, 1_249, Some((Turn::Close, 1_250)));
        check(0.25, 1_250, Some((Turn::Open, 2_000)));
        check(0.25, 7_100, Some((Turn::Close, 7_250)));
        check(1.0, 0, Some((Turn::Close, u64::MAX / 1_000_000)));
    }
}
