//! The certificates that TLS connections are checked with.

use std::sync::{Arc, OnceLock};

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Returns the settings for TLS: the certificates of the system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name in the
/// environment of this process, and Mozilla's where there are none, as in an empty container.
///
/// They are read once, and only if `is_used`, which takes some milliseconds.
pub fn tls_config(is_used: bool) -> TlsConfig {
    static ROOTS: OnceLock<RootCerts> = OnceLock::new();
    let roots = if is_used { ROOTS.get_or_init(root_certificates).clone() } else { RootCerts::WebPki };
    TlsConfig::builder().root_certs(roots).build()
}

fn root_certificates() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    found.errors.iter().for_each(|error| tracing::warn!("a certificate cannot be read: {error}"));
    if found.certs.is_empty() {
        return RootCerts::WebPki;
    }
    let certificates = found.certs.iter().map(|found| Certificate::from_der(found).to_owned());
    RootCerts::Specific(Arc::new(certificates.collect()))
}
