//! Requests to responses, whole, broken or slow, and what follows them on the connection.

use weir_net::{Conn, clock};

use super::{Due, End, Worker};
use crate::client::{State, Visibility};
use crate::fault::FaultKind;
use crate::response::{Head, Tail, Then, response, spoil};
use crate::route::Content;

const NOT_HTTP: &[u8] = b"SSH-2.0-weir\x00\xff\r\n\r\n";
const EXTRA: &[u8] = b"bytes that belong to no response\r\n";

impl Worker {
    pub(super) fn answer(&mut self, slot: usize) {
        let reused = self.client(slot).requests > 1;
        let fault = self.script.faults.draw(reused, &mut self.rng);
        match fault {
            None => self.respond(slot),
            Some(kind) => {
                self.recorder.fault(kind);
                self.play(slot, kind);
            }
        }
    }

    fn respond(&mut self, slot: usize) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let (head, tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.recorder.response(head.status);
        self.start_response(slot, &head, tail);
    }

    fn play(&mut self, slot: usize, kind: FaultKind) {
        let conn = self.client(slot).conn;
        match kind {
            FaultKind::Reset => self.end_answered(slot, End::Rst),
            FaultKind::Close | FaultKind::CloseOnReuse => self.end_answered(slot, End::Fin),
            FaultKind::Hang => self.fall_silent(slot),
            FaultKind::HalfClose => {
                self.net.shutdown(conn);
                self.fall_silent(slot);
            }
            FaultKind::Malformed => {
                self.net.send(conn, NOT_HTTP);
                self.end_answered(slot, End::Fin);
            }
            _ => self.respond_badly(slot, kind),
        }
    }

