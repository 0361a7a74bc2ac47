//! The histograms of each five minutes of a run, from its `rows.jsonl`.
//!
//! They are used only if they add up exactly to the run's other files, so that the samples of a day
//! are the same from either file.

use std::collections::BTreeMap;

use bundle::five_minutes::{CpuFiveMinuteLine, FiveMinuteLine, SPAN};
use bundle::read::Bundle;
use model::rows::{RowCounts, RowSums};
use model::units::{Cpu, Nanos};

use crate::parts_of_run::rows_of_slots;
use crate::records::{CpuRows, FarmSlot, SLOT, SlotPeak, TierRow};

/// Memory limit: a year of 4 CPUs; they are untrusted.
const MOST_BYTES: usize = 64 << 20;
/// Size of an entry besides its histogram.
const ENTRY_BYTES: usize = 64;

/// Decoded histograms.
#[derive(Debug, Default)]
pub struct RunRows {
    /// Start of the first line, CLOCK_MONOTONIC.
    edge: Option<Nanos>,
    /// Sums by the number of the five minutes from the first edge on.
    sums: BTreeMap<i64, BTreeMap<Cpu, RowCounts>>,
    bytes: usize,
    /// True if they exceed the memory limit, and are incomplete.
    pub is_too_long: bool,
    /// Lines that could not be read, do not add up, or are not of these five minutes.
    pub unread: u64,
}

impl RunRows {
    /// Reads them; older runs have none.
    pub fn of(bundle: &Bundle) -> Result<RunRows, String> {
        let mut rows = RunRows::default();
        let unread = bundle.each_five_minutes(|line| rows.add(line)).map_err(|failure| failure.message)?;
        rows.unread += unread;
        Ok(rows)
    }

