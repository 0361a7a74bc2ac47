//! `onbeat-farm backup`: the store and its bundles into another folder.

use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use sha2::{Digest, Sha256};

use super::farm_flags::FarmFlags;
use super::store_flag::StorePlace;
use super::{FarmEnvironment, say};
use crate::ingest::bundle::is_id;
use crate::ingest::environment::hex;
use crate::ingest::keep::keep;
use crate::objects::{lies_in, name_in_bucket};
use crate::store::BundlePlace;

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
        match keep(place, &free_name(&run, &bundles, &copy.bundles), &copy.bundles) {
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
    use std::fs;

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
                is_over: true,
                has_seconds: true,
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
