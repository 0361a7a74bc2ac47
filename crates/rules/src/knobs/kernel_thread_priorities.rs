//! Priorities of per-CPU kernel threads.

use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::change::{AdviceReason, Change, Persistence, ThreadId};
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{require_complete, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::tasks::RtPolicy;
use facts::threads::{Thread, Threads};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "kernel-thread-priorities",
    title: "priorities of softirq and RCU threads",
    description: "ksoftirqd/N and, on PREEMPT_RT, backlog_napi/N (6.10 on) start as ordinary tasks; \
                  ktimers/N (newer kernels with threaded interrupts) and, on PREEMPT_RT, rcuc/N and \
                  irq_work/N start as SCHED_FIFO 1. Some recipes raise them so that they cannot starve \
                  because of real-time tasks that hardly sleep.",
    rationale: "above a real-time task's priority, these threads run timers, packets, irq_work and RCU \
                callbacks of other tasks first",
    detection: "The priorities of ksoftirqd, ktimers (ktimersoftd up to 4.19), rcuc, irq_work and \
                backlog_napi of the audited CPUs, and of RCU's other threads, compared with each other, with \
                interrupt threads (50 if none is found) and with the real-time programs on these CPUs. \
                ksoftirqd above RCU's threads can stop the machine: it waits for them, and keeps them from \
                running. On PREEMPT_RT, an ordinary ktimers delays the timers of all programs behind any \
                load, and an ordinary RCU thread delays grace periods; an interrupt thread at 1 or below \
                waits for both.",
    side_effects: "At their usual priority they starve because of a real-time task that never sleeps: RCU \
                   then reports stalls and memory is not freed. On such a CPU move callbacks and timers to \
                   other CPUs (rcu_nocbs=, nohz_full=), or raise these threads.",
    wanted: "ksoftirqd and backlog_napi ordinary, ktimers, rcuc and irq_work SCHED_FIFO 1, unless they \
             starve",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "chrt -o -p 0 PID for ksoftirqd and backlog_napi, chrt -f -p 1 PID for ktimers, rcuc \
             and irq_work, or rcutree.kthread_prio=1 at boot; keep them below the real-time tasks \
             if they have to be raised",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    disputed: "hosts of real-time guests raise them to 2 to 11 against starvation, below their tasks: \
               `onbeat compare` of runs with and without it, and RCU stalls in the kernel log, show which is \
               worse",
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

/// Default priority of an interrupt thread (kernel/irq/manage.c, `setup_irq_thread()`).
const INTERRUPT: u32 = 50;

/// Priority with which the kernel starts ktimers and RCU's threads.
const LOWEST: u32 = 1;

/// Per-CPU kernel threads that are judged (kernel/softirq.c, kernel/rcu/tree.c, `irq_workd_setup()`
/// of kernel/irq_work.c, `backlog_threads` of net/core/dev.c). On PREEMPT_RT irq_work runs work
/// that is not marked hard, backlog_napi the packets of loopback and RPS; ktimersoftd is the name
/// of ktimers up to 4.19.
const OF_CPUS: &[&str] = &["ksoftirqd", "ktimers", "ktimersoftd", "rcuc", "irq_work", "backlog_napi"];

/// A thread whose priority is not the usual one, or is in a wrong order.
struct OutOfOrder<'a> {
    thread: &'a Thread,
    words: String,
    severity: Severity,
}

fn judge(machine: &MachineView) -> Judged {
    let threads = visible_threads(machine)?;
    let mut found = out_of_order(threads, machine.cpus(), machine.facts().preempt == Preempt::Rt);
    if found.is_empty() {
        require_complete(threads)?;
        if !threads.kernel.iter().any(|thread| of(&thread.comm, machine.cpus())) {
            return Err(Judgement::unknown("/proc shows no such thread"));
        }
        return Ok(Judgement::pass("none above 1"));
    }
    let severity = found.iter().map(|one| one.severity).max().unwrap_or(Severity::Info);
    found.compact_sort_by_key(|one| std::cmp::Reverse(one.severity));
    let words = truncate_list(found.iter().map(|one| &one.words));
    let mut raised: Vec<&Thread> = found.iter().map(|one| one.thread).collect();
    raised.dedup_by_key(|thread| thread.tid);
    Ok(Judgement::fail(words).severity(severity).fix(usual(&raised)))
}

