//! The origin as its owner sees it: checks what was asked for, opens the ports, starts the threads, adds up what they
//! count.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_model::units::Nanos;
use weir_net::tls::ServerTls;
use weir_net::{Backend, Endpoint, Net, NetConfig, Waker, clock};

use crate::config::OriginConfig;
use crate::error::OriginError;
use crate::fault::Faults;
use crate::gate::{Gate, Ticket};
use crate::response::Keepalive;
use crate::route::Answer;
use crate::serve::{Port, Script, Worker};
use crate::stats::{Counters, Queue, Stats, lock};
use crate::tls::tls;

/// What the threads have in common.
pub(crate) struct Shared {
    pub threads: Vec<ThreadShare>,
    pub gate: Option<Mutex<Gate>>,
    pub started_ns: u64,
    stopping: AtomicBool,
    /// What the counters were when they were last zeroed.
    base: Mutex<Stats>,
}

/// What the others may touch of a thread.
#[derive(Default)]
pub(crate) struct ThreadShare {
    pub counters: Arc<Counters>,
    /// Requests of its connections whose turn has come.
    pub granted: Mutex<Vec<Ticket>>,
    waker: OnceLock<Waker>,
}

impl Shared {
    fn new(threads: u32, concurrency: Option<u32>) -> Shared {
        Shared {
            threads: (0..threads).map(|_| ThreadShare::default()).collect(),
            gate: concurrency.map(|limit| Mutex::new(Gate::new(limit))),
            started_ns: clock::now(),
            stopping: AtomicBool::new(false),
            base: Mutex::default(),
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.threads.iter().filter_map(|thread| thread.waker.get()).for_each(Waker::wake);
    }

    /// Hands a request its place at the gate, on the thread that has its connection.
    pub fn grant(&self, ticket: Ticket) {
        let thread = &self.threads[ticket.thread as usize];
        lock(&thread.granted).push(ticket);
        if let Some(waker) = thread.waker.get() {
            waker.wake();
        }
    }

    pub fn stats(&self) -> Stats {
        let base = lock(&self.base);
        let mut stats = self.totals().since(&base);
        stats.queue = self.gate.as_ref().map_or(Queue::default(), |gate| {
            let gate = lock(gate);
            Queue {
                under_way: u64::from(gate.under_way()),
                waiting: gate.waiting() as u64,
                peak: gate.queue_peak() as u64,
            }
        });
        stats
    }

    fn totals(&self) -> Stats {
        self.threads.iter().map(|thread| thread.counters.stats()).fold(Stats::default(), Stats::merge)
    }

    pub fn reset(&self) {
        let mut base = lock(&self.base);
        self.threads.iter().for_each(|thread| thread.counters.forget_closed());
        *base = self.totals();
        if let Some(gate) = &self.gate {
            lock(gate).reset_peak();
        }
    }
}

/// A running origin. Dropping it stops it.
pub struct Origin {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    http: Vec<SocketAddr>,
    https: Vec<SocketAddr>,
    authority_pem: Option<String>,
    backend: Backend,
}

/// Stops an origin from another thread, or from a signal's.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl Stopper {
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Origin {
    /// Returns once every port accepts connections (or, with `refuse` for good, refuses them).
    pub fn start(config: &OriginConfig) -> Result<Origin, OriginError> {
        let script = Arc::new(script(config)?);
        let tls = if config.https.is_empty() { None } else { Some(tls(config)?) };
        let shared = Arc::new(Shared::new(config.threads, config.concurrency));
        let mut origin = Origin {
            shared,
            threads: Vec::new(),
            http: Vec::new(),
            https: Vec::new(),
            authority_pem: tls.as_ref().and_then(|tls| tls.authority_pem.clone()),
            backend: Backend::Mio,
        };
        let mut places = Places::new(config, tls.map(|tls| tls.config))?;
        for thread in 0..config.threads {
            let ready = origin.start_thread(thread, &places, &script, config.backend)?;
            if thread == 0 {
                origin.backend = ready.backend;
                places.resolve(&ready.addrs);
            }
        }
        (origin.http, origin.https) = places.addrs();
        Ok(origin)
    }

    fn start_thread(
        &mut self,
        thread: u32,
        places: &Places,
        script: &Arc<Script>,
        backend: Option<Backend>,
    ) -> Result<Ready, OriginError> {
        let (tell, told) = channel();
        let (shared, script, places) =
            (Arc::clone(&self.shared), Arc::clone(script), places.of_thread(thread));
        let handle = std::thread::Builder::new()
            .name(format!("origin-{thread}"))
            .spawn(move || serve(thread, places, script, shared, backend, &tell))
            .map_err(|e| OriginError::new(format!("cannot start a thread: {e}"), "ask for fewer threads"))?;
        self.threads.push(handle);
        told.recv().expect("a thread says whether it is ready before it ends")
    }

    /// Addresses of the plaintext TCP ports, in the order of the configuration.
    pub fn http_addrs(&self) -> &[SocketAddr] {
        &self.http
    }

    /// The same for TLS.
    pub fn https_addrs(&self) -> &[SocketAddr] {
        &self.https
    }

    /// What clients have to trust, PEM; `None` if the certificate was given.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// How the loops do their work.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The counters of all threads; also after the end.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Zeroes what `stats` counts. Connections that are open stay counted as open, and each keeps its number of requests.
    pub fn reset_stats(&self) {
        self.shared.reset();
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Closes all ports and connections, without waiting for requests that are under way. Returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Blocks until the origin has stopped. The error is one of an event loop, which stops the whole origin.
    pub fn wait(&mut self) -> Result<(), OriginError> {
        let results: Vec<io::Result<()>> = self
            .threads
            .drain(..)
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        results.into_iter().collect::<io::Result<()>>().map_err(|e| {
            OriginError::new(
                format!("the event loop failed: {e}"),
                "try the other one: --io mio or --io uring",
            )
        })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a thread says once its ports are open.
struct Ready {
    backend: Backend,
    /// Of its places, in order; `None` for Unix sockets.
    addrs: Vec<Option<SocketAddr>>,
}

/// A thread from its first breath to its last; the others stop with it.
fn serve(
    thread: u32,
    places: Vec<Place>,
    script: Arc<Script>,
    shared: Arc<Shared>,
    backend: Option<Backend>,
    tell: &Sender<Result<Ready, OriginError>>,
) -> io::Result<()> {
    let opened = open(places, script.accept_delay.is_some(), backend);
    let (net, ports, ready) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let _ = tell.send(Err(error));
            return Ok(());
        }
    };
    let share = &shared.threads[thread as usize];
    share.waker.set(net.waker()).expect("a thread starts once");
    let worker = Worker::new(net, thread, ports, script, Arc::clone(&shared));
    let result = worker.run(|| {
        let _ = tell.send(Ok(ready));
    });
    shared.stop();
    result
}

fn open(
    places: Vec<Place>,
    hold: bool,
    backend: Option<Backend>,
) -> Result<(Net, Vec<Port>, Ready), OriginError> {
    let mut net = Net::new(NetConfig { backend }).map_err(|e| {
        let name = backend.map_or("the event loop", Backend::name);
        OriginError::new(
            format!("{name} does not start: {e}"),
            "try --io mio, or raise the limit of open files (ulimit -n)",
        )
    })?;
    let mut ports = Vec::new();
    let mut addrs = Vec::new();
    for Place { endpoint, tls } in places {
        let listener = net.listen(&endpoint, tls.clone(), hold).map_err(|e| cannot_listen(&endpoint, &e))?;
        addrs.push(net.local_addr(listener));
        ports.push(Port { endpoint, tls, listener: Some(listener) });
    }
    let backend = net.backend();
    Ok((net, ports, Ready { backend, addrs }))
}

/// Where to listen, with TLS or without.
#[derive(Clone)]
struct Place {
    endpoint: Endpoint,
    tls: Option<Arc<ServerTls>>,
}

/// All of them, the plaintext ones first.
struct Places {
    all: Vec<Place>,
}

impl Places {
    fn new(config: &OriginConfig, tls: Option<Arc<ServerTls>>) -> Result<Places, OriginError> {
        let plain = config.http.iter().map(|endpoint| Place { endpoint: endpoint.clone(), tls: None });
        let secure =
            config.https.iter().map(|endpoint| Place { endpoint: endpoint.clone(), tls: tls.clone() });
        let all: Vec<Place> = plain.chain(secure).collect();
        all.iter().try_for_each(|place| check_free(&place.endpoint))?;
        Ok(Places { all })
    }

    /// Port 0 is now known.
    fn resolve(&mut self, addrs: &[Option<SocketAddr>]) {
        for (place, addr) in self.all.iter_mut().zip(addrs) {
            if let Some(addr) = addr {
                place.endpoint = Endpoint::Tcp(*addr);
            }
        }
    }

    /// A Unix socket cannot be shared; the first thread has them all.
    fn of_thread(&self, thread: u32) -> Vec<Place> {
        let is_shared = |place: &&Place| matches!(place.endpoint, Endpoint::Tcp(_));
        self.all.iter().filter(|place| thread == 0 || is_shared(place)).cloned().collect()
    }

    fn addrs(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let of = |secure: bool| {
            let wanted = self.all.iter().filter(move |place| place.tls.is_some() == secure);
            wanted.filter_map(|place| match place.endpoint {
                Endpoint::Tcp(addr) => Some(addr),
                Endpoint::Unix(_) => None,
            })
        };
        (of(false).collect(), of(true).collect())
    }
}

/// Our threads share ports by SO_REUSEPORT, and so would two origins by mistake: half of the requests would go astray.
fn check_free(endpoint: &Endpoint) -> Result<(), OriginError> {
    match endpoint {
        Endpoint::Tcp(addr) if addr.port() != 0 => {
            TcpListener::bind(addr).map(drop).map_err(|e| cannot_listen(endpoint, &e))
        }
        _ => Ok(()),
    }
}

fn cannot_listen(endpoint: &Endpoint, e: &io::Error) -> OriginError {
    let place = match endpoint {
        Endpoint::Tcp(addr) => addr.to_string(),
        Endpoint::Unix(path) => path.display().to_string(),
    };
    let hint = match e.kind() {
        ErrorKind::AddrInUse => {
            "another program listens there: stop it, or choose another port (0 is a free one)"
        }
        ErrorKind::PermissionDenied => "ports below 1024 are for root: choose a higher one",
        ErrorKind::AddrNotAvailable => "this machine has no such address: 127.0.0.1 and 0.0.0.0 always work",
        _ => "choose another address",
    };
    OriginError::new(format!("cannot listen at {place}: {e}"), hint)
}

fn script(config: &OriginConfig) -> Result<Script, OriginError> {
    check(config)?;
    Ok(Script {
        usual: Answer::usual(config.status, config.bytes),
        latency: config.latency.clone(),
        keepalive: Keepalive {
            timeout_s: config.keepalive_timeout.map(|timeout| timeout.as_secs()),
            requests: config.keepalive_requests,
            announce: config.announce_keepalive,
            silent_close: config.silent_close,
            close: config.close,
        },
        keepalive_timeout: config.keepalive_timeout.map(nanos),
        accept_delay: config.accept_delay.map(nanos),
        faults: Faults::new(&config.faults)?,
        drip_interval: nanos(config.drip_interval),
        server_timing: config.server_timing,
        seed: config.seed,
    })
}

fn check(config: &OriginConfig) -> Result<(), OriginError> {
    let wrong = |message: &str, hint: &str| Err(OriginError::new(message, hint));
    if config.http.is_empty() && config.https.is_empty() {
        return wrong("the origin listens nowhere", "give it an address for http or https");
    }
    if config.threads == 0 {
        return wrong("threads: `0` cannot serve", "1 or more");
    }
    if !(200..=599).contains(&config.status) {
        return Err(OriginError::new(
            format!("status: `{}` is no final status", config.status),
            "200 to 599",
        ));
    }
    if config.concurrency == Some(0) {
        return wrong("concurrency: `0` would answer nothing", "1 or more, or no limit at all");
    }
    if config.keepalive_requests == Some(0) {
        return wrong("keepalive-requests: `0` would answer nothing", "1 or more");
    }
    Ok(())
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
