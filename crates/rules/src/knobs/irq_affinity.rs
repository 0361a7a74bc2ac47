//! Affinity of interrupts: whether devices interrupt the audited CPUs.

use super::default_irq_affinity::kept_at_boot;
use super::sources::{IRQ_AFFINITY, ISOLATION, PER_CPU_KTHREADS};
use crate::change::{AdviceReason, Change, Persistence};
use crate::irq_kind::{IrqKind, handler_names, irq_kind, require_affinity, require_all};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate_list};
use facts::Fact;
use facts::irqs::Irq;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "irq-affinity",
    title: "interrupt affinity",
    description: "The CPUs in smp_affinity_list are allowed for an interrupt; it is delivered to those in \
                  effective_affinity_list, usually one. With threaded handlers the interrupt thread follows \
                  it.",
    rationale: "an interrupt stops any task on its CPU, including real-time tasks, and its handler and \
                softirqs run there",
    detection: "Both lists of each interrupt that has a handler. A new affinity may take effect only at the \
                next interrupt: until then an idle interrupt still shows its old CPU. Managed interrupts are \
                judged by managed-interrupts; per-CPU and unmovable interrupts are not judged. They are \
                distinguished by debugfs, or else by name: a managed interrupt of a storage controller with \
                an unusual name may be taken for a movable one.",
    side_effects: "The other CPUs have more work, and interrupts on another memory node take longer. \
                   irqbalance moves interrupts back unless it is stopped or configured to ban these CPUs.",
    wanted: "no interrupts on audited CPUs except those of devices that the real-time tasks there serve",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "write the other CPUs to /proc/irq/N/smp_affinity_list of each, and boot with irqaffinity=LIST; \
             an interrupt whose device a real-time task serves may be there on purpose",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: "/proc/irq/#/smp_affinity_list",
    sources: &[
        Source { title: "kernel: CPU isolation, IRQs isolation", url: ISOLATION },
        Source { title: "kernel: SMP IRQ affinity", url: IRQ_AFFINITY },
        Source { title: "kernel: OS jitter due to per-CPU kthreads, irq/%d-%s", url: PER_CPU_KTHREADS },
    ],
    cures: &[SliceKind::Irq, SliceKind::Softirq, SliceKind::Thread, SliceKind::Preempted],
    after: &["cpu-isolation", "default-irq-affinity"],
    facts: &[
        "/proc/irq/N/smp_affinity_list",
        "/proc/irq/N/effective_affinity_list",
        "/sys/kernel/irq/N/actions",
        "/sys/kernel/debug/irq/irqs/N",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /proc/irq/900/smp_affinity_list: 0-3
                /proc/irq/900/effective_affinity_list: 2
                /sys/kernel/irq/900/actions: eth7",
        silent: "--cpus 2-3
                /proc/irq absent
                /proc/irq/900/smp_affinity_list: 0-1
                /proc/irq/900/effective_affinity_list: 1
                /sys/kernel/irq/900/actions: eth7",
        unknown: "--cpus 2-3
                /proc/irq refused",
    },
    ..Knob::DEFAULT
};

/// Relation of an interrupt to the audited CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    There,
    /// Interrupts them now, but no longer after its next occurrence.
    Leaving,
    /// May interrupt them, but does not at present.
    Allowed,
    Elsewhere,
}

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let irqs = machine.known(&machine.survey.irqs, "/proc/irq")?;
    let movable = irqs.irqs.iter().filter(|irq| irq_kind(irq) == IrqKind::Movable);
    let placed: Vec<(Place, &Irq)> =
        movable.clone().filter_map(|irq| Some((place(irq, machine.cpus())?, irq))).collect();
    let named = |wanted: Place| {
        truncate_list(placed.iter().filter(|(place, _)| *place == wanted).map(|(_, irq)| handler_names(irq)))
    };
    // Audited CPUs that interrupts in a relation reach.
    let cpus = |wanted: Place| {
        let sets = placed.iter().filter(|(place, _)| *place == wanted).map(|(place, irq)| match place {
            Place::Allowed => &irq.allowed,
            _ if irq.effective.known().is_some() => &irq.effective,
            _ => &irq.allowed,
        });
        let all = sets.filter_map(Fact::known).fold(CpuSet::default(), |all, set| all.or(set));
        cpu_list(&all.and(machine.cpus()))
    };
    let others = machine.housekeeping_cpus()?;
    let moved: Vec<u32> = placed
        .iter()
        .filter(|(place, _)| matches!(place, Place::There | Place::Allowed))
        .map(|(_, irq)| irq.number)
        .collect();
    let paths = moved.iter().map(|number| format!("/proc/irq/{number}/smp_affinity_list")).collect();
    let numbers = format!("interrupt {}", truncate_list(moved.iter().map(ToString::to_string)));
    let fix = Remedy::from(Change::each(paths, "/proc/irq/N/smp_affinity_list", &numbers, &others))
        .persist(kept_at_boot(machine, &others))
        .note("an interrupt whose device a real-time task serves may be there on purpose");
    let (there, leaving, allowed) = (named(Place::There), named(Place::Leaving), named(Place::Allowed));
    if !there.is_empty() {
        return Ok(Judgement::fail(format!("{there} on {}", cpus(Place::There))).fix(fix));
    }
    if !leaving.is_empty() {
        let value = format!("{leaving} still on {} until the next interrupt", cpus(Place::Leaving));
        return Ok(Judgement::fail(value).severity(Severity::Low).fix(Remedy::advice(
            AdviceReason::Machine,
            "nothing more: each moves with its next interrupt; let the device interrupt once before the \
             measurement",
        )));
    }
    if !allowed.is_empty() {
        let value = format!("{allowed} on other CPUs now, allowed on {}", cpus(Place::Allowed));
        return Ok(Judgement::fail(value).severity(Severity::Low).fix(fix));
    }
    for irq in movable {
        require_affinity(irq, &irq.allowed)?;
        if irq.effective != Fact::Absent {
            require_affinity(irq, &irq.effective)?;
        }
    }
    require_all(irqs)?;
    Ok(Judgement::pass(format!("none on {}", cpu_list(machine.cpus()))))
}

