//! CPUs for the remaining work: whether there are any, and the boot CPU is one of them.

use super::sources::{ISOLATION, PARAMETERS};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::intent::CpuSelection;
use crate::isolation::isolated_cpus;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use model::slice::SliceKind;
use model::units::Cpu;

pub static KNOB: Knob = Knob {
    id: "housekeeping-left",
    title: "CPUs for everything else",
    description: "The interrupts, timers, kernel threads and services that are kept off isolated CPUs need a \
                  CPU to run on. CPU 0, the boot CPU of most machines, should be one of them: irqaffinity= \
                  always includes it, and nohz_full= is documented to exclude it.",
    rationale: "work without another CPU to run on returns to the audited CPUs, and CPU 0 gets work that no \
                setting moves",
    detection: "The online CPUs without those isolated by isolcpus=, nohz_full= or control groups, and \
                without the audited CPUs. Only a measurement under load shows whether one CPU is enough for \
                the rest of the system.",
    side_effects: "One CPU fewer for real-time tasks.",
    wanted: "at least one CPU for everything else, including CPU 0",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "do not isolate CPU 0, and move the real-time tasks to another CPU",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "the CPUs for the rest of the machine are a choice that was made at boot",
    sources: &[
        Source { title: "kernel: CPU isolation, housekeeping", url: ISOLATION },
        Source { title: "kernel: command line, nohz_full=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Irq, SliceKind::Thread, SliceKind::Workqueue],
    facts: &[
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/nohz_full",
    ],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/isolated: 0-3",
        silent: "/sys/devices/system/cpu/isolated: 2-3
                /sys/devices/system/cpu/nohz_full:
                /sys/fs/cgroup/cpuset.cpus.isolated:",
        unknown: "/sys/devices/system/cpu/isolated refused
                  /sys/devices/system/cpu/nohz_full refused
                  /sys/fs/cgroup/cpuset.cpus.isolated refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let online = machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let apart = isolated_cpus(machine.survey);
    let all = apart.as_ref().is_some_and(|apart| online.without(apart).is_empty());
    if all && !online.is_empty() {
        return Ok(Judgement::fail(format!("all of {} set apart", cpu_list(online))).fix(Remedy::advice(
            AdviceReason::Choice,
            "leave at least CPU 0 out of isolcpus=, nohz_full= and partitions",
        )));
    }
    // The requested isolation counts, even if other isolation is not known.
    if machine.intent.chosen == CpuSelection::All {
        return Err(Judgement::not_applicable(
            "no CPU is isolated: name the audited CPUs with --cpus, if any",
        ));
    }
    machine.require_isolation()?;
    let left = machine.housekeeping_cpus()?.without(&apart.clone().unwrap_or_default());
    if left.is_empty() {
        return Ok(Judgement::fail(format!("none but {}", cpu_list(machine.cpus()))).fix(Remedy::advice(
            AdviceReason::Choice,
            "leave at least CPU 0 out of isolcpus=, nohz_full= and partitions",
        )));
    }
    if machine.cpus().contains(Cpu(0)) {
        return Ok(Judgement::fail(format!("{}, with CPU 0 among the audited CPUs", cpu_list(&left)))
            .severity(Severity::Low));
    }
    Ok(Judgement::pass(cpu_list(&left)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn something_is_left() {
        check(&KNOB, "", "pass CPUs 0-1");
        check(&KNOB, "/sys/devices/system/cpu/isolated: 0-3", "fail high all of CPUs 0-3 set apart");
        check(
            &KNOB,
            "/sys/devices/system/cpu/isolated: 0-1\n/sys/devices/system/cpu/nohz_full: 2-3",
            "fail high all of CPUs 0-3 set apart",
        );
        check(&KNOB, "--cpus 0-1", "fail high none but CPUs 0-1");
        check(
            &KNOB,
            "/sys/devices/system/cpu/isolated: 0,3",
            "fail low CPUs 1-2, with CPU 0 among the audited CPUs",
        );
        check(&KNOB, "/sys/devices/system/cpu/isolated:", "not-applicable");
        check(&KNOB, "--cpus 2\n/sys/devices/system/cpu/isolated refused", "pass CPUs 0-1,3");
    }
}
