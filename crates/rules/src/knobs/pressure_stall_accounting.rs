//! Pressure stall information: accounting at each sleep and wake-up of a task.

use super::sources::{PARAMETERS, PRESSURE};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "pressure-stall-accounting",
    title: "pressure stall accounting",
    description: "PSI records the time for which tasks wait for a CPU, memory or a device, for the whole \
                  machine and for each control group, and shows it in /proc/pressure.",
    rationale: "each task switch does more work under the run queue's lock, once for every level of control \
                groups above the task",
    detection: "/proc/pressure, which the kernel makes only where PSI is on (5.6 on; older ones \
                always); else psi= on its command line and its configuration.",
    side_effects: "Without it systemd-oomd and other programs that watch memory pressure do not work; the \
                   kernel's out-of-memory killer remains.",
    wanted: "off, unless a program uses it",
    fix: || Remedy::from(Change::cmdline_add("psi=0")).note("unless systemd-oomd or a program uses it"),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "according to the kernel its cost is invisible in common workloads, and visible if tasks do \
               little else than switch: `onbeat measure` with psi=0 and without, and `onbeat compare` the \
               two",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: pressure stall information", url: PRESSURE },
        Source { title: "kernel: command line, psi=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Switch],
    reads: &[DIR],
    facts: &["/proc/cmdline", "/boot/config-RELEASE", "/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "CONFIG_PSI=y
                /proc/pressure/cpu: some avg10=0.00 avg60=0.00 avg300=0.00 total=0",
        silent: "CONFIG_PSI=y
                 /proc/pressure absent
                 cmdline + psi=0",
        unknown: "/proc/pressure refused",
    },
    ..Knob::DEFAULT
};

const DIR: &str = "/proc/pressure/";

fn judge(machine: &MachineView) -> Judged {
    let files = machine.parsed(DIR, |names| Ok(names.lines().filter(|name| !name.is_empty()).count()))?;
    // Older kernels create the files even if it is off, and show nothing there.
    if files.is_some_and(|count| count > 0) && machine.series()? >= (5, 6) {
        return Ok(on(machine));
    }
    if machine.kconfig().is_ok_and(|config| !config.is_yes("PSI")) {
        return Err(Judgement::not_applicable("the kernel has no PSI"));
    }
    let asked = machine.cmdline_or_built_in()?.values("psi");
    let asked = asked.filter_map(|value| machine.truth(value)).next_back();
    if asked == Some(false) {
        return Ok(Judgement::pass("psi=0"));
    }
    if files.is_none() && machine.shows_by_absence() && machine.series()? >= (5, 6) {
        return Err(Judgement::not_applicable("the kernel has no PSI, or it is off: no /proc/pressure"));
    }
    if asked.is_none() && machine.kconfig()?.is_yes("PSI_DEFAULT_DISABLED") {
        return Ok(Judgement::pass("off by default"));
    }
    // A stopped kernel has no files that show it.
    if machine.survey.is_stopped || files.is_some_and(|count| count > 0) {
        return Ok(on(machine));
    }
    Err(Judgement::unknown(
        "/proc/pressure is not there, though the kernel should have it: read where all of /proc \
         is mounted",
    ))
}

fn on(machine: &MachineView) -> Judgement {
    // Accounting costs little for a task that hardly ever sleeps.
    let severity = if machine.has_profile(Profile::BusyPoll) { Severity::Info } else { Severity::Low };
    Judgement::fail("on").severity(severity)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_directory_shows_that_it_is_on() {
        let on = "/proc/pressure/cpu: some avg10=0.00";
        check(&KNOB, on, "fail low on");
        check(&KNOB, &format!("{on}\n--profile busy-poll"), "fail info on");
        check(&KNOB, "/proc/pressure refused", "unknown");
        let old = format!("{on}\n/proc/sys/kernel/osrelease: 5.4.0\nCONFIG_PSI=y");
        check(&KNOB, &old, "unknown");
        check(
            &KNOB,
            &format!(
                "{old}\n/boot/config-5.4.0:\n| # Automatically generated\n| # Linux/x86 5.4.0 \
                 Kernel Configuration\n| CONFIG_PSI=y\n| # Kernel hacking"
            ),
            "fail low on",
        );
        check(&KNOB, &format!("{old}\ncmdline + psi=0"), "pass psi=0");
    }

    #[test]
    fn its_absence_must_have_a_reason() {
        let absent = "/proc/pressure absent\nCONFIG_PSI=y";
        check(&KNOB, absent, "unknown");
        check(&KNOB, &format!("{absent}\nCONFIG_PSI_DEFAULT_DISABLED=y"), "pass off by default");
        check(&KNOB, &format!("{absent}\nCONFIG_PSI_DEFAULT_DISABLED=y\ncmdline + psi=1"), "unknown");
        check(&KNOB, &format!("{absent}\n/boot refused\ncmdline + psi=0"), "pass psi=0");
        check(&KNOB, "/proc/pressure absent\nCONFIG_PSI=n", "not-applicable the kernel has no PSI");
    }
}
