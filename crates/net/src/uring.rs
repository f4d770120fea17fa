//! The body that io_uring serves: operations are queued and handed over together in one system call; receives are
//! armed once and deliver into buffers that the kernel picks from a ring of ours.
//!
//! Needs Linux 6.1 (SINGLE_ISSUER, DEFER_TASKRUN, multishot receive, provided buffer rings); `new` fails elsewhere.
//!
//! Every operation carries what it is and whose (`tag`). A slot counts the operations that the kernel still holds on
//! it and is not used again before that count is zero, so a completion always finds the connection it belongs to.

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::conn::{Raw, Slot, Slots, State};
use crate::polled::drain;
use crate::{Endpoint, clock, socket};

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;
const BUFFERS: u16 = 256;
/// Not a power of two: equal offsets in all buffers would compete for the same cache sets.
const BUFFER_BYTES: usize = 8192 + 320;
const GROUP: u16 = 0;
/// From `linux/io_uring.h`.
const IORING_ENTER_GETEVENTS: u32 = 1;
/// How long accepting rests when no descriptor is left.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// What a completion is about; the rest of the 64 bits is the connection or listener.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Op {
    Forget = 0,
    Receive = 1 << 56,
    Send = 2 << 56,
    Connect = 3 << 56,
    Accept = 4 << 56,
    Wake = 5 << 56,
}

const fn tag(op: Op, index: u32) -> u64 {
    op as u64 | index as u64
}

struct ListenerState {
    fd: RawFd,
    open: bool,
}

pub(crate) struct Uring {
    ring: IoUring,
    buffers: Buffers,
    /// Completions of the last `wait`, used up from `cursor` on.
    completions: Vec<cqueue::Entry>,
    cursor: usize,
    /// The buffer that `bytes` shows.
    current: Option<(u16, usize)>,
    listeners: Vec<ListenerState>,
    /// Listeners that rest because no descriptor was left, until `accept_again_at`.
    resting: Vec<u32>,
    accept_again_at: u64,
    wake_fd: RawFd,
    /// Addresses of dials under way; the kernel reads them when it starts the operation, at the next submission.
    addresses: Vec<socket2::SockAddr>,
}

