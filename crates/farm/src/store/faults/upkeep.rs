//! Verification of the store, and removal of old data.

use std::path::Path;

use model::error::{Failure, Result};
use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::encoding::{unpack_peaks, unpack_rows};
use crate::ingest::environment::hex;
use crate::records::{SeriesKey, Tier};
use crate::store::faults::maxima::SeriesMaxima;
use crate::store::faults::sums::{CheckedSeries, missed_faults, of_series, sum_faults};
use crate::store::faults::totals::{CheckedTotals, total_faults};
use crate::store::runs::retention::ThinnedPart;
use crate::store::{FarmStore, StoreEngine, nanos, to_u64, trouble};
use crate::wall_clock::DAY;

/// Blobs that are looked at together.
const AT_ONCE: i64 = 2_000;

const PLACES: &str = "select r.id, r.place, r.digest, r.complete, r.max_ns, coalesce(h.parts, ''), \
                      u.manifest, u.bytes, r.missed, r.p9999_ns, r.invalid, r.spikes, \
                      (select count(*) from culprit_run c where c.board_id = r.board_id and c.run = r.id), \
                      r.cpus, r.length_ns from run r \
                      left join thinned h on h.board_id = r.board_id and h.run = r.id \
                      left join sent_run u on u.board_id = r.board_id and u.run = r.id";
type PlaceRow = (
    String,
    String,
    Vec<u8>,
    i64,
    Option<i64>,
    String,
    Option<Vec<u8>>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    i64,
    i64,
    i64,
    i64,
    Option<i64>,
);

/// Displayed values of a run that its document contains as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownNumbers {
    pub missed: Option<u64>,
    pub p9999_ns: Option<Nanos>,
    pub invalid: u64,
    pub spikes: u64,
    /// Number of its culprits.
    pub culprits: u64,
    pub cpus: u64,
    pub length_ns: Option<Nanos>,
}

/// Place and identity of a run's bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePlace {
    pub id: String,
    pub place: String,
    /// SHA-256 of its document.
    pub digest: Vec<u8>,
    /// Displayed largest latency.
    pub max_ns: Option<Nanos>,
    /// Other displayed values.
    pub shown: ShownNumbers,
    /// Else it was on, or killed.
    pub is_over: bool,
    /// True unless `prune` has removed its seconds and five minutes.
    pub has_seconds: bool,
    /// Bytes that its board sent, if its place is the folder that they were written to, and `prune`
    /// removed nothing.
    pub sent_bytes: Option<u64>,
}

impl FarmStore {
    /// Unique number of the store, drawn at random at its first use; a backup has the same.
    pub async fn identity(&self) -> Result<i64> {
        let drawn = host::secret().map_err(|error| {
            Failure::internal(format!("cannot get random numbers from the kernel ({error}): try again"))
        })?;
        let drawn = i64::from_le_bytes(std::array::from_fn(|at| drawn[at]));
        let add = sqlx::query("insert into meta (name, value) values ('store', $1) on conflict do nothing");
        add.bind(drawn).execute(&self.pool).await.map_err(trouble)?;
        let known = sqlx::query_scalar("select value from meta where name = 'store'");
        known.fetch_one(&self.pool).await.map_err(trouble)
    }

