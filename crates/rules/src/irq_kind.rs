//! Kind of an interrupt: movable, managed by the kernel, or per CPU.
//!
//! By debugfs, if the kernel describes interrupts there and it is readable; otherwise by the names
//! of handlers: drivers/nvme/host/pci.c, drivers/block/virtio_blk.c and drivers/scsi/virtio_scsi.c
//! name those of managed queues, arch/x86/kernel/time.c the timer that cannot be moved. Per-CPU
//! interrupts are requested by arm_arch_timer.c, timer-riscv.c, timer-clint.c, arm_pmu.c,
//! riscv_pmu_sbi.c, arch/arm64/kernel/smp.c ("IPI") and, with a name for each kind of IPI, by
//! arch/riscv/kernel/smp.c (`ipi_names`).

use crate::judgement::Judgement;
use crate::unknown::unknown_from;
use facts::Fact;
use facts::irqs::{Irq, Irqs};
use model::units::CpuSet;
use trace::event::{is_cpu_timer, is_riscv_ipi};

/// Control over the affinity of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IrqKind {
    /// The user, by writing its affinity.
    Movable,
    /// The kernel, for the queues of a device.
    Managed,
    /// Fixed: each CPU has a separate one, or the kernel refuses.
    PerCpu,
}

/// The kind of an interrupt.
pub fn irq_kind(irq: &Irq) -> IrqKind {
    let any = |is: fn(&str) -> bool| irq.actions.iter().any(|action| is(action));
    let first_timer = || irq.number == 0 && any(|action| action == "timer");
    let by_name = || any(of_each_cpu) || first_timer() || OF_EACH_HART.contains(&irq.chip.as_str());
    if irq.per_cpu.unwrap_or_else(by_name) {
        IrqKind::PerCpu
    } else if irq.managed.unwrap_or_else(|| any(of_a_queue)) {
        IrqKind::Managed
    } else {
        IrqKind::Movable
    }
}

/// Names of its handlers: `i801_smbus+ehci_hcd` share the line.
pub fn handler_names(irq: &Irq) -> String {
    irq.actions.join("+")
}

/// Affinity of an interrupt, or the unknown judgement for it.
pub fn require_affinity<'a>(irq: &Irq, affinity: &'a Fact<CpuSet>) -> Result<&'a CpuSet, Judgement> {
    affinity.known().ok_or_else(|| {
        unknown_from(&format!("the affinity of interrupt {} ({})", irq.number, handler_names(irq)), affinity)
    })
}

/// Returns early unless every interrupt could be listed.
pub fn require_all(irqs: &Irqs) -> Result<(), Judgement> {
    if irqs.missed > 0 || irqs.irqs.is_empty() {
        return Err(Judgement::unknown(
            "not all interrupts below /proc/irq could be read: /sys/kernel/irq shows which have a handler",
        ));
    }
    Ok(())
}

/// RISC-V controllers with lines of one CPU only (drivers/irqchip/irq-riscv-intc.c,
/// kernel/irq/ipi-mux.c): their chained lines to other controllers have the handler `(null)`.
const OF_EACH_HART: [&str; 2] = ["IPI Mux", "RISC-V INTC"];

fn of_each_cpu(action: &str) -> bool {
    const NAMES: [&str; 5] = ["IPI", "arm-pmu", "kvm guest ptimer", "kvm guest vtimer", "riscv-pmu"];
    NAMES.contains(&action) || is_cpu_timer(action) || is_riscv_ipi(action)
}

/// True for `nvme0q3`, `virtio0-req.1` and `virtio1-request`, but not for `nvme0q0`, the admin
/// queue of the device.
fn of_a_queue(action: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let queue =
        |rest: &str, between: &str| rest.split_once(between).is_some_and(|(a, b)| number(a) && number(b));
    let nvme = action.strip_prefix("nvme").is_some_and(|rest| queue(rest, "q") && !rest.ends_with("q0"));
    let disk = |rest: &str| queue(rest, "-req.") || rest.strip_suffix("-request").is_some_and(number);
    nvme || action.strip_prefix("virtio").is_some_and(disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::Fact;

    fn check(action: &str, managed: Option<bool>, per_cpu: Option<bool>, expected: IrqKind) {
        let irq = Irq {
            number: 0,
            actions: vec!["first".into(), action.into()],
            chip: String::new(),
            allowed: Fact::Absent,
            effective: Fact::Absent,
            managed,
            per_cpu,
        };
        assert_eq!(irq_kind(&irq), expected, "{action}");
    }

    #[test]
    fn debugfs_takes_precedence_over_names() {
        for (action, expected) in [
            ("nvme0q1", IrqKind::Managed),
            ("nvme12q34", IrqKind::Managed),
            ("nvme0q0", IrqKind::Movable),
            ("nvmeq1", IrqKind::Movable),
            ("virtio3-req.0", IrqKind::Managed),
            ("virtio3-request", IrqKind::Managed),
            ("virtio3-config", IrqKind::Movable),
            ("timer", IrqKind::PerCpu),
            ("eth0", IrqKind::Movable),
            ("arch_timer", IrqKind::PerCpu),
            ("Function call interrupts", IrqKind::PerCpu),
            ("CPU stop (for crash dump) interrupts", IrqKind::PerCpu),
            ("riscv-pmu", IrqKind::PerCpu),
        ] {
            check(action, None, None, expected);
        }
        check("nvme0q1", Some(false), Some(false), IrqKind::Movable);
        check("mpt3sas0-msix1", Some(true), Some(false), IrqKind::Managed);
        check("x", Some(true), Some(true), IrqKind::PerCpu);
        let of = |chip: &str| {
            let (actions, fact) = (vec!["(null)".to_owned()], Fact::Absent);
            let none = Fact::Absent;
            let (chip, managed) = (chip.to_owned(), None);
            irq_kind(&Irq {
                number: 11,
                actions,
                chip,
                allowed: fact,
                effective: none,
                managed,
                per_cpu: None,
            })
        };
        assert_eq!((of("RISC-V INTC"), of("SiFive PLIC")), (IrqKind::PerCpu, IrqKind::Movable));
    }
}
