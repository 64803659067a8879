//! TLS towards a node: which authorities to trust, and who this client is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Where systems keep the authorities that they trust.
const SYSTEM: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// How to speak TLS. The node must show a certificate for the host to which the client connects, signed by a trusted
/// authority.
///
/// ```no_run
/// use testigo::{Address, Target, Testigo, Tls};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let own_authority = Tls::new(Some("authority.pem".as_ref()), None)?;
/// let target = Target::from("locks.example:7600".parse::<Address>()?).tls(own_authority);
/// let testigo = Testigo::reach(target).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

/// Files that cannot be used.
///
/// ```
/// let missing = testigo::Tls::new(Some("missing.pem".as_ref()), None).expect_err("no such file");
/// assert!(missing.to_string().starts_with("missing.pem: "), "{missing}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// A client's own certificate and key, for a node that requires them. Both are PEM files.
///
/// ```no_run
/// use testigo::{Identity, Tls};
///
/// let alice = Identity { cert: "alice.pem".into(), key: "alice.key".into() };
/// let tls = Tls::new(None, Some(&alice))?;
/// # Ok::<(), testigo::TlsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and an authority that the node trusts.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Tls {
    /// Trusts the authorities (or the certificate itself) in a PEM file, or those of this system.
    pub fn new(authorities: Option<&Path>, identity: Option<&Identity>) -> Result<Tls, TlsError> {
        let system = || SYSTEM.into_iter().map(Path::new).find(|path| path.exists());
        let none = || TlsError("this system has no list of authorities; name a file".into());
        let authorities = authorities.or_else(system).ok_or_else(none)?;
        let mut roots = RootCertStore::empty();
        let (believed, _) = roots.add_parsable_certificates(certificates(authorities)?);
        if believed == 0 {
            return Err(bad(authorities, &"it holds no authority that can be used"));
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let unusable = |error: &dyn fmt::Display| TlsError(error.to_string());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(Identity { cert, key }) => {
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
                let config = config.with_client_auth_cert(certificates(cert)?, secret);
                config.map_err(|error| unusable(&error))?
            }
        };
        Ok(Tls(Arc::new(config)))
    }

    /// Does the handshake with a host, whose certificate must be its own.
    pub(crate) async fn seal(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        connector.connect(name, stream).await
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    all.map_err(|error: PemError| bad(path, &error))
}

fn bad(path: &Path, why: &dyn fmt::Display) -> TlsError {
    TlsError(format!("{}: {why}", path.display()))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_certificates_are_named() {
        let missing = Tls::new(Some(Path::new("no/such.pem")), None);
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .starts_with("no/such.pem: ")
        );
        let wrong = Tls::new(Some(Path::new("Cargo.toml")), None);
        assert!(
            wrong
                .unwrap_err()
                .to_string()
                .contains("Cargo.toml: it holds no")
        );
    }
}
