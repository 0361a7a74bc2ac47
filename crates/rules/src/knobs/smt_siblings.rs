//! Simultaneous multithreading: other work on the audited cores.

use super::per_cpu::PerCpuSetting;
use super::sources::{ISOLATION, PARAMETERS, TOPOLOGY};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use facts::line::parse_cpus;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

const SIBLINGS: &str = "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list";
/// Switch that takes a CPU offline: read for its value before that.
const SWITCH: &str = "/sys/devices/system/cpu/cpu#/online";

pub static KNOB: Knob = Knob {
    id: "smt-siblings",
    title: "SMT siblings",
    description: "With SMT (Hyper-Threading) two or more CPUs of the kernel are one core: they share its \
                  pipeline, caches and idle state. A core is split if one of them is isolated for real-time \
                  work and another does other work.",
    rationale: "work on the sibling takes execution units and cache lines from the real-time task at any \
                time, and no priority prevents this",
    detection: "The siblings of each audited CPU, among the CPUs that are online. If all CPUs of a core are \
                isolated, their work is not known: leave all but one idle.",
    side_effects: "The sibling's share of the throughput is lost. nosmt disables the siblings of all cores, \
                   also those of the housekeeping CPUs; to avoid that, take single CPUs offline.",
    wanted: "no sibling is online, or all siblings of a core are isolated and all but one are idle",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: CPU isolation, checklist", url: ISOLATION },
        Source { title: "kernel: command line, nosmt", url: PARAMETERS },
        Source { title: "kernel: CPU topology in sysfs", url: TOPOLOGY },
    ],
    cures: &[SliceKind::Unexplained, SliceKind::IdleExit],
    // The settings of a CPU exist only while it is online.
    after: &[
        "cpu-isolation",
        "cpufreq-governor",
        "cpufreq-limit",
        "ext-server",
        "fair-server",
        "idle-states",
        "irq-affinity",
        "kernel-thread-affinity",
        "kernel-thread-priorities",
        "network-queues",
        "other-governors",
        "rcu-offload-affinity",
        "resume-latency-qos",
        "turbo",
        "watchdog",
        "workqueue-queues",
        "writeback-affinity",
    ],
    reads: &[SIBLINGS, SWITCH],
    facts: &[
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/cpuN/topology/core_cpus_list",
    ],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list: 1,3
                /sys/devices/system/cpu/cpu3/topology/thread_siblings_list: 1,3",
        silent: "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list: 2
                 /sys/devices/system/cpu/cpu3/topology/thread_siblings_list: 3",
        unknown: "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list: 2
                  /sys/devices/system/cpu/cpu3/topology/thread_siblings_list refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let housekeeping = machine.housekeeping_cpus()?;
    // If the lists of the CPUs contradict each other, none of them is used.
    if let contradicting @ Fact::Malformed(_) = &machine.facts().siblings {
        return Err(unknown_from("/sys/devices/system/cpu/cpuN/topology/core_cpus_list", contradicting));
    }
    let cores = PerCpuSetting::of(machine, SIBLINGS, parse_cpus);
    let split = cores.that(|core| !core.and(&housekeeping).is_empty());
    if !split.is_empty() {
        let partners = split.iter().filter_map(|cpu| cores.known.get(&cpu));
        let partners = partners.fold(CpuSet::default(), |all, core| all.or(&core.and(&housekeeping)));
        return Ok(Judgement::fail(format!(
            "split cores: {} with {}",
            cpu_list(&split),
            cpu_list(&partners)
        ))
        .fix(whole(machine, &cores, &partners)));
    }
    cores.all_known()?;
    let both = cores.that(|core| core.and(machine.cpus()).len() > 1);
    if both.is_empty() {
        return Ok(Judgement::pass(format!("no sibling of {} does other work", cpu_list(machine.cpus()))));
    }
    let spare: CpuSet = both.iter().filter(|cpu| !is_first(*cpu, &cores)).collect();
    Ok(Judgement::fail(format!("{} on cores that they share", cpu_list(&both)))
        .severity(Severity::Low)
        .because("two real-time tasks on one core slow each other down")
        .fix(
            offline(machine, &spare)
                .or(Remedy::advice(AdviceReason::Choice, format!("run nothing on {}", cpu_list(&spare)))),
        ))
}

