use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::tls::{ClientTls, ServerTls};
use crate::{Backend, Conn, Endpoint, Event, Listener, Waker};

/// Which body to use: `None` is io_uring where the kernel allows it, mio otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetConfig {
    pub backend: Option<Backend>,
}

pub struct Net {}

impl Net {
    /// Fails if the kernel refuses the body that was asked for, or has no file descriptors left.
    pub fn new(config: NetConfig) -> io::Result<Net> { unimplemented!() }
    pub fn backend(&self) -> Backend { unimplemented!() }
    /// From any thread.
    pub fn waker(&self) -> Waker { unimplemented!() }

    /// When `wait` last returned: the time at which the events of this batch were there.
    pub fn batch_time(&self) -> u64 { unimplemented!() }

    /// Sleeps until an event is there or the time has come; submits everything asked for since the last call.
    /// `None` sleeps until there is an event. A time in the past polls.
    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> { unimplemented!() }
    /// The next thing that happened, until the batch is used up.
    pub fn next_event(&mut self) -> Option<Event> { unimplemented!() }
    /// The bytes of the last `Event::Received`, decrypted.
    pub fn data(&self) -> &[u8] { unimplemented!() }

    /// Starts to connect. `Connected`, then with TLS `Secured`, or `Failed` will follow, never before the next `wait`.
    /// `server_name` is the host of the URL (SNI and certificate check).
    pub fn connect(&mut self, to: &Endpoint, from: Option<IpAddr>, tls: Option<(&Arc<ClientTls>, &str)>) -> Conn { unimplemented!() }

    /// Starts to listen. With port 0 the kernel chooses one: see `local_addr`. SO_REUSEPORT is set on TCP.
    /// `hold`: accepted connections are not read (nor is TLS begun) until `resume`.
    pub fn listen(&mut self, at: &Endpoint, tls: Option<Arc<ServerTls>>, hold: bool) -> io::Result<Listener> { unimplemented!() }
    pub fn local_addr(&self, listener: Listener) -> Option<SocketAddr> { unimplemented!() }
    /// Closes the listening socket; later dials are refused. Connections that were accepted stay.
    pub fn unlisten(&mut self, listener: Listener) { unimplemented!() }

    /// Queues bytes, which leave at the latest in the next `wait`. `Sent` follows once all queued bytes have left.
    pub fn send(&mut self, conn: Conn, bytes: &[u8]) { unimplemented!() }
    /// The same, written in place.
    pub fn send_with(&mut self, conn: Conn, write: impl FnOnce(&mut Vec<u8>)) { unimplemented!() }
    /// Bytes queued and not yet in the kernel's hands.
    pub fn unsent(&self, conn: Conn) -> usize { unimplemented!() }

    /// Stops reading until `resume`: the peer's TCP window fills.
    pub fn pause(&mut self, conn: Conn) { unimplemented!() }
    pub fn resume(&mut self, conn: Conn) { unimplemented!() }

    /// Sends what is queued, then FIN (with TLS, close_notify first); reading goes on.
    pub fn shutdown(&mut self, conn: Conn) { unimplemented!() }
    /// Sends what is queued and closes in good order. No event follows.
    pub fn close(&mut self, conn: Conn) { unimplemented!() }
    /// Closes with a RST; queued bytes are dropped. No event follows.
    pub fn reset(&mut self, conn: Conn) { unimplemented!() }

    /// Looks the name up on a thread of its own; `Event::Resolved(key, …)` follows.
    pub fn resolve(&mut self, host: &str, port: u16, key: u64) { unimplemented!() }

    /// Connections that are dialling or open.
    pub fn open_conns(&self) -> usize { unimplemented!() }
}
