//! The frequency limit: a fixed clock that is lower than it could be.

use std::collections::{BTreeMap, BTreeSet};

use super::per_cpu::{PerCpuSetting, mhz};
use super::sources::{CPUFREQ, INTEL_PSTATE, RT_CONFIG};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::group_by_value;
use facts::line::{parse_u64, parse_word};
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

pub const LIMIT: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq";
pub const TOP: &str = "/sys/devices/system/cpu/cpu#/cpufreq/cpuinfo_max_freq";
/// The clocks of acpi-cpufreq's table, boost apart.
pub const TABLE: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_available_frequencies";
pub const DRIVER: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver";
pub const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

pub static KNOB: Knob = Knob {
    id: "cpufreq-limit",
    title: "frequency limit",
    description: "The highest clock that a governor may choose, and the highest that the \
                  processor has. Power daemons lower the limit on battery or in a quiet profile, \
                  and forget it there.",
    rationale: "everything on the CPU takes longer in proportion, the kernel's own paths included",
    detection: "scaling_max_freq against cpuinfo_max_freq of each CPU that matters. With \
                intel_pstate and turbo off the second can still count turbo in, and a lower limit \
                says nothing; limits of firmware and heat are not in these files.",
    side_effects: "Power and heat; a clock that the cooling cannot sustain is throttled, which is \
                   worse than a low one.",
    wanted: "the highest clock that the machine sustains",
    fix: Remedy::default,
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "a low clock that never changes can be the better choice where heat is the limit: \
               `onbeat compare` two runs of an hour, one with each limit, on the warm machine",
    persistence: Persistence::Runtime,
    sets: LIMIT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_CPU_FREQ", url: RT_CONFIG },
        Source { title: "kernel: CPU performance scaling, policy interface in sysfs", url: CPUFREQ },
        Source { title: "kernel: intel_pstate, interpretation of policy attributes", url: INTEL_PSTATE },
    ],
    cures: &[SliceKind::Frequency, SliceKind::Own],
    after: &["cpufreq-governor"],
    reads: &[LIMIT, TOP, NO_TURBO, TABLE, DRIVER],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/intel_pstate/no_turbo: 0
                /sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq: 1200000
                /sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq: 3000000",
        silent: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq: 3000000
                 /sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq: 3000000
                 /sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq: 3000000
                 /sys/devices/system/cpu/cpu3/cpufreq/cpuinfo_max_freq: 3000000",
        unknown: "/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq refused",
    },
    ..Knob::DEFAULT
};

/// The highest clocks that a limit may name. With acpi-cpufreq the file counts boost in, and a
/// higher limit than the table's top is put back (drivers/cpufreq/acpi-cpufreq.c, freq_table.c).
fn tops(machine: &MachineView, cpus: &CpuSet) -> PerCpuSetting<u64> {
    let mut tops = PerCpuSetting::among(machine, cpus, TOP, parse_u64);
    let drivers = PerCpuSetting::among(machine, cpus, DRIVER, parse_word).known;
    let highest = |text: &str| {
        let rates = text.split_whitespace().map(parse_u64).collect::<Result<Vec<u64>, _>>();
        let none = || "expected frequencies, found none".to_owned();
        rates.and_then(|rates| rates.into_iter().max().ok_or_else(none))
    };
    let tables = PerCpuSetting::among(machine, cpus, TABLE, highest).known;
    for (cpu, top) in &mut tops.known {
        let by_table = drivers.get(cpu).is_some_and(|driver| driver == "acpi-cpufreq");
        *top = tables.get(cpu).copied().filter(|_| by_table).unwrap_or(*top);
    }
    tops
}

/// What raises the limit of each of these CPUs that has a lower one than its highest clock, and the
/// limit that each then has; none of a CPU whose limit is not known.
pub fn raised(machine: &MachineView, cpus: &CpuSet) -> (Vec<Change>, BTreeMap<Cpu, u64>) {
    let limits = PerCpuSetting::among(machine, cpus, LIMIT, parse_u64).known;
    let tops = tops(machine, cpus).known;
    // With turbo off the highest clock can still count turbo in.
    let turbo = !matches!(machine.number_if_present(NO_TURBO), Ok(Some(1..)));
    let above = |cpu: &Cpu, limit: u64| tops.get(cpu).copied().filter(|&top| turbo && limit < top);
    let mut low: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for (cpu, top) in limits.iter().filter_map(|(cpu, &limit)| Some((*cpu, above(cpu, limit)?))) {
        low.entry(top).or_default().0.insert(cpu);
    }
    let then = limits.iter().map(|(cpu, &limit)| (*cpu, above(cpu, limit).unwrap_or(limit))).collect();
    (low.into_iter().map(|(top, cpus)| Change::each_cpu(LIMIT, &cpus, top)).collect(), then)
}

