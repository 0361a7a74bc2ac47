//! Priority of RCU's threads: high enough not to starve, but below urgent work.

use super::sources::{PARAMETERS, RCU_STALLS};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rcu-thread-priority",
    title: "priority of RCU's threads",
    description: "rcutree.kthread_prio is the SCHED_FIFO priority of the threads that drive grace periods \
                  and run callbacks (rcu_preempt, rcuc, and rcuo where the kernel has \
                  RCU_NOCB_CPU_CB_BOOST), and the boost priority of preempted readers. It is 1 by default on \
                  PREEMPT_RT; 0 means ordinary threads.",
    rationale: "RCU threads above the interrupt threads run batches of callbacks ahead of them; below every \
                real-time task they starve, and the machine runs out of memory",
    detection: "The parameter, compared with 50, the default of interrupt threads, and whether the kernel is \
                PREEMPT_RT. Priorities set for single threads later (chrt), and those of the real-time \
                tasks, are not considered.",
    side_effects: "The higher it is, the more tasks RCU preempts; a flood of callbacks occupies the CPU for \
                   a long time. At 1, a real-time task that never sleeps starves the RCU threads of its CPU \
                   unless their work is offloaded.",
    wanted: "on PREEMPT_RT above 0, and below the interrupt threads and the real-time tasks",
    fix: || {
        Remedy::from(Change::cmdline_add("rcutree.kthread_prio=1"))
            .note("a higher value has to be below that of the real-time tasks")
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, rcutree.kthread_prio=", url: PARAMETERS },
        Source { title: "kernel: RCU's CPU stall detector, what causes stall warnings", url: RCU_STALLS },
    ],
    cures: &[SliceKind::Thread, SliceKind::Preempted],
    after: &["rcu-callbacks"],
    reads: &[PRIORITY],
    facts: &["/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/sys/module/rcutree/parameters/kthread_prio: 99",
        silent: "/sys/module/rcutree/parameters/kthread_prio: 1",
        unknown: "/sys/module/rcutree/parameters/kthread_prio refused",
    },
    ..Knob::DEFAULT
};

const PRIORITY: &str = "/sys/module/rcutree/parameters/kthread_prio";

/// Priority that the kernel gives to interrupt threads.
const OF_INTERRUPTS: i64 = 50;

fn judge(machine: &MachineView) -> Judged {
    let priority = machine.number_if_present(PRIORITY)?.ok_or_else(|| unknown_absent(PRIORITY))?;
    if priority >= OF_INTERRUPTS {
        return Ok(Judgement::fail(format!("{priority}, interrupt threads {OF_INTERRUPTS}")));
    }
    match (priority, machine.facts().realtime) {
        (0, None) => Err(Judgement::unknown(
            "0 is wrong only on PREEMPT_RT, and it is not known whether this kernel \
                                    is PREEMPT_RT",
        )),
        (0, Some(true)) => Ok(Judgement::fail("0: ordinary threads").severity(Severity::Low).because(
            "a grace period waits for readers that real-time tasks preempted, and their priority is not \
             boosted",
        )),
        _ => Ok(Judgement::pass(priority.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOB, PRIORITY};
    use crate::fixture::check;

    #[test]
    fn neither_the_top_nor_the_bottom() {
        check(&KNOB, "", "pass 1");
        check(&KNOB, &format!("{PRIORITY}: 11"), "pass 11");
        check(&KNOB, &format!("{PRIORITY}: 50"), "fail medium 50, interrupt threads 50");
        check(&KNOB, &format!("{PRIORITY}: 0"), "fail low 0: ordinary threads");
        let full = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                    /sys/kernel/debug/sched/preempt: none voluntary (full)\nCONFIG_PREEMPT_RT=n";
        check(&KNOB, &format!("{PRIORITY}: 0\n{full}"), "pass 0");
        let silent = "/proc/sys/kernel/version refused\n/sys/kernel/debug/sched/preempt refused\n\
                      /boot/config-6.12.9-rt-amd64 absent";
        check(&KNOB, &format!("{PRIORITY}: 0\n{silent}"), "unknown");
        check(&KNOB, &format!("{PRIORITY}: 99\n{silent}"), "fail medium 99, interrupt threads 50");
        check(&KNOB, &format!("{PRIORITY} absent"), "unknown");
        check(&KNOB, &format!("{PRIORITY}: high"), "unknown");
    }
}
