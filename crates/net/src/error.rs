//! Why a connection is gone.

use std::io;

/// Where in its life a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Connect,
    Handshake,
    Open,
}

#[derive(Debug)]
pub struct Error {
    pub stage: Stage,
    pub cause: Cause,
}

#[derive(Debug)]
pub enum Cause {
    Refused,
    Unreachable,
    /// ECONNRESET, EPIPE, ECONNABORTED.
    Reset,
    /// EOF inside the TLS handshake.
    Closed,
    /// The kernel gave up waiting (ETIMEDOUT).
    TimedOut,
    /// No ephemeral port is left (EADDRNOTAVAIL, EADDRINUSE).
    NoPorts,
    /// No file descriptor is left (EMFILE, ENFILE).
    NoFiles,
    /// The peer's certificate does not stand the check.
    Untrusted(String),
    /// The peer refused our certificate, or wants one.
    ClientCert(String),
    /// No common application protocol.
    Alpn,
    Tls(String),
    Io(io::Error),
}

impl From<io::Error> for Cause {
    fn from(e: io::Error) -> Cause {
        match e.raw_os_error() {
            Some(libc::ECONNREFUSED | libc::ENOENT) => Cause::Refused,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN) => {
                Cause::Unreachable
            }
            Some(libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED) => Cause::Reset,
            Some(libc::ETIMEDOUT) => Cause::TimedOut,
            Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Cause::NoPorts,
            Some(libc::EMFILE | libc::ENFILE) => Cause::NoFiles,
            _ => Cause::Io(e),
        }
    }
}