fn judge(machine: &MachineView) -> Judged {
    let (limits, tops) = (PerCpuSetting::of(machine, LIMIT, parse_u64), tops(machine, machine.cpus()));
    if limits.is_absent() {
        return Err(match machine.is_virtual()? {
            true => Judgement::not_applicable("a guest does not set the clock, its host does"),
            false => {
                Judgement::unknown("no frequency driver took these CPUs: their highest clock is not known")
            }
        });
    }
    let low = limits.known.iter().filter_map(|(&cpu, &limit)| {
        let &top = tops.known.get(&cpu)?;
        (limit < top).then_some((limit, cpu, top))
    });
    // Lowest first.
    let low: BTreeSet<(u64, Cpu, u64)> = low.collect();
    if low.is_empty() {
        limits.all_known()?;
        tops.all_known()?;
        return Ok(Judgement::pass(group_by_value(
            limits.known.iter().map(|(&cpu, &limit)| (cpu, mhz(limit))),
        )));
    }
    if machine.number_if_present(NO_TURBO)?.is_some_and(|off| off != 0) {
        return Err(Judgement::not_applicable(
            "turbo is off, and the kernel does not tell the highest clock without it",
        ));
    }
    let (raised, _) = raised(machine, &low.iter().map(|&(_, cpu, _)| cpu).collect());
    let said = low.into_iter().map(|(limit, cpu, top)| (cpu, format!("{} of {}", mhz(limit), mhz(top))));
    Ok(Judgement::fail(group_by_value(said))
        .fix(Remedy::of(raised).note("if a power daemon set the limit, take it out of its profile")))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const LOW: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq: 1200000";

    #[test]
    fn a_limit_shows_unless_turbo_hides_it() {
        check(&KNOB, "", "pass 3000 MHz on CPU 2-3");
        check(
            &KNOB,
            LOW,
            "not-applicable turbo is off, and the kernel does not tell the highest clock without \
             it",
        );
        check(
            &KNOB,
            &format!("{LOW}\n/sys/devices/system/cpu/intel_pstate/no_turbo: 0"),
            "fail low 1200 MHz of 3000 MHz on CPU 3",
        );
        check(
            &KNOB,
            &format!("{LOW}\n/sys/devices/system/cpu/intel_pstate absent"),
            "fail low 1200 MHz of 3000 MHz on CPU 3",
        );
        check(&KNOB, &format!("{LOW}\n/sys/devices/system/cpu/intel_pstate/no_turbo refused"), "unknown");
    }

    #[test]
    fn boost_of_acpi_cpufreq_is_no_limit() {
        let boosted: String = (2..4)
            .map(|cpu| {
                let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
                format!(
                    "{at}/scaling_driver: acpi-cpufreq\n{at}/cpuinfo_max_freq: 3400000\n\
                     {at}/scaling_max_freq: 2250000\n{at}/scaling_available_frequencies: 2250000 1700000\n"
                )
            })
            .collect();
        check(&KNOB, &boosted, "pass 2250 MHz on CPU 2-3");
        let low = boosted.replace("scaling_max_freq: 2250000", "scaling_max_freq: 1700000");
        let with_turbo = format!("{low}/sys/devices/system/cpu/intel_pstate absent");
        check(&KNOB, &with_turbo, "fail low 1700 MHz of 2250 MHz on CPU 2-3");
    }

    #[test]
    fn a_pass_takes_both_files_of_each_cpu() {
        check(&KNOB, "/sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq absent", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq: <fast>", "unknown");
        check(
            &KNOB,
            "/sys/devices/system/cpu/cpu2/cpufreq absent\n/sys/devices/system/cpu/cpu3/cpufreq \
             absent",
            "unknown",
        );
    }
}
