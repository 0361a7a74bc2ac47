//! Origins of gaps: counters around each gap that only firmware or a hypervisor advances.

use std::collections::BTreeMap;

use facts::stat::steal_ticks;
use host::{MachineFiles, SmiCounter};
use model::units::Cpu;
use model::vocabulary::GapOrigin;

/// Counters of one CPU at the last look.
struct CpuCounters {
    cpu: Cpu,
    /// Counter of SMIs, where the processor has one and this user may read it.
    smi: Option<SmiCounter>,
    smis: u32,
    steal: u64,
}

/// Counters of the measured CPUs.
pub struct GapOrigins {
    cpus: Vec<CpuCounters>,
    /// True if each gap that is not of firmware is of a hypervisor: the source keeps interrupts
    /// off, and the machine is virtual.
    below: bool,
}

impl GapOrigins {
    /// Reads the counters for the first time.
    pub fn of(cpus: impl Iterator<Item = Cpu>, below: bool) -> GapOrigins {
        let steal = steal();
        let counters = |cpu| {
            let smi = SmiCounter::open(cpu).ok();
            let smis = smi.as_ref().and_then(|smi| smi.read().ok()).unwrap_or(0);
            CpuCounters { cpu, smi, smis, steal: steal.get(&cpu).copied().unwrap_or(0) }
        };
        GapOrigins { cpus: cpus.map(counters).collect(), below }
    }

    /// True if the SMIs of a CPU are counted.
    pub fn counts_smis(&self) -> bool {
        self.cpus.iter().any(|counters| counters.smi.is_some())
    }

    /// Origin of the gaps on these CPUs since the last look. Read only after gaps: reading a
    /// counter of SMIs interrupts its CPU.
    pub fn look(&mut self, with_gaps: &[Cpu]) -> BTreeMap<Cpu, GapOrigin> {
        let steal = steal();
        let below = self.below;
        let looked = self.cpus.iter_mut().filter(|counters| with_gaps.contains(&counters.cpu));
        looked
            .map(|counters| {
                let smis = counters.smi.as_ref().and_then(|smi| smi.read().ok()).unwrap_or(counters.smis);
                let steal = steal.get(&counters.cpu).copied().unwrap_or(0);
                let origin = origin(smis != counters.smis, steal > counters.steal, below);
                (counters.smis, counters.steal) = (smis, steal);
                (counters.cpu, origin)
            })
            .collect()
    }
}

fn origin(by_smi: bool, stolen: bool, below: bool) -> GapOrigin {
    match (by_smi, stolen || below) {
        (true, _) => GapOrigin::Smi,
        (false, true) => GapOrigin::Hypervisor,
        (false, false) => GapOrigin::Unknown,
    }
}

/// Ticks that the hypervisor took, by CPU.
fn steal() -> BTreeMap<Cpu, u64> {
    let mut ticks = BTreeMap::new();
    if let Some(text) = MachineFiles::live().read_text("/proc/stat").known() {
        steal_ticks(text.as_bytes(), |cpu, steal| {
            ticks.insert(cpu, steal);
        });
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_needs_a_counter_that_advanced_or_a_machine_below() {
        assert_eq!(origin(true, true, true), GapOrigin::Smi);
        assert_eq!(origin(false, true, false), GapOrigin::Hypervisor);
        assert_eq!(origin(false, false, true), GapOrigin::Hypervisor);
        assert_eq!(origin(false, false, false), GapOrigin::Unknown);
    }

    #[test]
    fn cpus_without_gaps_are_not_read() {
        let here = host::rt::affinity().unwrap();
        let mut origins = GapOrigins::of(here.iter(), false);
        let first: Vec<Cpu> = here.iter().take(1).collect();
        assert_eq!(origins.look(&first).into_keys().collect::<Vec<_>>(), first);
        assert!(origins.look(&[]).is_empty());
    }
}
