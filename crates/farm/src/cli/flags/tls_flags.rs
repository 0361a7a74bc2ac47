//! `--cert` and `--key`: the certificate of the server, and its renewal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::error::Result;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::say;
use crate::web::{App, ServerCertificate, add};

/// Interval between two looks at the files.
const EVERY: Duration = Duration::from_secs(30);

#[derive(clap::Args, Default)]
pub struct TlsFlags {
    /// Serve over TLS with this certificate, in PEM, followed by those of its authorities; it is
    /// read again when it changes and on SIGHUP
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl TlsFlags {
    /// The certificate, if one is given.
    pub fn open(&self) -> Result<Option<Arc<ServerCertificate>>> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => ServerCertificate::open(cert, key).map(|one| Some(Arc::new(one))),
            _ => Ok(None),
        }
    }

    pub fn is_given(&self) -> bool {
        self.cert.is_some()
    }
}

/// Reloads a changed certificate, periodically and on SIGHUP.
pub async fn keep_certificate(certificate: Arc<ServerCertificate>, app: Arc<App>) {
    let Ok(mut asked) = signal(SignalKind::hangup()) else { return };
    let mut said = String::new();
    loop {
        tokio::select! {
            _ = tokio::time::sleep(EVERY) => {}
            _ = asked.recv() => {}
        }
        let news = match certificate.renew() {
            Ok(true) => "the certificate was renewed".to_owned(),
            Ok(false) => String::new(),
            Err(failure) => {
                add(&app.counters.certificate_failures, 1);
                format!("{failure}; the previous certificate stays in use")
            }
        };
        // The same failure is reported once.
        if !news.is_empty() && news != said {
            say(&format!("onbeat-farm: {news}"));
        }
        said = news;
    }
}
