//! The lockup detectors: a timer, a stopper thread and an NMI that detect hung CPUs.

use super::sources::{LOCKUP_WATCHDOGS, RT_CONFIG, SYSCTL_KERNEL};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "watchdog",
    title: "lockup detectors",
    description: "The soft lockup detector runs a timer on each CPU every 4 s and lets the stopper thread, \
                  above every priority, set a timestamp; the hard lockup detector, or NMI watchdog, raises \
                  an NMI from a performance counter to check that this timer still fires. With \
                  HARDLOCKUP_DETECTOR_BUDDY, as in Debian's kernels for arm64 and riscv64, the timer of the \
                  neighbouring CPU checks instead, without an NMI.",
    rationale: "a timer interrupt, a thread above all priorities and, on most machines, an NMI come \
                to each CPU every few seconds, whatever runs there",
    detection: "The sysctls of both detectors, their threshold (0 is off), and the CPUs they run on. The \
                kernel excludes CPUs of nohz_full= by default. On kernels before 6.14, reading a detector's \
                sysctl while none runs keeps a later 1 in another of them from enabling it; there \
                /proc/timer_list shows root whether the detectors' timer is armed, and the sysctls are read \
                only if it is. A kernel built without them has no such files, as its configuration shows.",
    side_effects: "A CPU that hangs in the kernel is no longer reported, and no longer causes a requested \
                   panic: use a hardware watchdog for that. On the housekeeping CPUs the detectors can stay \
                   active.",
    wanted: "off, or not on the audited CPUs",
    fix: || Remedy::from(Change::sysctl("kernel.watchdog", 0)).persist(Change::cmdline_add("nowatchdog")),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: BOTH,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_LOCKUP_DETECTOR", url: RT_CONFIG },
        Source { title: "kernel: softlockup detector and hardlockup detector", url: LOCKUP_WATCHDOGS },
        Source { title: "kernel: /proc/sys/kernel, watchdog and watchdog_cpumask", url: SYSCTL_KERNEL },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::StopMachine, SliceKind::Nmi],
    reads: &[BOTH, SOFT, HARD, THRESHOLD, MASK],
    facts: &[
        "/proc/timer_list",
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/boot/config-RELEASE",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/soft_watchdog: 1
                /proc/sys/kernel/nmi_watchdog: 0
                /proc/sys/kernel/watchdog_thresh: 10
                /proc/sys/kernel/watchdog_cpumask: 0-3",
        silent: "/proc/sys/kernel/soft_watchdog: 0
                 /proc/sys/kernel/nmi_watchdog: 0",
        unknown: "/proc/sys/kernel/soft_watchdog refused
                  /proc/sys/kernel/nmi_watchdog: 0
                  /proc/sys/kernel/watchdog_thresh: 10
                  /proc/sys/kernel/watchdog_cpumask: 0-3",
    },
    ..Knob::DEFAULT
};

const BOTH: &str = "/proc/sys/kernel/watchdog";
const SOFT: &str = "/proc/sys/kernel/soft_watchdog";
const HARD: &str = "/proc/sys/kernel/nmi_watchdog";
const THRESHOLD: &str = "/proc/sys/kernel/watchdog_thresh";
const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";

fn judge(machine: &MachineView) -> Judged {
    let both = machine.number_if_present(BOTH).unwrap_or_default();
    let each = [SOFT, HARD].map(|path| machine.number_if_present(path).ok().flatten());
    // It shows whether one of the two is in effect.
    let on = each.iter().any(|detector| detector.is_some_and(|on| on != 0));
    if both.is_some_and(|both| if both == 0 { on } else { each == [Some(0), Some(0)] }) {
        return Err(Judgement::unknown(format!("{BOTH} contradicts {SOFT} and {HARD}")));
    }
    if both == Some(0) {
        return Ok(Judgement::pass("lockup detectors off"));
    }
    // The switches of detectors that do not run are not read, because that changes them on some
    // kernels.
    if machine.survey.watchdog_timers.known().is_some_and(CpuSet::is_empty) {
        return Ok(Judgement::pass("no lockup detector's timer is armed"));
    }
    // Each way of disabling them is enough; a detector that is known to run decides the first.
    Judgement::any([by_mask(machine), by_threshold(machine), Judgement::all([soft(machine), hard(machine)])])
        .map(|judged| {
            let judged =
                if judged.verdict == AuditVerdict::Fail { explained(machine, judged) } else { judged };
            let relaxed = machine.has_profile(Profile::Audio) || machine.has_profile(Profile::Guest);
            if relaxed { judged.severity(Severity::Low) } else { judged }
        })
}

