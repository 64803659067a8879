//! Mutual TLS between nodes: each shows its certificate, and each checks that the cluster's authority has signed the other's.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};

use super::config::PeerTls;
use crate::tls::{TlsError, TlsFiles, bad, certificates};

/// How this node accepts.
pub(super) fn files(tls: &PeerTls) -> TlsFiles {
    TlsFiles {
        cert: tls.cert.clone(),
        key: tls.key.clone(),
        client_ca: Some(tls.ca.clone()),
    }
}

/// How this node dials.
pub(super) fn dials(tls: &PeerTls) -> Result<Arc<ClientConfig>, TlsError> {
    let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
    let mut roots = RootCertStore::empty();
    for authority in certificates(&tls.ca)? {
        roots.add(authority).map_err(|error| unusable(&error))?;
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| bad(&tls.key, &error))?;
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(&tls.cert)?, key)
        .map_err(|error| unusable(&error))?;
    Ok(Arc::new(config))
}
