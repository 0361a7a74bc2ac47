//! `onbeat-farm backup`: the store and its bundles into another folder.

use std::path::{Path, PathBuf};

use host::MachineFiles;
use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::{clean, quoted, several};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::FarmEnvironment;
use super::backup_folder::BackupFolder;
use super::backup_state::{CopiedState, LiveRun, drop_run, take_over};
use super::document_flags::DocumentFlags;
use super::farm_flags::FarmFlags;
use super::progress::CommandProgress;
use super::store_flag::StorePlace;
use crate::folders::lies_in;
use crate::ingest::bundle::is_id;
use crate::ingest::environment::hex;
use crate::ingest::keep::{copying_turn, is_of_the_copy, keep};
use crate::ingest::remove_tree::remove_tree;
use crate::objects::name_in_bucket;
use crate::store::{BundlePlace, FarmStore};

/// Copy the store and its bundles into a folder, while the server runs
///
/// The database is copied as it is at one moment, then the bundles that it names; a run that
/// changed since is noted as it was copied, and one that was removed is left out. What is copied is
/// a store by itself, wherever it is copied to: `serve --store sqlite:DIR/farm.db`, with
/// `DIR/farm.db.bundles` beside it. It is whole, or not there: it is made as `.NAME.onbeat.part`
/// beside its folder, which a failure removes, and the next backup what a killed one left. What
/// lies in a bucket stays there, and is backed up there.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  onbeat-farm backup /mnt/backup/$(date +%F)")]
pub struct Args {
    /// The folder; it is made, and nothing may be in it yet
    dir: PathBuf,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

/// What is in the backup, and what is not.
#[derive(Serialize)]
struct BackupDocument {
    schema: &'static str,
    /// The folder.
    place: String,
    /// Runs whose bundles are in it.
    copied: u64,
    missing: Vec<MissingBundle>,
    /// Runs whose bundles stay in the bucket.
    in_bucket: u64,
    /// Runs that were removed from the farm meanwhile, and are not in it.
    removed: Vec<String>,
}

/// A run that is in the backup without its bundle.
#[derive(Serialize)]
struct MissingBundle {
    run: String,
    reason: String,
}

/// How often a bundle is copied that changes meanwhile, and the database.
const TRIES: u32 = 3;

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let (place, bucket) = args.farm.open(environment)?;
    if place.is_database() {
        return Err(Failure::usage(
            "backup copies a store in a file: copy PostgreSQL's with `pg_dump --format=custom`, and then \
             what lies at --objects",
        ));
    }
    let store = place.open_existing().await?;
    if lies_in(&args.dir, &place.bundles) {
        return Err(Failure::usage(format!(
            "{} is in the farm's own folder of bundles, where `prune` removes what is no run: name a folder \
             elsewhere",
            quoted(&args.dir)
        )));
    }
    host::make_new_files_private();
    let progress = args.output.progress(environment);
    let from = (store, place.bundles);
    let (folder, counted) = copy_whole(&args.dir, from, bucket.is_some(), (&args.output, &progress)).await?;
    progress.step("waiting for the disk", None);
    let dir = folder.finish().map_err(|failure| not_made(&args.dir, failure))?;
    drop(progress);
    let runs = several(counted.copied, "run", "runs");
    args.output.remark(&format!("the store and {runs} are in {}", quoted(&dir)));
    if let Some(bucket) = bucket {
        let runs = several(counted.in_bucket, "run lies", "runs lie");
        args.output.remark(&format!(
            "{runs} in {}: back them up there, by its versions or a copy of it",
            bucket.name()
        ));
    }
    let exit = if counted.missing.is_empty() { Exit::Ok } else { Exit::Inconclusive };
    let CountedBackup { copied, missing, in_bucket, removed, .. } = counted;
    let place = dir.to_string_lossy().into_owned();
    let schema = "onbeat.farm-backup/1";
    args.output.write(&BackupDocument { schema, place, copied, missing, in_bucket, removed })?;
    Ok(exit)
}

/// What became of the bundles.
#[derive(Default)]
struct CountedBackup {
    copied: u64,
    missing: Vec<MissingBundle>,
    in_bucket: u64,
    removed: Vec<String>,
    /// It is of no use: the database is to be copied as it is now.
    begins_again: bool,
}

