//! Earlier state of a run, and its removal from the sums before a later state is added.

use std::collections::BTreeMap;

use sqlx::{Any, AnyConnection, Transaction};

use crate::encoding::{unpack_peaks, unpack_rows};
use crate::parts_of_run::rows_of_slots;
use crate::records::{BundleRecord, SeriesKey, SlotPeak, Tier, TierRow};
use crate::store::hist::tiers::{damaged, take_out_of_tiers};
use crate::store::runs::labels::drop_run_labels;
use crate::store::{nanos, to_i64, to_u64};

/// Outcome of storing a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The run is new.
    Stored,
    /// The bundle is a later state of a run that was still on.
    Replaced,
    /// The bundle was stored before.
    Had,
    /// The run is stored with other contents, or for another board: the reason.
    Refused(String),
}

/// A run that is there.
pub struct EarlierRun {
    pub board: i64,
    pub board_key: String,
    pub complete: bool,
    /// True if its samples count in the five minutes of their time, false if on its first day.
    pub by_rows: bool,
    pub cycles: i64,
    pub spikes: i64,
    pub started: i64,
    pub key: SeriesKey,
    pub digest: Vec<u8>,
    pub whole: TierRow,
    /// Its five minutes, if it is running or was killed.
    pub slots: Vec<EarlierSlot>,
}

/// Five minutes of a run that is there.
pub struct EarlierSlot {
    pub t: i64,
    pub n: u64,
    pub missed: u64,
    pub peaks: Vec<SlotPeak>,
}

/// Outcome for a bundle, given the stored state of its run: a later state replaces an earlier one
/// while the run is not over. An equal document means the same state if the run is over: a killed
/// run has the document of its last checkpoint, and its last seconds in other files.
pub fn judged(known: Option<&EarlierRun>, record: &BundleRecord) -> PutOutcome {
    let Some(known) = known else { return PutOutcome::Stored };
    let is_same_document = known.board_key == record.run.board && known.digest == record.digest;
    if is_same_document && (known.complete || known.reaches_as_far_as(record)) {
        PutOutcome::Had
    } else {
        judged_anew(known, record)
    }
}

/// Outcome for a bundle that replaces the stored state even if its document is the same: its other
/// files may be of a later moment.
pub fn judged_anew(known: &EarlierRun, record: &BundleRecord) -> PutOutcome {
    let refused = |why: &str| PutOutcome::Refused(why.to_owned());
    if known.board_key != record.run.board {
        return refused(&format!("it is a run of {} already: a run belongs to one board", known.board_key));
    }
    if known.complete {
        return refused(
            "a run with this id is stored with different content: a run that has ended does not change",
        );
    }
    if to_i64(record.run.cycles) < known.cycles {
        return refused("a later state of this run is stored: an earlier one does not replace it");
    }
    if known.added(record).is_none() {
        return refused(
            "its rows.jsonl does not continue that of the earlier state, which is kept: copy the complete \
             bundle again",
        );
    }
    PutOutcome::Replaced
}

/// Looks for a run.
pub async fn earlier_run(by: &mut AnyConnection, id: &str) -> sqlx::Result<Option<EarlierRun>> {
    type Row =
        (i64, String, i64, i64, i64, i64, i64, Option<i64>, String, String, Vec<u8>, Option<i64>, Vec<u8>);
    let row: Option<Row> = sqlx::query_as(
        "select r.board_id, b.key, r.complete, r.by_rows, r.cycles, r.spikes, r.started, r.missed, \
         r.series, r.plan, r.digest, r.max_ns, r.whole from run r join board b on b.id = r.board_id \
         where r.id = $1",
    )
    .bind(id)
    .fetch_optional(&mut *by)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (board, board_key, complete, by_rows, cycles, spikes, started, missed, ..) = row;
    let (.., series, plan, digest, max, whole) = row;
    let (complete, by_rows) = (complete != 0, by_rows != 0);
    let slots = if complete { Vec::new() } else { slots(by, board, id).await? };
    let cpus = unpack_rows(&whole).ok_or_else(|| damaged("run", started))?;
    let whole = TierRow {
        t: Tier::Day.begin(started),
        n: to_u64(cycles),
        missed: to_u64(missed.unwrap_or_default()),
        max_ns: nanos(max),
        cpus,
    };
    let key = SeriesKey { series, plan };
    Ok(Some(EarlierRun {
        board,
        board_key,
        complete,
        by_rows,
        cycles,
        spikes,
        started,
        key,
        digest,
        whole,
        slots,
    }))
}

