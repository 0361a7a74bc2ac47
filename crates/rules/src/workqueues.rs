//! Masks of workqueues: the mask of all unbound ones, and its effect on the mask of one.

use crate::judgement::Judgement;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use facts::line::parse_mask;
use model::units::CpuSet;

/// Mask of all unbound workqueues.
pub const UNBOUND_MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

/// CPUs that unbound workqueues may use at most.
pub fn unbound_mask(machine: &MachineView) -> Result<CpuSet, Judgement> {
    machine.parsed(UNBOUND_MASK, parse_mask)?.ok_or_else(|| unknown_absent(UNBOUND_MASK))
}

/// CPUs on which the work of a queue runs.
pub fn effective_mask(own: &CpuSet, unbound: &CpuSet) -> CpuSet {
    let both = own.and(unbound);
    if both.is_empty() { unbound.clone() } else { both }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_without_a_common_cpu_leave_that_over_all() {
        let set = |list: &str| CpuSet::parse(list).unwrap();
        assert_eq!(effective_mask(&set("2-3"), &set("0-2")), set("2"));
        assert_eq!(effective_mask(&set("3"), &set("0-1")), set("0-1"));
    }
}
