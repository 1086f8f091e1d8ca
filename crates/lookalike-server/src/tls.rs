//! TLS, by rustls. Certificates can be replaced while the service runs.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use lookalike::{Error, Result};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::settings::TlsFiles;

/// The certificates that are shown to clients at the moment.
pub(crate) struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    pub(crate) fn open(files: &TlsFiles) -> Result<Tls> {
        config(files).map(|config| Tls(ArcSwap::from_pointee(config)))
    }

    /// Reads the files again. Connections that exist keep what they were made with.
    pub(crate) fn reload(&self, files: &TlsFiles) -> Result<()> {
        self.0.store(Arc::new(config(files)?));
        Ok(())
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.0.load_full()).accept(stream).await
    }
}

fn config(files: &TlsFiles) -> Result<ServerConfig> {
    let bad =
        |path: &Path, cause: &dyn std::fmt::Display| Error::bad_input(path, format!("cannot be used for TLS: {cause}"));
    let read = |path: &Path| std::fs::read(path).map_err(Error::io(path, "read"));
    let pem = read(&files.certificates)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<std::result::Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|cause| bad(&files.certificates, &cause))?;
    if certificates.is_empty() {
        return Err(bad(&files.certificates, &"it has no certificate in PEM form"));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|cause| bad(&files.key, &cause))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| bad(&files.certificates, &cause))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|cause| bad(&files.certificates, &cause))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
