//! `onbeat-farm serve`: the pages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::error::{Exit, Failure, Result};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::flags::objects_flag::{ObjectsFlag, look_for_bundles};
use crate::cli::flags::store_flag::StorePlace;
use crate::cli::flags::tls_flags::{TlsFlags, keep_certificate};
use crate::cli::flags::webhook_flags::WebhookFlags;
use crate::cli::watch_folders::show;
use crate::cli::{FarmEnvironment, say};
use crate::objects::{BucketFault, BundleCache, ObjectBucket};
use crate::store::FarmStore;
use crate::web::{
    AccessPolicy, App, ConnectionLimits, FarmExposure, Intake, OpenConnections, PublicReading,
    ServerCertificate, answer_requests, keep_changes, keep_telling, router,
};

/// Interval between two checks of the bucket.
const EVERY: Duration = Duration::from_secs(30);

/// Show runs and boards in a browser
///
/// With --runs and without --store nothing is stored: the pages show the runs and records of
/// `onbeat watch` in the folders, including new ones. The board of a run is taken from
/// DIR/BOARD/RUN; for a run directly in DIR, it is the model name of its machine.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm serve --runs ~/.local/state/onbeat/runs\n  onbeat-farm serve \
     --store sqlite:/srv/onbeat/farm.db\n  onbeat-farm serve --store postgres://farm@localhost/farm\n  \
     onbeat-farm serve --objects s3://onbeat-runs --store sqlite:/srv/onbeat/farm.db\n  \
     onbeat-farm serve --runs /srv/runs --listen 127.0.0.1:9000"
)]
pub struct Args {
    /// Show the runs and records below this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// The store, sqlite:PATH or postgres://.. [default without --runs:
    /// onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    objects: ObjectsFlag,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// Trust a proxy in front that does TLS; needed to listen beyond this machine without --cert
    #[arg(long)]
    behind_proxy: bool,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    webhook: WebhookFlags,
    /// Access of visitors without a login: none, latencies without names, or all [default:
    /// nothing; all on this machine while no account exists]
    #[arg(long, value_name = "WHAT")]
    public: Option<PublicReading>,
    /// Allow reading /metrics without a login
    #[arg(long)]
    metrics_open: bool,
    /// Limit of the space of a board: its runs, rows and environments
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser =
        clap::value_parser!(u64).range(1..=1 << 20))]
    board_quota: u64,
    /// Limit of the local cache of bundles in a bucket; the least recently used are deleted
    #[arg(long, value_name = "GIB", default_value_t = 10, value_parser =
        clap::value_parser!(u64).range(1..=1 << 20))]
    cache: u64,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let exposure = args.exposure()?;
    args.check_public(exposure)?;
    let certificate = args.tls.open()?;
    let webhook = args.webhook.open()?;
    if let Some(missing) = args.runs.iter().find(|runs| !host::is_dir(runs).unwrap_or(false)) {
        let shown = model::text::quoted(missing);
        return Err(Failure::usage(format!(
            "--runs: {shown} is not a folder: name the one that holds the runs"
        )));
    }
    let (mut cache, mut flag) = (None, String::new());
    let (_alone, store, intake) = match (&args.store, args.runs.is_empty()) {
        (None, false) => (None, FarmStore::in_memory().await?, None),
        (given, _) => {
            let place = StorePlace::of(given.as_deref(), environment)?;
            let (place, bucket) = args.objects.open(place, environment)?;
            place.keep_private();
            let store = place.open().await?;
            flag = place.flag();
            let alone = place.lock()?;
            place.set_room_aside();
            cache = bucket.map(|bucket| BundleCache::start(bucket, &place.bundles, args.cache << 30));
            (Some(alone), store.clone(), Some(Intake::start(store, &place.bundles, args.board_quota << 30)))
        }
    };
    let turn = store.server_turn().await?;
    let policy = AccessPolicy { public: args.public, metrics_open: args.metrics_open };
    let keeps = intake.is_some();
    let has_users = store.has_users().await?;
    let bucket = match &cache {
        Some(cache) => Some((cache.bucket.clone(), store.identity().await?)),
        None => None,
    };
    let app = App::new(store, exposure, intake).with_policy(policy).with_cache(cache);
    let app = Arc::new(app.with_certificate(certificate.clone()));
    let (listener, at) = listen(args.listen).await?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    say(&format!("onbeat-farm: the boards are at {scheme}{}{at}/", "://"));
    if let Some(words) = who_reads(&policy, exposure, has_users, &flag).filter(|_| keeps) {
        say(&format!("onbeat-farm: {words}"));
    }
    if !args.runs.is_empty() {
        tokio::spawn(show(app.clone(), args.runs.clone()));
    }
    if keeps && !args.objects.is_given() {
        tokio::spawn(look_for_bundles(app.store.clone()));
    }
    tokio::spawn(keep_changes(app.clone()));
    if let Some(webhook) = webhook {
        tokio::spawn(keep_telling(app.clone(), webhook));
    }
    tokio::select! {
        () = served(listener, app, certificate) => Ok(Exit::Ok),
        () = turn.lost() => Err(Failure::not_permitted(
            "another server took over the database: end that one, then start this one again",
        )),
        failure = watch_bucket(bucket) => Err(failure),
    }
}

