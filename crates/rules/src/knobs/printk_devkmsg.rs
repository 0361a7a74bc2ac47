//! Logging to the kernel's log from user mode.

use super::sources::{PARAMETERS, SYSCTL_KERNEL};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "printk-devkmsg",
    title: "logging to /dev/kmsg",
    description: "Programs may write to the kernel's log through /dev/kmsg. The kernel limits each open file \
                  to ten messages in five seconds (ratelimit); with `on` it accepts all. systemd sets `on` \
                  at boot, unless the command line sets another value.",
    rationale: "a program that logs without limit floods the consoles, and the task that prints is busy with \
                its messages",
    detection: "The sysctl, which printk.devkmsg= on the command line sets and locks until the \
                next boot. A program that floods the log is not seen.",
    side_effects: "With ratelimit the kernel's log lacks some messages of a verbose program; the program's \
                   own log has them.",
    wanted: "ratelimit or off",
    fix: || {
        Remedy::from(Change::sysctl("kernel.printk_devkmsg", "ratelimit"))
            .persist(Change::cmdline_add("printk.devkmsg=ratelimit"))
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    persistence: Persistence::Runtime,
    sets: SYSCTL,
    sources: &[
        Source { title: "kernel: /proc/sys/kernel, printk_devkmsg", url: SYSCTL_KERNEL },
        Source { title: "kernel: command line, printk.devkmsg=", url: PARAMETERS },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::Thread],
    reads: &[SYSCTL],
    facts: &["/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/printk_devkmsg: on",
        silent: "/proc/sys/kernel/printk_devkmsg: ratelimit",
        unknown: "/proc/sys/kernel/printk_devkmsg refused",
    },
    ..Knob::DEFAULT
};

const SYSCTL: &str = "/proc/sys/kernel/printk_devkmsg";

fn judge(machine: &MachineView) -> Judged {
    match machine.line(SYSCTL)?.as_str() {
        // A setting on the command line locks the sysctl (`devkmsg_sysctl_set_loglvl()`).
        "on" if machine.cmdline()?.has("printk.devkmsg") => {
            Ok(Judgement::fail("on").fix(Change::cmdline_add("printk.devkmsg=ratelimit")))
        }
        "on" => Ok(Judgement::fail("on")),
        value @ ("off" | "ratelimit") => Ok(Judgement::pass(value)),
        other => Err(Judgement::unknown(format!(
            "invalid {SYSCTL}: expected on, off or ratelimit, found {}",
            truncate(other)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn unlimited_logging_fails() {
        check(&KNOB, "", "pass ratelimit");
        check(&KNOB, "/proc/sys/kernel/printk_devkmsg: off", "pass off");
        check(&KNOB, "/proc/sys/kernel/printk_devkmsg: on", "fail info on");
        check(&KNOB, "/proc/sys/kernel/printk_devkmsg: maybe", "unknown");
        check(&KNOB, "/proc/sys/kernel/printk_devkmsg absent", "unknown");
    }
}