/// Copies the store into a folder that becomes the backup, as often as that begins again.
async fn copy_whole(
    dir: &Path,
    (store, own): (FarmStore, PathBuf),
    has_bucket: bool,
    (output, progress): (&DocumentFlags, &CommandProgress),
) -> Result<(BackupFolder, CountedBackup)> {
    for _ in 0..TRIES {
        let folder = BackupFolder::make(dir).await?;
        let copied = copy_all(store.clone(), own.clone(), &folder, has_bucket, (output, progress)).await;
        let counted = copied.map_err(|failure| not_made(dir, failure))?;
        if !counted.begins_again {
            return Ok((folder, counted));
        }
    }
    let failure = Failure::internal("runs are removed from the farm meanwhile: try again after that");
    Err(not_made(dir, failure))
}

fn not_made(dir: &Path, failure: Failure) -> Failure {
    Failure { message: format!("no backup is left in {}: {}", quoted(dir), failure.message), ..failure }
}

/// Copies the store and its bundles into a folder that is made for them.
async fn copy_all(
    store: FarmStore,
    own: PathBuf,
    folder: &BackupFolder,
    has_bucket: bool,
    (output, progress): (&DocumentFlags, &CommandProgress),
) -> Result<CountedBackup> {
    // The database first: what comes later is not in it, and what it names is copied after it.
    let file = folder.file();
    let text = file.to_str().ok_or_else(|| Failure::usage("the folder's name is no text: choose another"))?;
    // SQLite would make one that everybody may read.
    host::make_private_file(&file).map_err(|error| {
        let what = format!("cannot write to {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Usage, "name a folder of your own, with space")
    })?;
    progress.step("copying the database", None);
    store.copy_to(text).await?;
    let copy = StorePlace::file(file.clone());
    let to = copy.open_existing().await?;
    let removals = to.removals().await?;
    let backup = StoreBackup { from: store, own, to, bundles: copy.bundles, removals };
    let counted = backup.copy_bundles(has_bucket, output, progress).await;
    // It is one file then, which can be copied by itself.
    backup.to.close().await;
    counted
}

/// A store that is copied with its folder of bundles, and its copy with its own.
struct StoreBackup {
    from: FarmStore,
    own: PathBuf,
    to: FarmStore,
    bundles: PathBuf,
    /// How many runs had been removed when the database was copied.
    removals: i64,
}

/// What became of a bundle.
#[derive(Debug, PartialEq, Eq)]
enum BackedUp {
    Here,
    InBucket,
    /// It is not in the farm any more, nor in the backup.
    Removed,
    /// It was removed from the farm, and what it added to the copy of the database cannot be told
    /// from what others did.
    Mixed,
    /// Why.
    Missing(String),
}

impl StoreBackup {
    /// Copies the bundles of all runs.
    async fn copy_bundles(
        &self,
        has_bucket: bool,
        output: &DocumentFlags,
        progress: &CommandProgress,
    ) -> Result<CountedBackup> {
        let mut counted = CountedBackup::default();
        let runs = self.to.places().await?;
        progress.step("copying runs", Some(runs.len() as u64));
        for run in runs {
            match self.copy(&run, has_bucket).await? {
                BackedUp::Here => counted.copied += 1,
                BackedUp::InBucket => counted.in_bucket += 1,
                BackedUp::Removed => {
                    output.remark(&format!("{} was removed from the farm meanwhile: it is left out", run.id));
                    counted.removed.push(run.id.clone());
                }
                BackedUp::Mixed => {
                    output.remark(&format!(
                        "{} was removed from the farm meanwhile: the database has to be copied again",
                        run.id
                    ));
                    return Ok(CountedBackup { begins_again: true, ..counted });
                }
                BackedUp::Missing(why) => {
                    let reason = clean(&why);
                    output.remark(&format!("{} is not in the backup: {reason}", run.id));
                    counted.missing.push(MissingBundle { run: run.id.clone(), reason });
                }
            }
            progress.add();
        }
        Ok(counted)
    }

    /// Copies the bundle of a run. Also where that fails the copy names no place outside itself.
    async fn copy(&self, run: &BundlePlace, has_bucket: bool) -> Result<BackedUp> {
        // The copy of the database has the places that are its own.
        let Some(now) = self.from.place_of(&run.id).await? else { return self.drop_run(&run.id).await };
        let is_as_then = now.digest == run.digest;
        let from = BundlePlace { place: now.place, ..run.clone() };
        let is_in_bucket = has_bucket && name_in_bucket(Path::new(&from.place), &self.own).is_some();
        // There each state has a name of its own, and this is the one in the copy of the database.
        let named = Path::new(&run.place).file_name().and_then(|name| name.to_str());
        let name = match named.filter(|_| is_in_bucket) {
            Some(name) => name.to_owned(),
            None => free_name(&from, &self.own, &self.bundles),
        };
        let to = self.bundles.join(&name).to_string_lossy().into_owned();
        if to != run.place {
            self.to.moved(&run.id, &to).await?;
        }
        if is_in_bucket {
            // There it stays, and loses what `prune` takes of it meanwhile.
            if is_as_then {
                take_over(&self.from.notes_of(&run.id).await?, &self.to, &run.id).await?;
            }
            return Ok(BackedUp::InBucket);
        }
        let is_own = lies_in(Path::new(&from.place), &self.own);
        let mut why = String::new();
        for at in 1..=TRIES {
            match self.try_copy(run, &name, (is_own, at == TRIES)).await? {
                Ok(BackedUp::Removed) => {
                    // A try before may have copied it.
                    if let Ok(top) = Dir::existing(&self.bundles) {
                        remove_tree(&MachineFiles::folder(&self.bundles), &top, &name, 0);
                    }
                    return self.drop_run(&run.id).await;
                }
                Ok(backed_up) => return Ok(backed_up),
                // It is the backup that has no room, and the others have none either.
                Err(found) if is_of_the_copy(&found) => {
                    return Err(Failure::internal(format!("{}: {found}", run.id)));
                }
                Err(found) => why = found,
            }
        }
        // No other run gets its name.
        let _ = Dir::create(&self.bundles.join(&name));
        Ok(BackedUp::Missing(why))
    }

    /// Drops a run that was removed from the farm after the database was copied.
    async fn drop_run(&self, id: &str) -> Result<BackedUp> {
        Ok(match drop_run(&self.from, &self.to, id).await? {
            true => BackedUp::Removed,
            false => BackedUp::Mixed,
        })
    }

    /// Copies it once; why it is to be tried again, in a line.
    async fn try_copy(
        &self,
        run: &BundlePlace,
        name: &str,
        (is_own, is_last): (bool, bool),
    ) -> Result<std::result::Result<BackedUp, String>> {
        // Who takes in another state of a run, or removes one, changes its copy and the store in
        // one turn.
        let turn = match is_own || !run.is_over {
            true => copying_turn(&self.own).await,
            false => Ok(None),
        };
        let turn = match turn {
            Ok(turn) => turn,
            Err(why) => return Ok(Err(why)),
        };
        let Some(before) = self.from.place_of(&run.id).await? else { return Ok(Ok(BackedUp::Removed)) };
        let copy = match keep(Path::new(&before.place), name, &self.bundles) {
            Ok((copy, _)) if host::identity(&copy.join("run.json")).is_some() => copy,
            Ok(_) => return Ok(Err("it is not there any more".into())),
            Err(why) => return Ok(Err(why)),
        };
        // Asked after the copy: `prune` takes no turn, and notes what it removes before it does so.
        let live = LiveRun::of(&self.from, run, &self.own, self.removals).await?;
        drop(turn);
        let Some(live) = live else { return Ok(Ok(BackedUp::Removed)) };
        // Where there are no locks, another state may have come beside it.
        if live.is_own && !is_last && live.is_other_than(&before) {
            return Ok(Err("another state of it came while it was copied".into()));
        }
        let state = CopiedState { from: &self.from, to: &self.to, run, live, copy: &copy, is_last };
        Ok(state.settle().await?.map(|is_settled| if is_settled { BackedUp::Here } else { BackedUp::Mixed }))
    }
}

/// What a bundle is called in the backup, where nothing is called so yet: as in the folder of
/// copies, whose names tell its states, and by its run where it is shown from elsewhere: folders of
/// several boards may have one name.
fn free_name(run: &BundlePlace, own: &Path, backup: &Path) -> String {
    let place = Path::new(&run.place);
    let name = place.file_name().and_then(|name| name.to_str()).filter(|_| lies_in(place, own));
    let name = name.map(str::to_owned).unwrap_or_else(|| match is_id(&run.id) {
        true => run.id.clone(),
        false => format!("run-{}", hex(&Sha256::digest(&run.id)[..8])),
    });
    let (mut free, mut number) = (name.clone(), 1u64);
    while host::identity(&backup.join(&free)).is_some() {
        number += 1;
        free = format!("{name}.{number}");
    }
    free
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::made_runs::made;
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::ingest::thin::thin_blocks;
    use crate::intake::bundle_fault;
    use crate::objects::tests::hunt_that_is_on;
    use crate::records::BundleRecord;
    use crate::store::{BundleNotes, PutOutcome, RunRemoval, ShownNumbers, ThinnedPart};
    use std::fs;

    /// A test in an empty folder, whose path has no links.
    fn in_a_folder(test: impl AsyncFnOnce(&Path)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let top = tempfile::tempdir().unwrap();
        let path = host::whole_path(top.path()).unwrap();
        runtime.block_on(test(&path));
    }

    /// A recorded run that is over.
    fn recorded_hunt() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt")
    }

    fn copied(from: &Path, to: &Path) -> PathBuf {
        keep(from, &to.file_name().unwrap().to_string_lossy(), to.parent().unwrap()).unwrap().0
    }

    /// What is stored of a run that is on, in the folder of copies or shown from elsewhere, and
    /// then changes after the database was copied.
    async fn backed_up(folder: &Path, is_own: bool, first: &Path, later: &Path) {
        let own = folder.join("farm.db.bundles");
        let place = if is_own { own.join("r") } else { folder.join("runs/r") };
        let taken_in = async |store: &FarmStore| {
            let found = FoundBundle { place: place.clone(), board: Some("a".into()) };
            let record = read(&found).unwrap().0;
            let outcome = store.put(&record).await.unwrap();
            assert!(matches!(outcome, PutOutcome::Stored | PutOutcome::Replaced), "{outcome:?}");
        };
        copied(first, &place);
        let from = FarmStore::file(&folder.join("farm.db")).await.unwrap();
        taken_in(&from).await;
        let bundles = folder.join("backup/farm.db.bundles");
        fs::create_dir(folder.join("backup")).unwrap();
        let file = folder.join("backup/farm.db");
        from.copy_to(file.to_str().unwrap()).await.unwrap();
        copied(later, &place);
        if is_own {
            taken_in(&from).await;
        }
        let to = FarmStore::file(&file).await.unwrap();
        let backup = StoreBackup { from, own, to, bundles, removals: 0 };
        let run = backup.to.places().await.unwrap().remove(0);
        assert_eq!(backup.copy(&run, false).await.unwrap(), BackedUp::Here);
        let counted = backup.to.counted_seconds().await.unwrap();
        let noted = backup.to.places().await.unwrap();
        assert_eq!((noted.len(), noted[0].id.as_str()), (1, run.id.as_str()));
        assert!(lies_in(Path::new(&noted[0].place), &backup.bundles));
        assert_eq!(bundle_fault(&noted[0], &backup.bundles, counted.get(&run.id)), None);
        assert_eq!(backup.to.faults().await.unwrap(), [""; 0]);
        let same = |file: &str| {
            let of = |place: &Path| fs::read(place.join(file)).unwrap();
            assert!(of(Path::new(&noted[0].place)) == of(later), "{file}");
        };
        ["run.json", "blocks.jsonl"].into_iter().for_each(same);
    }

    #[test]
    fn a_run_that_is_on_is_noted_as_it_was_copied() {
        in_a_folder(async |made| {
            let over = recorded_hunt();
            let (earlier, later) = (hunt_that_is_on(made, 2), hunt_that_is_on(made, 1));
            // Its seconds are written more often than its document.
            let begun = copied(&later, &made.join("begun"));
            let blocks = fs::read_to_string(begun.join("blocks.jsonl")).unwrap();
            let most = blocks.trim_end().rsplit_once('\n').unwrap().0;
            fs::write(begun.join("blocks.jsonl"), format!("{most}\n")).unwrap();
            // One that was killed has its last seconds in other files.
            let (killed, whole) = (made.join("killed"), made.join("whole"));
            crate::fixture::killed_run(&killed, 1);
            crate::fixture::killed_run(&whole, 4);
            for (at, (is_own, first, later)) in [
                (true, &killed, &whole),
                (false, &killed, &whole),
                (false, &earlier, &later),
                (false, &begun, &later),
                (false, &later, &over),
                (true, &earlier, &later),
                (true, &later, &over),
            ]
            .into_iter()
            .enumerate()
            {
                let folder = made.join(format!("case-{at}"));
                fs::create_dir(&folder).unwrap();
                backed_up(&folder, is_own, first, later).await;
            }
        });
    }

    /// A bundle as the one of a run in the folder of copies, and in the store beside it.
    async fn taken_in(from: &FarmStore, own: &Path, bundle: &Path) -> String {
        if own.join("r").exists() {
            fs::remove_dir_all(own.join("r")).unwrap();
        }
        let place = copied(bundle, &own.join("r"));
        let record = read(&FoundBundle { place, board: Some("a".into()) }).unwrap().0;
        assert_eq!(from.put(&record).await.unwrap(), PutOutcome::Stored);
        record.run.id
    }

    /// A store with a run, whose database was copied; the run as this copy has it.
    async fn begun_backup(top: &Path, bundle: &Path) -> (StoreBackup, BundlePlace) {
        fs::create_dir_all(top.join("backup")).unwrap();
        let (own, from) = (top.join("farm.db.bundles"), FarmStore::file(&top.join("farm.db")).await.unwrap());
        taken_in(&from, &own, bundle).await;
        let file = top.join("backup/farm.db");
        from.copy_to(file.to_str().unwrap()).await.unwrap();
        let (to, bundles) = (FarmStore::file(&file).await.unwrap(), top.join("backup/farm.db.bundles"));
        let run = to.places().await.unwrap().remove(0);
        (StoreBackup { from, own, to, bundles, removals: 0 }, run)
    }

    /// What `check` says of a backup with one run.
    async fn faults_of(backup: &StoreBackup) -> Vec<String> {
        let run = backup.to.places().await.unwrap().remove(0);
        let counted = backup.to.counted_seconds().await.unwrap();
        let found = bundle_fault(&run, &backup.bundles, counted.get(&run.id));
        let mut faults: Vec<String> = found.into_iter().collect();
        faults.extend(backup.to.faults().await.unwrap());
        faults
    }

    #[test]
    fn what_goes_of_a_run_while_it_is_copied_is_noted_in_the_backup() {
        in_a_folder(async |top| {
            let over = recorded_hunt();
            let killed = top.join("killed");
            crate::fixture::killed_run(&killed, 4);
            for (name, bundle) in [("over", &over), ("killed", &killed)] {
                let folder = top.join(format!("of-{name}"));
                let (backup, run) = begun_backup(&folder, bundle).await;
                assert!(run.has_seconds && run.is_over == (name == "over"), "{name}");
                let counted = backup.to.counted_seconds_of(&run.id).await.unwrap();
                let sent = BundleNotes { thinned: None, sent_bytes: Some(1 << 40) };
                for store in [&backup.from, &backup.to] {
                    store.put_notes(&run.id, &sent).await.unwrap();
                }
                let kept = backup.from.bundles().await.unwrap().remove(0);
                let begun = backup.from.begin_thinning(&kept, ThinnedPart::Blocks, 9).await.unwrap();
                let freed = thin_blocks(Path::new(&kept.place), false).unwrap();
                backup.from.end_thinning(begun.unwrap(), freed).await.unwrap();
                assert!(freed > 0, "{name}");
                assert_eq!(backup.copy(&run, false).await.unwrap(), BackedUp::Here, "{name}");
                assert_eq!(faults_of(&backup).await, [""; 0], "{name}");
                let notes = backup.to.notes_of(&run.id).await.unwrap();
                assert_eq!(notes.thinned, Some(("blocks".to_owned(), 9)), "{name}");
                assert_eq!(notes.sent_bytes, Some((1 << 40) - freed as i64), "{name}");
                // What was counted of them stays.
                assert_eq!(backup.to.counted_seconds_of(&run.id).await.unwrap(), counted, "{name}");
            }
        });
    }

    #[test]
    fn what_goes_in_a_bucket_while_the_database_is_copied_is_noted_in_the_backup() {
        in_a_folder(async |top| {
            let (backup, run) = begun_backup(top, &recorded_hunt()).await;
            let kept = backup.from.bundles().await.unwrap().remove(0);
            let begun = backup.from.begin_thinning(&kept, ThinnedPart::Windows, 9).await.unwrap();
            backup.from.end_thinning(begun.unwrap(), 1).await.unwrap();
            // The folder is the bucket's cache, and has the bundle or not.
            assert_eq!(backup.copy(&run, true).await.unwrap(), BackedUp::InBucket);
            let notes = backup.to.notes_of(&run.id).await.unwrap();
            assert_eq!(notes.thinned, Some(("windows".to_owned(), 9)));
        });
    }

    #[test]
    fn a_run_that_is_removed_while_it_is_copied_is_left_out_of_the_backup() {
        in_a_folder(async |top| {
            let over = recorded_hunt();
            for (name, at) in [("for-good", Some(5)), ("allowed", None)] {
                let (backup, run) = begun_backup(&top.join(name), &over).await;
                // It was pinned then, and is not any more.
                assert!(backup.to.pin(&run.id, "ann", "", 5).await.unwrap());
                backup.from.forget_run(&run.id, None, at).await.unwrap();
                fs::remove_dir_all(backup.own.join("r")).unwrap();
                let (output, progress) = (DocumentFlags::default(), CommandProgress::begin(false));
                let counted = backup.copy_bundles(false, &output, &progress).await.unwrap();
                assert_eq!((counted.copied, counted.missing.len()), (0, 0), "{name}");
                assert_eq!(counted.removed, [run.id.as_str()], "{name}");
                assert!(backup.to.places().await.unwrap().is_empty(), "{name}");
                assert_eq!(backup.to.faults().await.unwrap(), [""; 0], "{name}");
                // Its board does not send it to a farm that is made of the backup, either.
                assert_eq!(backup.to.why_not_again(&run.id).await.unwrap().is_some(), at.is_some(), "{name}");
            }
        });
    }

    #[test]
    fn where_a_removed_run_cannot_be_told_from_others_the_database_is_copied_again() {
        in_a_folder(async |top| {
            let from = FarmStore::file(&top.join("farm.db")).await.unwrap();
            let five_minutes = |row| [(0, 9, row), (300, 5, row), (86_400, 3, row)];
            let (first, second) = (made("first", &five_minutes(200)), made("second", &five_minutes(300)));
            from.put(&first).await.unwrap();
            from.put(&second).await.unwrap();
            let own = top.join("farm.db.bundles");
            from.copy_to(top.join("copy.db").to_str().unwrap()).await.unwrap();
            let to = FarmStore::file(&top.join("copy.db")).await.unwrap();
            let bundles = top.join("copy.db.bundles");
            let removal = from.forget_run("first", Some(&first), Some(5)).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
            let backup = StoreBackup { from: from.clone(), own: own.clone(), to, bundles, removals: 0 };
            let (output, progress) = (DocumentFlags::default(), CommandProgress::begin(false));
            let counted = backup.copy_bundles(false, &output, &progress).await.unwrap();
            assert!(counted.begins_again && counted.copied == 0 && counted.removed.is_empty());
            let copied = copy_whole(&top.join("whole"), (from, own), false, (&output, &progress)).await;
            let (_, counted) = copied.unwrap();
            assert_eq!((counted.begins_again, counted.removed.len()), (false, 0));
            assert_eq!(counted.copied, 1);
        });
    }

    #[test]
    fn a_run_that_was_removed_and_came_again_is_noted_as_it_was_copied() {
        in_a_folder(async |top| {
            let over = recorded_hunt();
            let (earlier, later) = (hunt_that_is_on(top, 2), hunt_that_is_on(top, 1));
            // The document of the one that is over, without its seconds.
            let short = copied(&over, &top.join("lacking"));
            fs::remove_file(short.join("blocks.jsonl")).unwrap();
            let cases = [(&over, &later), (&later, &earlier), (&short, &over), (&over, &short)];
            for (at, (first, second)) in cases.into_iter().enumerate() {
                let (backup, run) = begun_backup(&top.join(format!("case-{at}")), first).await;
                assert!(backup.to.pin(&run.id, "ann", "", 5).await.unwrap());
                let removal = backup.from.forget_run(&run.id, None, None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{at}: {removal:?}");
                taken_in(&backup.from, &backup.own, second).await;
                assert_eq!(backup.copy(&run, false).await.unwrap(), BackedUp::Here, "{at}");
                assert_eq!(faults_of(&backup).await, [""; 0], "{at}");
                let noted = backup.to.place_of(&run.id).await.unwrap().unwrap();
                let live = backup.from.place_of(&run.id).await.unwrap().unwrap();
                assert_eq!((noted.digest, noted.is_over), (live.digest, live.is_over), "{at}");
                assert!(lies_in(Path::new(&noted.place), &backup.bundles), "{at}");
                let counted = backup.to.counted_seconds_of(&run.id).await.unwrap();
                assert_eq!(counted, backup.from.counted_seconds_of(&run.id).await.unwrap(), "{at}");
                assert!(backup.to.pins().await.unwrap().is_empty(), "{at}: it was of the other one");
            }
        });
    }

    /// A store in a folder with a run that lies at a place.
    async fn store_with_run(top: &Path, place: &Path) -> (FarmStore, BundleRecord) {
        let from = FarmStore::file(&top.join("farm.db")).await.unwrap();
        let mut record = crate::fixture::recorded_run("hunt", "a");
        record.run.place = place.to_string_lossy().into_owned();
        from.put(&record).await.unwrap();
        (from, record)
    }

    #[test]
    fn a_run_that_is_gone_is_told_and_its_place_is_in_the_backup() {
        in_a_folder(async |top| {
            let (from, record) = store_with_run(top, &top.join("gone/today")).await;
            fs::create_dir(top.join("backup")).unwrap();
            let (file, bundles) = (top.join("backup/farm.db"), top.join("backup/farm.db.bundles"));
            from.copy_to(file.to_str().unwrap()).await.unwrap();
            let to = FarmStore::file(&file).await.unwrap();
            let backup = StoreBackup { from, own: top.join("farm.db.bundles"), to, bundles, removals: 0 };
            let run = backup.to.places().await.unwrap().remove(0);
            assert_eq!(run.place, record.run.place);
            let outcome = backup.copy(&run, false).await.unwrap();
            assert!(matches!(&outcome, BackedUp::Missing(why) if why.contains("not there")), "{outcome:?}");
            let place = backup.bundles.join(&run.id);
            assert_eq!(Path::new(&backup.to.places().await.unwrap()[0].place), place);
            assert_ne!(free_name(&run, &backup.own, &backup.bundles), run.id, "the name is taken");
            backup.to.close().await;
            assert!(!top.join("backup/farm.db-wal").exists());
        });
    }

    #[test]
    fn what_the_backup_has_no_room_for_ends_it() {
        in_a_folder(async |top| {
            let run = recorded_hunt();
            let (from, record) = store_with_run(top, &run).await;
            from.copy_to(top.join("copy.db").to_str().unwrap()).await.unwrap();
            let to = FarmStore::file(&top.join("copy.db")).await.unwrap();
            // No folder can be made below a file.
            fs::write(top.join("full"), "").unwrap();
            let bundles = top.join("full/farm.db.bundles");
            let backup = StoreBackup { from, own: top.join("farm.db.bundles"), to, bundles, removals: 0 };
            let (output, progress) = (DocumentFlags::default(), CommandProgress::begin(false));
            let ended = backup.copy_bundles(false, &output, &progress).await.err().unwrap();
            assert!(ended.exit == Exit::Internal && ended.message.contains(&record.run.id), "{ended}");
        });
    }

    #[test]
    fn no_two_bundles_have_one_name_in_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        let (own, backup) = (folder.path().join("own"), folder.path().join("backup"));
        let name = |id: &str, place: PathBuf| {
            fs::create_dir_all(&place).unwrap();
            let place = place.to_string_lossy().into_owned();
            let run = BundlePlace {
                id: id.to_owned(),
                place,
                digest: Vec::new(),
                max_ns: None,
                shown: ShownNumbers::default(),
                is_over: true,
                has_seconds: true,
                sent_bytes: None,
            };
            let name = free_name(&run, &own, &backup);
            fs::create_dir_all(backup.join(&name)).unwrap();
            name
        };
        let shown = |board: &str| folder.path().join(board).join("today");
        assert_eq!(name("run-a", shown("board-a")), "run-a");
        assert_eq!(name("run-b", shown("board-b")), "run-b");
        assert_eq!(name("run-c", own.join("run-c+0123456789abcdef")), "run-c+0123456789abcdef");
        assert_eq!(name("run-d", own.join("run-d")), "run-d");
        // Such as an earlier backup made of it.
        assert_eq!(name("run-e", own.join("run-b")), "run-b.2");
        assert_eq!(name("run-f", own.join("run-b")), "run-b.3");
        let other = name("../x", shown("board-c"));
        assert!(is_id(&other) && other.starts_with("run-"), "{other}");
    }
}
