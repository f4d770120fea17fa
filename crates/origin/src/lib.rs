//! The origin: a programmable HTTP/1.1 server that answers as scripted, including badly.
//!
//! It plays the service that a client calls: its latency, its limit of parallel work, its keep-alive habits, its faults.
//! What it says of itself (`Server-Timing`, `/_weir/stats`) is measured, never copied from its configuration.
//!
//! It serves no files, runs no handlers and speaks no HTTP/2. One request at a time is under way on a connection: those
//! that a client pipelines wait for their turn, as they do in Tomcat, Node and nginx.
//!
//! ```text
//! bytes -> wire -> Request -> route -> Answer -> [gate] -> [latency] -> [fault] -> response -> bytes
//! ```
#![forbid(unsafe_code)]

mod config;
mod error;

mod fault;
mod latency;

mod gate;
mod route;
mod stats;

mod client;
mod response;

mod origin;
mod serve;
mod tls;

pub use config::{OriginConfig, OriginTls};
pub use error::OriginError;
pub use fault::{Fault, FaultKind};
pub use latency::{Histogram, Latency};
pub use origin::{Origin, Stopper};
pub use stats::{Connections, Queue, Stats, ThreadStats, TlsHandshakes};
