//! Repeated scans of folders for new bundles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bundle::record::texts::record_state;
use model::error::Result;
use model::text::{clean, quoted};
use serde::Serialize;

use super::take::{IntakeOutcome, Keeping, take};
use super::take_record::{TakenRecord, take_record};
use crate::ingest::find::{FoundBundle, FoundBundles, bundles, unread};
use crate::ingest::keep::is_of_the_copy;
use crate::ingest::stored::WINDOWS;
use crate::refused::RefusedBundle;
use crate::store::FarmStore;

/// Outcome of a scan: places of runs and records by their verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOutcome {
    pub stored: Vec<String>,
    /// Later states of runs that were still on.
    pub replaced: Vec<String>,
    pub had: Vec<String>,
    pub refused: Vec<RefusedBundle>,
    pub records: Vec<RecordOutcome>,
    /// Runs that are unchanged since an earlier scan.
    pub unchanged: u64,
    /// Records that were looked at for the first time.
    pub new_records: u64,
    /// True if a run or record of the previous scan is gone.
    pub vanished: bool,
    /// True if a folder could not be read.
    pub failed: bool,
    /// Remarks on stored runs and records, each with the place.
    pub remarks: Vec<String>,
}

/// Outcome of a record, summed over all scans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordOutcome {
    pub place: String,
    /// Number of new rows.
    pub stored: u64,
    /// Number of rows that were stored before.
    pub had: u64,
    /// Reasons for which rows were left out.
    pub left_out: Vec<String>,
}

/// Receiver of a scan's progress.
pub trait ScanProgress: Sync {
    /// That many runs and records were found.
    fn found(&self, number: u64);
    /// One of them was scanned.
    fn taken(&self);
}

impl ScanProgress for () {
    fn found(&self, _: u64) {}
    fn taken(&self) {}
}

/// Options of a scan.
pub struct ScanOptions<'a> {
    pub keeping: &'a Keeping<'a>,
    /// The board of everything found; otherwise the folders name it.
    pub board: Option<&'a str>,
    pub progress: &'a dyn ScanProgress,
}

/// Files of a run that grow while its document stays that of its last checkpoint, for ten seconds
/// at most, or for good if the run is killed.
const GROWING: [&str; 3] = ["blocks.jsonl", "tail", WINDOWS];

/// Versions of a run's files: inode and time of change of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunFiles {
    document: (u64, u64),
    growing: [Option<(u64, u64)>; GROWING.len()],
}

impl RunFiles {
    fn of(place: &Path) -> Option<RunFiles> {
        let document = host::file_version(&place.join("run.json"))?;
        Some(RunFiles { document, growing: GROWING.map(|name| host::file_version(&place.join(name))) })
    }
}

/// A run that is shown.
struct SeenRun {
    id: String,
    files: RunFiles,
    is_over: bool,
}

impl SeenRun {
    /// True if it is unchanged since it was scanned. A completed run does not change.
    fn is_still(&self, place: &Path) -> bool {
        if self.is_over {
            host::file_version(&place.join("run.json")) == Some(self.files.document)
        } else {
            RunFiles::of(place) == Some(self.files)
        }
    }
}

/// Runs that were scanned, with the versions of their files; for records, also the position up to
/// which they were stored.
#[derive(Default)]
pub struct SeenRuns {
    known: BTreeMap<PathBuf, SeenRun>,
    refused: BTreeMap<PathBuf, (RunFiles, String)>,
    records: BTreeMap<PathBuf, (TakenRecord, Vec<(String, u64)>)>,
    /// Results of the last scan, by the scanned folder.
    found: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Runs that had been removed at the last look, and are not to come again.
    removed: BTreeSet<String>,
    /// Number of removals ever, including runs that may be sent again.
    removals: i64,
}

impl ScanOutcome {
    /// Adds that of another folder.
    pub fn add(&mut self, other: ScanOutcome) {
        self.unchanged += other.unchanged;
        self.new_records += other.new_records;
        self.vanished |= other.vanished;
        self.failed |= other.failed;
        self.stored.extend(other.stored);
        self.replaced.extend(other.replaced);
        self.had.extend(other.had);
        self.refused.extend(other.refused);
        self.records.extend(other.records);
        self.remarks.extend(other.remarks);
    }

