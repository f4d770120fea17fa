//! One connection of a pool: how far its dial has come, which request it serves, and the answer's framing.

use weir_model::pool::KeepAliveHint;
use weir_model::sample::Dial;
use weir_model::units::Nanos;
use weir_net::Conn;
use weir_wire::h1::{self, Limits, ResponseDecoder, ResponseEvent};

use crate::request::{NOBODY, Request};

/// How far its dial has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Gone,
    Resolving,
    Connecting,
    Securing,
    Open,
}

/// A connection of a pool.
pub(crate) struct Wire {
    pub link: Link,
    pub net: Option<Conn>,
    pub request: u32,
    pub decoder: ResponseDecoder,
    pub used: bool,
    /// The peer has closed, and the pool, which does not look, keeps it.
    pub half_closed: bool,
    pub keep_alive: bool,
    pub hint: Option<KeepAliveHint>,
    /// How much of a request that is sent in pieces has been handed over.
    pub handed_bytes: usize,
    pub dial_start: Nanos,
    pub resolved: Nanos,
    pub connected: Nanos,
    pub secured: Nanos,
    pub addresses_tried: usize,
    /// Which dial of this slot it is, for those who remember an earlier one.
    pub serial: u32,
}

/// What a read led to.
pub(crate) enum Progress {
    NeedMore,
    /// `clean`: nothing came behind it.
    Complete {
        clean: bool,
    },
}

impl Wire {
    pub fn new() -> Wire {
        Wire {
            link: Link::Gone,
            net: None,
            request: NOBODY,
            decoder: ResponseDecoder::new(Limits::default()),
            used: false,
            half_closed: false,
            keep_alive: true,
            hint: None,
            handed_bytes: 0,
            dial_start: Nanos::ZERO,
            resolved: Nanos::ZERO,
            connected: Nanos::ZERO,
            secured: Nanos::ZERO,
            addresses_tried: 0,
            serial: 0,
        }
    }

    pub fn spans(&self) -> Dial {
        Dial {
            dns: self.resolved - self.dial_start,
            connect: self.connected - self.resolved,
            tls: self.secured - self.connected,
        }
    }

    /// Feeds the decoder with what came.
    pub fn read(&mut self, request: &mut Request, data: &[u8]) -> Result<Progress, h1::Error> {
        let mut rest = data;
        loop {
            let (used, event) = self.decoder.decode(rest)?;
            rest = &rest[used..];
            match event {
                ResponseEvent::Full { head, .. } => {
                    (request.status, self.keep_alive) = (head.status, head.keep_alive);
                    self.hint = head.keep_alive_hint.map(hint);
                    return Ok(Progress::Complete { clean: rest.is_empty() });
                }
                ResponseEvent::Head(head) => {
                    (request.status, self.keep_alive) = (head.status, head.keep_alive);
                    self.hint = head.keep_alive_hint.map(hint);
                }
                ResponseEvent::Done { keep_alive } => {
                    self.keep_alive = keep_alive;
                    return Ok(Progress::Complete { clean: rest.is_empty() });
                }
                ResponseEvent::NeedMore => return Ok(Progress::NeedMore),
                ResponseEvent::Body(_) | ResponseEvent::Informational(_) | ResponseEvent::Trailers(_) => {}
            }
        }
    }
}

fn hint(wire: h1::KeepAliveHint) -> KeepAliveHint {
    KeepAliveHint { timeout: wire.timeout_s.map(|s| Nanos::from_secs(u64::from(s))), max: wire.max }
}
