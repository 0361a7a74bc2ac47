//! Frequency governors other than the one in use: whether a write somewhere can make the clock
//! follow the load.

use std::collections::BTreeMap;

use super::cpufreq_limit::{LIMIT as MAX, NO_TURBO, TABLE, TOP, raised};
use super::per_cpu::{PerCpuSetting, mhz};
use super::sources::{CPUFREQ, INTEL_PSTATE, RT_CONFIG};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_list, group_by_value};
use facts::kconfig::{Kconfig, OptionValue};
use facts::line::{parse_u64, parse_word, parse_words};
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

const DRIVER: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver";
pub const AVAILABLE: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_available_governors";
const MIN: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq";

pub static KNOB: Knob = Knob {
    id: "other-governors",
    title: "governors that follow the load",
    description: "A kernel that has ondemand, conservative or schedutil, built in or as a module, switches \
                  to any of them when a program writes its name to scaling_governor; a module is then loaded \
                  automatically.",
    rationale: "a power daemon or desktop applet can change the frequency policy at run time, and earlier \
                measurements no longer apply",
    detection: "The kernel's configuration, the governors that are loaded, and the driver and range of each \
                audited CPU. intel_pstate and amd-pstate in active mode take no generic governor; a range of \
                one frequency leaves them no choice. Which programs may write is not known.",
    side_effects: "With a range of one frequency the CPU stays at its maximum, with its power and heat, and \
                   powersave no longer lowers it. A kernel without these governors has to be built.",
    wanted: "only governors that keep the frequency, or a range of one frequency",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "write the value of scaling_max_freq to /sys/devices/system/cpu/cpuN/cpufreq/scaling_min_freq \
             for the audited CPUs, or boot a kernel built only with governors that keep the frequency",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: MIN,
    sources: &[
        Source {
            title: "kernel: real-time kernel configuration, non-performance CPU frequency \
                    governors",
            url: RT_CONFIG,
        },
        Source { title: "kernel: CPU performance scaling, policy interface in sysfs", url: CPUFREQ },
        Source { title: "kernel: intel_pstate, operation modes", url: INTEL_PSTATE },
    ],
    cures: &[SliceKind::Frequency],
    after: &["cpufreq-governor", "cpufreq-limit"],
    reads: &[DRIVER, AVAILABLE, MIN, MAX, TOP, NO_TURBO, TABLE],
    facts: &["/boot/config-RELEASE", "/proc/cpuinfo"],
    judge,
    examples: Examples {
        fires: "/sys/class/dmi/id/sys_vendor: Maker
                /sys/class/dmi/id/product_name: Desk
                /proc/cpuinfo:
                | vendor_id : GenuineIntel
                | flags : fpu tsc
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: acpi-cpufreq
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq: 800000
                /sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq: 3000000
                CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y",
        silent: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: acpi-cpufreq
                 /sys/devices/system/cpu/cpu3/cpufreq/scaling_driver: acpi-cpufreq
                 CONFIG_CPU_FREQ_GOV_POWERSAVE=y
                 CONFIG_CPU_FREQ_GOV_PERFORMANCE=y",
        unknown: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver refused
                  /sys/devices/system/cpu/cpu3/cpufreq/scaling_driver refused
                  CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y",
    },
    ..Knob::DEFAULT
};

/// Governors that follow the load; powersave and userspace hold the clock, which the kernel's guide
/// allows.
const FOLLOW: &[&str] = &["ondemand", "conservative", "schedutil"];

/// The governors that a configuration brings along; which driver will run is not known.
fn built(machine: &MachineView) -> Judged {
    let config = machine.kconfig()?;
    if !config.is_yes("CPU_FREQ") {
        return Err(Judgement::not_applicable("the kernel has no CPU_FREQ"));
    }
    let found: Vec<String> = FOLLOW.iter().filter_map(|governor| how(config, governor)).collect();
    if found.is_empty() {
        return Ok(Judgement::pass("none that follows the load"));
    }
    Ok(Judgement::fail(found.join(", ")).severity(severity(machine)).fix(rebuilt(&found)))
}

/// The way in which a configuration brings a governor along.
fn how(config: &Kconfig, governor: &str) -> Option<String> {
    match config.get(&option(governor)) {
        OptionValue::Yes => Some(format!("{governor} built in")),
        OptionValue::Module => Some(format!("{governor} as a module")),
        _ => None,
    }
}

fn rebuilt(found: &[String]) -> Remedy {
    let options: Vec<String> = found.iter().filter_map(|words| words.split(' ').next()).map(option).collect();
    let words = format!("boot a kernel built without CONFIG_{}", options.join(", CONFIG_"));
    Remedy::advice(AdviceReason::Kernel, words)
}

