//! `onbeat-farm serve`: the pages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::error::{Exit, Failure, Result};
use model::text::several;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::scan::{SeenRuns, scan};
use super::store_flag::StorePlace;
use super::tls_flags::{TlsFlags, keep_certificate};
use super::webhook_flags::WebhookFlags;
use super::{FarmEnvironment, say};
use crate::store::FarmStore;
use crate::web::{App, FarmExposure, Intake, TlsListener, keep_changes, keep_telling, router};

/// Between two looks at the folders of runs.
const EVERY: Duration = Duration::from_secs(30);

/// Show runs and boards in a browser
///
/// With --runs and without --store nothing is kept: the pages show what lies in the folders, and
/// new runs as they come. DIR/BOARD/RUN says whose a run is; one that lies in DIR itself is of the
/// board that its machine's model names.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm serve --runs ~/.local/state/onbeat/runs\n  onbeat-farm serve \
     --store sqlite:/srv/onbeat/farm.db\n  onbeat-farm serve --runs /srv/runs --listen 127.0.0.1:9000"
)]
pub struct Args {
    /// Show the runs below this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// The store that `import` fills [default with no --runs: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "sqlite:PATH")]
    store: Option<String>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// A proxy in front does TLS and says who may read; without --cert needed to listen beyond this
    /// machine
    #[arg(long)]
    behind_proxy: bool,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    webhook: WebhookFlags,
    /// The most that the runs of a board may take that it sends
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser =
        clap::value_parser!(u64).range(1..=1 << 20))]
    board_quota: u64,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let exposure = args.exposure()?;
    let certificate = args.tls.open()?;
    let webhook = args.webhook.open()?;
    if let Some(missing) = args.runs.iter().find(|runs| !host::is_dir(runs).unwrap_or(false)) {
        let shown = model::text::quoted(missing);
        return Err(Failure::usage(format!(
            "--runs: {shown} is no folder: name the one that holds the runs"
        )));
    }
    let (_alone, store, intake) = match (&args.store, args.runs.is_empty()) {
        (None, false) => (None, FarmStore::in_memory().await?, None),
        (given, _) => {
            let place = StorePlace::of(given.as_deref(), environment)?;
            let store = place.open().await?;
            let alone = place.lock()?;
            (Some(alone), store.clone(), Some(Intake::start(store, &place.bundles, args.board_quota << 30)))
        }
    };
    let app = Arc::new(App::new(store, exposure, intake));
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Failure::of_call(
            format!("cannot listen on {}", args.listen),
            &error,
            Exit::Usage,
            "choose another address or port with --listen",
        )
    })?;
    let at = listener.local_addr().unwrap_or(args.listen);
    let scheme = if certificate.is_some() { "https" } else { "http" };
    say(&format!("onbeat-farm: the boards are at {scheme}{}{at}/", "://"));
    if !args.runs.is_empty() {
        tokio::spawn(watch(app.clone(), args.runs.clone()));
    }
    tokio::spawn(keep_changes(app.clone()));
    if let Some(webhook) = webhook {
        tokio::spawn(keep_telling(app.clone(), webhook));
    }
    let ended = match certificate {
        None => axum::serve(listener, router(app)).with_graceful_shutdown(asked_to_end()).await,
        Some(certificate) => match TlsListener::start(listener, certificate.clone(), app.counters.clone()) {
            Ok(listener) => {
                tokio::spawn(keep_certificate(certificate, app.clone()));
                axum::serve(listener, router(app)).with_graceful_shutdown(asked_to_end()).await
            }
            Err(error) => Err(error),
        },
    };
    ended.map_err(|error| Failure::internal(format!("the server failed ({error}): start it again")))?;
    Ok(Exit::Ok)
}

impl Args {
    /// Whom it answers; without TLS, its own or a proxy's, it does not go beyond the machine.
    fn exposure(&self) -> Result<FarmExposure> {
        match (self.listen.ip().is_loopback(), self.behind_proxy) {
            (_, true) => Ok(FarmExposure::BehindProxy),
            _ if self.tls.is_given() => Ok(FarmExposure::Encrypted),
            (true, false) => Ok(FarmExposure::Loopback),
            (false, false) => Err(Failure::usage(
                "--listen: beyond this machine nothing would be encrypted: give --cert and --key, or put a \
                 proxy in front that does TLS and asks who reads, and say --behind-proxy",
            )),
        }
    }
}

/// Looks through the folders, again and again.
async fn watch(app: Arc<App>, roots: Vec<PathBuf>) {
    let mut seen = SeenRuns::default();
    let mut first = true;
    loop {
        let mut refused = Vec::new();
        let (mut stored, mut had) = (0, 0);
        for root in &roots {
            match scan(&app.store, root, &mut seen).await {
                Ok(outcome) => {
                    stored += outcome.stored;
                    had += outcome.had;
                    refused.extend(outcome.refused);
                }
                Err(failure) => say(&format!("onbeat-farm: {failure}")),
            }
        }
        if first || stored > 0 {
            let runs = several(stored + had, "run", "runs");
            say(&format!("onbeat-farm: {runs} shown, {} refused", refused.len()));
        }
        app.set_refused(refused);
        first = false;
        tokio::time::sleep(EVERY).await;
    }
}

/// Ctrl-C, or a service manager.
async fn asked_to_end() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(listen: &str, behind_proxy: bool) -> Args {
        let (runs, listen) = (Vec::new(), listen.parse().unwrap());
        let (tls, webhook) = (TlsFlags::default(), WebhookFlags::default());
        Args { runs, store: None, listen, behind_proxy, tls, webhook, board_quota: 1 }
    }

    #[test]
    fn beyond_the_machine_only_a_proxy_is_answered() {
        assert_eq!(args("127.0.0.1:1", false).exposure().unwrap(), FarmExposure::Loopback);
        assert_eq!(args("[::1]:1", false).exposure().unwrap(), FarmExposure::Loopback);
        assert_eq!(args("0.0.0.0:1", true).exposure().unwrap(), FarmExposure::BehindProxy);
        assert!(args("0.0.0.0:1", false).exposure().unwrap_err().message.contains("--behind-proxy"));
    }
}
