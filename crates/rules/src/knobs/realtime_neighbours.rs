//! Real-time threads of programs that are not bound to a CPU.

use super::sources::{ISOLATION, SCHED7};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{base_name, require_complete};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::balanced_cpus;
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{self, truncate_list};
use facts::Fact;
use facts::tasks::RtPolicy;
use facts::threads::Thread;
use model::error::run_with;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "realtime-neighbours",
    title: "other real-time programs",
    description: "Sound servers, watchdogs, cluster and desktop software have real-time threads too. An \
                  unpinned one moves immediately to any CPU in load balancing that runs nothing of higher \
                  priority.",
    rationale: "a real-time thread of another program on an audited CPU preempts all tasks of lower priority \
                for any length of time",
    detection: "The affinity of each real-time thread of a program, on CPUs over which load is balanced: a \
                thread that may run both there and elsewhere was not placed deliberately. Threads pinned to \
                audited CPUs are assumed to belong to the real-time program.",
    side_effects: "The other program may use fewer CPUs.",
    wanted: "real-time threads are pinned either to audited CPUs or to the others",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "taskset -pc LIST TID with the other CPUs, or CPUAffinity= in the unit, for each that does not \
             belong to the real-time program; isolating the CPUs keeps all of them off",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "it is not known which of the threads belong to the real-time program",
    sources: &[
        Source { title: "sched(7): scheduling policies", url: SCHED7 },
        Source { title: "kernel: CPU isolation, scheduler domain isolation", url: ISOLATION },
    ],
    cures: &[SliceKind::Thread, SliceKind::Preempted],
    after: &["cpu-isolation"],
    facts: &["/proc/PID/task/TID/stat", "/proc/PID/task/TID/status"],
    judge,
    examples: Examples {
        fires: concat!(
            "--cpus 2-3\n/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated:\n",
            thread!(90001, "pipewire", 0, 20, 2, "0-3")
        ),
        silent: concat!("--cpus 2-3\n/proc absent\n", thread!(90001, "loop", 0, 80, 1, "2")),
        unknown: "--cpus 2-3
                /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let threads = machine.known(&machine.survey.threads, "/proc")?;
    let open = balanced_cpus(machine)?;
    let cpus = machine.cpus();
    let wanders = |thread: &&Thread| {
        let allowed = thread.allowed.known();
        allowed.is_some_and(|allowed| !allowed.and(&open).is_empty() && !allowed.without(cpus).is_empty())
    };
    let names = truncate_list(threads.realtime.iter().filter(wanders).map(thread_text));
    if !names.is_empty() {
        return Ok(Judgement::fail(format!("{names} may run on {}", words::cpu_list(&open))).fix(
            Remedy::advice(
                AdviceReason::Threads,
                format!(
                    "taskset -pc {} TID, or CPUAffinity= in the unit, for each that does not belong to the \
                     real-time program; isolating the CPUs keeps all of them off",
                    machine.housekeeping_cpus()?
                ),
            ),
        ));
    }
    if let Some(thread) = threads.realtime.iter().find(|thread| !matches!(thread.allowed, Fact::Known(_))) {
        return Err(unknown_from(&format!("the affinity of {}", base_name(thread)), &thread.allowed));
    }
    require_complete(threads)?;
    if threads.realtime.is_empty() && threads.kernel.is_empty() {
        return Err(Judgement::unknown(format!(
            "other users' processes are hidden in /proc: {}",
            run_with("CAP_SYS_PTRACE")
        )));
    }
    let bound = |thread: &&Thread| {
        let allowed = thread.allowed.known();
        allowed.is_some_and(|allowed| !allowed.is_empty() && allowed.without(cpus).is_empty())
    };
    let names = truncate_list(threads.realtime.iter().filter(bound).map(thread_text));
    Ok(Judgement::pass(match names.as_str() {
        "" => format!("none on {}", words::cpu_list(cpus)),
        names => format!("{names} pinned to {}, as threads of the real-time program", words::cpu_list(cpus)),
    }))
}

fn thread_text(thread: &Thread) -> String {
    match thread.policy {
        Some(RtPolicy::Fifo) => format!("{} FIFO {}", base_name(thread), thread.priority),
        Some(RtPolicy::RoundRobin) => format!("{} RR {}", base_name(thread), thread.priority),
        Some(RtPolicy::Deadline) => format!("{} DEADLINE", base_name(thread)),
        None => base_name(thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    #[test]
    fn threads_that_wander_are_named() {
        let open = "--cpus 2-3\n/sys/devices/system/cpu/isolated:";
        let wide = thread!(90001, "pipewire", 0, 20, 2, "0-3");
        check(&KNOB, "", "pass loop FIFO 80 pinned to CPUs 2-3, as threads of the real-time program");
        check(&KNOB, wide, "pass loop FIFO 80 pinned to CPUs 2-3, as threads of the real-time program");
        check(&KNOB, &format!("{open}\n{wide}"), "fail info pipewire RR 20 may run on CPUs 2-3");
        check(
            &KNOB,
            &format!("{open}\n{}", thread!(90001, "dl", 0, 0, 6, "0-3")),
            "fail info dl DEADLINE may run on CPUs 2-3",
        );
        check(&KNOB, &format!("{open}\n{}", thread!(90001, "x", 0, 20, 2, "0-1")), "pass");
        check(&KNOB, "/proc/800 absent", "pass none on CPUs 2-3");
        check(&KNOB, "/proc/800/status refused", "unknown");
        check(&KNOB, "--cpus 0-3", "not-applicable");
    }
}
