//! Removes a run from the store, with its part of sums and histograms.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use serde::Serialize;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::records::{BundleRecord, Tier, TierRow};
use crate::store::hist::dropped::TierPart;
use crate::store::hist::largest_left::largest_left;
use crate::store::hist::tiers::{TierPlace, put_tiers, take_out_of_tiers, tier_rows};
use crate::store::large_sums::of_halves;
use crate::store::runs::earlier::{EarlierRun, earlier_run, slots};
use crate::store::runs::forgotten::{count_removal, mark};
use crate::store::runs::own_part::own_parts;
use crate::store::{FarmStore, to_u64, trouble};

/// Data removed with a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RemovedRun {
    pub run: String,
    pub board: String,
    /// Place of its bundle, which is not touched here.
    pub place: String,
    /// Number of samples removed from the histograms.
    pub samples: u64,
    /// Number of removed maxima of five minutes.
    pub slots: u64,
    /// Culprits that nothing else shows.
    pub culprits: u64,
    /// True if its environment was removed as the last run in it.
    pub environment: bool,
    /// True if the board had nothing else, and was removed.
    pub board_gone: bool,
}

/// Outcome of the removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRemoval {
    Removed(RemovedRun),
    Unknown,
    Pinned,
    /// Its part cannot be separated from that of others; nothing was changed.
    Mixed,
}

/// Data that keep a board: its measurements, its tokens and senders, its properties.
const HELD_BY_BOARD: [&str; 6] = [
    "run where board_id = $1",
    "hist where board_id = $1",
    "row_key where board_id = $1",
    "token where board_id = $1",
    "watch_environment where board_id = $1",
    "board_setting where board_id = $1 and (state <> 'active' or since <> 0 or tags <> '' \
     or budget_ns is not null)",
];

impl FarmStore {
    /// Removes a run, and if a time is given bars it from returning. The bundle supplies its part
    /// of the histograms, if the store alone does not.
    pub async fn forget_run(
        &self,
        id: &str,
        bundle: Option<&BundleRecord>,
        forgotten: Option<i64>,
    ) -> Result<RunRemoval> {
        let mut all = self.begin().await?;
        let mut removal = remove(&mut all, id, bundle, forgotten).await.map_err(trouble)?;
        match &mut removal {
            RunRemoval::Removed(of) => {
                of.place = self.folder.shown(&of.place);
                all.commit().await.map_err(trouble)?;
            }
            _ => all.rollback().await.map_err(trouble)?,
        }
        Ok(removal)
    }
}

/// Removes a run; the transaction is to be rolled back unless it is removed.
async fn remove(
    all: &mut Transaction<'static, Any>,
    id: &str,
    bundle: Option<&BundleRecord>,
    forgotten: Option<i64>,
) -> sqlx::Result<RunRemoval> {
    let Some(mut of) = earlier_run(all, id).await? else { return Ok(RunRemoval::Unknown) };
    let pins = sqlx::query_scalar::<_, i64>("select count(*) from pin where board_id = $1 and run = $2");
    if pins.bind(of.board).bind(id).fetch_one(&mut **all).await? > 0 {
        return Ok(RunRemoval::Pinned);
    }
    of.slots = slots(all, of.board, id).await?;
    // Of a run that is over no other state is the same run.
    let bundle = bundle.filter(|bundle| !of.complete || bundle.digest == of.digest);
    let Some(parts) = own_parts(all, &of, id, bundle).await? else { return Ok(RunRemoval::Mixed) };
    let before = day_samples(all, &of).await?;
    let (environment, place): (i64, String) =
        sqlx::query_as("select environment_id, place from run where board_id = $1 and id = $2")
            .bind(of.board)
            .bind(id)
            .fetch_one(&mut **all)
            .await?;
    let culprits = culprits_of(all, of.board, id).await?;
    take_out(all, &of, id, &parts).await?;
    if before - day_samples(all, &of).await? != i128::from(of.cycles) {
        // They were not its own.
        return Ok(RunRemoval::Mixed);
    }
    count_removal(all).await?;
    if let Some(at) = forgotten {
        mark(all, id, at).await?;
    }
    Ok(RunRemoval::Removed(RemovedRun {
        run: id.to_owned(),
        board: of.board_key.clone(),
        place,
        samples: to_u64(of.cycles),
        slots: of.slots.len() as u64,
        culprits: drop_culprits(all, &culprits).await?,
        environment: drop_environment(all, environment).await?,
        board_gone: drop_board(all, of.board).await?,
    }))
}

/// The samples in the histograms of days of its series.
async fn day_samples(all: &mut Transaction<'static, Any>, of: &EarlierRun) -> sqlx::Result<i128> {
    let (high, low): (i64, i64) = sqlx::query_as(
        "select cast(coalesce(sum(n / 4294967296), 0) as bigint), \
         cast(coalesce(sum(n % 4294967296), 0) as bigint) from hist \
         where board_id = $1 and series = $2 and plan = $3 and tier = 2",
    )
    .bind(of.board)
    .bind(&of.key.series)
    .bind(&of.key.plan)
    .fetch_one(&mut **all)
    .await?;
    Ok(of_halves(high, low))
}

