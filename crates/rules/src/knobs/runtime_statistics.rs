//! Statistics that are kept at run time and were left on after debugging.

use super::sources::{DELAY_ACCOUNTING, SYSCTL_KERNEL};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "runtime-statistics",
    title: "scheduler and BPF statistics",
    description: "Scheduler statistics (sched_schedstats), delay accounting (task_delayacct) and statistics \
                  of BPF programs (bpf_stats_enabled) are off by default on current kernels; profilers, \
                  iotop or the command line switch them on.",
    rationale: "each task switch, or each run of a BPF program, reads the clock and updates counters",
    detection: "Their sysctls. BPF statistics that a running program enabled for itself are not seen, nor \
                delay accounting before 5.14, which has no sysctl and is on unless booted with nodelayacct.",
    side_effects: "perf sched, iotop and bpftool have no such data.",
    wanted: "all 0",
    fix: || Remedy::all(["sched_schedstats", "task_delayacct", "bpf_stats_enabled"].map(off)),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: SCHEDSTATS,
    sources: &[
        Source {
            title: "kernel: /proc/sys/kernel, sched_schedstats, task_delayacct, bpf_stats_enabled",
            url: SYSCTL_KERNEL,
        },
        Source { title: "kernel: delay accounting", url: DELAY_ACCOUNTING },
    ],
    cures: &[SliceKind::Switch],
    reads: &[SCHEDSTATS, DELAYACCT, BPF_STATS],
    facts: &["/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/sched_schedstats: 1",
        silent: "",
        unknown: "/proc/sys/kernel/sched_schedstats refused
                  /proc/sys/kernel/task_delayacct: 0
                  /proc/sys/kernel/bpf_stats_enabled: 0",
    },
    ..Knob::DEFAULT
};

const SCHEDSTATS: &str = "/proc/sys/kernel/sched_schedstats";
const DELAYACCT: &str = "/proc/sys/kernel/task_delayacct";
const BPF_STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

fn judge(machine: &MachineView) -> Judged {
    // The absence of a sysctl counts only if others are visible.
    machine.known(&machine.facts().release, "/proc/sys/kernel/osrelease")?;
    Judgement::all([one(machine, SCHEDSTATS), one(machine, DELAYACCT), one(machine, BPF_STATS)])
}

/// Disables one of them, and removes the word on the command line that enables it.
fn off(name: &str) -> Remedy {
    let sysctl = Remedy::from(Change::sysctl(&format!("kernel.{name}"), 0));
    match name {
        "sched_schedstats" => sysctl.persist(Change::cmdline_remove("schedstats")),
        "task_delayacct" => sysctl.persist(Change::cmdline_remove("delayacct")),
        _ => sysctl,
    }
}

fn one(machine: &MachineView, path: &'static str) -> Judged {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(value) = machine.number_if_present(path)? else {
        return Err(Judgement::not_applicable("the kernel keeps none of these statistics"));
    };
    let judged = Judgement::fail_if(value != 0, format!("{name} {value}"));
    Ok(judged.fix(off(name)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const NONE: &str = "/proc/sys/kernel/sched_schedstats absent\n/proc/sys/kernel/task_delayacct \
                        absent\n/proc/sys/kernel/bpf_stats_enabled absent";

    #[test]
    fn each_that_is_on_is_named() {
        check(&KNOB, "", "pass sched_schedstats 0; task_delayacct 0; bpf_stats_enabled 0");
        check(
            &KNOB,
            "/proc/sys/kernel/sched_schedstats: 1\n/proc/sys/kernel/bpf_stats_enabled: 1",
            "fail low sched_schedstats 1; bpf_stats_enabled 1",
        );
        check(
            &KNOB,
            "/proc/sys/kernel/sched_schedstats refused\n/proc/sys/kernel/task_delayacct: 1",
            "fail low task_delayacct 1",
        );
        check(
            &KNOB,
            "/proc/sys/kernel/task_delayacct absent",
            "pass sched_schedstats 0; bpf_stats_enabled 0",
        );
    }

    #[test]
    fn a_kernel_without_them_is_distinguished_from_a_tree_without_them() {
        check(&KNOB, NONE, "not-applicable the kernel keeps none of these statistics");
        check(&KNOB, &format!("{NONE}\n/proc/sys/kernel/osrelease absent"), "unknown");
    }
}
