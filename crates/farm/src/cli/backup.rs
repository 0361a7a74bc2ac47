//! `onbeat-farm backup`: the store and its bundles into another folder.

use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};

use super::farm_flags::FarmFlags;
use super::store_flag::StorePlace;
use super::{FarmEnvironment, say};
use crate::ingest::keep::keep;
use crate::objects::name_in_bucket;

/// Copy the store and its bundles into a folder, while the server runs
///
/// The database is copied as it is at one moment, then the bundles that it names. What is copied is
/// a store by itself: `serve --store sqlite:DIR/farm.db`. What lies in a bucket stays there, and is
/// backed up there.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  onbeat-farm backup /mnt/backup/$(date +%F)")]
pub struct Args {
    /// The folder; it must not hold a store yet
    dir: PathBuf,
    #[command(flatten)]
    farm: FarmFlags,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let (place, bucket) = args.farm.open(environment)?;
    if place.is_database() {
        return Err(Failure::usage(
            "backup copies a store in a file: copy PostgreSQL's with `pg_dump --format=custom`, and then \
             what lies at --objects",
        ));
    }
    let store = place.open_existing().await?;
    let bundles = place.bundles.clone();
    let failed = |error: &std::io::Error| {
        let what = format!("cannot write to {}", quoted(&args.dir));
        Failure::of_call(what, error, Exit::Usage, "name a folder of your own, with space")
    };
    if !host::is_dir(&args.dir).unwrap_or(false) {
        host::dir::Dir::create(&args.dir).map_err(|error| failed(&error))?;
    }
    let dir = host::whole_path(&args.dir).map_err(|error| failed(&error))?;
    let file = dir.join("farm.db");
    if host::identity(&file).is_some() {
        return Err(Failure::usage(format!(
            "{} is there already: name another folder for each backup",
            quoted(&file)
        )));
    }
    let copy = StorePlace::file(file.clone());
    // The database first: what comes later is not in it, and what it names is copied after it.
    let file = file.to_str().ok_or_else(|| Failure::usage("the folder's name is no text: choose another"))?;
    // SQLite would make one that everybody may read.
    host::make_private_file(Path::new(file)).map_err(|error| failed(&error))?;
    store.copy_to(file).await?;
    let (mut copied, mut missing, mut in_bucket) = (0, 0, 0);
    let target = copy.open_existing().await?;
    for run in target.places().await? {
        let (id, place) = (&run.id, Path::new(&run.place));
        if bucket.is_some() && name_in_bucket(place, &bundles).is_some() {
            in_bucket += 1;
            continue;
        }
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match keep(place, &name, &copy.bundles) {
            Ok((to, _)) if host::identity(&to.join("run.json")).is_some() => {
                target.moved(id, &to.to_string_lossy()).await?;
                copied += 1;
            }
            outcome => {
                let why = outcome.err().unwrap_or_else(|| "it is not there any more".to_owned());
                say(&format!("onbeat-farm: {id} is not in the backup: {why}"));
                missing += 1;
            }
        }
    }
    let runs = several(copied, "run", "runs");
    say(&format!("onbeat-farm: the store and {runs} are in {}", quoted(&dir)));
    if let Some(bucket) = bucket {
        let runs = several(in_bucket, "run lies", "runs lie");
        say(&format!(
            "onbeat-farm: {runs} in {}: back them up there, by its versions or a copy of it",
            bucket.name()
        ));
    }
    Ok(if missing == 0 { Exit::Ok } else { Exit::Inconclusive })
}
