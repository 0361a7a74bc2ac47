//! The frequency governor: whether the clock changes under a real-time task.

use std::cmp::Reverse;

use super::cpufreq_limit::{NO_TURBO, TABLE, TOP};
use super::other_governors::{AVAILABLE, one_frequency};
use super::per_cpu::{PerCpuSetting, mhz};
use super::sources::{CPUFREQ, INTEL_PSTATE, RT_CONFIG, UCLAMP};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::releases::outside_release;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::group_by_value;
use facts::Fact;
use facts::kconfig::{Kconfig, OptionValue};
use facts::line::{parse_u64, parse_word, parse_words};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor";
const DRIVER: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver";
const MIN: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq";
const MAX: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq";
/// Lowest and highest clock of intel_pstate for all CPUs, in percent of the highest one.
const PERCENT: [&str; 2] = [
    "/sys/devices/system/cpu/intel_pstate/min_perf_pct",
    "/sys/devices/system/cpu/intel_pstate/max_perf_pct",
];
/// Switch of cppc_cpufreq (from 6.17 on) by which the platform chooses the clock within the range.
const AUTO: &str = "/sys/devices/system/cpu/cpu#/cpufreq/auto_select";
const RT_CLAMP: &str = "/proc/sys/kernel/sched_util_clamp_min_rt_default";

pub static KNOB: Knob = Knob {
    id: "cpufreq-governor",
    title: "frequency governor",
    description: "The governor chooses the frequency of a CPU. Generic governors either keep it constant \
                  (performance at the top of the allowed range, powersave at the bottom, userspace at the \
                  value that was written) or follow the load (schedutil, ondemand, conservative). \
                  intel_pstate and amd-pstate in active mode have two algorithms with the same names, of \
                  which only performance keeps the frequency. With auto_select of cppc_cpufreq the platform \
                  chooses the frequency, regardless of the governor.",
    rationale: "work after a pause starts at a low frequency and takes longer until the frequency has risen, \
                up to milliseconds later; the change itself takes time as well",
    detection: "Governor, driver and range of each audited CPU; a range of one frequency is constant with \
                any governor. These are requests: firmware, heat and power limits can still change the \
                frequency. Intel's energy preference and bias are not read, because reading them interrupts \
                the CPU.",
    side_effects: "Power and heat. Power daemons (tuned, power-profiles-daemon, TLP, thermald) overwrite it. \
                   In active mode performance also sets the energy preference of the CPU, and other \
                   preferences are then refused with EBUSY.",
    wanted: "performance, or any other constant frequency",
    fix: Remedy::default,
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: GOVERNOR,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CPU frequency governors", url: RT_CONFIG },
        Source { title: "kernel: CPU performance scaling, generic scaling governors", url: CPUFREQ },
        Source { title: "kernel: intel_pstate, operation modes", url: INTEL_PSTATE },
        Source { title: "kernel: utilization clamping, schedutil response time issues", url: UCLAMP },
    ],
    cures: &[SliceKind::Frequency, SliceKind::Own],
    reads: &[
        GOVERNOR, DRIVER, MIN, MAX, AUTO, RT_CLAMP, PERCENT[0], PERCENT[1], AVAILABLE, TOP, NO_TURBO, TABLE,
    ],
    facts: &["/boot/config-RELEASE", "/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: acpi-cpufreq
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: ondemand
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq: 800000
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq: 3000000",
        silent: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: acpi-cpufreq
                 /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: performance
                 /sys/devices/system/cpu/cpu3/cpufreq/scaling_driver: acpi-cpufreq
                 /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor: performance",
        unknown: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor: performance
                  /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor refused",
    },
    ..Knob::DEFAULT
};

/// State of one CPU's clock.
enum Clock {
    Fixed(String),
    Moves(String, Severity),
    Unclear(Judgement),
}

struct Read {
    driver: PerCpuSetting<String>,
    min: PerCpuSetting<u64>,
    max: PerCpuSetting<u64>,
    auto: PerCpuSetting<String>,
    /// True if schedutil runs real-time tasks at the highest clock.
    rt_at_top: bool,
    /// True if intel_pstate's limits leave a single frequency
    /// (`intel_pstate_update_perf_limits()`).
    one_percent: bool,
}

