//! Machine state read once a second during a run: clocks, steal, interrupts, online CPUs.
//!
//! The housekeeping thread reads it from files that stay open, into buffers that are kept. No read
//! makes the kernel interrupt a measured CPU.

pub mod clocks;
pub mod interrupts;
pub mod online;
pub mod steal;

use self::clocks::Clocks;
use self::interrupts::Interrupts;
use self::online::Online;
use self::steal::{Steal, StealSummary};
use crate::plan::MeasurePlan;
use model::run::{Block, Host, Integrity};
use model::units::{CpuSet, Nanos};

/// All watches of a run.
pub struct Watches {
    measured: CpuSet,
    clocks: Clocks,
    steal: Steal,
    /// By measured CPU, in the order of the plan.
    steal_summaries: Vec<StealSummary>,
    online: Online,
    interrupts: Interrupts,
}

impl Watches {
    /// Opens the watches that this machine supports.
    pub fn new(plan: &MeasurePlan, host: &Host) -> Watches {
        let measured = plan.measured();
        Watches {
            clocks: Clocks::read(),
            steal: Steal::new(measured.iter(), &host.virtualization),
            steal_summaries: vec![StealSummary::default(); plan.cpus.len()],
            online: Online::new(),
            interrupts: Interrupts::new(plan),
            measured,
        }
    }

    /// Starts the run: later clock offsets are compared with the present ones.
    pub fn start(&mut self) {
        self.clocks = Clocks::read();
    }

    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, as last read.
    pub fn wall_offset(&self) -> Nanos {
        self.clocks.wall
    }

    /// Reads everything, and notes events that may invalidate the run.
    pub fn read(&mut self, mut note: impl FnMut(Integrity)) {
        self.steal.read();
        self.interrupts.read();
        let clocks = Clocks::read();
        if let Some(happened) = self.clocks.compare(clocks) {
            note(happened);
        }
        self.clocks = clocks;
        self.online.lost(&self.measured).into_iter().for_each(note);
    }

    /// Adds the readings for a block of the plan's thread number `index`; `thread` is its number if
    /// it is not bound to a CPU, else 0.
    pub fn fill(&mut self, index: usize, thread: u32, block: &mut Block) {
        block.thread = thread;
        if thread != 0 {
            // Such a thread has run on several CPUs; the steal of each counts once in the sums.
            let steal = self.measured.iter().nth(index).and_then(|cpu| self.steal.take(cpu));
            self.steal_summaries[index].add(block.max_ns, steal.unwrap_or_default());
            return;
        }
        block.steal_ns = self.steal.take(block.cpu);
        block.irqs = self.interrupts.take(block.cpu);
        self.steal_summaries[index].add(block.max_ns, block.steal_ns.unwrap_or_default());
    }

    /// Entries for the total steal of each CPU.
    pub fn steal_entries(&self) -> Vec<Integrity> {
        let summaries = self.measured.iter().zip(&self.steal_summaries);
        summaries.filter_map(|(cpu, summary)| summary.entry(cpu)).collect()
    }
}
