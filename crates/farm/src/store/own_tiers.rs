//! Whether a run counts by its five minutes of which that was not noted when it was put: by what
//! cannot be otherwise.
//!
//! A histogram has the samples of those that are part of it, and no others: where these are as many
//! with the run and cannot be as many without it, it is a part, whatever the others are. Where both
//! can be, the bundle says it.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Any, AssertSqlSafe, Transaction};

use super::dropped::dropped_until;
use super::earlier::{EarlierRun, EarlierSlot};
use super::how_counted::{HOW_COUNTED, join_note, noted};
use super::runs::{ON_BY_ROWS, OVER};
use super::tiers::{TierPlace, tier_rows};
use crate::records::{BundleRecord, Tier, TierRow};

/// More sums than these tell nothing: each recording of which nothing was noted makes twice as
/// many.
const MOST_SUMS: usize = 4_096;

/// Samples, and missed ones.
type Samples = (i128, i128);

/// Samples by the first second of a stretch of time.
type Stretches = BTreeMap<i64, Samples>;

/// What else was measured in the days of a run.
#[derive(Default)]
struct OtherRecording {
    /// Whether it counts by its five minutes, where that is known.
    by_rows: Option<bool>,
    /// Its five minutes,
    slots: Stretches,
    /// and the day on which it began with all its samples; a recorder has none.
    whole: Stretches,
}

/// Whether a run counts by its five minutes, which are loaded, and not on the day on which it
/// began; none where nothing tells it.
pub async fn is_by_rows(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    id: &str,
    bundle: Option<&BundleRecord>,
) -> sqlx::Result<Option<bool>> {
    if of.complete != OVER || of.slots.is_empty() {
        return Ok(Some(of.complete == ON_BY_ROWS));
    }
    if let Some(by_rows) = noted(all, id).await? {
        return Ok(Some(by_rows));
    }
    Ok(by_sums(all, of, id).await?.or_else(|| bundle.and_then(|bundle| by_bundle(of, bundle))))
}

/// What a bundle with the run's document says. One with all its seconds and no histograms of them
/// is of a run that never had those.
fn by_bundle(of: &EarlierRun, bundle: &BundleRecord) -> Option<bool> {
    let found: Vec<_> = bundle.slots.iter().map(|slot| (slot.t, slot.n, slot.missed)).collect();
    let there: Vec<_> = of.slots.iter().map(|slot| (slot.t, slot.n, slot.missed)).collect();
    match bundle.rows.is_empty() {
        false => Some(true),
        true => (found == there).then_some(false),
    }
}

async fn by_sums(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    id: &str,
) -> sqlx::Result<Option<bool>> {
    let others = others(all, of, id).await?;
    let whole = Stretches::from([(of.whole.t, (of.whole.n.into(), of.whole.missed.into()))]);
    let mut found: BTreeSet<bool> = BTreeSet::new();
    // Earlier versions dropped histograms without saying so: where a tier has none, the next one
    // tells more.
    let mut found_in_none: BTreeSet<bool> = BTreeSet::new();
    // Whether each histogram that was not dropped has its samples either way.
    let mut is_same = true;
    for tier in Tier::ALL {
        let own = samples_of(&of.slots, tier);
        let of_day = if tier == Tier::Day { whole.clone() } else { Stretches::new() };
        let dropped = dropped_until(all, tier).await?;
        let times: BTreeSet<i64> = own.keys().chain(of_day.keys()).copied().collect();
        let times: Vec<i64> =
            times.into_iter().filter(|t| dropped.is_none_or(|dropped| *t >= dropped)).collect();
        let place = |&t: &i64| TierPlace { board: of.board, key: of.key.clone(), tier, t };
        let there = tier_rows(all, &times.iter().map(place).collect::<Vec<_>>()).await?;
        let there: BTreeMap<i64, TierRow> = there.into_iter().map(|(place, row)| (place.t, row)).collect();
        let told = if there.is_empty() { &mut found_in_none } else { &mut found };
        for t in times {
            is_same &= samples_at(&own, t) == samples_at(&of_day, t);
            let total: Samples = there.get(&t).map_or((0, 0), |row| (row.n.into(), row.missed.into()));
            let Some(sums) = sums_of(&others, tier, t, total) else { continue };
            let can_be = |part: &Stretches| sums.contains(&less(total, samples_at(part, t)));
            let (with, without) = (can_be(&own), can_be(&of_day));
            if with != without {
                told.insert(with);
            }
        }
    }
    let told = if found.is_empty() { found_in_none } else { found };
    match (told.first(), told.len()) {
        (Some(&by_rows), 1) => Ok(Some(by_rows)),
        (None, _) if is_same => Ok(Some(false)),
        _ => Ok(None),
    }
}

