//! Unbound workqueues: the CPUs that run the kernel's deferred work.

use super::sources::{ISOLATION, WORKQUEUE};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_mask;
use crate::workqueues::{UNBOUND_MASK, unbound_mask};
use model::slice::SliceKind;
use model::units::{CpuSet, named_cpus};

pub static KNOB: Knob = Knob {
    id: "workqueue-cpumask",
    title: "CPUs of unbound workqueues",
    description: "Deferred work of the kernel runs in kworkers. Work of unbound workqueues may run on any \
                  CPU in /sys/devices/virtual/workqueue/cpumask, which isolcpus=domain and, from 6.8 on, \
                  isolated partitions keep off their CPUs. nohz_full= did so up to 6.12, and no longer does \
                  in 7.3.",
    rationale: "a kworker on an audited CPU runs work of milliseconds for other CPUs, and a real-time task \
                waits for its locks",
    detection: "The mask. Work of bound workqueues runs where it was queued and cannot be moved; only its \
                cause can.",
    side_effects: "The other CPUs do the work. From 6.8 on a partition does this automatically: a written \
                   mask is then only a request (cpumask_requested), from which the kernel removes the \
                   isolated CPUs (cpumask_isolated).",
    wanted: "none of the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "isolate the CPUs (cpu-isolation), or write the mask of the others to \
             /sys/devices/virtual/workqueue/cpumask; at boot workqueue.unbound_cpus=LIST (6.6 on)",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: "/sys/devices/virtual/workqueue/cpumask",
    sources: &[
        Source { title: "kernel: CPU isolation, unbound work", url: ISOLATION },
        Source { title: "kernel: workqueue, affinity scopes", url: WORKQUEUE },
    ],
    cures: &[SliceKind::Workqueue],
    after: &["cpu-isolation"],
    reads: &[UNBOUND_MASK],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: f",
        silent: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask: 3",
        unknown: "--cpus 2-3
                /sys/devices/virtual/workqueue/cpumask refused",
    },
    ..Knob::DEFAULT
};

/// The mask of all unbound workqueues without the audited CPUs.
pub fn over_all(others: &CpuSet) -> Remedy {
    Remedy::from(Change::write(UNBOUND_MASK, cpu_mask(others)))
        .persist(Change::cmdline_add(format!("workqueue.unbound_cpus={others}")))
}

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let cpus = unbound_mask(machine)?;
    let online = machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let others = machine.housekeeping_cpus()?;
    Ok(Judgement::fail_if(!cpus.and(machine.cpus()).is_empty(), named_cpus(cpus.and(online)))
        .wanted(format!("at most {}", named_cpus(&others)))
        .fix(over_all(&others)))
}

#[cfg(test)]
mod tests {
    use super::{KNOB, UNBOUND_MASK};
    use crate::fixture::{Machine, check};

    #[test]
    fn the_mask_decides() {
        check(&KNOB, "", "pass CPUs 0-1");
        check(&KNOB, "/sys/devices/virtual/workqueue/cpumask: ff", "fail high CPUs 0-3");
        check(&KNOB, "/sys/devices/virtual/workqueue/cpumask: 9", "fail high CPUs 0,3");
        check(&KNOB, "/sys/devices/virtual/workqueue/cpumask absent", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/isolated:", "not-applicable");
    }

    #[test]
    fn a_parameter_that_the_release_lacks_is_not_asked_for() {
        let fix = |release: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{UNBOUND_MASK}: ff\n/proc/sys/kernel/osrelease: {release}"));
            machine.finding(&KNOB).fix
        };
        assert!(!fix("6.1.9").contains("unbound_cpus") && fix("6.6.9").contains("unbound_cpus"));
    }
}