/// Listens on an address; port 0 takes a free one.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let what = format!("cannot listen on {address}");
        Failure::of_call(what, &error, Exit::Usage, "choose another address or port with --listen")
    })?;
    let at = listener.local_addr().unwrap_or(address);
    Ok((listener, at))
}

/// Answers requests until it is asked to stop.
pub async fn served(listener: TcpListener, app: Arc<App>, certificate: Option<Arc<ServerCertificate>>) {
    let open = OpenConnections::new(ConnectionLimits::of_files(host::open_files_limit()));
    let tls = certificate.map(|certificate| {
        tokio::spawn(keep_certificate(certificate.clone(), app.clone()));
        (certificate, app.counters.clone())
    });
    answer_requests(listener, router(app), tls, open, asked_to_end()).await;
}

impl Args {
    /// Exposure of the server; without TLS, its own or a proxy's, it is limited to this machine.
    fn exposure(&self) -> Result<FarmExposure> {
        match (self.listen.ip().is_loopback(), self.behind_proxy) {
            (_, true) => Ok(FarmExposure::BehindProxy),
            _ if self.tls.is_given() => Ok(FarmExposure::Encrypted),
            (true, false) => Ok(FarmExposure::Loopback),
            (false, false) => Err(Failure::usage(
                "--listen: passwords and tokens would be sent unencrypted beyond this machine: give --cert \
                 and --key, or put a proxy in front that does TLS and add --behind-proxy",
            )),
        }
    }

    /// Refuses settings for users on a farm without a store, which has no accounts.
    fn check_public(&self, exposure: FarmExposure) -> Result<()> {
        let keeps = self.store.is_some() || self.runs.is_empty();
        let open = matches!(self.public, Some(PublicReading::Read | PublicReading::All));
        let default = self.public.is_none() && exposure == FarmExposure::Loopback;
        if keeps || open || default {
            Ok(())
        } else {
            Err(Failure::usage(
                "--runs alone has no accounts to log in with: give --public read, --public all or a --store",
            ))
        }
    }
}

/// Warning about the readers of the farm, if they may not be the intended ones.
fn who_reads(policy: &AccessPolicy, exposure: FarmExposure, has_users: bool, flag: &str) -> Option<String> {
    let add = format!("onbeat-farm user add NAME --role admin {flag}");
    match (policy.public, exposure, has_users) {
        (None, FarmExposure::Loopback, false) => Some(format!(
            "no login is needed: every user of this machine reads everything, until the first account is \
             added ({add})"
        )),
        (Some(PublicReading::Read | PublicReading::All), ..) | (.., true) => None,
        (_, _, false) => Some(format!("no account exists yet: add one with {add}")),
    }
}

