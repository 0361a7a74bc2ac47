//! `--store`: location of the farm's data.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result};
use model::text::{quoted, quoted_value};

use host::dir::Dir;
use host::{FolderLock, LockOutcome, LockOwner, RecordFolder};

use crate::cli::FarmEnvironment;
use crate::folders::bundles_beside;
use crate::store::FarmStore;

/// Bytes that are set aside for the commands that make room.
const ROOM: u64 = 16 << 20;

#[derive(clap::Args, Default)]
pub struct StoreFlag {
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    // Commands with subcommands accept it after these, too.
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
}

impl StoreFlag {
    /// The given store, or the default one.
    pub fn place(&self, environment: &FarmEnvironment) -> Result<StorePlace> {
        StorePlace::of(self.store.as_deref(), environment)
    }
}

/// The database.
enum StoreAddress {
    File(PathBuf),
    /// A URL that may hold a password: it is never printed.
    Postgres(String),
}

/// The store and the folder of bundles, which is next to a store in a file.
pub struct StorePlace {
    address: StoreAddress,
    pub bundles: PathBuf,
    /// True if that folder was given.
    is_named: bool,
}

impl StorePlace {
    /// Parses `sqlite:PATH` or `postgres://..`; the default place without either.
    pub fn of(given: Option<&str>, environment: &FarmEnvironment) -> Result<StorePlace> {
        let Some(text) = given else { return Ok(StorePlace::file(state(environment).join("farm.db"))) };
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let bundles = led_to(state(environment).join("farm.bundles"));
            let address = StoreAddress::Postgres(text.to_owned());
            return Ok(StorePlace { address, bundles, is_named: false });
        }
        match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
            Some(path) if !path.is_empty() => Ok(StorePlace::file(PathBuf::from(path))),
            // Text that looks like an address may contain a password.
            _ => Err(Failure::usage(format!(
                "invalid --store {}: expected sqlite:PATH or postgres://USER@HOST/DATABASE",
                quoted_value(text.split_once("://").map_or(text, |(scheme, _)| scheme))
            ))),
        }
    }

    /// A store in a file. A link is resolved, and the bundles are next to its target.
    pub fn file(file: PathBuf) -> StorePlace {
        let file = led_to(file);
        let bundles = led_to(bundles_beside(&file));
        StorePlace { address: StoreAddress::File(file), bundles, is_named: false }
    }

    /// True if it is in a database server, which has other means of backup.
    pub fn is_database(&self) -> bool {
        matches!(self.address, StoreAddress::Postgres(_))
    }

    /// The flag that selects this store, for a command to copy; a URL is shortened, as it may
    /// contain a password.
    pub fn flag(&self) -> String {
        match &self.address {
            StoreAddress::Postgres(_) => "--store postgres://..".to_owned(),
            StoreAddress::File(file) => {
                let whole = host::whole_path(file).unwrap_or_else(|_| file.clone());
                format!("--store sqlite:{}", quoted(&whole))
            }
        }
    }

    /// Uses a given folder for the bundles.
    pub fn with_bundles(mut self, folder: Option<&Path>) -> StorePlace {
        if let Some(folder) = folder {
            (self.bundles, self.is_named) = (led_to(folder.to_owned()), true);
        }
        self
    }

    /// Sets the umask of this process, so that new bundles are readable by their user alone: the
    /// pages ask for a login before they show their contents. Files that root creates in another
    /// user's folder stay readable, for that user's server shows them.
    pub fn keep_private(&self) {
        let nearest = self.bundles.ancestors().find_map(|folder| {
            if folder.as_os_str().is_empty() { host::is_own(Path::new(".")) } else { host::is_own(folder) }
        });
        if nearest == Some(true) {
            host::make_new_files_private();
        }
    }

    /// Opens it, and creates its folder if it does not exist.
    pub async fn open(&self) -> Result<FarmStore> {
        self.with_places(self.opened().await?).await
    }

    /// Opens it for a command whose output is valid for this store alone; reports that the store is
    /// new, for the server may use another one.
    pub async fn open_told(&self) -> Result<FarmStore> {
        let made = match &self.address {
            StoreAddress::File(file) if host::identity(file).is_none() => Some(file),
            _ => None,
        };
        let store = self.open().await?;
        if let Some(file) = made {
            let shown = quoted(file);
            crate::cli::say(&format!(
                "the store {shown} is new: a server that uses another store does not see this"
            ));
        }
        Ok(store)
    }

    async fn with_places(&self, store: FarmStore) -> Result<FarmStore> {
        if self.is_named {
            store.take_places_in(&self.bundles).await?;
        }
        Ok(store)
    }

    async fn opened(&self) -> Result<FarmStore> {
        let file = match &self.address {
            StoreAddress::Postgres(url) => return FarmStore::postgres(url).await,
            StoreAddress::File(file) => file,
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !host::is_dir(folder).unwrap_or(false) {
            Dir::create(folder).map_err(|error| {
                Failure::of_call(
                    format!("cannot create {}", quoted(folder)),
                    &error,
                    Exit::Usage,
                    "name a file in a folder that you may write to with --store",
                )
            })?;
        }
        FarmStore::file(file).await
    }

    /// Opens an existing store; reading commands create none, and an empty file is refused.
    pub async fn open_existing(&self) -> Result<FarmStore> {
        let store = match &self.address {
            StoreAddress::Postgres(url) => FarmStore::existing_postgres(url).await?,
            StoreAddress::File(file) => FarmStore::existing_file(file).await?,
        };
        self.with_places(store).await
    }

    /// Sets room aside on the store's disk, if it has any, for `prune` and `forget` to give up when
    /// that is full.
    pub fn set_room_aside(&self) {
        if let Some((folder, name)) = self.room()
            && !folder.names().is_ok_and(|names| names.contains(&name))
        {
            let _ = folder.reserve(&name, ROOM);
        }
    }

    /// Releases that space: recording a deletion takes space, too.
    pub fn give_room_up(&self) {
        if let Some((folder, name)) = self.room() {
            folder.remove(&name);
        }
    }

    /// The file that reserves it; `None` for a database.
    fn room(&self) -> Option<(Dir, String)> {
        let StoreAddress::File(file) = &self.address else { return None };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = file.file_name()?.to_str()?;
        Some((Dir::existing(folder).ok()?, format!("{name}.room")))
    }

    /// Makes this the only server of the store and of its bundles, as long as the locks live.
    pub fn lock(&self) -> Result<ServerLocks> {
        let store = match &self.address {
            StoreAddress::Postgres(_) => None,
            StoreAddress::File(file) => Some(held(file, lock_store(file))?),
        };
        let bundles = RecordFolder::make(&self.bundles).and_then(|folder| folder.lock());
        Ok(ServerLocks { _store: store, _bundles: held(&self.bundles, bundles)? })
    }

    /// Takes the same locks for a command that needs the server to be down; `None` if one runs.
    /// Creates no lock file of the store: a server could not open one that root owns.
    pub fn lock_idle(&self) -> Option<ServerLocks> {
        let store = match &self.address {
            StoreAddress::File(file) if has_lock(file) => Some(held(file, lock_store(file)).ok()?),
            _ => None,
        };
        let bundles = RecordFolder::open(&self.bundles).and_then(|folder| folder.lock());
        Some(ServerLocks { _store: store, _bundles: held(&self.bundles, bundles).ok()? })
    }
}

