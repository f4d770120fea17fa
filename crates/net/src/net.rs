//! The loop as its owner sees it: connections, TLS and names over whichever body the kernel allows.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::conn::{Raw, Slots, State};
use crate::polled::{Polled, Progress};
use crate::resolve::Resolver;
use crate::socket::{self, Mode};
use crate::tls::{self, ClientTls, ServerTls};
use crate::uring::Uring;
use crate::{Alpn, Backend, Cause, Conn, Endpoint, Error, Event, Listener, Secured, Stage, Waker, clock};

/// Which body to use: `None` is io_uring where the kernel allows it, mio otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetConfig {
    pub backend: Option<Backend>,
}

enum Body {
    Uring(Box<Uring>),
    Polled(Box<Polled>),
}

/// Where the bytes of the last `Received` are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataAt {
    Nowhere,
    Body,
    Plain,
}

struct ListenerState {
    fd: RawFd,
    endpoint: Endpoint,
    tls: Option<Arc<ServerTls>>,
    hold: bool,
    open: bool,
}

pub struct Net {
    slots: Slots,
    body: Body,
    listeners: Vec<ListenerState>,
    /// Found out, not yet told.
    ready: VecDeque<Event>,
    /// Connections with bytes to write.
    dirty: Vec<u32>,
    data_at: DataAt,
    /// Decrypted bytes of one read.
    plain: Vec<u8>,
    /// Plaintext on its way into TLS.
    plain_out: Vec<u8>,
    handed_over_at: u64,
    batch_time: u64,
    waker: Waker,
    resolver: Option<Resolver>,
}

