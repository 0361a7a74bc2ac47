//! `onbeat-farm import`: bundles and records from a folder or a stick into the store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use serde::Serialize;

use crate::cli::flags::farm_flags::FarmFlags;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::output::progress::CommandProgress;
use crate::cli::watch_folders::watch;
use crate::cli::{FarmEnvironment, check_name, note_left_out};
use crate::intake::{
    BundleCopies, Keeping, RecordOutcome, ScanOptions, ScanOutcome, ScanProgress, SeenRuns, scan,
};
use crate::refused::RefusedBundle;

/// Import runs and records from folders, for example from a USB stick
///
/// Copies the bundles next to the store, or into the bucket of --objects; of a record of `onbeat
/// watch`, stores its rows. Importing the same again only restores files that the folder or bucket
/// has lost or that are damaged there, and adds new rows of a record.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm import /media/stick/runs\n  \
     onbeat-farm import --board press-3 RUN\n  onbeat-farm import --board press-3 /var/lib/onbeat/watch\n  \
     onbeat-farm import --watch /srv/boards")]
pub struct Args {
    /// Folders with runs and records: DIR/BOARD/RUN or DIR/RUN
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Assign all of them to this board
    #[arg(long, value_name = "NAME")]
    board: Option<String>,
    /// Look again every 30 s and import new ones
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    #[command(flatten)]
    farm: FarmFlags,
    #[command(flatten)]
    output: DocumentFlags,
}

#[derive(Serialize)]
struct ImportDocument<'a> {
    schema: &'static str,
    stored: &'a [String],
    /// Later states of runs that were still on.
    replaced: &'a [String],
    had: &'a [String],
    /// Refused runs, and records of which a part was skipped.
    refused: &'a [RefusedBundle],
    records: &'a [RecordOutcome],
}

impl ScanProgress for CommandProgress {
    fn found(&self, number: u64) {
        self.step("importing", Some(number));
    }

    fn taken(&self) {
        self.add();
    }
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let output = &args.output;
    output.check()?;
    let remedy = "give one, or omit --board to use the names of the folders";
    check_name("--board", "board", args.board.as_ref(), remedy)?;
    let roots = args.roots()?;
    let (place, bucket) = args.farm.open(environment)?;
    place.keep_private();
    let store = place.open().await?;
    if let Some(bucket) = &bucket {
        bucket.claim(store.identity().await?).await?;
    }
    let copies = BundleCopies { bundles: place.bundles, bucket };
    let (keeping, board) = (Keeping::Copied(&copies), args.board.as_deref());
    if args.watch {
        let mut known = BTreeSet::new();
        let is_enough = |all: &ScanOutcome| {
            let refused: BTreeSet<String> = all.all_refused().iter().map(line_of).collect();
            refused.difference(&known).for_each(|line| output.refusal(line));
            known = refused;
            false
        };
        watch(&store, &roots, &ScanOptions { keeping: &keeping, board, progress: &() }, is_enough).await;
        return Ok(Exit::Ok);
    }
    let progress = output.progress(environment);
    progress.step("looking for runs", None);
    let options = ScanOptions { keeping: &keeping, board, progress: &progress };
    let (mut all, mut seen) = (ScanOutcome::default(), SeenRuns::default());
    for root in &roots {
        let outcome = scan(&store, root, &mut seen, &options).await?;
        outcome.remarks.iter().for_each(|line| output.remark(line));
        outcome.all_refused().iter().for_each(|one| output.refusal(&line_of(one)));
        all.add(outcome);
    }
    drop(progress);
    let refused = all.all_refused();
    let lines: Vec<String> = refused.iter().map(line_of).collect();
    note_left_out(&store, "import", &lines).await?;
    if all.is_empty() {
        return Err(Failure::usage(
            "found no run and no record: name a folder that holds bundles, like DIR/BOARD/RUN, or a record \
             of `onbeat watch`",
        ));
    }
    output.answer(&words(&all))?;
    output.write(&ImportDocument {
        schema: "onbeat.farm-import/1",
        stored: &all.stored,
        replaced: &all.replaced,
        had: &all.had,
        refused: &refused,
        records: &all.records,
    })?;
    Ok(if refused.is_empty() { Exit::Ok } else { Exit::Inconclusive })
}

