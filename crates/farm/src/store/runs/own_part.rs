//! Contribution of one run to the histograms: from the five minutes of its bundle if available,
//! otherwise from the other data in the store.

use std::collections::BTreeMap;

use model::rows::RowCounts;
use model::units::Cpu;
use sqlx::{Any, Transaction};

use crate::parts_of_run::rows_of_slots;
use crate::records::{BundleRecord, SlotPeak, Tier, TierRow};
use crate::store::hist::dropped::{AddedFrom, TierPart};
use crate::store::hist::tiers::{TierPlace, tier_rows};
use crate::store::runs::earlier::{EarlierRun, EarlierSlot};

/// Samples of a run in the time of one histogram.
struct OwnStretch {
    /// Its sums, without a histogram.
    sums: TierRow,
    /// Its samples by CPU.
    peaks: Vec<SlotPeak>,
}

/// The histograms of a stretch of time, by the first second of each.
type Histograms = BTreeMap<i64, TierRow>;

/// Contribution of a run, whose five minutes are loaded, to the histograms; `None` if that cannot
/// be determined, as it shares several histograms with others.
pub async fn own_parts(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    id: &str,
    bundle: Option<&BundleRecord>,
) -> sqlx::Result<Option<Vec<TierPart>>> {
    if !of.by_rows {
        return Ok(Some(vec![TierPart { tier: Tier::Day, rows: vec![of.whole.clone()] }]));
    }
    let from = AddedFrom::of(all, of.board, id).await?;
    if let Some(rows) = bundle.and_then(|bundle| of.rows_of(bundle)) {
        return Ok(Some(from.parts(&Tier::ALL, &rows)));
    }
    let mut parts = Vec::new();
    for (at, tier) in Tier::ALL.into_iter().enumerate() {
        let stretches = stretches_of(&of.slots, tier);
        let mut there = histograms(all, of, tier, &stretches).await?;
        // Histograms created after the run's were dropped contain other runs only.
        there.retain(|t, _| from.has(tier, *t));
        if let Some(rows) = told(&stretches, &there, &of.whole) {
            parts.extend(from.parts(&Tier::ALL[at..], &rows));
            return Ok(Some(parts));
        }
        // A longer tier may suffice; the histograms of this tier have to be removed as they are.
        let Some(rows) = alone(&stretches, &there) else { return Ok(None) };
        parts.push(TierPart { tier, rows });
    }
    Ok(None)
}

fn stretches_of(slots: &[EarlierSlot], tier: Tier) -> Vec<OwnStretch> {
    let mut found: BTreeMap<i64, OwnStretch> = BTreeMap::new();
    for slot in slots {
        let t = tier.begin(slot.t);
        let fresh = || OwnStretch { sums: TierRow { t, ..TierRow::default() }, peaks: Vec::new() };
        let one = found.entry(t).or_insert_with(fresh);
        let max_ns = slot.peaks.iter().filter_map(|peak| peak.max_ns).max();
        one.sums.add(&TierRow { n: slot.n, missed: slot.missed, max_ns, ..TierRow::default() });
        for peak in &slot.peaks {
            match one.peaks.iter_mut().find(|known| known.cpu == peak.cpu) {
                Some(known) => known.n = known.n.saturating_add(peak.n),
                None => one.peaks.push(SlotPeak { cpu: peak.cpu, n: peak.n, ..SlotPeak::default() }),
            }
        }
    }
    found.into_values().collect()
}

/// The existing histograms of these spans, including the samples of others.
async fn histograms(
    all: &mut Transaction<'static, Any>,
    of: &EarlierRun,
    tier: Tier,
    stretches: &[OwnStretch],
) -> sqlx::Result<Histograms> {
    let place = |one: &OwnStretch| TierPlace { board: of.board, key: of.key.clone(), tier, t: one.sums.t };
    let places: Vec<TierPlace> = stretches.iter().map(place).collect();
    Ok(tier_rows(all, &places).await?.into_iter().map(|(place, row)| (place.t, row)).collect())
}

/// The run's histogram in each span: a CPU without other samples there is the run's, and in a
/// single shared span it is the remainder of its whole.
fn told(stretches: &[OwnStretch], there: &Histograms, whole: &TierRow) -> Option<Vec<TierRow>> {
    let by_cpu = |row: &TierRow| row.cpus.iter().map(|cpu| (cpu.cpu, cpu.rows.clone())).collect();
    let given: Vec<BTreeMap<Cpu, RowCounts>> =
        stretches.iter().map(|one| there.get(&one.sums.t).map(by_cpu).unwrap_or_default()).collect();
    let slots: Vec<_> = stretches.iter().map(|one| one.peaks.as_slice()).zip(&given).collect();
    let found = rows_of_slots(&slots, &whole.cpus, true)?;
    Some(stretches.iter().zip(found).map(|(one, cpus)| TierRow { cpus, ..one.sums.clone() }).collect())
}

/// The existing histograms, if each contains the run only.
fn alone(stretches: &[OwnStretch], there: &Histograms) -> Option<Vec<TierRow>> {
    let pairs = stretches.iter().filter_map(|one| Some((one, there.get(&one.sums.t)?)));
    let own = |(one, row): (&OwnStretch, &TierRow)| {
        let n = |cpu: Cpu| one.peaks.iter().find(|peak| peak.cpu == cpu).map_or(0, |peak| peak.n);
        let is_own = row.n == one.sums.n && row.cpus.iter().all(|cpu| cpu.rows.total() == n(cpu.cpu));
        is_own.then(|| TierRow { cpus: row.cpus.clone(), ..one.sums.clone() })
    };
    pairs.map(own).collect()
}
