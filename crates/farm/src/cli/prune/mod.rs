//! `onbeat-farm prune`: deletes old data that is counted elsewhere.

pub mod retained;
pub mod retention;
mod times;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::MachineFiles;
use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use model::units::{Bare, Nanos, parse_span};
use serde::Serialize;

use crate::cli::flags::farm_flags::FarmFlags;
use crate::cli::flags::store_flag::StorePlace;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::prune::retained::RetainedBundles;
use crate::cli::prune::retention::{Pruned, PrunedBundles, thin_out};
use crate::cli::prune::times::RetentionTimes;
use crate::cli::{FarmEnvironment, note};
use crate::folders::lies_in;
use crate::ingest::keep::{PATIENCE, lock_of_writers};
use crate::ingest::remove_tree::remove_tree;
use crate::objects::{ObjectBucket, swept};
use crate::records::Tier;
use crate::store::{BundlePlace, FarmStore};
use crate::wall_clock::now;

/// Delete data past its retention: 5-minute and hourly histograms, per-second records, spike traces
///
/// All samples stay in the histograms of days; the maximum of each five minutes stays with its time
/// and names, and each run with its own histogram. The traces around spikes stay of the first run
/// that shows a culprit and of a board's worst run of each week. Pinned runs stay in full
/// (`onbeat-farm pin`). The age of a run counts from its arrival here. If no server runs,
/// unfinished pieces of runs and bundles that belong to no run are deleted, too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm prune --dry-run\n  onbeat-farm prune --five-minutes 7d")]
pub struct Args {
    /// Retention of 5-minute histograms
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    five_minutes: String,
    /// Retention of hourly histograms
    #[arg(long, value_name = "SPAN", default_value = "365d")]
    hours: String,
    /// Retention of the per-second records of runs
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    blocks: String,
    /// Retention of the traces around spikes
    #[arg(long, value_name = "SPAN", default_value = "90d")]
    windows: String,
    /// Print what would be deleted, one line per run, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

/// Data that was deleted, or would be.
#[derive(Serialize)]
struct PruneDocument {
    schema: &'static str,
    /// Nothing went.
    dry_run: bool,
    /// Histograms of short times.
    histograms: u64,
    /// Environments of recorders that no row names.
    environments: u64,
    runs: Vec<PrunedRun>,
    /// Old runs that stay whole because they are pinned.
    pinned: u64,
    failed: Vec<FailedRun>,
    /// Number of bundles in the bucket that belong to no run; null without one.
    bundles_of_no_run: Option<u64>,
    /// Number of such folders, and pieces; null if a server runs.
    folders_of_no_run: Option<u64>,
}

#[derive(Serialize)]
struct PrunedRun {
    run: String,
    /// Bytes of its seconds and five minutes.
    block_bytes: u64,
    /// Bytes of the traces around its spikes.
    window_bytes: u64,
    windows: u64,
    windows_kept: u64,
}

/// A run whose rest is unchanged.
#[derive(Serialize)]
struct FailedRun {
    run: String,
    reason: String,
}

impl PruneDocument {
    fn of(pruned: &PrunedBundles, dry_run: bool, histograms: u64) -> PruneDocument {
        let run = |one: &Pruned| PrunedRun {
            run: one.run.clone(),
            block_bytes: one.of.blocks,
            window_bytes: one.of.window_bytes,
            windows: one.of.windows,
            windows_kept: one.of.windows_kept,
        };
        let failed =
            |(run, reason): &(String, String)| FailedRun { run: run.clone(), reason: reason.clone() };
        PruneDocument {
            schema: "onbeat.farm-prune/1",
            dry_run,
            histograms,
            environments: 0,
            runs: pruned.all.iter().map(run).collect(),
            pinned: pruned.pinned,
            failed: pruned.failed.iter().map(failed).collect(),
            bundles_of_no_run: None,
            folders_of_no_run: None,
        }
    }
}

/// Parses an age in seconds. Deletion is final: a number without a unit, which elsewhere means
/// seconds, may have been meant as days.
fn age(flag: &str, text: &str) -> Result<i64> {
    let span = parse_span(text, Bare::Seconds).map_err(|why| Failure::usage(format!("{flag}: {why}")))?;
    let has_unit = text.trim().ends_with(|c: char| c.is_ascii_alphabetic());
    if !has_unit && span > Nanos(0) {
        return Err(Failure::usage(format!(
            "{flag}: {0} has no unit: write {0}d for days, or use s, m or h",
            text.trim()
        )));
    }
    Ok(span.0.div_euclid(Nanos::SECOND.0))
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let (place, bucket) = args.farm.open(environment)?;
    place.keep_private();
    if !args.dry_run {
        place.give_room_up();
    }
    let store = place.open_existing().await?;
    let before = |flag: &str, text: &str| age(flag, text).map(|age| now() - age);
    let tiers = [
        (Tier::Slot, before("--five-minutes", &args.five_minutes)?),
        (Tier::Hour, before("--hours", &args.hours)?),
    ];
    let times = RetentionTimes {
        blocks: before("--blocks", &args.blocks)?,
        windows: before("--windows", &args.windows)?,
        now: now(),
    };
    if let Some(bucket) = &bucket {
        // Before anything is deleted.
        if args.dry_run {
            bucket.check_owner(store.identity().await?).await?;
        } else {
            bucket.claim(store.identity().await?).await?;
        }
    }
    let lock = if args.dry_run { None } else { lock_of_writers(&place.bundles, PATIENCE).await? };
    let (dry, mut dropped) = (args.dry_run, 0);
    for (tier, before) in tiers {
        dropped += if dry { store.prunable(tier, before).await? } else { store.prune(tier, before).await? };
    }
    let unnamed = if dry {
        store.unnamed_environments(now()).await?
    } else {
        store.drop_unnamed_environments(now()).await?
    };
    let histograms = several(dropped, "histogram", "histograms");
    let would = if dry { "would be deleted" } else { "deleted" };
    args.output.answer(&format!("{would}: {histograms}, whose samples stay in those of days"))?;
    let environments = several(unnamed, "environment", "environments");
    args.output.answer(&format!("{would}: {environments} that no row refers to"))?;
    let progress = args.output.progress(environment);
    let from = RetainedBundles::open(&place.bundles, bucket.as_ref())?;
    let pruned = thin_out(&store, &from, times, dry, &progress).await?;
    drop(from);
    drop(progress);
    tell(&pruned, dry, &args.output)?;
    if !dry {
        let of_runs = several(pruned.all.len() as u64, "run", "runs");
        note(&store, format!("pruned: {histograms} and data of {of_runs} deleted")).await?;
    }
    let mut document = PruneDocument::of(&pruned, dry, dropped);
    document.environments = unnamed;
    if let Some(bucket) = &bucket {
        document.bundles_of_no_run = Some(sweep_bucket(&store, bucket, dry, &args.output).await?);
    }
    document.folders_of_no_run = sweep_folder(&store, &place, bucket.is_some(), dry, &args.output).await?;
    drop(lock);
    if !dry {
        place.set_room_aside();
    }
    args.output.write(&document)?;
    Ok(exit_of(&pruned))
}

/// Removes bundles of no run from the bucket; returns their number.
async fn sweep_bucket(
    store: &FarmStore,
    bucket: &Arc<ObjectBucket>,
    dry: bool,
    output: &DocumentFlags,
) -> Result<u64> {
    let gone = swept(bucket, store, now(), dry).await?;
    let would = if dry { "would be deleted from" } else { "deleted from" };
    let bundles = several(gone, "bundle", "bundles");
    output.answer(&format!("{bundles} that belong to no run {would} {}", bucket.name()))?;
    Ok(gone)
}

/// Removes the same from the folder of bundles; `None` if a server runs.
async fn sweep_folder(
    store: &FarmStore,
    place: &StorePlace,
    is_cache: bool,
    dry: bool,
    output: &DocumentFlags,
) -> Result<Option<u64>> {
    if !host::is_dir(&place.bundles).unwrap_or(false) {
        return Ok(Some(0));
    }
    let turn = store.free_turn().await?;
    let Some(_alone) = turn.and_then(|turn| Some((turn, place.lock_idle()?))) else {
        output.remark("a server is running: unfinished runs of boards were not deleted");
        return Ok(None);
    };
    let swept = sweep(store, &place.bundles, is_cache, dry).await?;
    let gone = if dry { "would be deleted" } else { "deleted" };
    output.answer(&format!("{} that belong to no run {gone}", several(swept, "folder", "folders")))?;
    Ok(Some(swept))
}

fn exit_of(pruned: &PrunedBundles) -> Exit {
    if pruned.failed.is_empty() { Exit::Ok } else { Exit::Inconclusive }
}

/// Summary of the deleted bundle data, in one line.
fn words_of(pruned: &PrunedBundles, dry: bool) -> String {
    let sum = |of: fn(&Pruned) -> u64| pruned.all.iter().map(of).fold(0u64, u64::saturating_add);
    let runs = |of: fn(&Pruned) -> u64| pruned.all.iter().filter(|one| of(one) > 0).count() as u64;
    let (seconds, windows) = (|one: &Pruned| one.of.blocks, |one: &Pruned| one.of.window_bytes);
    let would = if dry { "would be deleted" } else { "deleted" };
    format!(
        "{would}: the seconds of {} ({} bytes) and the traces around {} of {} ({} bytes); the traces around \
         {} are kept for good, {} pinned",
        several(runs(seconds), "run", "runs"),
        sum(seconds),
        several(sum(|one| one.of.windows), "spike", "spikes"),
        several(runs(windows), "run", "runs"),
        sum(windows),
        several(sum(|one| one.of.windows_kept), "spike", "spikes"),
        several(
            pruned.pinned,
            "old run stays in full because it is",
            "old runs stay in full because they are"
        ),
    )
}

/// Prints the deleted bundle data; for a dry run, also each run on standard output.
fn tell(pruned: &PrunedBundles, dry: bool, output: &DocumentFlags) -> Result<()> {
    output.answer(&words_of(pruned, dry))?;
    for (run, why) in &pruned.failed {
        let rest = if pruned.all.iter().any(|one| one.run == *run) { "the rest of " } else { "" };
        output.refusal(&format!("{rest}{run} was not changed: {why}"));
    }
    if dry && output.prints() {
        let mut out = std::io::stdout().lock();
        for one in &pruned.all {
            match writeln!(out, "{}\t{}\t{}", one.run, one.parts, one.of.blocks + one.of.window_bytes) {
                // The reader has closed the pipe.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => break,
                Err(error) => {
                    return Err(Failure::internal(format!("cannot print it ({error}): try again")));
                }
                Ok(()) => {}
            }
        }
    }
    Ok(())
}

/// Removes bundles assembled for no run, and waiting pieces: boards send them again. The folder may
/// be the cache of a bucket.
async fn sweep(store: &FarmStore, bundles: &Path, is_cache: bool, dry: bool) -> Result<u64> {
    // Paths of the same folder may differ: the bundle of a run must not be removed.
    let whole = |place: &Path| host::whole_path(place).unwrap_or_else(|_| place.to_owned());
    // A copy has the name of its run's bundle, wherever that was put from.
    let of_run = |place: &str| match Path::new(place).file_name() {
        Some(name) if is_cache => whole(&bundles.join(name)),
        _ => whole(Path::new(place)),
    };
    let runs = store.places().await?;
    let places: BTreeSet<PathBuf> = runs.iter().map(|run| of_run(&run.place)).collect();
    let earlier = with_other_bundles(store, &runs, bundles).await?;
    let names = MachineFiles::folder(bundles).list_as_it_is("/.").known().cloned().unwrap_or_default();
    let mut gone = 0;
    for name in names {
        let place = bundles.join(&name);
        // A sent bundle has a plus in its name; others may belong to another store, or a user.
        let is_sent = name == ".pieces" || name.contains('+');
        if !is_sent && !earlier.contains(&name) || places.contains(&whole(&place)) {
            continue;
        }
        gone += 1;
        if dry {
            continue;
        }
        let top = Dir::existing(bundles).map_err(|error| {
            let what = format!("cannot open {}", quoted(bundles));
            Failure::of_call(what, &error, Exit::NotPermitted, "run this as the user of the server")
        })?;
        remove_tree(&MachineFiles::folder(bundles), &top, &name, 0);
    }
    Ok(gone)
}

/// The runs of which a folder that is called by their id has an earlier state alone: those that
/// have another bundle in the folder of copies, and those that were removed.
async fn with_other_bundles(
    store: &FarmStore,
    runs: &[BundlePlace],
    bundles: &Path,
) -> Result<BTreeSet<String>> {
    // Not those that lie elsewhere: the folder may have been moved.
    let is_here = |run: &&BundlePlace| {
        let place = Path::new(&run.place);
        lies_in(place, bundles) && host::identity(&place.join("run.json")).is_some()
    };
    let mut found: BTreeSet<String> = runs.iter().filter(is_here).map(|run| run.id.clone()).collect();
    found.extend(store.forgotten().await?.into_iter().map(|(run, _)| run));
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use std::fs;

    #[test]
    fn an_age_has_a_unit() {
        let refused = |text: &str| age("--windows", text).unwrap_err();
        for text in ["90", " 90 ", "0.5"] {
            assert!(
                refused(text).exit == Exit::Usage && refused(text).message.contains("has no unit"),
                "{text}"
            );
        }
        assert!(refused("90").message.contains("write 90d for days"), "{}", refused("90").message);
        assert_eq!(["90d", "30s", "0"].map(|text| age("--windows", text).unwrap()), [90 * 86_400, 30, 0]);
    }

    #[test]
    fn what_goes_of_runs_is_called_as_the_guide_calls_it() {
        let words = words_of(&PrunedBundles::default(), true);
        let said = "and the traces around 0 spikes of 0 runs (0 bytes); the traces around 0 spikes are kept";
        assert!(words.contains(said) && !words.contains("window"), "{words}");
    }

    #[test]
    fn what_was_put_together_for_no_run_goes_whatever_it_is_called() {
        block_on(async {
            let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
            let left = folder.path().join("r1+ffff0123456789ab");
            fs::create_dir_all(left.join("host")).unwrap();
            fs::write(left.join("host/enx001122aabbcc"), "").unwrap();
            fs::create_dir(folder.path().join("imported")).unwrap();
            assert_eq!(sweep(&store, folder.path(), false, true).await.unwrap(), 1);
            assert!(left.exists(), "it was a try");
            assert_eq!(sweep(&store, folder.path(), false, false).await.unwrap(), 1);
            assert!(!left.exists() && folder.path().join("imported").exists());
        });
    }

    #[test]
    fn what_was_imported_of_a_run_that_has_another_bundle_or_was_removed_goes() {
        block_on(async {
            let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
            let mut record = crate::fixture::recorded_run("measured", "a");
            let id = record.run.id.clone();
            let at = |name: &str| folder.path().join(name);
            let mut left = async |place: PathBuf| {
                for name in [id.clone(), format!("{id}+1"), "other".to_owned()] {
                    fs::create_dir_all(at(&name)).unwrap();
                    fs::write(at(&name).join("run.json"), "{}").unwrap();
                }
                record.run.place = place.to_string_lossy().into_owned();
                store.forget_run(&id, None, None).await.unwrap();
                store.put(&record).await.unwrap();
                sweep(&store, folder.path(), false, false).await.unwrap();
                [at(&id), at(&format!("{id}+1")), at("other")].map(|place| place.exists())
            };
            assert_eq!(left(at(&format!("{id}+1"))).await, [false, true, true]);
            assert_eq!(left(at(&id)).await, [true, false, true]);
            // The folder may have been moved here.
            assert_eq!(left("/elsewhere/run".into()).await, [true, false, true]);
            store.forget_run(&id, None, Some(5)).await.unwrap();
            sweep(&store, folder.path(), false, false).await.unwrap();
            assert!(!at(&id).exists() && at("other").exists());
        });
    }
}
