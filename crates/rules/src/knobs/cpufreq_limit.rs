//! Frequency limit: a maximum clock below the highest one of the processor.

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
/// Clocks in acpi-cpufreq's table, without boost.
pub const TABLE: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_available_frequencies";
pub const DRIVER: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver";
pub const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

/// Limit of intel_pstate for all CPUs, which no other file shows in active mode.
const MAX_PERCENT: &str = "/sys/devices/system/cpu/intel_pstate/max_perf_pct";

pub static KNOB: Knob = Knob {
    id: "cpufreq-limit",
    title: "frequency limit",
    description: "The highest frequency that a governor may choose, compared with the highest of the \
                  processor. Power daemons lower the limit on battery or in a quiet profile, and may not \
                  raise it again.",
    rationale: "everything on the CPU takes proportionally longer, including the kernel's code",
    detection: "scaling_max_freq against cpuinfo_max_freq of each audited CPU. With acpi-cpufreq the second \
                includes boost: the highest of scaling_available_frequencies is used instead, without the \
                turbo state, which is 1 MHz above the highest frequency (2801000). With intel_pstate and \
                turbo off the second can still include turbo, so a lower limit is not conclusive; limits by \
                firmware and heat are not in these files.",
    side_effects: "Power and heat; a frequency that the cooling cannot sustain is throttled, which is worse \
                   than a low one.",
    wanted: "the highest frequency that the machine can sustain",
    fix: Remedy::default,
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "a constant low frequency can be the better choice if heat is the limit: `onbeat compare` two \
               runs of an hour, one with each limit, on the warm machine",
    persistence: Persistence::Runtime,
    sets: LIMIT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_CPU_FREQ", url: RT_CONFIG },
        Source { title: "kernel: CPU performance scaling, policy interface in sysfs", url: CPUFREQ },
        Source { title: "kernel: intel_pstate, interpretation of policy attributes", url: INTEL_PSTATE },
    ],
    cures: &[SliceKind::Frequency, SliceKind::Own],
    after: &["cpufreq-governor"],
    reads: &[LIMIT, TOP, NO_TURBO, TABLE, DRIVER, MAX_PERCENT],
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

/// Highest clocks that a limit may have, and the CPUs for which they are not known.
///
/// With acpi-cpufreq the file includes boost, and a limit above the table's top is reset
/// (`acpi_cpufreq_cpu_init()`, `cpufreq_frequency_table_cpuinfo()`).
fn tops(machine: &MachineView, cpus: &CpuSet) -> (PerCpuSetting<u64>, CpuSet) {
    let mut tops = PerCpuSetting::among(machine, cpus, TOP, parse_u64);
    let drivers = PerCpuSetting::among(machine, cpus, DRIVER, parse_word).known;
    let table = |text: &str| table_top(text).ok_or_else(|| "expected frequencies, found none".to_owned());
    let tables = PerCpuSetting::among(machine, cpus, TABLE, table).known;
    let mut unclear = CpuSet::default();
    for (cpu, top) in &mut tops.known {
        let driver = drivers.get(cpu).map(String::as_str);
        match tables.get(cpu) {
            _ if driver.is_some_and(|driver| driver != "acpi-cpufreq") => {}
            Some(&highest) if driver.is_some() => *top = highest,
            _ if *top % 100_000 == TURBO_STEP => *top -= TURBO_STEP,
            _ if driver.is_some() => drop(unclear.0.insert(*cpu)),
            _ => {}
        }
    }
    (tops, unclear)
}

/// Distance in kHz of turbo, one state of the firmware's table, from the highest clock without it
/// (drivers/cpufreq/intel_pstate.c, of `_PSS`): 2801000 and 2800000.
const TURBO_STEP: u64 = 1000;

/// Highest clock of a table, without turbo.
fn table_top(text: &str) -> Option<u64> {
    let mut rates = text.split_whitespace().map(parse_u64).collect::<Result<Vec<u64>, _>>().ok()?;
    rates.sort_unstable();
    match rates.as_slice() {
        [.., below, top] if top - below == TURBO_STEP => Some(*below),
        [.., top] => Some(*top),
        [] => None,
    }
}

