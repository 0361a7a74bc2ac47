//! Retention of bundles: old parts, chosen by their runs and removed one by one.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;

use crate::cli::output::progress::CommandProgress;
use crate::cli::prune::retained::RetainedBundles;
use crate::cli::prune::times::RetentionTimes;
use crate::ingest::thin::{ThinnedBundle, WindowsKept};
use crate::store::{FarmStore, KeptBundle, ThinnedPart};
use crate::wall_clock::DAY;

const WEEK_DAYS: i64 = 7;

/// Parts removed from a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub run: String,
    /// `blocks`, `windows`, or both separated by a blank: the parts removed now.
    pub parts: String,
    pub of: ThinnedBundle,
}

impl Pruned {
    fn new(bundle: &KeptBundle) -> Pruned {
        Pruned { run: bundle.run.clone(), parts: String::new(), of: ThinnedBundle::default() }
    }

    /// Adds a removed part.
    fn add(&mut self, of: &ThinnedBundle) {
        self.of.blocks += of.blocks;
        self.of.window_bytes += of.window_bytes;
        self.of.windows += of.windows;
        self.of.windows_kept += of.windows_kept;
        self.parts = ThinnedPart::words(|part| match part {
            ThinnedPart::Blocks => self.of.blocks > 0,
            ThinnedPart::Windows => self.of.window_bytes > 0,
        });
    }
}

/// Sum over all bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedBundles {
    pub all: Vec<Pruned>,
    /// Old runs that stay whole.
    pub pinned: u64,
    /// Failed runs, with the reason; parts removed before the failure are in `all`.
    pub failed: Vec<(String, String)>,
}

impl PrunedBundles {
    /// Counts a bundle that stays, as failed if there is a reason, or as pinned. A run that
    /// `forget` removed since the bundles were listed is not counted.
    pub async fn stays(&mut self, store: &FarmStore, run: &str, why: Option<String>) -> Result<()> {
        if store.run(run).await?.is_none() {
            return Ok(());
        }
        match why {
            Some(why) => self.failed.push((run.to_owned(), why)),
            None => self.pinned += 1,
        }
        Ok(())
    }
}

/// Removes the old parts of bundles, or lists them.
pub async fn thin_out(
    store: &FarmStore,
    from: &RetainedBundles<'_>,
    times: RetentionTimes,
    dry: bool,
    progress: &CommandProgress,
) -> Result<PrunedBundles> {
    let bundles = store.bundles().await?;
    let mut staying = StayingWindows::of(store, &bundles).await?;
    let mut pruned = PrunedBundles::default();
    progress.step("pruning runs", Some(bundles.len() as u64));
    for (at, bundle) in bundles.iter().enumerate() {
        if at > 0 {
            progress.add();
        }
        let (retained, old) = match from.old(bundle, &times).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(failure) => {
                pruned.stays(store, &bundle.run, Some(failure.reason()?)).await?;
                continue;
            }
        };
        if bundle.pinned {
            pruned.pinned += 1;
            continue;
        }
        let kept = staying.of_run(&bundle.run);
        let take = async |part, dry| retained.thin(part, &kept, dry).await;
        let (one, end) = step_by_step(store, bundle, old.clone(), times.now, dry, take).await?;
        if !one.parts.is_empty() {
            pruned.all.push(one);
        }
        match end {
            Thinning::Done if !dry => retained.finish(old, &kept).await?,
            Thinning::Done => {}
            Thinning::Pinned => pruned.stays(store, &bundle.run, None).await?,
            Thinning::Failed(failure) => pruned.stays(store, &bundle.run, Some(failure.reason()?)).await?,
        }
    }
    Ok(pruned)
}

/// Result of thinning a bundle.
#[derive(Debug, PartialEq, Eq)]
pub enum Thinning<E> {
    Done,
    /// The run was pinned since, or removed.
    Pinned,
    /// The rest is unchanged, for this reason.
    Failed(E),
}

