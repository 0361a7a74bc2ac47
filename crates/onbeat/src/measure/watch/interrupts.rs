//! Interrupts per CPU and second, from /proc/interrupts.
//!
//! Printing that file takes the lock of each interrupt in turn with interrupts off. On a separate
//! housekeeping CPU, that disturbs no measurement; if the housekeeping thread may run on a measured
//! CPU, the file is not read and the number is unknown.

use crate::plan::MeasurePlan;
use facts::interrupts::per_cpu_totals;
use host::RereadFile;
use model::units::Cpu;

/// Counts of each CPU at the last call of `take` and at the last reading, by CPU number.
pub struct Interrupts {
    file: Option<RereadFile>,
    before: Vec<u64>,
    now: Vec<u64>,
}

impl Interrupts {
    /// Starts to count, if that disturbs no measured CPU.
    pub fn new(plan: &MeasurePlan) -> Interrupts {
        let apart = !plan.cpus.iter().any(|own| plan.housekeeping.contains(own.cpu));
        let file = if apart { RereadFile::whole("/proc/interrupts").ok() } else { None };
        let cpus = plan.cpus.last().map_or(0, |last| last.cpu.0 as usize + 1);
        let mut interrupts = Interrupts { file, before: vec![0; cpus], now: vec![0; cpus] };
        interrupts.read();
        interrupts.before.clone_from(&interrupts.now);
        interrupts
    }

    /// Reads the counters, for [`Interrupts::take`].
    pub fn read(&mut self) {
        let Some(file) = &mut self.file else { return };
        if !file.read().is_ok_and(|text| per_cpu_totals(text, &mut self.now)) {
            self.file = None;
        }
    }

    /// Interrupts of a CPU since the last call; none if it is not counted, or its counter wrapped.
    pub fn take(&mut self, cpu: Cpu) -> Option<u64> {
        self.file.as_ref()?;
        let index = cpu.0 as usize;
        let (now, before) = (*self.now.get(index)?, self.before.get_mut(index)?);
        let added = now.checked_sub(*before);
        *before = now;
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupts(before: u64, now: u64) -> Interrupts {
        let file = RereadFile::open("/dev/null", 1).ok();
        Interrupts { file, before: vec![0, before], now: vec![0, now] }
    }

    #[test]
    fn a_counter_that_wrapped_is_unknown() {
        assert_eq!(interrupts(7, 19).take(Cpu(1)), Some(12));
        assert_eq!(interrupts(19, 7).take(Cpu(1)), None);
        assert_eq!(interrupts(7, 19).take(Cpu(9)), None);
    }

    #[test]
    fn what_is_not_read_is_unknown() {
        assert_eq!(Interrupts { file: None, ..interrupts(7, 19) }.take(Cpu(1)), None);
    }
}