/// Threads out of order, each with its worst problem.
fn out_of_order<'a>(threads: &'a Threads, cpus: &CpuSet, rt: bool) -> Vec<OutOfOrder<'a>> {
    let same = |thread: &Thread, name: &str| {
        let cpu = thread.comm.split_once('/').map(|(_, cpu)| format!("{name}/{cpu}"));
        threads.kernel.iter().find(|other| Some(&other.comm) == cpu.as_ref())
    };
    let of_interrupts = threads.kernel.iter().filter(|thread| is_of_interrupt(&thread.comm));
    let raised = of_interrupts.map(|thread| thread.priority).filter(|&priority| priority > LOWEST);
    let floor = raised.min().unwrap_or(INTERRUPT);
    let on = |thread: &&Thread| thread.allowed.known().is_some_and(|allowed| !allowed.and(cpus).is_empty());
    let is_near =
        |thread: &Thread| thread.allowed.known().is_none_or(|allowed| !allowed.and(cpus).is_empty());
    let behind = |priority: u32| {
        let programs = threads.realtime.iter().filter(on).filter(|thread| thread.priority > 0);
        programs.filter(|thread| thread.priority <= priority).max_by_key(|thread| thread.priority)
    };
    let judged = |thread: &'a Thread| -> Option<OutOfOrder<'a>> {
        let (name, priority) = (&thread.comm, thread.priority);
        let finding = |words: String, severity| Some(OutOfOrder { thread, words, severity });
        let grace_periods = || threads.kernel.iter().find(|other| rt && runs_grace_periods(&other.comm));
        let waiting =
            ["rcuc", "ktimers"].iter().filter_map(|other| same(thread, other)).chain(grace_periods());
        let above =
            waiting.filter(|_| name.starts_with("ksoftirqd/")).find(|other| other.priority < priority);
        if let Some(other) = above {
            let words = format!("{name} {priority} above {} {}", other.comm, other.priority);
            return finding(words, Severity::High);
        }
        if is_of_interrupt(name) {
            let is_low = priority <= LOWEST && thread.policy != Some(RtPolicy::Deadline);
            let words = format!("{name} {priority}, the softirq and RCU threads {LOWEST}");
            return if rt && is_low && is_near(thread) { finding(words, Severity::Medium) } else { None };
        }
        let is_here = of(name, cpus) || is_rcu(name) && is_near(thread);
        // Grace periods concern all CPUs, wherever their thread runs.
        if !is_here && !runs_grace_periods(name) {
            return None;
        }
        if rt && name.starts_with("ktimers/") && thread.policy.is_none() {
            return finding(format!("{name} ordinary: timers wait behind any load"), Severity::Medium);
        }
        let is_needed = name.starts_with("rcuc/") || runs_grace_periods(name);
        if rt && is_needed && thread.policy.is_none() {
            return finding(format!("{name} ordinary: grace periods wait behind any load"), Severity::Medium);
        }
        if priority >= floor {
            return finding(format!("{name} {priority}, the interrupt threads {floor}"), Severity::Medium);
        }
        if !is_here {
            return None;
        }
        match behind(priority).filter(|_| priority > 1) {
            Some(program) => {
                let words = format!("{name} {priority} before {} {}", program.comm, program.priority);
                finding(words, Severity::Medium)
            }
            None if priority > 1 => finding(format!("{name} {priority}"), Severity::Info),
            None => None,
        }
    };
    threads.kernel.iter().filter_map(judged).collect()
}

/// Threads of RCU that run grace periods, and that boost.
fn runs_grace_periods(comm: &str) -> bool {
    matches!(comm, "rcu_preempt" | "rcu_sched") || comm.starts_with("rcub/")
}

/// True for a thread of RCU that serves all CPUs, including those of offloaded callbacks.
fn is_rcu(comm: &str) -> bool {
    comm.starts_with("rcu") && !comm.starts_with("rcuc/")
}

fn is_of_interrupt(comm: &str) -> bool {
    comm.starts_with("irq/")
}

/// Restores the priorities with which the kernel starts them.
fn usual(raised: &[&Thread]) -> Remedy {
    let first = |thread: &Thread| match &thread.comm {
        comm if comm.starts_with("ksoftirqd/") || comm.starts_with("backlog_napi/") => None,
        comm if is_of_interrupt(comm) => Some(INTERRUPT),
        _ => Some(LOWEST),
    };
    let of = |fifo: Option<u32>| {
        let them = || raised.iter().copied().filter(|thread| first(thread) == fifo);
        let threads: Vec<ThreadId> =
            them().map(|thread| ThreadId { tid: thread.tid, start: thread.start }).collect();
        let shown_as = truncate_list(them().map(|thread| thread.comm.clone()));
        (!threads.is_empty()).then_some(Change::Policy { threads, shown_as, fifo })
    };
    let usual = Remedy::of([of(None), of(Some(LOWEST)), of(Some(INTERRUPT))].into_iter().flatten());
    let note = "keep them below the real-time tasks if they have to be raised";
    if raised.iter().any(|thread| thread.comm.starts_with("rcuc/")) {
        usual.persist(Change::cmdline_add("rcutree.kthread_prio=1")).note(note)
    } else {
        usual.note(note)
    }
}

