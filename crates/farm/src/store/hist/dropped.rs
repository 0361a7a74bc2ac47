//! Days up to which histograms of short times were dropped, and the remaining ones that contain a
//! run's samples.
//!
//! Data that arrive for such a day later make new histograms, which do not contain earlier runs. So
//! for each run that arrived since the first prune, `later_run` has the day up to which histograms
//! were dropped after its arrival, until that covers all that were ever dropped; a run without such
//! a row is affected by all of them.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Any, AnyConnection, Transaction};

use crate::records::{SeriesKey, Tier, TierRow};
use crate::store::hist::tiers::{TierPlace, tier_rows};

/// The day up to which histograms of a tier were dropped; `None` if none were.
pub async fn dropped_until(by: &mut AnyConnection, tier: Tier) -> sqlx::Result<Option<i64>> {
    let until = sqlx::query_scalar("select until from dropped_tier where tier = $1");
    until.bind(tier.number()).fetch_optional(by).await
}

/// Drops the histograms of a tier from before a day; returns their number.
pub async fn drop_histograms(all: &mut Transaction<'static, Any>, tier: Tier, day: i64) -> sqlx::Result<u64> {
    for statement in [
        "insert into dropped_tier (tier, until) values ($1, $2) on conflict (tier) do update \
         set until = case when excluded.until > dropped_tier.until then excluded.until \
          else dropped_tier.until end",
        "update later_run set from_t = $2 where tier = $1 and from_t < $2",
    ] {
        sqlx::query(statement).bind(tier.number()).bind(day).execute(&mut **all).await?;
    }
    if dropped_until(all, tier).await? == Some(day) {
        let same = sqlx::query("delete from later_run where tier = $1 and from_t >= $2");
        same.bind(tier.number()).bind(day).execute(&mut **all).await?;
    }
    let drop = sqlx::query("delete from hist where tier = $1 and t < $2").bind(tier.number()).bind(day);
    Ok(drop.execute(&mut **all).await?.rows_affected())
}

/// Records for a new run that none of its histograms were dropped, if any ever were.
pub async fn note_added(all: &mut Transaction<'static, Any>, board: i64, id: &str) -> sqlx::Result<()> {
    let note = sqlx::query(
        "insert into later_run (board_id, run, tier, from_t) select $1, $2, tier, $3 from dropped_tier \
         where tier >= 0 on conflict (board_id, run, tier) do update set from_t = excluded.from_t",
    );
    note.bind(board).bind(id).bind(i64::MIN).execute(&mut **all).await?;
    Ok(())
}

/// Histograms of one tier that a run contributed to.
pub struct TierPart {
    pub tier: Tier,
    pub rows: Vec<TierRow>,
}

/// Days from which on the samples of a run are in the histograms of each tier.
pub struct AddedFrom(BTreeMap<Tier, i64>);

impl AddedFrom {
    /// Finds the days for a run that counts by its five minutes.
    pub async fn of(all: &mut Transaction<'static, Any>, board: i64, id: &str) -> sqlx::Result<AddedFrom> {
        let mut from = BTreeMap::new();
        for tier in Tier::ALL {
            let Some(until) = dropped_until(all, tier).await? else { continue };
            let noted = sqlx::query_scalar(
                "select from_t from later_run where board_id = $1 and run = $2 and tier = $3",
            );
            let noted: Option<i64> =
                noted.bind(board).bind(id).bind(tier.number()).fetch_optional(&mut **all).await?;
            from.insert(tier, noted.unwrap_or(until));
        }
        Ok(AddedFrom(from))
    }

    /// True if its samples are in the histogram of a time.
    pub fn has(&self, tier: Tier, t: i64) -> bool {
        self.0.get(&tier).is_none_or(|from| t >= *from)
    }

    /// The remaining ones of the histograms that it added to these tiers.
    pub fn parts(&self, tiers: &[Tier], rows: &[TierRow]) -> Vec<TierPart> {
        let there = |tier: Tier| rows.iter().filter(|row| self.has(tier, row.t)).cloned().collect();
        tiers.iter().map(|&tier| TierPart { tier, rows: there(tier) }).collect()
    }
}

/// Histograms of a run's five minutes that were created after its own were dropped: they contain
/// other runs only.
pub async fn of_others(
    all: &mut Transaction<'static, Any>,
    id: &str,
    board: i64,
    key: &SeriesKey,
    times: &[i64],
) -> sqlx::Result<BTreeMap<TierPlace, TierRow>> {
    let from = AddedFrom::of(all, board, id).await?;
    let mut places = BTreeSet::new();
    for tier in Tier::ALL {
        for &t in times.iter().filter(|t| !from.has(tier, **t)) {
            places.insert(TierPlace { board, key: key.clone(), tier, t: tier.begin(t) });
        }
    }
    tier_rows(all, &places.into_iter().collect::<Vec<_>>()).await
}
