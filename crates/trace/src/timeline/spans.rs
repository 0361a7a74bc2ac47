//! Stretches of time with values, sorted and disjoint, with lookup by time.

use model::sort::CompactSort;

/// Half-open stretches of time, ascending, without overlap.
#[derive(Clone, Debug)]
pub(super) struct Spans<T>(Vec<(i64, i64, T)>);

impl<T> Spans<T> {
    /// Sorts stretches; where two overlap, the later one loses the common part.
    pub(super) fn new(mut all: Vec<(i64, i64, T)>) -> Spans<T> {
        all.compact_sort_by_key(|&(start, end, _)| (start, end));
        let mut spans: Vec<(i64, i64, T)> = Vec::with_capacity(all.len());
        for (start, end, what) in all {
            let start = spans.last().map_or(start, |last| start.max(last.1));
            if start < end {
                spans.push((start, end, what));
            }
        }
        Spans(spans)
    }

    /// Stretch that contains a time.
    pub(super) fn at(&self, time: i64) -> Option<&(i64, i64, T)> {
        let after = self.0.partition_point(|&(start, ..)| start <= time);
        self.0[..after].last().filter(|&&(_, end, _)| time < end)
    }

    /// Length of the part of a time that lies in such stretches.
    pub(super) fn covered(&self, from: i64, to: i64, is: impl Fn(&T) -> bool) -> i64 {
        let within = |&(start, end, ref what): &(i64, i64, T)| {
            if is(what) { end.min(to).saturating_sub(start.max(from)).max(0) } else { 0 }
        };
        self.0.iter().map(within).fold(0, i64::saturating_add)
    }

    /// Start and end times of the stretches.
    pub(super) fn edges(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().flat_map(|&(start, end, _)| [start, end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_goes_to_the_earlier() {
        let spans = Spans::new(vec![(5, 20, 'b'), (0, 10, 'a'), (30, 30, 'c'), (12, 18, 'd')]);
        let at = |time| spans.at(time).map(|s| s.2);
        assert_eq!(
            [at(-1), at(0), at(9), at(10), at(19), at(20)],
            [None, Some('a'), Some('a'), Some('b'), Some('b'), None]
        );
        assert_eq!([spans.covered(5, 12, |_| true), spans.covered(5, 12, |what| *what == 'b')], [7, 2]);
        assert_eq!(spans.edges().collect::<Vec<_>>(), [0, 10, 10, 20]);
    }
}
