//! Polling when idle: no exit latency, at the expense of everything else.

use super::sources::{NO_HZ, PARAMETERS, RT_HARDWARE};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use facts::cmdline::Cmdline;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "idle-poll",
    title: "polling when idle",
    description: "With idle=poll (x86), nohlt (others), or idle=nop and idle=yield (arm64, 7.3) no CPU ever \
                  sleeps: the idle loop spins. No CPU has to leave an idle state, but all of them run hot \
                  all the time, including the housekeeping CPUs. idle=wfi is arm64's default and does not \
                  poll.",
    rationale: "CPUs that never idle lose their turbo and may be throttled by heat; hardware threads of one \
                core slow each other down, and a guest occupies its host's CPU for nothing",
    detection: "The kernel's command line, whether CPUs share cores, and whether the machine is a guest. For \
                nohlt, it is not known whether the kernel was built to honour it.",
    side_effects: "Without it a wake-up includes the exit latency of the idle state: limit the states on the \
                   audited CPUs instead, which can be undone at run time.",
    wanted: "not given; limit the idle states instead",
    fix: || off("idle=poll").or(Change::cmdline_remove("nohlt")),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "on hardware with sufficient cooling it has the shortest wake-ups: `onbeat compare` with a run \
               where only the first idle state is allowed shows whether it gains anything",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, idle= and nohlt", url: PARAMETERS },
        Source { title: "kernel: considering hardware, virtualization", url: RT_HARDWARE },
        Source { title: "kernel: reducing scheduling-clock ticks, known issues", url: NO_HZ },
    ],
    cures: &[SliceKind::Frequency, SliceKind::Unexplained],
    facts: &[
        "/proc/cmdline",
        "/proc/sys/kernel/arch",
        "/proc/sys/kernel/osrelease",
        "/proc/cpuinfo",
        "/sys/devices/system/cpu/cpuN/topology/core_cpus_list",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/arch: x86_64
                cmdline + idle=poll",
        silent: "/proc/sys/kernel/arch: x86_64
                 cmdline - idle=poll",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Removes polling, with a note on avoiding deep idle states without it.
fn off(word: &str) -> Remedy {
    Remedy::from(Change::cmdline_remove(word))
        .note("keep /dev/cpu_dma_latency open with a limit, or disable deep idle states on the audited CPUs")
}

/// Word by which the idle loop polls, keeps the tick and never enters an idle state; of nohlt and
/// hlt the last one counts (kernel/sched/idle.c, `cpu_idle_poll_setup()` and
/// `cpu_idle_nopoll_setup()`, with GENERIC_IDLE_POLL_SETUP: arm, arm64, riscv and others).
pub fn polls(machine: &MachineView, cmdline: &Cmdline) -> Result<Option<&'static str>, Judgement> {
    let x86 = match machine.require_x86() {
        Ok(()) => true,
        Err(early) if early.verdict == AuditVerdict::NotApplicable => false,
        Err(early) => return Err(early),
    };
    let mut names = cmdline.params.iter().rev().map(|param| param.name.as_str());
    let mut last = || names.find(|name| matches!(*name, "nohlt" | "hlt"));
    Ok(if x86 {
        // No later value resets it (arch/x86/kernel/process.c, `idle_setup()`).
        cmdline.values("idle").any(|value| value == "poll").then_some("idle=poll")
    } else {
        (last() == Some("nohlt")).then_some("nohlt")
    })
}

/// Word by which an idle CPU of arm64 spins instead of waiting for an interrupt
/// (arch/arm64/kernel/idle.c of 7.3; 7.2 has no such parameter).
fn spins(machine: &MachineView) -> Result<Option<&'static str>, Judgement> {
    let read = |value: &str| match value {
        "nop" => Some(Some("idle=nop")),
        "yield" => Some(Some("idle=yield")),
        "wfi" => Some(None),
        _ => None,
    };
    let Some((_, Some(word))) = machine.cmdline()?.in_effect("idle", read) else { return Ok(None) };
    if machine.known(&machine.facts().machine, "/proc/sys/kernel/arch")? != "aarch64" {
        return Ok(None);
    }
    match machine.series()? {
        series if series >= (7, 3) => Ok(Some(word)),
        _ => Ok(None),
    }
}