const DEFAULT_WORD: &str = "cpufreq.default_governor";

/// Judges a kernel's initial governor (`cpufreq_init_policy()` of drivers/cpufreq/cpufreq.c);
/// drivers in active mode adopt performance from it, but none that follows the load.
fn started_with(machine: &MachineView) -> Judged {
    let config = machine.kconfig()?;
    if !config.is_yes("CPU_FREQ") {
        return Err(without(machine));
    }
    // A governor that is not built is replaced by the default (`cpufreq_init_policy()`).
    let is_built =
        |name: &&str| config.get(&format!("CPU_FREQ_GOV_{}", name.to_uppercase())) != OptionValue::No;
    // Older kernels do not know the word.
    let is_known = matches!(outside_release(DEFAULT_WORD, || machine.series()), Ok(None));
    let named = machine.cmdline_or_built_in()?.value(DEFAULT_WORD).filter(|_| is_known).filter(is_built);
    let built = ["performance", "schedutil", "ondemand", "conservative"]
        .into_iter()
        .find(|name| config.is_yes(&format!("CPU_FREQ_DEFAULT_GOV_{}", name.to_uppercase())));
    match named.or(built) {
        Some("performance") => Ok(Judgement::pass("performance by default")),
        Some(name @ ("schedutil" | "ondemand" | "conservative")) => {
            let severity = if name == "schedutil" { Severity::Medium } else { Severity::High };
            let fix = match named {
                Some(name) => by_word(machine, config, name),
                None => Change::kconfig("CPU_FREQ_DEFAULT_GOV_PERFORMANCE", "y").into(),
            };
            Ok(Judgement::fail(format!("{name} by default")).severity(severity).fix(fix))
        }
        _ => {
            Err(Judgement::unknown("whether its default governor keeps the frequency depends on the driver"))
        }
    }
}

/// Sets the word, which overrides the kernel's default, in place of one that names another
/// governor.
fn by_word(machine: &MachineView, config: &Kconfig, name: &str) -> Remedy {
    let word = format!("{DEFAULT_WORD}=performance");
    let change = if machine.facts().cmdline == Fact::NotRunning {
        let advice = format!("replace {DEFAULT_WORD}={name} by {word} in CONFIG_CMDLINE");
        Change::advice(AdviceReason::Kernel, advice)
    } else {
        Change::cmdline_add(word)
    };
    match config.get("CPU_FREQ_GOV_PERFORMANCE") {
        OptionValue::No => Remedy::of([Change::kconfig("CPU_FREQ_GOV_PERFORMANCE", "y"), change]),
        _ => change.into(),
    }
}