/// Locks that exclude other servers of a store, and sweeps of its folder of bundles.
pub struct ServerLocks {
    /// `None` for a database, which has its own (`ServerTurn`).
    _store: Option<FolderLock>,
    _bundles: FolderLock,
}

/// Target of a link; a path that does not exist yet is unchanged.
fn led_to(path: PathBuf) -> PathBuf {
    host::whole_path(&path).unwrap_or(path)
}

/// Path of the lock of a store in a file: next to it, because the folder of bundles may change, or
/// be removed while the server runs.
fn lock_of(file: &Path) -> io::Result<(PathBuf, OsString)> {
    // A link is the store that it leads to.
    let file = host::whole_path(file)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    Ok((file.parent().unwrap_or(Path::new("/")).to_owned(), name))
}

/// True if a server has created the lock, now or earlier.
fn has_lock(file: &Path) -> bool {
    lock_of(file).is_ok_and(|(folder, name)| host::identity(&folder.join(name)).is_some())
}

fn lock_store(file: &Path) -> io::Result<LockOutcome> {
    let (folder, name) = lock_of(file)?;
    RecordFolder::open(&folder)?.lock_as(&name)
}

/// The lock, or an error that names its holder.
fn held(what: &Path, locked: io::Result<LockOutcome>) -> Result<FolderLock> {
    let shown = quoted(what);
    let locked = locked.map_err(|error| {
        let what = format!("cannot lock {shown}");
        Failure::of_call(what, &error, Exit::Usage, "name a store in a folder that you may write to")
    })?;
    locked.ok_or_else(|LockOwner { pid }| {
        Failure::not_permitted(format!("process {pid} already serves {shown}: end it first"))
    })
}