impl Net {
    /// Fails if the kernel refuses the body that was asked for, or has no file descriptors left. The loop belongs to
    /// the thread that made it.
    pub fn new(config: NetConfig) -> io::Result<Net> {
        // SAFETY: no memory is passed.
        let wake_fd = unsafe {
            // Timers as fine as the kernel can (the default groups them by 50 µs).
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
            libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)
        };
        if wake_fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let waker = Waker(Arc::new(unsafe { OwnedFd::from_raw_fd(wake_fd) }));
        let body = match config.backend {
            Some(Backend::Uring) => Body::Uring(Box::new(Uring::new(wake_fd)?)),
            Some(Backend::Mio) => Body::Polled(Box::new(Polled::new(wake_fd)?)),
            None => match Uring::new(wake_fd) {
                Ok(uring) => Body::Uring(Box::new(uring)),
                Err(_) => Body::Polled(Box::new(Polled::new(wake_fd)?)),
            },
        };
        Ok(Net {
            slots: Slots::default(),
            body,
            listeners: Vec::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            data_at: DataAt::Nowhere,
            plain: Vec::new(),
            plain_out: Vec::new(),
            handed_over_at: clock::now(),
            batch_time: clock::now(),
            waker,
            resolver: None,
        })
    }

    pub fn backend(&self) -> Backend {
        match self.body {
            Body::Uring(_) => Backend::Uring,
            Body::Polled(_) => Backend::Mio,
        }
    }

    /// From any thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// When `wait` last returned: the time at which the events of this batch were there.
    pub fn batch_time(&self) -> u64 {
        self.batch_time
    }

    /// While `Event::Sent` is handled: when its bytes were in the kernel's hands. io_uring hands over a whole batch at
    /// once, and tells at the end of it.
    pub fn sent_at(&self) -> u64 {
        match self.body {
            Body::Uring(_) => self.batch_time,
            Body::Polled(_) => clock::now(),
        }
    }

    /// When the last `wait` began: with io_uring what was queued then was handed over no earlier, and no later than
    /// `batch_time`. On a busy processor these are far apart, since the server may run before `wait` returns.
    pub fn handed_over_at(&self) -> u64 {
        self.handed_over_at
    }

    /// Connections that are dialling, open, or still sending after their close.
    pub fn open_conns(&self) -> usize {
        self.slots.in_use()
    }

    /// Sleeps until an event is there or the time has come; submits everything asked for since the last call.
    /// `None` sleeps until there is an event, a time in the past polls. May return early, without an event.
    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        self.flush();
        let until = if self.ready.is_empty() { until } else { Some(0) };
        self.handed_over_at = clock::now();
        match &mut self.body {
            Body::Uring(uring) => uring.wait(until)?,
            Body::Polled(polled) => polled.wait(until)?,
        }
        self.batch_time = clock::now();
        Ok(())
    }

    /// The next thing that happened. To be called until the batch is used up (`None`) before the next `wait`.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if self.deliver(&event) {
                    return Some(event);
                }
                continue;
            }
            if !self.dirty.is_empty() && matches!(self.body, Body::Polled(_)) {
                // What the last event led to leaves before the next one is looked at.
                self.flush();
                continue;
            }
            self.data_at = DataAt::Nowhere;
            let raw = match &mut self.body {
                Body::Uring(uring) => uring.next(&mut self.slots),
                Body::Polled(polled) => polled.next(&mut self.slots),
            }?;
            if let Some(event) = self.digest(raw) {
                return Some(event);
            }
        }
    }

    /// False if the owner has closed the connection in the meantime. After `Failed` it is gone.
    fn deliver(&mut self, event: &Event) -> bool {
        let conn = match event {
            Event::Accepted(_, c)
            | Event::Connected(c)
            | Event::Secured(c, _)
            | Event::Received(c)
            | Event::Sent(c)
            | Event::Eof(c)
            | Event::Failed(c, _) => *c,
            Event::Resolved(..) | Event::Woken => return true,
        };
        let current = self.slots.owned(conn).is_some();
        if current && matches!(event, Event::Failed(..)) {
            self.slots.retire(conn.index);
        }
        current
    }

    /// The bytes of the last `Event::Received`, decrypted.
    pub fn data(&self) -> &[u8] {
        match (self.data_at, &self.body) {
            (DataAt::Nowhere, _) => &[],
            (DataAt::Plain, _) => &self.plain,
            (DataAt::Body, Body::Uring(uring)) => uring.bytes(),
            (DataAt::Body, Body::Polled(polled)) => polled.bytes(),
        }
    }

    fn digest(&mut self, raw: Raw) -> Option<Event> {
        match raw {
            Raw::Bytes(index) => self.received(index),
            Raw::Written(index) => self.written(index),
            Raw::Connected(index, result) => self.connected(index, result),
            Raw::Accepted(listener, fd) => self.accepted(listener, fd),
            Raw::Eof(index) => self.ended(index),
            Raw::Broken(index, e) => self.broken(index, e),
            Raw::Woken => {
                if let Some(resolver) = &self.resolver {
                    self.ready.extend(resolver.answers().map(|(key, answer)| Event::Resolved(key, answer)));
                }
                Some(Event::Woken)
            }
        }
    }

    // Connections: from the dial to the end.

    /// Starts to connect. `Connected`, then with TLS `Secured`, or `Failed` will follow, never before the next `wait`.
    /// `server_name` is the host of the URL (SNI and certificate check).
    pub fn connect(
        &mut self,
        to: &Endpoint,
        from: Option<IpAddr>,
        tls: Option<(&Arc<ClientTls>, &str)>,
    ) -> Conn {
        let index = self.slots.take(-1, State::Connecting);
        if let Err(cause) = self.start_connect(index, to, from, tls) {
            self.fail(index, cause);
        }
        self.slots.handle(index)
    }

    fn start_connect(
        &mut self,
        index: u32,
        to: &Endpoint,
        from: Option<IpAddr>,
        tls: Option<(&Arc<ClientTls>, &str)>,
    ) -> Result<(), Cause> {
        let slot = &mut self.slots[index];
        if let Some((config, name)) = tls {
            slot.tls = Some(config.connection(name).map_err(Cause::Tls)?);
        }
        let mode = match self.body {
            Body::Uring(_) => Mode::Blocking,
            Body::Polled(_) => Mode::Nonblocking,
        };
        slot.fd = socket::client(to, from, mode)?.into_raw_fd();
        match &mut self.body {
            Body::Uring(uring) => uring.connect(index, slot, to)?,
            Body::Polled(polled) => {
                polled.connect(index, slot, to)?;
            }
        }
        Ok(())
    }

    fn connected(&mut self, index: u32, result: io::Result<()>) -> Option<Event> {
        if self.slots[index].state != State::Connecting {
            return None;
        }
        if let Err(e) = result {
            self.fail(index, e.into());
            return None;
        }
        self.begin(index);
        Some(Event::Connected(self.slots.handle(index)))
    }

    /// The socket stands: read from it, and start the TLS handshake if there is to be one.
    fn begin(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        slot.state = if slot.tls.is_some() { State::Handshaking } else { State::Open };
        if let Body::Uring(uring) = &mut self.body {
            uring.receive(index, slot);
        }
        self.pump_tls(index);
    }

    fn accepted(&mut self, listener: u32, fd: RawFd) -> Option<Event> {
        let index = self.slots.take(fd, State::Open);
        let ListenerState { tls, hold, .. } = &self.listeners[listener as usize];
        let slot = &mut self.slots[index];
        slot.paused = *hold;
        if let Some(config) = tls {
            slot.tls = Some(config.connection());
            slot.state = State::Handshaking;
        }
        let opened = match &mut self.body {
            Body::Uring(uring) => {
                if !slot.paused {
                    uring.receive(index, slot);
                }
                Ok(())
            }
            Body::Polled(polled) => polled.open(index, slot),
        };
        let conn = self.slots.handle(index);
        self.ready.push_back(Event::Accepted(Listener(listener), conn));
        if let Err(e) = opened {
            self.fail(index, e.into());
        }
        None
    }

    /// Takes the connection out of the loop; its owner will hear why.
    fn fail(&mut self, index: u32, cause: Cause) {
        let slot = &mut self.slots[index];
        let stage = match slot.state {
            State::Connecting => Stage::Connect,
            State::Handshaking => Stage::Handshake,
            State::Open => Stage::Open,
            State::Closing => {
                self.discard(index);
                return;
            }
            State::Failed | State::Free | State::Lingering => return,
        };
        slot.state = State::Failed;
        let conn = self.slots.handle(index);
        self.close_socket(index);
        self.ready.push_back(Event::Failed(conn, Error { stage, cause }));
    }

    fn close_socket(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if slot.fd < 0 {
            return;
        }
        match &mut self.body {
            Body::Uring(uring) => uring.close(slot),
            Body::Polled(_) => socket::close(slot.fd),
        }
        slot.fd = -1;
    }

    /// Closes at once and forgets.
    fn discard(&mut self, index: u32) {
        self.close_socket(index);
        self.slots.retire(index);
    }

    fn ended(&mut self, index: u32) -> Option<Event> {
        let slot = &mut self.slots[index];
        match slot.state {
            State::Handshaking => {
                self.fail(index, Cause::Closed);
                None
            }
            State::Open if slot.send_failed => {
                self.fail(index, Cause::Reset);
                None
            }
            State::Open => Some(Event::Eof(self.slots.handle(index))),
            _ => None,
        }
    }

    fn broken(&mut self, index: u32, e: io::Error) -> Option<Event> {
        self.fail(index, e.into());
        None
    }

    /// Sends what is queued and closes in good order. No event follows.
    pub fn close(&mut self, conn: Conn) {
        let Some(slot) = self.slots.owned(conn) else { return };
        let index = conn.index;
        if slot.state == State::Failed {
            self.slots.retire(index);
            return;
        }
        if slot.state == State::Open
            && let Some(tls) = &mut slot.tls
        {
            tls.send_close_notify();
            self.pump_tls(index);
        }
        let slot = &mut self.slots[index];
        if slot.state != State::Open || slot.unsent() == 0 || slot.send_failed {
            self.discard(index);
            return;
        }
        slot.state = State::Closing;
        slot.generation = slot.generation.wrapping_add(1);
        self.mark_dirty(index);
    }

    /// Closes with a RST; queued bytes are dropped. No event follows.
    pub fn reset(&mut self, conn: Conn) {
        let Some(slot) = self.slots.owned(conn) else { return };
        if slot.state == State::Failed {
            self.slots.retire(conn.index);
            return;
        }
        slot.out.clear();
        socket::close_abruptly(slot.fd);
        self.discard(conn.index);
    }

    /// Sends what is queued, then FIN (with TLS, close_notify first); reading goes on.
    pub fn shutdown(&mut self, conn: Conn) {
        let Some(slot) = self.slots.owned(conn) else { return };
        if slot.state != State::Open {
            return;
        }
        if let Some(tls) = &mut slot.tls {
            tls.send_close_notify();
            self.pump_tls(conn.index);
        }
        let slot = &mut self.slots[conn.index];
        if slot.unsent() == 0 {
            socket::shutdown_write(slot.fd);
        } else {
            slot.fin_due = true;
        }
    }

    // Bytes out.

    /// Queues bytes, which leave at the latest in the next `wait`. `Sent` follows once all queued bytes have left.
    pub fn send(&mut self, conn: Conn, bytes: &[u8]) {
        self.send_with(conn, |out| out.extend_from_slice(bytes));
    }

    /// The same, written in place: `write` appends.
    pub fn send_with(&mut self, conn: Conn, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(slot) = self.slots.owned(conn) else { return };
        if slot.state != State::Open {
            return;
        }
        slot.sent_due = true;
        match &mut slot.tls {
            None => write(&mut slot.out),
            Some(tls) => {
                self.plain_out.clear();
                write(&mut self.plain_out);
                tls.writer().write_all(&self.plain_out).expect("the buffer of a connection has no limit");
                drain_tls(tls, &mut slot.out);
            }
        }
        self.mark_dirty(conn.index);
    }

    /// Bytes queued and not yet in the kernel's hands.
    pub fn unsent(&self, conn: Conn) -> usize {
        let slot = &self.slots[conn.index];
        if slot.generation == conn.generation { slot.unsent() } else { 0 }
    }

    fn mark_dirty(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push(index);
        }
    }

    fn flush(&mut self) {
        // Nothing that is written here makes another connection dirty.
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            let slot = &mut self.slots[index];
            slot.dirty = false;
            if slot.state == State::Lingering {
                self.slots.free_if_idle(index);
            } else {
                self.write(index);
            }
        }
        self.dirty = dirty;
    }

    /// Hands the kernel what is staged, unless it is busy with earlier bytes.
    fn write(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        let busy = slot.written < slot.writing.len();
        if busy || slot.fd < 0 || slot.send_failed || !slot.stage() {
            return;
        }
        match &mut self.body {
            Body::Uring(uring) => uring.send(index, slot),
            Body::Polled(polled) => match polled.write(slot) {
                Progress::Done => {
                    if let Some(event) = self.written(index) {
                        self.ready.push_back(event);
                    }
                }
                Progress::Pending => {}
                Progress::Failed(e) => self.send_failed(index, e),
            },
        }
    }

    /// What the peer sent before it went away is still to be read, and tells more than the failed send.
    fn send_failed(&mut self, index: u32, e: io::Error) {
        let slot = &mut self.slots[index];
        slot.send_failed = true;
        if slot.wants_bytes() {
            if let Body::Polled(polled) = &mut self.body {
                polled.read_again(index, slot);
            }
        } else {
            self.fail(index, e.into());
        }
    }

    fn written(&mut self, index: u32) -> Option<Event> {
        let slot = &mut self.slots[index];
        if !slot.out.is_empty() {
            self.write(index);
            return None;
        }
        if slot.state == State::Closing {
            self.discard(index);
            return None;
        }
        if slot.fin_due {
            slot.fin_due = false;
            socket::shutdown_write(slot.fd);
        }
        if std::mem::take(&mut slot.sent_due) && slot.state == State::Open {
            return Some(Event::Sent(self.slots.handle(index)));
        }
        None
    }

    // Bytes in.

    fn received(&mut self, index: u32) -> Option<Event> {
        let slot = &mut self.slots[index];
        if !matches!(slot.state, State::Open | State::Handshaking) {
            return None;
        }
        if slot.tls.is_none() {
            self.data_at = DataAt::Body;
            return Some(Event::Received(self.slots.handle(index)));
        }
        self.decrypt(index);
        None
    }

    fn decrypt(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        let mut tls = slot.tls.take().expect("only called on TLS connections");
        let conn = Conn { index, generation: slot.generation };
        let input = match &self.body {
            Body::Uring(uring) => uring.bytes(),
            Body::Polled(polled) => polled.bytes(),
        };
        self.plain.clear();
        let result = feed(&mut tls, input, &mut self.plain);
        let handshaken = slot.state == State::Handshaking && !tls.is_handshaking();
        if handshaken {
            slot.state = State::Open;
            self.ready.push_back(Event::Secured(conn, secured(&tls)));
        }
        slot.tls = Some(tls);
        self.pump_tls(index);
        if !self.plain.is_empty() {
            self.data_at = DataAt::Plain;
            self.ready.push_back(Event::Received(conn));
        }
        match result {
            Ok(false) => {}
            Ok(true) => {
                let slot = &mut self.slots[index];
                slot.eof = true;
                self.ready.push_back(Event::Eof(conn));
            }
            Err(e) => {
                // The alert leaves before the socket is closed.
                self.write(index);
                if let Body::Uring(uring) = &mut self.body {
                    uring.submit_now();
                }
                self.fail(index, tls::cause(e));
            }
        }
    }

    /// Moves what TLS wants to say into the queue.
    fn pump_tls(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        if let Some(tls) = &mut slot.tls
            && tls.wants_write()
        {
            drain_tls(tls, &mut slot.out);
            self.mark_dirty(index);
        }
    }

    /// Stops reading until `resume`, and the peer's TCP window fills. Bytes that are here already may still come.
    pub fn pause(&mut self, conn: Conn) {
        let Some(slot) = self.slots.owned(conn) else { return };
        if !std::mem::replace(&mut slot.paused, true)
            && let Body::Uring(uring) = &mut self.body
        {
            uring.stop_receiving(conn.index, slot);
        }
    }

    pub fn resume(&mut self, conn: Conn) {
        let Some(slot) = self.slots.owned(conn) else { return };
        if !std::mem::replace(&mut slot.paused, false) || !slot.wants_bytes() {
            return;
        }
        match &mut self.body {
            Body::Uring(uring) => uring.receive(conn.index, slot),
            Body::Polled(polled) => polled.read_again(conn.index, slot),
        }
    }

    // Listeners and names.

    /// Starts to listen. With port 0 the kernel chooses one: see `local_addr`. SO_REUSEPORT is set on TCP.
    /// `hold`: accepted connections are not read (nor is TLS begun) until `resume`.
    pub fn listen(&mut self, at: &Endpoint, tls: Option<Arc<ServerTls>>, hold: bool) -> io::Result<Listener> {
        let index = match &mut self.body {
            Body::Uring(uring) => {
                let fd = socket::listener(at, Mode::Blocking)?.into_raw_fd();
                self.listeners.push(ListenerState { fd, endpoint: at.clone(), tls, hold, open: true });
                uring.listen(fd)
            }
            Body::Polled(polled) => {
                let fd = socket::listener(at, Mode::Nonblocking)?.into_raw_fd();
                self.listeners.push(ListenerState { fd, endpoint: at.clone(), tls, hold, open: true });
                polled.listen(fd)?
            }
        };
        Ok(Listener(index))
    }

    pub fn local_addr(&self, listener: Listener) -> Option<SocketAddr> {
        let state = &self.listeners[listener.0 as usize];
        if !state.open {
            return None;
        }
        // SAFETY: an open listener's descriptor stays open during this call.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(state.fd) };
        socket2::SockRef::from(&fd).local_addr().ok()?.as_socket()
    }

    /// Closes the listening socket; later dials are refused. Connections that were accepted stay.
    pub fn unlisten(&mut self, listener: Listener) {
        let state = &mut self.listeners[listener.0 as usize];
        if !std::mem::replace(&mut state.open, false) {
            return;
        }
        match &mut self.body {
            Body::Uring(uring) => uring.unlisten(listener.0),
            Body::Polled(polled) => polled.unlisten(listener.0),
        }
        if let Endpoint::Unix(path) = &state.endpoint {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Looks the name up on a thread of its own; `Event::Resolved(key, …)` follows.
    pub fn resolve(&mut self, host: &str, port: u16, key: u64) {
        self.resolver.get_or_insert_with(|| Resolver::start(self.waker.clone())).ask(host, port, key);
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for index in 0..self.listeners.len() {
            self.unlisten(Listener(index as u32));
        }
        if let Body::Uring(uring) = &mut self.body {
            uring.submit_now();
        }
        for slot in self.slots.iter().filter(|s| s.fd >= 0) {
            socket::close(slot.fd);
        }
    }
}

impl Waker {
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are valid for reads. A full counter (EAGAIN) means that a wake-up is on its way.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// Decrypts; true if the peer said that it closes.
fn feed(tls: &mut rustls::Connection, mut input: &[u8], plain: &mut Vec<u8>) -> Result<bool, rustls::Error> {
    let mut closed = false;
    while !input.is_empty() && !closed {
        // Takes at most what fits its buffer; the rest follows once that is processed.
        tls.read_tls(&mut input).map_err(|e| rustls::Error::General(e.to_string()))?;
        let state = tls.process_new_packets()?;
        closed = state.peer_has_closed();
        let mut left = state.plaintext_bytes_to_read();
        plain.reserve(left);
        while left > 0 {
            let n = match tls.reader().fill_buf() {
                Ok(chunk) if !chunk.is_empty() => {
                    plain.extend_from_slice(chunk);
                    chunk.len()
                }
                _ => break,
            };
            tls.reader().consume(n);
            left -= n;
        }
    }
    Ok(closed)
}

fn drain_tls(tls: &mut rustls::Connection, out: &mut Vec<u8>) {
    while tls.wants_write() {
        tls.write_tls(out).expect("a Vec takes everything");
    }
}

fn secured(tls: &rustls::Connection) -> Secured {
    let alpn = tls.alpn_protocol().map(|name| match name {
        b"http/1.1" => Alpn::Http11,
        b"h2" => Alpn::H2,
        _ => Alpn::Other,
    });
    Secured { resumed: matches!(tls.handshake_kind(), Some(rustls::HandshakeKind::Resumed)), alpn }
}
