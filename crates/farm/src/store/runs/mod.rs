//! Runs as in lists.

pub mod counted;
pub mod dropped_environments;
pub mod earlier;
pub mod environments;
pub mod forget;
pub mod forget_run;
pub mod forgotten;
pub mod labels;
pub mod own_part;
pub mod pins;
pub mod put;
pub mod retention;
pub mod uploads;

use model::error::Result;
use model::labels::Labels;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::records::{FarmRun, SeriesKey};
use crate::store::{FarmStore, nanos, to_u64, trouble};

/// Data on a stored run for its board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDigest {
    pub id: String,
    pub complete: bool,
    /// Digest of its document.
    pub digest: Vec<u8>,
    /// Last manifest of it that the board sent, which names all of its files.
    pub manifest: Option<Vec<u8>>,
}

const COLUMNS: &str = "select r.id, b.key, r.command, r.series, r.plan, r.started, r.length_ns, r.complete, \
     r.cpus, r.cycles, r.missed, r.max_ns, r.p9999_ns, r.invalid, r.spikes, r.place, e.release, e.digest, \
     cast(case when p.run is null then 0 else 1 end as bigint) as pinned, coalesce(h.parts, '') as thinned \
     from run r join board b on b.id = r.board_id join environment e on e.id = r.environment_id \
     left join pin p on p.board_id = r.board_id and p.run = r.id \
     left join thinned h on h.board_id = r.board_id and h.run = r.id";

fn made(row: &AnyRow) -> sqlx::Result<FarmRun> {
    let count = |name| row.try_get::<i64, _>(name).map(to_u64);
    Ok(FarmRun {
        id: row.try_get("id")?,
        board: row.try_get("key")?,
        command: row.try_get("command")?,
        key: SeriesKey { series: row.try_get("series")?, plan: row.try_get("plan")? },
        started: row.try_get("started")?,
        length_ns: nanos(row.try_get("length_ns")?),
        complete: row.try_get::<i64, _>("complete")? != 0,
        cpus: count("cpus")?,
        cycles: count("cycles")?,
        missed: row.try_get::<Option<i64>, _>("missed")?.map(to_u64),
        max_ns: nanos(row.try_get("max_ns")?),
        p9999_ns: nanos(row.try_get("p9999_ns")?),
        invalid: count("invalid")?,
        spikes: count("spikes")?,
        release: row.try_get("release")?,
        environment: row.try_get("digest")?,
        labels: Labels::default(),
        pinned: row.try_get::<i64, _>("pinned")? != 0,
        thinned: row.try_get("thinned")?,
        place: row.try_get("place")?,
    })
}

/// The statement that lists runs, with conditions on run `r` and board `b`.
pub fn of(conditions: &str) -> String {
    format!("{COLUMNS} {conditions}")
}

/// Runs of such a list, without their labels.
pub fn all(rows: &[AnyRow]) -> Result<Vec<FarmRun>> {
    rows.iter().map(made).collect::<sqlx::Result<_>>().map_err(trouble)
}

impl FarmStore {
    /// A run by its id.
    pub async fn run(&self, id: &str) -> Result<Option<FarmRun>> {
        let query = sqlx::AssertSqlSafe(format!("{COLUMNS} where r.id = $1"));
        let row = sqlx::query(query).bind(id).fetch_optional(&self.pool).await.map_err(trouble)?;
        let found = row.as_ref().map(made).transpose().map_err(trouble)?;
        Ok(self.labelled(found.into_iter().collect()).await?.pop())
    }

    /// Runs of a board, the latest first, limited in number.
    pub async fn runs(&self, board: &str, most: i64) -> Result<Vec<FarmRun>> {
        let query = format!("{COLUMNS} where b.key = $1 order by r.started desc, r.id desc limit $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(board).bind(most);
        let rows = query.fetch_all(&self.pool).await.map_err(trouble)?;
        self.labelled(all(&rows)?).await
    }

    /// The latest runs that saw a culprit.
    pub async fn runs_with(&self, fingerprint: &str, most: i64) -> Result<Vec<FarmRun>> {
        let query = format!(
            "{COLUMNS} join culprit_run k on k.board_id = r.board_id and k.run = r.id \
             join culprit c on c.id = k.culprit_id where c.fingerprint = $1 \
             order by r.started desc, r.id desc limit $2"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(fingerprint).bind(most);
        let rows = query.fetch_all(&self.pool).await.map_err(trouble)?;
        self.labelled(all(&rows)?).await
    }

    /// The runs of a board with the digests of their documents, in the order of their ids, the last
    /// first: ids begin with their time. At most `most` before an id; with `""` from the last on.
    pub async fn run_digests(&self, board_id: i64, before: &str, most: i64) -> Result<Vec<RunDigest>> {
        type Row = (String, i64, Vec<u8>, Option<Vec<u8>>);
        let rows: Vec<Row> = sqlx::query_as(
            "select r.id, r.complete, r.digest, u.manifest from run r \
             left join sent_run u on u.board_id = r.board_id and u.run = r.id \
             where r.board_id = $1 and ($2 = '' or r.id < $2) order by r.id desc limit $3",
        )
        .bind(board_id)
        .bind(before)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let run = |(id, complete, digest, manifest): Row| {
            let complete = complete != 0;
            RunDigest { id, complete, digest, manifest }
        };
        Ok(rows.into_iter().map(run).collect())
    }

    /// Number of runs, and of complete ones.
    pub async fn totals(&self) -> Result<(u64, u64)> {
        let row: (i64, i64) =
            sqlx::query_as("select count(*), count(case when complete = 1 then 1 end) from run")
                .fetch_one(&self.pool)
                .await
                .map_err(trouble)?;
        Ok((to_u64(row.0), to_u64(row.1)))
    }
}

#[cfg(test)]
pub mod forget_run_tests;
