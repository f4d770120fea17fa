//! What the loop knows of a connection, whichever body serves it.

use std::os::fd::RawFd;

use crate::Conn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Connecting,
    Handshaking,
    Open,
    /// Its owner has closed it; queued bytes still leave.
    Closing,
    /// It failed, and its owner is about to hear of it.
    Failed,
    /// Closed for everyone, but the kernel still holds operations on it.
    Lingering,
}

/// About 200 bytes; buffers grow only as bytes are queued.
pub(crate) struct Slot {
    pub generation: u32,
    pub fd: RawFd,
    pub state: State,
    pub tls: Option<Box<rustls::Connection>>,
    /// Queued, not yet with the kernel.
    pub out: Vec<u8>,
    /// With the kernel; of these `written` bytes are done.
    pub writing: Vec<u8>,
    pub written: usize,
    /// Operations that the kernel holds (io_uring), so the slot cannot be reused yet.
    pub ops: u16,
    /// In the list of connections with something to write.
    pub dirty: bool,
    /// The owner waits for `Sent`.
    pub sent_due: bool,
    pub paused: bool,
    /// The owner asked for FIN after the queued bytes.
    pub fin_due: bool,
    /// Nothing more will be read.
    pub eof: bool,
    /// The kernel said that a close stands behind the bytes still to be read (mio).
    pub closed_behind: bool,
    /// A receive is with the kernel (io_uring).
    pub receiving: bool,
    /// A send failed; what is still to be read will tell why.
    pub send_failed: bool,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            generation: 0,
            fd: -1,
            state: State::Free,
            tls: None,
            out: Vec::new(),
            writing: Vec::new(),
            written: 0,
            ops: 0,
            dirty: false,
            sent_due: false,
            paused: false,
            fin_due: false,
            eof: false,
            closed_behind: false,
            receiving: false,
            send_failed: false,
        }
    }

    pub fn unsent(&self) -> usize {
        self.out.len() + self.writing.len() - self.written
    }

    /// Moves queued bytes to `writing`, if what was there has left. False if there is nothing to write.
    pub fn stage(&mut self) -> bool {
        if self.written == self.writing.len() {
            self.writing.clear();
            self.written = 0;
            std::mem::swap(&mut self.out, &mut self.writing);
        }
        self.written < self.writing.len()
    }

    pub fn wants_bytes(&self) -> bool {
        !self.paused && !self.eof && matches!(self.state, State::Handshaking | State::Open)
    }
}

/// All connections of a loop; freed slots are used again, last freed first.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub fn take(&mut self, fd: RawFd, state: State) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self[index];
        debug_assert!(slot.state == State::Free && slot.ops == 0 && slot.tls.is_none());
        slot.fd = fd;
        slot.state = state;
        index
    }

    /// The owner's handles become stale; the slot is free once the kernel holds nothing of it.
    pub fn retire(&mut self, index: u32) {
        let slot = &mut self[index];
        slot.state = State::Lingering;
        slot.generation = slot.generation.wrapping_add(1);
        slot.tls = None;
        self.free_if_idle(index);
    }

    pub fn free_if_idle(&mut self, index: u32) {
        let slot = &mut self[index];
        if slot.state != State::Lingering || slot.ops > 0 || slot.dirty {
            return;
        }
        let (generation, mut out, mut writing) =
            (slot.generation, std::mem::take(&mut slot.out), std::mem::take(&mut slot.writing));
        out.clear();
        writing.clear();
        // Small buffers are kept for the next connection; large ones go back to the allocator.
        *slot = Slot { generation, ..Slot::new() };
        if out.capacity() <= 4096 && writing.capacity() <= 4096 {
            (slot.out, slot.writing) = (out, writing);
        }
        self.free.push(index);
    }

    pub fn handle(&self, index: u32) -> Conn {
        Conn { index, generation: self[index].generation }
    }

    /// The slot, unless its owner's handle is stale.
    pub fn owned(&mut self, conn: Conn) -> Option<&mut Slot> {
        self.slots.get_mut(conn.index()).filter(|s| s.generation == conn.generation)
    }

    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }
}

impl std::ops::Index<u32> for Slots {
    type Output = Slot;
    fn index(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Slots {
    fn index_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }
}

/// What a body of the loop saw. `Net` makes `Event`s of it.
#[derive(Debug)]
pub(crate) enum Raw {
    Accepted(u32, RawFd),
    Connected(u32, Result<(), std::io::Error>),
    /// The body holds them until it is asked for the next thing.
    Bytes(u32),
    Eof(u32),
    /// All of `writing` has left.
    Written(u32),
    Broken(u32, std::io::Error),
    Woken,
}
