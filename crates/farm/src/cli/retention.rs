//! What of the bundles is old: chosen by their runs, taken out one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::error::Result;

use crate::ingest::thin::{ThinnedBundle, WindowsKept, thin_blocks, thin_windows};
use crate::store::{FarmStore, FreedParts, KeptBundle};

const WEEK_DAYS: i64 = 7;
const DAY: i64 = 86_400;

/// What came before these times goes, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct RetentionTimes {
    pub blocks: i64,
    pub windows: i64,
    pub now: i64,
}

/// What went of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub run: String,
    /// `blocks`, `windows`, both with a blank between: what went now.
    pub parts: String,
    pub of: ThinnedBundle,
}

/// What went of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedBundles {
    pub all: Vec<Pruned>,
    /// Old runs that stay whole.
    pub pinned: u64,
    /// Runs, and why their files are as before.
    pub failed: Vec<(String, String)>,
}

impl RetentionTimes {
    /// Whether the seconds of a bundle that came at a time are old, and its windows.
    pub fn old(&self, bundle: &KeptBundle, came: i64) -> (bool, bool) {
        let came = came.max(bundle.started);
        (came < self.blocks, came < self.windows && bundle.spikes > 0)
    }
}

impl PrunedBundles {
    /// Notes what went of a bundle, also in the store where it was no try.
    pub async fn note(
        &mut self,
        store: &FarmStore,
        bundle: &KeptBundle,
        of: ThinnedBundle,
        now: i64,
        dry: bool,
    ) -> Result<()> {
        let bytes = of.blocks + of.window_bytes;
        if bytes == 0 {
            return Ok(());
        }
        let parts = parts(of.blocks > 0, of.window_bytes > 0);
        if !dry {
            let is_gone = |part: &str| bundle.thinned.contains(part) || parts.contains(part);
            let all = self::parts(is_gone("blocks"), is_gone("windows"));
            store.note_freed(&FreedParts { bundle, parts: all, bytes, t: now }).await?;
        }
        self.all.push(Pruned { run: bundle.run.clone(), parts, of });
        Ok(())
    }
}

/// Takes out of the bundles below a folder what is old, or says what that is.
pub async fn thin_out(
    store: &FarmStore,
    below: &Path,
    times: RetentionTimes,
    dry: bool,
) -> Result<PrunedBundles> {
    let bundles = store.bundles().await?;
    let (worst, mut first) = (worst_of_weeks(&bundles), store.first_of_culprits().await?);
    let mut pruned = PrunedBundles::default();
    let whole = host::whole_path(below).ok();
    // The same folder may be written in several ways.
    let is_below = |above: &Path| above == below || whole.is_some() && host::whole_path(above).ok() == whole;
    for bundle in &bundles {
        let place = PathBuf::from(&bundle.place);
        // What lies elsewhere is shown from there, and is not the farm's.
        let came = host::written_at(&place.join("run.json"));
        let Some(came) = came.filter(|_| place.parent().is_some_and(is_below)) else { continue };
        let old = times.old(bundle, came);
        if old == (false, false) {
            continue;
        }
        if bundle.pinned {
            pruned.pinned += 1;
            continue;
        }
        let kept = WindowsKept {
            culprits: first.remove(&bundle.run).unwrap_or_default(),
            worst: worst.contains(bundle.run.as_str()),
        };
        let thinned = tokio::task::spawn_blocking(move || thin(&place, old, &kept, dry)).await;
        let outcome =
            thinned.unwrap_or_else(|_| Err("its parser failed: report this, with the bundle".into()));
        match outcome {
            Ok(of) => pruned.note(store, bundle, of, times.now, dry).await?,
            Err(why) => pruned.failed.push((bundle.run.clone(), why)),
        }
    }
    Ok(pruned)
}

/// Takes the seconds out of a bundle in a folder, its windows, or both.
pub fn thin(
    place: &Path,
    (blocks, windows): (bool, bool),
    kept: &WindowsKept,
    dry: bool,
) -> std::result::Result<ThinnedBundle, String> {
    let mut of = if windows { thin_windows(place, kept, dry)? } else { ThinnedBundle::default() };
    of.blocks = if blocks { thin_blocks(place, dry)? } else { 0 };
    Ok(of)
}