    /// Faults, a sentence each. Each series is read in one snapshot, as a server may write at the
    /// same time.
    pub async fn faults(&self) -> Result<Vec<String>> {
        let mut faults: Vec<String> = Vec::new();
        // PostgreSQL looks after its files by itself, and has pg_amcheck.
        if self.engine == StoreEngine::Sqlite {
            let look = sqlx::query_scalar("pragma integrity_check");
            faults = look.fetch_all(&self.pool).await.map_err(trouble)?;
            faults.retain(|line| line != "ok");
            // PostgreSQL holds each reference in every statement.
            let broken = "select \"table\", parent, count(*) from pragma_foreign_key_check group by 1, 2";
            let broken: Vec<(String, String, i64)> =
                sqlx::query_as(broken).fetch_all(&self.pool).await.map_err(trouble)?;
            faults.extend(broken.into_iter().map(|(table, parent, rows)| {
                format!("{rows} rows of {table} refer to missing rows of {parent}: restore a backup")
            }));
        }
        let keys: Vec<CheckedSeries> = sqlx::query_as(
            "select h.board_id, b.key, h.series, h.plan from (select board_id, series, plan from hist \
             union select board_id, series, plan from run) h join board b on b.id = h.board_id \
             order by b.key, h.series, h.plan",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        for key in &keys {
            let (mut all, mut maxima) = (self.snapshot().await?, SeriesMaxima::default());
            let totals = blob_faults(&mut all, key, &mut maxima, &mut faults).await?;
            total_faults(&mut all, key, &totals, &mut faults).await?;
            peak_faults(&mut all, key, &mut maxima, &mut faults).await?;
            maximum_faults(&mut all, key, &maxima, &mut faults).await?;
            sum_faults(&mut all, key, &mut faults).await?;
            missed_faults(&mut all, key, &mut faults).await?;
            all.rollback().await.map_err(trouble)?;
        }
        Ok(faults)
    }

    /// Copies a store in a file to a new file, as a snapshot.
    pub async fn copy_to(&self, file: &str) -> Result<()> {
        sqlx::query("vacuum into $1").bind(file).execute(&self.pool).await.map_err(trouble)?;
        Ok(())
    }

    /// The first and the last time of a series, in slots and days.
    pub async fn extent(&self, board: &str, key: &SeriesKey) -> Result<Option<(i64, i64)>> {
        let of = |table: &str| {
            format!(
                "select min(x.t), max(x.t) from {table} x join board b on b.id = x.board_id \
                 where b.key = $1 and x.series = $2 and x.plan = $3"
            )
        };
        let mut extent: Option<(i64, i64)> = None;
        for table in ["slot", "hist"] {
            let query = sqlx::query_as(AssertSqlSafe(of(table)));
            let found: (Option<i64>, Option<i64>) = query
                .bind(board)
                .bind(&key.series)
                .bind(&key.plan)
                .fetch_one(&self.pool)
                .await
                .map_err(trouble)?;
            if let (Some(first), Some(last)) = found {
                let known = extent.unwrap_or((first, last));
                extent = Some((known.0.min(first), known.1.max(last)));
            }
        }
        Ok(extent)
    }

    /// All runs, with the places of their bundles.
    pub async fn places(&self) -> Result<Vec<BundlePlace>> {
        let places = sqlx::query_as(AssertSqlSafe(format!("{PLACES} order by r.id")));
        let all: Vec<PlaceRow> = places.fetch_all(&self.pool).await.map_err(trouble)?;
        Ok(all.into_iter().map(|row| self.placed(row)).collect())
    }

    /// The same for one run; `None` for an unknown one.
    pub async fn place_of(&self, run: &str) -> Result<Option<BundlePlace>> {
        let place = sqlx::query_as(AssertSqlSafe(format!("{PLACES} where r.id = $1"))).bind(run);
        let found: Option<PlaceRow> = place.fetch_optional(&self.pool).await.map_err(trouble)?;
        Ok(found.map(|row| self.placed(row)))
    }

    fn placed(&self, row: PlaceRow) -> BundlePlace {
        let (id, place, digest, complete, max_ns, thinned, manifest, bytes, ..) = row;
        let (.., missed, p9999_ns, invalid, spikes, culprits, cpus, length_ns) = row;
        let named = manifest.and_then(|manifest| Some(format!("{id}+{}", hex(manifest.get(..8)?))));
        let is_as_sent = thinned.is_empty() && named.is_some_and(|name| Path::new(&place).ends_with(name));
        BundlePlace {
            id,
            place: self.folder.shown(&place),
            digest,
            max_ns: nanos(max_ns),
            shown: ShownNumbers {
                missed: missed.map(to_u64),
                p9999_ns: nanos(p9999_ns),
                invalid: to_u64(invalid),
                spikes: to_u64(spikes),
                culprits: to_u64(culprits),
                cpus: to_u64(cpus),
                length_ns: nanos(length_ns),
            },
            is_over: complete != 0,
            has_seconds: !thinned.contains(ThinnedPart::Blocks.word()),
            sent_bytes: bytes.map(to_u64).filter(|_| is_as_sent),
        }
    }
}

async fn blob_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    maxima: &mut SeriesMaxima,
    faults: &mut Vec<String>,
) -> Result<CheckedTotals> {
    let (_, name, series, _) = key;
    let mut totals = CheckedTotals::default();
    for tier in Tier::ALL {
        let mut last = i64::MIN;
        loop {
            let rows: Vec<(i64, i64, Option<i64>, Vec<u8>)> = of_series(
                "select t, n, max_ns, cpus from hist where board_id = $1 and series = $2 \
                 and plan = $3 and tier = $4 and t > $5 order by t limit $6",
                key,
            )
            .bind(tier.number())
            .bind(last)
            .bind(AT_ONCE)
            .fetch_all(&mut **all)
            .await
            .map_err(trouble)?;
            let Some(&(t, ..)) = rows.last() else { break };
            last = t;
            for (t, n, max_ns, cpus) in rows {
                maxima.add_histogram(tier, t, n, max_ns);
                match unpack_rows(&cpus) {
                    Some(cpus) => totals.add(tier, t, n, &cpus),
                    None => faults.push(format!("{name}: the histogram of {series} at {t} is damaged")),
                }
            }
        }
    }
    Ok(totals)
}

