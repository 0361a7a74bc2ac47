//! Idle injection: drivers that can take CPUs away for milliseconds, to cool them.

use super::sources::POWERCLAMP;
use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::truncate;
use facts::Fact;
use facts::line::parse_line;
use model::slice::SliceKind;

const TYPES: &str = "/sys/class/thermal/cooling_device#/type";
const THERMAL: &str = "/sys/class/thermal/";

pub static KNOB: Knob = Knob {
    id: "idle-injection",
    title: "idle injection",
    description: "intel_powerclamp offers a cooling device that makes all CPUs idle for a share of the time, \
                  with a SCHED_FIFO thread for each. It is loaded automatically on Intel processors and \
                  starts when a program writes to it, as thermald does when the machine gets hot. On Arm and \
                  others a cooling device idle-CPU does the same for CPUs with thermal-idle in the device \
                  tree (CPU_IDLE_THERMAL): the kernel itself starts it when the chip gets hot.",
    rationale: "each injected pause holds the CPU for 6 to 25 ms ahead of the real-time tasks \
                below its thread's priority",
    detection: "Whether the cooling device exists. Whether it is active is not read: other cooling devices \
                in the same directory ask the firmware for their state.",
    side_effects: "Without it an overheated machine is slowed down by the hardware's own throttling, which \
                   is as bad: improve the cooling.",
    wanted: "not loaded",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "echo blacklist intel_powerclamp >/etc/modprobe.d/no-powerclamp.conf and rmmod \
             intel_powerclamp, or keep thermald from using it",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "onbeat does not unload a module that a program uses",
    sources: &[Source { title: "kernel: Intel powerclamp driver, idle injection", url: POWERCLAMP }],
    cures: &[SliceKind::Thread, SliceKind::IdleExit],
    reads: &[TYPES, THERMAL],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/class/thermal/cooling_device7/type: intel_powerclamp",
        silent: "/sys/class/thermal/cooling_device0/type: Processor",
        unknown: "/sys/class/thermal refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let mut untold = None;
    let types = machine.texts(TYPES)?;
    for text in types {
        match text.content.clone().parse(|content| parse_line(&content)) {
            Fact::Known(kind) if kind == "intel_powerclamp" => {
                let judged = Judgement::fail("intel_powerclamp is loaded");
                let config = machine.facts().kconfig.known();
                let is_built_in = config.is_some_and(|config| config.is_yes("INTEL_POWERCLAMP"));
                return Ok(if is_built_in { judged.fix(unused()) } else { judged });
            }
            // The name that __cpuidle_cooling_register() gives it.
            Fact::Known(kind) if kind.starts_with("idle-") => {
                return Ok(Judgement::fail(format!("{} injects when the chip is hot", truncate(&kind)))
                    .fix(Remedy::advice(
                        AdviceReason::Kernel,
                        "boot a kernel built without CONFIG_CPU_IDLE_THERMAL, or with a device tree whose \
                         CPUs have no thermal-idle",
                    ))
                    .persistence(Persistence::Build));
            }
            Fact::Known(_) => {}
            other => drop(untold.get_or_insert(unknown_from(&text.path, &other))),
        }
    }
    match untold {
        Some(why) => Err(why),
        None if types.is_empty() && machine.parsed(THERMAL, |_| Ok(()))?.is_none() => {
            Err(match machine.kconfig()? {
                config if config.is_yes("THERMAL") => unknown_absent("/sys/class/thermal"),
                _ => {
                    Judgement::not_applicable("this kernel has no CONFIG_THERMAL, and so no cooling devices")
                }
            })
        }
        None => Ok(Judgement::pass("not loaded")),
    }
}

/// No module that could be kept from loading.
fn unused() -> Remedy {
    Remedy::advice(AdviceReason::Program, "configure thermald not to use it: it is built in")
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn the_device_is_there_or_not() {
        check(&KNOB, "", "pass not loaded");
        check(
            &KNOB,
            "/sys/class/thermal/cooling_device9/type: intel_powerclamp",
            "fail low intel_powerclamp is loaded",
        );
        check(
            &KNOB,
            "/sys/class/thermal/cooling_device0/type refused\n\
             /sys/class/thermal/cooling_device9/type: intel_powerclamp",
            "fail low intel_powerclamp is loaded",
        );
        check(&KNOB, "/sys/class/thermal/cooling_device9/type refused", "unknown");
        let mut machine = Machine::base();
        machine.edit("/sys/class/thermal/cooling_device9/type: intel_powerclamp\nCONFIG_INTEL_POWERCLAMP=y");
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("configure thermald not to use it"), "{fix}");
        let none = "/sys/class/thermal absent";
        check(&KNOB, &format!("{none}\nCONFIG_THERMAL=y"), "unknown /sys/class/thermal is not there");
        check(
            &KNOB,
            &format!("{none}\nCONFIG_THERMAL=n"),
            "not-applicable this kernel has no CONFIG_THERMAL, and so no cooling devices",
        );
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 refused"), "unknown");
        let arm = |kind: &str| {
            format!("/proc/sys/kernel/arch: aarch64\n/sys/class/thermal/cooling_device0/type: {kind}")
        };
        check(&KNOB, &arm("cpufreq-cpu0"), "pass not loaded");
        check(&KNOB, &arm("idle-cpu0"), "fail low idle-cpu0 injects when the chip is hot");
    }
}