/// Changes that raise the limits of these CPUs that are below their highest clocks, and the
/// resulting limits; none for a CPU whose limit is not known.
pub fn raised(machine: &MachineView, cpus: &CpuSet) -> (Vec<Change>, BTreeMap<Cpu, u64>) {
    let limits = PerCpuSetting::among(machine, cpus, LIMIT, parse_u64).known;
    let (tops, unclear) = tops(machine, cpus);
    // With turbo off the highest clock may still include turbo.
    let turbo = !matches!(machine.number_if_present(NO_TURBO), Ok(Some(1..)));
    let above = |cpu: &Cpu, limit: u64| {
        let top = tops.known.get(cpu).copied().filter(|_| !unclear.contains(*cpu));
        top.filter(|&top| turbo && limit < top)
    };
    let mut low: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for (cpu, top) in limits.iter().filter_map(|(cpu, &limit)| Some((*cpu, above(cpu, limit)?))) {
        low.entry(top).or_default().0.insert(cpu);
    }
    let then = limits.iter().map(|(cpu, &limit)| (*cpu, above(cpu, limit).unwrap_or(limit))).collect();
    (low.into_iter().map(|(top, cpus)| Change::each_cpu(LIMIT, &cpus, top)).collect(), then)
}

const TURBO_OFF: &str = "turbo is off, and the kernel does not show the highest frequency without it";

