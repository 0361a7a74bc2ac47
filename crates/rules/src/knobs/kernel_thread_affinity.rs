//! Kernel threads: whether those that can run on other CPUs do.

use super::sources::{ISOLATION, PER_CPU_KTHREADS};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{kept_off, names_allowed_on, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::threads::Thread;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "kernel-thread-affinity",
    title: "affinity of kernel threads",
    description: "Some kernel threads belong to a CPU and cannot be moved (ksoftirqd, ktimers, migration, \
                  cpuhp). Others, such as kswapd, kcompactd, rcu_preempt, jbd2 or kauditd, run wherever \
                  their affinity allows. The kernel keeps new ones off the CPUs of nohz_full= (up to 6.12), \
                  or off those of isolcpus=domain and of isolated partitions (from 7.0 on).",
    rationale: "such a thread takes time from the audited CPU, evicts its caches, and holds locks that tasks \
                there may wait for",
    detection: "The affinity of each kernel thread that can be moved. Interrupt threads follow their \
                interrupts (irq-affinity), rcuo threads are judged by rcu-offload-affinity, workers by the \
                masks of workqueues. On CPUs out of load balancing such a thread runs only if it is woken or \
                created there.",
    side_effects: "The other CPUs run them. Up to 6.12 new threads inherit the affinity of kthreadd: set it \
                   too, and check again after loading modules. From 7.0 on they do not, and each change of \
                   an isolated partition resets all of them to the CPUs outside of partitions and \
                   isolcpus=domain: create the partition first, and set the remaining threads after it.",
    wanted: "movable kernel threads are on the other CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "taskset -pc LIST PID with the other CPUs for each, including kthreadd (PID 2)",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: OS jitter due to per-CPU kthreads, introduction", url: PER_CPU_KTHREADS },
        Source { title: "kernel: CPU isolation, unbound work", url: ISOLATION },
    ],
    cures: &[SliceKind::Thread, SliceKind::Switch],
    after: &["cpu-isolation"],
    facts: &["/proc/PID/stat", "/proc/PID/status"],
    judge,
    examples: Examples {
        fires: concat!("--cpus 2-3\n", thread!(90001, "kcompactd0", 2097152, 0, 0, "0-3")),
        silent: concat!("--cpus 2-3\n/proc absent\n", thread!(90001, "kcompactd0", 2097152, 0, 0, "0-1")),
        unknown: "--cpus 2-3
                /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let threads = visible_threads(machine)?;
    let movable = |thread: &Thread| {
        let elsewhere = thread.comm.starts_with("irq/") || thread.comm.starts_with("rcuo");
        !thread.immovable && !elsewhere
    };
    let value = match names_allowed_on(threads, machine.cpus(), movable)? {
        names if names.is_empty() => {
            return Ok(Judgement::pass(format!("none on {}", cpu_list(machine.cpus()))));
        }
        names => format!("{names} allowed on {}", cpu_list(machine.cpus())),
    };
    let severity = if load_balancing::is_off(machine) { Severity::Low } else { Severity::Medium };
    let each = "each, including kthreadd (PID 2)";
    let fix = kept_off(threads, machine.cpus(), &machine.housekeeping_cpus()?, each, movable);
    Ok(Judgement::fail(value).severity(severity).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    const OPEN: &str = "--cpus 2-3\n/sys/devices/system/cpu/isolated:";

    #[test]
    fn movable_threads_are_named() {
        check(&KNOB, "", "pass none on CPUs 2-3");
        let wide = thread!(90001, "kcompactd0", 2097152, 0, 0, "0-3");
        let bound = thread!(90002, "jbd2/sda1-8", 2097152, 0, 0, "3");
        check(&KNOB, wide, "fail low kcompactd0 allowed on CPUs 2-3");
        check(
            &KNOB,
            &format!("{OPEN}\n{wide}\n{bound}"),
            "fail medium jbd2/sda1-8, kcompactd0 allowed on CPUs 2-3",
        );
        for other in [
            thread!(90001, "irq/9-acpi", 2097152, 50, 1, "2"),
            thread!(90001, "rcuop/2", 2097152, 0, 0, "0-3"),
            thread!(90001, "kworker/u8:1", 2097152, 0, 0, "0-3"),
            thread!(90001, "cpuhp/2", 69206016, 0, 0, "2"),
            thread!(90001, "bash", 0, 0, 0, "0-3"),
        ] {
            check(&KNOB, other, "pass");
        }
    }

    #[test]
    fn numbers_of_processes_are_left_out() {
        let threads = format!(
            "{}\n{}\n{}",
            thread!(90001, "kvm-pit/4711", 2097152, 0, 0, "2"),
            thread!(90002, "kvm-pit/4712", 2097152, 0, 0, "2"),
            thread!(90003, "vhost-4711", 2097152, 0, 0, "2")
        );
        check(&KNOB, &threads, "fail low kvm-pit, vhost allowed on CPUs 2-3");
    }

    #[test]
    fn hidden_threads_are_no_pass() {
        let wide = thread!(90001, "kcompactd0", 2097152, 0, 0, "0-3");
        check(&KNOB, "/proc/90001/stat: broken", "unknown");
        check(&KNOB, &format!("{wide}\n/proc/90002/stat: broken"), "fail low");
        check(&KNOB, &format!("{wide}\n/proc/90001/status refused"), "unknown");
        let mut none = String::new();
        for pid in [2, 17, 40, 41, 42, 43, 44, 45, 50, 51, 52, 53, 54, 70, 71] {
            none += &format!("/proc/{pid} absent\n");
        }
        check(&KNOB, &none, "unknown");
    }
}
