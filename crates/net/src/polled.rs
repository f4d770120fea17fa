//! The body for kernels without io_uring: readiness by mio (epoll, edge-triggered), one read or write a call.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use mio::unix::SourceFd;
use mio::{Interest, Token};

use crate::conn::{Raw, Slot, Slots, State};
use crate::socket;
use crate::{Endpoint, clock};

const LISTENER: usize = 1 << 60;
const WAKE: usize = 1 << 61;
const TIMER: usize = 1 << 62;
const READ_BYTES: usize = 64 * 1024;
/// How long accepting rests when no descriptor is left.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

pub(crate) struct Polled {
    poll: mio::Poll,
    events: mio::Events,
    /// What the last poll said, used up from `cursor` on.
    ready: Vec<Ready>,
    cursor: usize,
    /// Connections to read in the next batch although no new event may come: they were paused, or a read filled the
    /// buffer. Not in this batch, which would never end while a peer sends as fast as it is read.
    reread: Vec<(u32, u32)>,
    /// Those of this batch.
    rereading: VecDeque<(u32, u32)>,
    buffer: Box<[u8]>,
    filled: usize,
    timer: OwnedFd,
    /// When the timer fires; `u64::MAX` if it is not armed.
    timer_at: u64,
    wake_fd: RawFd,
    listeners: Vec<Option<RawFd>>,
    /// Listeners with connections that could not be accepted yet.
    accepting: Vec<u32>,
    accept_again_at: u64,
}

#[derive(Clone, Copy)]
struct Ready {
    token: usize,
    readable: bool,
    writable: bool,
    /// The peer closed, perhaps behind bytes that are still to be read.
    closed: bool,
}

/// How far a write came.
pub(crate) enum Progress {
    Done,
    Pending,
    Failed(io::Error),
}

