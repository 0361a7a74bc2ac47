//! `onbeat-farm forget`: removes runs, with everything counted of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::error::{Exit, Failure, Result};
use model::text::quoted_value;
use serde::Serialize;

use crate::cli::flags::farm_flags::FarmFlags;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::{FarmEnvironment, note};
use crate::ingest::keep::PATIENCE;
use crate::objects::ObjectBucket;
use crate::pages::parts::moment;
use crate::records::FarmRun;
use crate::removal::{ForgottenRun, KeptBundles, bundle_of, forget, pinned};
use crate::store::FarmStore;
use crate::wall_clock::now;

/// Remove runs with all data counted from them, or print the runs that must not be stored again
///
/// Removes a run with its samples in all histograms, its maxima, spikes and labels, its bundle, and
/// the culprits, environment and board that nothing else refers to. A run that is shown from a
/// folder of --runs stays in that folder. A removed run is not stored again, neither from its board
/// nor from a folder; its board skips it, and asks once a day whether it may be sent. Pinned runs
/// stay.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm forget 20261123T201500-1a2b3c4d\n  onbeat-farm forget --allow \
     20261123T201500-1a2b3c4d\n  onbeat-farm forget"
)]
pub struct Args {
    /// The runs; without one, those that must not be stored again are printed
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Allow these runs to be stored again, also if they were removed before: a board that skipped
    /// one sends it within a day
    #[arg(long, requires = "runs")]
    allow: bool,
    /// Read a complete copy of the run here, if its seconds were pruned and its samples cannot be
    /// separated from others
    #[arg(long, value_name = "DIR", requires = "runs")]
    from: Option<PathBuf>,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

/// Results, and the runs that may not be sent again.
#[derive(Default, Serialize)]
struct ForgetDocument {
    schema: &'static str,
    removed: Vec<ForgottenRun>,
    /// Runs that had been removed, and may come again now.
    allowed: Vec<String>,
    failed: Vec<FailedRemoval>,
    /// All that are not to come again.
    not_again: Vec<RunNotAgain>,
}

/// A run that was not removed.
#[derive(Serialize)]
struct FailedRemoval {
    run: String,
    reason: String,
}

#[derive(Serialize)]
struct RunNotAgain {
    run: String,
    /// Time of its removal, in seconds since 1970.
    t: i64,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    if args.from.is_some() && args.runs.len() != 1 {
        return Err(Failure::usage("--from takes a copy of one run: name that run only"));
    }
    let (place, bucket) = args.farm.open(environment)?;
    if !args.runs.is_empty() {
        place.give_room_up();
    }
    let store = place.open_existing().await?;
    let mut document = ForgetDocument { schema: "onbeat.farm-forget/1", ..ForgetDocument::default() };
    // All of them are checked before any is removed.
    let runs = args.asked(&store, &mut document).await?;
    if let Some(bucket) = &bucket {
        bucket.claim(store.identity().await?).await?;
    }
    let progress = args.output.progress(environment);
    progress.step("removing runs", Some(runs.len() as u64));
    for run in &runs {
        args.remove(&store, run, &place.bundles, bucket.as_ref(), &mut document).await?;
        progress.add();
    }
    drop(progress);
    if !args.runs.is_empty() {
        place.set_room_aside();
    }
    for id in &document.allowed {
        store.allow_again(id).await?;
        args.output.remark(&format!(
            "{id} may be stored again: by `onbeat-farm import`, or within a day from a board that skipped it"
        ));
        note(&store, format!("allows the run {id} again")).await?;
    }
    let not_again = store.forgotten().await?.into_iter().map(|(run, t)| RunNotAgain { run, t });
    document.not_again = not_again.collect();
    if args.runs.is_empty() {
        for one in &document.not_again {
            args.output.print(&format!("{}\t{}", one.run, moment(one.t)))?;
        }
    }
    args.output.write(&document)?;
    Ok(if document.failed.is_empty() { Exit::Ok } else { Exit::Inconclusive })
}

impl Args {
    /// The runs to remove; those that were removed earlier are noted as allowed to be sent again.
    async fn asked(&self, store: &FarmStore, document: &mut ForgetDocument) -> Result<Vec<FarmRun>> {
        let mut runs: Vec<FarmRun> = Vec::new();
        for id in &self.runs {
            match store.run(id).await? {
                Some(run) if run.pinned => return Err(Failure::usage(pinned(id))),
                Some(run) if runs.iter().any(|known| known.id == run.id) => {}
                Some(run) => runs.push(run),
                None if self.allow && store.why_not_again(id).await?.is_some() => {
                    document.allowed.push(id.clone());
                }
                None => {
                    let (shown, remedy) = (quoted_value(id), "see the runs of its board");
                    return Err(Failure::usage(format!("this farm has no run {shown}: {remedy}")));
                }
            }
        }
        Ok(runs)
    }

    async fn remove(
        &self,
        store: &FarmStore,
        run: &FarmRun,
        folder: &Path,
        bucket: Option<&Arc<ObjectBucket>>,
        document: &mut ForgetDocument,
    ) -> Result<()> {
        let from = self.from.clone().unwrap_or_else(|| PathBuf::from(&run.place));
        let of = run.clone();
        // A bundle on which its parser fails is described from the store alone.
        let bundle = tokio::task::spawn_blocking(move || bundle_of(&of, from)).await.unwrap_or_default();
        if bundle.is_none() && self.from.is_some() {
            return Err(Failure::usage(format!(
                "--from: found no readable bundle of {}: name the folder that holds its run.json",
                run.id
            )));
        }
        let at = if self.allow { None } else { Some(now()) };
        match forget(store, run, bundle.as_ref(), KeptBundles { folder, bucket, patience: PATIENCE }, at)
            .await
        {
            Ok(gone) => {
                let words = format!("removed {}", gone.words());
                self.output.remark(&words);
                note(store, words).await?;
                document.removed.push(gone);
            }
            Err(failure) => {
                let reason = failure.reason()?;
                self.output.remark(&reason);
                document.failed.push(FailedRemoval { run: run.id.clone(), reason });
            }
        }
        Ok(())
    }
}
