//! Culprit of a finished run to which a slice was attributed, for pages that link the one to the
//! other.

use super::naming::{POOLED, full_name, group_name};
use super::{find, names};
use model::run::{Culprit, Slice, Spike};

/// Index of the slice's culprit in the run's list; none if it is too small to be listed.
pub fn place_of(culprits: &[Culprit], slice: &Slice) -> Option<usize> {
    let rule = slice.rule.as_deref().and_then(find);
    let name = |apart: &str| full_name(rule, apart);
    let own = match rule {
        Some(rule) => name(&group_name(rule.grouping, slice)),
        None => name(&names::fallback_name(slice)),
    };
    // Slices without a rule are distinguished by their kind; those of a rule may have several.
    let alike = |culprit: &&Culprit| {
        culprit.rule == slice.rule && (slice.rule.is_some() || culprit.kind == slice.kind)
    };
    let named = |wanted: &str| culprits.iter().position(|culprit| alike(&culprit) && culprit.name == wanted);
    named(&own).or_else(|| named(&name(POOLED)))
}

/// Time of each culprit of a list in a spike, in nanoseconds, by index in the list.
pub fn time_by_culprit(culprits: &[Culprit], spike: &Spike) -> Vec<i64> {
    let mut times = vec![0i64; culprits.len()];
    for slice in spike.slices.iter().filter(|slice| slice.ns.0 > 0) {
        if let Some(place) = place_of(culprits, slice) {
            times[place] = times[place].saturating_add(slice.ns.0);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::super::context::RunContext;
    use super::super::tally::rank_all;
    use super::*;
    use model::run::{Host, Spike, Who};
    use model::units::{Cpu, Nanos};

    #[test]
    fn every_slice_leads_to_what_it_was_counted_for() {
        let slice = |kind: &str, comm: &str, at: i64| Slice {
            kind: kind.into(),
            start_ns: Nanos(at),
            ns: Nanos(100_000),
            who: Who { comm: comm.into(), pid: 9, prio: 20, ..Who::default() },
            ..Slice::default()
        };
        let mut spikes: Vec<Spike> = (0..3)
            .map(|number| Spike {
                cpu: Cpu(1),
                expected_ns: Nanos(number * 1_000_000),
                actual_ns: Nanos(number * 1_000_000 + 200_000),
                latency_ns: Nanos(200_000),
                slices: vec![
                    slice("thread", "hog", number * 1_000_000),
                    slice("workqueue", "kworker/3:1", number * 1_000_000 + 100_000),
                ],
                ..Spike::default()
            })
            .collect();
        let host = Host::default();
        let ranking = rank_all(&mut spikes, &RunContext::of_machine(&host));
        let mut took = vec![0i64; ranking.culprits.len()];
        for slice in spikes.iter().flat_map(|spike| &spike.slices) {
            took[place_of(&ranking.culprits, slice).expect("all are listed")] += slice.ns.0;
        }
        let totals: Vec<i64> = ranking.culprits.iter().map(|culprit| culprit.total_ns.0).collect();
        assert_eq!(took, totals);
        assert_eq!(place_of(&ranking.culprits, &slice("irq", "nobody", 0)), None);
    }
}