/// Adds the events on each CPU, and both switches if the common one does not exist.
fn explained(machine: &MachineView, judged: Judgement) -> Judgement {
    let on = |path| matches!(machine.number_if_present(path), Ok(Some(1..)));
    let judged = match (on(SOFT), on(HARD)) {
        // The buddy detector checks in the soft lockup detector's timer, which wakes its thread.
        (soft, hard) if soft != hard && soft || hard && has_buddy(machine) => judged.because(
            "a timer interrupt and a thread above all priorities come to each CPU every few \
             seconds, whatever runs there",
        ),
        (false, true) => judged.because("an NMI comes to each CPU every few seconds, whatever runs there"),
        _ => judged,
    };
    let switch = match machine.number_if_present(BOTH) {
        Ok(Some(_)) => Remedy::from(Change::sysctl("kernel.watchdog", 0)),
        _ => {
            let single = [(SOFT, "kernel.soft_watchdog"), (HARD, "kernel.nmi_watchdog")];
            let single = single.into_iter().filter(|(path, _)| on(path));
            Remedy::of(single.map(|(_, name)| Change::sysctl(name, 0)))
        }
    };
    let mask = judged.remedy.clone();
    judged.fix(mask.or(switch.persist(Change::cmdline_add("nowatchdog"))))
}

fn soft(machine: &MachineView) -> Judged {
    detector(machine, SOFT, "soft lockup detector", "SOFTLOCKUP_DETECTOR")
}

fn hard(machine: &MachineView) -> Judged {
    let name = if has_buddy(machine) { "hard lockup detector" } else { "NMI watchdog" };
    detector(machine, HARD, name, "HARDLOCKUP_DETECTOR")
}

/// True if a neighbour's timer detects hard lockups, rather than an NMI (kernel/watchdog_buddy.c).
fn has_buddy(machine: &MachineView) -> bool {
    machine.kconfig().is_ok_and(|config| config.is_yes("HARDLOCKUP_DETECTOR_BUDDY"))
}

fn detector(machine: &MachineView, path: &str, name: &str, option: &str) -> Judged {
    if machine.survey.texts.one(path) == Fact::NotCaptured {
        return Err(Judgement::unknown(format!(
            "{path} was not read: before 6.14 that can change the effect of a later write, and \
             /proc/timer_list, which shows root whether the detectors run, could not be read"
        )));
    }
    match machine.number_if_present(path)? {
        Some(0) => Ok(Judgement::pass(format!("{name} off"))),
        Some(_) => Ok(Judgement::fail(format!("{name} on"))),
        None if !machine.kconfig()?.is_yes(option) => Ok(Judgement::pass(format!("no {name}"))),
        None => Err(unknown_absent(path)),
    }
}

fn by_threshold(machine: &MachineView) -> Judged {
    match machine.number_if_present(THRESHOLD)? {
        Some(0) => Ok(Judgement::pass("watchdog_thresh 0")),
        Some(seconds) => Ok(Judgement::fail(format!("every {} s", span(seconds)))),
        None => Err(Judgement::not_applicable("watchdog_thresh does not exist")),
    }
}

