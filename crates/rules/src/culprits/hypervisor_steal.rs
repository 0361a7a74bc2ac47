//! The hypervisor ran something else on the CPU under the virtual one.

use super::context::SliceContext;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{OSNOISE, PROC_STAT5};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "hypervisor-steal",
    title: "time that the hypervisor took",
    signature: "Time in which nothing happens that the kernel sees, in a virtual machine whose \
                hypervisor says that it took time from this CPU in that second.",
    detection: "By steal, which the hypervisor counts, in the second of the spike, and as much of \
                it as is unexplained. Unexplained time in a virtual machine that counts no steal \
                is not named.",
    remedy: "on the host: give the virtual CPU a physical one of its own, isolated, and keep the \
             host's work off it; nothing inside the guest helps",
    kinds: &[SliceKind::Unexplained],
    sources: &[
        Source { title: "proc_stat(5), steal", url: PROC_STAT5 },
        Source { title: "kernel: osnoise tracer, hardware noise", url: OSNOISE },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["virtual-machine"],
    provoke: "another virtual machine that spins on the same physical CPU",
    matches,
    examples: SpikeExamples {
        fires: "host virtual=kvm\nstolen cpu=1 ns=10000000\nunexplained ns=4000000",
        silent: "host virtual=kvm\nstolen cpu=0 ns=10000000\nunexplained ns=4000000",
    },
    ..CulpritRule::DEFAULT
};

/// The kernel counts steal in ticks, of 10 ms at the coarsest: what lies that close to a second may
/// belong to it.
const TICK: i64 = 10_000_000;

fn matches(context: &SliceContext) -> Option<String> {
    let (spike, run) = (context.spike, context.run);
    if matches!(run.host.virtualization.as_str(), "" | "none") {
        return None;
    }
    let near = run.steal.iter().filter(|steal| {
        steal.cpu == spike.cpu
            && steal.from.0.saturating_sub(TICK) <= spike.actual_ns.0
            && spike.expected_ns.0 <= steal.to.0.saturating_add(TICK)
    });
    let counted = near.fold(0i64, |sum, steal| sum.saturating_add(steal.ns.0));
    let enough = counted > 0 && counted.saturating_add(TICK) >= spike.unexplained_ns.0;
    enough.then(|| "the hypervisor counted steal in the same second".to_owned())
}

#[cfg(test)]
mod tests {
    use super::CULPRIT;
    use crate::culprits::context::{RunContext, SliceContext, StealInterval};
    use crate::culprits::patterns::Patterns;
    use model::run::{Host, Slice, Spike};
    use model::units::{Cpu, Nanos};

    #[test]
    fn steal_of_another_second_or_too_little_does_not_match() {
        let host = Host { virtualization: "kvm".into(), ..Host::default() };
        let fires = |from: i64, ns: i64| {
            let steal = [StealInterval {
                cpu: Cpu(1),
                from: Nanos(from),
                to: Nanos(from + 1_000_000_000),
                ns: Nanos(ns),
            }];
            let spike = Spike {
                cpu: Cpu(1),
                expected_ns: Nanos(5_000_000_000),
                actual_ns: Nanos(5_040_000_000),
                unexplained_ns: Nanos(40_000_000),
                ..Spike::default()
            };
            let run = RunContext { steal: &steal, ..RunContext::of_machine(&host) };
            let (slice, patterns) = (Slice::default(), Patterns::default());
            (CULPRIT.matches)(&SliceContext { spike: &spike, slice: &slice, run: &run, patterns: &patterns })
                .is_some()
        };
        assert!(fires(4_500_000_000, 30_000_000));
        assert!(!fires(4_500_000_000, 20_000_000), "too little");
        assert!(!fires(4_500_000_000, 0), "none");
        assert!(!fires(2_000_000_000, 40_000_000), "another second");
    }
}