/// Reports once that the bucket does not answer, or belongs to another store, and once that it is
/// in order again. Ends if the bucket refuses the given settings at the start, as waiting does not
/// help.
async fn watch_bucket(bucket: Option<(Arc<ObjectBucket>, i64)>) -> Failure {
    let Some((bucket, owner)) = bucket else { return std::future::pending().await };
    let (mut trouble, mut said) = (bucket.trouble(), None);
    match bucket.claim(owner).await {
        Ok(()) | Err(BucketFault::Unreachable(_)) => {}
        Err(fault) => return fault.into(),
    }
    let mut looks = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = looks.tick() => {
                // Without requests for bundles, the loss of the bucket would go unnoticed. A
                // failure is recorded there, and reported below.
                let bucket = bucket.clone();
                tokio::spawn(async move {
                    let _ = bucket.claim(owner).await;
                });
            }
            Ok(()) = trouble.changed() => {
                let now = trouble.borrow_and_update().clone();
                if let Some(line) = said_now(&mut said, now, bucket.name()) {
                    say(&format!("onbeat-farm: {line}"));
                }
            }
        }
    }
}

/// Line about a bucket, unless it was the last one.
fn said_now(said: &mut Option<String>, trouble: Option<String>, bucket: &str) -> Option<String> {
    if *said == trouble {
        return None;
    }
    let line = match &trouble {
        Some(words) => format!("{words}; boards keep their runs until then"),
        None => format!("{bucket} answers again"),
    };
    *said = trouble;
    Some(line)
}

/// Ctrl-C, or a service manager.
pub async fn asked_to_end() {
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
        Args {
            runs: Vec::new(),
            store: None,
            objects: ObjectsFlag::default(),
            listen: listen.parse().unwrap(),
            behind_proxy,
            tls: TlsFlags::default(),
            webhook: WebhookFlags::default(),
            public: None,
            metrics_open: false,
            board_quota: 1,
            cache: 1,
        }
    }

    #[test]
    fn beyond_the_machine_only_a_proxy_is_answered() {
        assert_eq!(args("127.0.0.1:1", false).exposure().unwrap(), FarmExposure::Loopback);
        assert_eq!(args("[::1]:1", false).exposure().unwrap(), FarmExposure::Loopback);
        assert_eq!(args("0.0.0.0:1", true).exposure().unwrap(), FarmExposure::BehindProxy);
        assert!(args("0.0.0.0:1", false).exposure().unwrap_err().message.contains("--behind-proxy"));
    }

    #[test]
    fn what_is_wrong_with_a_bucket_is_said_once_and_again_where_it_is_another_thing() {
        let mut said = None;
        let mut line = |words: Option<&str>| said_now(&mut said, words.map(str::to_owned), "s3://b");
        assert_eq!(line(None), None);
        assert!(line(Some("away")).unwrap().starts_with("away; boards keep"));
        assert_eq!(line(Some("away")), None);
        assert!(line(Some("another store's")).unwrap().starts_with("another"));
        assert_eq!(line(None).as_deref(), Some("s3://b answers again"));
    }

    #[test]
    fn a_farm_that_nobody_could_read_is_refused() {
        let of = |public, behind_proxy| {
            let runs = vec![PathBuf::from("/runs")];
            let args = Args { runs, public, ..args("127.0.0.1:1", behind_proxy) };
            args.check_public(args.exposure().unwrap()).is_ok()
        };
        assert!(
            of(None, false) && of(Some(PublicReading::Read), true) && of(Some(PublicReading::All), false)
        );
        assert!(!of(None, true) && !of(Some(PublicReading::None), false));
        let said = |public, exposure, users| {
            let policy = AccessPolicy { public, metrics_open: false };
            who_reads(&policy, exposure, users, "--store sqlite:/f.db").unwrap_or_default()
        };
        assert!(said(None, FarmExposure::Loopback, false).contains("no login is needed"));
        let none = said(None, FarmExposure::BehindProxy, false);
        assert!(none.contains("no account exists yet") && none.ends_with(" --store sqlite:/f.db"), "{none}");
        assert_eq!(said(None, FarmExposure::BehindProxy, true), "");
        assert_eq!(said(Some(PublicReading::Read), FarmExposure::BehindProxy, false), "");
    }
}
