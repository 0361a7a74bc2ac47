//! The maxima of each five minutes, from the records of single seconds.
//!
//! A block counts for the slot in which it began, so that each sample and each missed slot is in
//! exactly one slot.

use std::collections::BTreeMap;

use model::run::{Block, Run, Slice, Spike};
use model::units::Nanos;
use model::wall_time::nanos_of;
use rules::culprits::belonging::place_of;

use super::fingerprint::plain_name;
use super::run_rows::RunRows;
use crate::records::{FarmSlot, SLOT, SlotPeak};

/// No run lasts longer: ten years.
const MOST_SLOTS: usize = 1_051_200;
const SECOND: i64 = Nanos::SECOND.0;

/// Slots being made.
pub struct SlotFold<'a> {
    /// Source of the edges of the run's five minutes; `None` if the run has no rows of them.
    rows: Option<&'a RunRows>,
    /// Offset from CLOCK_MONOTONIC to UTC; `None` if the run lacks it.
    offset: Option<i64>,
    slots: BTreeMap<i64, BTreeMap<u32, SlotPeak>>,
    /// Blocks that have no place in time.
    pub unplaced: u64,
}

impl SlotFold<'_> {
    pub fn of<'a>(run: &Run, rows: Option<&'a RunRows>) -> SlotFold<'a> {
        SlotFold { rows, offset: offset(run), slots: BTreeMap::new(), unplaced: 0 }
    }

    /// Adds a block.
    pub fn add(&mut self, block: &Block) {
        let wall = |mono: Nanos| self.offset.and_then(|offset| mono.0.checked_add(offset));
        let within = self.rows.and_then(|rows| rows.middle(block.mono_ns)).unwrap_or(block.mono_ns);
        let Some(begin) = wall(within).map(|ns| ns.div_euclid(SLOT * SECOND) * SLOT) else {
            self.unplaced += 1;
            return;
        };
        if self.slots.len() >= MOST_SLOTS && !self.slots.contains_key(&begin) {
            self.unplaced += 1;
            return;
        }
        let at = block.max_mono_ns.and_then(wall);
        let cpus = self.slots.entry(begin).or_default();
        let peak = cpus.entry(block.cpu.0).or_insert(SlotPeak { cpu: block.cpu, ..SlotPeak::default() });
        peak.n = peak.n.saturating_add(block.n);
        peak.missed = peak.missed.saturating_add(block.missed.unwrap_or_default());
        if block.max_ns > peak.max_ns {
            (peak.max_ns, peak.max_at) = (block.max_ns, at);
        }
    }

    /// The slots in the order of time, each with its victim and culprit if a spike names them.
    pub fn finish(self, run: &Run) -> Vec<FarmSlot> {
        let offset = self.offset.unwrap_or_default();
        let mut slots: Vec<FarmSlot> = self.slots.into_iter().map(|(t, cpus)| slot(t, cpus)).collect();
        for slot in &mut slots {
            slot.run.clone_from(&run.id);
            let same = |spike: &&Spike| {
                Some(spike.cpu) == slot.max_cpu
                    && Some(spike.latency_ns) == slot.max_ns
                    && slot
                        .max_at
                        .is_some_and(|at| at.abs_diff(spike.actual_ns.0.saturating_add(offset)) < 1_000_000)
            };
            if let Some(spike) = run.spikes.iter().find(same) {
                slot.victim = model::text::excerpt(&spike.victim.comm);
                slot.culprit = culprit_of(run, spike);
            }
        }
        slots
    }
}

/// The culprit with most of a spike's time, over all its slices; `""` if more is unexplained: a
/// wrong name is worse than none.
pub fn culprit_of(run: &Run, spike: &Spike) -> String {
    let mut taken: Vec<(String, i64)> = Vec::new();
    for slice in &spike.slices {
        let name = name_of(run, slice);
        match taken.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(slice.ns.0),
            None => taken.push((name, slice.ns.0)),
        }
    }
    let most = taken.into_iter().max_by_key(|(_, ns)| *ns);
    most.filter(|(_, ns)| *ns > spike.unexplained_ns.0).map_or_else(String::new, |(name, _)| name)
}

fn name_of(run: &Run, slice: &Slice) -> String {
    if let Some(place) = place_of(&run.culprits, slice) {
        return plain_name(&run.culprits[place].name);
    }
    let who = [&slice.who.comm, &slice.who.function, &slice.who.irq];
    let named = slice.rule.as_ref().or(who.into_iter().find(|name| !name.is_empty()));
    model::text::excerpt(named.map_or(slice.kind.as_str(), String::as_str))
}

fn slot(t: i64, cpus: BTreeMap<u32, SlotPeak>) -> FarmSlot {
    let cpus: Vec<SlotPeak> = cpus.into_values().collect();
    // `max_by_key` takes the last of several; reversed, the first CPU, as in a recorder's rows.
    let worst =
        cpus.iter().rev().filter(|peak| peak.max_ns.is_some()).max_by_key(|peak| peak.max_ns).copied();
    FarmSlot {
        t,
        n: cpus.iter().fold(0, |sum, peak| sum.saturating_add(peak.n)),
        missed: cpus.iter().fold(0, |sum, peak| sum.saturating_add(peak.missed)),
        max_ns: worst.and_then(|peak| peak.max_ns),
        max_cpu: worst.map(|peak| peak.cpu),
        max_at: worst.and_then(|peak| peak.max_at),
        cpus,
        ..FarmSlot::default()
    }
}

