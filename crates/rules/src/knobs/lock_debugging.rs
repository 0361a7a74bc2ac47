//! Debugging of locks, built into the kernel.

use super::sources::{LOCKSTAT, RT_CONFIG};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "lock-debugging",
    title: "lock debugging",
    description: "Kernel build options that check or count each use of a lock: lockdep (PROVE_LOCKING, \
                  LOCK_STAT, DEBUG_LOCK_ALLOC), the simpler checks of spinlocks, mutexes, atomic variables \
                  and preemption, and RCU_STRICT_GRACE_PERIOD, which interrupts all CPUs in each grace \
                  period of RCU.",
    rationale: "every lock operation of the kernel costs more, much of it with interrupts off, and lockdep \
                records new lock orders under one lock for all CPUs",
    detection: "The kernel's configuration, and /proc/sys/kernel/prove_locking and lock_stat, which only \
                kernels with these options have. Checks inside modules are not seen.",
    side_effects: "Needs another kernel. During driver development, run it with lockdep for some time: its \
                   reports are real potential deadlocks. Do not measure on that kernel.",
    wanted: "none built in",
    fix: || Remedy::advice(AdviceReason::Kernel, "boot a kernel built without them"),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_PROVE_LOCKING", url: RT_CONFIG },
        Source { title: "kernel: lock statistics", url: LOCKSTAT },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::LockContention],
    reads: &[PROVE_LOCKING, LOCK_STAT],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples { fires: "CONFIG_PROVE_LOCKING=y", silent: "", unknown: "/boot refused" },
    ..Knob::DEFAULT
};

const PROVE_LOCKING: &str = "/proc/sys/kernel/prove_locking";
const LOCK_STAT: &str = "/proc/sys/kernel/lock_stat";

/// Options that select lockdep; LOCKDEP itself is named only without any of the others.
const LOCKDEP: &[&str] =
    &["PROVE_LOCKING", "LOCK_STAT", "DEBUG_LOCK_ALLOC", "DEBUG_WW_MUTEX_SLOWPATH", "LOCKDEP"];

/// Option that ends each grace period at once, by an interrupt of every CPU (`rcu_gp_init()` and
/// `rcu_gp_cleanup()` of kernel/rcu/tree.c).
const STRICT_RCU: &str = "RCU_STRICT_GRACE_PERIOD";

/// Checks of single kinds of locks, which cost less.
const SIMPLE: &[&str] = &[
    "DEBUG_ATOMIC",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "DEBUG_RWSEMS",
    "DEBUG_IRQFLAGS",
];

fn judge(machine: &MachineView) -> Judged {
    let config = machine.kconfig();
    // These kernels have a switch that others lack: it proves the option, regardless of the
    // configuration.
    let there = |path| matches!(machine.number_if_present(path), Ok(Some(_)));
    let on = |name: &&'static str| {
        let built = config.as_ref().is_ok_and(|config| config.is_yes(name));
        built
            || (*name == "PROVE_LOCKING" && there(PROVE_LOCKING))
            || (*name == "LOCK_STAT" && there(LOCK_STAT))
    };
    let mut heavy: Vec<&str> = LOCKDEP.iter().copied().filter(on).collect();
    let simple: Vec<&str> = SIMPLE.iter().copied().filter(on).collect();
    if heavy.len() > 1 {
        heavy.retain(|name| *name != "LOCKDEP");
    }
    heavy.extend([STRICT_RCU].into_iter().filter(|name| on(name)));
    let severity = if heavy.is_empty() { Severity::Medium } else { Severity::High };
    let found = [heavy, simple].concat();
    match config {
        _ if !found.is_empty() => {
            let without = Remedy::of(found.iter().map(|option| Change::kconfig(option, "n")));
            let packages = "Fedora and RHEL have them in their kernel-debug packages only";
            Ok(Judgement::fail(found.join(", ")).severity(severity).fix(without.note(packages)))
        }
        Ok(_) => Ok(Judgement::pass("none")),
        Err(unknown) => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn those_that_are_on_are_named() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "CONFIG_DEBUG_PREEMPT=y", "fail medium DEBUG_PREEMPT");
        check(
            &KNOB,
            "CONFIG_PROVE_LOCKING=y\nCONFIG_LOCKDEP=y\nCONFIG_DEBUG_SPINLOCK=y",
            "fail high PROVE_LOCKING, DEBUG_SPINLOCK",
        );
        check(&KNOB, "CONFIG_LOCKDEP=y", "fail high LOCKDEP");
        check(&KNOB, "CONFIG_RCU_STRICT_GRACE_PERIOD=y", "fail high RCU_STRICT_GRACE_PERIOD");
        check(&KNOB, "CONFIG_DEBUG_ATOMIC=y", "fail medium DEBUG_ATOMIC");
        check(&KNOB, "CONFIG_DEBUG_ATOMIC_SLEEP=y\nCONFIG_DEBUG_KERNEL=y\nCONFIG_DEBUG_FS=y", "pass none");
    }

    #[test]
    fn without_a_configuration_its_switches_decide() {
        check(&KNOB, "/boot refused\n/proc/sys/kernel/prove_locking: 0", "fail high PROVE_LOCKING");
        check(&KNOB, "/boot refused\n/proc/sys/kernel/lock_stat refused", "unknown");
        check(&KNOB, "/proc/sys/kernel/lock_stat: 1", "fail high LOCK_STAT");
    }
}
