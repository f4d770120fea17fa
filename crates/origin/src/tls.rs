//! The certificate of an origin: the one that was given, or one made for the occasion by an authority of its own.

use std::path::Path;
use std::sync::Arc;

use weir_net::Endpoint;
use weir_net::tls::{Authority, ServerOptions, ServerTls};

use crate::config::{OriginConfig, OriginTls};
use crate::error::OriginError;

/// What HTTPS listens with.
pub(crate) struct Tls {
    pub config: Arc<ServerTls>,
    /// What clients have to trust, if it was made here.
    pub authority_pem: Option<String>,
}

pub(crate) fn tls(config: &OriginConfig) -> Result<Tls, OriginError> {
    let OriginTls { files, ca_out, client_ca, resumption, tls12, tls13, .. } = &config.tls;
    let mut authority_pem = None;
    let (chain_pem, key_pem) = match files {
        Some((chain, key)) => (read(chain)?, read(key)?),
        None => {
            let authority = Authority::generate("Weir origin");
            authority_pem = Some(authority.cert_pem());
            let identity = authority.issue(&names(config)).map_err(|e| {
                OriginError::new(
                    format!("tls: cannot make a certificate: {e}"),
                    "look at the names it is to be for",
                )
            })?;
            (identity.chain_pem.into_bytes(), identity.key_pem.into_bytes())
        }
    };
    match (ca_out, &authority_pem) {
        (Some(file), Some(pem)) => write(file, pem)?,
        (Some(_), None) => {
            return Err(OriginError::new(
                "tls: there is no authority to write, because the certificate was given",
                "leave out one of the two",
            ));
        }
        (None, _) => {}
    }
    let options = ServerOptions {
        chain_pem,
        key_pem,
        client_authorities_pem: client_ca.as_deref().map(read).transpose()?,
        resumption: *resumption,
        tls12: *tls12,
        tls13: *tls13,
        alpn: vec![b"http/1.1".to_vec()],
    };
    let config = ServerTls::new(&options).map_err(|e| {
        OriginError::new(format!("tls: {e}"), "certificate chain and key are PEM, and belong together")
    })?;
    Ok(Tls { config, authority_pem })
}

/// What the certificate is for: this machine by all its usual names, and where the origin listens.
fn names(config: &OriginConfig) -> Vec<String> {
    let mut names = vec!["localhost".to_string(), "127.0.0.1".to_string(), "::1".to_string()];
    let listened_at = config.https.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Tcp(addr) if !addr.ip().is_unspecified() => Some(addr.ip().to_string()),
        _ => None,
    });
    for name in listened_at.chain(config.tls.names.iter().cloned()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn read(file: &Path) -> Result<Vec<u8>, OriginError> {
    std::fs::read(file).map_err(|e| {
        OriginError::new(
            format!("tls: cannot read {}: {e}", file.display()),
            "it has to be a readable PEM file",
        )
    })
}

fn write(file: &Path, text: &str) -> Result<(), OriginError> {
    std::fs::write(file, text).map_err(|e| {
        OriginError::new(
            format!("tls: cannot write {}: {e}", file.display()),
            "name a file in a writable directory",
        )
    })
}
