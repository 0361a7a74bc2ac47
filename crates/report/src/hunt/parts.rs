//! Spike as a row of parts without gaps: its slices in order of time, and between them time that no
//! event accounts for.

use super::{kinds, sentences};
use model::run::{Run, Slice, Spike};
use model::sort::CompactSort;
use model::units::Nanos;

/// Limit of parts of a spike that are shown one by one; the others are summed.
pub const PARTS: usize = 14;

/// Stretch of a spike, in nanoseconds since the thread should have run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpikePart<'a> {
    pub start: Nanos,
    pub ns: Nanos,
    /// Slice of the part; none for time that no event accounts for.
    pub slice: Option<&'a Slice>,
}

impl SpikePart<'_> {
    /// Kind of its slice, or `unexplained`.
    pub fn kind(&self) -> &str {
        self.slice.map_or(kinds::UNEXPLAINED, |slice| slice.kind.as_str())
    }
}

/// Slices of a spike in order of time, with the gaps before, between and after them.
pub fn parts(spike: &Spike) -> Vec<SpikePart<'_>> {
    let since = |time: Nanos| time.0.saturating_sub(spike.expected_ns.0);
    let mut slices: Vec<&Slice> = spike.slices.iter().filter(|slice| slice.ns.0 > 0).collect();
    slices.compact_sort_by_key(|slice| slice.start_ns);
    let (mut parts, mut reached) = (Vec::new(), 0i64);
    for slice in slices {
        let start = since(slice.start_ns);
        parts.extend(gap(reached, start));
        parts.push(SpikePart { start: Nanos(start), ns: slice.ns, slice: Some(slice) });
        reached = reached.max(start.saturating_add(slice.ns.0));
    }
    parts.extend(gap(reached, spike.latency_ns.0));
    parts
}

fn gap(from: i64, to: i64) -> Option<SpikePart<'static>> {
    (to > from).then(|| SpikePart { start: Nanos(from), ns: Nanos(to.saturating_sub(from)), slice: None })
}

/// Longest parts, in order of time; number and total length of the others.
pub fn longest(mut parts: Vec<SpikePart<'_>>, most: usize) -> (Vec<SpikePart<'_>>, usize, Nanos) {
    if parts.len() <= most {
        return (parts, 0, Nanos(0));
    }
    parts.compact_sort_by_key(|part| (std::cmp::Reverse(part.ns), part.start));
    let others = parts.split_off(most);
    parts.compact_sort_by_key(|part| part.start);
    (parts, others.len(), Nanos(others.iter().fold(0i64, |sum, part| sum.saturating_add(part.ns.0))))
}

/// Parts of a spike with the same kind, owner and function.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedParts<'a> {
    /// Owner, in words.
    pub whose: String,
    /// Parts in order of time.
    pub parts: Vec<SpikePart<'a>>,
    /// Total length.
    pub ns: Nanos,
}

impl<'a> MergedParts<'a> {
    /// Longest of them, whose evidence is shown.
    pub fn longest(&self) -> Option<&SpikePart<'a>> {
        self.parts.iter().max_by_key(|part| (part.ns, std::cmp::Reverse(part.start)))
    }
}

/// Groups the parts by kind, owner and function; largest total first.
pub fn merged<'a>(parts: &[SpikePart<'a>]) -> Vec<MergedParts<'a>> {
    let mut rows: std::collections::BTreeMap<(&str, String), Vec<SpikePart<'a>>> = Default::default();
    for part in parts {
        let whose = part.slice.map(|slice| sentences::who(&slice.who)).unwrap_or_default();
        rows.entry((part.kind(), whose)).or_default().push(*part);
    }
    let row = |((_, whose), parts): ((&str, String), Vec<SpikePart<'a>>)| {
        let ns = Nanos(parts.iter().fold(0i64, |sum, part| sum.saturating_add(part.ns.0)));
        MergedParts { whose, parts, ns }
    };
    let mut rows: Vec<MergedParts> = rows.into_iter().map(row).collect();
    rows.compact_sort_by_key(|row| std::cmp::Reverse(row.ns));
    rows
}

