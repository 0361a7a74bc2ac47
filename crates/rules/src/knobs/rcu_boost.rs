//! Priority boosting of readers that RCU waits for.

use super::sources::{RCU_OPTIONS, RCU_STALLS};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::visible_threads;
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::threads::Thread;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "rcu-boost",
    title: "RCU priority boosting",
    description: "With RCU_BOOST a task that was preempted in an RCU read-side section, and so blocks a \
                  grace period, gets real-time priority after half a second (RCU_BOOST_DELAY). PREEMPT_RT \
                  kernels have it by default.",
    rationale: "a real-time task that keeps its CPU can keep a preempted reader from running: RCU then waits \
                forever, memory is not freed, and finally all tasks wait for it",
    detection: "The kernel's configuration, including PREEMPT_RCU, without which readers are not preempted; \
                without a configuration, the threads rcub/N. The boost priority is rcutree.kthread_prio, 1 \
                by default: a real-time task of higher priority still delays the reader.",
    side_effects: "Needs another kernel. The boosted reader briefly preempts ordinary tasks.",
    wanted: "built in",
    fix: || {
        Remedy::from(Change::kconfig("RCU_BOOST", "y"))
            .note("the option is visible with PREEMPT_RT, or with RCU_EXPERT")
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: RCU's CPU stall detector, what causes stall warnings", url: RCU_STALLS },
        Source { title: "kernel: kernel/rcu/Kconfig, RCU_BOOST", url: RCU_OPTIONS },
    ],
    cures: &[SliceKind::PriorityInversion, SliceKind::LockContention],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/version", "/proc/PID/stat"],
    judge,
    examples: Examples {
        fires: "CONFIG_RCU_BOOST=n\nCONFIG_PREEMPT_RCU=y",
        silent: "",
        unknown: "/boot refused\n/proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let config = match machine.kconfig() {
        Ok(config) => config,
        // Each node of RCU's tree has such a thread from boot on.
        Err(_) if has_boost_threads(machine) => return Ok(Judgement::pass("built in: rcub threads run")),
        Err(untold) => return Err(untold),
    };
    if !config.is_yes("PREEMPT_RCU") {
        return Err(Judgement::not_applicable("readers are not preempted: the kernel has no PREEMPT_RCU"));
    }
    if config.is_yes("RCU_BOOST") {
        return Ok(Judgement::pass("built in"));
    }
    // Elsewhere the option depends on RCU_EXPERT, and nearly no kernel has it.
    let severity = if machine.facts().preempt == Preempt::Rt { Severity::Medium } else { Severity::Low };
    Ok(Judgement::fail("not built in").severity(severity))
}

fn has_boost_threads(machine: &MachineView) -> bool {
    let is_boost = |thread: &Thread| thread.comm.starts_with("rcub/");
    visible_threads(machine).is_ok_and(|threads| threads.kernel.iter().any(is_boost))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::edits::thread;
    use crate::fixture::check;

    #[test]
    fn it_applies_where_readers_are_preempted() {
        check(&KNOB, "", "pass built in");
        check(&KNOB, "CONFIG_RCU_BOOST=n", "fail medium not built in");
        check(
            &KNOB,
            "CONFIG_RCU_BOOST=n\nCONFIG_PREEMPT_RT=n\n/proc/sys/kernel/version: #1 SMP \
             PREEMPT_DYNAMIC",
            "fail low not built in",
        );
        check(&KNOB, "CONFIG_PREEMPT_RCU=n", "not-applicable");
        let thread = thread!(90001, "rcub/0", 2097152, 1, 1, "0-3");
        check(&KNOB, &format!("/boot refused\n{thread}"), "pass built in: rcub threads run");
    }
}