    /// Adds a line.
    pub fn add(&mut self, line: FiveMinuteLine) {
        let edge = *self.edge.get_or_insert(line.mono_ns);
        let from = line.mono_ns.0.saturating_sub(edge.0);
        let number = from.div_euclid(SPAN.0);
        let taken = |cpu: &CpuFiveMinuteLine| cpu.hist.bytes().len() + ENTRY_BYTES;
        self.bytes += ENTRY_BYTES + line.cpus.iter().map(taken).sum::<usize>();
        let is_sum = line.cpus.iter().all(|cpu| cpu.layout.is_known() && cpu.n == cpu.hist.total());
        self.is_too_long |= self.bytes > MOST_BYTES;
        if !is_sum || line.span_ns != SPAN || from % SPAN.0 != 0 || self.is_too_long {
            self.unread += 1;
            return;
        }
        let cpus = self.sums.entry(number).or_default();
        for CpuFiveMinuteLine { cpu, hist, .. } in line.cpus {
            let known = cpus.entry(cpu).or_default();
            *known = if known.is_empty() { hist } else { sum([known, &hist]) };
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.edge.is_none() && self.unread == 0
    }

    /// Middle of the five minutes that contain a time of CLOCK_MONOTONIC: middles stay distinct
    /// however the clock is set during a run.
    pub fn middle(&self, mono: Nanos) -> Option<Nanos> {
        let edge = self.edge?;
        let number = mono.0.checked_sub(edge.0)?.div_euclid(SPAN.0);
        edge.0.checked_add(number.checked_mul(SPAN.0)?)?.checked_add(SPAN.0 / 2).map(Nanos)
    }

    /// Histograms of each slot; `None` if one has other samples, or if the sum is not that of the
    /// run. A running run lacks the last line of each CPU, as does one that was killed.
    pub fn of_slots(
        &self,
        offset: i64,
        slots: &[FarmSlot],
        whole: &TierRow,
        is_on: bool,
    ) -> Option<Vec<TierRow>> {
        if self.unread > 0 && !is_on {
            return None;
        }
        let by_time: BTreeMap<i64, &BTreeMap<Cpu, RowCounts>> = self
            .sums
            .iter()
            .filter_map(|(number, cpus)| {
                let begin = self.edge?.0.checked_add(number.checked_mul(SPAN.0)?)?;
                let wall = self.middle(Nanos(begin))?.0.checked_add(offset)?;
                Some((wall.div_euclid(SLOT * Nanos::SECOND.0) * SLOT, cpus))
            })
            .collect();
        let none = BTreeMap::new();
        let given: Vec<(&[SlotPeak], &BTreeMap<Cpu, RowCounts>)> = slots
            .iter()
            .map(|slot| (slot.cpus.as_slice(), by_time.get(&slot.t).copied().unwrap_or(&none)))
            .collect();
        let all = rows_of_slots(&given, &whole.cpus, is_on)?;
        let row = |(slot, cpus): (&FarmSlot, Vec<CpuRows>)| TierRow {
            t: slot.t,
            n: slot.n,
            missed: slot.missed,
            max_ns: slot.max_ns,
            cpus,
        };
        Some(slots.iter().zip(all).map(row).collect())
    }
}

fn sum<'a>(of: impl IntoIterator<Item = &'a RowCounts>) -> RowCounts {
    let mut sums = RowSums::default();
    of.into_iter().for_each(|counts| sums.add_all(counts));
    sums.counts()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    use bundle::tail::Tail;
    use bundle::write::BundleWriter;
    use model::histogram::{Counts, bucket_of, buckets_of};
    use model::run::{Block, CpuRun, Run, SCHEMA, Worst};

    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::records::{BundleRecord, Tier};
    use crate::store::engines::on_each_engine;
    use crate::store::{FarmStore, TimeStretch};

    const SECOND: i64 = Nanos::SECOND.0;
    /// Each block has that many wake-ups, of which one is early.
    const WAKEUPS: u64 = 3;
    /// A block every 25 s from 22:30 on, until 03:10 of the next day.
    const BLOCKS: i64 = 672;
    const STARTED: &str = "2026-11-20T22:30:07.000000Z";

    fn latencies(at: i64) -> [Nanos; 3] {
        [Nanos(-5), Nanos(900 + at), Nanos(1 << (10 + at % 12))]
    }

    /// A run as `onbeat measure` writes it; the clock of the machine is set ahead in its middle.
    #[derive(Clone, Copy)]
    struct MadeRun {
        started: &'static str,
        /// From there to its first block.
        first: i64,
        blocks: i64,
        /// True if it is over; otherwise it is as at a checkpoint.
        is_over: bool,
    }

    const NIGHT: MadeRun = MadeRun { started: STARTED, first: 0, blocks: BLOCKS, is_over: true };

    fn written(place: &Path, made: MadeRun) {
        let mut run = Run { schema: SCHEMA.into(), id: "night".into(), ..Run::default() };
        run.command = "measure".into();
        run.started = made.started.into();
        let mut writer = BundleWriter::create(place, 2).unwrap();
        writer.begin(&run).unwrap();
        let wall = model::wall_time::nanos_of(made.started).unwrap();
        let mut counts = Counts::default();
        for at in 0..made.blocks {
            let of_cpu = |cpu: u32| {
                let start = Nanos(made.first * SECOND + 25 * SECOND * at + i64::from(cpu) * SECOND / 2);
                let wall_offset = wall + Nanos(if at > BLOCKS / 2 { 7 * SECOND } else { 0 });
                let rows = latencies(at).iter().map(|&one| (bucket_of(one), 1)).collect();
                let block = Block {
                    cpu: Cpu(cpu),
                    mono_ns: start,
                    n: WAKEUPS,
                    max_ns: latencies(at).iter().max().copied(),
                    ..Block::default()
                };
                (block, Tail { cpu: Cpu(cpu), start, wall_offset, rows, ..Tail::default() })
            };
            latencies(at).iter().for_each(|&one| counts.add(bucket_of(one), 1));
            let (blocks, tails): (Vec<_>, Vec<_>) = [of_cpu(0), of_cpu(3)].into_iter().unzip();
            writer.second(&blocks, &tails).unwrap();
        }
        run.cpus = [0, 3].map(|cpu| CpuRun { cpu: Some(Cpu(cpu)), ..whole_cpu(made, &counts) }).to_vec();
        run.plan.cpus = vec![Cpu(0), Cpu(3)];
        run.complete = made.is_over;
        if made.is_over {
            writer.finish(&run, &[(); 0]).unwrap();
        } else {
            writer.checkpoint(&run).unwrap();
        }
    }

    fn whole_cpu(made: MadeRun, counts: &Counts) -> CpuRun {
        let min = Nanos(-5);
        let max = (0..made.blocks).flat_map(latencies).max();
        let mut cpu = CpuRun {
            cycles: Some(WAKEUPS * made.blocks as u64),
            early: Some(made.blocks as u64),
            min_ns: Some(min),
            max_ns: max,
            histogram: buckets_of(counts, min),
            worst: vec![Worst {
                latency_ns: max,
                mono_ns: Some(Nanos(0)),
                time: model::wall_time::wall_time(model::wall_time::nanos_of(made.started).unwrap()),
                ..Worst::default()
            }],
            ..CpuRun::default()
        };
        cpu.fill_quantiles();
        cpu
    }

    fn record(place: &Path) -> (BundleRecord, Vec<String>) {
        read(&FoundBundle { place: place.to_owned(), board: Some("a".into()) }).unwrap()
    }

    #[test]
    fn a_night_is_of_two_days_and_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        written(&folder.path().join("night"), NIGHT);
        let (night, remarks) = record(&folder.path().join("night"));
        assert_eq!(remarks, [] as [&str; 0]);
        assert_eq!((night.rows.len(), night.slots.len()), (56, 56));
        on_each_engine(async |store| {
            store.put(&night).await.unwrap();
            store.put(&night).await.unwrap();
            let all = TimeStretch { from: i64::MIN, to: i64::MAX };
            let of = async |tier| store.tiers("a", &night.run.key, tier, all).await.unwrap();
            let (days, hours, slots) = (of(Tier::Day).await, of(Tier::Hour).await, of(Tier::Slot).await);
            assert_eq!((days.len(), hours.len(), slots.len()), (2, 6, 56));
            // 89 min 53 s are of the first day.
            assert_eq!(days[0].n, 2 * WAKEUPS * 216);
            for (row, slot) in slots.iter().zip(&night.slots) {
                assert_eq!((row.t, row.n, row.max_ns), (slot.t, slot.n, slot.max_ns));
            }
            for tier in [days, hours, slots] {
                for (at, cpu) in night.whole.cpus.iter().enumerate() {
                    assert_eq!(sum(tier.iter().map(|row| &row.cpus[at].rows)), cpu.rows);
                }
            }
        });
    }

    #[test]
    fn rows_that_do_not_add_up_are_told_and_left() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("night");
        written(&place, NIGHT);
        let text = fs::read_to_string(place.join("rows.jsonl")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let without_last = lines[..lines.len() - 1].join("\n");
        let twice = format!("{text}{}\n", lines[3]);
        let other_span =
            text.replacen("\"span_ns\":300000000000,\"time\"", "\"span_ns\":1000000000,\"time\"", 1);
        let shifted = text.replacen("\"seq\":0,\"mono_ns\":", "\"seq\":0,\"mono_ns\":1", 1);
        let newer = text.replacen("onbeat.rows/1", "onbeat.rows/2", 1);
        let other_layout = text.replacen("\"layout\":\"log32\"", "\"layout\":\"hdr2\"", 1);
        for damaged in [
            &without_last,
            &twice,
            &other_span,
            &shifted,
            &newer,
            &other_layout,
            "{}",
            "\u{0}",
            &text[..text.len() / 2],
        ] {
            fs::write(place.join("rows.jsonl"), damaged).unwrap();
            let (night, remarks) = record(&place);
            assert!(night.rows.is_empty() && remarks.len() == 1, "{remarks:?}");
            assert!(remarks[0].contains("rows.jsonl does not match"), "{remarks:?}");
        }
        // A run that was killed may have none.
        fs::remove_file(place.join("rows.jsonl")).unwrap();
        let (night, remarks) = record(&place);
        assert!(night.rows.is_empty() && remarks.is_empty() && night.slots.len() == 56, "{remarks:?}");
    }

    #[test]
    fn a_refused_file_moves_no_maximum() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("night");
        written(&place, NIGHT);
        let text = fs::read_to_string(place.join("rows.jsonl")).unwrap();
        fs::remove_file(place.join("rows.jsonl")).unwrap();
        let (without, _) = record(&place);
        fs::write(place.join("rows.jsonl"), format!("{{}}\n{text}")).unwrap();
        let (with, remarks) = record(&place);
        assert_eq!((with.slots, remarks.len()), (without.slots, 1));
    }

    /// Intermediate states that were stored do not matter: in the end a run counts as if stored
    /// once.
    #[test]
    fn a_run_that_is_on_counts_by_its_five_minutes_and_later_states_replace_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        // The second begins before midnight, and its first block after it.
        for (number, started, first) in [(0, STARTED, 0), (1, "2026-11-19T23:59:52.000000Z", 12)] {
            let states: Vec<BundleRecord> =
                [(3, false), (100, false), (333, false), (340, false), (BLOCKS, true)]
                    .into_iter()
                    .map(|(blocks, is_over)| {
                        let place = folder.path().join(format!("{number}-{blocks}"));
                        written(&place, MadeRun { started, first, blocks, is_over });
                        let (state, remarks) = record(&place);
                        assert!(is_over || remarks.len() == 1, "{remarks:?}");
                        // The first five minutes have no line yet.
                        assert_eq!(state.rows.is_empty(), blocks == 3);
                        assert_eq!(state.rows.iter().map(|row| row.n).sum::<u64>() > 0, blocks > 3);
                        state
                    })
                    .collect();
            on_each_engine(async |store| {
                let all = TimeStretch { from: i64::MIN, to: i64::MAX };
                for state in &states {
                    store.put(state).await.unwrap();
                    assert_eq!(store.faults().await.unwrap(), [""; 0]);
                }
                let once = FarmStore::in_memory().await.unwrap();
                once.put(&states[4]).await.unwrap();
                for tier in Tier::ALL {
                    let of = async |store: &FarmStore| {
                        store.tiers("a", &states[4].run.key, tier, all).await.unwrap()
                    };
                    assert_eq!(of(&store).await, of(&once).await, "{number} {tier:?}");
                }
            });
        }
    }
}