async fn peak_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    maxima: &mut SeriesMaxima,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (_, name, series, _) = key;
    let mut from = Some(i64::MIN);
    while let Some(begin) = from {
        let (next,): (Option<i64>,) = of_series(
            "select min(t) from slot where board_id = $1 and series = $2 and plan = $3 and t >= $4",
            key,
        )
        .bind(begin)
        .fetch_one(&mut **all)
        .await
        .map_err(trouble)?;
        let Some(begin) = next else { break };
        let end = begin.saturating_add(DAY);
        let rows: Vec<(i64, i64, Option<i64>, Vec<u8>)> = of_series(
            "select t, n, max_ns, peaks from slot where board_id = $1 and series = $2 \
             and plan = $3 and t >= $4 and t < $5",
            key,
        )
        .bind(begin)
        .bind(end)
        .fetch_all(&mut **all)
        .await
        .map_err(trouble)?;
        for (t, n, max_ns, peaks) in rows {
            maxima.add_slot(t, n, max_ns);
            let what = match unpack_peaks(&peaks) {
                None => "is damaged",
                Some(cpus) if cpus.is_empty() => continue,
                Some(cpus) if cpus.iter().filter_map(|cpu| cpu.max_ns).max() == nanos(max_ns) => continue,
                Some(_) => "has a largest latency that differs from that of its CPUs",
            };
            faults.push(format!("{name}: the slot of {series} at {t} {what}"));
        }
        from = (end > begin).then_some(end);
    }
    Ok(())
}

async fn maximum_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    maxima: &SeriesMaxima,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (_, name, series, _) = key;
    let runs = of_series(
        "select started, max_ns from run where board_id = $1 and series = $2 and plan = $3 and by_rows = 0",
        key,
    );
    let runs: Vec<(i64, Option<i64>)> = runs.fetch_all(&mut **all).await.map_err(trouble)?;
    for (tier, t) in maxima.wrong(&runs) {
        let time = match tier {
            Tier::Slot => "five minutes",
            Tier::Hour => "hour",
            Tier::Day => "day",
        };
        faults.push(format!(
            "{name}: the histogram of {series} of the {time} at {t} has a largest latency that differs from \
             the one measured then"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::fixture::recorded_run;

    use crate::store::RowBatch;
    use crate::store::engines::on_each_engine;

    fn batch(of_rows: std::ops::Range<u64>) -> RowBatch {
        let line = |seq: u64| (seq, seq as i64 * 300, vec![wakeups(3 + seq)]);
        lines_of(recording("timer"), "", of_rows.map(line))
    }

    #[test]
    fn what_was_written_is_without_fault_and_what_was_damaged_is_found() {
        on_each_engine(async |store| {
            let mut record = recorded_run("hunt", "a");
            record.run.place = "/old/x".into();
            store.put(&record).await.unwrap();
            store.put_rows(&[batch(0..400)]).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            // Added-up data may be dropped, by whole days.
            assert_eq!(store.prune(Tier::Slot, DAY + 7).await.unwrap(), 288);
            assert_eq!(store.prune(Tier::Hour, 7).await.unwrap(), 0);
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let tell = async |text: &'static str| {
                sqlx::query(text).execute(&store.pool).await.unwrap();
                store.faults().await.unwrap().join("; ")
            };
            let damage = "update slot set n = n + 1 where series = 'timer' and t = 0";
            assert!(tell(damage).await.contains("samples"));
            let damage = "update slot set n = n - 1 where series = 'timer' and t = 0";
            sqlx::query(damage).execute(&store.pool).await.unwrap();
            let damage = sqlx::query("update slot set peaks = $1 where series = 'timer' and t = 300");
            damage.bind(vec![9u8]).execute(&store.pool).await.unwrap();
            assert!(store.faults().await.unwrap().join("; ").contains("slot"));
            assert_eq!(store.places().await.unwrap()[0].max_ns, record.run.max_ns);
            let places = store.places().await.unwrap();
            assert_eq!(places[0].place, record.run.place);
            assert_eq!(store.place_of(&record.run.id).await.unwrap().as_ref(), places.first());
            assert_eq!(store.place_of("none").await.unwrap(), None);
        });
    }

    #[test]
    fn what_is_written_while_it_is_looked_at_is_no_fault() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            let is_over = std::cell::Cell::new(false);
            let write = async {
                for at in 0..60 {
                    store.put_rows(&[batch(at * 10..(at + 1) * 10)]).await.unwrap();
                }
                is_over.set(true);
            };
            let look = async {
                let mut looked = 0;
                while !is_over.get() {
                    assert_eq!(store.faults().await.unwrap(), [""; 0]);
                    assert_eq!(store.own_faults().await.unwrap(), [""; 0]);
                    looked += 1;
                }
                looked
            };
            let ((), looked) = tokio::join!(write, look);
            assert!(looked > 0);
        });
    }
}
