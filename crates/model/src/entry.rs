//! Entries of a run: one per measured thread and quantity, their names, and the ones that decide.

use crate::run::{CpuRun, Integrity, Recorder, Run};
use crate::units::Cpu;
use crate::vocabulary::{IntegrityKind, Quantity};

impl Run {
    /// Entries of the quantity by which the run is judged: if it has several, the way to user
    /// space, then the wake-up, as a program sees them.
    pub fn primary(&self) -> impl Iterator<Item = &CpuRun> + Clone {
        let has = |quantity: Quantity| self.cpus.iter().any(|cpu| cpu.quantity() == quantity.name());
        let preferred = [Quantity::User, Quantity::Wakeup].into_iter().find(|&quantity| has(quantity));
        let first = self.cpus.first().map_or("", CpuRun::quantity);
        let word = preferred.map_or(first, |quantity| quantity.name());
        self.cpus.iter().filter(move |cpu| cpu.quantity() == word)
    }

    /// Number of samples of the primary entries; `None` if one of them is unknown.
    pub fn samples(&self) -> Option<u64> {
        self.primary().try_fold(0u64, |sum, cpu| Some(sum.saturating_add(cpu.cycles?)))
    }

    /// Integrity entry about wake-ups that were not seen, if any.
    pub fn unseen_wakeups(&self) -> Option<&Integrity> {
        self.integrity.iter().find(|entry| entry.kind == IntegrityKind::Lost)
    }

    /// Slots missed over all CPUs, as far as they are known.
    pub fn missed(&self) -> u64 {
        self.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.missed.unwrap_or(0)))
    }
}

impl Recorder {
    /// Explained spikes with overwritten events; spikes that were only counted lost none.
    pub fn torn_windows(&self) -> u64 {
        self.windows_lost.saturating_sub(self.spikes_passed_over)
    }
}

impl Integrity {
    /// True if no claim about all wake-ups follows from the run: it is invalid, or some wake-ups
    /// were not seen, so that its maximum and its counts are lower bounds.
    pub fn bars_claims(&self) -> bool {
        self.invalidates || self.kind == IntegrityKind::Lost
    }
}

impl CpuRun {
    /// Identity among the entries of a run, for their order and for pairing them with another
    /// run's.
    pub fn key(&self) -> (Option<Cpu>, u32, &str) {
        (self.cpu, self.thread, self.quantity())
    }

    /// Word of the quantity; runs from before the field measured wake-ups.
    pub fn quantity(&self) -> &str {
        if self.measures.is_empty() { Quantity::Wakeup.name() } else { self.measures.as_str() }
    }

    /// Name in a column headed CPU: `2`, `2 irq`, `thread 0`.
    pub fn label(&self) -> String {
        let name = self.name();
        name.strip_prefix("CPU ").map_or(name.clone(), str::to_owned)
    }

    /// Name in texts: `CPU 2`, `thread 0` where the CPU is unknown, `CPU 2 irq` where the latency
    /// is not that of a wake-up.
    pub fn name(&self) -> String {
        let quantity = match self.measures.known() {
            Some(Quantity::Irq | Quantity::User | Quantity::Deadline) => {
                format!(" {}", self.measures.as_str())
            }
            _ => String::new(),
        };
        match (self.cpu, self.thread) {
            (Some(cpu), 0) => format!("CPU {cpu}{quantity}"),
            (Some(cpu), thread) => format!("CPU {cpu} thread {thread}{quantity}"),
            (None, thread) => format!("thread {thread}{quantity}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cpu: Option<u32>, thread: u32, measures: Quantity, cycles: Option<u64>) -> CpuRun {
        CpuRun { cpu: cpu.map(Cpu), thread, measures: measures.into(), cycles, ..CpuRun::default() }
    }

    #[test]
    fn a_thread_without_a_cpu_is_named_a_thread() {
        for (entry, name, label) in [
            (entry(Some(2), 0, Quantity::Wakeup, None), "CPU 2", "2"),
            (entry(Some(2), 1, Quantity::Wakeup, None), "CPU 2 thread 1", "2 thread 1"),
            (entry(Some(2), 0, Quantity::Irq, None), "CPU 2 irq", "2 irq"),
            (entry(None, 1, Quantity::Wakeup, None), "thread 1", "thread 1"),
        ] {
            assert_eq!((entry.name().as_str(), entry.label().as_str()), (name, label));
        }
    }

    #[test]
    fn the_way_to_user_space_is_primary_and_an_unknown_count_stays_unknown() {
        let of = |cycles| {
            let quantities = [Quantity::Irq, Quantity::Wakeup, Quantity::User];
            let cpus = quantities.map(|quantity| entry(Some(0), 0, quantity, cycles)).to_vec();
            Run { cpus, ..Run::default() }
        };
        let run = of(Some(4));
        assert_eq!(run.primary().map(CpuRun::quantity).collect::<Vec<_>>(), ["user"]);
        assert_eq!((run.samples(), of(None).samples()), (Some(4), None));
    }
}
