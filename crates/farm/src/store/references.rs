//! Rows that name rows of other tables: whether these are there.
//!
//! Only what holds at each commit of this and earlier programs is looked at. Not among it: rows
//! name environments that may be sent later, labels stand for rows that may have no samples of
//! their series, boots were not always kept, sessions begin while their person is removed.

use model::error::Result;
use model::text::several;
use sqlx::AssertSqlSafe;

use super::{FarmStore, trouble};

/// What rows of one table name of another.
struct Reference {
    /// The table `x`, and those of its rows that do.
    from: &'static str,
    rows: &'static str,
    /// Their columns, and those of the other table that have the same.
    columns: &'static [&'static str],
    to: &'static str,
    there: &'static [&'static str],
    /// What they are, in words, and what is to be done.
    what: &'static str,
    remedy: &'static str,
}

const ALL: &str = "1 = 1";
const OF_NO_RUN: &str = "of a run that is not there";
const BACKUP: &str = "restore a backup";
const SEND_AGAIN: &str = "restore a backup, or remove the run with `onbeat-farm forget` and import it again";
const NEW_CODE: &str = "restore a backup, or make another code with `onbeat-farm enrol`";

const fn of_board(from: &'static str) -> Reference {
    let (columns, there) = (&["board_id"], &["id"]);
    let what = "of a board that is not there";
    Reference { from, rows: ALL, columns, to: "board", there, what, remedy: BACKUP }
}

const fn of_run(from: &'static str) -> Reference {
    let (columns, there) = (&["board_id", "run"], &["board_id", "id"]);
    Reference { from, rows: ALL, columns, to: "run", there, what: OF_NO_RUN, remedy: BACKUP }
}

const REFERENCES: &[Reference] = &[
    of_board("run"),
    of_board("slot"),
    of_board("hist"),
    of_board("culprit_run"),
    of_board("culprit_day"),
    of_board("row_key"),
    of_board("watch_environment"),
    of_board("row_environment"),
    of_board("boot"),
    of_board("token"),
    of_board("upload"),
    of_board("kept"),
    of_board("told"),
    of_board("board_setting"),
    of_board("acknowledged"),
    of_board("label"),
    of_board("pin"),
    of_board("thinned"),
    of_run("upload"),
    of_run("kept"),
    of_run("pin"),
    of_run("thinned"),
    Reference {
        columns: &["board_id", "run", "t"],
        there: &["board_id", "id", "started"],
        what: "of a run that is not there, or that began at another time",
        ..of_run("culprit_run")
    },
    Reference {
        // Those of a run hold for all time.
        rows: "x.from_t < -4611686018427387904",
        columns: &["board_id", "recording"],
        ..of_run("label")
    },
    Reference {
        from: "run",
        rows: ALL,
        columns: &["environment_id"],
        to: "environment",
        there: &["id"],
        what: "of an environment that is not there",
        remedy: SEND_AGAIN,
    },
    Reference {
        from: "run",
        rows: ALL,
        columns: &["series", "plan"],
        to: "plan",
        there: &["series", "plan"],
        what: "of a plan that is not there",
        remedy: SEND_AGAIN,
    },
    Reference {
        from: "watch_environment",
        rows: ALL,
        columns: &["environment_id"],
        to: "environment",
        there: &["id"],
        what: "of an environment that is not there",
        remedy: BACKUP,
    },
    Reference {
        from: "culprit_run",
        rows: ALL,
        columns: &["culprit_id"],
        to: "culprit",
        there: &["id"],
        what: "of a culprit that is not there",
        remedy: SEND_AGAIN,
    },
    Reference {
        from: "culprit_day",
        rows: ALL,
        columns: &["culprit_id"],
        to: "culprit",
        there: &["id"],
        what: "of a culprit that is not there",
        remedy: BACKUP,
    },
    Reference {
        from: "board",
        rows: ALL,
        columns: &["id"],
        to: "board_setting",
        there: &["board_id"],
        what: "without settings, for which no page shows its board",
        remedy: BACKUP,
    },
    Reference {
        from: "code_tag",
        rows: ALL,
        columns: &["hash"],
        to: "code",
        there: &["hash"],
        what: "of a code that is not there",
        remedy: NEW_CODE,
    },
    Reference {
        from: "code_board",
        rows: ALL,
        columns: &["hash"],
        to: "code",
        there: &["hash"],
        what: "of a code that is not there",
        remedy: NEW_CODE,
    },
];

impl Reference {
    /// How many rows name what is not there, with the least of what they name. By one column a list
    /// is asked, which a distributed database can look up from any table.
    fn statement(&self) -> String {
        let Reference { from, rows, columns, to, there, .. } = self;
        let is_missing = match (columns, there) {
            ([column], [of]) => format!("x.{column} not in (select y.{of} from {to} y)"),
            _ => {
                let pairs: Vec<String> =
                    columns.iter().zip(*there).map(|(column, of)| format!("y.{of} = x.{column}")).collect();
                format!("not exists (select 1 from {to} y where {})", pairs.join(" and "))
            }
        };
        // A hash is no text in either engine.
        let least = columns.iter().rev().find(|column| !["t", "hash"].contains(column));
        let least = least.map_or_else(|| "''".to_owned(), |column| format!("min(x.{column})"));
        format!("select count(*), cast({least} as text) from {from} x where {rows} and {is_missing}")
    }
}

impl FarmStore {
    /// References to what is not there, a sentence for each kind. Each is asked for in one
    /// statement, which sees the store as it is at one moment.
    pub async fn broken_references(&self) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        for reference in REFERENCES {
            let ask = sqlx::query_as(AssertSqlSafe(reference.statement()));
            let (count, least): (i64, Option<String>) = ask.fetch_one(&self.pool).await.map_err(trouble)?;
            if count > 0 {
                let Reference { from, what, remedy, .. } = reference;
                let rows = several(count.unsigned_abs(), "row", "rows");
                let least = least.filter(|least| !least.is_empty());
                let least = least.map_or_else(String::new, |least| format!(" ({least})"));
                broken.push(format!("{from}: {rows} {what}{least}: {remedy}"));
            }
        }
        Ok(broken)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::engines::on_each_engine;
    use crate::store::filled_store::fill;

    #[test]
    fn what_names_something_that_is_gone_is_told_and_nothing_of_a_store_that_has_all() {
        let tables: BTreeSet<&str> = REFERENCES.iter().map(|reference| reference.to).collect();
        for to in tables {
            on_each_engine(async |store| {
                fill(&store).await;
                assert_eq!(store.broken_references().await.unwrap(), [""; 0]);
                let all = sqlx::query(AssertSqlSafe(format!("delete from {to}")));
                all.execute(&store.pool).await.unwrap();
                let told = store.broken_references().await.unwrap();
                for Reference { from, what, .. } in REFERENCES.iter().filter(|one| one.to == to) {
                    let named =
                        |line: &&String| line.starts_with(&format!("{from}: ")) && line.contains(what);
                    assert_eq!(told.iter().filter(named).count(), 1, "{from} to {to}: {told:#?}");
                }
            });
        }
    }

    #[test]
    fn each_table_that_names_a_board_or_a_run_is_looked_at() {
        let made = include_str!("schema.sql").split("create table if not exists ").skip(1);
        for text in made {
            let table = text.split(' ').next().unwrap();
            let columns = text.split(";\n").next().unwrap();
            for (column, to) in [("board_id bigint", "board"), (" run text", "run")] {
                let is_looked_at = REFERENCES.iter().any(|one| one.from == table && one.to == to);
                assert!(is_looked_at || !columns.contains(column), "{table} to {to}");
            }
        }
    }
}