fn judge(machine: &MachineView) -> Judged {
    let word = match polls(machine, machine.cmdline()?)? {
        Some(word) => Some(word),
        None => spins(machine)?,
    };
    let Some(word) = word else { return Ok(Judgement::pass("not given")) };
    if machine.is_virtual() == Ok(true) {
        return Ok(Judgement::fail(format!("{word} in a guest"))
            .severity(Severity::High)
            .because(
                "the host does not get its CPU back while the guest is idle, and host threads there starve \
                 if the guest has real-time priority",
            )
            .fix(Remedy::from(Change::cmdline_remove(word)).note("see guest-halt-poll")));
    }
    let shared = matches!(&machine.facts().siblings, Fact::Known(cores) if !cores.is_empty());
    if shared {
        return Ok(Judgement::fail(format!("{word}, with several hardware threads per core"))
            .severity(Severity::Medium)
            .because("a spinning idle hardware thread takes half of the core from the busy one")
            .fix(off(word)));
    }
    Ok(Judgement::fail(word).fix(off(word)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const POLL: &str = "cmdline + idle=poll";

    #[test]
    fn it_is_worst_in_a_guest() {
        check(&KNOB, "", "pass not given");
        check(&KNOB, POLL, "fail low idle=poll");
        check(&KNOB, &format!("{POLL}\ncmdline + idle=halt"), "fail low idle=poll");
        let arm = "/proc/sys/kernel/arch: aarch64\ncmdline + nohlt";
        check(&KNOB, arm, "fail low nohlt");
        check(&KNOB, &format!("{arm}\ncmdline + hlt"), "pass not given");
        check(
            &KNOB,
            &format!(
                "{POLL}\n/sys/devices/system/cpu/cpu0/topology/core_cpus_list: 0-1\n\
                 /sys/devices/system/cpu/cpu1/topology/core_cpus_list: 0-1"
            ),
            "fail medium idle=poll, with several hardware threads per core",
        );
        let guest = "/proc/cpuinfo:\n| flags : fpu hypervisor";
        check(&KNOB, &format!("{POLL}\n{guest}\n--profile guest"), "fail high idle=poll in a guest");
    }

    #[test]
    fn each_architecture_has_its_word() {
        let arm = "/proc/sys/kernel/arch: aarch64";
        check(&KNOB, &format!("{arm}\n{POLL}"), "pass not given");
        check(&KNOB, &format!("{arm}\ncmdline + nohlt"), "fail low nohlt");
        check(&KNOB, "cmdline + nohlt", "pass not given");
        let release = |release: &str| format!("{arm}\n/proc/sys/kernel/osrelease: {release}");
        check(&KNOB, &format!("{}\ncmdline + idle=nop", release("7.3.4")), "fail low idle=nop");
        check(&KNOB, &format!("{}\ncmdline + idle=yield", release("7.3.4")), "fail low idle=yield");
        check(&KNOB, &format!("{}\ncmdline + idle=wfi", release("7.3.4")), "pass not given");
        check(&KNOB, &format!("{}\ncmdline + idle=nop", release("6.12.9")), "pass not given");
        check(&KNOB, &format!("{}\ncmdline + idle=nop", release("7.2.13")), "pass not given");
        check(&KNOB, "cmdline + idle=nop", "pass not given");
        let twice = format!("{}\ncmdline + idle=nop\ncmdline + idle=", release("7.3.4"));
        check(&KNOB, &format!("{twice}foo"), "fail low idle=nop");
        check(&KNOB, &format!("{twice}wfi"), "pass not given");
        check(&KNOB, &format!("{POLL}\n/proc/sys/kernel/arch refused"), "unknown");
    }
}
