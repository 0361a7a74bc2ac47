//! Origins of gaps: counters around each gap that only firmware or a hypervisor advances.

use std::collections::BTreeMap;

use crate::measure::watch::steal::USER_TICK;
use facts::stat::steal_ticks;
use host::{MachineFiles, SmiCounter};
use model::units::{Cpu, Nanos};
use model::vocabulary::GapOrigin;

/// Counters of one CPU at the last look.
struct CpuCounters {
    cpu: Cpu,
    /// Counter of SMIs, where the processor has one and this user may read it.
    smi: Option<SmiCounter>,
    smis: u32,
    steal: u64,
}

/// Gaps of a CPU since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct GapSum {
    pub count: u64,
    pub total: Nanos,
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

    /// Origin of the gaps since the last look, which all gaps of a CPU have in common: it needs as
    /// many SMIs as gaps, or as much steal time as half of their length. Read only after gaps:
    /// reading a counter of SMIs interrupts its CPU.
    pub fn look(&mut self, gaps: &BTreeMap<Cpu, GapSum>) -> BTreeMap<Cpu, GapOrigin> {
        let steal = steal();
        let below = self.below;
        let looked = self.cpus.iter_mut().filter_map(|counters| Some((gaps.get(&counters.cpu)?, counters)));
        looked
            .map(|(sum, counters)| {
                let smis = counters.smi.as_ref().and_then(|smi| smi.read().ok()).unwrap_or(counters.smis);
                let steal = steal.get(&counters.cpu).copied().unwrap_or(0);
                let ticks = i64::try_from(steal.saturating_sub(counters.steal)).unwrap_or(0);
                let stolen = Nanos(ticks.saturating_mul(USER_TICK.0));
                let origin = origin(*sum, smis.wrapping_sub(counters.smis), stolen, below);
                (counters.smis, counters.steal) = (smis, steal);
                (counters.cpu, origin)
            })
            .collect()
    }
}

fn origin(gaps: GapSum, smis: u32, stolen: Nanos, below: bool) -> GapOrigin {
    if u64::from(smis) >= gaps.count {
        GapOrigin::Smi
    } else if below || stolen.0 >= gaps.total.0 / 2 && stolen.0 > 0 {
        GapOrigin::Hypervisor
    } else {
        GapOrigin::Unknown
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
    fn an_origin_needs_counters_that_cover_the_gaps() {
        let gaps = |count, ms: i64| GapSum { count, total: Nanos(ms * 1_000_000) };
        let stolen = |ms: i64| Nanos(ms * 1_000_000);
        assert_eq!(origin(gaps(1, 1), 1, stolen(10), true), GapOrigin::Smi);
        assert_eq!(origin(gaps(2, 1), 1, stolen(0), false), GapOrigin::Unknown);
        assert_eq!(origin(gaps(1, 30), 0, stolen(20), false), GapOrigin::Hypervisor);
        assert_eq!(origin(gaps(300, 600), 0, stolen(20), false), GapOrigin::Unknown);
        assert_eq!(origin(gaps(1, 0), 0, stolen(0), false), GapOrigin::Unknown);
        assert_eq!(origin(gaps(300, 600), 0, stolen(0), true), GapOrigin::Hypervisor);
    }

    #[test]
    fn cpus_without_gaps_are_not_read() {
        let here = host::rt::affinity().unwrap();
        let mut origins = GapOrigins::of(here.iter(), false);
        let first = here.iter().next().unwrap();
        let gaps = BTreeMap::from([(first, GapSum { count: 1, total: Nanos(1) })]);
        assert_eq!(origins.look(&gaps).into_keys().collect::<Vec<_>>(), [first]);
        assert!(origins.look(&BTreeMap::new()).is_empty());
    }
}
