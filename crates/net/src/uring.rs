//! The body that io_uring serves: operations are queued and handed over together in one system call; receives are
//! armed once and deliver into buffers that the kernel picks from a ring of ours.

use std::io;
use std::os::fd::RawFd;

use crate::Endpoint;
use crate::conn::{Raw, Slot, Slots};

pub(crate) struct Uring {}

impl Uring {
    pub fn new(_wake_fd: RawFd) -> io::Result<Uring> {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }
    pub fn bytes(&self) -> &[u8] {
        unreachable!()
    }
    pub fn wait(&mut self, _until: Option<u64>) -> io::Result<()> {
        unreachable!()
    }
    pub fn next(&mut self, _slots: &mut Slots) -> Option<Raw> {
        unreachable!()
    }
    pub fn connect(&mut self, _index: u32, _slot: &mut Slot, _to: &Endpoint) -> io::Result<()> {
        unreachable!()
    }
    pub fn receive(&mut self, _index: u32, _slot: &mut Slot) {
        unreachable!()
    }
    pub fn stop_receiving(&mut self, _index: u32, _slot: &mut Slot) {
        unreachable!()
    }
    pub fn send(&mut self, _index: u32, _slot: &mut Slot) {
        unreachable!()
    }
    pub fn close(&mut self, _slot: &mut Slot) {
        unreachable!()
    }
    pub fn listen(&mut self, _fd: RawFd) -> u32 {
        unreachable!()
    }
    pub fn unlisten(&mut self, _listener: u32) {
        unreachable!()
    }
    pub fn submit_now(&mut self) {
        unreachable!()
    }
}