impl Uring {
    pub fn new(wake_fd: RawFd) -> io::Result<Uring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let buffers = Buffers::register(&ring)?;
        let mut uring = Uring {
            ring,
            buffers,
            completions: Vec::with_capacity(COMPLETIONS as usize),
            cursor: 0,
            current: None,
            listeners: Vec::new(),
            resting: Vec::new(),
            accept_again_at: 0,
            wake_fd,
            addresses: Vec::new(),
        };
        uring.watch_wake();
        Ok(uring)
    }

    pub fn bytes(&self) -> &[u8] {
        match self.current {
            Some((id, len)) => self.buffers.bytes(id, len),
            None => &[],
        }
    }

    fn push(&mut self, entry: squeue::Entry) {
        loop {
            // SAFETY: what each operation points to (a slot's `writing`, `addresses`, the buffer ring) stays where it
            // is until its completion, or for addresses until the submission.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            self.submit_now();
        }
    }

    /// Hands over what is queued, without waiting.
    pub fn submit_now(&mut self) {
        loop {
            match self.ring.submit() {
                Ok(_) => break,
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                // The completion queue is full: take from it, so that the kernel can go on.
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => self.collect(),
                Err(e) => panic!("io_uring refuses submissions: {e}"),
            }
        }
        self.addresses.clear();
    }

    fn collect(&mut self) {
        self.completions.extend(self.ring.completion());
    }

    pub fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        self.recycle();
        debug_assert!(self.cursor == self.completions.len(), "the last batch is used up");
        self.completions.clear();
        self.cursor = 0;
        let until = match until {
            Some(t) if !self.resting.is_empty() => Some(t.min(self.accept_again_at)),
            None if !self.resting.is_empty() => Some(self.accept_again_at),
            t => t,
        };
        let result = match until {
            None => self.ring.submit_and_wait(1),
            Some(0) => self.poll(),
            Some(t) => {
                let left = t.saturating_sub(clock::now());
                if left == 0 {
                    self.poll()
                } else {
                    let span = Timespec::new().sec(left / 1_000_000_000).nsec((left % 1_000_000_000) as u32);
                    self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&span))
                }
            }
        };
        match result {
            Ok(_) => {}
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) => {}
            Err(e) => return Err(e),
        }
        self.addresses.clear();
        self.collect();
        if !self.resting.is_empty() && clock::now() >= self.accept_again_at {
            for listener in std::mem::take(&mut self.resting) {
                self.accept(listener);
            }
        }
        Ok(())
    }

    /// Submits and takes what is there. GETEVENTS is said although nothing is waited for: only then does the kernel
    /// run the work that it put off for us (DEFER_TASKRUN).
    fn poll(&mut self) -> io::Result<usize> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: no argument structure is passed; `queued` entries are in the submission queue.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, IORING_ENTER_GETEVENTS, None) }
    }

    /// Gives the buffer of the last `bytes` back to the kernel.
    fn recycle(&mut self) {
        if let Some((id, _)) = self.current.take() {
            self.buffers.give_back(id);
        }
    }

    pub fn next(&mut self, slots: &mut Slots) -> Option<Raw> {
        self.recycle();
        while let Some(completion) = self.completions.get(self.cursor) {
            let (tag, result, flags) = (completion.user_data(), completion.result(), completion.flags());
            self.cursor += 1;
            let index = tag as u32;
            let raw = match tag >> 56 {
                1 => self.received(index, result, flags, slots),
                2 => self.sent(index, result, slots),
                3 => connected(index, result, slots),
                4 => self.accepted(index, result, flags),
                5 => {
                    if !cqueue::more(flags) {
                        self.watch_wake();
                    }
                    drain(self.wake_fd);
                    Some(Raw::Woken)
                }
                _ => None,
            };
            if raw.is_some() {
                return raw;
            }
        }
        None
    }

    fn received(&mut self, index: u32, result: i32, flags: u32, slots: &mut Slots) -> Option<Raw> {
        let slot = &mut slots[index];
        let buffer = cqueue::buffer_select(flags);
        if !cqueue::more(flags) {
            slot.receiving = false;
            slot.ops -= 1;
        }
        if slot.state == State::Lingering || slot.state == State::Failed {
            if let Some(id) = buffer {
                self.buffers.give_back(id);
            }
            slots.free_if_idle(index);
            return None;
        }
        match result {
            0 => {
                if let Some(id) = buffer {
                    self.buffers.give_back(id);
                }
                slot.eof = true;
                return Some(Raw::Eof(index));
            }
            n if n > 0 => {
                self.current = Some((buffer.expect("received bytes are in a buffer"), n as usize));
                self.receive_again(index, slot);
                return Some(Raw::Bytes(index));
            }
            // All buffers were full, or the receive was cancelled for a pause that may be over already.
            n if matches!(-n, libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN) => {
                self.receive_again(index, slot)
            }
            n => return Some(Raw::Broken(index, io::Error::from_raw_os_error(-n))),
        }
        None
    }

    fn receive_again(&mut self, index: u32, slot: &mut Slot) {
        if !slot.receiving && slot.wants_bytes() {
            self.receive(index, slot);
        }
    }

    /// Arms the receive, unless it is armed. Nothing is there yet as a rule, so the kernel polls first.
    pub fn receive(&mut self, index: u32, slot: &mut Slot) {
        if slot.receiving {
            return;
        }
        slot.receiving = true;
        slot.ops += 1;
        self.push(opcode::RecvMulti::new(Fd(slot.fd), GROUP).build().user_data(tag(Op::Receive, index)));
    }

    pub fn stop_receiving(&mut self, index: u32, slot: &mut Slot) {
        if slot.receiving {
            let cancel = opcode::AsyncCancel::new(tag(Op::Receive, index)).build();
            self.push(cancel.user_data(tag(Op::Forget, 0)).flags(squeue::Flags::SKIP_SUCCESS));
        }
    }

    /// Hands `slot.writing` over from `slot.written` on.
    pub fn send(&mut self, index: u32, slot: &mut Slot) {
        let rest = &slot.writing[slot.written..];
        slot.ops += 1;
        let send = opcode::Send::new(Fd(slot.fd), rest.as_ptr(), rest.len() as u32).flags(libc::MSG_NOSIGNAL);
        self.push(send.build().user_data(tag(Op::Send, index)));
    }

    fn sent(&mut self, index: u32, result: i32, slots: &mut Slots) -> Option<Raw> {
        let slot = &mut slots[index];
        slot.ops -= 1;
        if slot.state == State::Lingering || slot.state == State::Failed {
            slots.free_if_idle(index);
            return None;
        }
        if result < 0 {
            if matches!(-result, libc::EINTR | libc::EAGAIN) {
                self.send(index, slot);
                return None;
            }
            slot.send_failed = true;
            // What the peer sent before it went away is still to be read, and tells more than the failed send.
            let e = io::Error::from_raw_os_error(-result);
            return (!slot.wants_bytes()).then_some(Raw::Broken(index, e));
        }
        slot.written += result as usize;
        if slot.written < slot.writing.len() {
            self.send(index, slot);
            return None;
        }
        Some(Raw::Written(index))
    }

    pub fn connect(&mut self, index: u32, slot: &mut Slot, to: &Endpoint) -> io::Result<()> {
        // The kernel copies the address when the operation is submitted, so it has to last only until then; a Vec
        // that grows would move it.
        if self.addresses.capacity() == self.addresses.len() {
            self.submit_now();
            self.addresses.reserve(SUBMISSIONS as usize);
        }
        self.addresses.push(to.sockaddr()?);
        let addr = self.addresses.last().expect("just pushed");
        slot.ops += 1;
        let connect = opcode::Connect::new(Fd(slot.fd), addr.as_ptr().cast(), addr.len()).build();
        self.push(connect.user_data(tag(Op::Connect, index)));
        Ok(())
    }

    /// Cancels what the kernel holds of it, then closes.
    pub fn close(&mut self, slot: &mut Slot) {
        if slot.ops > 0 {
            let cancel = opcode::AsyncCancel2::new(CancelBuilder::fd(Fd(slot.fd)).all()).build();
            self.push(cancel.user_data(tag(Op::Forget, 0)).flags(squeue::Flags::SKIP_SUCCESS));
        }
        let close = opcode::Close::new(Fd(slot.fd)).build();
        self.push(close.user_data(tag(Op::Forget, 0)).flags(squeue::Flags::SKIP_SUCCESS));
    }

    pub fn listen(&mut self, fd: RawFd) -> u32 {
        self.listeners.push(ListenerState { fd, open: true });
        let listener = (self.listeners.len() - 1) as u32;
        self.accept(listener);
        listener
    }

    fn accept(&mut self, listener: u32) {
        let state = &self.listeners[listener as usize];
        if state.open {
            let accept = opcode::AcceptMulti::new(Fd(state.fd)).flags(libc::SOCK_CLOEXEC).build();
            self.push(accept.user_data(tag(Op::Accept, listener)));
        }
    }

    fn accepted(&mut self, listener: u32, result: i32, flags: u32) -> Option<Raw> {
        let open = self.listeners[listener as usize].open;
        if !cqueue::more(flags) && open {
            if matches!(-result, libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) {
                self.resting.push(listener);
                self.accept_again_at = clock::now() + ACCEPT_PAUSE_NS;
            } else {
                self.accept(listener);
            }
        }
        if result < 0 {
            return None;
        }
        if !open {
            socket::close(result);
            return None;
        }
        Some(Raw::Accepted(listener, result))
    }

    /// The port is free when this returns.
    pub fn unlisten(&mut self, listener: u32) {
        let state = &mut self.listeners[listener as usize];
        state.open = false;
        let fd = state.fd;
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::fd(Fd(fd)).all()).build();
        self.push(cancel.user_data(tag(Op::Forget, 0)).flags(squeue::Flags::SKIP_SUCCESS));
        self.submit_now();
        // The cancelled accept may hold the socket a moment longer; shutting it down refuses dials at once.
        // SAFETY: shutdown(2) takes no memory.
        unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        socket::close(fd);
    }

    fn watch_wake(&mut self) {
        let poll = opcode::PollAdd::new(Fd(self.wake_fd), libc::POLLIN as u32).multi(true).build();
        self.push(poll.user_data(tag(Op::Wake, 0)));
    }
}