fn judge(machine: &MachineView) -> Judged {
    let limits = PerCpuSetting::of(machine, LIMIT, parse_u64);
    let (tops, unclear) = tops(machine, machine.cpus());
    if limits.is_absent() {
        return Err(if machine.is_virtual()? {
            Judgement::not_applicable("in a guest, the host sets the CPU frequency")
        } else {
            Judgement::unknown("no frequency driver handles these CPUs: their highest frequency is not known")
        });
    }
    let low = limits.known.iter().filter_map(|(&cpu, &limit)| {
        let &top = tops.known.get(&cpu)?;
        (limit < top).then_some((limit, cpu, top))
    });
    // Sorted by limit, the lowest first.
    let (doubtful, low): (BTreeSet<_>, BTreeSet<_>) = low.partition(|&(_, cpu, _)| unclear.contains(cpu));
    let own = PerCpuSetting::of(machine, DRIVER, parse_word).that(|driver| driver == "intel_pstate");
    let percent = if own.is_empty() { None } else { machine.number_if_present(MAX_PERCENT)? };
    let percent = percent.filter(|percent| *percent < 100).map(|percent| format!("max_perf_pct {percent}"));
    if let Some(percent) = percent.clone().filter(|_| low.is_empty()) {
        return match machine.number_if_present(NO_TURBO)? {
            Some(1..) => Err(Judgement::not_applicable(TURBO_OFF)),
            _ => Ok(Judgement::fail(percent).fix(Change::write(MAX_PERCENT, 100))),
        };
    }
    if low.is_empty() {
        if !doubtful.is_empty() {
            return Err(Judgement::unknown(
                "acpi-cpufreq includes boost, and its frequency table is not known",
            ));
        }
        limits.all_known()?;
        tops.all_known()?;
        return Ok(Judgement::pass(group_by_value(
            limits.known.iter().map(|(&cpu, &limit)| (cpu, mhz(limit))),
        )));
    }
    if machine.number_if_present(NO_TURBO)?.is_some_and(|off| off != 0) {
        return Err(Judgement::not_applicable(TURBO_OFF));
    }
    let cpus: CpuSet = low.iter().map(|&(_, cpu, _)| cpu).collect();
    let highest = PerCpuSetting::among(machine, &cpus, TOP, parse_u64).known;
    let has_turbo_state = low.iter().any(|(_, cpu, top)| highest.get(cpu) == Some(&(top + TURBO_STEP)));
    let (mut raised, _) = raised(machine, &cpus);
    raised.extend(percent.as_ref().map(|_| Change::write(MAX_PERCENT, 100)));
    let phrases = low.into_iter().map(|(limit, cpu, top)| (cpu, format!("{} of {}", mhz(limit), mhz(top))));
    let daemon = "if a power daemon set the limit, remove it from its profile";
    // The state that acpi-cpufreq has above it lets the processor choose a clock.
    let note = if has_turbo_state {
        format!("{daemon}; a limit 1000 kHz higher allows turbo")
    } else {
        daemon.to_owned()
    };
    let limits: Vec<String> = [group_by_value(phrases)].into_iter().chain(percent).collect();
    Ok(Judgement::fail(limits.join("; ")).fix(Remedy::of(raised).note(note)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const LOW: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq: 1200000";

    #[test]
    fn a_limit_shows_unless_turbo_hides_it() {
        check(&KNOB, "", "pass 3000 MHz on CPUs 2-3");
        check(
            &KNOB,
            LOW,
            "not-applicable turbo is off, and the kernel does not show the highest frequency without it",
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
        check(&KNOB, &boosted, "pass 2250 MHz on CPUs 2-3");
        let undecided = boosted.replace("scaling_available_frequencies: 2250000 1700000", "other: 1");
        check(&KNOB, &undecided, "unknown acpi-cpufreq includes boost, and its frequency table is not known");
        let low = boosted.replace("scaling_max_freq: 2250000", "scaling_max_freq: 1700000");
        let with_turbo = format!("{low}/sys/devices/system/cpu/intel_pstate absent");
        check(&KNOB, &with_turbo, "fail low 1700 MHz of 2250 MHz on CPUs 2-3");
    }

    #[test]
    fn the_turbo_state_is_no_clock_to_reach() {
        let of = |limit: u32, table: &str| -> String {
            let each = |cpu| {
                let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
                format!(
                    "{at}/scaling_driver: acpi-cpufreq\n{at}/cpuinfo_max_freq: 2801000\n\
                     {at}/scaling_max_freq: {limit}\n{at}/scaling_available_frequencies{table}\n"
                )
            };
            (2..4).map(each).collect::<String>() + "/sys/devices/system/cpu/intel_pstate absent"
        };
        for table in [": 2801000 2800000 1200000", " absent"] {
            check(&KNOB, &of(2_800_000, table), "pass 2800 MHz on CPUs 2-3");
            check(&KNOB, &of(2_801_000, table), "pass 2801 MHz on CPUs 2-3");
            check(&KNOB, &of(1_200_000, table), "fail low 1200 MHz of 2800 MHz on CPUs 2-3");
            let mut machine = Machine::base();
            machine.edit(&of(1_200_000, table));
            let fix = machine.finding(&KNOB).fix;
            assert!(
                fix.contains("echo 2800000 >") && fix.contains("a limit 1000 kHz higher allows turbo"),
                "{fix}"
            );
        }
    }

    #[test]
    fn a_limit_in_percent_shows_in_active_mode_alone() {
        let pstate = "/sys/devices/system/cpu/intel_pstate";
        let of = |driver: &str, percent: u8, no_turbo: u8| {
            let each = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver: {driver}\n");
            let drivers = [2, 3].map(each).concat();
            format!("{drivers}{pstate}/max_perf_pct: {percent}\n{pstate}/no_turbo: {no_turbo}")
        };
        check(&KNOB, &of("intel_pstate", 50, 0), "fail low max_perf_pct 50");
        check(&KNOB, &of("intel_pstate", 50, 1), &format!("not-applicable {}", super::TURBO_OFF));
        check(&KNOB, &of("intel_pstate", 100, 0), "pass");
        let mut machine = Machine::base();
        machine.edit(&format!("{}\n{LOW}", of("intel_pstate", 63, 0)));
        let finding = machine.finding(&KNOB);
        assert!(finding.value.ends_with("; max_perf_pct 63"), "{finding:?}");
        assert!(finding.fix.contains("scaling_max_freq, and echo 100 >"), "{finding:?}");
        check(&KNOB, &of("intel_cpufreq", 50, 0), "pass");
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