fn parts(blocks: bool, windows: bool) -> String {
    let names = [(blocks, "blocks"), (windows, "windows")];
    names.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// Of each board and week, from Monday on in UTC, the run with spikes that had the largest latency.
pub fn worst_of_weeks(bundles: &[KeptBundle]) -> BTreeSet<&str> {
    let mut worst: BTreeMap<(i64, i64), &KeptBundle> = BTreeMap::new();
    for bundle in bundles.iter().filter(|bundle| bundle.spikes > 0) {
        // 1970 began on a Thursday.
        let week = (bundle.started.div_euclid(DAY) + 3).div_euclid(WEEK_DAYS);
        let one = worst.entry((bundle.board_id, week)).or_insert(bundle);
        if bundle.max_ns > one.max_ns {
            *one = bundle;
        }
    }
    worst.into_values().map(|bundle| bundle.run.as_str()).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::ingest::keep::keep;
    use crate::store::engines::on_each_engine;
    use std::fs;
    use std::time::{Duration, SystemTime};

    const NOW: i64 = 2_000_000_000;
    const DAYS: RetentionTimes = RetentionTimes { blocks: NOW - 30 * DAY, windows: NOW - 90 * DAY, now: NOW };

    fn fixture(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name)
    }

    /// A run that came so many days ago, with its bundle below a folder.
    async fn put(
        store: &FarmStore,
        below: &Path,
        (name, id, board): (&str, &str, &str),
        days: i64,
        max: i64,
    ) {
        let (place, _) = keep(&fixture(name), id, below).unwrap();
        let came = SystemTime::UNIX_EPOCH + Duration::from_secs((NOW - days * DAY) as u64);
        fs::File::options().write(true).open(place.join("run.json")).unwrap().set_modified(came).unwrap();
        let mut record = read(&FoundBundle { place, board: Some(board.into()) }).unwrap().0;
        (record.run.id, record.run.started) = (id.into(), NOW - days * DAY - 60);
        record.run.max_ns = Some(model::units::Nanos(max));
        record.slots.iter_mut().for_each(|slot| slot.run = id.into());
        store.put(&record).await.unwrap();
    }

    #[test]
    fn a_week_begins_on_monday_and_has_one_worst_run_a_board() {
        let bundle = |run: &str, board_id, day: i64, max| KeptBundle {
            run: run.into(),
            board_id,
            place: String::new(),
            started: day * DAY,
            spikes: 1,
            max_ns: Some(max),
            pinned: false,
            thinned: String::new(),
        };
        // 2023-11-13 was a Monday.
        let monday = 19_674;
        let all = [
            bundle("sunday", 1, monday - 1, 5),
            bundle("monday", 1, monday, 7),
            bundle("friday", 1, monday + 4, 9),
            bundle("other", 2, monday, 1),
            KeptBundle { spikes: 0, ..bundle("without", 3, monday, 99) },
        ];
        assert_eq!(worst_of_weeks(&all), BTreeSet::from(["friday", "other", "sunday"]));
    }

    #[test]
    fn what_is_old_goes_and_what_is_pinned_the_first_or_the_worst_stays() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path();
            for (id, days, max) in
                [("first", 200, 9), ("quiet", 199, 5), ("pinned", 198, 4), ("worst", 150, 8)]
            {
                put(&store, below, ("hunt", id, "a"), days, max).await;
            }
            put(&store, below, ("hunt", "recent", "a"), 60, 7).await;
            put(&store, below, ("measured", "new", "a"), 29, 7).await;
            store.pin("pinned", "ann", "", NOW).await.unwrap();
            let has = |run: &str, file: &str| below.join(run).join(file).exists();
            let before = store.totals().await.unwrap();
            let key = read(&FoundBundle { place: fixture("hunt"), board: None }).unwrap().0.run.key;
            let all = crate::store::TimeStretch { from: i64::MIN, to: i64::MAX };
            let slots = store.slots("a", &key, all, 99).await.unwrap();

            let tried = thin_out(&store, below, DAYS, true).await.unwrap();
            assert!(has("first", "blocks.jsonl") && has("quiet", "events/spikes.jsonl"));
            let done = thin_out(&store, below, DAYS, false).await.unwrap();
            assert_eq!(tried, done);
            assert_eq!((done.pinned, done.failed.len()), (1, 0));
            for run in ["first", "quiet", "worst", "recent"] {
                assert!(!has(run, "blocks.jsonl") && has(run, "run.json"), "{run}");
            }
            assert!(has("pinned", "blocks.jsonl") && has("pinned", "events/spikes.jsonl"));
            assert!(has("new", "blocks.jsonl") && has("recent", "events/spikes.jsonl"));
            // Its culprits were seen before, and the week had a worse run.
            assert!(!has("quiet", "events") && has("first", "events/spikes.jsonl"));
            assert!(has("worst", "events/spikes.jsonl"));
            let thinned = async |run: &str| store.run(run).await.unwrap().unwrap().thinned;
            assert_eq!(
                (thinned("quiet").await.as_str(), thinned("recent").await.as_str()),
                ("blocks windows", "blocks")
            );
            assert_eq!((thinned("pinned").await.as_str(), thinned("new").await.as_str()), ("", ""));
            // What is counted stays, and the same again finds nothing.
            assert_eq!(store.totals().await.unwrap(), before);
            assert_eq!(store.slots("a", &key, all, 99).await.unwrap(), slots);
            assert!(store.faults().await.unwrap().is_empty());
            assert!(thin_out(&store, below, DAYS, false).await.unwrap().all.is_empty());
            store.unpin("pinned").await.unwrap();
            assert_eq!(thin_out(&store, below, DAYS, false).await.unwrap().all.len(), 1);
            // What lies elsewhere is not the farm's.
            let elsewhere = folder.path().join("elsewhere");
            let of =
                thin_out(&store, &elsewhere, RetentionTimes { blocks: NOW, windows: NOW, now: NOW }, false);
            assert_eq!(of.await.unwrap(), PrunedBundles::default());
        });
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_named_and_the_others_go_on() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path();
            put(&store, below, ("hunt", "damaged", "a"), 200, 9).await;
            put(&store, below, ("hunt", "other", "a"), 199, 5).await;
            let file = below.join("damaged/run.json");
            fs::write(&file, "{").unwrap();
            let came = SystemTime::UNIX_EPOCH + Duration::from_secs((NOW - 200 * DAY) as u64);
            fs::File::options().write(true).open(&file).unwrap().set_modified(came).unwrap();
            let done = thin_out(&store, below, DAYS, false).await.unwrap();
            assert_eq!((done.failed.len(), done.failed[0].0.as_str(), done.all.len()), (1, "damaged", 1));
            assert!(!done.failed[0].1.contains('\n') && below.join("damaged/events/spikes.jsonl").exists());
        });
    }
}
