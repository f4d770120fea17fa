//! Bytes to requests, and requests through the gate to their turn.

use weir_model::units::Nanos;
use weir_net::clock;

use super::{Due, End, Worker};
use crate::client::{State, Step, Visibility};
use crate::gate::Ticket;
use crate::stats::lock;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Worker {
    pub(super) fn received(&mut self, slot: usize) {
        let mut at = 0;
        loop {
            let Some(client) = &mut self.clients[slot] else { return };
            let bytes = &self.net.data()[at..];
            match client.state {
                State::Reading => {}
                State::Silent | State::Lingering => return,
                _ => {
                    if client.hold_back(bytes) && !client.paused {
                        client.paused = true;
                        self.net.pause(client.conn);
                    }
                    return;
                }
            }
            let (taken, step) = client.read(bytes, self.script.usual);
            let is_all = taken == bytes.len();
            at += taken;
            if !self.take_step(slot, step, is_all) {
                return;
            }
        }
    }

    /// Reads on in what was held back, if the response before it is out.
    pub(super) fn catch_up(&mut self, slot: usize) {
        let Some(mut client) = self.clients[slot].as_mut() else { return };
        let mut backlog = std::mem::take(&mut client.backlog);
        let mut at = 0;
        while matches!(client.state, State::Reading) && !backlog.is_empty() {
            let (taken, step) = client.read(&backlog[at..], self.script.usual);
            at += taken;
            let goes_on = self.take_step(slot, step, at == backlog.len());
            let Some(again) = self.clients[slot].as_mut() else { return };
            client = again;
            if !goes_on {
                break;
            }
        }
        match client.state {
            State::Silent | State::Lingering => {}
            State::Reading if client.eof => self.end(slot, End::Fin),
            State::Reading => {
                if std::mem::take(&mut client.paused) {
                    self.net.resume(client.conn);
                }
            }
            _ => {
                backlog.drain(..at);
                client.backlog = backlog;
            }
        }
    }

    /// True if there may be more to read, be it in the decoder. `is_all`: no byte is left.
    fn take_step(&mut self, slot: usize, step: Step, is_all: bool) -> bool {
        match step {
            Step::NeedMore => false,
            Step::More => true,
            Step::Expects => {
                let conn = self.client(slot).conn;
                self.net.send(conn, CONTINUE);
                true
            }
            Step::Complete => {
                self.complete(slot);
                !is_all
            }
            Step::Refused(status) => {
                self.client(slot).request.refuse(status);
                self.refuse(slot);
                false
            }
        }
    }

    fn complete(&mut self, slot: usize) {
        let now_ns = self.now_ns;
        let client = self.client(slot);
        client.ready_ns = now_ns;
        if client.request.answer.control {
            return self.answer_control(slot);
        }
        client.requests += 1;
        if client.visibility == Visibility::Hidden {
            client.visibility = Visibility::Shown;
            let resumed = client.resumed;
            self.recorder.unhide(resumed);
        }
        self.recorder.request(slot);
        if self.enter(slot) {
            self.begin(slot);
        }
    }

    /// The request's turn has come: its latency runs from now.
    fn begin(&mut self, slot: usize) {
        let delay = self.client(slot).request.answer.delay;
        let delay = delay.unwrap_or_else(|| self.script.latency.sample(&mut self.rng));
        if delay == Nanos::ZERO {
            return self.answer(slot);
        }
        self.client(slot).state = State::UnderWay;
        self.set_timer(self.after(delay), Due::Answer, slot);
    }

    /// True if the request may go on; otherwise it is called in its turn.
    fn enter(&mut self, slot: usize) -> bool {
        let Some(gate) = &self.shared.gate else { return true };
        let client = self.clients[slot].as_mut().expect("it has just sent a request");
        let ticket = Ticket { thread: self.thread, slot: slot as u32, id: client.id };
        client.entered = lock(gate).enter(ticket);
        if !client.entered {
            client.state = State::Queued;
        }
        client.entered
    }

    /// A place is free, and the next one in the queue gets it, on whichever thread it is.
    pub(super) fn leave(&mut self) {
        let Some(gate) = &self.shared.gate else { return };
        let Some(next) = lock(gate).leave() else { return };
        if next.thread == self.thread {
            self.granted.push_back(next);
        } else {
            self.shared.grant(next);
        }
    }

    pub(super) fn serve_granted(&mut self) {
        while let Some(Ticket { slot, id, .. }) = self.granted.pop_front() {
            let slot = slot as usize;
            self.now_ns = clock::now();
            match &mut self.clients[slot] {
                Some(client) if client.id == id => {
                    client.entered = true;
                    self.begin(slot);
                    self.catch_up(slot);
                }
                // It has gone away while it waited.
                _ => self.leave(),
            }
        }
    }
}
