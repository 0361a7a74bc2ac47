//! Serial consoles: lines that take milliseconds for a message.

use super::console_loglevel::IGNORE;
use super::sources::{PARAMETERS, SERIAL_CONSOLE};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::truncate_words;
use facts::consoles::{is_serial, parse_active, parse_loglevel, parse_threaded};
use facts::line::parse_word;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "serial-console",
    title: "serial console",
    description: "Kernel messages also go to each console=, and a serial line is waited for byte \
                  by byte: 87 us each at 115200 baud. On PREEMPT_RT, and on consoles that were \
                  converted (nbcon), a thread prints; elsewhere whoever logs prints, and prints \
                  for the others too.",
    rationale: "a message on a serial line takes milliseconds, with interrupts off on whichever \
                CPU prints, where no thread does it",
    detection: "The consoles in use, which of them print from a thread of their own, the log \
                level and whether the kernel is PREEMPT_RT. How fast the line is, and whether \
                anything is printed, is not seen.",
    side_effects: "Without it nothing is seen of a kernel that dies before its log is written: \
                   keep it for development, or log by netconsole or kdump.",
    wanted: "no serial console where real time counts",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "take console=ttyS... off the kernel's command line, or print errors only: boot with \
             quiet",
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

const ACTIVE: &str = "/sys/class/tty/console/active";
const CONSOLES: &str = "/proc/consoles";
const PRINTK: &str = "/proc/sys/kernel/printk";

/// Without the parameters that make consoles of them; without such parameters the firmware names
/// them.
fn without(machine: &MachineView, serial: &[&String]) -> Remedy {
    let printed = "or print errors only: see console-loglevel";
    let values = || machine.facts().cmdline.known().into_iter().flat_map(|line| line.values("console"));
    let is_one = |value: &str| serial.iter().any(|name| value.split(',').next() == Some(name.as_str()));
    let words: Vec<Change> = values()
        .filter(|value| is_one(value))
        .map(|value| Change::cmdline_remove(format!("console={value}")))
        .collect();
    match words.is_empty() {
        true => Remedy::advice(
            AdviceReason::Machine,
            "name another console on the kernel's command line, such as console=tty0: the \
             firmware or the device tree chose this one",
        )
        .note(printed),
        false => Remedy::of(words).note(printed),
    }
}

fn judge(machine: &MachineView) -> Judged {
    let active = machine.parsed(ACTIVE, parse_active)?.ok_or_else(|| unknown_absent(ACTIVE))?;
    let serial: Vec<&String> = active.iter().filter(|name| is_serial(name)).collect();
    if serial.is_empty() {
        let value = if active.is_empty() { "no console".to_owned() } else { truncate_words(&active) };
        return Ok(Judgement::pass(value));
    }
    let value = truncate_words(&serial);
    if machine.facts().preempt == Preempt::Rt {
        return Ok(Judgement::fail(value).fix(without(machine, &serial)).severity(Severity::Low).because(
            "a thread prints on PREEMPT_RT, and takes time from ordinary tasks only; a kernel \
             that dies prints at once",
        ));
    }
    let threaded = machine.parsed(CONSOLES, parse_threaded).ok().flatten().unwrap_or_default();
    if serial.iter().all(|name| threaded.contains(name)) {
        return Ok(Judgement::fail(value)
            .fix(without(machine, &serial))
            .severity(Severity::Low)
            .because("a thread of the console prints; a kernel that dies prints at once"));
    }
    let is_ignored = machine.parsed(IGNORE, parse_word).ok().flatten().is_some_and(|value| value == "Y");
    let level = machine.parsed(PRINTK, parse_loglevel).ok().flatten().filter(|_| !is_ignored);
    let quiet = level.is_some_and(|level| level <= 4);
    Ok(Judgement::fail(value).fix(without(machine, &serial)).severity(if quiet {
        Severity::Medium
    } else {
        Severity::High
    }))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

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
        let own = "/proc/consoles: ttyAMA0              -W- (EC Np a)  204:64";
        check(&KNOB, &format!("{SERIAL}\n{FULL}\n{own}"), "fail low ttyAMA0");
        check(&KNOB, "/sys/class/tty/console/active absent", "unknown");
    }
}
