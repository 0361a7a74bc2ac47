//! Workqueues with a separate CPU mask.

use super::sources::{PER_CPU_KTHREADS, WORKQUEUE};
use super::workqueue_cpumask::over_all;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_mask, truncate_list};
use crate::workqueues::{UNBOUND_MASK, effective_mask, unbound_mask};
use facts::line::parse_mask;
use model::slice::SliceKind;
use model::units::named_cpus;

pub static KNOB: Knob = Knob {
    id: "workqueue-queues",
    title: "CPUs of single workqueues",
    description: "Some workqueues have a separate mask, /sys/devices/virtual/workqueue/NAME/cpumask: those \
                  of nvme, of encrypted and redundant disks, of file systems. Their work runs on the CPUs in \
                  both that mask and the global mask of unbound workqueues; if these have no CPU in common, \
                  on those of the global mask.",
    rationale: "work for disks and file systems takes milliseconds, and runs in kworkers on any CPU that \
                both masks allow",
    detection: "Each mask together with the global one. If the global mask excludes the audited CPUs, the \
                others need no change. The writeback queue is judged by writeback-affinity.",
    side_effects: "The other CPUs do the work. Queues come and go with modules and devices, with a full mask \
                   each time: the global mask is the better place.",
    wanted: "none of the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove the CPUs from the global mask (workqueue-cpumask), or write the mask of the others to \
             cpumask of each",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: OS jitter due to per-CPU kthreads, kworker", url: PER_CPU_KTHREADS },
        Source { title: "kernel: workqueue, affinity scopes", url: WORKQUEUE },
    ],
    cures: &[SliceKind::Workqueue],
    after: &["workqueue-cpumask"],
    reads: &[UNBOUND_MASK, QUEUES],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: f
                /sys/devices/virtual/workqueue/nvme-wq/cpumask: f",
        silent: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: 3
                /sys/devices/virtual/workqueue/nvme-wq/cpumask: f",
        unknown: "--cpus 2-3
                  /sys/devices/virtual/workqueue/cpumask: f
                  /sys/devices/virtual/workqueue/nvme-wq/cpumask refused",
    },
    ..Knob::DEFAULT
};

const QUEUES: &str = "/sys/devices/virtual/workqueue/*/cpumask";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let unbound = unbound_mask(machine)?;
    let queues =
        || machine.texts(QUEUES).map(|texts| texts.iter().filter(|text| text.names != ["writeback"]));
    if queues()?.next().is_none() {
        return Err(Judgement::not_applicable("no other workqueue has a separate mask"));
    }
    let cpus = machine.cpus();
    if unbound.and(cpus).is_empty() {
        return Ok(Judgement::pass(format!("none on {}, by the global mask", named_cpus(cpus))));
    }
    let touching = queues()?.filter(|text| {
        let own = text.content.clone().parse(|content| parse_mask(&content));
        own.known().is_some_and(|own| !effective_mask(own, &unbound).and(cpus).is_empty())
    });
    let touching: Vec<_> = touching.collect();
    let names = truncate_list(touching.iter().map(|text| text.names.join("/")));
    if !names.is_empty() {
        let others = machine.housekeeping_cpus()?;
        return Ok(Judgement::fail(format!("{names} on {}", named_cpus(cpus))).fix(over_all(&others).or(
            Change::each(
                touching.iter().map(|text| text.path.clone()).collect(),
                "/sys/devices/virtual/workqueue/NAME/cpumask",
                &names,
                cpu_mask(&others),
            ),
        )));
    }
    machine.each(QUEUES, parse_mask)?;
    Ok(Judgement::pass(format!("none on {}", named_cpus(cpus))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    const OPEN: &str = "/sys/devices/virtual/workqueue/cpumask: f";

    #[test]
    fn both_masks_count() {
        check(&KNOB, "", "pass none on CPUs 2-3, by the global mask");
        check(&KNOB, OPEN, "fail medium nvme-wq on CPUs 2-3");
        let own = "/sys/devices/virtual/workqueue/nvme-wq/cpumask:";
        check(&KNOB, &format!("{OPEN}\n{own} 3"), "pass none on CPUs 2-3");
        check(&KNOB, &format!("{own} refused"), "pass none on CPUs 2-3, by the global mask");
        check(&KNOB, &format!("{OPEN}\n{own} 3\n/sys/devices/virtual/workqueue/scsi/cpumask: x"), "unknown");
        check(&KNOB, "/sys/devices/virtual/workqueue/nvme-wq absent", "not-applicable");
        check(&KNOB, "/sys/devices/virtual/workqueue absent", "unknown");
    }
}
