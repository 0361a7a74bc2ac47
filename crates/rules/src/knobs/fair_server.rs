//! The fair server: time that ordinary tasks may take from real-time ones.

use super::sources::{DEADLINE, RT_GROUP, SYSCTL_KERNEL};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::isolation::isolated_by_cgroup;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::{released_first, takes_all_servers};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use model::slice::SliceKind;
use model::units::{CpuSet, Nanos, named_cpus};

pub static KNOB: Knob = Knob {
    id: "fair-server",
    title: "fair server",
    description: "From 6.12 on each CPU has a deadline server that runs ordinary tasks ahead of real-time \
                  tasks when these leave no time: 50 ms in each second by default. Writing -1 to \
                  sched_rt_runtime_us does not stop it.",
    rationale: "if ordinary tasks starve because of a real-time task, the fair server takes up to its \
                runtime from that task in one piece, whatever its priority",
    detection: "The runtime and period of each audited CPU, in debugfs, which needs root. On slow cores or \
                at low frequencies the first kernels with the server let it run many times as long (fixed in \
                July 2025). It costs nothing as long as the real-time tasks of a CPU leave the ordinary ones \
                some time.",
    side_effects: "With 0, ordinary tasks and kernel threads of a CPU can starve forever because of a \
                   real-time task that never sleeps, and so can the threads that wait for them. 6.12 warns \
                   when it is written on a CPU that is already isolated, so set it before isolating the CPU; \
                   it can also refuse a smaller runtime with EBUSY unless sched_rt_runtime_us is -1, so set \
                   that first and restore it last. From 7.2 on neither applies.",
    wanted: "0 on CPUs with real-time tasks that hardly sleep",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Observed,
    disputed: "the server also gives time to kernel threads on a CPU with a busy real-time task: `onbeat \
               measure -D 1h` with and without it shows whether it ever ran",
    persistence: Persistence::Runtime,
    sets: RUNTIME,
    sources: &[
        Source { title: "kernel: real-time group scheduling, system wide settings", url: RT_GROUP },
        Source { title: "kernel: deadline scheduling, bandwidth management", url: DEADLINE },
        Source { title: "kernel: /proc/sys/kernel, sched_rt_runtime_us", url: SYSCTL_KERNEL },
    ],
    cures: &[SliceKind::FairServer],
    after: &["rt-throttling"],
    facts: &[
        "/sys/kernel/debug/sched/fair_server/cpuN/runtime",
        "/sys/kernel/debug/sched/fair_server/cpuN/period",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/isolated:
                /sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000",
        silent: "",
        unknown: "/sys/kernel/debug/sched/fair_server refused",
    },
    ..Knob::DEFAULT
};

const DIR: &str = "/sys/kernel/debug/sched/fair_server";
pub const RUNTIME: &str = "/sys/kernel/debug/sched/fair_server/cpu#/runtime";

/// Turns real-time throttling off: until then 6.12 refuses a smaller runtime with EBUSY
/// (`dl_server_apply_params()`).
pub fn unthrottled(machine: &MachineView) -> Remedy {
    match machine.facts().rt_runtime_us {
        _ if takes_all_servers(machine) => Remedy::default(),
        Fact::Known(-1) => Remedy::default(),
        _ => Change::write("/proc/sys/kernel/sched_rt_runtime_us", -1).into(),
    }
}

fn judge(machine: &MachineView) -> Judged {
    let servers = match &machine.facts().fair_servers {
        Fact::Known(servers) => servers,
        // The files of the kernel decide; if debugfs is closed or not mounted, its version.
        Fact::Absent | Fact::Refused(_) | Fact::NotCaptured if machine.series()? < (6, 12) => {
            return Err(Judgement::not_applicable("kernels before 6.12 do not have it"));
        }
        Fact::Absent => {
            // From 6.15 on there is no such option: the files are always built.
            let option =
                if machine.series()? < (6, 15) { ", on a kernel with CONFIG_SCHED_DEBUG" } else { "" };
            let mount = "mount -t debugfs none /sys/kernel/debug";
            return Err(Judgement::unknown(format!("{DIR} is missing: {mount}{option}")));
        }
        other => return Err(unknown_from(DIR, other)),
    };
    let of_ours = || servers.iter().filter(|server| machine.cpus().contains(server.cpu));
    let seen: CpuSet = of_ours().map(|server| server.cpu).collect();
    let unseen = machine.cpus().without(&seen);
    let on: CpuSet = of_ours().filter(|server| server.runtime_ns > 0).map(|server| server.cpu).collect();
    let Some(worst) = of_ours().max_by_key(|server| server.runtime_ns).filter(|worst| worst.runtime_ns > 0)
    else {
        if !unseen.is_empty() {
            return Err(Judgement::unknown(format!(
                "the runtime of {} in {DIR} could not be read",
                named_cpus(unseen)
            )));
        }
        return Ok(Judgement::pass(format!("0 on {}", cpu_list(machine.cpus()))));
    };
    let span = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).spaced();
    let value = format!("{} of {} on {}", span(worst.runtime_ns), span(worst.period_ns), cpu_list(&on));
    let loops = machine.has_profile(Profile::ControlLoop) || machine.has_profile(Profile::Audio);
    let severity = if loops { Severity::Medium } else { Severity::High };
    Ok(Judgement::fail(value).severity(severity).fix(switched_off(machine, &on)))
}

