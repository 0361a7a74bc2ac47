//! Checks a store's file before it is opened: a file of another kind is refused at once, and not
//! written to.

use std::path::Path;

use model::error::{Exit, Failure, Result};
use model::text::{excerpt, quoted};
use sqlx::{AnyConnection, Connection};

/// The version of a store's schema.
pub const SCHEMA: &str = "select max(version) from _sqlx_migrations";

/// SQLite's primary result codes ("Result and Error Codes") for a file that is not a database, or
/// is missing or damaged.
const NOT_A_DATABASE: [i32; 3] = [11, 14, 26];
/// Result codes for a file that this user may not open, or not write.
const NOT_PERMITTED: [i32; 3] = [3, 8, 23];
/// Result codes for a file that another program holds locked beyond the driver's timeout.
const LOCKED: [i32; 2] = [5, 6];
/// Number of tables that a store of every version has; they are created in one transaction.
const OURS: &str = "select count(*) from sqlite_master where type = 'table' \
                    and name in ('meta', 'board', 'environment', 'plan', 'run', 'slot', 'hist')";
const OUR_TABLES: i64 = 7;
/// No other program's database has that many of them.
const MOST_OF_OURS: i64 = 4;

/// Creates the file if it does not exist, readable by its user alone, because it contains digests
/// of passwords; SQLite's additional files get the same mode. Refuses other files, without writing
/// to them; returns true for a store that is not empty.
pub async fn look_at(path: &Path, url: &str) -> Result<bool> {
    let remedy =
        "run this as the user of the server, or name a file in a folder that you may write to with --store";
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    host::make_private_file(path)
        .and_then(|()| host::check_access(path))
        .and_then(|()| host::check_access(folder))
        .map_err(|error| {
            let what = format!("cannot write to the store {}", quoted(path));
            Failure::of_call(what, &error, Exit::Usage, remedy)
        })?;
    if let Some(names @ 2..) = host::count_names(path) {
        // SQLite keeps its log next to the name by which a file is opened ("How To Corrupt An
        // SQLite Database File", "Multiple links to the same file").
        let shown = quoted(path);
        return Err(Failure::usage(format!(
            "{shown} has {names} hard links, and writing through one damages what is written through \
             another: remove the others (`find -samefile` lists them), or copy the file"
        )));
    }
    let unopened = |error: sqlx::Error| refusal(path, &error);
    // Not through the pool, which would try for half a minute whatever is wrong.
    let mut connection = AnyConnection::connect(url).await.map_err(unopened)?;
    let made = "select count(*) from sqlite_master where name not like 'sqlite_%'";
    let made: i64 = sqlx::query_scalar(made).fetch_one(&mut connection).await.map_err(unopened)?;
    let ours: i64 = sqlx::query_scalar(OURS).fetch_one(&mut connection).await.map_err(unopened)?;
    let schema = sqlx::query_scalar::<_, Option<i64>>(SCHEMA);
    let has_schema = matches!(schema.fetch_one(&mut connection).await, Ok(Some(_)));
    connection.close().await.map_err(unopened)?;
    match ours {
        _ if made == 0 => Ok(false),
        OUR_TABLES if has_schema => Ok(true),
        // Others have a table of such a name, too.
        MOST_OF_OURS.. => Err(Failure::usage(format!(
            "{} is an incomplete store of onbeat-farm: restore a backup",
            quoted(path)
        ))),
        _ => Err(Failure::usage(format!(
            "{} is the database of another program: name a file for the farm only with --store",
            quoted(path)
        ))),
    }
}

