//! The initial affinity of new interrupts.

use super::sources::{IRQ_AFFINITY, ISOLATION, PARAMETERS};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::{cpu_list, cpu_mask};
use facts::line::parse_mask;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet, named_cpus};

pub static KNOB: Knob = Knob {
    id: "default-irq-affinity",
    title: "affinity of new interrupts",
    description: "A new interrupt gets the CPUs in /proc/irq/default_smp_affinity: all CPUs, unless \
                  irqaffinity= is on the command line. Creating a partition does not change it.",
    rationale: "a newly loaded driver or hot-plugged device has its interrupt on the audited CPUs",
    detection: "The mask itself. Existing interrupts are judged by irq-affinity.",
    side_effects: "The other CPUs take all new interrupts. irqaffinity= always includes the boot CPU.",
    wanted: "none of the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "write the mask of the other CPUs to /proc/irq/default_smp_affinity, and boot with \
             irqaffinity=LIST",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[
        Source { title: "kernel: SMP IRQ affinity, default_smp_affinity", url: IRQ_AFFINITY },
        Source { title: "kernel: CPU isolation, IRQs isolation", url: ISOLATION },
        Source { title: "kernel: command line, irqaffinity=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Irq],
    reads: &[PATH],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /proc/irq/default_smp_affinity: f",
        silent: "--cpus 2-3
                /proc/irq/default_smp_affinity: 3",
        unknown: "--cpus 2-3
                /proc/irq/default_smp_affinity refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/irq/default_smp_affinity";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let cpus = machine.parsed(PATH, parse_mask)?.ok_or_else(|| unknown_absent(PATH))?;
    let online = machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let others = machine.housekeeping_cpus()?;
    Ok(Judgement::fail_if(!cpus.and(machine.cpus()).is_empty(), cpu_list(&cpus.and(online)))
        .wanted(format!("at most {}", named_cpus(&others)))
        .fix(Remedy::from(Change::write(PATH, cpu_mask(&others))).persist(kept_at_boot(machine, &others))))
}

/// Keeps new interrupts on these CPUs from boot on. The boot CPU is added to any list of the
/// parameter (`irq_affinity_setup()` of kernel/irq/irqdesc.c).
pub fn kept_at_boot(machine: &MachineView, others: &CpuSet) -> Change {
    if machine.cpus().contains(Cpu(0)) {
        Change::advice(
            AdviceReason::Program,
            "a unit that writes it at boot: irqaffinity= always includes the boot CPU, 0",
        )
    } else {
        Change::cmdline_add(format!("irqaffinity={others}"))
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn the_mask_decides() {
        check(&KNOB, "", "pass CPUs 0-1");
        // Masks have a bit for each possible CPU.
        check(&KNOB, "/proc/irq/default_smp_affinity: ffffffff,ffffffff", "fail high CPUs 0-3");
        check(&KNOB, "/proc/irq/default_smp_affinity: 4", "fail high CPU 2");
        let mut machine = Machine::base();
        machine.edit("/proc/irq/default_smp_affinity: f\n--cpus 0-1");
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("a unit that writes it at boot") && !fix.contains("irqaffinity=2"), "{fix}");
        check(&KNOB, "/proc/irq/default_smp_affinity: 0-3", "unknown");
        check(&KNOB, "/proc/irq/default_smp_affinity absent", "unknown");
    }
}
