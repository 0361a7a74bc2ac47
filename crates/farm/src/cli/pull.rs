//! `onbeat-farm pull`: runs of boards that cannot call out, over the system's ssh.

use std::sync::Arc;

use model::error::{Exit, Failure, Result};
use model::text::{clean, several};
use model::units::{Bare, Nanos, parse_span};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::document_flags::DocumentFlags;
use super::farm_flags::FarmFlags;
use super::{FarmEnvironment, check_name, note_left_out};
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
    /// Give a board up from which nothing comes for so long, a second to a day
    #[arg(long, value_name = "SPAN", default_value = "5m")]
    silence: String,
    /// The most that the runs of a board may take that it sends or that are fetched
    #[arg(long, value_name = "GIB", default_value_t = 16, value_parser =
        clap::value_parser!(u64).range(1..=1 << 20))]
    board_quota: u64,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

/// What became of the runs of each host, by its name.
#[derive(Serialize)]
struct PullDocument {
    schema: &'static str,
    hosts: Vec<HostDocument>,
}

#[derive(Serialize)]
struct HostDocument {
    host: String,
    board: String,
    stored: u64,
    had: u64,
    /// A reason for each run.
    refused: Vec<String>,
    /// What is to be known of runs that were stored.
    remarks: Vec<String>,
    /// Files that are links, or no part of a run.
    left_out: u64,
    /// It measures, and was not asked.
    measures: bool,
    /// Why it could not be asked.
    unasked: Option<String>,
}

impl HostDocument {
    fn of(host: &PullHost, outcome: &PullOutcome) -> HostDocument {
        HostDocument {
            host: clean(&host.target),
            board: host.board.clone(),
            stored: outcome.stored,
            had: outcome.had,
            refused: outcome.refused.iter().map(|why| clean(why)).collect(),
            remarks: outcome.remarks.iter().map(|remark| clean(remark)).collect(),
            left_out: outcome.left_out,
            measures: outcome.measures,
            unasked: outcome.unasked.as_deref().map(clean),
        }
    }

    /// Whether nothing was left out.
    fn is_whole(&self) -> bool {
        self.unasked.is_none() && self.refused.is_empty() && !self.measures
    }
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let hosts = args.hosts()?;
    let silence = args.silence()?;
    args.output.check()?;
    let (place, bucket) = args.farm.open(environment)?;
    place.keep_private();
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
        silence,
    });
    let (places, mut asked) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    let progress = args.output.progress(environment);
    progress.step("fetching from boards", Some(hosts.len() as u64));
    for mut host in hosts {
        host.settle(&to.store).await?;
        let (to, places) = (to.clone(), places.clone());
        asked.spawn(async move {
            let _place = places.acquire_owned().await;
            let outcome = pull_from(&to, &host).await;
            (host, outcome)
        });
    }
    let mut document = PullDocument { schema: "onbeat.farm-pull/1", hosts: Vec::new() };
    while let Some(ended) = asked.join_next().await {
        let (host, outcome) =
            ended.map_err(|_| Failure::internal("a parser failed: report this, with the board's runs"))?;
        let host = HostDocument::of(&host, &outcome?);
        progress.add();
        tell(&host, &args.output);
        document.hosts.push(host);
    }
    drop(progress);
    document.hosts.sort_by(|a, b| a.host.cmp(&b.host));
    let left_out = |host: &HostDocument| {
        host.refused.iter().map(|why| format!("{}: {why}", host.host)).collect::<Vec<_>>()
    };
    let left_out: Vec<String> = document.hosts.iter().flat_map(left_out).collect();
    note_left_out(&to.store, "pull", &left_out).await?;
    args.output.write(&document)?;
    let is_whole = document.hosts.iter().all(HostDocument::is_whole);
    Ok(if is_whole { Exit::Ok } else { Exit::Inconclusive })
}

/// Says what came.
fn tell(of: &HostDocument, output: &DocumentFlags) {
    let name = &of.host;
    if let Some(why) = &of.unasked {
        output.remark(&format!("{name}: {why}"));
        return;
    }
    for line in of.remarks.iter().chain(&of.refused) {
        output.remark(&format!("{name}: {line}"));
    }
    if of.left_out > 0 {
        let files = several(of.left_out, "file", "files");
        output.remark(&format!("{name}: {files} left out: links, or no part of a run"));
    }
    match of.measures {
        true => output.remark(&format!("{name}: it measures, and is asked another time (--always asks now)")),
        false => output.remark(&format!(
            "{name}: {} stored, {} there already, {} refused",
            several(of.stored, "run", "runs"),
            of.had,
            of.refused.len()
        )),
    }
}

impl Args {
    fn silence(&self) -> Result<Nanos> {
        let span = parse_span(&self.silence, Bare::Seconds);
        let span = span.map_err(|why| Failure::usage(format!("--silence: {why}")))?;
        match (Nanos::SECOND..=Nanos(86_400 * Nanos::SECOND.0)).contains(&span) {
            true => Ok(span),
            false => Err(Failure::usage("--silence: no span from a second to a day: write it like 5m")),
        }
    }

    fn hosts(&self) -> Result<Vec<PullHost>> {
        let parsed: std::result::Result<Vec<PullHost>, String> =
            self.hosts.iter().map(|host| PullHost::parse(host)).collect();
        let mut hosts = parsed.map_err(Failure::usage)?;
        let remedy = "give one, or leave --board out for its host's";
        check_name("--board", "board", self.board.as_ref(), remedy)?;
        match (&self.board, hosts.as_mut_slice()) {
            (None, _) => {}
            (Some(name), [one]) => one.call(name),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_without_a_name_is_refused() {
        let named = |board: &str| {
            let args = Args {
                hosts: vec!["press-3".to_owned()],
                board: Some(board.to_owned()),
                always: false,
                silence: "5m".to_owned(),
                board_quota: 16,
                farm: FarmFlags::default(),
                output: DocumentFlags::default(),
            };
            args.hosts().map(|mut hosts| hosts.remove(0).board)
        };
        for blank in ["", "  "] {
            let refused = named(blank).unwrap_err();
            assert!(refused.exit == Exit::Usage && refused.message.contains("no name"), "{refused}");
        }
        assert_eq!(named("press-4").unwrap(), "press-4");
    }
}
