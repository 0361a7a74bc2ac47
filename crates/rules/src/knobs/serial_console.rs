//! Serial consoles: lines on which a message takes milliseconds.

use super::sources::{PARAMETERS, SERIAL_CONSOLE};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::truncate_words;
use facts::consoles::{Console, is_serial, parse_active, parse_consoles, parse_loglevel};
use facts::line::parse_word;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "serial-console",
    title: "serial console",
    description: "Kernel messages also go to each console=, and the CPU waits for a serial line byte by \
                  byte: 87 us each at 115200 baud; hvc0 waits for the firmware (RISC-V) or for the host of a \
                  virtual machine. On PREEMPT_RT, and on converted consoles (nbcon), a thread prints; \
                  elsewhere the task that logs a message prints it, and the messages of other tasks too. A \
                  boot console (earlycon, earlyprintk) that stays is such a line, and while it exists no \
                  console has a thread outside PREEMPT_RT.",
    rationale: "a message on a serial line takes milliseconds, with interrupts off on the CPU that prints, \
                unless a thread prints",
    detection: "The active consoles, including remaining boot consoles (B in /proc/consoles, or named \
                early...), which of them print in a thread (N, from 6.12 on), the log level and whether the \
                kernel is PREEMPT_RT. The speed of the line, and whether anything is printed, are not \
                known.",
    side_effects: "Without it the messages of a crash before the log is written are lost: keep it for \
                   development, or use netconsole or kdump.",
    wanted: "no serial console on a real-time machine",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove console=ttyS... from the kernel's command line, or print only errors: boot with quiet",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Practice,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: Linux serial console", url: SERIAL_CONSOLE },
        Source { title: "kernel: command line, console=", url: PARAMETERS },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::Thread],
    reads: &[ACTIVE, CONSOLES, PRINTK, IGNORE],
    facts: &["/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/sys/class/tty/console/active: tty0 ttyS0
                /proc/consoles:
                | ttyS0                -W- (EC p a)    4:64
                cmdline + console=ttyS0,115200",
        silent: "/sys/class/tty/console/active: tty0",
        unknown: "/sys/class/tty/console/active refused",
    },
    ..Knob::DEFAULT
};

pub const ACTIVE: &str = "/sys/class/tty/console/active";
pub const CONSOLES: &str = "/proc/consoles";
pub const IGNORE: &str = "/sys/module/printk/parameters/ignore_loglevel";
const PRINTK: &str = "/proc/sys/kernel/printk";

/// Consoles that are waited for, which are serial lines and remaining boot consoles; and the names
/// of all but the latter.
pub fn slow_consoles(machine: &MachineView) -> Result<(Vec<Console>, Vec<String>), Judgement> {
    let active = machine.parsed(ACTIVE, parse_active)?.ok_or_else(|| unknown_absent(ACTIVE))?;
    let listed = machine.parsed(CONSOLES, parse_consoles).ok().flatten().unwrap_or_default();
    // The flag came with 6.7, the threads with 6.12.
    let has_threads = !machine.series().is_ok_and(|series| series < (6, 12));
    let is_threaded =
        |name: &String| has_threads && listed.iter().any(|one| one.name == *name && one.is_threaded);
    let serial = active.iter().filter(|name| is_serial(name));
    let lines = serial.map(|name| Console {
        name: name.clone(),
        is_boot: false,
        is_threaded: is_threaded(name),
        is_written: true,
    });
    let slow: Vec<Console> = lines.chain(listed.iter().filter(|one| one.is_boot).cloned()).collect();
    Ok((slow, active))
}

/// Removes the parameters that define these consoles; without such parameters the firmware selects
/// them.
fn without(machine: &MachineView, slow: &[Console]) -> Remedy {
    let printed = "or print only errors: see console-loglevel";
    let cmdline = machine.facts().cmdline.known();
    let values = cmdline.into_iter().flat_map(|line| line.values("console"));
    let is_one = |value: &str| slow.iter().any(|one| value.split(',').next() == Some(one.name.as_str()));
    let mut words: Vec<Change> = values
        .filter(|value| is_one(value))
        .map(|value| Change::cmdline_remove(format!("console={value}")))
        .collect();
    if let Some(line) = cmdline.filter(|_| slow.iter().any(|one| one.is_boot)) {
        // With "keep" it is permanent (setup_early_printk() of arch/x86/kernel/early_printk.c).
        let early = line.values("earlyprintk").filter(|value| value.contains("keep"));
        let mut of_boot: Vec<Change> =
            early.map(|value| Change::cmdline_remove(format!("earlyprintk={value}"))).collect();
        if line.has("keep_bootcon") {
            of_boot.push(Change::cmdline_remove("keep_bootcon"));
        }
        // Without a console that replaces it, it is permanent, too.
        if of_boot.is_empty() && line.has("earlycon") {
            of_boot.push(Change::cmdline_remove("earlycon"));
        }
        words.extend(of_boot);
    }
    if words.is_empty() {
        Remedy::advice(
            AdviceReason::Machine,
            "name another console on the kernel's command line, such as console=tty0: the firmware or the \
             device tree selected this one",
        )
        .note(printed)
    } else {
        Remedy::of(words).note(printed)
    }
}

