//! Priorities of the kernel's threads of each CPU.

use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::change::{AdviceReason, Change, Persistence, ThreadId};
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{require_complete, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::threads::Thread;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

pub static KNOB: Knob = Knob {
    id: "kernel-thread-priorities",
    title: "priorities of softirq and RCU threads",
    description: "ksoftirqd/N begins as an ordinary task, ktimers/N (newer kernels with threaded \
                  interrupts) and, on PREEMPT_RT, rcuc/N as SCHED_FIFO 1. Some recipes raise them \
                  so that they cannot starve beside real-time tasks that hardly sleep.",
    rationale: "above a real-time task's priority, these threads run timers, packets and RCU \
                callbacks of others before it",
    detection: "The priorities of ksoftirqd, ktimers and rcuc of the CPUs that matter. From 50 on \
                they go ahead of the threads of interrupts that have the default priority.",
    side_effects: "At their usual priority they starve beside a real-time task that never sleeps: \
                   RCU then reports stalls and memory is not freed. Such a CPU wants its \
                   callbacks and timers elsewhere (rcu_nocbs=, nohz_full=), or these threads \
                   raised.",
    wanted: "ksoftirqd ordinary, ktimers and rcuc SCHED_FIFO 1, unless they starve",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "chrt -o -p 0 PID for ksoftirqd, chrt -f -p 1 PID for ktimers and rcuc, or \
             rcutree.kthread_prio=1 at boot; keep them below the real-time tasks if they have to \
             be raised",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    disputed: "hosts of real-time guests raise them to 2 to 11 against starvation, below their \
               tasks: `onbeat compare` of runs with and without, and the kernel log for RCU \
               stalls, tell which is worse",
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: command line, rcutree.kthread_prio=", url: PARAMETERS },
        Source {
            title: "kernel: OS jitter due to per-CPU kthreads, ksoftirqd/%u and rcuc/%u",
            url: PER_CPU_KTHREADS,
        },
    ],
    cures: &[SliceKind::Thread, SliceKind::Preempted, SliceKind::Softirq, SliceKind::TimerSoftirq],
    facts: &["/proc/PID/stat"],
    judge,
    examples: Examples {
        fires: concat!("--cpus 2-3\n", thread!(90001, "ksoftirqd/2", 69206016, 11, 1, "2")),
        silent: concat!("--cpus 2-3\n/proc absent\n", thread!(90001, "ksoftirqd/2", 69206016, 0, 0, "2")),
        unknown: "--cpus 2-3
                /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let threads = visible_threads(machine)?;
    let raised: Vec<&Thread> = threads
        .kernel
        .iter()
        .filter(|thread| of(&thread.comm, machine.cpus()) && thread.priority > 1)
        .collect();
    let names = truncate_list(raised.iter().map(|thread| format!("{} {}", thread.comm, thread.priority)));
    if names.is_empty() {
        require_complete(threads)?;
        if !threads.kernel.iter().any(|thread| of(&thread.comm, machine.cpus())) {
            return Err(Judgement::unknown("no such thread shows in /proc"));
        }
        return Ok(Judgement::pass("none above 1"));
    }
    let high = raised.iter().any(|thread| thread.priority >= 50);
    let severity = if high { Severity::Medium } else { Severity::Info };
    Ok(Judgement::fail(names).severity(severity).fix(usual(&raised)))
}

/// The priorities with which the kernel starts them.
fn usual(raised: &[&Thread]) -> Remedy {
    let ordinary = |thread: &&Thread| thread.comm.starts_with("ksoftirqd/");
    let of = |fifo: Option<u32>| {
        let them = || raised.iter().copied().filter(|thread| ordinary(thread) == fifo.is_none());
        let threads: Vec<ThreadId> =
            them().map(|thread| ThreadId { tid: thread.tid, start: thread.start }).collect();
        let shown_as = truncate_list(them().map(|thread| thread.comm.clone()));
        (!threads.is_empty()).then_some(Change::Policy { threads, shown_as, fifo })
    };
    let usual = Remedy::of([of(None), of(Some(1))].into_iter().flatten());
    let note = "keep them below the real-time tasks if they have to be raised";
    match raised.iter().any(|thread| thread.comm.starts_with("rcuc/")) {
        true => usual.persist(Change::cmdline_add("rcutree.kthread_prio=1")).note(note),
        false => usual.note(note),
    }
}

/// Whether this is one of the threads, of one of the CPUs.
fn of(comm: &str, cpus: &CpuSet) -> bool {
    let Some((name, cpu)) = comm.split_once('/') else { return false };
    ["ksoftirqd", "ktimers", "rcuc"].contains(&name) && cpu.parse().is_ok_and(|cpu| cpus.contains(Cpu(cpu)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    #[test]
    fn only_those_of_the_audited_cpus_count() {
        check(&KNOB, "", "pass none above 1");
        check(&KNOB, thread!(42, "ktimers/2", 69206016, 11, 1, "2"), "fail info ktimers/2 11");
        check(&KNOB, thread!(42, "ktimers/2", 69206016, 60, 1, "2"), "fail medium ktimers/2 60");
        check(&KNOB, thread!(90001, "rcuc/0", 69206016, 60, 1, "0"), "pass");
        check(&KNOB, thread!(90001, "irq_work/2", 69206016, 60, 1, "2"), "pass");
        check(&KNOB, "--cpus 0", "unknown no such thread shows in /proc");
        check(&KNOB, "/proc/90001/stat: broken", "unknown");
    }
}
