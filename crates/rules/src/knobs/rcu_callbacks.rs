//! RCU callbacks: whether they are taken off the audited CPUs.

use super::rcu_lazy::{PARAMETER, callback_list, offloading_word, prompt_callbacks};
use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::kernel_threads::{require_complete, visible_threads};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate};
use facts::cpu_lists::parse_kernel_list;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;
use model::units::CpuSet;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "rcu-callbacks",
    title: "RCU callbacks",
    description: "Memory that the kernel frees after a grace period is freed by callbacks on the CPU that \
                  queued them: in a softirq, or in the thread rcuc/N on PREEMPT_RT. rcu_nocbs= moves the \
                  callbacks of the listed CPUs to threads (rcuo) that may run on other CPUs; nohz_full= does \
                  so too.",
    rationale: "callbacks run in batches on the CPU that freed the memory, in a softirq ahead of every task",
    detection: "rcu_nocbs= on the command line, the list of nohz_full, and whether the kernel has \
                RCU_NOCB_CPU. The affinity of the rcuo threads is a separate rule. On PREEMPT_RT a task \
                above rcuc's priority is not delayed, so the severity is lower there.",
    side_effects: "call_rcu() takes longer, and the housekeeping CPUs have more context switches and must \
                   keep up: put the rcuo threads there.",
    wanted: "offloaded on the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "boot with rcu_nocbs=LIST of the audited CPUs, and keep the rcuo threads on the other CPUs",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, rcu_nocbs=", url: PARAMETERS },
        Source {
            title: "kernel: reducing OS jitter due to per-CPU kthreads, RCU_SOFTIRQ",
            url: PER_CPU_KTHREADS,
        },
    ],
    after: &["isolation-support"],
    cures: &[SliceKind::Softirq, SliceKind::Thread, SliceKind::Preempted],
    reads: &[POSSIBLE, PARAMETER],
    facts: &[
        "/proc/cmdline",
        "/sys/devices/system/cpu/nohz_full",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/boot/config-RELEASE",
        "/proc/sys/kernel/osrelease",
        "/proc/PID/stat",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/nohz_full: (null)
                cmdline - rcu_nocbs=2-3
                cmdline + rcu_nocbs=0-1",
        silent: "--cpus 2-3
                 CONFIG_RCU_NOCB_CPU=y
                 cmdline + rcu_nocbs=2-3",
        unknown: "--cpus 2-3
                  CONFIG_RCU_NOCB_CPU=y
                  /sys/devices/system/cpu/nohz_full: (null)
                  /proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let severity = if machine.facts().preempt == Preempt::Rt { Severity::Medium } else { Severity::High };
    let cpus = machine.cpus();
    let boot = offloading_word(machine);
    let note = "keep the rcuo threads on the other CPUs";
    // The CPUs that nohz_full= covers are offloaded, and the file is there only if NO_HZ_FULL,
    // which needs RCU_NOCB_CPU, is.
    let ticks = machine.facts().nohz_full.known();
    if ticks.is_some_and(|ticks| cpus.without(ticks).is_empty()) {
        return Ok(Judgement::pass(format!("nohz_full on {}", cpu_list(cpus))));
    }
    if !can_offload(machine)? {
        return Ok(Judgement::fail("the kernel has no RCU_NOCB_CPU").severity(severity).fix(
            prompt_callbacks(machine, Remedy::of([Change::kconfig("RCU_NOCB_CPU", "y"), boot])).note(note),
        ));
    }
    let (parameter, offloaded) = offloaded(machine)?;
    let offloaded = ticks.map_or(offloaded.clone(), |ticks| offloaded.or(ticks));
    let missing = cpus.without(&offloaded);
    if missing.is_empty() {
        return Ok(Judgement::pass(parameter));
    }
    let judgement = Judgement::fail(format!("{parameter}: not on {}", cpu_list(&missing)))
        .severity(severity)
        .fix(prompt_callbacks(machine, boot.into()).note(note));
    Ok(if !offloaded.is_empty() && offloaded.and(cpus).is_empty() {
        judgement.because(
            "the list names the housekeeping CPUs: it should name the CPUs whose callbacks are offloaded",
        )
    } else {
        judgement
    })
}

/// True for a kernel that knows the parameter (`rcu_nocb_setup()` is built with the option): its
/// configuration says so, or else what only such a kernel has.
fn can_offload(machine: &MachineView) -> Result<bool, Judgement> {
    let has_list = machine.facts().nohz_full.known().is_some();
    match machine.kconfig().map(|config| config.get("RCU_NOCB_CPU")) {
        Ok(OptionValue::Yes) => Ok(true),
        Ok(OptionValue::Absent) => Ok(has_list),
        Ok(_) => Ok(false),
        Err(_) if has_list || offloads_any(machine).unwrap_or(false) => Ok(true),
        Err(unread) => Err(unread),
    }
}

/// True if threads run that call callbacks for CPUs.
fn offloads_any(machine: &MachineView) -> Result<bool, Judgement> {
    let threads = visible_threads(machine)?;
    let found = threads.kernel.iter().any(|thread| thread.comm.starts_with("rcuo"));
    if !found {
        require_complete(threads)?;
    }
    Ok(found)
}

