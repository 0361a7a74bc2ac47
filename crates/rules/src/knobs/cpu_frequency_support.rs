//! Support for frequency scaling in the kernel.

use super::sources::RT_CONFIG;
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "cpu-frequency-support",
    title: "support for frequency scaling",
    description: "With CPU_FREQ the kernel can set the processors to their highest frequency and keep them \
                  there. Without it they stay at the frequency that the firmware or the boot loader set, \
                  which may be low.",
    rationale: "at half the frequency everything takes twice as long, including the kernel's work",
    detection: "The kernel's configuration, or else that a cpufreq driver is in use. In a virtual machine \
                the host sets the frequency.",
    side_effects: "Needs another kernel. CPU_FREQ also needs a governor that keeps the frequency: see \
                   cpufreq-governor.",
    wanted: "built in",
    fix: || {
        Remedy::advice(
            AdviceReason::Kernel,
            "boot a kernel built with CONFIG_CPU_FREQ and the driver of this processor",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[Source { title: "kernel: real-time kernel configuration, CONFIG_CPU_FREQ", url: RT_CONFIG }],
    cures: &[SliceKind::Frequency],
    facts: &[
        "/boot/config-RELEASE",
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
        "/proc/cpuinfo",
    ],
    judge,
    examples: Examples {
        fires: "CONFIG_CPU_FREQ=n
                /proc/cpuinfo: vendor_id : GenuineIntel
                | flags : fpu tsc
                /sys/class/dmi/id/sys_vendor: Maker
                /sys/class/dmi/id/product_name: Desk
                /sys/devices/system/cpu/cpufreq absent",
        silent: "CONFIG_CPU_FREQ=y
                 /proc/cpuinfo: vendor_id : GenuineIntel
                 | flags : fpu tsc
                 /sys/class/dmi/id/sys_vendor: Maker
                 /sys/class/dmi/id/product_name: Desk",
        unknown: "/boot refused
                  /sys/devices/system/cpu/cpufreq absent
                  /proc/cpuinfo: vendor_id : GenuineIntel
                  | flags : fpu tsc
                  /sys/class/dmi/id/sys_vendor: Maker
                  /sys/class/dmi/id/product_name: Desk",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    if machine.is_virtual()? {
        return Err(Judgement::not_applicable("in a virtual machine the host sets the frequency"));
    }
    // A driver in use proves it without a configuration.
    if let Fact::Known(drivers) = &machine.facts().cpufreq_driver {
        if !drivers.is_empty() {
            return Ok(Judgement::pass("built in"));
        }
    }
    Ok(if machine.kconfig()?.is_yes("CPU_FREQ") {
        Judgement::pass("built in")
    } else {
        Judgement::fail("not built in")
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const GUEST: &str = "/proc/cpuinfo: flags : fpu tsc hypervisor\n/sys/hypervisor/type: kvm\n";
    const NO_DRIVER: &str = "/sys/devices/system/cpu/cpufreq absent";

    #[test]
    fn only_on_metal() {
        check(&KNOB, "", "pass built in");
        check(&KNOB, &format!("{NO_DRIVER}\nCONFIG_CPU_FREQ=n"), "fail high not built in");
        check(
            &KNOB,
            &format!("{NO_DRIVER}\nCONFIG_CPU_FREQ=n\n{GUEST}"),
            "not-applicable in a virtual machine the host sets the frequency",
        );
        let driver = "/boot refused\n/sys/devices/system/cpu/cpufreq/policy0/scaling_driver: \
                      intel_pstate";
        check(&KNOB, driver, "pass built in");
        check(&KNOB, &format!("{NO_DRIVER}\n/boot refused"), "unknown");
    }
}
