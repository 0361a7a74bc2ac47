//! Longest gaps of a run with their times, and the interrupts during the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::origins::{GapOrigins, GapSum};
use crate::measure::block::DrainedBlock;
use crate::measure::hunter::{MeasuringThread, OnSpikes, Rounds};
use crate::measure::late::LateWakeup;
use facts::interrupts::{InterruptLine, named_counts};
use host::MachineFiles;
use model::error::Result;
use model::run::{Block, CpuRun, InterruptCount, Run, SpinGap};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use model::vocabulary::GapOrigin;

/// Maximum number of gaps of a run, over all its CPUs: each checkpoint writes the list again.
pub const MOST_GAPS: usize = 2_000;

/// Gaps of one CPU in a second that the queue holds.
const QUEUED: usize = 8_192;

/// Interval at which the queue is read.
const POLL: Nanos = Nanos::SECOND;

/// Length, last read before it, CPU, and origin where it is wanted.
type KeptGap = (Nanos, Reverse<Nanos>, Cpu, Option<GapOrigin>);

/// Keeps the longest gaps.
pub struct GapList {
    over: Nanos,
    /// Heap with the shortest gap on top; of those of one length, the last.
    kept: BinaryHeap<Reverse<KeptGap>>,
    /// Counters for the origins of the gaps, where these are wanted.
    origins: Option<GapOrigins>,
    /// Counts of each interrupt on each CPU before the run.
    before: Vec<InterruptLine>,
}

impl GapList {
    /// An empty list of gaps from that length.
    pub fn new(over: Nanos) -> GapList {
        GapList { over, kept: BinaryHeap::with_capacity(MOST_GAPS + 1), origins: None, before: Vec::new() }
    }

    /// The same list, with the origin of each gap.
    pub fn with_origins(self, origins: GapOrigins) -> GapList {
        GapList { origins: Some(origins), ..self }
    }

    fn keep(&mut self, gap: &LateWakeup, origin: Option<GapOrigin>) {
        self.kept.push(Reverse((gap.actual - gap.expected, Reverse(gap.expected), gap.cpu, origin)));
        if self.kept.len() > MOST_GAPS {
            self.kept.pop();
        }
    }

    /// The gaps in order of time. Those that did not fit into a queue are added if they are among a
    /// CPU's worst.
    fn list(&self, cpus: &[CpuRun]) -> Vec<SpinGap> {
        let kept = self.kept.iter();
        let kept = kept.map(|Reverse((ns, Reverse(mono), cpu, origin))| ((*mono, *cpu, *ns), *origin));
        let unknown = self.origins.is_some().then_some(GapOrigin::Unknown);
        let worst = cpus.iter().filter_map(|cpu| Some((cpu.cpu?, cpu))).flat_map(|(number, cpu)| {
            let known = cpu.worst.iter().filter_map(|worst| worst.mono_ns.zip(worst.latency_ns));
            known.map(move |(after, ns)| ((after - ns, number, ns), unknown))
        });
        // One that is in both has its origin from the queue.
        let all: BTreeMap<(Nanos, Cpu, Nanos), Option<GapOrigin>> = worst.chain(kept).collect();
        let mut longest: Vec<_> = all.into_iter().collect();
        longest.compact_sort_by_key(|((_, _, ns), _)| Reverse(*ns));
        longest.truncate(MOST_GAPS);
        longest.sort_unstable();
        let gap = |((mono_ns, cpu, ns), origin): ((Nanos, Cpu, Nanos), Option<GapOrigin>)| SpinGap {
            cpu,
            mono_ns,
            ns,
            origin: origin.map(Into::into).unwrap_or_default(),
        };
        longest.into_iter().map(gap).collect()
    }
}

impl Rounds for GapList {
    fn rounds(&self) -> usize {
        0
    }

    fn late_capacity(&self) -> usize {
        QUEUED
    }

    fn prepare_round(&mut self, _round: usize, _threads: &[MeasuringThread]) -> Result<u64> {
        Ok(0)
    }

    fn round_done(&mut self, _round: usize, _blocks: &[DrainedBlock], _slowest: Nanos) {}

    fn arm(&mut self, _run: &mut Run) -> Result<Nanos> {
        self.before = interrupts();
        Ok(self.over)
    }
}

impl OnSpikes for GapList {
    fn poll_interval(&self) -> Nanos {
        POLL
    }

    fn on_spikes(&mut self, late: &[LateWakeup], _lost: u64) {
        let mut sums: BTreeMap<Cpu, GapSum> = BTreeMap::new();
        for gap in late {
            let sum = sums.entry(gap.cpu).or_default();
            (sum.count, sum.total) = (sum.count + 1, sum.total + (gap.actual - gap.expected));
        }
        let origins = self.origins.as_mut().filter(|_| !late.is_empty()).map(|origins| origins.look(&sums));
        for gap in late {
            self.keep(gap, origins.as_ref().and_then(|origins| origins.get(&gap.cpu).copied()));
        }
    }

    fn second(&mut self, _blocks: &[Block]) {}

    fn fill(&mut self, run: &mut Run, last: bool) {
        if last {
            let counts = since(&self.before, &interrupts());
            for cpu in &mut run.cpus {
                cpu.interrupts = cpu.cpu.and_then(|cpu| counts.get(&cpu).cloned()).unwrap_or_default();
            }
        }
        fill_gaps(run, |cpus| self.list(cpus));
    }
}