/// The CPUs that the command line offloads, and its parameters.
fn offloaded(machine: &MachineView) -> Result<(String, CpuSet), Judgement> {
    let list = match callback_list(machine)? {
        Some("") => return Ok(("rcu_nocbs without a list".to_owned(), CpuSet::default())),
        Some(list) => list,
        None => {
            let none = ("no rcu_nocbs=".to_owned(), CpuSet::default());
            // Only without nohz_full=, too, does the kernel take them all.
            if machine.facts().nohz_full.known().is_some_and(|cpus| !cpus.is_empty()) {
                return Ok(none);
            }
            let all = "RCU_NOCB_CPU_DEFAULT_ALL";
            return Ok(match machine.kconfig() {
                Ok(config) if config.is_yes(all) => (all.to_owned(), machine.cpus().clone()),
                Ok(_) => none,
                // With neither word such threads run for all CPUs or for none.
                Err(unread) => match offloads_any(machine) {
                    Ok(true) => ("rcuo threads run".to_owned(), machine.cpus().clone()),
                    Ok(false) => none,
                    Err(_) => return Err(unread),
                },
            });
        }
    };
    let parameter = format!("rcu_nocbs={}", truncate(list));
    // Plain numbers mean the same on each machine.
    if let Some(offloaded) = CpuSet::parse(list).ok().filter(|_| machine.survey.is_stopped) {
        return Ok((parameter, offloaded));
    }
    let possible = machine.cpu_list_if_present(POSSIBLE)?.ok_or_else(|| unknown_absent(POSSIBLE))?;
    let last = possible.iter().last().ok_or_else(|| unknown_absent("the last CPU"))?;
    // The kernel then takes all (`rcu_nocb_setup()`).
    Ok(match parse_kernel_list(list, last) {
        Ok(offloaded) => (parameter, offloaded),
        Err(_) => (format!("{parameter}, no list: all CPUs"), possible),
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const NO_THREADS: &str = "/proc/44 absent\n/proc/45 absent\n/proc/54 absent";

    fn with(words: &str, edits: &str) -> String {
        format!("cmdline - rcu_nocbs=2-3\n{words}\n{edits}")
    }

    #[test]
    fn all_audited_cpus_have_to_be_named() {
        check(&KNOB, "", "pass rcu_nocbs=2-3");
        check(&KNOB, &with("cmdline + rcu_nocbs=2", ""), "fail medium rcu_nocbs=2: not on CPU 3");
        check(&KNOB, &with("cmdline + rcu_nocbs=2-N", ""), "pass rcu_nocbs=2-N");
        // Others that are set apart keep it, and the rest loses it.
        let mut machine = Machine::base();
        machine.edit(&with("cmdline + rcu_nocbs=0,2", "--cpus 3"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("replace rcu_nocbs=0,2 by rcu_nocbs=2-3 on"), "{fix}");
        check(&KNOB, &with("cmdline + rcu_nocbs=all", ""), "pass rcu_nocbs=all");
        check(
            &KNOB,
            &with("cmdline + rcu_nocbs", ""),
            "fail medium rcu_nocbs without a list: not on CPUs 2-3",
        );
        check(&KNOB, "cmdline + rcu_nocbs", "fail medium rcu_nocbs without a list: not on CPUs 2-3");
        check(&KNOB, &with("cmdline + rcu_nocbs\ncmdline + rcu_nocbs=2-3", ""), "pass rcu_nocbs=2-3");
        check(&KNOB, &with("cmdline + rcu_nocbs=2-x", ""), "pass rcu_nocbs=2-x, no list: all CPUs");
        let voluntary = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                         /sys/kernel/debug/sched/preempt: none (voluntary) full";
        check(&KNOB, &with(voluntary, "CONFIG_PREEMPT_RT=n"), "fail high no rcu_nocbs=: not on CPUs 2-3");
        check(&KNOB, &with("--cpus 0-3", ""), "not-applicable");
    }

    #[test]
    fn other_words_offload_too() {
        check(&KNOB, &with("/sys/devices/system/cpu/nohz_full: 2-3", ""), "pass nohz_full on CPUs 2-3");
        check(
            &KNOB,
            &with("cmdline + rcu_nocbs=2", "/sys/devices/system/cpu/nohz_full: 3"),
            "pass rcu_nocbs=2",
        );
        let all = "CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y";
        check(&KNOB, &with(all, ""), "pass RCU_NOCB_CPU_DEFAULT_ALL");
        check(
            &KNOB,
            &with(all, "/sys/devices/system/cpu/nohz_full: 3"),
            "fail medium no rcu_nocbs=: not on CPU 2",
        );
    }

    #[test]
    fn the_kernel_has_to_be_able_to() {
        let absent = "/sys/devices/system/cpu/nohz_full absent";
        check(
            &KNOB,
            &format!("{absent}\nCONFIG_RCU_NOCB_CPU=n"),
            "fail medium the kernel has no RCU_NOCB_CPU",
        );
        check(&KNOB, &format!("{absent}\nCONFIG_RCU_NOCB_CPU=y"), "pass rcu_nocbs=2-3");
        // The word of a kernel that does not know it offloads nothing.
        check(&KNOB, "CONFIG_RCU_NOCB_CPU=n", "fail medium the kernel has no RCU_NOCB_CPU");
        let untold = format!("{absent}\n/boot/config-6.12.9-rt-amd64 absent");
        check(&KNOB, &untold, "pass rcu_nocbs=2-3");
        check(&KNOB, &format!("{untold}\n{NO_THREADS}"), "unknown");
        check(&KNOB, "/sys/devices/system/cpu/possible refused", "unknown");
    }

    #[test]
    fn without_a_configuration_the_threads_tell() {
        let without = with("/boot refused", "");
        check(&KNOB, &without, "pass rcuo threads run");
        check(&KNOB, &format!("{without}\n{NO_THREADS}"), "fail medium no rcu_nocbs=: not on CPUs 2-3");
        check(&KNOB, &format!("{without}\n{NO_THREADS}\n/proc/1/stat refused"), "unknown");
    }
}
