//! Numbers that are refused today and that a store may have from a version that took them.

use model::error::Result;

use super::{FarmStore, to_i64, trouble};
use crate::ingest::plausible::{LONGEST, MOST_SAMPLES};

/// Lines of each kind: one such board may have any number of them.
const MOST_NAMED: i64 = 1_000;
/// What is added up for a day may be more than a run has.
const MOST_OF_DAY: i64 = 1 << 62;

/// What takes a run with such a number away.
fn removed_by(run: &str) -> String {
    format!(": `onbeat-farm forget {run}` removes it")
}

impl FarmStore {
    /// Each number that no machine reaches, and each time after the latest that can be, with its
    /// board and run, in sentences.
    pub async fn out_of_range(&self, latest: i64) -> Result<Vec<String>> {
        let mut named = self.runs_out_of_range(latest).await?;
        named.extend(self.culprits_out_of_range().await?);
        named.extend(self.slots_out_of_range(latest).await?);
        named.extend(self.sums_out_of_range().await?);
        Ok(named)
    }

    async fn runs_out_of_range(&self, latest: i64) -> Result<Vec<String>> {
        type Row = (String, String, i64, i64, i64, i64, i64, i64);
        let rows: Vec<Row> = sqlx::query_as(
            "select b.key, r.id, r.started, r.cycles, coalesce(r.missed, 0), r.spikes, \
             coalesce(r.length_ns, 0), coalesce(r.max_ns, 0) from run r join board b on b.id = r.board_id \
             where r.started > $1 or r.cycles > $2 or r.missed > $3 or r.spikes > $4 or r.length_ns > $5 \
             or r.length_ns < 0 or r.max_ns > $6 order by b.key, r.id limit $7",
        )
        .bind(latest)
        .bind(to_i64(MOST_SAMPLES))
        .bind(to_i64(MOST_SAMPLES))
        .bind(to_i64(MOST_SAMPLES))
        .bind(LONGEST.0)
        .bind(LONGEST.0)
        .bind(MOST_NAMED)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut named = Vec::new();
        for (board, id, started, cycles, missed, spikes, length, max) in rows {
            if started > latest {
                let when = format!("began at {started} s since 1970, in the future");
                named.push(format!("{board}: the run {id} {when}{}", removed_by(&id)));
            }
            let counts = [("cycles", cycles), ("missed", missed), ("spikes", spikes)];
            let spans = [("length_ns", length), ("max_ns", max)];
            let counts = counts.into_iter().filter(|(_, n)| *n > to_i64(MOST_SAMPLES));
            let spans =
                spans.into_iter().filter(|(name, n)| *n > LONGEST.0 || (*n < 0 && *name == "length_ns"));
            named.extend(counts.chain(spans).map(|(name, n)| {
                let by = removed_by(&id);
                format!("{board}: the run {id} has a {name} of {n}, which no machine reaches{by}")
            }));
        }
        Ok(named)
    }

    async fn culprits_out_of_range(&self) -> Result<Vec<String>> {
        let rows: Vec<(String, String, String, i64, i64)> = sqlx::query_as(
            "select b.key, k.run, c.name, k.spikes, k.total_ns from culprit_run k \
             join board b on b.id = k.board_id join culprit c on c.id = k.culprit_id \
             where k.spikes > $1 or k.total_ns > $2 or k.total_ns < 0 order by b.key, k.run, c.name limit $3",
        )
        .bind(to_i64(MOST_SAMPLES))
        .bind(LONGEST.0)
        .bind(MOST_NAMED)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(board, run, name, spikes, total): (String, String, String, i64, i64)| {
            let name = model::text::excerpt(&name);
            format!(
                "{board}: the culprit {name} has {spikes} spikes and a total_ns of {total} in the run {run}, \
                 which no machine reaches{}",
                removed_by(&run)
            )
        };
        Ok(rows.into_iter().map(one).collect())
    }

    async fn slots_out_of_range(&self, latest: i64) -> Result<Vec<String>> {
        type Row = (String, String, i64, String, i64, i64, i64, i64);
        let rows: Vec<Row> = sqlx::query_as(
            "select b.key, s.series, s.t, s.recording, s.n, s.missed, coalesce(s.max_ns, 0), \
             (select count(*) from run r where r.board_id = s.board_id and r.id = s.recording) from slot s \
             join board b on b.id = s.board_id where s.t > $1 or s.n > $2 or s.missed > $3 or s.max_ns > $4 \
             order by b.key, s.series, s.t, s.recording limit $5",
        )
        .bind(latest)
        .bind(to_i64(MOST_SAMPLES))
        .bind(to_i64(MOST_SAMPLES))
        .bind(LONGEST.0)
        .bind(MOST_NAMED)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(board, series, t, recording, n, missed, max, runs): Row| {
            let what = match t > latest {
                true => "is in the future".to_owned(),
                false => {
                    format!("has {n} samples, {missed} missed and a max_ns of {max}: no machine reaches it")
                }
            };
            let by = if runs > 0 { removed_by(&recording) } else { String::new() };
            format!("{board}: the slot of {series} at {t} of {recording} {what}{by}")
        };
        Ok(rows.into_iter().map(one).collect())
    }

    async fn sums_out_of_range(&self) -> Result<Vec<String>> {
        let rows: Vec<(String, String, i64, i64, i64)> = sqlx::query_as(
            "select b.key, h.series, h.t, h.n, coalesce(h.max_ns, 0) from hist h \
             join board b on b.id = h.board_id where h.n > $1 or h.missed > $2 or h.max_ns > $3 \
             order by b.key, h.series, h.t limit $4",
        )
        .bind(MOST_OF_DAY)
        .bind(MOST_OF_DAY)
        .bind(LONGEST.0)
        .bind(MOST_NAMED)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(board, series, t, n, max): (String, String, i64, i64, i64)| {
            format!(
                "{board}: the histogram of {series} at {t} has {n} samples and a max_ns of {max}, which no \
                 machine reaches"
            )
        };
        Ok(rows.into_iter().map(one).collect())
    }
}