fn judge(machine: &MachineView) -> Judged {
    if machine.survey.is_stopped {
        return started_with(machine);
    }
    let governors = PerCpuSetting::of(machine, GOVERNOR, parse_word);
    if governors.is_absent() {
        return Err(without(machine));
    }
    // Without the file (no UCLAMP_TASK) real-time tasks have the highest clock as well.
    let clamp = machine.number_if_present(RT_CLAMP);
    let read = Read {
        driver: PerCpuSetting::of(machine, DRIVER, parse_word),
        min: PerCpuSetting::of(machine, MIN, parse_u64),
        max: PerCpuSetting::of(machine, MAX, parse_u64),
        auto: PerCpuSetting::of(machine, AUTO, parse_word),
        rt_at_top: matches!(clamp, Ok(None | Some(1024))),
        one_percent: match PERCENT.map(|path| machine.number_if_present(path)) {
            [Ok(Some(min)), Ok(Some(max))] => min >= max,
            _ => false,
        },
    };
    let (mut fixed, mut moving, mut worst, mut unclear) = (Vec::new(), Vec::new(), Severity::Info, None);
    for (&cpu, governor) in &governors.known {
        match clock(&read, cpu, governor) {
            Clock::Fixed(words) => fixed.push((cpu, words)),
            Clock::Moves(words, severity) => {
                worst = worst.max(severity);
                moving.push((severity, cpu, words));
            }
            Clock::Unclear(why) => drop(unclear.get_or_insert(why)),
        }
    }
    if !moving.is_empty() {
        moving.compact_sort_by_key(|&(severity, cpu, _)| (Reverse(severity), cpu));
        let cpus: CpuSet = moving.iter().map(|&(_, cpu, _)| cpu).collect();
        let phrases = moving.into_iter().map(|(_, cpu, words)| (cpu, words));
        let judged = Judgement::fail(group_by_value(phrases)).severity(worst);
        let by_platform = read.auto.that(|word| word == "1").and(&cpus);
        // With the governor alone the platform would go on choosing.
        let held = |governor: &String| matches!(governor.as_str(), "performance" | "powersave" | "userspace");
        let cpus = cpus.without(&by_platform.and(&governors.that(held)));
        let stop = Change::each_cpu(AUTO, &by_platform, "0");
        if cpus.is_empty() {
            return Ok(judged.fix(stop));
        }
        if !has_performance(machine, &cpus) {
            return Ok(judged.fix(one_frequency(machine, &cpus)));
        }
        let performance = Change::each_cpu(GOVERNOR, &cpus, "performance");
        let now = if by_platform.is_empty() { vec![performance] } else { vec![performance, stop] };
        return Ok(
            judged.fix(Remedy::of(now).persist(Change::cmdline_add("cpufreq.default_governor=performance")))
        );
    }
    governors.all_known()?;
    if !read.auto.is_absent() {
        read.auto.all_known()?;
    }
    // The file of a CPU and that of its policy have the same content.
    let names: Vec<String> =
        machine.each(GOVERNOR, parse_word)?.into_iter().map(|(_, governor)| governor).collect();
    let policies = machine.facts().governors.known();
    if policies.is_some_and(|policies| policies.iter().any(|governor| !names.contains(governor))) {
        return Err(Judgement::unknown(
            "a policy in /sys/devices/system/cpu/cpufreq has a governor that none of its CPUs shows",
        ));
    }
    match unclear {
        Some(why) => Err(why),
        None => Ok(Judgement::pass(group_by_value(fixed))),
    }
}

/// False if one of these CPUs does not offer the governor, and no module can provide it
/// (`store_scaling_governor()` then returns EINVAL).
fn has_performance(machine: &MachineView, cpus: &CpuSet) -> bool {
    let offered = PerCpuSetting::among(machine, cpus, AVAILABLE, parse_words);
    let lacks = |names: &Vec<String>| !names.iter().any(|name| name == "performance");
    let config = machine.facts().kconfig.known();
    let is_module =
        config.is_some_and(|config| config.get("CPU_FREQ_GOV_PERFORMANCE") == OptionValue::Module);
    is_module || !offered.known.values().any(lacks)
}

fn clock(read: &Read, cpu: Cpu, governor: &str) -> Clock {
    if let (Some(min), Some(max)) = (read.min.known.get(&cpu), read.max.known.get(&cpu)) {
        if min == max && *max > 0 {
            return Clock::Fixed(format!("fixed at {}", mhz(*max)));
        }
    }
    // The registers then hold the range alone (cppc_cpufreq_get_perf_limits()).
    if read.auto.known.get(&cpu).is_some_and(|word| word == "1") {
        return Clock::Moves("auto_select of the platform".to_owned(), Severity::High);
    }
    let driver = read.driver.known.get(&cpu).map(String::as_str);
    // The first versions of amd-pstate wrote its name with underscores.
    let active =
        driver.map(|name| matches!(name.replace('_', "-").as_str(), "intel-pstate" | "amd-pstate-epp"));
    match (governor, active) {
        ("performance" | "userspace", _) => Clock::Fixed(governor.to_owned()),
        ("powersave", Some(false)) => Clock::Fixed("powersave (lowest frequency)".to_owned()),
        ("powersave", Some(true)) if read.one_percent && driver == Some("intel_pstate") => {
            Clock::Fixed("fixed by min_perf_pct".to_owned())
        }
        ("powersave", Some(true)) => {
            Clock::Moves(format!("powersave of {}", driver.unwrap_or_default()), Severity::High)
        }
        ("schedutil", _) if read.rt_at_top => Clock::Moves(governor.to_owned(), Severity::Medium),
        ("schedutil" | "ondemand" | "conservative", _) => Clock::Moves(governor.to_owned(), Severity::High),
        ("powersave", None) => Clock::Unclear(Judgement::unknown(format!(
            "powersave keeps the frequency of CPU {cpu} only with some drivers, and its driver could not be \
             read"
        ))),
        (other, _) => {
            let name: String = other.chars().take(40).collect();
            Clock::Unclear(Judgement::unknown(format!(
                "it is not known whether the governor {name} keeps the frequency"
            )))
        }
    }
}

