//! Resume latency limit of each CPU, whose `0` means no limit.

use std::cmp::Reverse;

use super::idle_states::budget_us;
use super::per_cpu::PerCpuSetting;
use super::sources::{ABI, CPUIDLE};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_list, group_by_value};
use facts::power::parse_resume_latency;
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

const LIMIT: &str = "/sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us";

pub static KNOB: Knob = Knob {
    id: "resume-latency-qos",
    title: "resume latency limit",
    description: "The time that a CPU may take to leave its idle state, in microseconds: deeper states are \
                  not used. 0 means no limit, and n/a means that no latency is accepted.",
    rationale: "a 0 that was meant as no latency allows the deepest idle state",
    detection: "The limit of each CPU; it is judged only if some CPU has one, because 0 is also the kernel's \
                default. Limits of drivers, and /dev/cpu_dma_latency, are not in these files.",
    side_effects: "Power and heat. All programs share the file: the last write counts, and nothing restores \
                   it.",
    wanted: "a limit on each audited CPU; other CPUs need none",
    fix: Remedy::default,
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: LIMIT,
    sources: &[
        Source {
            title: "kernel: CPU idle time management, power management quality of service for CPUs",
            url: CPUIDLE,
        },
        Source { title: "kernel: sysfs ABI, /sys/devices/.../power/pm_qos_resume_latency_us", url: ABI },
    ],
    cures: &[SliceKind::IdleExit],
    reads: &[LIMIT],
    facts: &["/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us: n/a
                /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us: n/a
                /sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 0
                /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us: 0",
        silent: "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: n/a
                 /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us: n/a",
        unknown: "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us: 10
                  /sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let ours = PerCpuSetting::of(machine, LIMIT, parse_resume_latency);
    let others = PerCpuSetting::among(machine, &machine.housekeeping_cpus()?, LIMIT, parse_resume_latency);
    let free = ours.that(Option::is_none);
    let limited = ours.that(Option::is_some);
    if !free.is_empty() && (!limited.is_empty() || !others.that(Option::is_some).is_empty()) {
        let value = if limited.is_empty() {
            format!(
                "0, no limit, on {}, but a limit on {}",
                cpu_list(&free),
                cpu_list(&others.that(Option::is_some))
            )
        } else {
            format!("0, no limit, on {}, but a limit on {}", cpu_list(&free), cpu_list(&limited))
        };
        return Ok(Judgement::fail(value).fix(fix(machine, &free)));
    }
    let loose = ours.that(|limit| limit.is_some_and(|us| us > budget_us(machine)));
    if !loose.is_empty() {
        let mut worst_first: Vec<(u64, Cpu)> =
            loose.iter().filter_map(|cpu| Some(((*ours.known.get(&cpu)?)?, cpu))).collect();
        worst_first.compact_sort_by_key(|&(us, cpu)| (Reverse(us), cpu));
        let words = worst_first.into_iter().map(|(us, cpu)| (cpu, format!("{us} us")));
        return Ok(Judgement::fail(group_by_value(words))
            .severity(Severity::Low)
            .wanted(format!("at most {} us", budget_us(machine)))
            .fix(fix(machine, &loose)));
    }
    ours.all_known()?;
    if limited.is_empty() {
        others.all_known()?;
        return Err(Judgement::not_applicable(
            "no CPU has a limit: the idle states are judged by themselves",
        ));
    }
    let words = |limit: &Option<u64>| match limit {
        Some(0) | None => "n/a, no latency".to_owned(),
        Some(us) => format!("{us} us"),
    };
    Ok(Judgement::pass(group_by_value(ours.known.iter().map(|(&cpu, limit)| (cpu, words(limit))))))
}

fn fix(machine: &MachineView, cpus: &CpuSet) -> Remedy {
    let limit = Change::each_cpu(LIMIT, cpus, budget_us(machine));
    Remedy::from(limit).note("n/a instead of the number to forbid any latency")
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    /// Edits that set the limits of the CPUs.
    fn limits(of: [&str; 4]) -> String {
        let one = |(cpu, limit)| {
            format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us: {limit}")
        };
        of.iter().enumerate().map(one).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn zero_is_no_limit() {
        check(&KNOB, "", "pass 10 us on CPUs 2-3");
        check(&KNOB, &limits(["0", "0", "n/a", "5"]), "pass n/a, no latency on CPU 2; 5 us on CPU 3");
        check(
            &KNOB,
            &limits(["0", "0", "n/a", "0"]),
            "fail medium 0, no limit, on CPU 3, but a limit on CPU 2",
        );
        check(
            &KNOB,
            &limits(["n/a", "0", "0", "0"]),
            "fail medium 0, no limit, on CPUs 2-3, but a limit on CPU 0",
        );
        check(
            &KNOB,
            &limits(["0", "0", "0", "0"]),
            "not-applicable no CPU has a limit: the idle states are judged by themselves",
        );
    }

    #[test]
    fn a_limit_can_be_too_loose() {
        check(&KNOB, &limits(["0", "0", "10", "200"]), "fail low 200 us on CPU 3");
        check(
            &KNOB,
            &format!("{}\n--profile audio", limits(["0", "0", "10", "100"])),
            "pass 10 us on CPU 2; 100 us on CPU 3",
        );
    }

    #[test]
    fn what_is_not_there_is_no_limit_known() {
        let none =
            [0, 1, 2, 3].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/power absent")).join("\n");
        check(
            &KNOB,
            &none,
            "unknown /sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us is missing for CPUs 2-3",
        );
        check(&KNOB, &limits(["0", "0", "10", "-5"]), "unknown");
        check(
            &KNOB,
            &format!("{}\n/sys/devices/system/cpu/cpu0/power refused", limits(["0", "0", "0", "0"])),
            "unknown",
        );
    }
}