/// Remedy of complete cores: their other CPUs offline, or isolated as well.
fn whole(machine: &MachineView, cores: &PerCpuSetting<CpuSet>, partners: &CpuSet) -> Remedy {
    let shared = cores.that(|core| core.and(machine.cpus()).len() > 1);
    let spare: CpuSet = shared.iter().filter(|cpu| !is_first_of(*cpu, cores, machine.cpus())).collect();
    let rest = machine.housekeeping_cpus().unwrap_or_default().without(partners);
    let apart = if rest.is_empty() {
        format!("isolate whole cores and leave one to the rest, {}", all_but_first(machine, cores))
    } else {
        format!("isolate {} as well and leave it idle", cpu_list(partners))
    };
    let ways = offline(machine, &partners.or(&spare))
        .or(Remedy::advice(AdviceReason::Choice, apart).with_persistence(Persistence::Boot));
    // nosmt keeps the first CPU of each core.
    let first = machine.cpus().iter().all(|cpu| is_first(cpu, cores));
    if first { ways.or(Change::cmdline_add("nosmt")) } else { ways }
}

/// The cores of the audited CPUs except that of the lowest CPU, as an example.
fn all_but_first(machine: &MachineView, cores: &PerCpuSetting<CpuSet>) -> String {
    let known = || cores.known.values();
    let all = known().fold(CpuSet::default(), |all, core| all.or(core));
    let first = all.iter().next().and_then(|first| known().find(|core| core.contains(first)).cloned());
    let left = all.without(&first.unwrap_or_default());
    if left.is_empty() {
        format!("which takes more cores than those of {}", cpu_list(machine.cpus()))
    } else {
        format!("such as {}", cpu_list(&left))
    }
}

/// True if a CPU is the first of those of its core that are among these.
fn is_first_of(cpu: Cpu, cores: &PerCpuSetting<CpuSet>, among: &CpuSet) -> bool {
    cores.known.get(&cpu).and_then(|core| core.and(among).iter().next()) == Some(cpu)
}

/// Takes CPUs offline, unless no others remain for other work, or one is the boot CPU, which has no
/// switch.
fn offline(machine: &MachineView, cpus: &CpuSet) -> Remedy {
    let housekeeping = machine.housekeeping_cpus().unwrap_or_default();
    if cpus.contains(Cpu(0))
        || cpus.is_empty()
        || (housekeeping.without(cpus).is_empty() && !housekeeping.is_empty())
    {
        return Remedy::default();
    }
    Change::each_cpu(SWITCH, cpus, 0).into()
}

/// True if a CPU is the first of its core.
fn is_first(cpu: Cpu, cores: &PerCpuSetting<CpuSet>) -> bool {
    cores.known.get(&cpu).and_then(|core| core.iter().next()) == Some(cpu)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    /// Gives the CPUs these siblings.
    fn cores(of: [&str; 4]) -> String {
        let one =
            |(cpu, core)| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list: {core}");
        of.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn half_a_core_is_the_worst() {
        check(&KNOB, "", "pass no sibling of CPUs 2-3 does other work");
        check(&KNOB, &cores(["0,2", "1,3", "0,2", "1,3"]), "fail high split cores: CPUs 2-3 with CPUs 0-1");
        check(&KNOB, &cores(["0", "1", "2-3", "2-3"]), "fail low CPUs 2-3 on cores that they share");
        check(
            &KNOB,
            &format!("{}\n--cpus 1-3", cores(["0", "1-2", "1-2", "3"])),
            "fail low CPUs 1-2 on cores that they share",
        );
    }

    #[test]
    fn the_rest_keeps_a_core() {
        let fix = |of| {
            let mut machine = Machine::base();
            machine.edit(&cores(of));
            machine.finding(&KNOB).fix
        };
        let all = fix(["0,2", "1,3", "0,2", "1,3"]);
        assert_eq!(all, "isolate whole cores and leave one to the rest, such as CPUs 1,3");
        let some = fix(["0", "1,3", "2", "1,3"]);
        assert!(some.contains("isolate CPU 1 as well"), "{some}");
    }

    #[test]
    fn one_split_core_decides_and_a_pass_takes_all() {
        let refused = "/sys/devices/system/cpu/cpu2/topology refused";
        check(
            &KNOB,
            &format!("{}\n{refused}", cores(["0", "1,3", "2", "1,3"])),
            "fail high split cores: CPU 3 with CPU 1",
        );
        check(&KNOB, refused, "unknown");
        check(&KNOB, "/sys/devices/system/cpu/cpu3/topology absent", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list: all", "unknown");
    }

    #[test]
    fn without_isolation_there_are_no_halves() {
        check(
            &KNOB,
            "--cpus 0-3",
            "not-applicable no CPU is isolated: name the audited CPUs with --cpus, if any",
        );
        check(
            &KNOB,
            "/sys/devices/system/cpu/isolated refused\n/sys/devices/system/cpu/nohz_full refused",
            "unknown",
        );
    }
}