/// Removes one part of a bundle after the other. The pin is checked before each, and each is
/// recorded when it is done, regardless of the next.
pub async fn step_by_step<E>(
    store: &FarmStore,
    bundle: &KeptBundle,
    steps: Vec<ThinnedPart>,
    now: i64,
    dry: bool,
    take: impl AsyncFn(ThinnedPart, bool) -> std::result::Result<ThinnedBundle, E>,
) -> Result<(Pruned, Thinning<E>)> {
    let mut pruned = Pruned::new(bundle);
    for part in steps {
        let tried = match take(part, true).await {
            Ok(of) => of,
            Err(why) => return Ok((pruned, Thinning::Failed(why))),
        };
        if dry || tried.blocks + tried.window_bytes == 0 {
            pruned.add(&tried);
            continue;
        }
        let Some(begun) = store.begin_thinning(bundle, part, now).await? else {
            return Ok((pruned, Thinning::Pinned));
        };
        match take(part, false).await {
            Ok(of) => {
                store.end_thinning(begun, of.blocks + of.window_bytes).await?;
                pruned.add(&of);
            }
            Err(why) => {
                store.give_up_thinning(begun).await?;
                return Ok((pruned, Thinning::Failed(why)));
            }
        }
    }
    Ok((pruned, Thinning::Done))
}

/// The windows of all bundles that stay for ever.
pub struct StayingWindows<'a> {
    worst: BTreeSet<&'a str>,
    /// Culprits, by the first run that showed them.
    first: BTreeMap<String, Vec<String>>,
}

