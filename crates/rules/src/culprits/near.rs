//! Which of the seconds with steal lie near spikes: the others tell nothing and need not be held.

use std::collections::BTreeMap;

use super::Stolen;
use super::patterns::Mark;
use model::units::{Cpu, Nanos};

/// Further than this from a spike a second's steal is not of it: more than any rule looks.
const NEAR: i64 = Nanos::SECOND.0;

/// Lets go of steal that lies near none of the marks and ended before `recent`.
pub fn keep<'a>(stolen: &mut Vec<Stolen>, marks: impl Iterator<Item = &'a Mark>, recent: Nanos) {
    let mut near: BTreeMap<Cpu, Vec<(i64, i64)>> = BTreeMap::new();
    for mark in marks {
        let around = (mark.from.0.saturating_sub(NEAR), mark.to.0.saturating_add(NEAR));
        near.entry(mark.cpu).or_default().push(around);
    }
    for spans in near.values_mut() {
        spans.sort_unstable();
        // Those that overlap are one, so that the last that begins before a time is the only one to ask.
        spans.dedup_by(|next, kept| {
            let one = next.0 <= kept.1;
            if one {
                kept.1 = kept.1.max(next.1);
            }
            one
        });
    }
    stolen.retain(|stolen| {
        let spans = near.get(&stolen.cpu).map_or(&[][..], Vec::as_slice);
        let before = spans.partition_point(|span| span.0 <= stolen.to.0);
        stolen.to >= recent || before.checked_sub(1).is_some_and(|at| spans[at].1 >= stolen.from.0)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_a_spike_of_its_cpu_or_recent_stays() {
        let second = |cpu, from: i64| Stolen {
            cpu: Cpu(cpu),
            from: Nanos(from * NEAR),
            to: Nanos((from + 1) * NEAR),
            ns: Nanos(1),
        };
        let mark = |from: i64, to: i64| Mark {
            cpu: Cpu(0),
            from: Nanos(from * NEAR),
            to: Nanos(to * NEAR),
            unexplained: Nanos(1),
        };
        let mut stolen: Vec<Stolen> = (0..40).flat_map(|at| [second(0, at), second(1, at)]).collect();
        keep(&mut stolen, [mark(20, 21), mark(10, 13), mark(11, 12)].iter(), Nanos(39 * NEAR));
        let left: Vec<(u32, i64)> = stolen.iter().map(|one| (one.cpu.0, one.from.0 / NEAR)).collect();
        let of_spikes = (8..=14).chain(18..=22).map(|at| (0, at));
        let recent = [(0, 38), (1, 38), (0, 39), (1, 39)];
        assert_eq!(left, of_spikes.chain(recent).collect::<Vec<_>>());
    }
}