fn judge(machine: &MachineView) -> Judged {
    let (slow, active) = slow_consoles(machine)?;
    if slow.is_empty() {
        let value = if active.is_empty() { "no console".to_owned() } else { truncate_words(&active) };
        return Ok(Judgement::pass(value));
    }
    let word = |one: &Console| one.name.clone() + if one.is_boot { " (boot console)" } else { "" };
    let failed = Judgement::fail(truncate_words(slow.iter().map(word))).fix(without(machine, &slow));
    if machine.facts().preempt == Preempt::Rt {
        return Ok(failed.severity(Severity::Low).because(
            "on PREEMPT_RT a thread prints, and takes time only from ordinary tasks; a kernel panic prints \
             at once",
        ));
    }
    if slow.iter().all(|one| one.is_threaded) {
        return Ok(failed
            .severity(Severity::Low)
            .because("a thread of the console prints; a kernel panic prints at once"));
    }
    let is_ignored = machine.parsed(IGNORE, parse_word).ok().flatten().is_some_and(|value| value == "Y");
    let level = machine.parsed(PRINTK, parse_loglevel).ok().flatten().filter(|_| !is_ignored);
    let quiet = level.is_some_and(|level| level <= 4);
    Ok(failed.severity(if quiet { Severity::Medium } else { Severity::High }))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const SERIAL: &str = "/sys/class/tty/console/active: tty0 ttyAMA0";
    const FULL: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                        /sys/kernel/debug/sched/preempt: none voluntary (full)\n\
                        CONFIG_PREEMPT_RT=n";

    #[test]
    fn who_prints_decides() {
        check(&KNOB, "", "pass tty0");
        check(&KNOB, "/sys/class/tty/console/active:", "pass no console");
        check(&KNOB, SERIAL, "fail low ttyAMA0");
        check(&KNOB, &format!("{SERIAL}\n{FULL}"), "fail medium ttyAMA0");
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n/proc/sys/kernel/printk: 7 4 1 7"), "fail high ttyAMA0");
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n/proc/sys/kernel/printk refused"), "fail high ttyAMA0");
        let all = "/proc/sys/kernel/printk: 4 4 1 7\n/sys/module/printk/parameters/ignore_loglevel: Y";
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n{all}"), "fail high ttyAMA0");
        let threaded = "/proc/consoles: ttyAMA0              -W- (EC Np a)  204:64";
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n{threaded}"), "fail low ttyAMA0");
        let old = format!("{SERIAL}\n{FULL}\n{threaded}\n/proc/sys/kernel/osrelease: 6.8.0");
        check(&KNOB, &old, "fail medium ttyAMA0");
        check(&KNOB, "/sys/class/tty/console/active absent", "unknown");
    }

    #[test]
    fn a_boot_console_that_stays_is_waited_for() {
        let boot = "/proc/consoles:\n| ttyAMA0              -W- (EC Np a)  204:64\n\
                    | pl11                 -W- (EB  p a)\ncmdline + keep_bootcon";
        let both = "ttyAMA0, pl11 (boot console)";
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n{boot}"), &format!("fail medium {both}"));
        check(&KNOB, &format!("{SERIAL}\n{boot}"), &format!("fail low {both}"));
        check(&KNOB, &format!("{FULL}\n{boot}"), "fail medium pl11 (boot console)");
        let mut machine = Machine::base();
        machine.edit(boot);
        assert!(machine.finding(&KNOB).fix.contains("keep_bootcon"));
        let early = "earlyprintk=serial,ttyS0,115200,keep";
        machine.edit(&format!("cmdline - keep_bootcon\ncmdline + {early}"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains(early) && !fix.contains("keep_bootcon"), "{fix}");
        machine.edit(&format!("cmdline - {early}\ncmdline + earlycon=pl011,0x9000000"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("earlycon") && !fix.contains("firmware"), "{fix}");
        // The kernel clears the flag B of one that stays.
        let early = "/proc/consoles:\n| tty0                 -WU (EC  p  )    4:1\n\
                     | earlyser0            -W- (E  p )\ncmdline + earlyprintk=serial,ttyS0,115200,keep";
        check(&KNOB, &format!("{FULL}\n{early}"), "fail medium earlyser0 (boot console)");
    }
}
