//! `onbeat-farm backup`: the store and its bundles into another folder.

pub mod folder;

use std::path::{Path, PathBuf};

use host::dir::Dir;
use model::error::{Exit, Failure, ItemFailure, Result};
use model::text::{clean, quoted, several};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::cli::FarmEnvironment;
use crate::cli::backup::folder::BackupFolder;
use crate::cli::flags::farm_flags::FarmFlags;
use crate::cli::flags::store_flag::StorePlace;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::output::progress::CommandProgress;
use crate::folders::{lies_in, name_in_bucket};
use crate::ingest::bundle::{is_id, read};
use crate::ingest::environment::hex;
use crate::ingest::find::FoundBundle;
use crate::ingest::keep::{PATIENCE, is_of_the_copy, keep, lock_of_writers};
use crate::store::{BundlePlace, FarmStore, PutOutcome};

/// Copy the store and its bundles into a folder, while the server runs
///
/// Copies the database and the bundles that it names. Until the end, `import`, `prune` and `forget`
/// wait and boards keep their runs; rows are still stored. The copy is a complete store that can be
/// moved anywhere: `serve --store sqlite:DIR/farm.db`, with `DIR/farm.db.bundles` next to it. It is
/// complete or absent: it is written as `.NAME.onbeat.part` next to its folder; a failure removes
/// that, and the next backup removes what a killed one left. Bundles in a bucket are not copied:
/// back them up there.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  onbeat-farm backup /mnt/backup/$(date +%F)")]
pub struct Args {
    /// The folder; it is created, and must be empty if it exists
    dir: PathBuf,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

/// Contents of the backup, and what is missing.
#[derive(Serialize)]
struct BackupDocument {
    schema: &'static str,
    /// The folder.
    place: String,
    /// Number of runs whose bundles are in it.
    copied: u64,
    missing: Vec<MissingBundle>,
    /// Number of runs whose bundles stay in the bucket.
    in_bucket: u64,
}

/// A run that is in the backup without its bundle.
#[derive(Serialize)]
struct MissingBundle {
    run: String,
    reason: String,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let (place, bucket) = args.farm.open(environment)?;
    if place.is_database() {
        return Err(Failure::usage(
            "backup copies a store in a file: copy a PostgreSQL store with `pg_dump --format=custom`, then \
             the bundles of --objects",
        ));
    }
    let store = place.open_existing().await?;
    if lies_in(&args.dir, &place.bundles) {
        return Err(Failure::usage(format!(
            "{} is in the farm's folder of bundles, where `prune` removes everything that belongs to no run: \
             name a folder elsewhere",
            quoted(&args.dir)
        )));
    }
    host::make_new_files_private();
    let progress = args.output.progress(environment);
    let folder = BackupFolder::make(&args.dir).await?;
    let backup = copy_all(store, place.bundles, &folder, bucket.is_some(), &args.output, &progress);
    let counted = backup.await.map_err(|failure| not_made(&args.dir, failure))?;
    progress.step("waiting for the disk", None);
    let dir = folder.finish().map_err(|failure| not_made(&args.dir, failure))?;
    drop(progress);
    let runs = several(counted.copied, "run", "runs");
    args.output.remark(&format!("the store and {runs} are in {}", quoted(&dir)));
    if let Some(bucket) = bucket {
        let runs = several(counted.in_bucket, "run is", "runs are");
        args.output.remark(&format!(
            "{runs} in {}: back them up there, by object versions or a copy of the bucket",
            bucket.name()
        ));
    }
    let exit = if counted.missing.is_empty() { Exit::Ok } else { Exit::Inconclusive };
    let CountedBackup { copied, missing, in_bucket } = counted;
    let place = dir.to_string_lossy().into_owned();
    let schema = "onbeat.farm-backup/1";
    args.output.write(&BackupDocument { schema, place, copied, missing, in_bucket })?;
    Ok(exit)
}

/// Results of copying the bundles.
#[derive(Default)]
struct CountedBackup {
    copied: u64,
    missing: Vec<MissingBundle>,
    in_bucket: u64,
}

fn not_made(dir: &Path, failure: Failure) -> Failure {
    Failure { message: format!("no backup was written to {}: {}", quoted(dir), failure.message), ..failure }
}

/// Copies the store and its bundles into a new folder.
async fn copy_all(
    store: FarmStore,
    own: PathBuf,
    folder: &BackupFolder,
    has_bucket: bool,
    output: &DocumentFlags,
    progress: &CommandProgress,
) -> Result<CountedBackup> {
    progress.step("waiting for other commands", None);
    // The database and the copies that it names are a snapshot of one moment.
    let _lock = lock_of_writers(&own, PATIENCE).await?;
    let file = folder.file();
    let text =
        file.to_str().ok_or_else(|| Failure::usage("the folder's name is not UTF-8: choose another"))?;
    // SQLite would create one that everyone may read.
    host::make_private_file(&file).map_err(|error| {
        let what = format!("cannot write to {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Usage, "name a folder that you may write to, with enough space")
    })?;
    progress.step("copying the database", None);
    store.copy_to(text).await?;
    let copy = StorePlace::file(file.clone());
    let to = copy.open_existing().await?;
    let backup = StoreBackup { from: store, own, to, bundles: copy.bundles };
    let counted = backup.copy_bundles(has_bucket, output, progress).await;
    // Closing leaves a single file that can be copied alone.
    backup.to.close().await;
    counted
}

/// A store and its folder of bundles, and the copies of both.
struct StoreBackup {
    from: FarmStore,
    own: PathBuf,
    to: FarmStore,
    bundles: PathBuf,
}

/// Result of copying a bundle.
#[derive(Debug, PartialEq, Eq)]
enum BackedUp {
    Here,
    InBucket,
    /// The reason.
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

    /// Copies the bundle of a run. Even if that fails, the copy refers to no place outside itself.
    async fn copy(&self, run: &BundlePlace, has_bucket: bool) -> Result<BackedUp> {
        // The copied database already refers to its own places.
        let now = self.from.place_of(&run.id).await?;
        let from = BundlePlace { place: now.map_or_else(String::new, |now| now.place), ..run.clone() };
        let is_in_bucket = has_bucket && name_in_bucket(Path::new(&from.place), &self.own).is_some();
        // In a bucket each state has a separate name, and this is the one in the copied database.
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
            return Ok(BackedUp::InBucket);
        }
        let copied = match keep(Path::new(&from.place), &name, &self.bundles) {
            Ok((copy, _)) if host::identity(&copy.join("run.json")).is_none() => {
                Err("it no longer exists".to_owned())
            }
            // A run shown from elsewhere changes until it is over.
            Ok((copy, _)) if !run.is_over && !lies_in(Path::new(&from.place), &self.own) => {
                match self.note_state(run, copy).await {
                    Ok(()) => Ok(()),
                    Err(failure) => Err(failure.reason()?),
                }
            }
            Ok(_) => Ok(()),
            // It is the backup that has no room, and the others have none either.
            Err(found) if is_of_the_copy(&found) => {
                return Err(Failure::internal(format!("{}: {found}", run.id)));
            }
            Err(found) => Err(found),
        };
        Ok(match copied {
            Ok(()) => BackedUp::Here,
            Err(why) => {
                // This reserves the name.
                let _ = Dir::create(&self.bundles.join(&name));
                BackedUp::Missing(why)
            }
        })
    }

    /// Notes in the copy of the database the state of a run that was copied.
    async fn note_state(&self, run: &BundlePlace, copy: PathBuf) -> Result<(), ItemFailure> {
        let mut record = match read(&FoundBundle { place: copy, board: None }) {
            Ok((record, _)) if record.run.id == run.id => record,
            Ok(_) => return Err(ItemFailure::Refused("another run is in its place".to_owned())),
            Err(why) => return Err(ItemFailure::Refused(why)),
        };
        let Some(known) = self.to.run(&run.id).await? else {
            return Err(ItemFailure::Refused("it was removed".to_owned()));
        };
        record.run.board = known.board;
        match self.to.put_anew(&record).await? {
            PutOutcome::Refused(why) => Err(ItemFailure::Refused(why)),
            _ => Ok(()),
        }
    }
}

/// Unused name for a bundle in the backup: the name in the folder of copies, which identifies its
/// state, or the run's id if it is shown from elsewhere, as folders of several boards may share a
/// name.
fn free_name(run: &BundlePlace, own: &Path, backup: &Path) -> String {
    let place = Path::new(&run.place);
    let name = place.file_name().and_then(|name| name.to_str()).filter(|_| lies_in(place, own));
    let name = name.map(str::to_owned).unwrap_or_else(|| {
        if is_id(&run.id) { run.id.clone() } else { format!("run-{}", hex(&Sha256::digest(&run.id)[..8])) }
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
    use crate::fixture::run_folder;
    use crate::intake::bundle_fault;
    use crate::intake::{BundleCopies, IntakeOutcome, Keeping, take};
    use crate::objects::tests::hunt_that_is_on;
    use crate::records::BundleRecord;
    use crate::removal::{KeptBundles, forget};
    use crate::store::ShownNumbers;
    use std::fs;

    /// Runs a test in an empty folder whose path has no links.
    fn in_a_folder(test: impl AsyncFnOnce(&Path)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let top = tempfile::tempdir().unwrap();
        let path = host::whole_path(top.path()).unwrap();
        runtime.block_on(test(&path));
    }

    /// A recorded run that is over.
    fn copied(from: &Path, to: &Path) -> PathBuf {
        keep(from, &to.file_name().unwrap().to_string_lossy(), to.parent().unwrap()).unwrap().0
    }

    /// Backs up a run that is still recorded, outside of the farm's folder, and that changes after
    /// the copy of the database.
    async fn backed_up(folder: &Path, first: &Path, later: &Path) {
        let own = folder.join("farm.db.bundles");
        let place = folder.join("runs/r");
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
        let to = FarmStore::file(&file).await.unwrap();
        let backup = StoreBackup { from, own, to, bundles };
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
            let over = run_folder("hunt");
            let (earlier, later) = (hunt_that_is_on(made, 2), hunt_that_is_on(made, 1));
            // Its seconds are written more often than its document.
            let begun = copied(&later, &made.join("begun"));
            let blocks = fs::read_to_string(begun.join("blocks.jsonl")).unwrap();
            let most = blocks.trim_end().rsplit_once('\n').unwrap().0;
            fs::write(begun.join("blocks.jsonl"), format!("{most}\n")).unwrap();
            // A killed run has its last seconds in separate files.
            let (killed, whole) = (made.join("killed"), made.join("whole"));
            crate::fixture::killed_run(&killed, 1);
            crate::fixture::killed_run(&whole, 4);
            let cases = [(&killed, &whole), (&earlier, &later), (&begun, &later), (&later, &over)];
            for (at, (first, later)) in cases.into_iter().enumerate() {
                let folder = made.join(format!("case-{at}"));
                fs::create_dir(&folder).unwrap();
                backed_up(&folder, first, later).await;
            }
        });
    }

    /// Writers into the folder of copies wait for each other: a backup copies the bundles as they
    /// are when it copies the database.
    #[test]
    fn backup_import_prune_and_forget_wait_for_each_other() {
        use clap::Parser;

        #[derive(Parser)]
        struct PruneCommand {
            #[command(flatten)]
            args: crate::cli::prune::Args,
        }
        in_a_folder(async |top| {
            let (own, bundle) = (top.join("farm.db.bundles"), top.join("farm.db.bundles/r"));
            let (from, record) = store_with_run(top, &copied(&run_folder("hunt"), &bundle)).await;
            let address = format!("sqlite:{}", top.join("farm.db").display());
            let lock = lock_of_writers(&own, PATIENCE).await.unwrap();
            assert!(lock.is_some());
            let (output, progress) = (DocumentFlags::default(), CommandProgress::begin(false));
            let backup = async {
                let folder = BackupFolder::make(&top.join("backup")).await.unwrap();
                let counted = copy_all(from.clone(), own.clone(), &folder, false, &output, &progress);
                let counted = counted.await.unwrap();
                folder.finish().unwrap();
                counted.copied as usize + counted.missing.len()
            };
            let import = async {
                let copies = BundleCopies { bundles: own.clone(), bucket: None };
                let place = run_folder("hunt").with_file_name("measured");
                let one = FoundBundle { place, board: Some("b".into()) };
                let taken = take(&from, &one, &Keeping::Copied(&copies)).await.unwrap();
                usize::from(matches!(taken, IntakeOutcome::Stored(_)))
            };
            let prune = async {
                let words = ["prune", "-q", "--store", address.as_str()];
                let args = PruneCommand::parse_from(words).args;
                let exit = crate::cli::prune::run(&args, &FarmEnvironment::default()).await.unwrap();
                usize::from(exit == Exit::Ok)
            };
            let forget = async {
                let kept = KeptBundles { folder: &own, bucket: None, patience: PATIENCE };
                let run = from.run(&record.run.id).await.unwrap();
                usize::from(forget(&from, &run.unwrap_or_default(), None, kept, None).await.is_ok())
            };
            let mut all = std::pin::pin!(async { tokio::join!(backup, import, prune, forget) });
            tokio::select! {
                done = &mut all => panic!("{done:?} while another has the lock"),
                () = tokio::time::sleep(std::time::Duration::from_millis(400)) => {}
            }
            drop(lock);
            let (runs, imported, pruned, forgotten) = all.await;
            // In any order: the backup may precede the import and follow a removal.
            assert!(runs <= 2 && (imported, pruned, forgotten) == (1, 1, 1), "{runs}");
            let copy = FarmStore::file(&top.join("backup/farm.db")).await.unwrap();
            let counted = copy.counted_seconds().await.unwrap();
            for run in copy.places().await.unwrap() {
                let bundles = top.join("backup/farm.db.bundles");
                assert_eq!(bundle_fault(&run, &bundles, counted.get(&run.id)), None);
            }
            assert_eq!(copy.faults().await.unwrap(), [""; 0]);
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
            let backup = StoreBackup { from, own: top.join("farm.db.bundles"), to, bundles };
            let run = backup.to.places().await.unwrap().remove(0);
            assert_eq!(run.place, record.run.place);
            let outcome = backup.copy(&run, false).await.unwrap();
            assert!(
                matches!(&outcome, BackedUp::Missing(why) if why.contains("no longer exists")),
                "{outcome:?}"
            );
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
            let run = run_folder("hunt");
            let (from, record) = store_with_run(top, &run).await;
            from.copy_to(top.join("copy.db").to_str().unwrap()).await.unwrap();
            let to = FarmStore::file(&top.join("copy.db")).await.unwrap();
            // No folder can be made below a file.
            fs::write(top.join("full"), "").unwrap();
            let bundles = top.join("full/farm.db.bundles");
            let backup = StoreBackup { from, own: top.join("farm.db.bundles"), to, bundles };
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