async fn culprits_of(all: &mut Transaction<'static, Any>, board: i64, id: &str) -> sqlx::Result<Vec<i64>> {
    let culprits = sqlx::query_scalar("select culprit_id from culprit_run where board_id = $1 and run = $2");
    culprits.bind(board).bind(id).fetch_all(&mut **all).await
}

/// Removes its own rows, then its part of histograms, and recomputes their maxima.
async fn take_out(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    id: &str,
    parts: &[TierPart],
) -> sqlx::Result<()> {
    let slots =
        sqlx::query("delete from slot where board_id = $1 and series = $2 and plan = $3 and recording = $4");
    let slots = slots.bind(of.board).bind(&of.key.series).bind(&of.key.plan).bind(id);
    slots.execute(&mut **all).await?;
    let labels = sqlx::query("delete from label where board_id = $1 and recording = $2");
    labels.bind(of.board).bind(id).execute(&mut **all).await?;
    let run = sqlx::query("delete from run where board_id = $1 and id = $2");
    run.bind(of.board).bind(id).execute(&mut **all).await?;
    for part in parts {
        let rows: Vec<_> = part.rows.iter().map(|row| (of.board, &of.key, row.t, row)).collect();
        take_out_of_tiers(all, &[part.tier], &rows, &[], &[]).await?;
    }
    renew_maxima(all, of).await
}

/// Recomputes the maxima of histograms that are equal to one of the run's. If its way of counting
/// is not known, they may have been inherited from it when another run was removed, though it is
/// not part of them (see [`largest_left`]).
async fn renew_maxima(all: &mut Transaction<'static, Any>, of: &EarlierRun) -> sqlx::Result<()> {
    let place =
        |tier: Tier, t: i64| TierPlace { board: of.board, key: of.key.clone(), tier, t: tier.begin(t) };
    let mut gone: BTreeMap<TierPlace, BTreeSet<Nanos>> = BTreeMap::new();
    for slot in &of.slots {
        for tier in Tier::ALL {
            let maxima = slot.peaks.iter().filter_map(|peak| peak.max_ns);
            gone.entry(place(tier, slot.t)).or_default().extend(maxima);
        }
    }
    gone.entry(place(Tier::Day, of.started)).or_default().extend(of.whole.max_ns);
    let places: Vec<TierPlace> = gone.keys().cloned().collect();
    let mut renewed: BTreeMap<TierPlace, TierRow> = BTreeMap::new();
    for (place, mut row) in tier_rows(all, &places).await? {
        let gone = gone.remove(&place).unwrap_or_default();
        if row.max_ns.is_some_and(|max| gone.contains(&max)) {
            row.max_ns = largest_left(all, place.board, &place.key, place.tier, place.t, &row).await?;
            renewed.insert(place, row);
        }
    }
    put_tiers(all, &renewed.iter().collect::<Vec<_>>()).await
}

/// True if there is a row; the text follows `from`.
async fn has(all: &mut Transaction<'static, Any>, from: &str, id: i64) -> sqlx::Result<bool> {
    let text = format!("select count(*) from (select 1 as one from {from} limit 1) k");
    let count: i64 = sqlx::query_scalar(AssertSqlSafe(text)).bind(id).fetch_one(&mut **all).await?;
    Ok(count > 0)
}

/// Drops culprits that no longer occur; returns their number.
async fn drop_culprits(all: &mut Transaction<'static, Any>, ids: &[i64]) -> sqlx::Result<u64> {
    let mut dropped = 0;
    for &id in ids {
        let is_shown = has(all, "culprit_run where culprit_id = $1", id).await?
            || has(all, "culprit_day where culprit_id = $1", id).await?;
        if !is_shown {
            sqlx::query("delete from culprit where id = $1").bind(id).execute(&mut **all).await?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

/// Drops an environment without measurements; returns true if it did.
pub async fn drop_environment(all: &mut Transaction<'static, Any>, id: i64) -> sqlx::Result<bool> {
    let is_used = has(all, "run where environment_id = $1", id).await?
        || has(all, "watch_environment where environment_id = $1", id).await?;
    if !is_used {
        sqlx::query("delete from environment where id = $1").bind(id).execute(&mut **all).await?;
    }
    Ok(!is_used)
}

/// Drops an empty board; returns true if it did.
async fn drop_board(all: &mut Transaction<'static, Any>, id: i64) -> sqlx::Result<bool> {
    for from in HELD_BY_BOARD {
        if has(all, from, id).await? {
            return Ok(false);
        }
    }
    sqlx::query("delete from board where id = $1").bind(id).execute(&mut **all).await?;
    Ok(true)
}