/// Latest spikes, up to this number, latest first.
pub fn worst(run: &Run, most: usize) -> Vec<&Spike> {
    by_latency(run).into_iter().take(most).map(|at| &run.spikes[at]).collect()
}

/// Places of all kept spikes in the run's list, latest first: the order of their numbers.
pub fn by_latency(run: &Run) -> Vec<usize> {
    let mut order: Vec<usize> = (0..run.spikes.len()).collect();
    order.compact_sort_by_key(|&at| {
        let spike = &run.spikes[at];
        (std::cmp::Reverse(spike.latency_ns), spike.expected_ns, spike.cpu)
    });
    order
}

/// Total latency of all spikes.
pub fn total(run: &Run) -> Nanos {
    if let Some(all) = run.recorder.as_ref().map(|recorder| recorder.latency_ns).filter(|all| all.0 > 0) {
        return all;
    }
    Nanos(run.spikes.iter().fold(0i64, |sum, spike| sum.saturating_add(spike.latency_ns.0)))
}

/// Total time of all spikes that no event accounts for.
pub fn unexplained(run: &Run) -> Nanos {
    if let Some(recorder) = run.recorder.as_ref().filter(|recorder| recorder.latency_ns.0 > 0) {
        return recorder.unexplained_ns;
    }
    Nanos(run.spikes.iter().fold(0i64, |sum, spike| sum.saturating_add(spike.unexplained_ns.0)))
}

/// One length as a share of another, 0 to 1 and beyond; 0 of nothing.
pub fn share(part: Nanos, whole: Nanos) -> f64 {
    if whole.0 > 0 { part.0 as f64 / whole.0 as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn parts_leave_no_gap_and_add_up() {
        for spike in &fixture::run().spikes {
            let parts = parts(spike);
            let mut reached = 0;
            for part in &parts {
                assert_eq!(part.start.0, reached, "{spike:?}");
                reached += part.ns.0;
            }
            assert_eq!(reached, spike.latency_ns.0, "{spike:?}");
            let gaps: i64 = parts.iter().filter(|part| part.slice.is_none()).map(|part| part.ns.0).sum();
            assert_eq!(gaps, spike.unexplained_ns.0, "{spike:?}");
        }
    }

    #[test]
    fn the_longest_are_kept_in_order_of_time() {
        let part = |start, ns| SpikePart { start: Nanos(start), ns: Nanos(ns), slice: None };
        let all = vec![part(0, 5), part(5, 1), part(6, 9), part(15, 2)];
        assert_eq!(longest(all.clone(), 2), (vec![part(0, 5), part(6, 9)], 2, Nanos(3)));
        assert_eq!(longest(all.clone(), 4), (all, 0, Nanos(0)));
    }

    #[test]
    fn parts_of_one_owner_are_put_together_and_nothing_is_lost() {
        for spike in &fixture::run().spikes {
            let parts = parts(spike);
            let rows = merged(&parts);
            assert_eq!(rows.iter().map(|row| row.parts.len()).sum::<usize>(), parts.len());
            assert_eq!(rows.iter().map(|row| row.ns.0).sum::<i64>(), spike.latency_ns.0);
            assert!(rows.windows(2).all(|pair| pair[0].ns >= pair[1].ns));
            assert!(rows.iter().all(|row| row.longest().is_some()));
        }
    }

    #[test]
    fn the_worst_come_first() {
        let run = fixture::run();
        let found = worst(&run, 3);
        assert_eq!(found.len(), 3);
        assert!(found.windows(2).all(|pair| pair[0].latency_ns >= pair[1].latency_ns));
        assert_eq!(found[0].latency_ns, run.spikes.iter().map(|spike| spike.latency_ns).max().unwrap());
    }

    #[test]
    fn times_from_the_ends_of_the_scale_do_no_harm() {
        let slice = Slice { start_ns: Nanos(i64::MIN), ns: Nanos(i64::MAX), ..Slice::default() };
        let spike =
            Spike { expected_ns: Nanos(i64::MAX), slices: vec![slice.clone(), slice], ..Spike::default() };
        assert_eq!(parts(&spike).iter().filter(|part| part.slice.is_some()).count(), 2);
        assert_eq!(share(Nanos(1), Nanos(0)), 0.0);
    }
}
