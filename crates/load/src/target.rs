//! Where an origin is: its name, the addresses that it has at the moment, and how it is trusted.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_model::plan::{Plan, Scheme};
use weir_model::units::Nanos;
use weir_net::Endpoint;
use weir_net::tls::{ClientOptions, ClientTls};

use crate::LoadError;

/// Addresses of a name are asked for again after so long, as resolvers with a cache do.
const ADDRESSES_LAST: Nanos = Nanos::from_secs(5);
/// A name without an address is asked for again after so long.
const FAILURE_LASTS: Nanos = Nanos::from_secs(1);

/// Scheme, host and port: what has one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub scheme: Scheme,
    pub host: String,
    pub port: u16,
}

pub(crate) fn origins(plan: &Plan) -> Vec<Origin> {
    let mut all: Vec<Origin> = Vec::new();
    for request in &plan.requests {
        let origin = Origin { scheme: request.scheme, host: request.host.clone(), port: request.port };
        if !all.contains(&origin) {
            all.push(origin);
        }
    }
    all
}

/// How to reach one origin.
pub(crate) struct Target {
    pub tls: Option<Arc<ClientTls>>,
    pub server_name: String,
    place: Place,
    sources: Vec<IpAddr>,
    next_source: usize,
}

enum Place {
    Known(Endpoint),
    Named {
        host: String,
        port: u16,
        addresses: Vec<SocketAddr>,
        best: usize,
        /// Why the last question had no answer.
        failure: String,
        asked_at: Option<Nanos>,
        asking: bool,
    },
}

/// What a dial has to do first.
pub(crate) enum Route {
    Connect(Endpoint),
    /// Ask the resolver for this name.
    Resolve(String, u16),
    /// Somebody has asked already.
    Wait,
    /// Somebody has just been told that it has no address, for this reason.
    Unknown(String),
}

impl Target {
    pub fn new(origin: &Origin, plan: &Plan, tls: Option<Arc<ClientTls>>, instance: usize) -> Target {
        let (host, port) = plan.net.connect_to.clone().unwrap_or((origin.host.clone(), origin.port));
        let place = match (&plan.net.unix_socket, host.parse::<IpAddr>()) {
            (Some(path), _) => Place::Known(Endpoint::Unix(PathBuf::from(path))),
            (None, Ok(ip)) => Place::Known(Endpoint::Tcp(SocketAddr::new(ip, port))),
            (None, Err(_)) => {
                let (addresses, failure) = (Vec::new(), String::new());
                Place::Named { host, port, addresses, best: 0, failure, asked_at: None, asking: false }
            }
        };
        Target {
            tls: tls.filter(|_| origin.scheme == Scheme::Https),
            server_name: origin.host.clone(),
            place,
            sources: plan.net.local_addrs.clone(),
            next_source: instance,
        }
    }

    pub fn route(&mut self, now: Nanos) -> Route {
        match &mut self.place {
            Place::Known(endpoint) => Route::Connect(endpoint.clone()),
            Place::Named { asking: true, .. } => Route::Wait,
            Place::Named { addresses, best, asked_at: Some(at), .. }
                if !addresses.is_empty() && now.saturating_sub(*at) < ADDRESSES_LAST =>
            {
                Route::Connect(Endpoint::Tcp(addresses[*best]))
            }
            Place::Named { addresses, failure, asked_at: Some(at), .. }
                if addresses.is_empty() && now.saturating_sub(*at) < FAILURE_LASTS =>
            {
                Route::Unknown(failure.clone())
            }
            Place::Named { host, port, asking, .. } => {
                *asking = true;
                Route::Resolve(host.clone(), *port)
            }
        }
    }

    pub fn resolved(&mut self, answer: Result<Vec<SocketAddr>, String>, now: Nanos) {
        if let Place::Named { addresses, asked_at, asking, best, failure, .. } = &mut self.place {
            // An address that worked is kept in use for as long as the name has it.
            let used = addresses.get(*best).copied();
            (*addresses, *failure) = answer.map_or_else(|e| (Vec::new(), e), |all| (all, String::new()));
            *best = addresses.iter().position(|a| Some(*a) == used).unwrap_or(0);
            (*asked_at, *asking) = (Some(now), false);
        }
    }

    /// The address that the name has now.
    pub fn address(&self) -> Option<Endpoint> {
        match &self.place {
            Place::Known(endpoint) => Some(endpoint.clone()),
            Place::Named { addresses, best, .. } => addresses.get(*best).map(|a| Endpoint::Tcp(*a)),
        }
    }

    /// The next address to try after `tried` of them refused; it becomes the first one for later dials.
    pub fn another(&mut self, tried: usize) -> Option<Endpoint> {
        let Place::Named { addresses, best, .. } = &mut self.place else { return None };
        if tried >= addresses.len() {
            return None;
        }
        *best = (*best + 1) % addresses.len();
        Some(Endpoint::Tcp(addresses[*best]))
    }

    pub fn next_source(&mut self) -> Option<IpAddr> {
        self.next_source += 1;
        (!self.sources.is_empty()).then(|| self.sources[(self.next_source - 1) % self.sources.len()])
    }

    /// For messages: the name or address that dials go to.
    pub fn describe(&self) -> String {
        match &self.place {
            Place::Known(Endpoint::Tcp(addr)) => addr.to_string(),
            Place::Known(Endpoint::Unix(path)) => path.display().to_string(),
            Place::Named { host, port, .. } => format!("{host}:{port}"),
        }
    }
}

/// One for the whole run, so that sessions are resumed across connections as in one process of a real service.
pub(crate) fn client_tls(plan: &Plan) -> Result<Option<Arc<ClientTls>>, LoadError> {
    if plan.requests.iter().all(|r| r.scheme == Scheme::Http) {
        return Ok(None);
    }
    let read = |flag: &str, path: &Option<String>| match path {
        None => Ok(None),
        Some(path) => std::fs::read(path).map(Some).map_err(|e| {
            LoadError::new(format!("{flag} {path}: {e}"), "give the path of a readable PEM file")
        }),
    };
    let (tls, v) = (&plan.tls, weir_model::plan::TlsVersion::V1_2);
    let options = ClientOptions {
        verify: tls.verify,
        authorities_pem: read("--cacert", &tls.cacert)?,
        identity_pem: read("--cert", &tls.cert)?.zip(read("--key", &tls.key)?),
        resumption: tls.resumption,
        tls12: tls.min_version <= v,
        tls13: tls.max_version > v,
        alpn: vec![b"http/1.1".to_vec()],
    };
    ClientTls::new(&options).map(Some).map_err(|e| {
        LoadError::new(e, "check --cacert, --cert and --key: PEM files, the key belonging to the certificate")
    })
}
