//! Steal of all CPUs, read before the CPUs of the followed threads are known: a CPU found later
//! does not reset the counters.

use std::collections::BTreeMap;

use crate::measure::watch::steal::Steal;
use model::units::{Cpu, CpuSet, Nanos};

/// Steal by CPU, assigned to the blocks of the followed threads.
pub struct StealByCpu {
    counters: Steal,
    online: Vec<Cpu>,
    /// Steal of CPUs without a block yet, from before the current second.
    before: BTreeMap<Cpu, Nanos>,
}

impl StealByCpu {
    /// Starts the counters on a virtual machine; elsewhere there is no steal.
    pub fn new(online: &CpuSet, virtualization: &str) -> StealByCpu {
        let counters = Steal::new(online.iter(), virtualization);
        StealByCpu { counters, online: online.iter().collect(), before: BTreeMap::new() }
    }

    pub fn read(&mut self) {
        self.counters.read();
    }

    /// Steal of the CPU's next block; `past` is true for a block before a thread first ran there,
    /// which ended before the current second.
    pub fn take(&mut self, cpu: Cpu, past: bool) -> Option<Nanos> {
        match (self.before.remove(&cpu), past) {
            (Some(before), true) => Some(before),
            (before, _) => self.counters.take(cpu).map(|now| now + before.unwrap_or_default()),
        }
    }

    /// Sets aside the steal of CPUs other than these, which have no block yet.
    pub fn carry_over(&mut self, known: impl Iterator<Item = Cpu>) {
        let known: Vec<Cpu> = known.collect();
        for &cpu in self.online.iter().filter(|cpu| !known.contains(cpu)) {
            if let Some(ns) = self.counters.take(cpu) {
                let before = self.before.entry(cpu).or_default();
                *before = *before + ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_comes_online_later_does_not_reset_the_counters_of_others() {
        let online: CpuSet = [Cpu(0), Cpu(1)].into_iter().collect();
        let mut steal = StealByCpu {
            counters: Steal::fed(online.iter()),
            online: vec![Cpu(0), Cpu(1)],
            before: BTreeMap::new(),
        };
        let line = |cpu: u32, ticks: u64| format!("cpu{cpu} 1 2 3 4 5 6 7 {ticks} 0 0\n");
        let tick = |n: i64| Some(Nanos(n * 10_000_000));
        let read = |steal: &mut StealByCpu, a, b| {
            steal.counters.count(format!("cpu 0\n{}{}", line(0, a), line(1, b)).as_bytes())
        };
        read(&mut steal, 100, 200);
        read(&mut steal, 103, 205);
        assert_eq!(steal.take(Cpu(0), false), tick(3));
        steal.carry_over([Cpu(0)].into_iter());
        // CPU 1 is found in this second.
        read(&mut steal, 104, 207);
        assert_eq!(steal.take(Cpu(0), false), tick(1));
        assert_eq!((steal.take(Cpu(1), true), steal.take(Cpu(1), false)), (tick(5), tick(2)));
        steal.carry_over([Cpu(0), Cpu(1)].into_iter());
        read(&mut steal, 104, 208);
        assert_eq!((steal.take(Cpu(1), false), steal.take(Cpu(0), false)), (tick(1), tick(0)));
    }
}
