//! Logging to the kernel's log from user mode.

use super::sources::{PARAMETERS, SYSCTL_KERNEL};
use crate::case::Case;
use crate::change::Change;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::words::short;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "printk-devkmsg",
    title: "logging to /dev/kmsg",
    what: "Programs may write to the kernel's log through /dev/kmsg. The kernel holds each opening of it to ten messages \
           in five seconds (ratelimit); with `on` it takes all. systemd sets `on` while it boots, unless the command line says otherwise.",
    why: "a program that logs without limit floods the consoles, and whoever prints them is busy with its messages",
    tell: "The sysctl, which printk.devkmsg= on the command line sets and locks until the next boot. A program that floods the log is not seen.",
    cost: "With ratelimit messages of a chatty program are lost from the kernel's log; its own log has them.",
    wanted: "ratelimit or off",
    fix: || {
        Remedy::from(Change::sysctl("kernel.printk_devkmsg", "ratelimit"))
            .keep(Change::boot("printk.devkmsg=ratelimit"))
    },
    severity: Severity::Info,
    evidence: Evidence::Practice,
    lasts: Lasts::Runtime,
    sources: &[
        Source { title: "kernel: /proc/sys/kernel, printk_devkmsg", url: SYSCTL_KERNEL },
        Source { title: "kernel: command line, printk.devkmsg=", url: PARAMETERS },
    ],
    cures: &[Slice::IrqsOff, Slice::Thread],
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

fn judge(case: &Case) -> Judged {
    match case.line(SYSCTL)?.as_str() {
        // What the command line says locks the sysctl (`devkmsg_sysctl_set_loglvl()`).
        "on" if case.cmdline()?.has("printk.devkmsg") => {
            Ok(Judgement::fail("on").fix(Change::boot("printk.devkmsg=ratelimit")))
        }
        "on" => Ok(Judgement::fail("on")),
        value @ ("off" | "ratelimit") => Ok(Judgement::pass(value)),
        other => Err(Judgement::unknown(format!("{SYSCTL} is none of on, off, ratelimit: {}", short(other)))),
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
