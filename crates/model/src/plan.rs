//! A run, checked and with every default filled: what to send, how fast, until when, through which pool.
//!
//! Kept with the results, and enough to run it again. The loader takes it apart once; nothing else passes it on whole.

use serde::{Deserialize, Serialize};

use crate::pool::Policy;
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is sent, chosen by weight; one entry for `weir run URL`.
    pub requests: Vec<Request>,
    pub pace: Pace,
    pub stop: Stop,
    /// Measured apart, before the run proper.
    pub warmup: Nanos,
    /// For the whole request, from its intended start.
    pub timeout: Nanos,
    /// Profile that `pool` started from, before flags changed single values.
    pub profile: String,
    pub pool: Policy,
    /// Pools, each on a thread of its own.
    pub instances: u32,
    pub tls: Tls,
    pub net: NetOptions,
    pub seed: u64,
    /// Gates as typed; `model::gates` reads them.
    pub gates: Vec<String>,
}

/// One line of the request list. `url` is absolute; `{{…}}` in `path`, header values and body is a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub method: String,
    pub scheme: Scheme,
    /// Host as in the URL, without brackets for IPv6.
    pub host: String,
    pub port: u16,
    /// Path and query, at least `/`.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// The body's bytes as text where they are UTF-8, otherwise a file's path; `None` sends no body.
    pub body: Option<Body>,
    pub weight: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    Http,
    Https,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// May hold templates.
    Text(String),
    /// Read once at the start and sent as it is.
    File(String),
}

/// When requests start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "loop")]
pub enum Pace {
    /// Each of so many workers sends its next request when the last one ended.
    Closed { workers: u32 },
    /// Requests start by the clock, whatever became of the earlier ones.
    Open { rate: Rate, arrival: Arrival },
}

/// Requests per second, over all instances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum Rate {
    Constant {
        per_s: f64,
    },
    /// Linear from one rate to the other, then constant.
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        over: Nanos,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Evenly spaced.
    Constant,
    /// Independent of each other: exponential gaps.
    Poisson,
    /// All requests of an interval (one second) at its top.
    Burst,
}

/// When the run ends; the first that holds. Requests in flight are then waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Exactly so many are sent, warm-up not counted.
    pub requests: Option<u64>,
    pub duration: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// False is `-k`.
    pub verify: bool,
    /// PEM file of authorities to trust, in place of the system's.
    pub cacert: Option<String>,
    /// PEM files of a client certificate chain and its key.
    pub cert: Option<String>,
    pub key: Option<String>,
    pub resumption: bool,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    #[serde(rename = "1.2")]
    V1_2,
    #[serde(rename = "1.3")]
    V1_3,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetOptions {
    pub io: Io,
    /// Connect to this host and port whatever the URL says; the Host header and the TLS name stay.
    pub connect_to: Option<(String, u16)>,
    pub unix_socket: Option<String>,
    /// Source addresses, taken in turn, so that more than one address's ports can be used.
    pub local_addrs: Vec<std::net::IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// io_uring where the kernel allows it, mio otherwise.
    Auto,
    Uring,
    Mio,
}
