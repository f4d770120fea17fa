//! Sockets with the options that matter.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where to connect to, or to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}