/// The timer occurs five times in twice the threshold.
fn span(threshold: i64) -> String {
    let tenths = threshold.saturating_mul(4);
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

fn by_mask(machine: &MachineView) -> Judged {
    let Some(mask) = machine.cpu_list_if_present(MASK)? else {
        return Err(Judgement::not_applicable("watchdog_cpumask does not exist"));
    };
    if mask.is_empty() {
        // The kernel refuses an empty mask.
        return Err(Judgement::unknown(format!("{MASK} was truncated: it names no CPU")));
    }
    machine.require_isolation()?;
    let shared = mask.and(machine.cpus());
    if shared.is_empty() {
        return Ok(Judgement::pass(format!("not on {}", cpu_list(machine.cpus()))));
    }
    let rest = machine.housekeeping_cpus()?;
    Ok(Judgement::fail(format!("on {}", cpu_list(&shared))).fix(Change::write(MASK, rest)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::audit::finding;
    use crate::fixture::{Machine, check};
    use crate::survey_request;
    use facts::Fact;
    use facts::texts::read_texts;
    use facts::timer_list::SWITCHES;
    use host::MachineFiles;
    use model::units::CpuSet;

    const ON: &str = "/proc/sys/kernel/soft_watchdog: 1\n/proc/sys/kernel/nmi_watchdog: 1\n\
                      /proc/sys/kernel/watchdog_thresh: 10\n/proc/sys/kernel/watchdog_cpumask: 0-3";

    #[test]
    fn lines_that_keep_it_together_are_no_alternatives() {
        use crate::change::Change;
        use crate::remedy::Remedy;
        use facts::cmdline::parse_cmdline;
        let single = ["kernel.soft_watchdog", "kernel.nmi_watchdog"].map(|name| Change::sysctl(name, 0));
        let text = Remedy::of(single)
            .persist(Change::cmdline_add("nowatchdog"))
            .text(&parse_cmdline("quiet").unwrap());
        let keep = "; to keep it, kernel.soft_watchdog = 0 and kernel.nmi_watchdog = 0 in \
                    /etc/sysctl.d, or nowatchdog on";
        assert!(text.contains(keep), "{text}");
    }

    #[test]
    fn each_way_of_being_off_is_enough() {
        check(&KNOB, "", "pass soft lockup detector off; NMI watchdog off");
        check(&KNOB, ON, "fail high on CPUs 2-3; every 4 s; soft lockup detector on; NMI watchdog on");
        check(&KNOB, &format!("{ON}\n/proc/sys/kernel/watchdog_cpumask: 0-1"), "pass not on CPUs 2-3");
        check(&KNOB, &format!("{ON}\n/proc/sys/kernel/watchdog_thresh: 0"), "pass watchdog_thresh 0");
        check(
            &KNOB,
            &format!(
                "{ON}\n/proc/sys/kernel/nmi_watchdog: 0\n/proc/sys/kernel/watchdog_thresh: 3\n\
                 --profile audio"
            ),
            "fail low on CPUs 2-3; every 1.2 s; soft lockup detector on",
        );
        check(
            &KNOB,
            &format!("{ON}\n--cpus 0-3"),
            "fail high every 4 s; soft lockup detector on; NMI watchdog on",
        );
    }

    #[test]
    fn a_neighbour_that_looks_is_no_nmi() {
        let buddy = format!("{ON}\nCONFIG_HARDLOCKUP_DETECTOR_BUDDY=y");
        check(
            &KNOB,
            &buddy,
            "fail high on CPUs 2-3; every 4 s; soft lockup detector on; hard lockup detector on",
        );
        let why = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(edits);
            machine.finding(&KNOB).reason
        };
        assert!(why(ON).contains("an NMI"), "{}", why(ON));
        assert!(!why(&buddy).contains("NMI"), "{}", why(&buddy));
        assert!(!why(&format!("{buddy}\n/proc/sys/kernel/soft_watchdog: 0")).contains("NMI"));
    }

    #[test]
    fn the_switch_of_both_decides_without_the_others() {
        let off = "/proc/sys/kernel/soft_watchdog: 0\n/proc/sys/kernel/nmi_watchdog: 0\n\
                   /proc/sys/kernel/watchdog";
        check(&KNOB, &format!("{ON}\n{off}: 0"), "pass lockup detectors off");
        check(&KNOB, &format!("{ON}\n{off}: 1"), "unknown");
        check(&KNOB, &format!("{ON}\n/proc/sys/kernel/watchdog: 0"), "unknown");
        check(
            &KNOB,
            &format!("{ON}\n/proc/sys/kernel/watchdog refused"),
            "fail high on CPUs 2-3; every 4 s; soft lockup detector on; NMI watchdog on",
        );
    }

    /// Value on a live machine, where the switches are not read.
    fn unknown_from(timers: Fact<CpuSet>) -> String {
        let mut machine = Machine::base();
        machine.edit(ON);
        let (mut survey, intent) = machine.survey();
        let texts = survey_request().texts.into_iter().filter(|path| !SWITCHES.contains(path));
        survey.texts = read_texts(&MachineFiles::in_memory(machine.answers), texts);
        survey.watchdog_timers = timers;
        let found = finding(&KNOB, &survey, &intent);
        format!("{} {}{}", found.verdict.name(), found.value, found.reason)
    }

    #[test]
    fn detectors_with_unreadable_switches_are_detected_by_their_timers() {
        let none = unknown_from(Fact::Known(CpuSet::default()));
        assert!(none.starts_with("pass no lockup detector's timer is armed"), "{none}");
        let user = unknown_from(Fact::Refused(libc::EACCES));
        assert!(user.starts_with("unknown /proc/sys/kernel/soft_watchdog was not read"), "{user}");
    }

    #[test]
    fn the_fix_keeps_them_on_the_other_cpus() {
        let mut machine = Machine::base();
        machine.edit(ON);
        assert!(machine.finding(&KNOB).fix.contains("echo 0-1 >/proc/sys/kernel/watchdog_cpumask"));
    }

    #[test]
    fn what_is_not_built_in_is_off() {
        let none = "/proc/sys/kernel/soft_watchdog absent\n/proc/sys/kernel/nmi_watchdog absent\n\
                    /proc/sys/kernel/watchdog_thresh absent\n/proc/sys/kernel/watchdog_cpumask \
                    absent\nCONFIG_SOFTLOCKUP_DETECTOR=n\nCONFIG_HARDLOCKUP_DETECTOR=n";
        check(&KNOB, none, "pass no soft lockup detector; no NMI watchdog");
        check(&KNOB, &format!("{none}\nCONFIG_SOFTLOCKUP_DETECTOR=y"), "unknown");
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
    }
}