/// Fills the list, and counts the gaps that are not in it: every gap is in a histogram.
fn fill_gaps(run: &mut Run, list: impl FnOnce(&[CpuRun]) -> Vec<SpinGap>) {
    let gaps = list(&run.cpus);
    let found = run.samples().unwrap_or(0);
    run.gaps_dropped = Some(found.saturating_sub(gaps.len() as u64));
    run.gaps = Some(gaps);
}

/// Counts of the interrupts. Read before the run and after it, never while samples count: printing
/// that file takes each interrupt's lock with interrupts off.
fn interrupts() -> Vec<InterruptLine> {
    let text = MachineFiles::live().read_text("/proc/interrupts");
    text.known().map(|text| named_counts(text)).unwrap_or_default()
}

/// Increase between two readings, by CPU, the largest first.
fn since(before: &[InterruptLine], after: &[InterruptLine]) -> BTreeMap<Cpu, Vec<InterruptCount>> {
    let mut counts: BTreeMap<Cpu, Vec<InterruptCount>> = BTreeMap::new();
    for line in after {
        let old = before.iter().find(|old| old.irq == line.irq);
        for &(cpu, count) in &line.counts {
            let had = old.and_then(|old| old.counts.iter().find(|known| known.0 == cpu));
            // A counter that wrapped, or an interrupt that is new.
            let Some(count) = count.checked_sub(had.map_or(0, |had| had.1)).filter(|&n| n > 0) else {
                continue;
            };
            let (irq, name) = (line.irq.clone(), line.name.clone());
            counts.entry(cpu).or_default().push(InterruptCount { irq, name, count });
        }
    }
    for of_cpu in counts.values_mut() {
        of_cpu.compact_sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.irq.cmp(&b.irq)));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_and_the_others_are_counted() {
        let mut list = GapList::new(Nanos(5));
        let gaps = MOST_GAPS as i64 + 40;
        let late = |at: i64| LateWakeup {
            cpu: Cpu(1),
            cycle: at as u64,
            expected: Nanos(at * 1_000),
            actual: Nanos(at * 1_000 + 5 + at % 7),
        };
        let all: Vec<LateWakeup> = (0..gaps).map(late).collect();
        list.on_spikes(&all[..100], 0);
        list.on_spikes(&all[100..], 0);
        let mut run =
            Run { cpus: vec![CpuRun { cycles: Some(gaps as u64), ..CpuRun::default() }], ..Run::default() };
        list.fill(&mut run, false);
        let kept = run.gaps.expect("a list");
        assert_eq!(
            (kept.len() as u64 + run.gaps_dropped.expect("a count"), kept.len()),
            (gaps as u64, MOST_GAPS)
        );
        assert!(kept.windows(2).all(|pair| pair[0].mono_ns < pair[1].mono_ns));
        // The dropped ones are the last of the shortest.
        let shortest = kept.iter().filter(|gap| gap.ns == Nanos(5)).count() as i64;
        assert_eq!(shortest, (gaps + 6) / 7 - 40);
    }

    #[test]
    fn a_worst_gap_that_no_queue_had_room_for_is_in_the_list() {
        let worst = model::run::Worst {
            latency_ns: Some(Nanos(90)),
            mono_ns: Some(Nanos(190)),
            ..model::run::Worst::default()
        };
        let cpu = CpuRun { cpu: Some(Cpu(2)), cycles: Some(1), worst: vec![worst], ..CpuRun::default() };
        let mut run = Run { cpus: vec![cpu], ..Run::default() };
        GapList::new(Nanos(5)).fill(&mut run, false);
        let only = SpinGap { cpu: Cpu(2), mono_ns: Nanos(100), ns: Nanos(90), ..SpinGap::default() };
        assert_eq!((&run.gaps, run.gaps_dropped), (&Some(vec![only.clone()]), Some(0)));
        // It takes the place of a shorter one.
        let mut full = GapList::new(Nanos(5));
        let late = |at: i64| LateWakeup {
            cpu: Cpu(1),
            cycle: 0,
            expected: Nanos(at * 1_000),
            actual: Nanos(at * 1_000 + 5),
        };
        full.on_spikes(&(1..=MOST_GAPS as i64).map(late).collect::<Vec<_>>(), 0);
        full.fill(&mut run, false);
        let gaps = run.gaps.expect("a list");
        assert_eq!((gaps.len(), gaps.contains(&only)), (MOST_GAPS, true));
    }

    #[test]
    fn interrupts_are_those_that_were_added() {
        let line = |irq: &str, counts: &[(u32, u64)]| InterruptLine {
            irq: irq.into(),
            name: "timer".into(),
            counts: counts.iter().map(|&(cpu, n)| (Cpu(cpu), n)).collect(),
        };
        let before = [line("LOC", &[(0, 10), (1, 20)]), line("8", &[(0, 9), (1, 0)])];
        let after =
            [line("LOC", &[(0, 15), (1, 20)]), line("8", &[(0, 3), (1, 0)]), line("9", &[(0, 8), (1, 0)])];
        let counts = since(&before, &after);
        let of_0: Vec<(&str, u64)> = counts[&Cpu(0)].iter().map(|c| (c.irq.as_str(), c.count)).collect();
        assert_eq!((of_0, counts.len()), (vec![("9", 8), ("LOC", 5)], 1));
    }
}
