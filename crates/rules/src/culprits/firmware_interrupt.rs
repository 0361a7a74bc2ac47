//! The firmware runs on the processor, in system management mode.

use super::context::SliceContext;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{HWLAT, RT_HARDWARE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use model::vocabulary::IntegrityKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "firmware-interrupt",
    title: "the firmware's system management mode",
    signature: "Time in which nothing happens that the kernel sees, at the same moment on all \
                measured CPUs of a machine that is not virtual.",
    detection: "Firmware is named only on x86 hardware, if two or more CPUs were measured and all \
                came late at once, and either the processor counted such interrupts in the run or \
                the times recur with a period. One CPU alone, or a virtual machine, stays \
                unexplained: memory, buses and hypervisors look the same.",
    remedy: "look for a setting of the firmware (USB legacy support, fan control, error \
             reporting, TCO), a newer firmware, or the vendor's real-time profile; onbeat cannot \
             change it",
    kinds: &[SliceKind::Unexplained],
    sources: &[
        Source { title: "kernel: hardware latency detector", url: HWLAT },
        Source { title: "kernel: real-time hardware, system management interrupts", url: RT_HARDWARE },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "nothing can from Linux on machines in general: it is the firmware's; the times of \
              day, the temperature and USB devices may",
    matches,
    examples: SpikeExamples {
        fires: "host virtual=none machine=x86_64\nintegrity kind=smi\nunexplained ns=300000\n\
                again times=3 every=700000000 cpus=0,1",
        silent: "host virtual=none machine=x86_64\nintegrity kind=smi\nunexplained ns=300000\n\
                 again times=3 every=700000000 cpus=1",
    },
    ..CulpritRule::DEFAULT
};

fn matches(context: &SliceContext) -> Option<String> {
    let (spike, run) = (context.spike, context.run);
    let metal = run.host.virtualization == "none" && matches!(run.host.machine.as_str(), "x86_64" | "i686");
    let span = super::patterns::SpikeSpan {
        cpu: spike.cpu,
        from: spike.expected_ns,
        to: spike.actual_ns,
        unexplained: spike.unexplained_ns,
    };
    if !metal || !context.patterns.on_all_cpus(&span) {
        return None;
    }
    if run.integrity.iter().any(|entry| entry.kind == IntegrityKind::Smi) {
        return Some(
            "all measured CPUs stood still at once, and the processor counted management interrupts"
                .to_owned(),
        );
    }
    let period = context.patterns.at_once.filter(|period| period.covers_most())?;
    Some(format!("all measured CPUs stood still at once, and {}", period.sentence()))
}

#[cfg(test)]
mod tests {
    use crate::culprits::fixture::Scene;

    #[test]
    fn without_a_count_it_takes_a_period_and_never_a_virtual_machine() {
        let named = |host: &str, again: &str| {
            let text =
                format!("host machine=x86_64 virtual={host}\nunexplained ns=300000\nagain {again} cpus=0,1");
            Scene::of(&text).rules() == ["firmware-interrupt"]
        };
        assert!(named("none", "times=40 every=1300000000"));
        assert!(!named("none", "times=3 every=1300000000"), "three times are no period");
        assert!(!named("kvm", "times=40 every=1300000000"));
        assert!(!named("", "times=40 every=1300000000"), "not known to be hardware");
    }
}
