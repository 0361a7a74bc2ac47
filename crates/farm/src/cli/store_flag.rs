//! `--store`: where the farm keeps what it knows.

use std::path::{Path, PathBuf};

use model::error::{Failure, Result};
use model::text::quoted_value;

use host::RecordFolder;

use super::FarmEnvironment;
use crate::store::FarmStore;

/// The database.
enum StoreAddress {
    File(PathBuf),
    /// A URL that may hold a password: it is never printed.
    Postgres(String),
}

/// The store and the folder of bundles, which is next to it where it is a file.
pub struct StorePlace {
    address: StoreAddress,
    pub bundles: PathBuf,
}

impl StorePlace {
    /// As `sqlite:PATH` or `postgres://..` says, or the usual place.
    pub fn of(given: Option<&str>, environment: &FarmEnvironment) -> Result<StorePlace> {
        let Some(text) = given else { return Ok(StorePlace::file(state(environment).join("farm.db"))) };
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let bundles = state(environment).join("farm.bundles");
            return Ok(StorePlace { address: StoreAddress::Postgres(text.to_owned()), bundles });
        }
        match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
            Some(path) if !path.is_empty() => Ok(StorePlace::file(PathBuf::from(path))),
            // What looks like an address may hold a password.
            _ => Err(Failure::usage(format!(
                "--store: {} is no store: write sqlite:PATH or postgres://USER@HOST/DATABASE",
                quoted_value(text.split_once("://").map_or(text, |(scheme, _)| scheme))
            ))),
        }
    }

    /// A store in a file.
    pub fn file(file: PathBuf) -> StorePlace {
        let mut folder = file.file_name().map(|name| name.to_os_string()).unwrap_or_default();
        folder.push(".bundles");
        let bundles = file.with_file_name(folder);
        StorePlace { address: StoreAddress::File(file), bundles }
    }

    /// Whether it is in a database server, which has its own ways to be copied.
    pub fn is_database(&self) -> bool {
        matches!(self.address, StoreAddress::Postgres(_))
    }

    /// With the bundles in a folder that is named.
    pub fn with_bundles(mut self, folder: Option<&Path>) -> StorePlace {
        if let Some(folder) = folder {
            self.bundles = folder.to_owned();
        }
        self
    }

    /// Opens it, and makes its folder where there is none.
    pub async fn open(&self) -> Result<FarmStore> {
        let file = match &self.address {
            StoreAddress::Postgres(url) => return FarmStore::postgres(url).await,
            StoreAddress::File(file) => file,
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
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
        FarmStore::file(file).await
    }

    /// Opens it where it is; a store that is looked at is not made.
    pub async fn open_existing(&self) -> Result<FarmStore> {
        match &self.address {
            StoreAddress::File(file) if host::identity(file).is_none() => {
                let shown = model::text::quoted(file);
                Err(Failure::usage(format!("there is no store {shown}: name one with --store sqlite:PATH")))
            }
            _ => self.open().await,
        }
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

/// The folder of what is kept between runs.
fn state(environment: &FarmEnvironment) -> PathBuf {
    let absolute = |text: &std::ffi::OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = environment.state_home.as_ref().and_then(absolute);
    let home = || environment.home.as_ref().and_then(absolute).map(|home| home.join(".local/state"));
    let folder = state.or_else(home).map(|state| state.join("onbeat"));
    folder.unwrap_or_else(|| PathBuf::from("/var/lib/onbeat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_engine() {
        let environment = FarmEnvironment { home: Some("/srv/x".into()), ..FarmEnvironment::default() };
        let of = |text| StorePlace::of(text, &environment);
        let file = |place: StorePlace| match place.address {
            StoreAddress::File(file) => (file, place.bundles),
            StoreAddress::Postgres(_) => panic!("a file was named"),
        };
        assert_eq!(file(of(None).unwrap()).0, Path::new("/srv/x/.local/state/onbeat/farm.db"));
        let named = of(Some("sqlite:/srv/farm.db")).unwrap();
        assert_eq!(file(named), ("/srv/farm.db".into(), "/srv/farm.db.bundles".into()));
        let database = of(Some("postgres://farm:secret@localhost/farm")).unwrap();
        assert!(matches!(database.address, StoreAddress::Postgres(_)));
        assert_eq!(database.bundles, Path::new("/srv/x/.local/state/onbeat/farm.bundles"));
        assert_eq!(database.with_bundles(Some(Path::new("/b"))).bundles, Path::new("/b"));
        for text in ["", "/srv/farm.db", "sqlite:", "postgre://u:secret@x/y", "mysql://u:secret@x"] {
            let refused = of(Some(text)).err().unwrap().message;
            assert!(refused.contains("sqlite:PATH") && !refused.contains("secret"), "{refused}");
        }
    }
}
