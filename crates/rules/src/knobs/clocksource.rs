//! The clocksource: what each reading of the time costs, and how exact it is.

use super::sources::{PARAMETERS, TIMEKEEPING};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::parameters::is_present;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate;
use facts::clocksource::{Quality, quality};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "clocksource",
    title: "clocksource",
    description: "The counter from which the kernel reads the time: the TSC on x86, the architected timer on \
                  Arm, the hypervisor's clock in a guest. If it is not reliable the kernel uses a device \
                  instead, such as the HPET or the ACPI timer.",
    rationale: "reading a clock in a device takes about a microsecond and a system call, and CPUs that read \
                it at the same time wait for each other",
    detection: "The clocksource in use, and the available ones: an x86 machine without tsc in the list \
                marked the TSC as unstable, or has none. The reason is only in the kernel's log. Some Arm \
                chips with a timer erratum read the timer through a system call anyway, which is not \
                visible. Clocks that onbeat does not know are not judged.",
    side_effects: "Selecting another one by hand is safe only if it is available. Forcing a TSC that the \
                   kernel found unstable makes time jump; the usual cause is the firmware or a hypervisor.",
    wanted: "a clock that is read in user mode: tsc, arch_sys_counter, kvm-clock and the like",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "echo the best of available_clocksource to current_clocksource; if it is not available, see in \
             the kernel's log why it was rejected",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Runtime,
    sets: CURRENT,
    sources: &[
        Source {
            title: "kernel: clock sources, clock events, sched_clock() and delay timers",
            url: TIMEKEEPING,
        },
        Source { title: "kernel: command line, clocksource=", url: PARAMETERS },
    ],
    cures: &[SliceKind::ReturnToUser, SliceKind::TimerIrq, SliceKind::Unexplained],
    facts: &[
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/proc/cmdline",
    ],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/clocksource/clocksource0/current_clocksource: hpet
                /sys/devices/system/clocksource/clocksource0/available_clocksource: hpet acpi_pm",
        silent: "",
        unknown: "/sys/devices/system/clocksource/clocksource0/current_clocksource refused",
    },
    ..Knob::DEFAULT
};

/// Where no good clock is offered.
const GIVEN_UP: &str = "dmesg | grep -i -e tsc -e clocksource shows why it was rejected: update the \
                        firmware, look for SMIs";

/// The same on other architectures than x86.
const NOT_OF_X86: &str = "dmesg | grep -i clocksource shows which clocks the kernel found: a chip without a \
                          faster one keeps this";

/// The same in a guest.
const OF_HOST: &str = "let the host offer a fast clock: an invariant TSC, kvm-clock, or the reference TSC \
                       page of Hyper-V";

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn judge(machine: &MachineView) -> Judged {
    let name = machine.known(&machine.facts().clocksource, CURRENT)?;
    let value = truncate(name);
    match quality(name) {
        Quality::Fast if machine.facts().clocksources.known().is_some_and(|all| !all.contains(name)) => {
            Err(Judgement::unknown(format!("{CURRENT} is {value}, which is not in available_clocksource")))
        }
        Quality::Fast => Ok(Judgement::pass(value)),
        Quality::Unknown => Err(Judgement::unknown(format!(
            "onbeat does not know the clocksource {value}: `onbeat measure` shows what reading it costs"
        ))),
        Quality::Coarse => Ok(advice(machine, Judgement::fail(value).severity(Severity::Fatal))
            .because("it advances with the timer tick: shorter times can be neither timed nor measured")),
        Quality::Slow => Ok(advice(machine, Judgement::fail(value))),
    }
}

/// What to do: a good clock that is offered only has to be chosen.
fn advice(machine: &MachineView, judgement: Judgement) -> Judgement {
    let offered = machine.facts().clocksources.known();
    let good = offered.and_then(|offered| offered.iter().find(|name| quality(name) == Quality::Fast));
    match good {
        Some(good) => judgement.fix(
            Remedy::from(Change::write(CURRENT, truncate(good)))
                .persist(Change::cmdline_remove("clocksource")),
        ),
        // The words that have the TSC given up (arch/x86/kernel/tsc.c).
        None if !against_tsc(machine).is_empty() => judgement
            .fix(Remedy::of(against_tsc(machine).into_iter().map(Change::cmdline_remove)))
            .persistence(Persistence::Boot),
        None if machine.is_virtual() == Ok(true) => {
            judgement.fix(Remedy::advice(AdviceReason::Machine, OF_HOST)).persistence(Persistence::Boot)
        }
        // Nothing can be chosen before the next boot.
        None if machine.require_x86().is_err() => {
            judgement.fix(Remedy::advice(AdviceReason::Machine, NOT_OF_X86)).persistence(Persistence::Boot)
        }
        None => judgement.fix(Remedy::advice(AdviceReason::Machine, GIVEN_UP)).persistence(Persistence::Boot),
    }
}

fn against_tsc(machine: &MachineView) -> Vec<&'static str> {
    let Some(cmdline) = machine.facts().cmdline.known().filter(|_| machine.require_x86().is_ok()) else {
        return Vec::new();
    };
    ["tsc=unstable", "notsc"].into_iter().filter(|word| is_present(cmdline, word)).collect()
}

#[cfg(test)]
mod tests {
    use super::{CURRENT, KNOB};
    use crate::fixture::{Machine, check};

    #[test]
    fn each_architecture_has_its_clock() {
        check(&KNOB, "", "pass tsc");
        let offered = CURRENT.replace("current_", "available_");
        for name in ["arch_sys_counter", "kvm-clock"] {
            check(&KNOB, &format!("{CURRENT}: {name}\n{offered}: {name}"), &format!("pass {name}"));
            check(&KNOB, &format!("{CURRENT}: {name}"), "unknown");
        }
        check(&KNOB, &format!("{CURRENT}: acpi_pm"), "fail high acpi_pm");
        let mut machine = Machine::base();
        machine.edit(&format!("{CURRENT}: acpi_pm\n{offered}: acpi_pm\n/sys/hypervisor/type: xen"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("let the host offer a fast clock"), "{fix}");
        let mut machine = Machine::base();
        let slow = "arm_global_timer";
        machine.edit(&format!("{CURRENT}: {slow}\n{offered}: {slow}\n/proc/sys/kernel/arch: armv7l"));
        let fix = machine.finding(&KNOB).fix;
        assert!(!fix.contains("tsc") && fix.contains("the kernel found"), "{fix}");
        check(&KNOB, &format!("{CURRENT}: refined-jiffies"), "fail fatal refined-jiffies");
        check(&KNOB, &format!("{CURRENT}: xen"), "unknown");
        check(&KNOB, &format!("{CURRENT}: {}", "x".repeat(300)), "unknown");
        check(&KNOB, &format!("{CURRENT} absent"), "unknown");
    }

    #[test]
    fn a_clock_that_is_offered_is_named() {
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{CURRENT}: hpet\n{edits}"));
            machine.finding(&KNOB).fix
        };
        let offered = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert!(fix(&format!("{offered}: tsc hpet")).starts_with("echo tsc >/sys"));
        assert_eq!(fix(&format!("{offered}: hpet acpi_pm")), super::GIVEN_UP);
        assert_eq!(fix(&format!("{offered} refused")), super::GIVEN_UP);
        for word in ["tsc=unstable", "notsc"] {
            let fix = fix(&format!("{offered}: hpet acpi_pm\ncmdline + {word}"));
            assert_eq!(fix, format!("remove {word} from the kernel's command line"));
        }
    }
}
