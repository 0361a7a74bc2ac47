//! Programs at the highest priority.

use super::sources::{RHEL_PRIORITIES, SCHED7};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{base_name, require_complete};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use model::error::run_with;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "priority-99",
    title: "programs at priority 99",
    description: "99 is the highest priority of SCHED_FIFO and SCHED_RR. Critical kernel threads are there \
                  or above, interrupt threads at 50 by default.",
    rationale: "a program at 99 preempts every kernel thread that it may need, including the interrupt \
                threads of its devices",
    detection: "The policy and priority of each thread of each program that could be read.",
    side_effects: "None, if the priorities below 99 have the same order. A watchdog that has to run when \
                   everything else hangs may be at 99 on purpose.",
    wanted: "real-time programs below 99",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "chrt -f -p 98 TID, or lower; CPUSchedulingPriority= in the unit; keep their order, and keep \
             interrupt threads that they wait for above them",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "many latency tests run at 99: `onbeat measure` at 98 and at 99 shows whether it makes any \
               difference here",
    persistence: Persistence::Runtime,
    unsettable: "a program defines the priority order of its threads",
    sources: &[
        Source { title: "Red Hat Enterprise Linux 10: priority map", url: RHEL_PRIORITIES },
        Source { title: "sched(7): scheduling policies", url: SCHED7 },
    ],
    cures: &[SliceKind::Thread, SliceKind::Preempted, SliceKind::PriorityInversion],
    facts: &["/proc/PID/task/TID/stat"],
    judge,
    examples: Examples {
        fires: thread!(90001, "spinner", 0, 99, 1, "2"),
        silent: concat!("/proc absent\n", thread!(90001, "spinner", 0, 98, 1, "2")),
        unknown: "/proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let threads = machine.known(&machine.survey.threads, "/proc")?;
    let highest = threads.realtime.iter().filter(|thread| thread.priority == 99);
    let names = truncate_list(highest.map(base_name));
    if !names.is_empty() {
        return Ok(Judgement::fail(names));
    }
    require_complete(threads)?;
    if threads.realtime.is_empty() && threads.kernel.is_empty() {
        return Err(Judgement::unknown(format!(
            "other users' processes are hidden in /proc: {}",
            run_with("CAP_SYS_PTRACE")
        )));
    }
    Ok(Judgement::pass("none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    #[test]
    fn programs_count_and_the_kernel_does_not() {
        check(&KNOB, "", "pass none");
        check(&KNOB, thread!(90001, "spinner", 0, 99, 2, "0-3"), "fail medium spinner");
        check(&KNOB, thread!(90001, "spinner", 0, 98, 1, "0-3"), "pass");
        check(&KNOB, "/proc/90001/stat: broken", "unknown");
        let hostile = format!("{}\n/proc/90002/stat: x", thread!(90001, "a) S 99 (", 0, 99, 1, "0"));
        check(&KNOB, &hostile, "fail medium a) S 99 (");
    }
}
