//! Affinity of the threads that handle offloaded RCU callbacks.

use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{kept_off, names_allowed_on, require_complete, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::threads::Thread;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rcu-offload-affinity",
    title: "affinity of RCU offload threads",
    description: "rcu_nocbs= and nohz_full= move RCU callbacks from the softirqs of their CPUs to threads, \
                  rcuog/N and rcuop/N, which run wherever their affinity allows. The user has to keep these \
                  threads off the offloaded CPUs; the kernel does it only for CPUs of nohz_full= (up to \
                  6.12), or of isolcpus=domain and isolated partitions (from 7.0 on).",
    rationale: "offloading helps only if the callbacks run on other CPUs: a thread on the same CPU runs them \
                there, hundreds in a row",
    detection: "The affinity of the threads whose names begin with rcuo. Which callbacks are \
                offloaded is not judged here.",
    side_effects: "The other CPUs run the callbacks, and need the time for it.",
    wanted: "RCU offload threads are on the other CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "taskset -pc LIST PID with the other CPUs for each thread that `pgrep '^rcuo'` finds",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sources: &[
        Source {
            title: "kernel: OS jitter due to per-CPU kthreads, rcuop/%d and rcuog/%d",
            url: PER_CPU_KTHREADS,
        },
        Source { title: "kernel: command line, rcu_nocbs=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Thread],
    after: &["cpu-isolation"],
    facts: &["/proc/PID/stat", "/proc/PID/status"],
    judge,
    examples: Examples {
        fires: concat!("--cpus 2-3\n", thread!(90001, "rcuop/9", 2097152, 0, 0, "0-3")),
        silent: concat!("--cpus 2-3\n/proc absent\n", thread!(90001, "rcuop/9", 2097152, 0, 0, "0-1")),
        unknown: "--cpus 2-3
                /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let threads = visible_threads(machine)?;
    let cpus = machine.cpus();
    let offloaded = |thread: &Thread| thread.comm.starts_with("rcuo");
    let names = names_allowed_on(threads, cpus, offloaded)?;
    if names.is_empty() {
        require_complete(threads)?;
        return if threads.kernel.iter().any(offloaded) {
            Ok(Judgement::pass(format!("none on {}", cpu_list(cpus))))
        } else {
            Err(Judgement::not_applicable("no RCU callbacks are offloaded"))
        };
    }
    // Without load balancing such a thread stays on its first CPU, which is hardly ever audited.
    let severity = if load_balancing::is_off(machine) { Severity::Medium } else { Severity::High };
    let each = "each that pgrep '^rcuo' finds";
    let fix = kept_off(threads, cpus, &machine.housekeeping_cpus()?, each, offloaded);
    Ok(Judgement::fail(format!("{names} allowed on {}", cpu_list(cpus))).severity(severity).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    #[test]
    fn all_of_them_belong_elsewhere() {
        check(&KNOB, "", "pass none on CPUs 2-3");
        let wide = thread!(45, "rcuog/2", 2097152, 0, 0, "0-3");
        check(&KNOB, wide, "fail medium rcuog/2 allowed on CPUs 2-3");
        check(
            &KNOB,
            &format!("--cpus 2-3\n/sys/devices/system/cpu/isolated:\n{wide}"),
            "fail high rcuog/2 allowed on CPUs 2-3",
        );
        check(
            &KNOB,
            "/proc/44 absent\n/proc/45 absent\n/proc/54 absent",
            "not-applicable no RCU callbacks are offloaded",
        );
        check(&KNOB, "/proc/45/status refused", "unknown");
    }
}
