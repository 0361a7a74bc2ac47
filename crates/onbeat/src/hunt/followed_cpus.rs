//! Sums for each CPU on which followed threads ran.

use super::followed_blocks::{FollowedBlock, FollowedBlocks};
use super::followed_cycles::FinishedCycle;
use super::steal::StealByCpu;
use crate::measure::block::LatencySample;
use crate::measure::sink::ClosedBlock;
use crate::measure::total::{Total, block_line, levels};
use host::clock;
use model::run::{Block, Run};
use model::units::{CpuSet, Nanos};
use trace::wakeups::Wakeup;

/// Blocks, sums and steal by CPU.
pub struct FollowedCpus {
    pub blocks: FollowedBlocks,
    /// By CPU, ascending.
    totals: Vec<Total>,
    steal: StealByCpu,
}

impl FollowedCpus {
    pub fn new(online: &CpuSet, virtualization: &str) -> FollowedCpus {
        let steal = StealByCpu::new(online, virtualization);
        FollowedCpus { blocks: FollowedBlocks::new(Nanos(0)), totals: Vec::new(), steal }
    }

    /// Sums up to now.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// Time for which the threads have been followed.
    pub fn elapsed(&self) -> Nanos {
        self.blocks.until() - self.blocks.began()
    }

    /// Counts wake-ups and finished cycles, each in order of time.
    pub fn count(&mut self, wakeups: &[Wakeup], finished: Vec<FinishedCycle>) {
        let mut finished = finished.into_iter().peekable();
        for wakeup in wakeups {
            while let Some(cycle) = finished.next_if(|cycle| cycle.end <= wakeup.actual) {
                self.blocks.add_response(cycle.cpu, cycle.end, cycle.response);
            }
            let (latency, time) = (wakeup.actual - wakeup.expected, wakeup.actual);
            self.blocks.add(wakeup.cpu, LatencySample { latency, cycle: 0, time });
        }
        for cycle in finished {
            self.blocks.add_response(cycle.cpu, cycle.end, cycle.response);
        }
    }

    /// Blocks closed since the last call, as records and in full.
    pub fn second(&mut self) -> (Vec<Block>, Vec<ClosedBlock>) {
        let (wall_offset, began) = (clock::wall_offset(), self.blocks.began());
        let (mut blocks, mut closed) = (Vec::new(), Vec::new());
        self.steal.read();
        for (cpu, FollowedBlock { wakeups: block, response }) in self.blocks.take() {
            let mut record = block_line(cpu, &block, &levels());
            (record.missed, record.response_ns) = (None, response);
            record.steal_ns = self.steal.take(cpu, block.cycles == 0 && block.start == began);
            let at = self.totals.partition_point(|total| total.cpu < cpu);
            if self.totals.get(at).is_none_or(|total| total.cpu != cpu) {
                self.totals.insert(at, Total::new(cpu, Nanos(0), began));
            }
            self.totals[at].add_block(&block, wall_offset);
            blocks.push(record);
            closed.push(ClosedBlock { cpu, wall_offset, block });
        }
        self.steal.carry_over(self.totals.iter().map(|total| total.cpu));
        (blocks, closed)
    }

    /// Puts the sums into the run.
    pub fn fill(&self, run: &mut Run) {
        let until = self.blocks.until();
        (run.elapsed_ns, run.checkpoint_mono_ns) = (Some(self.elapsed()), Some(until));
        run.cpus = self.totals.iter().map(Total::document).collect();
        run.cpus.iter_mut().for_each(|cpu| cpu.until_mono_ns = Some(until));
        run.plan.cpus = self.totals.iter().map(|total| total.cpu).collect();
    }
}