/// True for one of these threads on one of the CPUs.
fn of(comm: &str, cpus: &CpuSet) -> bool {
    let Some((name, cpu)) = comm.split_once('/') else { return false };
    OF_CPUS.contains(&name) && cpu.parse().is_ok_and(|cpu| cpus.contains(Cpu(cpu)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Machine, check};

    fn raised_thread(name: &str, priority: u32) -> String {
        let line = match priority {
            0 => thread!(42, "NAME", 69206016, 0, 0, "0-3"),
            _ => thread!(42, "NAME", 69206016, 77, 1, "0-3"),
        };
        line.replace("NAME", name).replace(" 77 1\n", &format!(" {priority} 1\n"))
    }

    #[test]
    fn the_order_among_each_other_counts() {
        let rt = "/proc/sys/kernel/version: #1 SMP PREEMPT_RT Debian\n/sys/kernel/realtime: 1\n";
        let rcuc = thread!(42, "rcuc/2", 69206016, 1, 1, "2");
        let softirqs = thread!(90001, "ksoftirqd/2", 69206016, 11, 1, "2");
        check(&KNOB, &format!("{rt}{rcuc}\n{softirqs}"), "fail high ksoftirqd/2 11 above rcuc/2 1");
        let timers = thread!(42, "ktimers/2", 69206016, 0, 0, "2");
        check(&KNOB, &format!("{rt}{timers}"), "fail medium ktimers/2 ordinary: timers wait behind any load");
        let grace = thread!(42, "rcu_preempt", 69206016, 99, 1, "0-3");
        check(&KNOB, &format!("{rt}{grace}"), "fail medium rcu_preempt 99, the interrupt threads 50");
        let elsewhere = grace.replace("0-3", "0-1");
        check(&KNOB, &format!("{rt}{elsewhere}"), "fail medium rcu_preempt 99, the interrupt threads 50");
        for (name, priority) in
            [("rcuog/0", 99), ("rcuop/2", 60), ("rcu_exp_gp_kthr", 99), ("rcu_tasks_kthre", 99)]
        {
            let line = raised_thread(name, priority);
            let verdict = format!("fail medium {name} {priority}, the interrupt threads 50");
            check(&KNOB, &format!("{rt}{line}"), &verdict);
        }
        for name in ["rcuc/2", "rcu_preempt", "rcub/1"] {
            let verdict = format!("fail medium {name} ordinary: grace periods wait behind any load");
            check(&KNOB, &format!("{rt}{}", raised_thread(name, 0)), &verdict);
        }
        let interrupt = thread!(43, "irq/24-eth0", 69206016, 0, 0, "0-3");
        let below = "fail medium irq/24-eth0 0, the softirq and RCU threads 1";
        check(&KNOB, &format!("{rt}{interrupt}"), below);
        for far in
            [thread!(43, "irq/24-eth0", 2097216, 0, 0, "0-1"), thread!(43, "rcuog/0", 69206016, 30, 1, "0-1")]
        {
            check(&KNOB, &format!("--cpus 2-3\n{rt}{far}"), "pass");
        }
        let elsewhere = thread!(90001, "ksoftirqd/0", 69206016, 50, 1, "0");
        let waiting = thread!(42, "rcu_preempt", 69206016, 1, 1, "0-3");
        check(&KNOB, &format!("{rt}{waiting}\n{elsewhere}"), "fail high ksoftirqd/0 50 above rcu_preempt 1");
        let program = thread!(77, "servo", 0, 20, 1, "2-3");
        let raised = thread!(42, "rcuc/2", 69206016, 30, 1, "2");
        check(&KNOB, &format!("{rt}{raised}\n{program}"), "fail medium rcuc/2 30 before servo 20");
    }

    #[test]
    fn irq_work_and_backlogs_of_packets_count() {
        let above = "fail medium irq_work/2 60, the interrupt threads 50";
        check(&KNOB, thread!(90001, "irq_work/2", 69206016, 60, 1, "2"), above);
        check(&KNOB, thread!(90001, "irq_work/2", 69206016, 1, 1, "2"), "pass none above 1");
        let program = thread!(77, "servo", 0, 20, 1, "2-3");
        let backlog = thread!(90001, "backlog_napi/2", 69206016, 30, 1, "2");
        let edits = format!("{backlog}\n{program}");
        check(&KNOB, &edits, "fail medium backlog_napi/2 30 before servo 20");
        let mut machine = Machine::base();
        machine.edit(&edits);
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("chrt -o"), "{fix}");
    }

    #[test]
    fn only_those_of_the_audited_cpus_count() {
        check(&KNOB, "", "pass none above 1");
        check(&KNOB, thread!(42, "ktimers/2", 69206016, 11, 1, "2"), "fail info ktimers/2 11");
        check(
            &KNOB,
            thread!(42, "ktimers/2", 69206016, 60, 1, "2"),
            "fail medium ktimers/2 60, the interrupt threads 50",
        );
        check(&KNOB, thread!(90001, "rcuc/0", 69206016, 60, 1, "0"), "pass");
        check(&KNOB, thread!(90001, "irq_work/0", 69206016, 60, 1, "0"), "pass");
        check(&KNOB, thread!(90001, "rcu_exp/2", 69206016, 60, 1, "0"), "pass");
        check(
            &KNOB,
            thread!(90001, "irq_work/2", 69206016, 60, 1, "2"),
            "fail medium irq_work/2 60, the interrupt threads 50",
        );
        check(&KNOB, "--cpus 0", "unknown /proc shows no such thread");
        check(&KNOB, "/proc/90001/stat: broken", "unknown");
    }
}
