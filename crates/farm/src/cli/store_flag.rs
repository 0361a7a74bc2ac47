//! `--store`: where the farm keeps what it knows.

use std::path::{Path, PathBuf};

use model::error::{Failure, Result};
use model::text::quoted_value;

use host::RecordFolder;

use super::FarmEnvironment;
use crate::store::FarmStore;

/// The store's file and, next to it, the folder of bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    pub file: PathBuf,
    pub bundles: PathBuf,
}

impl StorePlace {
    /// As `sqlite:PATH` says, or the usual place.
    pub fn of(given: Option<&str>, environment: &FarmEnvironment) -> Result<StorePlace> {
        let file = match given {
            None => usual(environment)?,
            Some(text) => match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
                Some(path) if !path.is_empty() => PathBuf::from(path),
                _ => {
                    return Err(Failure::usage(format!(
                        "--store: {} is no store: write sqlite:PATH",
                        quoted_value(text)
                    )));
                }
            },
        };
        let name = file.file_name().map(|name| name.to_os_string()).unwrap_or_default();
        let mut folder = name;
        folder.push(".bundles");
        let bundles = file.with_file_name(folder);
        Ok(StorePlace { file, bundles })
    }

    /// Opens it, and makes its folder where there is none.
    pub async fn open(&self) -> Result<FarmStore> {
        let folder =
            self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !host::is_dir(folder).unwrap_or(false) {
            host::dir::Dir::create(folder).map_err(|error| {
                Failure::of_call(
                    format!("cannot make {}", model::text::quoted(folder)),
                    &error,
                    model::error::Exit::Usage,
                    "name a file in a folder of your own with --store",
                )
            })?;
        }
        FarmStore::file(&self.file).await
    }

    /// Opens it where it is; a store that is looked at is not made.
    pub async fn open_existing(&self) -> Result<FarmStore> {
        if host::identity(&self.file).is_none() {
            let shown = model::text::quoted(&self.file);
            return Err(Failure::usage(format!(
                "there is no store {shown}: name one with --store sqlite:PATH"
            )));
        }
        FarmStore::file(&self.file).await
    }

    /// Makes this the only server of the store, as long as the lock lives.
    pub fn lock(&self) -> Result<host::FolderLock> {
        let shown = model::text::quoted(&self.bundles);
        let locked = RecordFolder::make(&self.bundles).and_then(|folder| folder.lock());
        let locked = locked.map_err(|error| {
            let what = format!("cannot write to {shown}");
            Failure::of_call(what, &error, model::error::Exit::Usage, "name a store in a folder of your own")
        })?;
        locked.map_err(|owner| {
            Failure::not_permitted(format!(
                "{shown} has a server already, process {}: end that one first",
                owner.pid
            ))
        })
    }
}

fn usual(environment: &FarmEnvironment) -> Result<PathBuf> {
    let absolute = |text: &std::ffi::OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = environment.state_home.as_ref().and_then(absolute);
    let home = || environment.home.as_ref().and_then(absolute).map(|home| home.join(".local/state"));
    let folder = state.or_else(home).map(|state| state.join("onbeat"));
    let folder = folder.unwrap_or_else(|| PathBuf::from("/var/lib/onbeat"));
    Ok(folder.join("farm.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_engine() {
        let environment = FarmEnvironment { home: Some("/srv/x".into()), ..FarmEnvironment::default() };
        let of = |text| StorePlace::of(text, &environment);
        assert_eq!(of(None).unwrap().file, Path::new("/srv/x/.local/state/onbeat/farm.db"));
        let named = of(Some("sqlite:/srv/farm.db")).unwrap();
        assert_eq!((named.file, named.bundles), ("/srv/farm.db".into(), "/srv/farm.db.bundles".into()));
        for text in ["", "/srv/farm.db", "sqlite:", "postgres://x"] {
            assert!(of(Some(text)).unwrap_err().message.contains("sqlite:PATH"), "{text}");
        }
    }
}
