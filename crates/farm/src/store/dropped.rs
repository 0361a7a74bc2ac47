//! Up to which day histograms of short times were dropped, and in which of those that are there a
//! run's samples are.
//!
//! What comes for such a day later makes new histograms, of which a run that was there before is no
//! part. So `meta` has of each run that came since the first prune up to which day histograms were
//! dropped after it came, until that is all that ever were; of a run without such a note it is all
//! of them.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Any, AnyConnection, Transaction};

use super::tiers::{TierPlace, tier_rows};
use crate::records::{SeriesKey, Tier, TierRow};

/// The name in `meta` of the day up to which histograms were dropped,
fn until(tier: Tier) -> String {
    format!("dropped {}", tier.number())
}

/// and that of the note on a run.
fn since(tier: Tier, id: &str) -> String {
    format!("dropped since {} {id}", tier.number())
}

async fn value(by: &mut AnyConnection, name: &str) -> sqlx::Result<Option<i64>> {
    let value = sqlx::query_scalar::<_, i64>("select value from meta where name = $1").bind(name);
    value.fetch_optional(by).await
}

/// The day up to which histograms of a tier were dropped; none where none were.
pub async fn dropped_until(by: &mut AnyConnection, tier: Tier) -> sqlx::Result<Option<i64>> {
    value(by, &until(tier)).await
}

/// Drops the histograms of a tier from before a day: how many.
pub async fn drop_histograms(all: &mut Transaction<'static, Any>, tier: Tier, day: i64) -> sqlx::Result<u64> {
    sqlx::query(
        "insert into meta (name, value) values ($1, $2) on conflict (name) do update \
         set value = case when excluded.value > meta.value then excluded.value else meta.value end",
    )
    .bind(until(tier))
    .bind(day)
    .execute(&mut **all)
    .await?;
    let runs = since(tier, "%");
    let later = sqlx::query("update meta set value = $1 where name like $2 and value < $3");
    later.bind(day).bind(&runs).bind(day).execute(&mut **all).await?;
    if dropped_until(all, tier).await? == Some(day) {
        let same = sqlx::query("delete from meta where name like $1 and value >= $2");
        same.bind(&runs).bind(day).execute(&mut **all).await?;
    }
    let drop = sqlx::query("delete from hist where tier = $1 and t < $2").bind(tier.number()).bind(day);
    Ok(drop.execute(&mut **all).await?.rows_affected())
}

/// Notes of a run that comes that nothing of it was dropped, where histograms were.
pub async fn note_added(all: &mut Transaction<'static, Any>, id: &str) -> sqlx::Result<()> {
    for tier in Tier::ALL {
        sqlx::query(
            "insert into meta (name, value) select $1, $2 from meta where name = $3 \
             on conflict (name) do update set value = excluded.value",
        )
        .bind(since(tier, id))
        .bind(i64::MIN)
        .bind(until(tier))
        .execute(&mut **all)
        .await?;
    }
    Ok(())
}

/// Drops the notes on a run that goes.
pub async fn drop_added(all: &mut Transaction<'static, Any>, id: &str) -> sqlx::Result<()> {
    for tier in Tier::ALL {
        let drop = sqlx::query("delete from meta where name = $1").bind(since(tier, id));
        drop.execute(&mut **all).await?;
    }
    Ok(())
}

/// Drops those on all runs.
pub async fn drop_all_added(all: &mut Transaction<'static, Any>) -> sqlx::Result<()> {
    for tier in Tier::ALL {
        let drop = sqlx::query("delete from meta where name like $1").bind(since(tier, "%"));
        drop.execute(&mut **all).await?;
    }
    Ok(())
}

/// What a run added to the histograms of one tier.
pub struct TierPart {
    pub tier: Tier,
    pub rows: Vec<TierRow>,
}

/// From which day on the samples of a run are in the histograms of each tier.
pub struct AddedFrom(BTreeMap<Tier, i64>);

impl AddedFrom {
    /// Of a run that counts by its five minutes.
    pub async fn of(all: &mut Transaction<'static, Any>, id: &str) -> sqlx::Result<AddedFrom> {
        let mut from = BTreeMap::new();
        for tier in Tier::ALL {
            let Some(until) = dropped_until(all, tier).await? else { continue };
            let noted = value(all, &since(tier, id)).await?;
            from.insert(tier, noted.unwrap_or(until));
        }
        Ok(AddedFrom(from))
    }

    /// Whether they are in that of a time.
    pub fn has(&self, tier: Tier, t: i64) -> bool {
        self.0.get(&tier).is_none_or(|from| t >= *from)
    }

    /// What is there of histograms that it added to these tiers.
    pub fn parts(&self, tiers: &[Tier], rows: &[TierRow]) -> Vec<TierPart> {
        let there = |tier: Tier| rows.iter().filter(|row| self.has(tier, row.t)).cloned().collect();
        tiers.iter().map(|&tier| TierPart { tier, rows: there(tier) }).collect()
    }
}

/// The histograms of a run's five minutes that came after its own were dropped: they are of others
/// alone.
pub async fn of_others(
    all: &mut Transaction<'static, Any>,
    id: &str,
    (board, key): (i64, &SeriesKey),
    times: &[i64],
) -> sqlx::Result<BTreeMap<TierPlace, TierRow>> {
    let from = AddedFrom::of(all, id).await?;
    let mut places = BTreeSet::new();
    for tier in Tier::ALL {
        for &t in times.iter().filter(|t| !from.has(tier, **t)) {
            places.insert(TierPlace { board, key: key.clone(), tier, t: tier.begin(t) });
        }
    }
    tier_rows(all, &places.into_iter().collect::<Vec<_>>()).await
}