/// The state folder.
fn state(environment: &FarmEnvironment) -> PathBuf {
    host::state_folder(environment.state_home.as_deref(), environment.home.as_deref())
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

    #[test]
    #[allow(clippy::disallowed_methods)] // A test makes files of its own.
    fn a_store_in_a_file_has_one_server_wherever_its_bundles_are() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for name in ["farm.db", "other.db"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(at("farm.db"), at("link.db")).unwrap();
        let place = |name: &str, bundles: &str| StorePlace::file(at(name)).with_bundles(Some(&at(bundles)));
        let server = place("farm.db", "a").lock().unwrap();
        std::fs::create_dir(at("c")).unwrap();
        let own = format!("process {} already serves", std::process::id());
        for (name, bundles) in [("farm.db", "a"), ("farm.db", "b"), ("link.db", "c"), ("other.db", "a")] {
            let refused = place(name, bundles).lock().err().unwrap();
            assert_eq!(refused.exit, Exit::NotPermitted);
            assert!(refused.message.contains(&own), "{}", refused.message);
            assert!(place(name, bundles).lock_idle().is_none(), "{name} {bundles}");
        }
        // The folder of bundles is lost, and made anew.
        std::fs::remove_dir_all(at("a")).unwrap();
        std::fs::create_dir(at("a")).unwrap();
        assert!(place("farm.db", "a").lock().is_err() && place("farm.db", "a").lock_idle().is_none());
        assert!(place("other.db", "c").lock_idle().is_some());
        drop(server);
        let idle = place("link.db", "a").lock_idle();
        assert!(idle.is_some() && place("farm.db", "c").lock().is_err());
        drop(idle);
        assert!(place("farm.db", "c").lock().is_ok());
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // A test makes files of its own.
    fn room_is_set_aside_on_the_disk_of_the_store_and_given_up() {
        let top = tempfile::tempdir().unwrap();
        let place = StorePlace::file(top.path().join("farm.db"));
        let taken = || {
            let found = std::fs::metadata(top.path().join("farm.db.room")).ok()?;
            Some(std::os::unix::fs::MetadataExt::blocks(&found) * 512)
        };
        for _ in 0..2 {
            place.set_room_aside();
            assert!(taken().is_some_and(|bytes| bytes >= ROOM), "{:?}", taken());
        }
        place.give_room_up();
        place.give_room_up();
        assert_eq!(taken(), None);
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // A test makes files of its own.
    fn a_link_is_what_it_leads_to_and_a_folder_of_bundles_may_be_one() {
        let top = tempfile::tempdir().unwrap();
        let top = host::whole_path(top.path()).unwrap();
        std::fs::write(top.join("farm.db"), "").unwrap();
        for folder in ["links", "large"] {
            std::fs::create_dir(top.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(top.join("farm.db"), top.join("links/link.db")).unwrap();
        let bundles = |name: &str| StorePlace::file(top.join(name)).bundles;
        assert_eq!(bundles("links/link.db"), top.join("farm.db.bundles"));
        std::os::unix::fs::symlink(top.join("large"), top.join("farm.db.bundles")).unwrap();
        for name in ["farm.db", "links/link.db"] {
            assert_eq!(bundles(name), top.join("large"));
        }
        let named = StorePlace::file(top.join("farm.db")).with_bundles(Some(&top.join("farm.db.bundles")));
        assert_eq!(named.bundles, top.join("large"));
        assert!(StorePlace::file(top.join("farm.db")).lock().is_ok());
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // A test makes files of its own.
    fn who_only_sweeps_leaves_no_lock_of_the_store() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("farm.db"), "").unwrap();
        let place = StorePlace::file(top.path().join("farm.db"));
        assert!(place.lock_idle().is_none(), "no folder of bundles");
        std::fs::create_dir(&place.bundles).unwrap();
        assert!(place.lock_idle().is_some() && !top.path().join("farm.db.lock").exists());
        assert!(place.lock().is_ok() && top.path().join("farm.db.lock").exists());
    }
}
