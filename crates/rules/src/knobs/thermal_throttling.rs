//! Thermal throttling: whether the hardware had to slow the CPUs down.

use super::per_cpu::PerCpuSetting;
use super::sources::{INTEL_PSTATE, RT_HARDWARE};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::line::parse_u64;
use model::slice::SliceKind;

const CORE: &str = "/sys/devices/system/cpu/cpu#/thermal_throttle/core_throttle_count";
const PACKAGE: &str = "/sys/devices/system/cpu/cpu#/thermal_throttle/package_throttle_count";

pub static KNOB: Knob = Knob {
    id: "thermal-throttling",
    title: "thermal throttling",
    description: "When a core or the package of an Intel processor gets too hot, it lowers its frequency and \
                  raises an interrupt, which the kernel counts.",
    rationale: "a throttled core runs at a fraction of its frequency until it has cooled down, regardless of \
                the governor",
    detection: "Whether the kernel has counted any such event on the audited CPUs since boot: it may be old, \
                or from a warm-up. Throttling for power or current, and by firmware that hides it, is not \
                counted here.",
    side_effects: "A lower frequency, or work on the cooling.",
    wanted: "never since the machine booted",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "improve cooling and fans, or switch turbo off or lower scaling_max_freq; then reboot, which \
             resets the counters, and run the machine under full load for a day",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Firmware,
    unsettable: unsettable::MACHINE,
    sources: &[
        Source { title: "kernel: considering hardware, firmware", url: RT_HARDWARE },
        Source { title: "kernel: intel_pstate, turbo P-states support", url: INTEL_PSTATE },
    ],
    cures: &[SliceKind::Frequency, SliceKind::Irq],
    reads: &[CORE, PACKAGE],
    facts: &["/proc/sys/kernel/arch", "/proc/cpuinfo", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count: 17",
        silent: "/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count: 0
                 /sys/devices/system/cpu/cpu2/thermal_throttle/package_throttle_count: 0
                 /sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count: 0
                 /sys/devices/system/cpu/cpu3/thermal_throttle/package_throttle_count: 0",
        unknown: "/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count: 0
                  /sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_x86()?;
    let (core, package) =
        (PerCpuSetting::of(machine, CORE, parse_u64), PerCpuSetting::of(machine, PACKAGE, parse_u64));
    if core.is_absent() && package.is_absent() {
        return Err(if machine.is_virtual()? {
            Judgement::not_applicable("a guest does not see the temperature of its host")
        } else {
            without_counters(machine)
        });
    }
    let (hot, warm) = (core.that(|&count| count > 0), package.that(|&count| count > 0));
    let parts: Vec<String> = [("core", &hot), ("package", &warm)]
        .into_iter()
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(what, cpus)| format!("{what} of {}", cpu_list(cpus)))
        .collect();
    if !parts.is_empty() {
        // The package throttles for any of its cores, so it may have been one that is not audited.
        let severity = if hot.is_empty() { Severity::Medium } else { Severity::High };
        return Ok(Judgement::fail(format!("since boot: {}", parts.join(", "))).severity(severity));
    }
    core.all_known()?;
    // Older processors have no sensor for the package.
    if !package.is_absent() {
        package.all_known()?;
    }
    Ok(Judgement::pass("never since boot"))
}

/// Reason for missing counters (`intel_thermal_supported()` of
/// drivers/thermal/intel/therm_throt.c).
fn without_counters(machine: &MachineView) -> Judgement {
    let flags = machine.facts().cpu_flags.known();
    if flags.is_some_and(|flags| ["acpi", "tm"].iter().any(|flag| !flags.iter().any(|known| known == flag))) {
        return Judgement::not_applicable(
            "the processor has no such counters: without the flags acpi and tm in /proc/cpuinfo it has no \
             thermal monitor",
        );
    }
    if machine.kconfig().is_ok_and(|config| !config.is_yes("X86_THERMAL_VECTOR")) {
        return Judgement::not_applicable("without CONFIG_X86_THERMAL_VECTOR there are no counters");
    }
    Judgement::unknown(
        "there are no counters: the processor is not from Intel, or the kernel lacks \
         CONFIG_X86_THERMAL_VECTOR",
    )
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    /// Throttle count of a CPU.
    fn count(cpu: u32, what: &str, value: &str) -> String {
        format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{what}_throttle_count: {value}")
    }

    #[test]
    fn whether_counts_and_not_how_often() {
        check(&KNOB, "", "pass never since boot");
        check(&KNOB, &count(2, "core", "912"), "fail high since boot: core of CPU 2");
        check(&KNOB, &count(3, "package", "1"), "fail medium since boot: package of CPU 3");
        check(
            &KNOB,
            &[count(2, "core", "1"), count(2, "package", "1"), count(3, "package", "1")].join("\n"),
            "fail high since boot: core of CPU 2, package of CPUs 2-3",
        );
        check(&KNOB, &count(0, "core", "5"), "pass never since boot");
    }

    #[test]
    fn no_counter_is_no_cool_machine() {
        let none = "/sys/devices/system/cpu/cpu2/thermal_throttle absent\n\
                    /sys/devices/system/cpu/cpu3/thermal_throttle absent";
        let flags = |flags: &str| format!("{none}\n/proc/cpuinfo:\n| flags : fpu {flags}\n/boot refused");
        check(&KNOB, &flags("acpi tm"), "unknown");
        check(
            &KNOB,
            &flags("mce"),
            "not-applicable the processor has no such counters: without the flags acpi and tm in \
             /proc/cpuinfo it has no thermal monitor",
        );
        let built = flags("acpi tm").replace("/boot refused", "CONFIG_X86_THERMAL_VECTOR=n");
        check(&KNOB, &built, "not-applicable without CONFIG_X86_THERMAL_VECTOR there are no counters");
        check(
            &KNOB,
            &format!("{none}\n/sys/hypervisor/type: xen"),
            "not-applicable a guest does not see the temperature of its host",
        );
        check(&KNOB, "/sys/devices/system/cpu/cpu3/thermal_throttle absent", "unknown");
        check(&KNOB, &count(3, "core", ""), "unknown");
        let old = "/sys/devices/system/cpu/cpu2/thermal_throttle/package_throttle_count absent\n\
                   /sys/devices/system/cpu/cpu3/thermal_throttle/package_throttle_count absent";
        check(&KNOB, old, "pass never since boot");
        check(&KNOB, "/proc/sys/kernel/arch: aarch64", "not-applicable x86 only; this machine is aarch64");
    }
}
