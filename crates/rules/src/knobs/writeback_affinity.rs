//! Writeback: the CPUs from which dirty pages are written.

use super::sources::{PER_CPU_KTHREADS, WORKQUEUE};
use super::workqueue_cpumask::over_all;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::cpu_mask;
use crate::workqueues::{UNBOUND_MASK, effective_mask, unbound_mask};
use facts::line::parse_mask;
use model::slice::SliceKind;
use model::units::named_cpus;

pub static KNOB: Knob = Knob {
    id: "writeback-affinity",
    title: "CPUs of writeback",
    description: "Dirty pages are written to disk by kworkers of the workqueue `writeback`, on the CPUs in \
                  both its mask and the global mask of unbound workqueues.",
    rationale: "writing back dirty pages is the longest background work of the kernel: tens of milliseconds \
                on a busy disk",
    detection: "/sys/devices/virtual/workqueue/writeback/cpumask together with the global mask: if that \
                excludes the audited CPUs, nothing else is needed.",
    side_effects: "The other CPUs do the work. Recipes that also write 0 to `numa` there are from \
                   before 6.6, which has affinity_scope and affinity_strict instead.",
    wanted: "none of the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove the CPUs from the global mask (workqueue-cpumask), or write the mask of the others to \
             /sys/devices/virtual/workqueue/writeback/cpumask",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: OWN,
    sources: &[
        Source { title: "kernel: OS jitter due to per-CPU kthreads, kworker", url: PER_CPU_KTHREADS },
        Source { title: "kernel: workqueue, affinity scopes", url: WORKQUEUE },
    ],
    cures: &[SliceKind::Workqueue],
    after: &["workqueue-cpumask"],
    reads: &[UNBOUND_MASK, OWN],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: f
                /sys/devices/virtual/workqueue/writeback/cpumask: f",
        silent: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: f
                /sys/devices/virtual/workqueue/writeback/cpumask: 3",
        unknown: "--cpus 2-3
                  /sys/devices/virtual/workqueue/cpumask: f
                  /sys/devices/virtual/workqueue/writeback/cpumask refused",
    },
    ..Knob::DEFAULT
};

const OWN: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let unbound = unbound_mask(machine)?;
    let (cpus, others) = (machine.cpus(), machine.housekeeping_cpus()?);
    let online = machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    if unbound.and(cpus).is_empty() {
        return Ok(Judgement::pass(format!(
            "at most {}, by the global mask",
            named_cpus(unbound.and(online))
        )));
    }
    let own = machine.parsed(OWN, parse_mask)?.ok_or_else(|| unknown_absent(OWN))?;
    let found = effective_mask(&own, &unbound);
    Ok(Judgement::fail_if(!found.and(cpus).is_empty(), named_cpus(found.and(online)))
        .fix(Remedy::from(Change::write(OWN, cpu_mask(&others))).or(over_all(&others))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn one_mask_is_enough() {
        const OPEN: &str = "/sys/devices/virtual/workqueue/cpumask: f";
        check(&KNOB, "", "pass at most CPUs 0-1, by the global mask");
        check(&KNOB, OPEN, "fail medium CPUs 0-3");
        let own = "/sys/devices/virtual/workqueue/writeback/cpumask:";
        check(&KNOB, &format!("{OPEN}\n{own} 3"), "pass CPUs 0-1");
        check(&KNOB, &format!("{OPEN}\n{own} c"), "fail medium CPUs 2-3");
        check(&KNOB, "/sys/devices/virtual/workqueue/writeback absent", "pass");
        check(&KNOB, &format!("{OPEN}\n/sys/devices/virtual/workqueue/writeback absent"), "unknown");
    }
}
