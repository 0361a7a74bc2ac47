//! High-resolution timers: whether a timer can expire between two ticks.

use super::sources::{HIGHRES, PARAMETERS};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate;
use facts::line::parse_u64;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "high-resolution-timers",
    title: "high-resolution timers",
    description: "With high-resolution timers the kernel programs the timer of each CPU for the exact time \
                  at which the next timer expires. Without them timers expire at the next tick, every 1 to \
                  10 ms. They are built in by HIGH_RES_TIMERS and switched off by highres=off.",
    rationale: "without them every sleep ends at a tick, up to a whole tick too late",
    detection: "The resolution from clock_getres(2), or `.resolution` in a copy of /proc/timer_list: 1 ns, \
                or a tick. If neither is known: the kernel's configuration, highres= on its command line, \
                and the clocksource; with the jiffies clocksource, or with a timer device without one-shot \
                mode, the kernel stays in low resolution. nohz= does not matter: it stops ticks, not \
                timers.",
    side_effects: "None worth mentioning: hardware without a suitable timer stays in low resolution.",
    wanted: "built in and switched on",
    fix: || Change::kconfig("HIGH_RES_TIMERS", "y").into(),
    severity: Severity::Fatal,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: high resolution timers and dynamic ticks", url: HIGHRES },
        Source { title: "kernel: command line, highres=", url: PARAMETERS },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::TimerSoftirq],
    reads: &[RESOLUTION],
    facts: &["/proc/timer_list", "/boot/config-RELEASE", "/proc/cmdline", CLOCKSOURCE],
    judge,
    examples: Examples {
        fires: "cmdline + highres=off",
        silent: "/sys/devices/system/clocksource/clocksource0/current_clocksource: tsc",
        unknown: "/boot refused",
    },
    ..Knob::DEFAULT
};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Result of the system call.
const RESOLUTION: &str = "/syscall/clock_getres/monotonic";

fn judge(machine: &MachineView) -> Judged {
    let by_settings = || Judgement::all([built(machine), switched_on(machine), precise_clock(machine)]);
    let answer = machine.parsed(RESOLUTION, parse_u64).ok().flatten();
    match answer.or(machine.survey.timer_resolution_ns.known().copied()) {
        Some(1) => Ok(Judgement::pass("1 ns")),
        Some(ns) => Ok(match by_settings() {
            Ok(cause) if cause.verdict == AuditVerdict::Fail => cause,
            _ => Judgement::fail(format!("{} us", ns / 1_000))
                .fix(Remedy::advice(
                    AdviceReason::Machine,
                    "dmesg | grep -i -e hrtimer -e clockevent shows why the kernel stays at ticks",
                ))
                .persistence(Persistence::Boot),
        }),
        None => by_settings(),
    }
}

fn built(machine: &MachineView) -> Judged {
    let built = machine.kconfig()?.is_yes("HIGH_RES_TIMERS");
    Ok(if built { Judgement::pass("built in") } else { Judgement::fail("not built in") })
}

fn switched_on(machine: &MachineView) -> Judged {
    // The kernel keeps its default, on, if it cannot parse the value.
    let mut values = machine.cmdline()?.values("highres").rev();
    let last = values.find_map(|value| Some((value, machine.truth(value)?)));
    Ok(if let Some((value, false)) = last {
        Judgement::fail(format!("highres={}", truncate(value))).fix(Change::cmdline_remove("highres"))
    } else {
        Judgement::pass("switched on")
    })
}

fn precise_clock(machine: &MachineView) -> Judged {
    let clock = machine.known(&machine.facts().clocksource, CLOCKSOURCE)?;
    Ok(if matches!(clock.as_str(), "jiffies" | "refined-jiffies") {
        Judgement::fail(format!("clocksource {clock}"))
            .fix(Remedy::advice(
                AdviceReason::Kernel,
                "give the kernel a hardware clocksource: it found none, or clocksource= on its command line \
                 selected this one",
            ))
            .persistence(Persistence::Boot)
    } else {
        Judgement::pass("")
    })
}

#[cfg(test)]
mod tests {
    use super::{KNOB, RESOLUTION};
    use crate::fixture::check;

    #[test]
    fn all_that_it_takes_must_be_there() {
        check(&KNOB, "", "pass built in; switched on");
        check(&KNOB, "CONFIG_HIGH_RES_TIMERS=n", "fail fatal not built in");
        check(&KNOB, "CONFIG_HIGH_RES_TIMERS=n\ncmdline + highres=0", "fail fatal not built in; highres=0");
        check(&KNOB, "cmdline + highres=off\ncmdline + highres=on", "pass built in; switched on");
        check(&KNOB, "cmdline + highres=maybe", "pass built in; switched on");
        check(&KNOB, "cmdline + nohz=off", "pass built in; switched on");
        // Letters that only some releases accept.
        check(&KNOB, "cmdline + highres=disable", "pass built in; switched on");
        let of = |release: &str, word: &str| {
            format!(
                "/boot refused\n{RESOLUTION}: 4000000\n\
                 /proc/sys/kernel/osrelease: {release}\ncmdline + {word}"
            )
        };
        check(&KNOB, &of("7.3.4", "highres=disable"), "fail fatal highres=disable");
        check(&KNOB, &of("6.1.9", "highres=false"), "fail fatal highres=false");
        check(&KNOB, &of("5.10.9", "highres=false"), "fail fatal 4000 us");
        let jiffies = "/sys/devices/system/clocksource/clocksource0/current_clocksource: jiffies";
        check(&KNOB, jiffies, "fail fatal clocksource jiffies");
    }

    #[test]
    fn the_resolution_decides_without_a_configuration() {
        let of = |ns: &str| format!("/boot refused\n{RESOLUTION}: {ns}");
        check(&KNOB, &of("1"), "pass 1 ns");
        check(&KNOB, &of("4000000"), "fail fatal 4000 us");
        check(&KNOB, &format!("{}\ncmdline + highres=off", of("4000000")), "fail fatal highres=off");
        let list = "/boot refused\n/proc/timer_list: now at 5 nsecs\n| \n| cpu: 0\n|  clock 0:\n\
                    |   .resolution:     1 nsecs\n| Tick Device: mode:     1";
        check(&KNOB, list, "pass 1 ns");
        check(&KNOB, &list.replace(" 1 nsecs", " 10000000 nsecs"), "fail fatal 10000 us");
        check(&KNOB, &list.replace(" 1 nsecs", " x nsecs"), "unknown");
    }

    #[test]
    fn what_is_known_to_be_wrong_is_enough_to_fail() {
        check(&KNOB, "/boot refused\ncmdline + highres=off", "fail fatal highres=off");
        check(&KNOB, "/proc/cmdline refused\nCONFIG_HIGH_RES_TIMERS=n", "fail fatal not built in");
        check(&KNOB, "/proc/cmdline refused", "unknown");
    }
}
