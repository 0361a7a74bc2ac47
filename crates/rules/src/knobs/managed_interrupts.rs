//! Managed interrupts: queues whose interrupts the kernel distributes.

use super::sources::PARAMETERS;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::irq_kind::{IrqKind, handler_names, irq_kind, require_affinity, require_all};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::isolate_at_boot;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate_list};
use facts::irqs::Irq;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "managed-interrupts",
    title: "managed interrupts",
    description: "The kernel spreads the interrupts of a device with many queues (NVMe, some adapters) over \
                  the CPUs, and their affinity cannot be changed. With managed_irq in isolcpus=, a queue of \
                  isolated and other CPUs interrupts one of the others.",
    rationale: "a shared queue interrupts one of its CPUs for requests of the others: without managed_irq \
                that can be an audited CPU",
    detection: "The CPUs of each queue's interrupt and the CPU that receives it. A queue with only audited \
                CPUs interrupts them only for requests of tasks there, and passes. debugfs shows which \
                interrupts are managed; without it only those of nvme and virtio disks are recognized by \
                name, and the rest is judged by irq-affinity.",
    side_effects: "A reboot. The flag is best effort, and has no effect on queues with only audited CPUs.",
    wanted: "no queue shared with other CPUs interrupts an audited CPU",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "boot with managed_irq among the flags of isolcpus=, as in \
             isolcpus=managed_irq,domain,LIST, or with fewer queues",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "the kernel manages these interrupts and refuses any other affinity until the next boot",
    sources: &[Source { title: "kernel: command line, isolcpus= with managed_irq", url: PARAMETERS }],
    cures: &[SliceKind::Irq, SliceKind::Softirq],
    facts: &[
        "/proc/irq/N/smp_affinity_list",
        "/proc/irq/N/effective_affinity_list",
        "/sys/kernel/irq/N/actions",
        "/sys/kernel/debug/irq/irqs/N",
        "/sys/devices/system/cpu/online",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /proc/irq/901/smp_affinity_list: 1-2
                /proc/irq/901/effective_affinity_list: 2
                /sys/kernel/irq/901/actions: nvme7q2
                cmdline - isolcpus=managed_irq,domain,2-3",
        silent: "--cpus 2-3
                /proc/irq absent
                /proc/irq/901/smp_affinity_list: 2-3
                /proc/irq/901/effective_affinity_list: 2
                /sys/kernel/irq/901/actions: nvme7q2",
        unknown: "--cpus 2-3
                /proc/irq refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let irqs = machine.known(&machine.survey.irqs, "/proc/irq")?;
    let managed: Vec<&Irq> = irqs.irqs.iter().filter(|irq| irq_kind(irq) == IrqKind::Managed).collect();
    let (cpus, others) = (machine.cpus(), machine.housekeeping_cpus()?);
    // A queue whose other CPUs are all offline has no alternative.
    let mixes = |allowed: &CpuSet| !allowed.and(cpus).is_empty() && !allowed.and(&others).is_empty();
    let shared = |irq: &&&Irq| {
        let (Some(allowed), Some(effective)) = (irq.allowed.known(), irq.effective.known()) else {
            return false;
        };
        !effective.and(cpus).is_empty() && mixes(allowed)
    };
    let names = truncate_list(managed.iter().filter(shared).map(|irq| handler_names(irq)));
    if !names.is_empty() {
        return Ok(Judgement::fail(format!("{names} on {}, shared with others", cpu_list(cpus))).fix(
            isolate_at_boot(machine).or(Remedy::advice(AdviceReason::Machine, "boot with fewer queues")),
        ));
    }
    for irq in &managed {
        if mixes(require_affinity(irq, &irq.allowed)?) {
            require_affinity(irq, &irq.effective)?;
        }
    }
    require_all(irqs)?;
    if managed.is_empty() {
        return Err(Judgement::not_applicable("no interrupt is known to be managed"));
    }
    let own = |irq: &&&Irq| irq.effective.known().is_some_and(|set| !set.and(cpus).is_empty());
    let names = truncate_list(managed.iter().filter(own).map(|irq| handler_names(irq)));
    Ok(Judgement::pass(match names.as_str() {
        "" => format!("none on {}", cpu_list(cpus)),
        names => format!("{names} on {}, for requests from there", cpu_list(cpus)),
    }))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    fn queue(allowed: &str, effective: &str) -> String {
        format!(
            "/proc/irq/901/smp_affinity_list: {allowed}\n/proc/irq/901/effective_affinity_list: \
             {effective}\n/sys/kernel/irq/901/actions: nvme7q2"
        )
    }

    #[test]
    fn per_cpu_queues_pass() {
        check(&KNOB, "", "pass nvme0q2 on CPUs 2-3, for requests from there");
        check(&KNOB, &queue("0-2", "0"), "pass");
        check(&KNOB, &queue("2,5", "2"), "pass");
        check(&KNOB, &queue("1-2", "2"), "fail medium nvme7q2 on CPUs 2-3, shared with others");
        check(
            &KNOB,
            &format!("{}\n/proc/irq/901/effective_affinity_list absent", queue("1-2", "2")),
            "unknown",
        );
        check(&KNOB, &queue("1-2", "2").replace("nvme7q2", "eth7"), "pass");
        check(&KNOB, "/proc/irq/121 absent\n/proc/irq/122 absent\n/proc/irq/123 absent", "not-applicable");
    }
}