/// Judgement if no audited CPU has a governor.
fn without(machine: &MachineView) -> Judgement {
    match (machine.is_virtual(), machine.kconfig()) {
        (Err(untold), _) => untold,
        (Ok(true), _) => Judgement::not_applicable("in a guest, the host sets the CPU frequency"),
        (_, Ok(config)) if !config.is_yes("CPU_FREQ") => Judgement::unknown(
            "this kernel has no CONFIG_CPU_FREQ: the firmware sets the frequency, which may be low or \
             change",
        ),
        _ => Judgement::unknown(
            "no frequency driver handles these CPUs: the firmware sets the frequency; check the firmware \
             setup",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    /// Gives CPU 2 and 3 this driver, governor and range.
    fn set(driver: &str, governor: &str, min: &str, max: &str) -> String {
        [2, 3]
            .map(|cpu| {
                let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling");
                format!(
                    "{dir}_driver: {driver}\n{dir}_governor: {governor}\n{dir}_min_freq: {min}\n\
                     {dir}_max_freq: {max}"
                )
            })
            .join("\n")
    }

    #[test]
    fn the_meaning_of_a_name_depends_on_the_driver() {
        let check =
            |driver, governor, expected| check(&KNOB, &set(driver, governor, "800000", "3000000"), expected);
        check("intel_pstate", "performance", "pass performance on CPUs 2-3");
        check("intel_pstate", "powersave", "fail high powersave of intel_pstate on CPUs 2-3");
        check("amd_pstate_epp", "powersave", "fail high powersave of amd_pstate_epp on CPUs 2-3");
        check("amd-pstate", "powersave", "pass powersave (lowest frequency) on CPUs 2-3");
        check("intel_cpufreq", "schedutil", "fail medium schedutil on CPUs 2-3");
        check("cpufreq-dt", "ondemand", "fail high ondemand on CPUs 2-3");
        check("cpufreq-dt", "userspace", "pass userspace on CPUs 2-3");
        check(
            "cpufreq-dt",
            "interactive",
            "unknown it is not known whether the governor interactive keeps the frequency",
        );
    }

    #[test]
    fn one_clock_in_percent_is_fixed() {
        let of = |low: u8| {
            let percent = format!("{}: {low}\n{}: 100", super::PERCENT[0], super::PERCENT[1]);
            format!("{}\n{percent}", set("intel_pstate", "powersave", "800000", "3000000"))
        };
        check(&KNOB, &of(100), "pass fixed by min_perf_pct on CPUs 2-3");
        check(&KNOB, &of(20), "fail high powersave of intel_pstate on CPUs 2-3");
    }

    #[test]
    fn the_platform_may_choose_beside_the_governor() {
        let of = |governor: &str, min: &str, auto: &str| {
            let set = set("cppc_cpufreq", governor, min, "2800000");
            let auto = |cpu| format!("\n/sys/devices/system/cpu/cpu{cpu}/cpufreq/auto_select{auto}");
            format!("{set}{}{}", auto(2), auto(3))
        };
        for governor in ["performance", "powersave", "schedutil"] {
            let moves = "fail high auto_select of the platform on CPUs 2-3";
            check(&KNOB, &of(governor, "1000000", ": 1"), moves);
        }
        check(&KNOB, &of("performance", "2800000", ": 1"), "pass fixed at 2800 MHz on CPUs 2-3");
        check(&KNOB, &of("performance", "1000000", ": 0"), "pass performance on CPUs 2-3");
        check(&KNOB, &of("performance", "1000000", ": <unsupported>"), "pass performance on CPUs 2-3");
        check(&KNOB, &of("performance", "1000000", " refused"), "unknown");
        let fix = |governor: &str| {
            let mut machine = Machine::base();
            machine.edit(&of(governor, "1000000", ": 1"));
            machine.finding(&KNOB).fix
        };
        assert!(fix("performance").contains("echo 0 >") && !fix("performance").contains("scaling_governor"));
        let both = fix("schedutil");
        assert!(both.contains("echo 0 >") && both.contains("echo performance >"), "{both}");
    }

    #[test]
    fn a_range_of_one_is_fixed_and_a_low_clamp_is_worse() {
        check(
            &KNOB,
            &set("intel_pstate", "powersave", "2400000", "2400000"),
            "pass fixed at 2400 MHz on CPUs 2-3",
        );
        let low = format!(
            "{}\n/proc/sys/kernel/sched_util_clamp_min_rt_default: 0",
            set("cppc_cpufreq", "schedutil", "1", "2")
        );
        check(&KNOB, &low, "fail high schedutil on CPUs 2-3");
    }

    #[test]
    fn a_governor_that_is_not_there_is_not_asked_for() {
        let dir = "/sys/devices/system/cpu/cpu";
        let offered = |names: &str| {
            [2, 3].map(|cpu| format!("{dir}{cpu}/cpufreq/scaling_available_governors: {names}\n")).concat()
        };
        let fix = |edits: String| {
            let mut machine = Machine::base();
            machine.edit(&format!("{}\n{edits}", set("cpufreq-dt", "ondemand", "1", "3000000")));
            machine.finding(&KNOB).fix
        };
        let other = fix(offered("ondemand userspace") + "CONFIG_CPU_FREQ_GOV_PERFORMANCE=n");
        assert!(other.contains("scaling_min_freq") && !other.contains("performance"), "{other}");
        let there = fix(offered("ondemand performance"));
        assert!(there.contains("echo performance >"), "{there}");
        let module = fix(offered("ondemand") + "CONFIG_CPU_FREQ_GOV_PERFORMANCE=m");
        assert!(module.contains("echo performance >"), "{module}");
    }

    #[test]
    fn one_bad_cpu_decides_and_a_pass_takes_all() {
        let dir = "/sys/devices/system/cpu";
        check(
            &KNOB,
            &format!(
                "{dir}/cpu2/cpufreq/scaling_governor: ondemand\n\
                 {dir}/cpu3/cpufreq/scaling_governor refused"
            ),
            "fail high ondemand on CPU 2",
        );
        check(
            &KNOB,
            &format!("{dir}/cpu3/cpufreq absent"),
            "unknown /sys/devices/system/cpu/cpuN/cpufreq/scaling_governor is missing for CPU 3",
        );
        check(
            &KNOB,
            &format!(
                "{dir}/cpu2/cpufreq/scaling_governor: powersave\n\
                 {dir}/cpu2/cpufreq/scaling_driver refused"
            ),
            "unknown",
        );
        check(
            &KNOB,
            &format!(
                "{dir}/cpu2/cpufreq/scaling_governor: schedutil\n\
                 {dir}/cpu3/cpufreq/scaling_governor: ondemand"
            ),
            "fail high ondemand on CPU 3; schedutil on CPU 2",
        );
        check(&KNOB, "--cpus 0-1", "fail high powersave of intel_pstate on CPUs 0-1");
    }

    #[test]
    fn without_a_driver_only_a_guest_is_excused() {
        let none =
            [0, 1, 2, 3].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq absent")).join("\n");
        check(&KNOB, &none, "unknown");
        check(
            &KNOB,
            &format!("{none}\n/sys/hypervisor/type: xen"),
            "not-applicable in a guest, the host sets the CPU frequency",
        );
        check(&KNOB, &format!("{none}\nCONFIG_CPU_FREQ=n"), "unknown");
    }
}
