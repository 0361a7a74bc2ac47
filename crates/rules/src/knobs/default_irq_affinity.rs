//! The affinity that new interrupts begin with.

use super::sources::{IRQ_AFFINITY, ISOLATION, PARAMETERS};
use crate::case::{Case, absent};
use crate::change::{Because, Change};
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::words::{list, mask};
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use facts::line::parse_mask;

pub static KNOB: Knob = Knob {
    id: "default-irq-affinity",
    title: "affinity of new interrupts",
    what: "An interrupt that a driver asks for begins with the CPUs in /proc/irq/default_smp_affinity: all, unless irqaffinity= on \
           the command line says otherwise. Making a partition does not change it.",
    why: "a driver that is loaded or a device that is plugged in brings its interrupt to the CPUs that matter",
    tell: "The mask itself. Interrupts that are there already are judged by irq-affinity.",
    cost: "The other CPUs take all new interrupts. The boot CPU is always in the mask that irqaffinity= makes.",
    wanted: "none of the CPUs that matter",
    fix: || {
        Remedy::advice(
            Because::Choice,
            "write the mask of the other CPUs to /proc/irq/default_smp_affinity, and boot with irqaffinity=LIST",
        )
    },
    severity: Severity::High,
    evidence: Evidence::Documented,
    lasts: Lasts::Runtime,
    sources: &[
        Source { title: "kernel: SMP IRQ affinity, default_smp_affinity", url: IRQ_AFFINITY },
        Source { title: "kernel: CPU isolation, IRQs isolation", url: ISOLATION },
        Source { title: "kernel: command line, irqaffinity=", url: PARAMETERS },
    ],
    cures: &[Slice::Irq],
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

fn judge(case: &Case) -> Judged {
    case.needs_isolation()?;
    let cpus = case.parsed(PATH, parse_mask)?.ok_or_else(|| absent(PATH))?;
    let online = case.known(&case.facts().online, "/sys/devices/system/cpu/online")?;
    let others = case.housekeeping()?;
    Ok(Judgement::fail_if(!cpus.and(case.cpus()).is_empty(), format!("CPU {}", list(&cpus.and(online))))
        .wanted(format!("CPU {others} at most"))
        .fix(
            Remedy::from(Change::write(PATH, mask(&others)))
                .keep(Change::boot(format!("irqaffinity={others}"))),
        ))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_mask_decides() {
        check(&KNOB, "", "pass CPU 0-1");
        // Masks have a bit for each CPU that the kernel could have.
        check(&KNOB, "/proc/irq/default_smp_affinity: ffffffff,ffffffff", "fail high CPU 0-3");
        check(&KNOB, "/proc/irq/default_smp_affinity: 4", "fail high CPU 2");
        check(&KNOB, "/proc/irq/default_smp_affinity: 0-3", "unknown");
        check(&KNOB, "/proc/irq/default_smp_affinity absent", "unknown");
    }
}