/// Turns the server off. 6.12 warns about a write for an isolated CPU (`task_non_contending()` of
/// kernel/sched/deadline.c): such CPUs are released first.
fn switched_off(machine: &MachineView, on: &CpuSet) -> Remedy {
    if takes_all_servers(machine) {
        return Change::each_cpu(RUNTIME, on, 0).into();
    }
    if let Some(released) = released_first(machine) {
        return released;
    }
    let grouped = isolated_by_cgroup(machine.survey).and(on);
    if !grouped.is_empty() {
        return Remedy::advice(
            AdviceReason::NotNow,
            format!(
                "`onbeat isolate undo`, then `onbeat isolate create {grouped} --yes` sets both in their order"
            ),
        );
    }
    unthrottled(machine).and(Change::each_cpu(RUNTIME, on, 0))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn isolated_cpus_are_given_back_first() {
        let fix_of = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{}\n{edits}", KNOB.examples.fires));
            format!("{:?}", machine.finding(&KNOB).fix)
        };
        assert!(fix_of("").contains("fair_server/cpu2/runtime"), "{}", fix_of(""));
        let booted = fix_of("/sys/devices/system/cpu/isolated: 2");
        assert!(booted.contains("isolate create 2-3 --yes"), "{booted}");
        let replaced = "replace isolcpus=managed_irq,domain,2-3 by isolcpus=managed_irq,2-3 on";
        assert!(booted.contains(replaced), "{booted}");
        let grouped = fix_of("/sys/fs/cgroup/cpuset.cpus.isolated: 2-3");
        assert!(grouped.contains("`onbeat isolate undo`"), "{grouped}");
        // The isolation of another CPU does not change this.
        let other = fix_of("/sys/devices/system/cpu/isolated: 3");
        assert!(other.contains("fair_server/cpu2/runtime"), "{other}");
    }

    #[test]
    fn later_kernels_take_it_on_isolated_cpus() {
        let mut machine = Machine::base();
        machine.edit(KNOB.examples.fires);
        machine.edit("/sys/devices/system/cpu/isolated: 2\n/proc/sys/kernel/osrelease: 7.3.4-rt-amd64");
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("echo 0 >/sys/kernel/debug/sched/fair_server/cpu2/"), "{fix}");
        assert!(!fix.contains("sched_rt_runtime_us"), "{fix}");
    }

    #[test]
    fn only_the_audited_cpus_count() {
        check(&KNOB, "", "pass 0 on CPUs 2-3");
        check(&KNOB, "--cpus 1-2", "fail medium 50 ms of 1 s on CPU 1");
        check(
            &KNOB,
            "/sys/kernel/debug/sched/fair_server/cpu3/runtime: 50000000\n--profile busy-poll",
            "fail high 50 ms of 1 s on CPU 3",
        );
        check(&KNOB, "/sys/kernel/debug/sched/fair_server/cpu3/runtime refused", "unknown");
        check(
            &KNOB,
            "/sys/kernel/debug/sched/fair_server absent\n/proc/sys/kernel/osrelease: \
             6.1.0-50-amd64",
            "not-applicable kernels before 6.12 do not have it",
        );
        check(&KNOB, "/sys/kernel/debug/sched/fair_server absent", "unknown");
        check(
            &KNOB,
            "/sys/kernel/debug/sched/fair_server absent\n/proc/sys/kernel/osrelease: 7.3.4",
            "unknown /sys/kernel/debug/sched/fair_server is missing: mount -t debugfs none \
             /sys/kernel/debug",
        );
    }
}
