//! TLS at both front doors: the certificate and key that a node shows, and an encrypted connection. The handshake and the
//! records are rustls' state machine, fed here from a socket that may have nothing to read or no room to write.

use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use mio::net::TcpStream;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, crypto};

/// Cap on encrypted bytes that wait for a slow peer; no more plain ones are accepted meanwhile.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// The files that TLS needs, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, and those between it and a known authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that must have signed a client's certificate; without it clients need none.
    pub client_ca: Option<PathBuf>,
}

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or contains something else.
    #[error("{}: {why}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The files do not match.
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(String),
}

impl TlsFiles {
    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(crypto::ring::default_provider());
        let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let config = match &self.client_ca {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| unusable(&error))?;
                }
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = verifier.build().map_err(|error| unusable(&error))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, &error))?;
        let config = config.with_single_cert(certificates(&self.cert)?, key);
        Ok(Arc::new(config.map_err(|error| unusable(&error))?))
    }
}

/// What a node shows in a handshake: its certificate, and which authority's clients it lets in. A reload changes it for later
/// connections.
#[derive(Debug)]
pub(crate) struct Tls(RwLock<Arc<ServerConfig>>);

impl Tls {
    pub(crate) fn load(files: &TlsFiles) -> Result<Arc<Tls>, TlsError> {
        Ok(Arc::new(Tls(RwLock::new(files.load()?))))
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|error: pem::Error| bad(path, &error))?;
    match all.is_empty() {
        true => Err(bad(path, &"it holds no certificate in PEM")),
        false => Ok(all),
    }
}

pub(crate) fn bad(path: &Path, why: &dyn std::fmt::Display) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// An encrypted connection of the reactor's. It never blocks.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) socket: TcpStream,
    tls: ServerConnection,
    /// At most so many bytes were accepted and not sent yet.
    unsent: usize,
}

impl Sealed {
    pub(crate) fn new(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Sealed> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Sealed {
            socket,
            tls,
            unsent: 0,
        })
    }

    /// Reads plain bytes; 0 when the peer has ended. Continues the handshake, if that is what there is to do.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that goes without saying so has gone all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let processed = self.tls.process_new_packets();
            // Even if the peer is refused, because this tells it why.
            self.send()?;
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Takes plain bytes, as many as there is room for.
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.send()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write_vectored(slices)?;
        self.unsent += taken;
        self.send()?;
        match taken {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    /// Sends what is encrypted; false if the socket does not take all of it.
    pub(crate) fn send(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent = 0;
        Ok(true)
    }

    /// Bytes that were accepted and not sent yet, at most.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Says that nothing more comes, if that can be said at once.
    pub(crate) fn end(&mut self) {
        self.tls.send_close_notify();
        let _ = self.send();
    }
}
