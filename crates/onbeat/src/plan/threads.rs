//! Threads of a plan: bound to a CPU each, or free on all of them. Pure.

use super::{CpuPlan, MeasurePlan};
use model::units::{Cpu, CpuSet};

impl CpuPlan {
    /// Number by which its blocks are known: that of the CPU, or of a thread that is not bound.
    pub fn key(&self) -> Cpu {
        if self.thread == 0 { self.cpu } else { Cpu(self.thread) }
    }
}

impl MeasurePlan {
    /// CPUs of the measuring threads.
    pub fn measured(&self) -> CpuSet {
        self.cpus.iter().map(|own| own.cpu).collect()
    }

    /// Priority of a thread: those of `probe migrate` have one each, the first the highest.
    pub fn priority_of(&self, own: &CpuPlan) -> u32 {
        self.priority.saturating_sub(own.thread.saturating_sub(1))
    }

    /// Replaces the threads by this many that may run on all planned CPUs.
    pub fn unbind(&mut self, threads: u32) {
        let bound = std::mem::take(&mut self.cpus);
        let numbered = (1..=threads).zip(bound.iter().cycle());
        self.cpus = numbered.map(|(thread, own)| CpuPlan { thread, ..own.clone() }).collect();
    }
}