/// The five minutes of a run, oldest first. Its `rows.jsonl` may have been sent as rows as well,
/// which are those of another series of the same recording.
pub async fn slots(by: &mut AnyConnection, board: i64, id: &str) -> sqlx::Result<Vec<EarlierSlot>> {
    let rows: Vec<(i64, i64, i64, Vec<u8>)> = sqlx::query_as(
        "select s.t, s.n, s.missed, s.peaks from run r join slot s on s.board_id = r.board_id \
         and s.series = r.series and s.plan = r.plan and s.recording = r.id \
         where r.board_id = $1 and r.id = $2 order by s.t",
    )
    .bind(board)
    .bind(id)
    .fetch_all(by)
    .await?;
    let slot = |(t, n, missed, peaks): (i64, i64, i64, Vec<u8>)| {
        let peaks = unpack_peaks(&peaks).ok_or_else(|| damaged("slot", t))?;
        Ok(EarlierSlot { t, n: to_u64(n), missed: to_u64(missed), peaks })
    };
    rows.into_iter().map(slot).collect()
}

impl EarlierRun {
    /// True if a state with the same document ends where this one does, and adds nothing: as many
    /// samples, and no more seconds or spikes.
    fn reaches_as_far_as(&self, other: &BundleRecord) -> bool {
        let known = self.slots.iter().map(|slot| slot.n.saturating_add(slot.missed));
        let found = other.slots.iter().map(|slot| slot.n.saturating_add(slot.missed));
        to_i64(other.run.cycles) == self.cycles
            && other.run.missed.unwrap_or_default() <= self.whole.missed
            && to_i64(other.run.spikes) <= self.spikes
            && found.fold(0, u64::saturating_add) <= known.fold(0, u64::saturating_add)
    }

    /// Its contribution to the histograms; `None` if that can no longer be determined.
    fn added(&self, later: &BundleRecord) -> Option<Vec<TierRow>> {
        if self.by_rows { self.rows_of(later) } else { Some(vec![self.whole.clone()]) }
    }

    /// Its contribution by five minutes, from those of the same state or a later one.
    ///
    /// The later state has all the samples of this one, so that five minutes with equal counts are
    /// equal, and those in which this one ended are the remainder of its whole. The clock may have
    /// been set in between: they are matched by order, not by time.
    pub fn rows_of(&self, later: &BundleRecord) -> Option<Vec<TierRow>> {
        let given: Vec<BTreeMap<_, _>> = later
            .rows
            .iter()
            .map(|row| row.cpus.iter().map(|cpu| (cpu.cpu, cpu.rows.clone())).collect())
            .collect();
        if given.len() < self.slots.len() {
            return None;
        }
        let slots: Vec<_> = self.slots.iter().map(|slot| slot.peaks.as_slice()).zip(&given).collect();
        let all = rows_of_slots(&slots, &self.whole.cpus, true)?;
        let row = |(slot, cpus): (&EarlierSlot, Vec<_>)| TierRow {
            t: slot.t,
            n: slot.n,
            missed: slot.missed,
            max_ns: slot.peaks.iter().filter_map(|peak| peak.max_ns).max(),
            cpus,
        };
        Some(self.slots.iter().zip(all).map(row).collect())
    }

    fn placed<'a>(&'a self, rows: &'a [TierRow]) -> Vec<(i64, &'a SeriesKey, i64, &'a TierRow)> {
        rows.iter().map(|row| (self.board, &self.key, row.t, row)).collect()
    }

    /// Subtracts its contribution; keeps the run, and notes of its board and of users.
    pub async fn take_out(
        &self,
        all: &mut Transaction<'static, Any>,
        later: &BundleRecord,
    ) -> sqlx::Result<()> {
        let rows = self.added(later).ok_or_else(|| damaged("run", self.started))?;
        let slots = "delete from slot where board_id = $1 and series = $2 and plan = $3 and recording = $4";
        let slots = sqlx::query(slots).bind(self.board).bind(&self.key.series).bind(&self.key.plan);
        slots.bind(&later.run.id).execute(&mut **all).await?;
        for statement in [
            "delete from culprit_run where board_id = $1 and run = $2",
            "delete from thinned where board_id = $1 and run = $2",
        ] {
            sqlx::query(statement).bind(self.board).bind(&later.run.id).execute(&mut **all).await?;
        }
        drop_run_labels(all, self.board, &later.run.id).await?;
        let tiers: &[Tier] = if self.by_rows { &Tier::ALL } else { &[Tier::Day] };
        let gone = self.placed(&rows);
        let (of_later, rows) = later.counted();
        let later = if self.key == later.run.key { self.placed(rows) } else { Vec::new() };
        take_out_of_tiers(all, tiers, &gone, of_later, &later).await
    }
}
