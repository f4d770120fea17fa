//! Names to addresses, by the system's resolver on a thread of its own.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::Waker;

/// The name has no address; the text is the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError(pub String);

pub(crate) type Answer = (u64, Result<Vec<SocketAddr>, ResolveError>);

/// getaddrinfo(3) blocks, so it has a thread; the thread ends with its `Resolver`.
pub(crate) struct Resolver {
    questions: Sender<(String, u16, u64)>,
    answers: Receiver<Answer>,
}

impl Resolver {
    pub fn start(waker: Waker) -> Resolver {
        let (questions, inbox) = channel::<(String, u16, u64)>();
        let (outbox, answers) = channel();
        std::thread::Builder::new()
            .name("resolver".into())
            .spawn(move || {
                while let Ok((host, port, key)) = inbox.recv() {
                    if outbox.send((key, look_up(&host, port))).is_err() {
                        return;
                    }
                    waker.wake();
                }
            })
            .expect("a thread can be started");
        Resolver { questions, answers }
    }

    pub fn ask(&self, host: &str, port: u16, key: u64) {
        self.questions.send((host.to_owned(), port, key)).expect("the resolver lives as long as its loop");
    }

    pub fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.try_iter()
    }
}

/// Duplicates and order are the system's (RFC 6724).
fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    let addrs: Vec<SocketAddr> =
        (host, port).to_socket_addrs().map_err(|e| ResolveError(e.to_string()))?.collect();
    if addrs.is_empty() { Err(ResolveError("the name has no address".into())) } else { Ok(addrs) }
}
