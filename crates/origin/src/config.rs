//! What an origin is to be. Filled once by whoever starts it, taken apart once by `Origin::start`.

use std::path::PathBuf;
use std::time::Duration;

use weir_model::units::Nanos;
use weir_net::{Backend, Endpoint};

use crate::fault::Fault;
use crate::latency::Latency;

#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// Where to listen for plaintext. Port 0 is a free one: see `Origin::http_addrs`.
    pub http: Vec<Endpoint>,
    /// Where to listen for TLS.
    pub https: Vec<Endpoint>,
    pub tls: OriginTls,
    /// Each has its own event loop and its own listening socket on every TCP port; Unix sockets belong to the first.
    pub threads: u32,
    /// `None` is io_uring where the kernel allows it, mio otherwise.
    pub backend: Option<Backend>,
    /// Of latencies and faults. Thread `n` draws from `seed + n`.
    pub seed: u64,

    /// From the end of the request (or from its turn, under `concurrency`) to the answer.
    pub latency: Latency,
    /// Length of the body.
    pub bytes: u64,
    /// 200 to 599.
    pub status: u16,
    /// Requests that are under way at once, over all threads; the others wait in one queue, first come first served.
    pub concurrency: Option<u32>,

    /// A connection that waits for a request this long gets a FIN.
    pub keepalive_timeout: Option<Duration>,
    /// The connection is closed after so many answers, the last of which says `Connection: close`.
    pub keepalive_requests: Option<u64>,
    /// Says `Keep-Alive: timeout=, max=` in each answer, as far as the two above are set.
    pub announce_keepalive: bool,
    /// Leaves out the `Connection: close` of `keepalive_requests`: the FIN comes as a surprise.
    pub silent_close: bool,
    /// Every answer says `Connection: close` and is the last one of its connection.
    pub close: bool,
    /// An accepted connection is not read before this time is over; its TLS handshake waits too.
    pub accept_delay: Option<Duration>,
    /// Says `Server-Timing: origin;dur=` in each answer.
    pub server_timing: bool,

    pub faults: Vec<Fault>,
    /// The pause before each byte of a `drip`.
    pub drip_interval: Duration,
}

impl Default for OriginConfig {
    /// Answers 200 with 12 bytes at once and keeps connections for ever. Listens nowhere.
    fn default() -> OriginConfig {
        OriginConfig {
            http: Vec::new(),
            https: Vec::new(),
            tls: OriginTls::default(),
            threads: 1,
            backend: None,
            seed: 0,
            latency: Latency::Constant(Nanos::ZERO),
            bytes: 12,
            status: 200,
            concurrency: None,
            keepalive_timeout: None,
            keepalive_requests: None,
            announce_keepalive: false,
            silent_close: false,
            close: false,
            accept_delay: None,
            server_timing: true,
            faults: Vec::new(),
            drip_interval: Duration::from_millis(10),
        }
    }
}

/// The certificate of an origin, and what it asks of its clients.
#[derive(Clone, Debug)]
pub struct OriginTls {
    /// PEM files of the certificate chain and its key; `None` makes an authority and a certificate at start.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Where to write that authority (PEM), for clients to trust. Only without `files`.
    pub ca_out: Option<PathBuf>,
    /// Names and addresses of the made certificate, beside `localhost`, the loopback addresses and those listened at.
    pub names: Vec<String>,
    /// A PEM file of authorities: clients without a certificate of theirs are refused.
    pub client_ca: Option<PathBuf>,
    pub resumption: bool,
    pub tls12: bool,
    pub tls13: bool,
}

impl Default for OriginTls {
    /// Both versions, resumption, a made authority that is written nowhere.
    fn default() -> OriginTls {
        OriginTls {
            files: None,
            ca_out: None,
            names: Vec::new(),
            client_ca: None,
            resumption: true,
            tls12: true,
            tls13: true,
        }
    }
}