fn connected(index: u32, result: i32, slots: &mut Slots) -> Option<Raw> {
    let slot = &mut slots[index];
    slot.ops -= 1;
    if slot.state != State::Connecting {
        slots.free_if_idle(index);
        return None;
    }
    let result = if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
    Some(Raw::Connected(index, result))
}

/// Receive buffers and the ring in which the kernel finds the free ones.
///
/// One mapping: the ring's entries (16 bytes each, page-aligned as the kernel wants), then the buffers.
struct Buffers {
    base: *mut u8,
    /// Next entry to fill, modulo the ring's size.
    tail: u16,
}

const RING_BYTES: usize = BUFFERS as usize * size_of::<BufRingEntry>();
const MAPPED_BYTES: usize = RING_BYTES + BUFFERS as usize * BUFFER_BYTES;

impl Buffers {
    fn register(ring: &IoUring) -> io::Result<Buffers> {
        // SAFETY: a fresh anonymous mapping; the result is checked.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                MAPPED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffers = Buffers { base: base.cast(), tail: 0 };
        // SAFETY: the mapping holds the entries and outlives the ring: `Uring` drops its ring first, in the order of
        // its fields.
        unsafe { ring.submitter().register_buf_ring_with_flags(base as u64, BUFFERS, GROUP, 0)? };
        for id in 0..BUFFERS {
            buffers.give_back(id);
        }
        Ok(buffers)
    }

    fn buffer(&self, id: u16) -> *mut u8 {
        debug_assert!(id < BUFFERS);
        // SAFETY: inside the mapping, for any id that the kernel can have from us.
        unsafe { self.base.add(RING_BYTES + id as usize * BUFFER_BYTES) }
    }

    fn bytes(&self, id: u16, len: usize) -> &[u8] {
        debug_assert!(len <= BUFFER_BYTES);
        // SAFETY: the kernel wrote `len` bytes and does not touch the buffer before it is given back.
        unsafe { std::slice::from_raw_parts(self.buffer(id), len) }
    }

    fn give_back(&mut self, id: u16) {
        let ring: *mut BufRingEntry = self.base.cast();
        // SAFETY: the entry is inside the ring and, being between the kernel's head and our tail plus its size, ours
        // to write; the tail is published after it, with release order, as the kernel's protocol asks.
        unsafe {
            let entry = &mut *ring.add((self.tail % BUFFERS) as usize);
            entry.set_addr(self.buffer(id) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(ring).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody holds a reference into it.
        unsafe { libc::munmap(self.base.cast(), MAPPED_BYTES) };
    }
}