fn judge(machine: &MachineView) -> Judged {
    if machine.survey.is_stopped {
        return built(machine);
    }
    let drivers = PerCpuSetting::of(machine, DRIVER, parse_word);
    if drivers.is_absent() {
        return Err(if machine.is_virtual()? {
            Judgement::not_applicable("in a guest, the host sets the CPU frequency")
        } else {
            Judgement::not_applicable(
                "no frequency driver handles these CPUs: see cpufreq-governor for their frequency",
            )
        });
    }
    // The first versions of amd-pstate wrote its name with underscores.
    let own = |name: &str| matches!(name.replace('_', "-").as_str(), "intel-pstate" | "amd-pstate-epp");
    let generic = drivers.that(|name| !own(name));
    if generic.is_empty() {
        drivers.all_known()?;
        return Err(Judgement::not_applicable(format!(
            "{} in active mode takes no generic governor",
            drivers.known.values().next().map_or("the driver", String::as_str)
        )));
    }
    let limits = [PerCpuSetting::of(machine, MIN, parse_u64), PerCpuSetting::of(machine, MAX, parse_u64)];
    let fixed = |cpu: Cpu| {
        let [min, max] = limits.each_ref().map(|of| of.known.get(&cpu));
        min.zip(max).and_then(|(min, max)| (min == max && *max > 0).then_some(*max))
    };
    let open: CpuSet = generic.iter().filter(|&cpu| fixed(cpu).is_none()).collect();
    if open.is_empty() {
        drivers.all_known()?;
        let frequencies =
            generic.iter().filter_map(|cpu| Some((cpu, format!("fixed at {}", mhz(fixed(cpu)?)))));
        return Ok(Judgement::pass(group_by_value(frequencies)));
    }
    let found = there(machine)?;
    if found.is_empty() {
        drivers.all_known()?;
        return Ok(Judgement::pass("none that follows the load"));
    }
    // A range that could not be read may be one frequency.
    let unclear = limits.iter().find_map(|of| of.all_known().err());
    if let Some(why) = unclear.filter(|_| open.iter().all(|cpu| range_unknown(&limits, cpu))) {
        return Err(why);
    }
    let ways = one_frequency(machine, &open).or(rebuilt(&found));
    Ok(Judgement::fail(found.join(", ")).severity(severity(machine)).fix(ways))
}

fn severity(machine: &MachineView) -> Severity {
    if machine.has_profile(Profile::Audio) { Severity::Info } else { Severity::Medium }
}

fn range_unknown(limits: &[PerCpuSetting<u64>; 2], cpu: Cpu) -> bool {
    limits.iter().any(|of| !of.known.contains_key(&cpu))
}

/// A range of one frequency for each of these CPUs: its top, which is raised first where it was
/// lowered (cpufreq-limit).
pub fn one_frequency(machine: &MachineView, cpus: &CpuSet) -> Remedy {
    let (raised, tops) = raised(machine, cpus);
    let mut of: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for cpu in cpus.iter() {
        let Some(&top) = tops.get(&cpu) else {
            let words = format!(
                "for {}, write the value of scaling_max_freq to {}",
                cpu_list(cpus),
                MIN.replacen('#', "N", 1)
            );
            return Remedy::advice(AdviceReason::Choice, words);
        };
        of.entry(top).or_default().0.insert(cpu);
    }
    let one = of.into_iter().map(|(top, cpus)| Change::each_cpu(MIN, &cpus, top));
    Remedy::of(raised.into_iter().chain(one)).note("a range of one frequency leaves a governor no choice")
}

fn option(governor: &str) -> String {
    format!("CPU_FREQ_GOV_{}", governor.to_uppercase())
}

