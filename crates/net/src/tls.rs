//! TLS by rustls, for both sides.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::Cause;

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

pub struct ClientTls(Arc<rustls::ClientConfig>);

impl ClientTls {
    /// The error says which of the inputs is wrong.
    pub fn new(options: &ClientOptions) -> Result<Arc<ClientTls>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(options.tls12, options.tls13)?)
            .map_err(|e| e.to_string())?;
        let builder = if options.verify {
            let verifier = Trusting::new(options.authorities_pem.as_deref(), provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
        };
        let mut config = match &options.identity_pem {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder
                .with_client_auth_cert(certs(chain)?, private_key(key)?)
                .map_err(|e| format!("client certificate: {e}"))?,
        };
        config.alpn_protocols = options.alpn.clone();
        config.resumption =
            if options.resumption { Resumption::in_memory_sessions(256) } else { Resumption::disabled() };
        let tls = ClientTls(Arc::new(config));
        // The first hello of a process takes 30 to 60 ms longer than any other, which a run would measure as its
        // first connect; so it is made here and thrown away.
        tls.connection("localhost")?;
        Ok(Arc::new(tls))
    }

    pub(crate) fn connection(&self, server_name: &str) -> Result<Box<rustls::Connection>, String> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| format!("`{server_name}` is no name that a certificate can have"))?;
        let mut tls = rustls::ClientConnection::new(self.0.clone(), name).map_err(|e| e.to_string())?;
        tls.set_buffer_limit(None);
        Ok(Box::new(tls.into()))
    }
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

pub struct ServerTls(Arc<rustls::ServerConfig>);

impl ServerTls {
    /// The error says which of the inputs is wrong.
    pub fn new(options: &ServerOptions) -> Result<Arc<ServerTls>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(options.tls12, options.tls13)?)
            .map_err(|e| e.to_string())?;
        let builder = match &options.client_authorities_pem {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let roots = Arc::new(trusted(Some(pem))?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|e| format!("no client authority: {e}"))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(certs(&options.chain_pem)?, private_key(&options.key_pem)?)
            .map_err(|e| format!("certificate: {e}"))?;
        config.alpn_protocols = options.alpn.clone();
        if options.resumption {
            config.ticketer = aws_lc_rs::Ticketer::new().map_err(|e| e.to_string())?;
        } else {
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(ServerTls(Arc::new(config))))
    }

    pub(crate) fn connection(&self) -> Box<rustls::Connection> {
        let mut tls = rustls::ServerConnection::new(self.0.clone()).expect("a checked configuration");
        tls.set_buffer_limit(None);
        Box::new(tls.into())
    }
}

/// A certificate authority of our own, for origins in tests and demos.
pub struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

/// A certificate chain and its key, PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub chain_pem: String,
    pub key_pem: String,
}

impl Authority {
    /// ECDSA P-256, valid from 1975 to 4096 as rcgen's default is.
    pub fn generate(name: &str) -> Authority {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().expect("the system has randomness");
        let issuer = rcgen::CertifiedIssuer::self_signed(params, key).expect("valid parameters");
        Authority { issuer }
    }

    /// What clients trust.
    pub fn cert_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Signs a certificate for these host names and addresses; good for servers and clients. The error names what
    /// cannot be in a certificate.
    pub fn issue(&self, names: &[String]) -> Result<Identity, String> {
        let mut params = rcgen::CertificateParams::new(names).map_err(|e| format!("{names:?}: {e}"))?;
        params.extended_key_usages =
            vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = rcgen::KeyPair::generate().map_err(|e| e.to_string())?;
        let cert = params.signed_by(&key, &self.issuer).map_err(|e| e.to_string())?;
        Ok(Identity { chain_pem: cert.pem() + &self.cert_pem(), key_pem: key.serialize_pem() })
    }
}

fn versions(tls12: bool, tls13: bool) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let all = [(tls13, &rustls::version::TLS13), (tls12, &rustls::version::TLS12)];
    let chosen: Vec<_> = all.into_iter().filter(|(on, _)| *on).map(|(_, v)| v).collect();
    if chosen.is_empty() { Err("no TLS version is allowed".into()) } else { Ok(chosen) }
}

fn trusted(pem: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match pem {
        Some(pem) => {
            for cert in certs(pem)? {
                roots.add(cert).map_err(|e| format!("authority: {e}"))?;
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    Ok(roots)
}

fn certs(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certs: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|e| format!("PEM: {e}"))?;
    if certs.is_empty() { Err("no certificate in the PEM text".into()) } else { Ok(certs) }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|e| format!("private key: {e}"))
}

/// The usual rules of the web, and one more, as OpenSSL has it: a certificate that was given as an authority and is
/// presented by the server itself is trusted too. `openssl req -x509` makes such certificates.
#[derive(Debug)]
struct Trusting {
    web: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trusting {
    /// The system's authorities without `pem`.
    fn new(pem: Option<&[u8]>, provider: Arc<CryptoProvider>) -> Result<Trusting, String> {
        let web = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted(pem)?), provider)
            .build()
            .map_err(|e| format!("no authority to trust: {e}"))?;
        Ok(Trusting { web, given: pem.map_or(Ok(Vec::new()), certs)? })
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.web.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // Its dates have been looked at before this is found.
            Err(e) if is_authority_as_server(&e) && self.given.iter().any(|given| given == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.web.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.web.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.web.supported_verify_schemes()
    }
}

/// rustls has no name of its own for this error of webpki, whose text is its name.
fn is_authority_as_server(e: &rustls::Error) -> bool {
    match e {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

/// `-k`: whoever answers is believed.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

pub(crate) fn cause(e: rustls::Error) -> Cause {
    use AlertDescription as Alert;
    match e {
        rustls::Error::InvalidCertificate(why) => Cause::Untrusted(format!("{why:?}")),
        rustls::Error::AlertReceived(Alert::NoApplicationProtocol) | rustls::Error::NoApplicationProtocol => {
            Cause::Alpn
        }
        rustls::Error::AlertReceived(
            alert @ (Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::AccessDenied),
        ) => Cause::ClientCert(format!("{alert:?}")),
        e => Cause::Tls(e.to_string()),
    }
}
