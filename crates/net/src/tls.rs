//! TLS by rustls, for both sides.

use std::sync::Arc;

/// What a client offers and trusts.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// False accepts any certificate.
    pub verify: bool,
    /// PEM text of the authorities to trust, in place of the system's.
    pub authorities_pem: Option<Vec<u8>>,
    /// PEM text of certificate chain and key.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
    pub resumption: bool,
    /// Allowed versions.
    pub tls12: bool,
    pub tls13: bool,
    /// Offered protocols, as on the wire (`http/1.1`, `h2`).
    pub alpn: Vec<Vec<u8>>,
}

pub struct ClientTls(pub(crate) Arc<rustls::ClientConfig>);

impl ClientTls {
    /// The error says which of the inputs is wrong.
    pub fn new(options: &ClientOptions) -> Result<Arc<ClientTls>, String> { unimplemented!() }
}

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub chain_pem: Vec<u8>,
    pub key_pem: Vec<u8>,
    /// PEM text of the authorities whose client certificates are required.
    pub client_authorities_pem: Option<Vec<u8>>,
    pub resumption: bool,
    pub tls12: bool,
    pub tls13: bool,
    pub alpn: Vec<Vec<u8>>,
}

pub struct ServerTls(pub(crate) Arc<rustls::ServerConfig>);

impl ServerTls {
    pub fn new(options: &ServerOptions) -> Result<Arc<ServerTls>, String> { unimplemented!() }
}

/// A certificate authority of our own, for origins in tests and demos.
pub struct Authority { }

/// A certificate chain and its key, PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub chain_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn generate(name: &str) -> Authority { unimplemented!() }
    /// What clients trust.
    pub fn cert_pem(&self) -> String { unimplemented!() }
    /// Signs a server or client certificate for these names and addresses.
    pub fn issue(&self, names: &[String]) -> Identity { unimplemented!() }
}