/// Relation of an interrupt to the CPUs; none if it could not be read.
fn place(irq: &Irq, cpus: &CpuSet) -> Option<Place> {
    let touches = |fact: &Fact<CpuSet>| fact.known().map(|set| !set.and(cpus).is_empty());
    match (touches(&irq.effective), touches(&irq.allowed)) {
        (Some(true), Some(false)) => Some(Place::Leaving),
        (Some(true), _) => Some(Place::There),
        (Some(false), Some(true)) => Some(Place::Allowed),
        // Without the effective CPUs, the allowed ones are used.
        (None, Some(true)) => Some(Place::There),
        (_, Some(false)) => Some(Place::Elsewhere),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    fn eth7(allowed: &str, effective: &str) -> String {
        format!(
            "/proc/irq/900/smp_affinity_list: {allowed}\n/proc/irq/900/effective_affinity_list: \
             {effective}\n/sys/kernel/irq/900/actions: eth7"
        )
    }

    #[test]
    fn where_they_go_counts_before_where_they_may() {
        check(&KNOB, "", "pass none on CPUs 2-3");
        check(&KNOB, &eth7("0-3", "2"), "fail high eth7 on CPU 2");
        check(&KNOB, &eth7("0-1", "2"), "fail low eth7 still on CPU 2 until the next interrupt");
        check(&KNOB, &eth7("0-3", "0"), "fail low eth7 on other CPUs now, allowed on CPUs 2-3");
        check(
            &KNOB,
            &format!("{}\n/proc/irq/900/effective_affinity_list absent", eth7("0-3", "0")),
            "fail high eth7 on CPUs 2-3",
        );
        check(&KNOB, "--cpus 0-3", "not-applicable");
        check(&KNOB, "--cpus 0", "fail high acpi, nvme0q0 on CPU 0");
    }

    /// The parameter cannot keep them off the CPU that boots.
    #[test]
    fn the_boot_cpu_is_kept_free_by_a_unit() {
        let fix = |cpus: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{}\n--cpus {cpus}\ncmdline - irqaffinity=0-1", eth7("0-3", "0-3")));
            machine.finding(&KNOB).fix
        };
        assert!(fix("0").contains("a unit that writes it at boot") && !fix("0").contains("irqaffinity=1"));
        assert!(fix("2-3").contains("irqaffinity=0-1"), "{}", fix("2-3"));
    }

    #[test]
    fn what_cannot_be_moved_is_left_out() {
        let timer = "/sys/kernel/debug/irq/irqs/900:\n| dstate: 0x1\n| IRQD_NO_BALANCING";
        check(&KNOB, &format!("{}\n{timer}", eth7("0-3", "0")), "pass none on CPUs 2-3");
        for action in ["nvme7q1", "arch_timer"] {
            check(&KNOB, &eth7("0-3", "2").replace("eth7", action), "pass none on CPUs 2-3");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_pass_and_hides_no_fail() {
        let refused = "/proc/irq/901/smp_affinity_list refused\n/sys/kernel/irq/901/actions: x";
        check(&KNOB, refused, "unknown");
        check(&KNOB, &format!("{refused}\n{}", eth7("0-3", "2")), "fail high eth7 on CPU 2");
        check(&KNOB, &format!("{}\n/sys/kernel/irq/900/actions refused", eth7("0-1", "0")), "unknown");
        check(&KNOB, &format!("{}\n/proc/irq/900/effective_affinity_list: x", eth7("0-1", "0")), "unknown");
    }
}
