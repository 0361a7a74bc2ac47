//! Steal by the hypervisor's count: the spikes that it explains, and the seconds that are kept.

use std::collections::BTreeMap;

use super::context::{RunContext, StealInterval};
use super::patterns::{Patterns, SpikeSpan};
use super::stopped_from_outside;
use model::run::{Host, Spike};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use trace::timeline;

/// Attributes a spike's unexplained time to a stop from outside if the steal counter shows it, at
/// the end of the run.
pub fn attribute(host: &Host, steal: &[StealInterval], spike: &mut Spike) {
    let run = RunContext { steal, ..RunContext::of_machine(host) };
    let span = SpikeSpan {
        cpu: spike.cpu,
        from: spike.expected_ns,
        to: spike.actual_ns,
        unexplained: spike.unexplained_ns,
        stopped: spike.stopped_ns,
    };
    if let Some(evidence) = stopped_from_outside::counted_outside(&span, &run, &Patterns::default()) {
        timeline::attribute_to_outside(spike, &evidence);
    }
    // Slices that were created at the end of the run have no rule yet.
    for slice in spike.slices.iter_mut().filter(|slice| slice.kind == SliceKind::Stopped) {
        slice.rule = Some(stopped_from_outside::CULPRIT.id.to_owned());
    }
}

/// Distance from a spike beyond which no rule looks for a second's steal.
const NEAR: i64 = Nanos::SECOND.0;

/// Drops steal that is near none of the spikes and ended before `recent`.
pub fn retain_near<'a>(
    steal: &mut Vec<StealInterval>,
    spans: impl Iterator<Item = &'a SpikeSpan>,
    recent: Nanos,
) {
    let mut near: BTreeMap<Cpu, Vec<(i64, i64)>> = BTreeMap::new();
    for span in spans {
        let around = (span.from.0.saturating_sub(NEAR), span.to.0.saturating_add(NEAR));
        near.entry(span.cpu).or_default().push(around);
    }
    for spans in near.values_mut() {
        spans.sort_unstable();
        // Overlapping stretches are merged, so that only the last one that starts before a time has
        // to be checked.
        spans.dedup_by(|next, previous| {
            let one = next.0 <= previous.1;
            if one {
                previous.1 = previous.1.max(next.1);
            }
            one
        });
    }
    steal.retain(|steal| {
        let spans = near.get(&steal.cpu).map_or(&[][..], Vec::as_slice);
        let before = spans.partition_point(|span| span.0 <= steal.to.0);
        steal.to >= recent || before.checked_sub(1).is_some_and(|at| spans[at].1 >= steal.from.0)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_the_hypervisor_counts_is_no_longer_unknown() {
        let host = Host { virtualization: "kvm".into(), ..Host::default() };
        let explained_ns = |ns: i64| {
            let steal =
                StealInterval { cpu: Cpu(1), from: Nanos(0), to: Nanos(1_000_000_000), ns: Nanos(ns) };
            let mut spike = Spike {
                cpu: Cpu(1),
                expected_ns: Nanos(500_000_000),
                actual_ns: Nanos(540_000_000),
                latency_ns: Nanos(40_000_000),
                unexplained_ns: Nanos(40_000_000),
                unexplained_why: "it cannot be told: x".into(),
                ..Spike::default()
            };
            attribute(&host, &[steal], &mut spike);
            spike.stopped_ns == Nanos(40_000_000) && spike.unexplained_ns == Nanos(0)
        };
        assert!(explained_ns(40_000_000) && !explained_ns(10_000_000));
    }

    #[test]
    fn what_is_near_a_spike_of_its_cpu_or_recent_stays() {
        let second = |cpu, from: i64| StealInterval {
            cpu: Cpu(cpu),
            from: Nanos(from * NEAR),
            to: Nanos((from + 1) * NEAR),
            ns: Nanos(1),
        };
        let span = |from: i64, to: i64| SpikeSpan {
            cpu: Cpu(0),
            from: Nanos(from * NEAR),
            to: Nanos(to * NEAR),
            unexplained: Nanos(1),
            stopped: Nanos(0),
        };
        let mut steal: Vec<StealInterval> = (0..40).flat_map(|at| [second(0, at), second(1, at)]).collect();
        retain_near(&mut steal, [span(20, 21), span(10, 13), span(11, 12)].iter(), Nanos(39 * NEAR));
        let left: Vec<(u32, i64)> = steal.iter().map(|one| (one.cpu.0, one.from.0 / NEAR)).collect();
        let of_spikes = (8..=14).chain(18..=22).map(|at| (0, at));
        let recent = [(0, 38), (1, 38), (0, 39), (1, 39)];
        assert_eq!(left, of_spikes.chain(recent).collect::<Vec<_>>());
    }
}
