//! Which spikes each culprit has part in, and the one that shows it best: the five worst spikes of
//! a hunt can all be another's.

use super::parts::parts;
use model::run::{Run, Spike};
use model::slice::SliceKind;
use rules::culprits::belonging::place_of;

/// A culprit's spikes among those that the run has kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Involved {
    /// Places in the run's list, ascending.
    pub spikes: Vec<usize>,
    /// The place of the one with the median of its times, of those in which it took most.
    pub typical: Option<usize>,
}

/// What each culprit took of a spike; of what no event accounts for, each that is of that kind has
/// all.
pub fn taken(run: &Run, spike: &Spike) -> Vec<i64> {
    let mut took = vec![0i64; run.culprits.len()];
    for part in parts(spike) {
        match part.slice {
            Some(slice) => {
                if let Some(place) = place_of(&run.culprits, slice) {
                    took[place] = took[place].saturating_add(part.ns.0);
                }
            }
            None => run.culprits.iter().zip(&mut took).for_each(|(culprit, took)| {
                if culprit.kind == SliceKind::Unexplained {
                    *took = took.saturating_add(part.ns.0);
                }
            }),
        }
    }
    took
}

/// The place of the culprit that took most; none where no listed one has a part.
pub fn most_of(took: &[i64]) -> Option<usize> {
    let most = took.iter().enumerate().max_by_key(|(place, ns)| (**ns, std::cmp::Reverse(*place)));
    most.filter(|(_, ns)| **ns > 0).map(|(place, _)| place)
}

/// The part of every culprit.
pub fn all(run: &Run) -> Vec<Involved> {
    let mut found: Vec<Involved> = vec![Involved::default(); run.culprits.len()];
    // Whether it took most of the spike, and how much.
    let mut times: Vec<Vec<(bool, i64, usize)>> = vec![Vec::new(); run.culprits.len()];
    for (at, spike) in run.spikes.iter().enumerate() {
        let took = taken(run, spike);
        let most = took.iter().copied().max().unwrap_or(0);
        for (place, &ns) in took.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            found[place].spikes.push(at);
            times[place].push((ns == most, ns, at));
        }
    }
    for (part, mut times) in found.iter_mut().zip(times) {
        if times.iter().any(|time| time.0) {
            times.retain(|time| time.0);
        }
        times.sort_unstable();
        part.typical = times.get(times.len().saturating_sub(1) / 2).map(|time| time.2);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn the_typical_spike_is_the_median_of_those_in_which_it_took_most() {
        let run = fixture::run();
        let found = all(&run);
        assert_eq!(found.len(), run.culprits.len());
        let busy = run.culprits.iter().position(|culprit| culprit.name == "busy-loop").unwrap();
        // It took most of both: of two the smaller is the median.
        assert_eq!((found[busy].spikes.as_slice(), found[busy].typical), ([0, 4].as_slice(), Some(4)));
        let nobody = run.culprits.iter().position(|culprit| culprit.kind == SliceKind::Unexplained).unwrap();
        assert_eq!(found[nobody].typical, Some(5));
        assert_eq!(all(&Run::default()), []);
    }
}