    fn respond_badly(&mut self, slot: usize, kind: FaultKind) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let (mut head, mut tail) = response(&client.request, client.requests, &self.script.keepalive);
        spoil(kind, client.request.head_only, &mut head, &mut tail);
        self.recorder.response(head.status);
        if kind == FaultKind::Drip {
            self.start_drip(slot, &head, tail);
        } else {
            self.start_response(slot, &head, tail);
        }
    }

    /// Says no more until the client goes away, and reads on to notice when it does.
    fn fall_silent(&mut self, slot: usize) {
        let client = self.client(slot);
        client.state = State::Silent;
        client.backlog = Vec::new();
        let (conn, paused) = (client.conn, std::mem::take(&mut client.paused));
        if client.eof {
            self.end(slot, End::Fin);
        } else if paused {
            self.net.resume(conn);
        }
    }

    /// Ends a connection whose request is no longer under way.
    fn end_answered(&mut self, slot: usize, how: End) {
        self.client(slot).state = State::Silent;
        self.end(slot, how);
    }

    fn start_response(&mut self, slot: usize, head: &Head, mut tail: Tail) {
        let client = self.clients[slot].as_ref().expect("it waits for this");
        let heads = &self.heads;
        self.net.send_with(client.conn, |out| {
            let took_ns = clock::now().saturating_sub(client.ready_ns);
            if tail.filler_lines > 0 {
                return heads.write_open(out, head, took_ns);
            }
            heads.write(out, head, took_ns);
            tail.write(out, &client.request.held, u64::MAX);
        });
        self.go_on(slot, tail);
    }

    /// After a piece has been queued. A RST must wait until the kernel has it.
    fn go_on(&mut self, slot: usize, tail: Tail) {
        if tail.is_done() && tail.then != Then::Reset {
            self.finish(slot, tail.then);
        } else {
            self.client(slot).state = State::Sending(tail);
        }
    }

    /// The kernel has taken all there was.
    pub(super) fn sent(&mut self, conn: Conn) {
        let slot = conn.index();
        let Some(client) = &self.clients[slot] else { return };
        let State::Sending(tail) = client.state else { return };
        if self.net.unsent(conn) > 0 {
            return;
        }
        if tail.is_done() {
            self.finish(slot, tail.then);
            self.catch_up(slot);
        } else {
            self.streams.push(conn);
        }
    }

    /// One piece for each response that is on its way. Only once a batch is over: a client that reads as fast as we
    /// write must not keep the others waiting.
    pub(super) fn send_pieces(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        for conn in streams.drain(..) {
            self.send_piece(conn);
        }
        self.streams = streams;
    }

    fn send_piece(&mut self, conn: Conn) {
        let slot = conn.index();
        let Some(client) = self.clients[slot].as_ref().filter(|client| client.conn == conn) else { return };
        let State::Sending(mut tail) = client.state else { return };
        self.net.send_with(conn, |out| tail.write(out, &client.request.held, u64::MAX));
        self.go_on(slot, tail);
        self.catch_up(slot);
    }

    fn start_drip(&mut self, slot: usize, head: &Head, tail: Tail) {
        let client = self.clients[slot].as_mut().expect("it waits for this");
        let took_ns = clock::now().saturating_sub(client.ready_ns);
        self.net.send_with(client.conn, |out| self.heads.write(out, head, took_ns));
        client.state = State::Dripping(tail);
        self.set_timer(self.after(self.script.drip_interval), Due::Drip, slot);
    }

    pub(super) fn drip(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else { return };
        let State::Dripping(mut tail) = client.state else { return };
        self.net.send_with(client.conn, |out| tail.write(out, &client.request.held, 1));
        if tail.is_done() {
            self.finish(slot, tail.then);
            return self.catch_up(slot);
        }
        client.state = State::Dripping(tail);
        self.set_timer(self.after(self.script.drip_interval), Due::Drip, slot);
    }

    /// The response is out.
    fn finish(&mut self, slot: usize, then: Then) {
        let client = self.clients[slot].as_mut().expect("it has just been answered");
        // Silence keeps its place at the gate, as a thread that hangs would.
        if then != Then::Silence && std::mem::take(&mut client.entered) {
            self.leave();
        }
        let client = self.client(slot);
        client.request.held = Vec::new();
        client.state = State::Reading;
        let (conn, has_backlog) = (client.conn, !client.backlog.is_empty());
        match then {
            Then::Next => self.start_idling(slot),
            Then::Extra => {
                self.net.send(conn, EXTRA);
                self.start_idling(slot);
            }
            Then::Close if has_backlog => self.linger(slot),
            Then::Close => self.end(slot, End::Fin),
            Then::Reset => self.end(slot, End::Rst),
            Then::Silence => self.fall_silent(slot),
        }
    }

    /// An answer to bytes that are no request; whatever follows them is not read.
    pub(super) fn refuse(&mut self, slot: usize) {
        self.client(slot).ready_ns = self.now_ns;
        let client = self.clients[slot].as_ref().expect("it has just sent something");
        let (head, mut tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.recorder.response(head.status);
        let took_ns = clock::now().saturating_sub(client.ready_ns);
        self.net.send_with(client.conn, |out| {
            self.heads.write(out, &head, took_ns);
            tail.write(out, &[], u64::MAX);
        });
        self.linger(slot);
    }

    pub(super) fn answer_control(&mut self, slot: usize) {
        let client = self.clients[slot].as_mut().expect("it has just sent a request");
        if client.requests == 0 && client.visibility == Visibility::Shown {
            client.visibility = Visibility::Hidden;
            self.recorder.hide(client.resumed);
        }
        if client.request.answer.content == Content::Reset {
            self.shared.reset();
        }
        if matches!(client.request.answer.content, Content::Stats | Content::Reset) {
            client.request.held = serde_json::to_vec_pretty(&self.shared.stats()).expect("numbers and names");
            client.request.held.push(b'\n');
        }
        let (head, tail) = response(&client.request, client.requests, &self.script.keepalive);
        self.start_response(slot, &head, tail);
    }
}
