//! Audit log: user, time, action. The latest entries are kept.

use model::error::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::store::{FarmStore, trouble};

/// Number of entries that are kept.
const KEPT: i64 = 10_000;

/// An action of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditEntry {
    /// Time in ns since 1970.
    pub t_ns: i64,
    pub who: String,
    pub what: String,
}

impl FarmStore {
    /// Adds an entry.
    pub async fn note(&self, entry: &AuditEntry) -> Result<()> {
        // Distinguishes entries of the same nanosecond.
        let n = i64::from_ne_bytes(host::random_u64().to_ne_bytes());
        let insert = sqlx::query(
            "insert into audit (t_ns, n, who, what) values ($1, $2, $3, $4) on conflict do nothing",
        );
        let insert = insert.bind(entry.t_ns).bind(n).bind(&entry.who).bind(&entry.what);
        insert.execute(&self.pool).await.map_err(trouble)?;
        let old = sqlx::query(
            "delete from audit where t_ns < (select min(k.t_ns) from (select t_ns from audit order by t_ns \
             desc limit $1) k)",
        );
        old.bind(KEPT).execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }

    /// The last that was done, the latest first.
    pub async fn audit(&self, most: i64) -> Result<Vec<AuditEntry>> {
        let rows: Vec<(i64, String, String)> =
            sqlx::query_as("select t_ns, who, what from audit order by t_ns desc, n desc limit $1")
                .bind(most)
                .fetch_all(&self.pool)
                .await
                .map_err(trouble)?;
        Ok(rows.into_iter().map(|(t_ns, who, what)| AuditEntry { t_ns, who, what }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn the_latest_comes_first() {
        on_each_engine(async |store| {
            for t_ns in 0..5 {
                let entry = AuditEntry { t_ns, who: "ann".into(), what: format!("<{t_ns}>") };
                store.note(&entry).await.unwrap();
            }
            let all = store.audit(3).await.unwrap();
            assert_eq!(all.iter().map(|one| one.t_ns).collect::<Vec<_>>(), [4, 3, 2]);
            assert_eq!(all[0].what, "<4>");
        });
    }
}