fn refusal(path: &Path, error: &sqlx::Error) -> Failure {
    let (shown, said) = (quoted(path), excerpt(&error.to_string()));
    let code = error.as_database_error().and_then(|told| told.code()?.parse::<i32>().ok());
    match code.map(|code| code & 0xff) {
        Some(code) if NOT_A_DATABASE.contains(&code) => Failure::usage(format!(
            "{shown} is not a store of onbeat-farm, or is damaged: restore a backup, or name another file \
             with --store"
        )),
        Some(code) if NOT_PERMITTED.contains(&code) => Failure::not_permitted(format!(
            "{shown} cannot be opened ({said}): run this as the user of the server, or name a file in a \
             folder that you may write to with --store"
        )),
        Some(code) if LOCKED.contains(&code) => {
            Failure::internal(format!("another program has locked {shown} ({said}): try again later"))
        }
        _ => Failure::internal(format!("cannot open {shown} ({said}): check its disk, and try again")),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use crate::store::FarmStore;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_no_store_is_refused_at_once_and_stays_as_it_is() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            fs::write(at("garbage"), "no database ".repeat(2_000)).unwrap();
            fs::write(at("short"), "no database").unwrap();
            let store = FarmStore::file(&at("cut")).await.unwrap();
            store.pool.close().await;
            let length = fs::metadata(at("cut")).unwrap().len();
            let cut = fs::File::options().write(true).open(at("cut")).unwrap();
            cut.set_len(length / 2).unwrap();
            sqlx::any::install_default_drivers();
            let url = format!("sqlite://{}?mode=rwc", at("foreign").display());
            let mut foreign = AnyConnection::connect(&url).await.unwrap();
            sqlx::query("create table notes (text text)").execute(&mut foreign).await.unwrap();
            foreign.close().await.unwrap();
            let url = format!("sqlite://{}?mode=rwc", at("alike").display());
            let mut alike = AnyConnection::connect(&url).await.unwrap();
            for statement in [
                "create table meta (name text primary key, value bigint not null)",
                "create table run (id text primary key)",
            ] {
                sqlx::query(statement).execute(&mut alike).await.unwrap();
            }
            alike.close().await.unwrap();
            let store = FarmStore::file(&at("lacking")).await.unwrap();
            sqlx::query("drop table slot").execute(&store.pool).await.unwrap();
            store.close().await;
            for (name, words) in [
                ("garbage", "restore a backup"),
                ("short", "restore a backup"),
                ("cut", "restore a backup"),
                ("foreign", "of another program"),
                ("alike", "of another program"),
                ("lacking", "incomplete store of onbeat-farm: restore a backup"),
            ] {
                let before = fs::read(at(name)).unwrap();
                let refused = FarmStore::file(&at(name)).await.err().unwrap();
                assert_eq!(refused.exit, Exit::Usage, "{name}: {}", refused.message);
                assert!(refused.message.contains(words) && !refused.message.contains('\n'), "{name}");
                assert!(fs::read(at(name)).unwrap() == before, "{name} was written to");
            }
            for name in ["a?b", "100%", "h#x", "new\nline", "tab\t"] {
                let refused = FarmStore::file(&at(name)).await.err().unwrap();
                assert!(
                    refused.exit == Exit::Usage && refused.message.contains("expected UTF-8 without"),
                    "{name:?}"
                );
                assert!(!refused.message.contains(['\n', '\t']) && !at(name).exists(), "{name:?}");
            }
            // An empty file becomes a store.
            fs::write(at("empty"), "").unwrap();
            assert!(FarmStore::file(&at("empty")).await.is_ok());
        });
    }

    #[test]
    fn a_store_that_has_to_be_there_is_not_made() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            // As left by an interrupted backup, and as one without tables.
            fs::write(at("empty"), "").unwrap();
            sqlx::any::install_default_drivers();
            let url = format!("sqlite://{}?mode=rwc", at("bare").display());
            let mut bare = AnyConnection::connect(&url).await.unwrap();
            for statement in ["create table one (n bigint)", "drop table one"] {
                sqlx::query(statement).execute(&mut bare).await.unwrap();
            }
            bare.close().await.unwrap();
            for (name, words) in [("none", "no store exists"), ("empty", "is empty"), ("bare", "is empty")] {
                let before = fs::read(at(name)).ok();
                let refused = FarmStore::existing_file(&at(name)).await.err().unwrap();
                assert_eq!(refused.exit, Exit::Usage, "{name}: {}", refused.message);
                assert!(refused.message.contains(words) && !refused.message.contains('\n'), "{name}");
                assert_eq!(fs::read(at(name)).ok(), before, "{name} was written to");
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
            FarmStore::file(&at("farm.db")).await.unwrap().close().await;
            assert!(FarmStore::existing_file(&at("farm.db")).await.is_ok());
        });
    }

    #[test]
    fn a_store_with_two_names_is_refused_by_either_until_it_has_one() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let store = FarmStore::file(&at("farm.db")).await.unwrap();
            fs::hard_link(at("farm.db"), at("other.db")).unwrap();
            // Also while it is open by the first.
            for closed in [false, true] {
                if closed {
                    store.pool.close().await;
                }
                for name in ["farm.db", "other.db"] {
                    let refused = FarmStore::file(&at(name)).await.err().unwrap();
                    assert_eq!(refused.exit, Exit::Usage);
                    let told = refused.message;
                    assert!(told.contains("2 hard links") && !told.contains('\n'), "{told}");
                    assert!(!at("other.db-wal").exists(), "it was opened");
                }
            }
            fs::remove_file(at("other.db")).unwrap();
            assert!(FarmStore::file(&at("farm.db")).await.is_ok());
            // A link of the other kind is the file that it leads to.
            std::os::unix::fs::symlink(at("farm.db"), at("link.db")).unwrap();
            assert!(FarmStore::file(&at("link.db")).await.is_ok());
        });
    }

    #[test]
    fn a_new_store_is_its_users_alone_and_one_that_cannot_be_written_is_not_permitted() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let store = FarmStore::file(&at("farm.db")).await.unwrap();
            assert!(store.answers().await);
            for entry in fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                let mode = entry.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
            }
            store.pool.close().await;
            assert_eq!(FarmStore::file(folder.path()).await.err().unwrap().exit, Exit::Usage);
            // Root may write everywhere.
            if host::is_root() {
                return;
            }
            let mode =
                |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            mode(&at("farm.db"), 0o400);
            let refused = FarmStore::file(&at("farm.db")).await.err().unwrap();
            assert!(refused.exit == Exit::NotPermitted && refused.message.contains("--store"));
            mode(&at("farm.db"), 0o600);
            mode(folder.path(), 0o500);
            let refused = (FarmStore::file(&at("farm.db")).await, FarmStore::file(&at("new.db")).await);
            mode(folder.path(), 0o700);
            assert_eq!(refused.0.err().unwrap().exit, Exit::NotPermitted);
            assert_eq!(refused.1.err().unwrap().exit, Exit::NotPermitted);
        });
    }
}
