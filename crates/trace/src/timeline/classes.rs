//! Classes of spikes, by kinds of slices.

use std::collections::BTreeMap;

use model::keyword::Word;
use model::run::Spike;
use model::slice::SliceKind;
use model::sort::CompactSort;

/// Kinds with at least a tenth of the latency, largest first.
pub fn classes(spike: &Spike) -> Vec<Word<SliceKind>> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for slice in &spike.slices {
        let sum = sums.entry(slice.kind.as_str()).or_default();
        *sum = sum.saturating_add(slice.ns.0);
    }
    sums.insert(SliceKind::Unexplained.name(), spike.unexplained_ns.0);
    let mut large: Vec<(&str, i64)> =
        sums.into_iter().filter(|&(_, ns)| ns > 0 && ns >= spike.latency_ns.0 / 10).collect();
    large.compact_sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    large.into_iter().map(|(kind, _)| kind.into()).collect()
}