    /// Number of runs that were new, or in a new state.
    pub fn stored(&self) -> u64 {
        (self.stored.len() + self.replaced.len()) as u64
    }

    /// Number of runs that were there.
    pub fn had(&self) -> u64 {
        self.unchanged + self.had.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.stored() + self.had() == 0 && self.refused.is_empty() && self.records.is_empty()
    }

    /// Refused runs, and records of which a part was skipped.
    pub fn all_refused(&self) -> Vec<RefusedBundle> {
        let is_lacking = |record: &&RecordOutcome| !record.left_out.is_empty();
        let lacking = self.records.iter().filter(is_lacking);
        let refused = |record: &RecordOutcome| RefusedBundle {
            place: record.place.clone(),
            reason: record.left_out.join("; "),
        };
        self.refused.iter().cloned().chain(lacking.map(refused)).collect()
    }

    fn refuse(&mut self, place: &Path, reason: impl Into<String>) {
        self.refused.push(RefusedBundle { place: shown(place), reason: reason.into() });
    }

    fn remark(&mut self, place: &Path, remarks: Vec<String>) {
        self.remarks.extend(remarks.iter().map(|remark| format!("{}: {remark}", quoted(place))));
    }
}

impl SeenRuns {
    /// Stores the contents of a folder; returns true if something has vanished. The contents of an
    /// unreadable folder count as present.
    fn note(&mut self, root: &Path, found: &FoundBundles) -> bool {
        let mut there: BTreeSet<PathBuf> =
            found.runs.iter().chain(&found.records).map(|one| one.place.clone()).collect();
        let before = self.found.remove(root).unwrap_or_default();
        let is_hidden = |place: &&PathBuf| found.unread.iter().any(|(folder, _)| place.starts_with(folder));
        there.extend(before.iter().filter(is_hidden).cloned());
        let has_gone = !before.is_subset(&there);
        self.found.insert(root.to_owned(), there);
        has_gone
    }

    /// Forgets runs that were removed since the last scan, and all refusals once some of them may
    /// return, so that these are scanned again.
    async fn note_removed(&mut self, store: &FarmStore) -> Result<()> {
        let removed: BTreeSet<String> = store.forgotten().await?.into_iter().map(|(run, _)| run).collect();
        if removed != self.removed {
            self.known.retain(|_, run| !removed.contains(&run.id));
            self.refused.clear();
            self.removed = removed;
        }
        // A run that was removed and may return leaves no other trace.
        let removals = store.removals().await?;
        if removals != self.removals {
            let there: BTreeSet<String> = store.places().await?.into_iter().map(|run| run.id).collect();
            self.known.retain(|_, run| there.contains(&run.id));
            self.removals = removals;
        }
        Ok(())
    }
}

/// A place as documents and pages have it.
fn shown(place: &Path) -> String {
    clean(&place.to_string_lossy())
}

/// Looks through a folder once.
pub async fn scan(
    store: &FarmStore,
    root: &Path,
    seen: &mut SeenRuns,
    options: &ScanOptions<'_>,
) -> Result<ScanOutcome> {
    scan_by(bundles, store, root, seen, options).await
}

/// Scans a folder with a given search.
async fn scan_by(
    find: fn(&Path) -> FoundBundles,
    store: &FarmStore,
    root: &Path,
    seen: &mut SeenRuns,
    options: &ScanOptions<'_>,
) -> Result<ScanOutcome> {
    let (folder, mut outcome) = (root.to_owned(), ScanOutcome::default());
    let Ok(found) = tokio::task::spawn_blocking(move || find(&folder)).await else {
        outcome.refuse(root, "scanning it failed: report this, with the names of its contents");
        outcome.failed = true;
        return Ok(outcome);
    };
    if found.cut {
        outcome.refuse(root, "too many files to scan: give a folder that holds only runs");
    } else {
        outcome.vanished = seen.note(root, &found);
    }
    for (place, why) in &found.unread {
        outcome.refuse(place, unread(why));
    }
    seen.note_removed(store).await?;
    options.progress.found((found.runs.len() + found.records.len()) as u64);
    let named =
        |one: FoundBundle| FoundBundle { board: options.board.map(str::to_owned).or(one.board), ..one };
    for one in found.runs {
        take_run(store, named(one), seen, options.keeping, &mut outcome).await?;
        options.progress.taken();
    }
    for one in found.records {
        take_rows(store, named(one), seen, &mut outcome).await?;
        options.progress.taken();
    }
    Ok(outcome)
}

