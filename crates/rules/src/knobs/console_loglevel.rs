//! Log level of the console: the kernel messages that are printed on it.

use super::serial_console::{ACTIVE, CONSOLES, IGNORE, slow_consoles};
use super::sources::{PARAMETERS, SYSCTL_KERNEL};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use facts::consoles::{parse_consoles, parse_loglevel};
use facts::line::parse_line;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "console-loglevel",
    title: "console log level",
    description: "Kernel messages of a level below the first number of kernel.printk are printed on the \
                  consoles; the log keeps all of them. `quiet` sets it to 4 (errors and worse), unless the \
                  kernel was built with another number. ignore_loglevel prints all messages.",
    rationale: "the task that logs a message prints it on the consoles, with interrupts off, unless a kernel \
                thread does it (PREEMPT_RT, newer drivers), and one message takes milliseconds on a serial \
                line",
    detection: "The sysctl, and printk's parameter ignore_loglevel. On PREEMPT_RT, and on consoles with an N \
                in /proc/consoles (from 6.12 on, and with no boot console left), a thread prints, except \
                during a kernel panic. If no console can be written to (W in /proc/consoles, which ttynull \
                lacks) nothing is printed.",
    side_effects: "Messages appear only in the log (dmesg). If the machine hangs, those that were not \
                   printed are lost.",
    wanted: "at most 4, as quiet sets it",
    fix: || Remedy::all([printed(), heeded()]),
    severity: Severity::Low,
    evidence: EvidenceKind::Practice,
    persistence: Persistence::Runtime,
    sets: SYSCTL,
    sources: &[
        Source { title: "kernel: /proc/sys/kernel, printk", url: SYSCTL_KERNEL },
        Source { title: "kernel: command line, loglevel=, quiet and ignore_loglevel", url: PARAMETERS },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::Thread],
    reads: &[SYSCTL, IGNORE, ACTIVE, CONSOLES],
    facts: &["/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/printk: 7	4	1	7
                /sys/module/printk/parameters/ignore_loglevel: N",
        silent: "/proc/sys/kernel/printk: 4	4	1	7
                 /sys/module/printk/parameters/ignore_loglevel: N",
        unknown: "/proc/sys/kernel/printk refused
                  /sys/module/printk/parameters/ignore_loglevel: N",
    },
    ..Knob::DEFAULT
};

const SYSCTL: &str = "/proc/sys/kernel/printk";

fn judge(machine: &MachineView) -> Judged {
    // All consoles are listed here, including net and memory consoles, which ACTIVE omits.
    if machine
        .parsed(CONSOLES, parse_consoles)
        .is_ok_and(|all| all.is_some_and(|all| !all.iter().any(|console| console.is_written)))
    {
        return Ok(Judgement::pass("no console prints"));
    }
    // A thread prints on PREEMPT_RT, and a screen is fast; the consoles only affect the severity.
    let waited_for = || {
        let slow = slow_consoles(machine).map(|(slow, _)| slow).unwrap_or_default();
        slow.iter().any(|console| !console.is_threaded)
    };
    let threaded = machine.facts().preempt == Preempt::Rt;
    let severity = if !threaded && waited_for() { Severity::Medium } else { Severity::Low };
    Judgement::all([level(machine), ignored(machine)]).map(|judged| judged.severity(severity))
}

/// Prints only errors.
fn printed() -> Remedy {
    let boot =
        [Change::cmdline_add("quiet"), Change::cmdline_remove("debug"), Change::cmdline_remove("loglevel")];
    boot.into_iter().fold(Change::sysctl("kernel.printk", 4).into(), Remedy::persist)
}

fn heeded() -> Remedy {
    Remedy::from(Change::write(IGNORE, "N")).persist(Change::cmdline_remove("ignore_loglevel"))
}

fn level(machine: &MachineView) -> Judged {
    let level = machine.parsed(SYSCTL, parse_loglevel)?.ok_or_else(|| unknown_absent(SYSCTL))?;
    Ok(Judgement::fail_if(level > 4, format!("level {level}")).fix(printed()))
}

fn ignored(machine: &MachineView) -> Judged {
    match machine.parsed(IGNORE, parse_line)?.ok_or_else(|| unknown_absent(IGNORE))?.as_str() {
        "N" | "0" => Ok(Judgement::pass("")),
        "Y" | "1" => Ok(Judgement::fail("ignore_loglevel: all are printed").fix(heeded())),
        _ => Err(Judgement::unknown(format!("{IGNORE} is neither Y nor N"))),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const LOUD: &str = "/proc/sys/kernel/printk: 7 4 1 7";
    const FULL: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                        /sys/kernel/debug/sched/preempt: none voluntary (full)\n\
                        CONFIG_PREEMPT_RT=n";

    #[test]
    fn a_serial_line_on_a_kernel_that_prints_synchronously_is_more_severe() {
        check(&KNOB, "", "pass level 4");
        check(&KNOB, LOUD, "fail low level 7");
        check(&KNOB, &format!("{LOUD}\n{FULL}"), "fail low level 7");
        check(
            &KNOB,
            &format!("{LOUD}\n{FULL}\n/sys/class/tty/console/active: tty0 ttyS0"),
            "fail medium level 7",
        );
        let own = "/proc/consoles: ttyS0                -W- (EC Np a)    4:64";
        let threaded = format!("{LOUD}\n{FULL}\n/sys/class/tty/console/active: tty0 ttyS0\n{own}");
        check(&KNOB, &threaded, "fail low level 7");
        let old = format!("{threaded}\n/proc/sys/kernel/osrelease: 6.8.0");
        check(&KNOB, &old, "fail medium level 7");
        let boot = "/proc/consoles: uart8250             -W- (EB  p a)";
        check(&KNOB, &format!("{LOUD}\n{FULL}\n{boot}"), "fail medium level 7");
        check(
            &KNOB,
            "/sys/module/printk/parameters/ignore_loglevel: Y",
            "fail low ignore_loglevel: all are printed",
        );
    }

    #[test]
    fn without_a_console_nothing_is_printed() {
        let consoles = |list: &str| format!("{LOUD}\n/proc/consoles:{list}");
        check(&KNOB, &consoles(" ttynull0             --- (EC  p  )"), "pass no console prints");
        check(&KNOB, &consoles(""), "pass no console prints");
        check(&KNOB, &consoles(" netcon0              -W- (E   p  )"), "fail low level 7");
    }

    #[test]
    fn what_cannot_be_read_is_no_pass() {
        check(&KNOB, "/sys/module/printk/parameters/ignore_loglevel refused", "unknown");
        check(&KNOB, "/sys/module/printk/parameters/ignore_loglevel absent", "unknown");
        check(&KNOB, &format!("{LOUD}\n/sys/module/printk refused"), "fail low level 7");
        check(&KNOB, "/proc/sys/kernel/printk: loud", "unknown");
    }
}
