//! High-resolution timers: whether a timer can expire between two ticks.

use super::sources::{HIGHRES, PARAMETERS};
use crate::case::Case;
use crate::change::{Because, Change};
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use facts::kbool::kbool;

pub static KNOB: Knob = Knob {
    id: "high-resolution-timers",
    title: "high-resolution timers",
    what: "With high-resolution timers the kernel programs the timer of each CPU for the very moment at which the next \
           timer is due. Without them timers expire at the next tick, every 1 to 10 ms. They are built in by \
           HIGH_RES_TIMERS and switched off by highres=off.",
    why: "without them every sleep ends at a tick, up to a whole tick too late",
    tell: "The kernel's configuration, highres= on its command line, and the clocksource: with the jiffies clocksource the kernel \
           stays in low resolution. nohz= does not matter: it stops ticks, not timers. A timer device that cannot be programmed \
           for single moments keeps the resolution low too, and is not seen here: the `.resolution` line of /proc/timer_list \
           tells, 1 nsecs where all is well.",
    cost: "None worth naming: hardware without a fit timer stays as it is.",
    wanted: "built in and switched on",
    fix: || Change::config("HIGH_RES_TIMERS", "y").into(),
    severity: Severity::Fatal,
    evidence: Evidence::Documented,
    lasts: Lasts::Build,
    sources: &[
        Source { title: "kernel: high resolution timers and dynamic ticks", url: HIGHRES },
        Source { title: "kernel: command line, highres=", url: PARAMETERS },
    ],
    cures: &[Slice::TimerIrq, Slice::TimerSoftirq],
    facts: &["/boot/config-RELEASE", "/proc/cmdline", CLOCKSOURCE],
    judge,
    examples: Examples {
        fires: "cmdline + highres=off",
        silent: "/sys/devices/system/clocksource/clocksource0/current_clocksource: tsc",
        unknown: "/boot refused",
    },
    ..Knob::DEFAULT
};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn judge(case: &Case) -> Judged {
    Judgement::all([built(case), switched_on(case), precise_clock(case)])
}

fn built(case: &Case) -> Judged {
    let built = case.kconfig()?.is_yes("HIGH_RES_TIMERS");
    Ok(if built { Judgement::pass("built in") } else { Judgement::fail("not built in") })
}

fn switched_on(case: &Case) -> Judged {
    // The kernel keeps its default, on, where it does not understand the value.
    let off = case.cmdline()?.values("highres").filter_map(kbool).next_back() == Some(false);
    Ok(if off {
        Judgement::fail("highres=off").fix(Change::boot_without("highres"))
    } else {
        Judgement::pass("switched on")
    })
}

fn precise_clock(case: &Case) -> Judged {
    let clock = case.known(&case.facts().clocksource, CLOCKSOURCE)?;
    Ok(if matches!(clock.as_str(), "jiffies" | "refined-jiffies") {
        Judgement::fail(format!("clocksource {clock}"))
            .fix(Remedy::advice(Because::Kernel, "give the kernel a clocksource of hardware: none is found, or clocksource= on its command line chose this one"))
            .lasts(Lasts::Boot)
    } else {
        Judgement::pass("")
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn all_that_it_takes_must_be_there() {
        check(&KNOB, "", "pass built in; switched on");
        check(&KNOB, "CONFIG_HIGH_RES_TIMERS=n", "fail fatal not built in");
        check(&KNOB, "CONFIG_HIGH_RES_TIMERS=n\ncmdline + highres=0", "fail fatal not built in; highres=off");
        check(&KNOB, "cmdline + highres=off\ncmdline + highres=on", "pass built in; switched on");
        check(&KNOB, "cmdline + highres=maybe", "pass built in; switched on");
        check(&KNOB, "cmdline + nohz=off", "pass built in; switched on");
        let jiffies = "/sys/devices/system/clocksource/clocksource0/current_clocksource: jiffies";
        check(&KNOB, jiffies, "fail fatal clocksource jiffies");
    }

    #[test]
    fn what_is_known_to_be_wrong_is_enough_to_fail() {
        check(&KNOB, "/boot refused\ncmdline + highres=off", "fail fatal highres=off");
        check(&KNOB, "/proc/cmdline refused\nCONFIG_HIGH_RES_TIMERS=n", "fail fatal not built in");
        check(&KNOB, "/proc/cmdline refused", "unknown");
    }
}
