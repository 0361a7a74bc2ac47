//! `onbeat-farm pull`: runs of boards that cannot call out, over the system's ssh.

use std::sync::Arc;

use model::error::{Exit, Failure, Result};
use model::text::{clean, several};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::objects_flag::ObjectsFlag;
use super::store_flag::StorePlace;
use super::{FarmEnvironment, note_left_out, say};
use crate::ingest::find::board_key;
use crate::pull::{PullHost, PullOutcome, PullPlace, pull_from};

/// Boards that are asked at the same time.
const AT_ONCE: usize = 4;

/// Fetch the runs of boards that cannot call out, over ssh
///
/// Asks each host for its runs and fetches those that the store has not; the same again adds
/// nothing. It uses the system's ssh with this user's keys and configuration, and asks no
/// questions. The board needs sh, tar and sha256sum, and no root: it gives the runs of the user
/// that ssh logs in, or those in /var/lib/onbeat/runs. A board that measures is left in peace.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm pull press-3 operator@press-4\n  onbeat-farm pull --board press-3 \
     10.0.0.7"
)]
pub struct Args {
    /// The boards: a host, or user@host; each is a board of its host's name
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// The board's name, where one host is asked
    #[arg(long, value_name = "NAME")]
    board: Option<String>,
    /// Ask boards that measure, too
    #[arg(long)]
    always: bool,
    /// The most that the runs of a board may take that it sends or that are fetched
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser =
        clap::value_parser!(u64).range(1..=1 << 20))]
    board_quota: u64,
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    objects: ObjectsFlag,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let hosts = args.hosts()?;
    let place = StorePlace::of(args.store.as_deref(), environment)?;
    let (place, bucket) = args.objects.open(place, environment)?;
    let store = place.open().await?;
    if let Some(bucket) = &bucket {
        bucket.claim(store.identity().await?).await?;
    }
    let to = Arc::new(PullPlace {
        store,
        bundles: place.bundles,
        bucket,
        quota: args.board_quota << 30,
        always: args.always,
    });
    let (places, mut asked) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for host in hosts {
        let (to, places) = (to.clone(), places.clone());
        asked.spawn(async move {
            let _place = places.acquire_owned().await;
            let outcome = pull_from(&to, &host.target, &host.board).await;
            (host, outcome)
        });
    }
    let (mut exit, mut left_out) = (Exit::Ok, Vec::new());
    while let Some(ended) = asked.join_next().await {
        let (host, outcome) =
            ended.map_err(|_| Failure::internal("a parser failed: report this, with the board's runs"))?;
        let outcome = outcome?;
        if !tell(&host, &outcome) {
            exit = Exit::Inconclusive;
        }
        left_out.extend(outcome.refused.iter().map(|why| format!("{}: {why}", host.target)));
    }
    note_left_out(&to.store, "pull", &left_out).await?;
    Ok(exit)
}

/// Says what came; whether nothing was left out.
fn tell(host: &PullHost, outcome: &PullOutcome) -> bool {
    let name = clean(&host.target);
    if let Some(why) = &outcome.unasked {
        say(&format!("onbeat-farm: {name}: {}", clean(why)));
        return false;
    }
    for why in &outcome.refused {
        say(&format!("onbeat-farm: {name}: {}", clean(why)));
    }
    if outcome.left_out > 0 {
        let files = several(outcome.left_out, "file", "files");
        say(&format!("onbeat-farm: {name}: {files} left out: links, or no part of a run"));
    }
    match outcome.measures {
        true => {
            say(&format!("onbeat-farm: {name}: it measures, and is asked another time (--always asks now)"))
        }
        false => say(&format!(
            "onbeat-farm: {name}: {} stored, {} there already, {} refused",
            several(outcome.stored, "run", "runs"),
            outcome.had,
            outcome.refused.len()
        )),
    }
    outcome.refused.is_empty() && !outcome.measures
}

impl Args {
    fn hosts(&self) -> Result<Vec<PullHost>> {
        let parsed: std::result::Result<Vec<PullHost>, String> =
            self.hosts.iter().map(|host| PullHost::parse(host)).collect();
        let mut hosts = parsed.map_err(Failure::usage)?;
        match (&self.board, hosts.as_mut_slice()) {
            (None, _) => {}
            (Some(name), [one]) => one.board = board_key(name),
            (Some(_), _) => {
                return Err(Failure::usage(
                    "--board: names the board of one host: ask the others by themselves",
                ));
            }
        }
        // Two hosts with one name would be one board.
        let mut boards: Vec<&str> = hosts.iter().map(|host| host.board.as_str()).collect();
        boards.sort_unstable();
        match boards.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::usage(format!(
                "two hosts are the board {}: ask each by itself, with --board",
                pair[0]
            ))),
            None => Ok(hosts),
        }
    }
}
