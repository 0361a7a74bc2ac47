//! Kinds of cores: whether the audited CPUs are all of one kind.

use super::per_cpu::PerCpuSetting;
use super::sources::{CAPACITY, TOPOLOGY};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::group_by_value;
use facts::line::parse_u64;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

const HYBRID: [(&str, &str); 3] = [
    ("P cores", "/sys/devices/cpu_core/cpus"),
    ("E cores", "/sys/devices/cpu_atom/cpus"),
    ("LP-E cores", "/sys/devices/cpu_lowpower/cpus"),
];
const CAPACITIES: &str = "/sys/devices/system/cpu/cpu#/cpu_capacity";

pub static KNOB: Knob = Knob {
    id: "core-types",
    title: "kinds of cores",
    description: "On hybrid processors (P and E cores, big.LITTLE) the CPUs differ in speed, \
                  caches and idle states.",
    rationale: "the same task takes a different time on each kind of core, so a worst case measured on one \
                kind does not apply to another",
    detection: "The CPUs of each kind on hybrid x86, and elsewhere the capacity of each audited CPU, which \
                includes its highest clock. If the device tree does not give capacities, all can be equal; \
                some LP-E cores count as E cores.",
    side_effects: "Fewer CPUs to choose from. A slower kind can have less jitter, with a cluster and an L2 \
                   cache to itself: measure on the kind that is used.",
    wanted: "CPUs of one kind",
    fix: || Remedy::advice(AdviceReason::Machine, "choose CPUs of one kind, and isolate them"),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::MACHINE,
    sources: &[
        Source { title: "kernel: capacity aware scheduling, CPU capacity", url: CAPACITY },
        Source { title: "kernel: CPU topology in sysfs", url: TOPOLOGY },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[HYBRID[0].1, HYBRID[1].1, HYBRID[2].1, CAPACITIES],
    facts: &["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/isolated", "/proc/sys/kernel/arch"],
    judge,
    examples: Examples {
        fires: "/sys/devices/cpu_core/cpus: 0-2
                /sys/devices/cpu_atom/cpus: 3",
        silent: "/sys/devices/cpu_core/cpus: 2-3
                 /sys/devices/cpu_atom/cpus: 0-1",
        unknown: "/sys/devices/cpu_core/cpus: 2-3
                  /sys/devices/cpu_atom/cpus refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let mut kinds: Vec<(&str, CpuSet)> = Vec::new();
    let mut untold = None;
    for (kind, path) in HYBRID {
        match machine.cpu_list_if_present(path) {
            Ok(cpus) => kinds.extend(cpus.map(|cpus| (kind, cpus))),
            Err(why) => drop(untold.get_or_insert(why)),
        }
    }
    if kinds.is_empty() && untold.is_none() {
        return by_capacity(machine);
    }
    let kind_of = |cpu: Cpu| kinds.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(kind, _)| *kind);
    let types: Vec<(Cpu, String)> =
        machine.cpus().iter().filter_map(|cpu| Some((cpu, kind_of(cpu)?.to_owned()))).collect();
    if types.iter().any(|(_, kind)| *kind != types[0].1) {
        return Ok(Judgement::fail(group_by_value(types)));
    }
    match untold {
        Some(why) => Err(why),
        None if types.len() < machine.cpus().len() => {
            Err(Judgement::unknown("some of the audited CPUs are not listed in /sys/devices/cpu_*/cpus"))
        }
        None => Ok(Judgement::pass(group_by_value(types))),
    }
}

/// Judges machines other than hybrid x86 by the capacity, if firmware or device tree define one.
fn by_capacity(machine: &MachineView) -> Judged {
    let capacities = PerCpuSetting::of(machine, CAPACITIES, parse_u64);
    if capacities.is_absent() {
        // Hybrid x86 shows its kinds, from 5.13 on; elsewhere a missing file does not show that all
        // are equal.
        machine.require_x86().map_err(|_| {
            Judgement::unknown(
                "/sys/devices/system/cpu/cpuN/cpu_capacity is missing: the kinds of cores are not known",
            )
        })?;
        return Err(Judgement::not_applicable("this processor shows no kinds of cores"));
    }
    let by_value = || {
        group_by_value(capacities.known.iter().map(|(&cpu, capacity)| (cpu, format!("capacity {capacity}"))))
    };
    let mut values = capacities.known.values();
    let first = values.next();
    if values.any(|value| Some(value) != first) {
        return Ok(Judgement::fail(by_value()));
    }
    capacities.all_known()?;
    Ok(Judgement::pass(by_value()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn kinds_of_hybrid_processors() {
        let cores = |p, e| format!("/sys/devices/cpu_core/cpus: {p}\n/sys/devices/cpu_atom/cpus: {e}");
        check(&KNOB, &cores("0-2", "3"), "fail medium P cores on CPU 2; E cores on CPU 3");
        check(&KNOB, &cores("0-1", "2-3"), "pass E cores on CPUs 2-3");
        check(&KNOB, &cores("0-1", "2"), "unknown");
        check(
            &KNOB,
            &format!("{}\n/sys/devices/cpu_lowpower/cpus refused", cores("0-2", "3")),
            "fail medium P cores on CPU 2; E cores on CPU 3",
        );
        check(&KNOB, "", "not-applicable this processor shows no kinds of cores");
        check(
            &KNOB,
            "--cpus 0-3",
            "not-applicable no CPU is isolated: name the audited CPUs with --cpus, if any",
        );
    }

    #[test]
    fn capacities_elsewhere() {
        let arm = |two, three| {
            format!(
                "/proc/sys/kernel/arch: aarch64\n/sys/devices/system/cpu/cpu2/cpu_capacity: \
                 {two}\n/sys/devices/system/cpu/cpu3/cpu_capacity: {three}"
            )
        };
        check(&KNOB, &arm("1024", "1024"), "pass capacity 1024 on CPUs 2-3");
        check(&KNOB, &arm("1024", "446"), "fail medium capacity 1024 on CPU 2; capacity 446 on CPU 3");
        check(&KNOB, &arm("1024", "big"), "unknown");
        check(
            &KNOB,
            "/proc/sys/kernel/arch: aarch64",
            "unknown /sys/devices/system/cpu/cpuN/cpu_capacity is missing: the kinds of cores are not known",
        );
    }
}
