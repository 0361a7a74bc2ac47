//! Whether a store has every table and column of its schema: of a copy that was made by hand one
//! may be missing, and most statements do without most tables.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;

use super::{FarmStore, StoreEngine, trouble};

const SCHEMA: &str = include_str!("schema.sql");

/// Tables with their columns; of PostgreSQL those that a statement finds, in whichever schema of
/// the search path they are.
const OF_SQLITE: &str = "select m.name, cast(c.name as text) from sqlite_master m \
                         join pragma_table_info(m.name) c where m.type = 'table'";
const OF_POSTGRES: &str = "select cast(r.relname as text), cast(a.attname as text) from pg_class r \
                           join pg_namespace n on n.oid = r.relnamespace \
                           join pg_attribute a on a.attrelid = r.oid where pg_table_is_visible(r.oid) \
                           and n.nspname <> 'pg_catalog' and r.relkind in ('r', 'p', 'v', 'f') \
                           and a.attnum > 0 and not a.attisdropped";

impl FarmStore {
    /// Each table and column that is missing, in sentences.
    pub async fn missing_parts(&self) -> Result<Vec<String>> {
        let all = sqlx::query_as(match self.engine {
            StoreEngine::Sqlite => OF_SQLITE,
            StoreEngine::Postgres => OF_POSTGRES,
        });
        let found: Vec<(String, String)> = all.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut there: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (table, column) in found {
            there.entry(table).or_default().insert(column);
        }
        let mut missing = Vec::new();
        for (table, columns) in tables() {
            let Some(known) = there.get(table) else {
                missing.push(format!("the store has no table {table}: restore a backup"));
                continue;
            };
            let gone = columns.into_iter().filter(|column| !known.contains(*column));
            missing.extend(gone.map(|column| {
                format!("the table {table} of the store has no column {column}: restore a backup")
            }));
        }
        Ok(missing)
    }
}

/// The tables of the schema with their columns.
fn tables() -> Vec<(&'static str, Vec<&'static str>)> {
    let made = SCHEMA.split(";\n").filter_map(|text| text.split("create table if not exists ").nth(1));
    let table = |text: &'static str| {
        let (name, rest) = text.split_once(' ')?;
        let (_, rest) = rest.split_once('(')?;
        let (body, _) = rest.rsplit_once(')')?;
        Some((name, columns(body)))
    };
    made.filter_map(table).collect()
}

fn columns(body: &'static str) -> Vec<&'static str> {
    let mut depth = 0;
    let parts = body.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let names = parts.filter_map(|part| part.split_whitespace().next());
    names.filter(|name| !["primary", "unique"].contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn tables_and_their_columns_are_read_from_the_schema() {
        let all: BTreeMap<&str, Vec<&str>> = tables().into_iter().collect();
        assert_eq!(all.len(), SCHEMA.matches("create table if not exists ").count());
        assert_eq!(all["meta"], ["name", "value"]);
        assert_eq!(all["board"], ["id", "key", "name"]);
        assert_eq!(all["code"], ["hash", "until", "used"]);
        assert_eq!(all["board_setting"], ["board_id", "state", "since", "tags", "budget_ns"]);
        assert_eq!(all["label"], ["board_id", "recording", "name", "value", "from_t", "to_t"]);
        assert_eq!(all["slot"].len(), 14);
    }

    #[test]
    fn a_table_and_a_column_that_were_dropped_are_named() {
        on_each_engine(async |store| {
            assert_eq!(store.missing_parts().await.unwrap(), [""; 0]);
            for said in ["drop table label", "alter table kept drop column bytes", "drop table slot"] {
                sqlx::query(said).execute(&store.pool).await.unwrap();
            }
            let told = store.missing_parts().await.unwrap();
            let wanted = ["no table slot", "table kept of the store has no column bytes", "no table label"];
            assert_eq!(told.len(), wanted.len(), "{told:?}");
            for (told, words) in told.iter().zip(wanted) {
                assert!(told.contains(words) && told.ends_with("restore a backup"), "{told}");
            }
            // What else needs it says so, too.
            let failed = store.labels("a", 9).await.unwrap_err().message;
            assert!(failed.contains("restore a backup"), "{failed}");
        });
    }
}
