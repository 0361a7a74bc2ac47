//! Idle injection: a driver that can take all CPUs away for milliseconds, to cool them.

use super::sources::POWERCLAMP;
use crate::case::{Case, absent, unread};
use crate::change::Because;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use facts::Fact;
use facts::line::parse_line;

const TYPES: &str = "/sys/class/thermal/cooling_device#/type";
const THERMAL: &str = "/sys/class/thermal/";

pub static KNOB: Knob = Knob {
    id: "idle-injection",
    title: "idle injection",
    what: "intel_powerclamp offers a cooling device that makes all CPUs idle for a share of the time, with a SCHED_FIFO thread for each. It is \
           loaded by itself on Intel processors and starts when somebody writes to it, as thermald does when the machine gets hot.",
    why: "each injected pause holds the CPU for 6 to 25 ms ahead of the real-time tasks below its thread's priority",
    tell: "Whether the cooling device is there. Whether it injects right now is not read: other cooling devices in the same directory ask the \
           firmware for their state.",
    cost: "Without it an overheated machine is slowed down by the hardware's own throttling, which is as bad: see to the cooling.",
    wanted: "not loaded",
    fix: || {
        Remedy::advice(
            Because::Program,
            "echo blacklist intel_powerclamp >/etc/modprobe.d/no-powerclamp.conf and rmmod intel_powerclamp, or keep thermald from using it",
        )
    },
    severity: Severity::Low,
    evidence: Evidence::Documented,
    lasts: Lasts::Boot,
    sources: &[Source { title: "kernel: Intel powerclamp driver, idle injection", url: POWERCLAMP }],
    cures: &[Slice::Thread, Slice::IdleExit],
    reads: &[TYPES, THERMAL],
    facts: &["/proc/sys/kernel/arch", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/class/thermal/cooling_device7/type: intel_powerclamp",
        silent: "/sys/class/thermal/cooling_device0/type: Processor",
        unknown: "/sys/class/thermal refused",
    },
    ..Knob::DEFAULT
};

fn judge(case: &Case) -> Judged {
    case.needs_x86()?;
    let mut untold = None;
    let types = case.texts(TYPES)?;
    for text in types {
        match text.content.clone().parse(|content| parse_line(&content)) {
            Fact::Known(kind) if kind == "intel_powerclamp" => {
                return Ok(Judgement::fail("intel_powerclamp is loaded"));
            }
            Fact::Known(_) => {}
            other => drop(untold.get_or_insert(unread(&text.path, &other))),
        }
    }
    match untold {
        Some(why) => Err(why),
        None if types.is_empty() && case.parsed(THERMAL, |_| Ok(()))?.is_none() => {
            Err(match case.kconfig()? {
                config if config.is_yes("THERMAL") => absent("/sys/class/thermal"),
                _ => {
                    Judgement::not_applicable("this kernel has no CONFIG_THERMAL, and so no cooling devices")
                }
            })
        }
        None => Ok(Judgement::pass("not loaded")),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

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
            "/sys/class/thermal/cooling_device0/type refused\n/sys/class/thermal/cooling_device9/type: intel_powerclamp",
            "fail low intel_powerclamp is loaded",
        );
        check(&KNOB, "/sys/class/thermal/cooling_device9/type refused", "unknown");
        let none = "/sys/class/thermal absent";
        check(&KNOB, &format!("{none}\nCONFIG_THERMAL=y"), "unknown /sys/class/thermal is not there");
        check(
            &KNOB,
            &format!("{none}\nCONFIG_THERMAL=n"),
            "not-applicable this kernel has no CONFIG_THERMAL, and so no cooling devices",
        );
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 refused"), "unknown");
        check(&KNOB, "/proc/sys/kernel/arch: aarch64", "not-applicable x86 only, this is aarch64");
    }
}
