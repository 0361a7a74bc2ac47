//! Proof that two builds give the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Args, empty, pack_all};
use crate::tools::{Result, Tool, read, root, target};

/// Packs again, and compares with the packages in `first`.
pub fn twice(args: &Args, first: &Path) -> Result<()> {
    let second = target("packages-again")?;
    if args.rebuild {
        rebuild(args, &second)?;
    } else {
        let again = Args { built: true, ..args.clone() };
        pack_all(&again, &second)?;
    }
    let (first, second) = (contents(first)?, contents(&second)?);
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    if names(&first) != names(&second) {
        return Err(format!("not the same packages: {:?} and {:?}", names(&first), names(&second)));
    }
    let differ: Vec<&String> =
        first.iter().filter(|(name, bytes)| second.get(*name) != Some(bytes)).map(|(name, _)| name).collect();
    if differ.is_empty() {
        println!("{} files, twice the same bytes", first.len());
        Ok(())
    } else {
        Err(format!("not the same bytes: {differ:?}; compare them with diffoscope"))
    }
}

/// Builds and packs the last commit in another folder, which has no history.
fn rebuild(args: &Args, second: &Path) -> Result<()> {
    let copy = target("packages-copy/another-folder")?;
    let archive = target("packages-copy")?.join("commit.tar");
    let (folder, archive) = (copy.display().to_string(), archive.display().to_string());
    Tool::new("git").args(["archive", "--output", &archive, "HEAD"]).dir(&root()).text()?;
    Tool::new("tar").args(["-x", "-f", &archive, "-C", &folder]).text()?;
    let mut line = vec!["xtask".to_owned(), "packages".into(), "--arch".into(), args.arch.join(",")];
    if !args.only.is_empty() {
        line.extend(["--only".to_owned(), args.only.join(",")]);
    }
    if let Some(maintainer) = &args.maintainer {
        line.extend(["--maintainer".to_owned(), maintainer.clone()]);
    }
    Tool::new("cargo")
        .args(line)
        .env_remove("CARGO_TARGET_DIR")
        .env("SOURCE_DATE_EPOCH", super::epoch()?.to_string())
        .dir(&copy)
        .show()?;
    empty(second)?;
    let made = copy.join("target/packages").display().to_string();
    Tool::new("cp").args(["-r", &format!("{made}/."), &second.display().to_string()]).text().map(drop)
}

/// Names and bytes of the files in a folder.
fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    files.map(|entry| Ok((entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?))).collect()
}