/// Stores the rows of a record that are new since the last scan.
async fn take_rows(
    store: &FarmStore,
    one: FoundBundle,
    seen: &mut SeenRuns,
    outcome: &mut ScanOutcome,
) -> Result<()> {
    let state = match record_state(&one.place) {
        Ok(state) => state,
        Err(error) => {
            outcome.refuse(&one.place, error.to_string());
            return Ok(());
        }
    };
    outcome.new_records += u64::from(!seen.records.contains_key(&one.place));
    let (taken, known) = seen.records.entry(one.place.clone()).or_default();
    if *known != state {
        let remarks = take_record(store, &one, taken).await?;
        outcome.remark(&one.place, remarks);
        *known = state;
    }
    let (stored, had, left_out) = (taken.stored, taken.had, taken.reasons());
    outcome.records.push(RecordOutcome { place: shown(&one.place), stored, had, left_out });
    Ok(())
}

async fn take_run(
    store: &FarmStore,
    one: FoundBundle,
    seen: &mut SeenRuns,
    keeping: &Keeping<'_>,
    outcome: &mut ScanOutcome,
) -> Result<()> {
    let place = &one.place;
    if seen.known.get(place).is_some_and(|known| known.is_still(place)) {
        outcome.unchanged += 1;
        return Ok(());
    }
    // Later writes are seen by the next scan.
    let files = RunFiles::of(place);
    if let Some((_, reason)) = seen.refused.get(place).filter(|(known, _)| Some(known) == files.as_ref()) {
        outcome.refuse(place, reason.clone());
        return Ok(());
    }
    let run = match take(store, &one, keeping).await? {
        IntakeOutcome::Rejected(why) => {
            outcome.refuse(place, why.words());
            // A copy that could not be written may be at the next look.
            if let Some(files) = files.filter(|_| !is_of_the_copy(why.words())) {
                seen.refused.insert(place.clone(), (files, why.words().to_owned()));
            }
            return Ok(());
        }
        IntakeOutcome::Duplicate(run) => {
            outcome.had.push(shown(place));
            run
        }
        IntakeOutcome::Stored(run) => {
            let list = if run.is_replaced { &mut outcome.replaced } else { &mut outcome.stored };
            list.push(shown(place));
            run
        }
    };
    let is_first = !seen.known.contains_key(place);
    if run.is_over || is_first {
        // A run that is on is read at each checkpoint, and is incomplete each time.
        outcome.remark(place, run.remarks);
    }
    if let Some(files) = files {
        seen.known.insert(place.clone(), SeenRun { id: run.id, files, is_over: run.is_over });
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use bundle::record::made::MadeRecord;
    use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
    use model::units::Nanos;

    use crate::fixture::{block_on, killed_run, run_folder};
    use crate::ingest::bundle::read;
    use crate::ingest::rows::RowsOf;
    use crate::store::engines::on_each_engine;

    const MADE: MadeRecord =
        MadeRecord { cpus: 1, span: Nanos(300 * Nanos::SECOND.0), reboot: 99, wakeups: 1_000 };

    const SHOWN: ScanOptions<'_> = ScanOptions { keeping: &Keeping::InPlace, board: None, progress: &() };

    async fn look_at(store: &FarmStore, root: &Path, seen: &mut SeenRuns) -> Result<ScanOutcome> {
        scan(store, root, seen, &SHOWN).await
    }

    fn record(place: &Path, from: u64, to: u64) {
        let (mut writer, _) = RecordWriter::open_folder(place, DEFAULT_SIZE).unwrap();
        for n in from..to {
            writer.append(&MADE.run(n), &MADE.interval(n)).unwrap();
        }
    }

    #[test]
    fn a_run_that_names_no_board_is_refused_with_the_remedy_until_it_is_named() {
        block_on(async {
            let (store, root) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
            let place = root.path().join("run");
            std::fs::create_dir(&place).unwrap();
            let text = std::fs::read_to_string(run_folder("measured").join("run.json")).unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            document["host"]["model"] = "".into();
            std::fs::write(place.join("run.json"), document.to_string()).unwrap();
            let mut seen = SeenRuns::default();
            let refused = look_at(&store, root.path(), &mut seen).await.unwrap().refused;
            assert!(refused.len() == 1 && refused[0].reason.contains("--board NAME"), "{refused:?}");
            assert!(store.boards().await.unwrap().is_empty(), "machines would share a board");
            let named = ScanOptions { board: Some("press-4"), ..SHOWN };
            let outcome = scan(&store, root.path(), &mut SeenRuns::default(), &named).await.unwrap();
            assert_eq!((outcome.stored(), outcome.refused.len()), (1, 0));
        });
    }

    #[test]
    fn a_record_is_shown_and_looked_at_again_where_it_grew() {
        block_on(async {
            let store = FarmStore::in_memory().await.unwrap();
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            let place = root.path().join("west/watch");
            let look = async |seen: &mut SeenRuns| {
                let outcome = look_at(&store, root.path(), seen).await.unwrap();
                let rows = store.boards().await.unwrap();
                let id = match rows.first() {
                    Some(board) => store.board_for(&board.board, &board.name).await.unwrap(),
                    None => return (outcome, 0),
                };
                let all = store.row_stretches(id, &RowsOf::default(), 0, 999).await.unwrap();
                // Each series has the same ones.
                let of_one = all.iter().filter(|row| row.2 == all[0].2);
                (outcome, of_one.map(|row| row.4 - row.3 + 1).sum::<i64>())
            };
            let (outcome, rows) = look(&mut seen).await;
            assert_eq!((outcome, rows), (ScanOutcome::default(), 0));
            std::fs::create_dir(root.path().join("west")).unwrap();
            record(&place, 0, 9);
            let (outcome, rows) = look(&mut seen).await;
            assert_eq!((outcome.new_records, outcome.all_refused().len(), rows), (1, 0, 9));
            let (outcome, rows) = look(&mut seen).await;
            assert_eq!((outcome.records.len() as u64 - outcome.new_records, rows), (1, 9));
            record(&place, 9, 12);
            let (outcome, rows) = look(&mut seen).await;
            assert_eq!(
                (outcome.records.len() as u64 - outcome.new_records, outcome.all_refused().len(), rows),
                (1, 0, 12)
            );
            assert_eq!(store.boards().await.unwrap()[0].board, "west");
            std::fs::write(place.join("record.json"), "{\"schema\":\"onbeat.watch/99\"}\n").unwrap();
            for _ in 0..2 {
                let (outcome, rows) = look(&mut seen).await;
                assert_eq!(outcome.all_refused().len(), 1);
                assert!(
                    outcome.all_refused()[0].reason.contains("newer onbeat"),
                    "{:?}",
                    outcome.all_refused()
                );
                assert_eq!(rows, 12);
            }
        });
    }

    #[test]
    fn a_run_that_was_killed_is_read_once_and_again_where_it_goes_on() {
        block_on(async {
            let store = FarmStore::in_memory().await.unwrap();
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            let fixture = run_folder("measured");
            let place = root.path().join("a/run");
            std::fs::create_dir_all(&place).unwrap();
            let over = std::fs::read_to_string(fixture.join("run.json")).unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&over).unwrap();
            document["complete"] = false.into();
            std::fs::write(place.join("run.json"), document.to_string()).unwrap();
            let look = async |seen: &mut SeenRuns| {
                let outcome = look_at(&store, root.path(), seen).await.unwrap();
                (outcome.stored(), outcome.had(), outcome.all_refused().len())
            };
            assert_eq!(look(&mut seen).await, (1, 0, 0));
            assert_eq!(look(&mut seen).await, (0, 1, 0));
            // A checkpoint is another file in its place.
            std::fs::write(place.join("next"), over).unwrap();
            std::fs::rename(place.join("next"), place.join("run.json")).unwrap();
            assert_eq!(look(&mut seen).await, (1, 0, 0));
            let run = store.runs("a", 9).await.unwrap().remove(0);
            assert!(run.complete);
        });
    }

    #[test]
    fn a_run_that_was_removed_is_refused_by_the_next_look_and_taken_once_it_may_come_again() {
        on_each_engine(async |store| {
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            killed_run(&root.path().join("a/run"), 1);
            let mut look = async || {
                let outcome = look_at(&store, root.path(), &mut seen).await.unwrap();
                let reasons: Vec<String> = outcome.all_refused().into_iter().map(|one| one.reason).collect();
                (outcome.stored(), outcome.had(), reasons.join("; "))
            };
            assert_eq!(look().await, (1, 0, String::new()));
            let id = store.runs("a", 1).await.unwrap().remove(0).id;
            store.forget_run(&id, None, Some(5)).await.unwrap();
            for _ in 0..2 {
                let (stored, had, why) = look().await;
                assert!(stored + had == 0 && why.contains("it was removed from this farm"), "{why}");
            }
            assert!(store.allow_again(&id).await.unwrap());
            assert_eq!(look().await, (1, 0, String::new()));
            assert_eq!(look().await, (0, 1, String::new()));
        });
    }

    /// As by `forget --allow`, which leaves no mark, and by one after a `forget` between two scans.
    #[test]
    fn a_run_that_was_removed_and_may_come_at_once_is_taken_in_by_the_next_look() {
        on_each_engine(async |store| {
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
            for name in ["hunt", "measured"] {
                crate::ingest::keep::keep(&fixtures.join(name), name, &root.path().join("a")).unwrap();
            }
            let mut look = async || {
                let outcome = look_at(&store, root.path(), &mut seen).await.unwrap();
                (outcome.stored(), outcome.had(), outcome.all_refused().len())
            };
            assert_eq!(look().await, (2, 0, 0));
            let id = store.runs("a", 1).await.unwrap().remove(0).id;
            for at in [None, Some(5), None] {
                store.forget_run(&id, None, at).await.unwrap();
                assert_eq!(store.allow_again(&id).await.unwrap(), at.is_some());
                assert_eq!(look().await, (1, 1, 0), "{at:?}");
                assert!(store.run(&id).await.unwrap().is_some());
                assert_eq!(look().await, (0, 2, 0), "{at:?}");
            }
        });
    }

    #[test]
    fn the_last_seconds_of_a_run_that_was_killed_are_seen_beside_the_same_document() {
        on_each_engine(async |store| {
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            let place = root.path().join("a/run");
            let mut look = async || {
                let outcome = look_at(&store, root.path(), &mut seen).await.unwrap();
                let run = store.runs("a", 9).await.unwrap().remove(0);
                ((outcome.stored(), outcome.had(), outcome.all_refused().len()), run.cycles)
            };
            killed_run(&place, 0);
            let (first, before) = look().await;
            assert_eq!((first, look().await), ((1, 0, 0), ((0, 1, 0), before)));
            killed_run(&place, 3);
            assert_eq!(look().await, ((1, 0, 0), before + 30));
            assert_eq!(look().await, ((0, 1, 0), before + 30));
        });
    }

    #[test]
    fn what_was_moved_away_is_noticed_once() {
        block_on(async {
            let store = FarmStore::in_memory().await.unwrap();
            let (root, mut seen) = (tempfile::tempdir().unwrap(), SeenRuns::default());
            let at = |name: &str| root.path().join(name);
            let fixture = run_folder("measured");
            std::fs::create_dir_all(at("a/run")).unwrap();
            for file in ["run.json", "blocks.jsonl"] {
                std::fs::copy(fixture.join(file), at("a/run").join(file)).unwrap();
            }
            record(&at("b/watch"), 0, 3);
            let look = async |seen: &mut SeenRuns| {
                let outcome = look_at(&store, root.path(), seen).await.unwrap();
                (outcome.vanished, outcome.stored(), outcome.new_records)
            };
            assert_eq!(look(&mut seen).await, (false, 1, 1));
            assert_eq!(look(&mut seen).await, (false, 0, 0));
            for gone in ["a/run", "b/watch"] {
                std::fs::remove_dir_all(at(gone)).unwrap();
                assert!(look(&mut seen).await.0, "{gone}");
                assert_eq!(look(&mut seen).await, (false, 0, 0));
            }
            // An unreadable folder is reported, and nothing of it counts as vanished.
            record(&at("b/watch"), 0, 3);
            assert_eq!(look(&mut seen).await, (false, 0, 0));
            let fails = |_: &Path| -> FoundBundles { panic!("as a fault of its own") };
            let outcome = scan_by(fails, &store, root.path(), &mut seen, &SHOWN).await.unwrap();
            assert!(outcome.failed && !outcome.vanished && outcome.all_refused().len() == 1, "{outcome:?}");
            assert_eq!(look(&mut seen).await, (false, 0, 0));
            // Another folder's are another's.
            let below = root.path().join("a");
            assert!(!look_at(&store, &below, &mut seen).await.unwrap().vanished);
        });
    }

    #[test]
    fn what_lies_in_a_folder_that_cannot_be_read_is_not_taken_for_gone() {
        let one = |place: &&str| FoundBundle { place: place.into(), board: None };
        let found = |runs: &[&str], unread: &[&str]| FoundBundles {
            runs: runs.iter().map(one).collect(),
            unread: unread.iter().map(|folder| (folder.into(), "EACCES".to_owned())).collect(),
            ..FoundBundles::default()
        };
        let (root, mut seen) = (Path::new("/r"), SeenRuns::default());
        assert!(!seen.note(root, &found(&["/r/a/1", "/r/b/1"], &[])));
        assert!(!seen.note(root, &found(&["/r/a/1"], &["/r/b"])));
        assert!(seen.note(root, &found(&[], &["/r/b"])), "the other one");
        assert!(seen.note(root, &found(&[], &[])), "what can be read again and is empty");
    }

    #[test]
    fn folders_whose_names_are_alike_in_an_address_are_boards_of_their_own() {
        const STAND: &str = "\u{441}\u{442}\u{435}\u{43d}\u{434}";
        let names = ["\u{5317}\u{4eac}-1", "\u{4e0a}\u{6d77}-1", STAND, "\u{43f}\u{440}", "a b", "a-b"];
        on_each_engine(async |store| {
            let root = tempfile::tempdir().unwrap();
            let fixture = run_folder("measured");
            let document = std::fs::read_to_string(fixture.join("run.json")).unwrap();
            let id = read(&FoundBundle { place: fixture.clone(), board: None }).unwrap().0.run.id;
            for (at, name) in names.iter().enumerate() {
                let place = root.path().join(name).join("run");
                std::fs::create_dir_all(&place).unwrap();
                let document = document.replacen(&id, &format!("run-{at}"), 1);
                std::fs::write(place.join("run.json"), document).unwrap();
                record(&root.path().join(name).join("watch"), 0, 3);
            }
            let mut seen = SeenRuns::default();
            let outcome = look_at(&store, root.path(), &mut seen).await.unwrap();
            assert_eq!((outcome.stored(), outcome.new_records, outcome.all_refused().len()), (6, 6, 0));
            let boards = store.boards().await.unwrap();
            let called: BTreeSet<&str> = boards.iter().map(|board| board.name.as_str()).collect();
            assert_eq!(called, BTreeSet::from(names));
            for board in &boards {
                let id = store.board_for(&board.board, &board.name).await.unwrap();
                let stretches = store.row_stretches(id, &RowsOf::default(), 0, 999).await.unwrap();
                assert_eq!((board.runs, stretches.len()), (1, 3), "{board:?}");
            }
            // Another scan without knowledge of the first.
            let outcome = look_at(&store, root.path(), &mut SeenRuns::default()).await.unwrap();
            assert_eq!((outcome.stored(), outcome.had(), store.boards().await.unwrap().len()), (0, 6, 6));
        });
    }
}