fn samples_of(slots: &[EarlierSlot], tier: Tier) -> Stretches {
    let mut found = Stretches::new();
    for slot in slots {
        add(&mut found, tier.begin(slot.t), (slot.n.into(), slot.missed.into()));
    }
    found
}

fn samples_at(part: &Stretches, t: i64) -> Samples {
    part.get(&t).copied().unwrap_or_default()
}

fn add(to: &mut Stretches, t: i64, samples: Samples) {
    let sum = to.entry(t).or_default();
    *sum = (sum.0 + samples.0, sum.1 + samples.1);
}

fn less(all: Samples, part: Samples) -> Samples {
    (all.0 - part.0, all.1 - part.1)
}

/// How many samples of others a histogram can have, which has no more than so many; none where that
/// is too much to look through.
fn sums_of(
    others: &BTreeMap<String, OtherRecording>,
    tier: Tier,
    t: i64,
    most: Samples,
) -> Option<BTreeSet<Samples>> {
    let mut sums = BTreeSet::from([(0, 0)]);
    for other in others.values() {
        let mut part = (0, 0);
        for (_, slot) in other.slots.range(t..t.saturating_add(tier.seconds())) {
            part = (part.0 + slot.0, part.1 + slot.1);
        }
        let whole = if tier == Tier::Day { samples_at(&other.whole, t) } else { (0, 0) };
        let parts = match other.by_rows {
            Some(true) => vec![part],
            Some(false) => vec![whole],
            None => vec![part, whole],
        };
        let added = |sum: Samples| parts.iter().map(move |part| (sum.0 + part.0, sum.1 + part.1));
        sums = sums.into_iter().flat_map(added).filter(|sum| sum.0 <= most.0 && sum.1 <= most.1).collect();
        if sums.len() > MOST_SUMS {
            return None;
        }
    }
    Some(sums)
}

/// What else was measured in the series on the days of a run.
async fn others(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    id: &str,
) -> sqlx::Result<BTreeMap<String, OtherRecording>> {
    let times = || of.slots.iter().map(|slot| slot.t);
    let from = Tier::Day.begin(times().min().unwrap_or(of.started).min(of.started));
    let last = Tier::Day.begin(times().max().unwrap_or(of.started).max(of.started));
    let to = last.saturating_add(Tier::Day.seconds());
    let slots = format!(
        "select s.recording, s.t, s.n, s.missed, cast(case when r.id is null then 1 else {HOW_COUNTED} end \
         as bigint) from slot s left join run r on r.board_id = s.board_id and r.id = s.recording {} \
         where s.board_id = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5 \
         and s.recording <> $6",
        join_note("s.recording")
    );
    let runs = format!(
        "select r.id, r.started, r.cycles, coalesce(r.missed, 0), cast({HOW_COUNTED} as bigint) \
         from run r {} where r.board_id = $1 and r.series = $2 and r.plan = $3 \
         and r.started >= $4 and r.started < $5 and r.id <> $6",
        join_note("r.id")
    );
    let mut found: BTreeMap<String, OtherRecording> = BTreeMap::new();
    for (text, is_whole) in [(slots, false), (runs, true)] {
        type Row = (String, i64, i64, i64, i64);
        let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(text))
            .bind(of.board)
            .bind(&of.key.series)
            .bind(&of.key.plan)
            .bind(from)
            .bind(to)
            .bind(id)
            .fetch_all(&mut **all)
            .await?;
        for (recording, t, n, missed, how) in rows {
            let other = found.entry(recording).or_default();
            other.by_rows = (how >= 0).then_some(how > 0);
            let (to, t) =
                if is_whole { (&mut other.whole, Tier::Day.begin(t)) } else { (&mut other.slots, t) };
            add(to, t, (n.into(), missed.into()));
        }
    }
    Ok(found)
}
