//! Polling for corrected machine checks, x86 only.

use super::sources::{PARAMETERS, SYSFS_MCE};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use facts::Fact;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "machine-check-polling",
    title: "polling for machine checks",
    description: "On x86 a timer on each CPU checks for corrected errors, every five minutes and more often \
                  after an error. Uncorrected errors raise an exception instead.",
    rationale: "a timer on each CPU, isolated or not, reads the registers of all error banks there",
    detection: "check_interval and ignore_ce, which apply to all CPUs, and mce= on the command line. Whether \
                an interrupt also reports corrected errors (CMCI), as on most Intel processors, is not \
                known. The files do not exist if the kernel has no X86_MCE, or if the processor has neither \
                of the flags mce and mca, as under some hypervisors.",
    side_effects: "With check_interval 0, corrected errors that no interrupt reports are missed, and with \
                   them the first signs of failing memory. ignore_ce also disables that interrupt; mce=off \
                   also disables the handling of uncorrected errors: a machine that should stop continues \
                   with corrupt data.",
    wanted: "check_interval 0, with machine checks and their interrupt left on",
    fix: || {
        Remedy::from(Change::write(INTERVAL, 0)).note(
            "only if corrected errors are watched by other means (CMCI, the firmware, a service \
             processor)",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "it runs once in five minutes and takes microseconds: `onbeat measure -D 1h` with timer \
               interrupts shows whether giving up the reports is worth it",
    persistence: Persistence::Runtime,
    sets: INTERVAL,
    sources: &[
        Source { title: "kernel: sysfs-mce, check_interval and ignore_ce", url: SYSFS_MCE },
        Source { title: "kernel: command line, mce=", url: PARAMETERS },
    ],
    cures: &[SliceKind::TimerSoftirq, SliceKind::TimerIrq],
    reads: &[INTERVAL, IGNORED],
    facts: &["/proc/cmdline", "/proc/cpuinfo", "/proc/sys/kernel/arch", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/arch: x86_64
                /sys/devices/system/machinecheck/machinecheck0/check_interval: 300
                /sys/devices/system/machinecheck/machinecheck0/ignore_ce: 0",
        silent: "/proc/sys/kernel/arch: x86_64
                 /sys/devices/system/machinecheck/machinecheck0/check_interval: 0
                 /sys/devices/system/machinecheck/machinecheck0/ignore_ce: 0",
        unknown: "/proc/sys/kernel/arch: x86_64
                  /sys/devices/system/machinecheck/machinecheck0/check_interval refused
                  /sys/devices/system/machinecheck/machinecheck0/ignore_ce: 0",
    },
    ..Knob::DEFAULT
};

const INTERVAL: &str = "/sys/devices/system/machinecheck/machinecheck0/check_interval";
const IGNORED: &str = "/sys/devices/system/machinecheck/machinecheck0/ignore_ce";

fn judge(machine: &MachineView) -> Judged {
    machine.require_x86()?;
    let off = switched_off(machine);
    if !matches!(&off, Ok(judged) if judged.verdict == AuditVerdict::Fail) {
        there(machine)?;
    }
    Judgement::all([off, ignored(machine), polled(machine)])
}

/// Returns early if nothing is polled: the kernel creates the files only for processors with both
/// flags.
fn there(machine: &MachineView) -> Result<(), Judgement> {
    let absent = |path| matches!(machine.number_if_present(path), Ok(None));
    if !absent(INTERVAL) || !absent(IGNORED) {
        return Ok(());
    }
    if machine.kconfig().is_ok_and(|config| !config.is_yes("X86_MCE")) {
        return Err(Judgement::not_applicable("the kernel has no X86_MCE"));
    }
    match &machine.facts().cpu_flags {
        Fact::Known(flags) if !["mce", "mca"].iter().all(|name| flags.iter().any(|flag| flag == name)) => {
            Err(Judgement::not_applicable("the processor has no machine checks"))
        }
        _ => Ok(()),
    }
}

fn switched_off(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline()?;
    if cmdline.values("mce").any(|value| value == "off") || cmdline.has("nomce") {
        return Ok(Judgement::fail("machine checks are off")
            .severity(Severity::Medium)
            .because("uncorrected errors are not handled: this saves no more time than check_interval 0")
            .fix(
                Remedy::from(Change::cmdline_remove("mce=off"))
                    .and(Change::cmdline_remove("nomce"))
                    .and(Change::write(INTERVAL, 0)),
            ));
    }
    Ok(Judgement::pass(""))
}

fn ignored(machine: &MachineView) -> Judged {
    match machine.number_if_present(IGNORED)? {
        Some(0) => Ok(Judgement::pass("")),
        Some(_) => Ok(Judgement::fail("ignore_ce 1")
            .severity(Severity::Info)
            .because(
                "the kernel no longer reports corrected errors; check_interval 0 stops the polling and keeps \
                 the interrupt that reports them",
            )
            .fix(not_ignored(machine))),
        None => Err(unknown_absent(IGNORED)),
    }
}

/// Handles corrected errors again, without polling for them.
fn not_ignored(machine: &MachineView) -> Remedy {
    let enabling = Remedy::from(Change::write(IGNORED, 0));
    let polled = machine.number_if_present(INTERVAL) != Ok(Some(0));
    let both = if polled { enabling.and(Change::write(INTERVAL, 0)) } else { enabling };
    both.persist(Change::cmdline_remove("mce=ignore_ce"))
}

fn polled(machine: &MachineView) -> Judged {
    // Polling disabled by ignore_ce has no interval.
    if machine.number_if_present(IGNORED).is_ok_and(|ignored| ignored.is_some_and(|ignored| ignored != 0)) {
        return Ok(Judgement::pass(""));
    }
    match machine.number_if_present(INTERVAL)? {
        Some(0) => Ok(Judgement::pass("check_interval 0")),
        Some(seconds) => Ok(Judgement::fail(format!("every {seconds} s"))),
        None => Err(unknown_absent(INTERVAL)),
    }
}

#[cfg(test)]
mod tests {
    use super::{IGNORED, INTERVAL, KNOB};
    use crate::fixture::{Machine, check};

    #[test]
    fn polling_is_what_costs() {
        check(&KNOB, "", "pass check_interval 0");
        check(&KNOB, &format!("{INTERVAL}: 300"), "fail low every 300 s");
        check(&KNOB, &format!("{INTERVAL}: 300\n{IGNORED}: 1"), "fail info ignore_ce 1");
        check(&KNOB, &format!("{IGNORED} refused"), "unknown");
        check(&KNOB, &format!("{IGNORED} refused\n{INTERVAL}: 300"), "fail low every 300 s");
        check(&KNOB, &format!("{INTERVAL} absent"), "unknown");
        check(&KNOB, "/proc/sys/kernel/arch: aarch64", "not-applicable x86 only; this machine is aarch64");
    }

    #[test]
    fn nothing_is_polled_where_there_are_no_machine_checks() {
        let none = "/sys/devices/system/machinecheck absent\nCONFIG_X86_MCE=";
        check(&KNOB, &format!("{none}n"), "not-applicable the kernel has no X86_MCE");
        let flags = |flags| format!("{none}y\n/proc/cpuinfo:\n| flags : fpu {flags}");
        check(&KNOB, &flags("mce mca"), "unknown");
        check(&KNOB, &flags("mca"), "not-applicable the processor has no machine checks");
        check(&KNOB, &format!("{none}y\n/proc/cpuinfo refused"), "unknown");
        check(
            &KNOB,
            &format!("{none}n\n/sys/devices/system/machinecheck refused\n{INTERVAL} refused"),
            "unknown",
        );
    }

    #[test]
    fn switching_machine_checks_off_is_no_way() {
        let off = "cmdline + mce=off\n/sys/devices/system/machinecheck absent";
        check(&KNOB, off, "fail medium machine checks are off");
        let mut machine = Machine::base();
        machine.edit(off);
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("remove ") && fix.contains("mce=off"), "{fix}");
    }
}