impl<'a> StayingWindows<'a> {
    pub async fn of(store: &FarmStore, bundles: &'a [KeptBundle]) -> Result<StayingWindows<'a>> {
        Ok(StayingWindows { worst: worst_of_weeks(bundles), first: store.first_of_culprits().await? })
    }

    pub fn of_run(&mut self, run: &str) -> WindowsKept {
        WindowsKept { culprits: self.first.remove(run).unwrap_or_default(), worst: self.worst.contains(run) }
    }
}

/// For each board and week, from Monday in UTC, the run with spikes with the largest latency.
fn worst_of_weeks(bundles: &[KeptBundle]) -> BTreeSet<&str> {
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
    use crate::fixture::{block_on, run_folder};
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::ingest::keep::keep;
    use crate::store::engines::on_each_engine;
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    const NOW: i64 = 2_000_000_000;
    const DAYS: RetentionTimes = RetentionTimes { blocks: NOW - 30 * DAY, windows: NOW - 90 * DAY, now: NOW };

    /// Adds a run received that many days ago, with its bundle below a folder.
    async fn put(store: &FarmStore, below: &Path, name: &str, id: &str, board: &str, days: i64, max: i64) {
        let (place, _) = keep(&run_folder(name), id, below).unwrap();
        let came = SystemTime::UNIX_EPOCH + Duration::from_secs((NOW - days * DAY) as u64);
        fs::File::options().write(true).open(place.join("run.json")).unwrap().set_modified(came).unwrap();
        let mut record = read(&FoundBundle { place, board: Some(board.into()) }).unwrap().0;
        (record.run.id, record.run.started) = (id.into(), NOW - days * DAY - 60);
        record.run.max_ns = Some(model::units::Nanos(max));
        record.slots.iter_mut().for_each(|slot| slot.run = id.into());
        store.put(&record).await.unwrap();
    }

    async fn thin_out(
        store: &FarmStore,
        below: &Path,
        times: RetentionTimes,
        dry: bool,
    ) -> Result<PrunedBundles> {
        let from = RetainedBundles::open(below, None)?;
        super::thin_out(store, &from, times, dry, &CommandProgress::begin(false)).await
    }

    /// Kept bundles count as progress, too, as each takes time. No other test reads the line.
    #[test]
    fn progress_goes_from_one_run_to_the_next() {
        block_on(async {
            let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
            for (run, days) in [("old", 200), ("new", 1), ("other", 199)] {
                put(&store, folder.path(), "hunt", run, "a", days, 9).await;
            }
            let progress = CommandProgress::undrawn();
            assert_eq!(progress.told(), None);
            let from = RetainedBundles::open(folder.path(), None).unwrap();
            super::thin_out(&store, &from, DAYS, true, &progress).await.unwrap();
            // At the last of three two are done.
            assert_eq!(progress.told(), Some(("pruning runs", 2, Some(3))));
            drop(progress);
        });
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
            thinned_at: 0,
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
                put(&store, below, "hunt", id, "a", days, max).await;
            }
            put(&store, below, "hunt", "recent", "a", 60, 7).await;
            put(&store, below, "measured", "new", "a", 29, 7).await;
            store.pin("pinned", "ann", "", NOW).await.unwrap();
            let has = |run: &str, file: &str| below.join(run).join(file).exists();
            let before = store.totals().await.unwrap();
            let key = read(&FoundBundle { place: run_folder("hunt"), board: None }).unwrap().0.run.key;
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
            // The counts stay, and a second pass finds nothing.
            assert_eq!(store.totals().await.unwrap(), before);
            assert_eq!(store.slots("a", &key, all, 99).await.unwrap(), slots);
            assert!(store.faults().await.unwrap().is_empty());
            assert!(thin_out(&store, below, DAYS, false).await.unwrap().all.is_empty());
            store.unpin("pinned").await.unwrap();
            assert_eq!(thin_out(&store, below, DAYS, false).await.unwrap().all.len(), 1);
            // Bundles elsewhere do not belong to the farm.
            let elsewhere = folder.path().join("elsewhere");
            let of =
                thin_out(&store, &elsewhere, RetentionTimes { blocks: NOW, windows: NOW, now: NOW }, false);
            assert_eq!(of.await.unwrap(), PrunedBundles::default());
        });
    }

    /// Its seconds cannot be removed, or the run is pinned between the two steps: the first is
    /// noted.
    #[test]
    fn each_step_is_noted_when_it_is_done_and_asks_for_the_pin_again() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            for run in ["fails", "pinned"] {
                put(&store, folder.path(), "hunt", run, "a", 200, 9).await;
            }
            let bundles = store.bundles().await.unwrap();
            let bundle = |run: &str| bundles.iter().find(|one| one.run == run).unwrap();
            let both = || vec![ThinnedPart::Windows, ThinnedPart::Blocks];
            let thinned = async |run: &str| store.run(run).await.unwrap().unwrap().thinned;

            let fails = async |part: ThinnedPart, dry: bool| match (part, dry) {
                (ThinnedPart::Blocks, false) => Err("it cannot be removed".to_owned()),
                (ThinnedPart::Blocks, true) => Ok(ThinnedBundle { blocks: 5, ..Default::default() }),
                _ => Ok(ThinnedBundle { window_bytes: 7, windows: 2, ..Default::default() }),
            };
            let (one, end) = step_by_step(&store, bundle("fails"), both(), NOW, false, fails).await.unwrap();
            assert_eq!((one.parts.as_str(), one.of.window_bytes, one.of.blocks), ("windows", 7, 0));
            assert_eq!(end, Thinning::Failed("it cannot be removed".to_owned()));
            assert_eq!(thinned("fails").await, "windows");

            let pins = async |part: ThinnedPart, dry: bool| {
                if part == ThinnedPart::Windows {
                    return Ok(ThinnedBundle { window_bytes: 7, ..Default::default() });
                }
                assert!(dry, "nothing of a pinned run goes");
                store.pin("pinned", "ann", "", NOW).await.unwrap();
                Ok(ThinnedBundle { blocks: 5, ..Default::default() })
            };
            let (one, end) = step_by_step(&store, bundle("pinned"), both(), NOW, false, pins).await.unwrap();
            assert_eq!((end, one.parts.as_str()), (Thinning::<String>::Pinned, "windows"));
            assert_eq!(thinned("pinned").await, "windows");
        });
    }

    #[test]
    fn a_run_that_is_removed_meanwhile_is_neither_pinned_nor_a_failure() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            put(&store, folder.path(), "hunt", "gone", "a", 200, 9).await;
            let bundles = store.bundles().await.unwrap();
            let mut pruned = PrunedBundles::default();
            pruned.stays(&store, "gone", Some("the bucket has nothing of it".to_owned())).await.unwrap();
            pruned.stays(&store, "gone", None).await.unwrap();
            assert_eq!((pruned.pinned, pruned.failed.len()), (1, 1), "it is still there");

            let mut pruned = PrunedBundles::default();
            let removes = async |_: ThinnedPart, dry: bool| {
                assert!(dry, "nothing begins to go of a run that is gone");
                store.forget_measured().await.unwrap();
                Ok::<_, String>(ThinnedBundle { blocks: 5, ..Default::default() })
            };
            let steps = vec![ThinnedPart::Blocks];
            let (_, end) = step_by_step(&store, &bundles[0], steps, NOW, false, removes).await.unwrap();
            assert_eq!(end, Thinning::Pinned);
            pruned.stays(&store, "gone", None).await.unwrap();
            pruned.stays(&store, "gone", Some("the bucket has nothing of it".to_owned())).await.unwrap();
            assert_eq!(pruned, PrunedBundles::default());
        });
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_named_and_the_others_go_on() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path();
            put(&store, below, "hunt", "damaged", "a", 200, 9).await;
            put(&store, below, "hunt", "other", "a", 199, 5).await;
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
