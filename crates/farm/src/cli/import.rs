//! `onbeat-farm import`: bundles from a folder or a stick into the store.

use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};

use super::store_flag::StorePlace;
use super::{FarmEnvironment, say};
use crate::ingest::bundle::{is_id, read};
use crate::ingest::find::{FoundBundle, bundles};
use crate::ingest::keep::keep;
use crate::store::{FarmStore, PutOutcome};

/// Take runs from folders into the store, as from a stick
///
/// The bundles are copied next to the store. Importing the same again adds nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm import /media/stick/runs\n  onbeat-farm import --board press-3 RUN"
)]
pub struct Args {
    /// Folders with runs: DIR/BOARD/RUN, or DIR/RUN
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// All of them are of this board
    #[arg(long, value_name = "NAME")]
    board: Option<String>,
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The folder of bundles [default: next to the store's file; onbeat/farm.bundles in the state
    /// folder for PostgreSQL]
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let place = StorePlace::of(args.store.as_deref(), environment)?.with_bundles(args.objects.as_deref());
    let store = place.open().await?;
    let (mut stored, mut had, mut refused) = (0, 0, 0);
    for folder in &args.folders {
        let root = host::whole_path(folder).map_err(|error| {
            let what = format!("cannot read {}", quoted(folder));
            Failure::of_call(what, &error, Exit::Usage, "name a folder that holds runs")
        })?;
        let (found, cut) = bundles(&root);
        if cut {
            say(&format!(
                "onbeat-farm: {}: more files than are looked at: name a folder that holds runs alone",
                quoted(folder)
            ));
            refused += 1;
        }
        for mut one in found {
            one.board = args.board.clone().or(one.board);
            match take_in(&store, &one, &place.bundles).await? {
                Ok(PutOutcome::Had) => had += 1,
                Ok(_) => stored += 1,
                Err(reason) => {
                    say(&format!("onbeat-farm: {}: {reason}", quoted(&one.place)));
                    refused += 1;
                }
            }
        }
    }
    say(&format!(
        "onbeat-farm: {} stored, {had} there already, {refused} refused",
        several(stored, "run", "runs")
    ));
    if stored + had + refused == 0 {
        return Err(Failure::usage("no run was found: name a folder that holds bundles, as DIR/BOARD/RUN"));
    }
    Ok(if refused > 0 { Exit::Inconclusive } else { Exit::Ok })
}

/// Stores a bundle with its copy. The copy is made first, so that no run in the store lacks it.
async fn take_in(store: &FarmStore, one: &FoundBundle, kept: &Path) -> Result<Result<PutOutcome, String>> {
    let (mut record, remarks) = match read(one) {
        Ok(read) => read,
        Err(reason) => return Ok(Err(reason)),
    };
    for remark in remarks {
        say(&format!("onbeat-farm: {}: {remark}", quoted(&one.place)));
    }
    // What is there and over is not copied once more.
    let known = store.run(&record.run.id).await?;
    if known.is_none_or(|known| !known.complete) && is_id(&record.run.id) {
        match keep(&one.place, &record.run.id, kept) {
            Ok((place, left_out)) => {
                // A server that is started elsewhere has to find it.
                let place = host::whole_path(&place).unwrap_or(place);
                record.run.place = place.to_string_lossy().into_owned();
                if left_out > 0 {
                    let files = several(left_out, "file", "files");
                    say(&format!(
                        "onbeat-farm: {}: {files} left out: links, or unreadable",
                        quoted(&one.place)
                    ));
                }
            }
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(match store.put(&record).await? {
        PutOutcome::Refused(reason) => Err(reason),
        stored => Ok(stored),
    })
}
