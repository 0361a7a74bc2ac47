//! TLS of the server itself, with a certificate that may be renewed while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use model::error::{Exit, Failure, Result};
use model::text::quoted;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::web::edge::connections::SharedStream;

/// Limit of a file with certificates or a key, in bytes.
const LIMIT: u64 = 1 << 20;
/// The first byte of a handshake (RFC 8446, section 5.1): anything else speaks no TLS.
const HANDSHAKE_RECORD: u8 = 22;

/// Response to a plain HTTP request.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n\
                       this farm uses TLS: write https in front of its address\n";

/// A certificate with its key, from two files that are read again when they change.
pub struct ServerCertificate {
    cert: PathBuf,
    key: PathBuf,
    now: RwLock<Loaded>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    /// End of the server certificate's validity, in seconds since 1970.
    ends: Option<i64>,
    /// Digest of both files, to detect a change.
    digest: Vec<u8>,
}

impl ServerCertificate {
    /// Reads both files. Errors name the flag of the wrong file.
    pub fn open(cert: &Path, key: &Path) -> Result<ServerCertificate> {
        let now = RwLock::new(load(cert, key)?);
        Ok(ServerCertificate { cert: cert.to_owned(), key: key.to_owned(), now })
    }

    /// Reads both files again; true if they changed. Invalid files leave the present certificate.
    pub fn renew(&self) -> Result<bool> {
        let loaded = load(&self.cert, &self.key)?;
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = now.digest != loaded.digest;
        if is_new {
            *now = loaded;
        }
        Ok(is_new)
    }

    /// End of the present certificate's validity, in seconds since 1970; none if it is not stated
    /// as in RFC 5280.
    pub fn ends(&self) -> Option<i64> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).ends
    }

    /// Configuration of the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).config.clone()
    }
}

fn load(cert: &Path, key: &Path) -> Result<Loaded> {
    let read = |flag: &str, file: &Path| {
        host::read_user_file(file, LIMIT).map_err(|error| {
            let what = format!("{flag}: cannot read {}", quoted(file));
            Failure::of_call(what, &error, Exit::Usage, "name a PEM file that you may read")
        })
    };
    let (chain_text, key_text) = (read("--cert", cert)?, read("--key", key)?);
    let chain: Vec<CertificateDer> = CertificateDer::pem_slice_iter(&chain_text)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| wrong("--cert", cert, &format!("is not PEM ({error})")))?;
    if chain.is_empty() {
        return Err(wrong("--cert", cert, "holds no certificate"));
    }
    let ends = chain.first().and_then(|own| ends_at(own));
    let private = PrivateKeyDer::from_pem_slice(&key_text)
        .map_err(|error| wrong("--key", key, &format!("holds no private key ({error})")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| {
        Failure::usage(format!(
            "--cert and --key: {} and {} do not match ({error}): name the certificate of this key, followed \
             by those of its authorities",
            quoted(cert),
            quoted(key)
        ))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let digest = Sha256::new().chain_update(&chain_text).chain_update([0]).chain_update(&key_text);
    Ok(Loaded { config: Arc::new(config), ends, digest: digest.finalize().to_vec() })
}

/// `notAfter` of a certificate.
fn ends_at(certificate: &[u8]) -> Option<i64> {
    let (_, read) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(read.validity().not_after.timestamp())
}

fn wrong(flag: &str, file: &Path, what: &str) -> Failure {
    Failure::usage(format!("{flag}: {} {what}: name a PEM file", quoted(file)))
}

/// Performs the handshake of a connection; none if it fails.
pub async fn shake_hands(
    mut stream: SharedStream,
    config: Arc<ServerConfig>,
) -> Option<TlsStream<SharedStream>> {
    let mut first = [0];
    if stream.0.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE_RECORD {
        // A failure cannot be reported to this client.
        let _ = stream.write_all(PLAIN).await;
        let _ = stream.shutdown().await;
        return None;
    }
    TlsAcceptor::from(config).accept(stream).await.ok()
}
