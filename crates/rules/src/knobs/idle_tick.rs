//! Tick of idle CPUs: whether each pause of a periodic loop stops it and each wake-up restarts it.

use super::idle_poll;
use super::sources::{IDLE_MENU_C, NO_HZ, PARAMETERS, RT_CONFIG};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use crate::words::truncate;
use facts::Fact;
use facts::cmdline::Cmdline;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "idle-tick",
    title: "tick of idle CPUs",
    description: "With NO_HZ an idle CPU stops its tick, and restarts it, with the skipped accounting, on \
                  the way to the next thread. With nohz=off, or on a kernel with HZ_PERIODIC, the tick \
                  continues.",
    rationale: "restarting the tick takes time between the timer interrupt and the thread, at each wake-up \
                after a pause longer than a tick",
    detection: "nohz= on the command line and the kernel's configuration. With the idle governor menu or \
                teo, the kernel (from 4.17 on) keeps the tick in pauses that it expects to be shorter than a \
                tick: only loops with a longer period are affected, and the severity is low. The length of \
                the pauses is not known. The rule does not apply to guests, where each tick of an idle CPU \
                interrupts the host.",
    side_effects: "A tick on each idle CPU, 100 to 1000 times a second: more power, fewer deep idle states, \
                   and a wake-up that coincides with a tick waits some microseconds for it. skew_tick=1 \
                   spreads the ticks.",
    wanted: "the tick continues on idle CPUs",
    fix: || Change::cmdline_add("nohz=off").into(),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "the kernel's guide advises against NO_HZ for periodic loops, tuned's profile cpu-partitioning \
               sets nohz=on, and rtcqs wants a tickless kernel: `onbeat measure` with the loop's own period, \
               with and without nohz=off, and `onbeat compare` the two",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_NO_HZ", url: RT_CONFIG },
        Source {
            title: "kernel: reducing scheduling-clock ticks, omit ticks for idle CPUs, known \
                    issues",
            url: NO_HZ,
        },
        Source { title: "kernel: command line, nohz=", url: PARAMETERS },
        Source {
            title: "kernel source: drivers/cpuidle/governors/menu.c, menu_select() keeps the tick",
            url: IDLE_MENU_C,
        },
    ],
    cures: &[SliceKind::IdleExit],
    after: &["nohz-full"],
    conflicts: &["tick-off"],
    reads: &[GOVERNOR],
    facts: &[
        "/proc/cmdline",
        "/boot/config-RELEASE",
        "/sys/devices/system/cpu/nohz_full",
        "/proc/cpuinfo",
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/cpuidle/current_driver",
    ],
    judge,
    examples: Examples {
        fires: "CONFIG_NO_HZ_COMMON=y
                /sys/devices/system/cpu/nohz_full:   (null)
                /sys/class/dmi/id/sys_vendor: Maker
                /sys/class/dmi/id/product_name: Desk
                /proc/cpuinfo:
                | vendor_id : GenuineIntel
                | flags : fpu tsc",
        silent: "cmdline + nohz=off",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor_ro";
const FULL: &str = "/sys/devices/system/cpu/nohz_full";

fn judge(machine: &MachineView) -> Judged {
    if !machine.has_profile(Profile::ControlLoop) {
        return Err(Judgement::not_applicable("it applies to loops that sleep until their next period"));
    }
    let cmdline = machine.cmdline_or_built_in()?;
    if keeps_full(machine, cmdline)? {
        return Err(Judgement::not_applicable(
            "audited CPUs are in nohz_full=, which needs the tick to stop: see nohz-full first",
        ));
    }
    if let Some((value, false)) = cmdline.in_effect("nohz", |value| machine.truth(value)) {
        return Ok(Judgement::pass(format!("nohz={}", truncate(value))));
    }
    // A CPU that polls when it is idle keeps its tick.
    match idle_poll::polls(machine, cmdline)? {
        Some("nohlt") => return Ok(Judgement::pass("nohlt keeps it")),
        Some(word) => {
            let words = format!("as long as {word} is given, the tick continues");
            return Err(Judgement::not_applicable(words));
        }
        None => {}
    }
    let built = ["NO_HZ_COMMON", "NO_HZ_IDLE", "NO_HZ_FULL", "NO_HZ"];
    match machine.kconfig() {
        Ok(config) if !built.iter().any(|option| config.get(option) == OptionValue::Yes) => {
            return Ok(Judgement::pass("built without NO_HZ"));
        }
        // The list exists with NO_HZ_FULL only, which implies a tick that stops.
        Err(why) if machine.facts().nohz_full.known().is_none() => return Err(why),
        _ => {}
    }
    if machine.is_virtual()? {
        return Err(Judgement::not_applicable(
            "in a guest each tick of an idle CPU interrupts its host, and stopping it is cheaper",
        ));
    }
    Ok(match keeper(machine) {
        Some(governor) => {
            Judgement::fail(format!("it stops, except in pauses that {governor} expects to be short"))
                .severity(Severity::Low)
        }
        // The idle loop then stops the tick only after one came in the same pause (do_idle() and
        // idle_call_stop_or_retain_tick() of kernel/sched/idle.c).
        None if has_no_driver(machine) && machine.series().is_ok_and(|series| series >= (7, 2)) => {
            Judgement::fail("it stops in pauses longer than a tick").severity(Severity::Low)
        }
        None => Judgement::fail("it stops"),
    })
}

/// True if the tick of audited CPUs is to stop (nohz_full=).
fn keeps_full(machine: &MachineView, cmdline: &Cmdline) -> Result<bool, Judgement> {
    match &machine.facts().nohz_full {
        // A kernel without the option has no such file.
        Fact::Absent => Ok(false),
        Fact::NotRunning if !cmdline.has("nohz_full") && !has_flag(cmdline) => Ok(false),
        full => Ok(!machine.known(full, FULL)?.and(machine.cpus()).is_empty()),
    }
}

/// True if isolcpus= has the flag that does what nohz_full= does.
fn has_flag(cmdline: &Cmdline) -> bool {
    cmdline.values("isolcpus").any(|value| value.split(',').any(|flag| flag == "nohz"))
}

/// Governor of idle states, if it keeps the tick in short pauses; it only affects the severity.
fn keeper(machine: &MachineView) -> Option<String> {
    // Without a driver no governor is called (cpuidle_idle_call() in kernel/sched/idle.c).
    machine.facts().cpuidle_driver.known().filter(|driver| *driver != "none")?;
    let governor = machine.line_if_present(GOVERNOR).ok().flatten()?;
    let keeps = matches!(governor.as_str(), "menu" | "teo") && machine.series().is_ok_and(|is| is >= (4, 17));
    keeps.then_some(governor)
}

/// True if the idle loop has no driver to call: a kernel built with CPU_IDLE says none.
fn has_no_driver(machine: &MachineView) -> bool {
    match &machine.facts().cpuidle_driver {
        Fact::Known(driver) => driver == "none",
        driver => *driver == Fact::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const BUILT: &str = "CONFIG_NO_HZ_COMMON=y";

    #[test]
    fn the_last_word_that_the_kernel_understands_decides() {
        check(&KNOB, BUILT, "fail low it stops, except in pauses that menu expects to be short");
        check(&KNOB, &format!("{BUILT}\ncmdline + nohz=off"), "pass nohz=off");
        check(&KNOB, &format!("{BUILT}\ncmdline + nohz=0\ncmdline + nohz=?"), "pass nohz=0");
        check(&KNOB, &format!("{BUILT}\ncmdline + nohz=off\ncmdline + nohz=on"), "fail low");
        check(&KNOB, &format!("{BUILT}\ncmdline + idle=poll"), "not-applicable");
        let mut machine = Machine::base();
        machine.edit(&format!("{BUILT}\ncmdline + nohz=on"));
        let fix = machine.finding(&KNOB).fix;
        assert_eq!(fix, "replace nohz=on by nohz=off on the kernel's command line");
    }

    #[test]
    fn the_governor_weighs_it() {
        let governor = |text: &str| format!("{BUILT}\n{}{text}", super::GOVERNOR);
        check(&KNOB, &governor(": teo"), "fail low it stops, except in pauses that teo expects to be short");
        check(&KNOB, &governor(": ladder"), "fail medium it stops");
        check(&KNOB, &governor(" absent"), "fail medium it stops");
        check(&KNOB, &governor(" refused"), "fail medium it stops");
        let no_driver = "/sys/devices/system/cpu/cpuidle/current_driver: none";
        check(&KNOB, &format!("{BUILT}\n{no_driver}"), "fail medium it stops");
        let new = format!("{BUILT}\n/proc/sys/kernel/osrelease: 7.2.1\n{no_driver}");
        check(&KNOB, &new, "fail low it stops in pauses longer than a tick");
        check(&KNOB, &new.replace("none", "haltpoll").replace(BUILT, &governor(": ladder")), "fail medium");
        check(&KNOB, &format!("{BUILT}\n/proc/sys/kernel/osrelease: 4.9.0"), "fail medium it stops");
    }

    #[test]
    fn it_is_for_periodic_loops_on_metal() {
        for profile in ["busy-poll", "audio", "guest"] {
            check(&KNOB, &format!("{BUILT}\n--profile {profile}"), "not-applicable");
        }
        check(&KNOB, &format!("{BUILT}\n/sys/hypervisor/type: xen"), "not-applicable");
        check(&KNOB, &format!("{BUILT}\n/sys/devices/system/cpu/nohz_full: 2-3"), "not-applicable");
        check(&KNOB, &format!("{BUILT}\n/sys/devices/system/cpu/nohz_full: 1\n--cpus 2-3"), "fail low");
        check(&KNOB, &format!("{BUILT}\n/sys/devices/system/cpu/nohz_full refused"), "unknown");
    }

    #[test]
    fn what_was_not_built_in_cannot_stop_it() {
        let without = "CONFIG_NO_HZ_FULL=n\nCONFIG_NO_HZ_COMMON=n";
        check(&KNOB, without, "pass built without NO_HZ");
        check(&KNOB, "/boot refused\n/sys/devices/system/cpu/nohz_full absent", "unknown");
        check(&KNOB, "/boot refused\ncmdline + nohz=off", "pass nohz=off");
    }
}
