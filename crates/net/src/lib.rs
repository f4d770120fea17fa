//! The event loop: sockets, TLS, timers, listeners, names. One loop per thread, nothing shared. Knows no HTTP.
//!
//! A loop is a value that its owner drives; nothing calls back:
//!
//! ```text
//! loop {
//!     net.wait(Some(deadline))?;                  // submits what was asked for, sleeps until something happens
//!     while let Some(event) = net.next_event() {  // what happened
//!         match event { Event::Received(conn) => use(net.data()), … }
//!     }
//! }
//! ```
//!
//! Two bodies do the work: io_uring where the kernel allows it, mio elsewhere. What they tell their owner is the same.
//! Times are nanoseconds of CLOCK_MONOTONIC.

#![allow(unsafe_code)]

pub mod clock;
mod conn;
mod error;
mod net;
mod polled;
mod resolve;
mod socket;
mod timers;
pub mod tls;
mod uring;

pub use error::{Cause, Error, Stage};
pub use net::{Net, NetConfig};
pub use resolve::ResolveError;
pub use socket::Endpoint;
pub use timers::Timers;

/// A connection. Stays valid until `Failed`, or until its owner closes it; later events about it are never delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conn {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Conn {
    /// Dense and small, reused after the connection is gone: an index for the owner's own table.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listener(pub(crate) u32);

/// What happened. Every event about a connection names one that the owner has not closed.
#[derive(Debug)]
pub enum Event {
    /// A client connected; on a TLS listener `Secured` follows before any data.
    Accepted(Listener, Conn),
    /// The TCP (or Unix) connection stands. Without TLS it can be used now.
    Connected(Conn),
    /// The TLS handshake is over, and the connection can be used.
    Secured(Conn, Secured),
    /// Bytes came: `Net::data` holds them until the next call of `next_event`.
    Received(Conn),
    /// All that was given to `send` so far is in the kernel's hands.
    Sent(Conn),
    /// The other side will send no more. The connection can still be written to.
    Eof(Conn),
    /// The connection is gone; nothing more comes of it, and it needs no `close`.
    Failed(Conn, Error),
    /// The answer to `Net::resolve`.
    Resolved(u64, Result<Vec<std::net::SocketAddr>, ResolveError>),
    /// `Waker::wake` was called.
    Woken,
}

/// What a TLS handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secured {
    pub resumed: bool,
    pub alpn: Option<Alpn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    Http11,
    H2,
    Other,
}

/// How the loop does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Uring,
    Mio,
}

impl Backend {
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Uring => "io_uring",
            Backend::Mio => "mio",
        }
    }
}

/// Wakes a loop from another thread; it then delivers `Event::Woken`.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) std::sync::Arc<std::os::fd::OwnedFd>);
