//! A machine, or one of its CPUs, that did not run: a hypervisor, firmware or hardware stopped it.
//!
//! The timeline proves most stops. Unexplained time may be shown to be one by a counter at the end
//! of the run: the hypervisor's steal, or the processor's system management interrupts.

use super::context::{RunContext, SliceContext};
use super::patterns::{Patterns, SpikeSpan};
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{HWLAT, OSNOISE, PROC_STAT5, RT_HARDWARE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;
use trace::timeline;
use trace::timeline::without_events::STEAL_TICK;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "stopped-from-outside",
    title: "stopped from outside",
    signature: "No CPU has an event for some time, timers that were due expire late together, and all CPUs \
                resume at once; or a known piece of work takes far longer than usual.",
    detection: "Proven by a timer that was due when nothing could delay it: the time counts from that point \
                on. The time before it in the same silence, and a silence that only missing ticks show, are \
                estimated. Time without an event is also estimated from counters: in a virtual machine, if \
                the hypervisor counted as much steal on the CPU in that second; on x86 hardware, if all \
                measured CPUs were late at once, and the processor counted system management interrupts in \
                the run or the stops are periodic. Without such evidence the time stays unexplained.",
    remedy: "nothing inside this system helps; for a virtual machine, on its host: give each virtual CPU a \
             dedicated, isolated physical CPU, and keep the host's work off it; on hardware: look for a \
             firmware setting (USB legacy support, fan control, error reporting, TCO), a newer firmware, or \
             the vendor's real-time profile",
    kinds: &[SliceKind::Stopped],
    sources: &[
        Source { title: "kernel: hardware latency detector", url: HWLAT },
        Source { title: "proc_stat(5), steal", url: PROC_STAT5 },
        Source { title: "kernel: osnoise tracer, hardware noise", url: OSNOISE },
        Source { title: "kernel: real-time hardware, system management interrupts", url: RT_HARDWARE },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["virtual-machine"],
    provoke: "for a virtual machine: pause it, or spin on its physical CPU in another one; for firmware, \
              Linux has no general way: the time of day, the temperature and USB devices may cause it",
    fallback: true,
    matches: |context: &SliceContext| Some(context.slice.evidence.clone()),
    examples: SpikeExamples {
        fires: "host virtual=kvm\nstopped ns=4000000 evidence=all_CPUs_were_silent",
        silent: "host virtual=kvm\nstolen cpu=0 ns=10000000\nunexplained ns=4000000",
    },
    ..CulpritRule::DEFAULT
};

/// Evidence that a spike's unexplained time is a stop from outside, if it is large enough.
pub(super) fn counted_outside(span: &SpikeSpan, run: &RunContext, all: &Patterns) -> Option<String> {
    let length = Nanos(span.to.0.saturating_sub(span.from.0));
    let matters = timeline::matters(span.unexplained, length);
    matters.then(|| counted(span, run, all)).flatten()
}

/// Evidence, at the end of a run, that time without any event was a stop from outside. Its length
/// is estimated: the counters show neither its time nor the share of each stop.
pub(super) fn counted(span: &SpikeSpan, run: &RunContext, patterns: &Patterns) -> Option<String> {
    match run.host.virtualization.as_str() {
        "" => None,
        "none" => managed(span, run, patterns),
        _ => stolen(span, run),
    }
}

fn stolen(span: &SpikeSpan, run: &RunContext) -> Option<String> {
    // Steal that is counted close to a second may belong to it.
    let near = run.steal.iter().filter(|steal| {
        steal.cpu == span.cpu
            && steal.from.0.saturating_sub(STEAL_TICK) <= span.to.0
            && span.from.0 <= steal.to.0.saturating_add(STEAL_TICK)
    });
    let counted = near.fold(0i64, |sum, steal| sum.saturating_add(steal.ns.0));
    let enough = counted > 0 && counted.saturating_add(STEAL_TICK) >= span.unexplained.0;
    enough.then(|| {
        "the hypervisor counted as much steal on this CPU in the same second; the duration is estimated"
            .to_owned()
    })
}

fn managed(span: &SpikeSpan, run: &RunContext, patterns: &Patterns) -> Option<String> {
    let x86 = matches!(run.host.machine.as_str(), "x86_64" | "i686");
    if !x86 || !patterns.on_all_cpus(span) {
        return None;
    }
    if run.integrity.iter().any(|entry| entry.kind == IntegrityKind::Smi) {
        return Some(
            "all measured CPUs stopped at once, and the processor counted system management interrupts; the \
             duration is estimated"
                .to_owned(),
        );
    }
    let period = patterns.at_once.filter(|period| period.covers_most())?;
    Some(format!("all measured CPUs stopped at once, and {}; the duration is estimated", period.sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::culprits::context::StealInterval;
    use crate::culprits::fixture::Scene;
    use model::run::Host;
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
            let span = SpikeSpan {
                cpu: Cpu(1),
                from: Nanos(5_000_000_000),
                to: Nanos(5_040_000_000),
                unexplained: Nanos(40_000_000),
                stopped: Nanos(0),
            };
            let run = RunContext { steal: &steal, ..RunContext::of_machine(&host) };
            counted(&span, &run, &Patterns::default()).is_some()
        };
        assert!(fires(4_500_000_000, 30_000_000));
        assert!(!fires(4_500_000_000, 20_000_000), "too little");
        assert!(!fires(4_500_000_000, 0), "none");
        assert!(!fires(2_000_000_000, 40_000_000), "another second");
        let of = |cpu: u32, ns: u32| {
            let stolen = format!("host virtual=kvm\nstolen cpu={cpu} ns=10000000\nunexplained ns={ns}");
            Scene::of(&format!("{stolen}\nthread ns=20000000 comm=hog prio=9")).rules()
        };
        assert!(of(1, 4_000_000).contains(&"stopped-from-outside".to_owned()));
        assert_eq!(of(0, 4_000_000), ["realtime-thread"], "another CPU's");
        assert_eq!(of(1, 2_000), ["realtime-thread"], "small change");
    }

    #[test]
    fn firmware_takes_a_count_or_a_period_on_all_cpus_of_hardware() {
        let named = |host: &str, words: &str, again: &str| {
            let text =
                format!("host machine=x86_64 virtual={host}\n{words}\nunexplained ns=300000\nagain {again}");
            Scene::of(&text).rules() == ["stopped-from-outside"]
        };
        assert!(named("none", "integrity kind=smi", "times=3 every=700000000 cpus=0,1"));
        assert!(!named("none", "integrity kind=smi", "times=3 every=700000000 cpus=1"), "one CPU alone");
        assert!(named("none", "", "times=40 every=1300000000 cpus=0,1"));
        assert!(!named("none", "", "times=3 every=1300000000 cpus=0,1"), "three times are no period");
        assert!(!named("kvm", "", "times=40 every=1300000000 cpus=0,1"));
        assert!(!named("", "", "times=40 every=1300000000 cpus=0,1"), "not known to be hardware");
    }
}