/// The governors that follow the load, with how the kernel has them; what is loaded needs no
/// configuration to prove it.
fn there(machine: &MachineView) -> Result<Vec<String>, Judgement> {
    let offered = PerCpuSetting::of(machine, AVAILABLE, parse_words);
    let loaded =
        |governor: &str| offered.known.values().any(|names| names.iter().any(|name| name == governor));
    let config = machine.kconfig();
    let there = |&governor: &&str| {
        let built = config.as_ref().ok().and_then(|config| how(config, governor));
        built.or_else(|| loaded(governor).then(|| format!("{governor} loaded")))
    };
    let found: Vec<String> = FOLLOW.iter().filter_map(there).collect();
    // A module that is not loaded is not offered, and comes when it is asked for.
    if !found.is_empty() {
        return Ok(found);
    }
    // A frequency driver runs, and with CPU_FREQ every configuration states of this governor
    // whether it is set: one that does not is another kernel's.
    match config?.get("CPU_FREQ_GOV_ONDEMAND") {
        OptionValue::Absent => Err(Judgement::unknown(
            "the kernel's configuration does not mention CPU_FREQ_GOV_ONDEMAND, but a frequency driver runs: \
             it belongs to another kernel",
        )),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::audit::finding;
    use crate::fixture::check;
    use crate::intent::{Profile, intent};
    use crate::judgement::Severity;
    use crate::survey_request;
    use facts::boot_texts::BootTexts;
    use facts::kconfig_file::read_kconfig_file;
    use facts::survey::survey_with;
    use host::MachineFiles;

    /// Gives CPU 2 and 3 this driver and range.
    fn set(driver: &str, min: &str, max: &str) -> String {
        let of = |cpu: u32| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling");
            format!("{dir}_driver: {driver}\n{dir}_min_freq: {min}\n{dir}_max_freq: {max}\n")
        };
        of(2) + &of(3) + "CONFIG_CPU_FREQ_GOV_ONDEMAND=m\nCONFIG_CPU_FREQ_GOV_SCHEDUTIL=y"
    }

    #[test]
    fn what_can_be_chosen_is_named() {
        let both = "fail medium ondemand as a module, schedutil built in";
        check(&KNOB, &set("cpufreq-dt", "1", "2"), both);
        check(&KNOB, &set("intel_cpufreq", "1", "2"), both);
        check(&KNOB, &format!("{}\n--profile audio", set("acpi-cpufreq", "1", "2")), "fail info");
        let text = "# Linux/x86 6.12.30 Kernel Configuration\nCONFIG_PREEMPT_RT=y\nCONFIG_CPU_FREQ=y\n\
                    CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y\n";
        let kconfig = Some(read_kconfig_file(text.as_bytes()).unwrap().config);
        let texts = BootTexts { kconfig, ..BootTexts::default() };
        let survey = survey_with(&texts, &MachineFiles::stopped(None), &survey_request());
        let of = |profile| finding(&KNOB, &survey, &intent(&survey, profile, None).unwrap()).severity;
        assert_eq!(of(Profile::Audio), Severity::Info);
        assert_eq!(of(Profile::ControlLoop), Severity::Medium);
        check(&KNOB, &set("cpufreq-dt", "1500000", "1500000"), "pass fixed at 1500 MHz on CPUs 2-3");
        check(
            &KNOB,
            &format!(
                "{}\nCONFIG_CPU_FREQ_GOV_ONDEMAND=n\nCONFIG_CPU_FREQ_GOV_SCHEDUTIL=n",
                set("x", "1", "2")
            ),
            "pass none that follows the load",
        );
    }

    #[test]
    fn drivers_with_their_own_use_no_governor() {
        check(&KNOB, "", "not-applicable intel_pstate in active mode takes no generic governor");
        check(&KNOB, &set("amd_pstate_epp", "1", "2"), "not-applicable");
        let mixed = format!(
            "{}\n/sys/devices/system/cpu/cpu3/cpufreq/scaling_driver: intel_pstate",
            set("cppc_cpufreq", "1", "2")
        );
        check(&KNOB, &mixed, "fail medium ondemand as a module, schedutil built in");
    }

    #[test]
    fn without_a_driver_the_rule_does_not_apply() {
        let none = [2, 3].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq absent")).join("\n");
        check(
            &KNOB,
            &none,
            "not-applicable no frequency driver handles these CPUs: see cpufreq-governor for their \
             frequency",
        );
        check(
            &KNOB,
            &format!("{none}\n/sys/hypervisor/type: xen"),
            "not-applicable in a guest, the host sets the CPU frequency",
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_judged() {
        let max = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq";
        let both = format!("{max} refused\n{} refused", max.replace("cpu2", "cpu3"));
        check(&KNOB, &format!("{}\n{both}", set("cpufreq-dt", "1", "2")), "unknown");
        check(&KNOB, &format!("{}\n{max} refused", set("cpufreq-dt", "1", "2")), "fail medium");
        check(&KNOB, &format!("{}\n/boot refused", set("cpufreq-dt", "1", "2")), "unknown");
        let offered = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors: \
                       performance";
        check(&KNOB, &format!("{}\n/boot refused\n{offered}", set("cpufreq-dt", "1", "2")), "unknown");
        check(
            &KNOB,
            &format!("{}\n/boot refused\n{offered} schedutil", set("cpufreq-dt", "1", "2")),
            "fail medium schedutil loaded",
        );
        check(
            &KNOB,
            &format!("{}\n/boot refused", set("cpufreq-dt", "2", "2")),
            "pass fixed at 0 MHz on CPUs 2-3",
        );
    }
}
