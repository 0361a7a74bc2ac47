//! Expedited RCU grace periods: interrupts to all CPUs so that a waiter waits less.

use super::sources::PARAMETERS;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "rcu-expedited",
    title: "expedited RCU grace periods",
    description: "Kernel code that waits for an RCU grace period can expedite it by interrupting all CPUs. \
                  rcu_expedited expedites every wait; rcu_normal expedites none, and has precedence. \
                  PREEMPT_RT sets rcu_normal at the end of the boot.",
    rationale: "an expedited grace period interrupts each CPU that is not idle or in user mode \
                without a tick",
    detection: "/sys/kernel/rcu_normal and /sys/kernel/rcu_expedited, which the boot parameters \
                end up in. Between two readings either can be written.",
    side_effects: "Without expedited grace periods, module loading, mounting, network namespaces \
                   and the like take milliseconds to seconds longer.",
    wanted: "rcu_normal 1",
    fix: || {
        Remedy::from(Change::write(NORMAL, 1))
            .persist(Change::cmdline_add("rcupdate.rcu_normal_after_boot=1"))
            .persist(Change::cmdline_remove("rcupdate.rcu_expedited"))
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "some recipes set rcu_expedited to shorten reconfiguration: `onbeat measure` during a \
               reconfiguration, once with each, shows the cost for the task",
    persistence: Persistence::Runtime,
    sets: NORMAL,
    sources: &[Source {
        title: "kernel: command line, rcupdate.rcu_normal, rcupdate.rcu_expedited, \
                rcupdate.rcu_normal_after_boot",
        url: PARAMETERS,
    }],
    cures: &[SliceKind::Ipi],
    reads: &[NORMAL, EXPEDITED],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/rcu_normal: 0
                /sys/kernel/rcu_expedited: 1",
        silent: "/sys/kernel/rcu_normal: 1
                 /sys/kernel/rcu_expedited: 0",
        unknown: "/sys/kernel/rcu_normal refused",
    },
    ..Knob::DEFAULT
};

const NORMAL: &str = "/sys/kernel/rcu_normal";
const EXPEDITED: &str = "/sys/kernel/rcu_expedited";

fn judge(machine: &MachineView) -> Judged {
    // The file is missing with Tiny RCU, for one CPU, and in unknown kernels: these cannot be
    // distinguished.
    let normal = machine.number_if_present(NORMAL)?.ok_or_else(|| unknown_absent(NORMAL))?;
    if normal != 0 {
        return Ok(Judgement::pass("rcu_normal 1"));
    }
    // Callers that request it always get it; the number decides whether all others do, too.
    let judged = match machine.number_if_present(EXPEDITED) {
        Ok(Some(forced)) if forced != 0 => {
            Judgement::fail("all are expedited: rcu_expedited 1, rcu_normal 0").severity(Severity::Medium)
        }
        Ok(_) => Judgement::fail("expedited on request: rcu_normal 0"),
        Err(_) => Judgement::fail("rcu_normal 0"),
    };
    // On PREEMPT_RT the parameter is built with NO_HZ_FULL only, and the boot ends with 1 without
    // it (kernel/rcu/update.c).
    let by_itself = machine.facts().preempt == Preempt::Rt
        && machine.kconfig().is_ok_and(|config| !config.is_yes("NO_HZ_FULL"));
    if !by_itself {
        return Ok(judged);
    }
    Ok(judged.fix(
        Remedy::from(Change::write(NORMAL, 1))
            .persist(Change::cmdline_remove("rcupdate.rcu_expedited"))
            .note("this kernel ends its boot with 1: find the program that wrote 0"),
    ))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn normal_wins() {
        check(&KNOB, "", "pass rcu_normal 1");
        check(&KNOB, "/sys/kernel/rcu_expedited: 1", "pass rcu_normal 1");
        let normal = "/sys/kernel/rcu_normal: 0";
        check(&KNOB, normal, "fail low expedited on request: rcu_normal 0");
        check(
            &KNOB,
            &format!("{normal}\n/sys/kernel/rcu_expedited: 1"),
            "fail medium all are expedited: rcu_expedited 1, rcu_normal 0",
        );
        check(&KNOB, &format!("{normal}\n/sys/kernel/rcu_expedited refused"), "fail low rcu_normal 0");
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{normal}\n{edits}"));
            machine.finding(&KNOB).fix
        };
        assert!(fix("CONFIG_NO_HZ_FULL=y").contains("rcu_normal_after_boot"));
        let own = fix("CONFIG_NO_HZ_FULL=n");
        assert!(!own.contains("rcu_normal_after_boot") && own.contains("find the program"), "{own}");
        check(&KNOB, "/sys/kernel/rcu_normal absent", "unknown");
        check(&KNOB, "/sys/kernel/rcu_normal: yes", "unknown");
    }
}