/// Offset from the monotonic clock to UTC: from a wake-up that has both times, else from the start.
pub fn offset(run: &Run) -> Option<i64> {
    let worst = run.cpus.iter().flat_map(|cpu| &cpu.worst);
    let both = worst.filter_map(|one| nanos_of(&one.time)?.0.checked_sub(one.mono_ns?.0)).next();
    both.or_else(|| {
        let first = run.cpus.iter().filter_map(|cpu| cpu.t0_mono_ns).min()?;
        nanos_of(&run.started)?.0.checked_sub(first.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{CpuRun, Worst};
    use model::slice::SliceKind;
    use model::units::Cpu;
    use proptest::prelude::*;

    fn run() -> Run {
        let worst =
            Worst { mono_ns: Some(Nanos(0)), time: "2026-01-01T00:04:59.000000Z".into(), ..Worst::default() };
        let cpu = CpuRun { cpu: Some(Cpu(1)), worst: vec![worst], ..CpuRun::default() };
        Run { id: "r".into(), cpus: vec![cpu], ..Run::default() }
    }

    fn block(cpu: u32, second: i64, n: u64, max: i64) -> Block {
        Block {
            cpu: Cpu(cpu),
            mono_ns: Nanos(second * SECOND),
            n,
            missed: Some(n / 2),
            max_ns: Some(Nanos(max)),
            max_mono_ns: Some(Nanos(second * SECOND + 7)),
            ..Block::default()
        }
    }

    #[test]
    fn a_block_counts_where_it_began() {
        let run = run();
        let mut fold = SlotFold::of(&run, None);
        [block(1, 0, 10, 40), block(1, 1, 20, 30), block(2, 2, 5, 90)].iter().for_each(|one| fold.add(one));
        let slots = fold.finish(&run);
        assert_eq!(slots.len(), 2);
        assert_eq!((slots[0].n, slots[0].max_ns), (10, Some(Nanos(40))));
        assert_eq!((slots[1].t - slots[0].t, slots[1].n, slots[1].missed), (SLOT, 25, 12));
        assert_eq!((slots[1].max_cpu, slots[1].max_ns), (Some(Cpu(2)), Some(Nanos(90))));
        assert_eq!(slots[1].max_at.unwrap() % SECOND, 7);
        // Of two with the same it is the first CPU, as in the rows of a recorder.
        let mut fold = SlotFold::of(&run, None);
        [block(2, 1, 10, 40), block(1, 2, 20, 40)].iter().for_each(|one| fold.add(one));
        assert_eq!(fold.finish(&run).last().unwrap().max_cpu, Some(Cpu(1)));
    }

    #[test]
    fn without_a_time_nothing_is_placed_and_that_is_counted() {
        let run = Run::default();
        let mut fold = SlotFold::of(&run, None);
        fold.add(&block(0, 0, 1, 1));
        assert_eq!(fold.unplaced, 1);
        assert!(fold.finish(&run).is_empty());
    }

    #[test]
    fn a_stop_in_parts_is_one_and_has_the_words_of_the_boards_page() {
        let rule = rules::culprits::find("stopped-from-outside").unwrap();
        let culprit = model::run::Culprit {
            rule: Some(rule.id.into()),
            kind: SliceKind::Stopped.into(),
            name: rule.title.into(),
            ..Default::default()
        };
        let slice = |kind: SliceKind, ns, comm: &str| {
            let mut slice = Slice { kind: kind.into(), ns: Nanos(ns), ..Slice::default() };
            slice.rule = (kind == SliceKind::Stopped).then(|| rule.id.into());
            slice.who.comm = comm.into();
            slice
        };
        let stop = |ns| slice(SliceKind::Stopped, ns, "");
        let slices = vec![stop(30), slice(SliceKind::Thread, 40, "hog"), stop(25)];
        let mut spike = Spike { slices, unexplained_ns: Nanos(5), ..Spike::default() };
        let with = Run { culprits: vec![culprit], ..run() };
        assert_eq!(culprit_of(&with, &spike), "stopped from outside");
        spike.unexplained_ns = Nanos(55);
        assert_eq!(culprit_of(&with, &spike), "", "as much is unexplained");
    }

    proptest! {
        #[test]
        fn no_sample_is_lost(blocks in prop::collection::vec((0u32..4, 0i64..4_000, 0u64..5_000,
            0i64..99_999), 0..99)) {
            let run = run();
            let mut fold = SlotFold::of(&run, None);
            for &(cpu, second, n, max) in &blocks {
                fold.add(&block(cpu, second, n, max));
            }
            let slots = fold.finish(&run);
            prop_assert_eq!(slots.iter().map(|slot| slot.n).sum::<u64>(), blocks.iter().map(|one|
                one.2).sum::<u64>());
            let worst = blocks.iter().map(|one| Nanos(one.3)).max();
            prop_assert_eq!(slots.iter().filter_map(|slot| slot.max_ns).max(), worst);
        }
    }
}