impl Polled {
    pub fn new(wake_fd: RawFd) -> io::Result<Polled> {
        let poll = mio::Poll::new()?;
        // SAFETY: no memory is passed; the descriptor is checked and owned from here on.
        let timer = unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), Token(TIMER), Interest::READABLE)?;
        poll.registry().register(&mut SourceFd(&wake_fd), Token(WAKE), Interest::READABLE)?;
        Ok(Polled {
            poll,
            events: mio::Events::with_capacity(256),
            ready: Vec::new(),
            cursor: 0,
            reread: Vec::new(),
            rereading: VecDeque::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            filled: 0,
            timer,
            timer_at: u64::MAX,
            wake_fd,
            listeners: Vec::new(),
            accepting: Vec::new(),
            accept_again_at: 0,
        })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    pub fn listen(&mut self, fd: RawFd) -> io::Result<u32> {
        let index = self.listeners.len();
        self.poll.registry().register(&mut SourceFd(&fd), Token(LISTENER | index), Interest::READABLE)?;
        self.listeners.push(Some(fd));
        Ok(index as u32)
    }

    pub fn unlisten(&mut self, listener: u32) {
        if let Some(fd) = self.listeners[listener as usize].take() {
            socket::close(fd);
        }
    }

    fn register(&self, index: u32, slot: &Slot) -> io::Result<()> {
        let token = Token(((slot.generation & 0xff_ffff) as usize) << 32 | index as usize);
        self.poll.registry().register(&mut SourceFd(&slot.fd), token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Whether it is connected already.
    pub fn connect(&mut self, index: u32, slot: &Slot, to: &Endpoint) -> io::Result<bool> {
        let addr = to.sockaddr()?;
        // SAFETY: the address is valid for its length, and `fd` is open.
        let rc = unsafe { libc::connect(slot.fd, addr.as_ptr().cast(), addr.len()) };
        let error = (rc != 0).then(io::Error::last_os_error);
        if let Some(e) = error
            && e.raw_os_error() != Some(libc::EINPROGRESS)
        {
            return Err(e);
        }
        self.register(index, slot)?;
        Ok(rc == 0)
    }

    /// A connection that was accepted.
    pub fn open(&mut self, index: u32, slot: &Slot) -> io::Result<()> {
        self.register(index, slot)
    }

    pub fn read_again(&mut self, index: u32, slot: &Slot) {
        self.reread.push((index, slot.generation));
    }

    pub fn write(&mut self, slot: &mut Slot) -> Progress {
        while slot.written < slot.writing.len() {
            let rest = &slot.writing[slot.written..];
            // SAFETY: `rest` is valid for its length, and `fd` is open.
            let n = unsafe { libc::send(slot.fd, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
            if n < 0 {
                let e = io::Error::last_os_error();
                match e.kind() {
                    io::ErrorKind::WouldBlock => return Progress::Pending,
                    io::ErrorKind::Interrupted => continue,
                    _ => return Progress::Failed(e),
                }
            }
            slot.written += n as usize;
        }
        Progress::Done
    }

    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        let until = match (until, self.accepting.is_empty()) {
            (None, true) => None,
            (None, false) => Some(self.accept_again_at),
            (Some(t), true) => Some(t),
            (Some(t), false) => Some(t.min(self.accept_again_at)),
        };
        let poll_only = !self.reread.is_empty() || until.is_some_and(|t| t <= clock::now());
        if !poll_only && let Some(t) = until {
            self.arm(t);
        }
        let timeout = poll_only.then_some(std::time::Duration::ZERO);
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        self.ready.clear();
        self.cursor = 0;
        self.rereading.extend(self.reread.drain(..));
        for event in &self.events {
            let closed = event.is_read_closed() || event.is_write_closed() || event.is_error();
            self.ready.push(Ready {
                token: event.token().0,
                readable: event.is_readable() || closed,
                writable: event.is_writable() || closed,
                closed,
            });
        }
        if clock::now() >= self.timer_at {
            self.timer_at = u64::MAX;
        }
        Ok(())
    }

    /// A timer that fires too early does no harm, so it is moved only forwards.
    fn arm(&mut self, at: u64) {
        if self.timer_at <= at {
            return;
        }
        self.timer_at = at;
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (at / 1_000_000_000) as i64,
                tv_nsec: (at % 1_000_000_000) as i64,
            },
        };
        // SAFETY: `spec` is valid for reads, and null says that the old value is not wanted.
        unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &spec,
                std::ptr::null_mut(),
            )
        };
    }

    pub fn next(&mut self, slots: &mut Slots) -> Option<Raw> {
        loop {
            let Some(&ready) = self.ready.get(self.cursor) else {
                return self.accept().or_else(|| self.next_reread(slots));
            };
            self.cursor += 1;
            if ready.token & WAKE != 0 {
                drain(self.wake_fd);
                return Some(Raw::Woken);
            }
            if ready.token & TIMER != 0 {
                continue;
            }
            if ready.token & LISTENER != 0 {
                let listener = (ready.token & !LISTENER) as u32;
                if !self.accepting.contains(&listener) {
                    self.accepting.push(listener);
                    self.accept_again_at = 0;
                }
                continue;
            }
            let index = (ready.token & 0xffff_ffff) as u32;
            let slot = &mut slots[index];
            if (slot.generation & 0xff_ffff) as usize != ready.token >> 32 && slot.state != State::Closing {
                continue;
            }
            if let Some(raw) = self.serve(index, slot, ready) {
                return Some(raw);
            }
        }
    }

    /// After the new events, so that one busy connection does not keep the others waiting.
    fn next_reread(&mut self, slots: &mut Slots) -> Option<Raw> {
        while let Some((index, generation)) = self.rereading.pop_front() {
            let slot = &mut slots[index];
            if slot.generation == generation
                && let Some(raw) = self.read(index, slot)
            {
                return Some(raw);
            }
        }
        None
    }

    fn serve(&mut self, index: u32, slot: &mut Slot, ready: Ready) -> Option<Raw> {
        slot.closed_behind |= ready.closed;
        if slot.state == State::Connecting {
            // What the peer has sent already is read once the owner knows of the connection.
            if ready.readable {
                self.reread.push((index, slot.generation));
            }
            return ready.writable.then(|| Raw::Connected(index, socket::take_error(slot.fd)));
        }
        if ready.writable && slot.written < slot.writing.len() {
            if ready.readable {
                self.reread.push((index, slot.generation));
            }
            return match self.write(slot) {
                Progress::Done => Some(Raw::Written(index)),
                Progress::Pending => None,
                Progress::Failed(e) => Some(Raw::Broken(index, e)),
            };
        }
        if !ready.readable {
            return None;
        }
        self.read(index, slot)
    }

    fn read(&mut self, index: u32, slot: &mut Slot) -> Option<Raw> {
        if !slot.wants_bytes() {
            return None;
        }
        // SAFETY: the buffer is valid for its length, and `fd` is open.
        let n = unsafe { libc::recv(slot.fd, self.buffer.as_mut_ptr().cast(), READ_BYTES, 0) };
        if n < 0 {
            let e = io::Error::last_os_error();
            return match e.kind() {
                io::ErrorKind::WouldBlock => None,
                io::ErrorKind::Interrupted => {
                    self.reread.push((index, slot.generation));
                    None
                }
                _ => Some(Raw::Broken(index, e)),
            };
        }
        if n == 0 {
            slot.eof = true;
            return Some(Raw::Eof(index));
        }
        self.filled = n as usize;
        // Edge-triggered: only a short read shows that there is no more, and it does not show a close behind it.
        if self.filled == READ_BYTES || slot.closed_behind {
            self.reread.push((index, slot.generation));
        }
        Some(Raw::Bytes(index))
    }

    fn accept(&mut self) -> Option<Raw> {
        if self.accepting.is_empty() || (self.accept_again_at > 0 && clock::now() < self.accept_again_at) {
            return None;
        }
        while let Some(&listener) = self.accepting.last() {
            let Some(fd) = self.listeners[listener as usize] else {
                self.accepting.pop();
                continue;
            };
            // SAFETY: null addresses are allowed; `fd` is open.
            let n = unsafe {
                libc::accept4(
                    fd,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                )
            };
            if n >= 0 {
                return Some(Raw::Accepted(listener, n));
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => {
                    self.accepting.pop();
                }
                Some(libc::EINTR | libc::ECONNABORTED) => {}
                _ => {
                    self.accept_again_at = clock::now() + ACCEPT_PAUSE_NS;
                    return None;
                }
            }
        }
        None
    }
}

pub(crate) fn drain(eventfd: RawFd) {
    let mut count = 0u64;
    // SAFETY: eight bytes are valid for writes; a failed read means that there was nothing.
    unsafe { libc::read(eventfd, (&raw mut count).cast(), 8) };
}