fn line_of(refused: &RefusedBundle) -> String {
    format!("{}: {}", refused.place, refused.reason)
}

/// The answer.
fn words(of: &ScanOutcome) -> String {
    let stored = several(of.stored(), "run", "runs");
    let mut words =
        format!("{stored} stored, {} already stored, {} refused", of.had(), of.all_refused().len());
    if !of.records.is_empty() {
        let records = several(of.records.len() as u64, "record", "records");
        let rows = several(of.records.iter().map(|record| record.stored).sum(), "row", "rows");
        let had: u64 = of.records.iter().map(|record| record.had).sum();
        words += &format!("; {records}: {rows} stored, {had} already stored");
    }
    words
}

impl Args {
    /// Absolute paths of the folders: all are checked before any is imported.
    fn roots(&self) -> Result<Vec<PathBuf>> {
        let whole = |folder: &PathBuf| {
            host::whole_path(folder).map_err(|error| {
                let what = format!("cannot read {}", quoted(folder));
                Failure::of_call(what, &error, Exit::Usage, "name a folder that holds runs or a record")
            })
        };
        self.folders.iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run_folder;
    use std::path::Path;

    fn asked(folders: &[&Path], board: Option<&str>) -> Args {
        Args {
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
            board: board.map(str::to_owned),
            watch: false,
            farm: FarmFlags::default(),
            output: DocumentFlags::default(),
        }
    }

    /// Refusal of an import, and true if it created anything in the state folder before.
    fn refused(args: &Args) -> (Failure, bool) {
        let state = tempfile::tempdir().unwrap();
        let environment = FarmEnvironment {
            state_home: Some(state.path().as_os_str().to_owned()),
            ..FarmEnvironment::default()
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let refused = runtime.block_on(run(args, &environment)).unwrap_err();
        (refused, state.path().join("onbeat").exists())
    }

    #[test]
    fn where_one_folder_is_not_there_nothing_of_the_others_is_taken() {
        let good = run_folder("hunt");
        let (refused, is_made) = refused(&asked(&[&good, Path::new("/nowhere/at/all")], None));
        assert!(refused.exit == Exit::Usage && refused.message.contains("/nowhere/at/all"), "{refused}");
        assert!(!is_made);
    }

    #[test]
    fn a_board_without_a_name_is_refused() {
        let good = run_folder("hunt");
        for name in ["", "   ", "\t"] {
            let (refused, is_made) = refused(&asked(&[&good], Some(name)));
            assert!(refused.exit == Exit::Usage && refused.message.contains("omit --board"), "{refused}");
            assert!(!is_made, "{name:?}");
        }
    }

    #[test]
    fn an_import_says_what_it_took_and_whether_something_was_left_out() {
        let of = |stored: u64, left_out: &[&str]| RecordOutcome {
            stored,
            had: 3,
            left_out: left_out.iter().map(|why| (*why).to_owned()).collect(),
            ..RecordOutcome::default()
        };
        let mut done = ScanOutcome {
            stored: vec!["a".into()],
            replaced: vec!["b".into()],
            had: vec!["c".into()],
            ..ScanOutcome::default()
        };
        assert_eq!(words(&done), "2 runs stored, 1 already stored, 0 refused");
        done.records = vec![of(8_640, &[])];
        let wanted =
            "2 runs stored, 1 already stored, 0 refused; 1 record: 8640 rows stored, 3 already stored";
        assert_eq!((words(&done).as_str(), done.all_refused().len()), (wanted, 0));
        done.records.push(of(0, &["merged"]));
        assert!(words(&done).contains(" already stored, 1 refused; 2 records: "), "{}", words(&done));
        let record = ScanOutcome { records: vec![of(1, &[])], ..ScanOutcome::default() };
        assert!(!record.is_empty() && ScanOutcome::default().is_empty());
    }
}
