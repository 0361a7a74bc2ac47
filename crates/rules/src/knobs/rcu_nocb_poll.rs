//! Polling for RCU callbacks: whether each callback has to wake the thread that handles it.

use super::rcu_lazy::callback_list;
use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
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
    id: "rcu-nocb-poll",
    title: "polling for RCU callbacks",
    description: "A CPU whose RCU callbacks are offloaded still has to wake the thread that handles them. \
                  With rcu_nocb_poll these threads poll for callbacks.",
    rationale: "an offloaded CPU that queues a callback has to wake another thread",
    detection: "rcu_nocb_poll on the command line, if callbacks are offloaded at all. It changes nothing for \
                a CPU that never calls call_rcu(), such as one that stays in user mode.",
    side_effects: "The threads wake up all the time, so their CPUs are never idle for long: more power, and \
                   some time of the housekeeping CPUs.",
    wanted: "rcu_nocb_poll",
    fix: || Remedy::from(Change::cmdline_add("rcu_nocb_poll")).note("unless power consumption matters"),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "the saved wake-up is rare, and the polling costs power all the time: `onbeat compare` runs \
               with and without it, under the real load",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, rcu_nocb_poll", url: PARAMETERS },
        Source { title: "kernel: reducing OS jitter due to per-CPU kthreads, rcuop", url: PER_CPU_KTHREADS },
    ],
    cures: &[SliceKind::Ipi, SliceKind::Thread],
    after: &["rcu-callbacks"],
    facts: &[
        "/proc/cmdline",
        "/sys/devices/system/cpu/nohz_full",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/boot/config-RELEASE",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                CONFIG_RCU_NOCB_CPU=y
                cmdline + rcu_nocbs=2-3
                cmdline - rcu_nocb_poll",
        silent: "--cpus 2-3
                 CONFIG_RCU_NOCB_CPU=y
                 cmdline + rcu_nocbs=2-3
                 cmdline + rcu_nocb_poll",
        unknown: "--cpus 2-3
                  CONFIG_RCU_NOCB_CPU=y
                  /proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    if machine.has_profile(Profile::Audio) {
        return Err(Judgement::not_applicable("it does not matter for periods of milliseconds"));
    }
    // Without the option the parameter has no effect, and neither has rcu_nocbs=.
    if machine.facts().kconfig.known().is_some_and(|config| !config.is_yes("RCU_NOCB_CPU")) {
        return Err(Judgement::not_applicable("the kernel has no RCU_NOCB_CPU: no callbacks are offloaded"));
    }
    let cmdline = machine.cmdline()?;
    if cmdline.has("rcu_nocb_poll") {
        return Ok(Judgement::pass("rcu_nocb_poll"));
    }
    let ticks = machine.facts().nohz_full.known().is_some_and(|cpus| !cpus.and(machine.cpus()).is_empty());
    let all = || machine.kconfig().map(|config| config.is_yes("RCU_NOCB_CPU_DEFAULT_ALL"));
    if !ticks && callback_list(machine)?.is_none_or(str::is_empty) && !all()? {
        return Err(Judgement::not_applicable("no callbacks are offloaded"));
    }
    Ok(Judgement::fail("not given"))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const OFF: &str = "cmdline - rcu_nocb_poll";

    #[test]
    fn it_applies_with_offloading() {
        check(&KNOB, "", "pass rcu_nocb_poll");
        check(&KNOB, OFF, "fail low not given");
        let plain = format!("{OFF}\ncmdline - rcu_nocbs=2-3");
        check(&KNOB, &plain, "not-applicable no callbacks are offloaded");
        check(&KNOB, &format!("{plain}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
        check(&KNOB, &format!("{plain}\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y"), "fail low not given");
        check(&KNOB, &format!("{plain}\n/sys/devices/system/cpu/nohz_full: 2-3"), "fail low not given");
        check(&KNOB, "CONFIG_RCU_NOCB_CPU=n", "not-applicable");
        check(&KNOB, "--profile audio", "not-applicable it does not matter for periods of milliseconds");
        check(&KNOB, "--cpus 0-3", "not-applicable");
    }
}
