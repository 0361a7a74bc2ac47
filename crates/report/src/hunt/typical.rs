//! Spikes that each culprit has part in, and the one that shows it best: the five worst spikes of a
//! hunt may all have another culprit.

use std::borrow::Cow;

use super::parts::by_latency;
use model::run::{Run, Spike};
use model::sort::CompactSort;
use model::units::Nanos;
use rules::culprits::belonging::time_by_culprit;

/// Spikes of a culprit among those that the run has kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Involved {
    /// Places in the run's list, ascending.
    pub spikes: Vec<usize>,
    /// Place of the spike with its median time, among those in which it took most, if any.
    pub typical: Option<usize>,
}

/// Run with the part of each culprit in all of its spikes, some of which may be without their
/// slices.
#[derive(Clone, Debug)]
pub struct InvolvedRun<'a> {
    pub run: &'a Run,
    pub involved: Cow<'a, [Involved]>,
}

impl<'a> From<&'a Run> for InvolvedRun<'a> {
    fn from(run: &'a Run) -> InvolvedRun<'a> {
        InvolvedRun { run, involved: Cow::Owned(all(run)) }
    }
}

/// Place of the culprit that took most; none if no listed culprit has a part.
pub fn most_of(took: &[i64]) -> Option<usize> {
    let most = took.iter().enumerate().max_by_key(|(place, ns)| (**ns, std::cmp::Reverse(*place)));
    most.filter(|(_, ns)| **ns > 0).map(|(place, _)| place)
}

/// Places of the culprits that took part in a spike with the time of each, largest first.
pub fn concerned(run: &Run, spike: &Spike) -> Vec<(usize, Nanos)> {
    let took = time_by_culprit(&run.culprits, spike).into_iter().enumerate().filter(|(_, ns)| *ns > 0);
    let mut found: Vec<(usize, Nanos)> = took.map(|(place, ns)| (place, Nanos(ns))).collect();
    found.compact_sort_by_key(|&(place, ns)| (std::cmp::Reverse(ns), place));
    found
}

/// Number of the spike that is typical of the culprit at a place, in the numbering used everywhere.
pub fn number(run: &Run, involved: &[Involved], place: usize) -> Option<usize> {
    let typical = involved.get(place)?.typical?;
    by_latency(run).iter().position(|&at| at == typical).map(|rank| rank + 1)
}

/// Part of every culprit.
pub fn all(run: &Run) -> Vec<Involved> {
    let mut found = InvolvedSoFar::default();
    run.spikes.iter().for_each(|spike| found.add(run, spike));
    found.finish(run)
}

/// Part of every culprit while the spikes are read, in the order of the run's list: not all of them
/// have to be in memory.
#[derive(Default)]
pub struct InvolvedSoFar {
    /// For each culprit: whether it took most of the spike, its time, and the spike's place.
    times: Vec<Vec<(bool, i64, usize)>>,
    spikes: usize,
}

impl InvolvedSoFar {
    /// Adds the next spike, with its slices.
    pub fn add(&mut self, run: &Run, spike: &Spike) {
        self.times.resize(run.culprits.len(), Vec::new());
        let took = time_by_culprit(&run.culprits, spike);
        let most = took.iter().copied().max().unwrap_or(0);
        for (place, &ns) in took.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            self.times[place].push((ns == most, ns, self.spikes));
        }
        self.spikes += 1;
    }

    /// Parts of all culprits, after the last spike.
    pub fn finish(mut self, run: &Run) -> Vec<Involved> {
        self.times.resize(run.culprits.len(), Vec::new());
        let part = |mut times: Vec<(bool, i64, usize)>| {
            let spikes = times.iter().map(|time| time.2).collect();
            if times.iter().any(|time| time.0) {
                times.retain(|time| time.0);
            }
            times.sort_unstable();
            let typical = times.get(times.len().saturating_sub(1) / 2).map(|time| time.2);
            Involved { spikes, typical }
        };
        self.times.into_iter().map(part).collect()
    }
}

/// Place of the spike that is shown first: the one typical of the first culprit, if the worst spike
/// is mostly another culprit's; none if the worst one shows the first culprit.
pub fn example(run: &Run, involved: &[Involved]) -> Option<usize> {
    let worst = run.spikes.iter().max_by_key(|spike| spike.latency_ns)?;
    let shows_it = most_of(&time_by_culprit(&run.culprits, worst)).is_none_or(|place| place == 0);
    involved.first().and_then(|first| first.typical).filter(|_| !shows_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use model::slice::SliceKind;

    #[test]
    fn the_typical_spike_is_the_median_of_those_in_which_it_took_most() {
        let run = fixture::run();
        let found = all(&run);
        assert_eq!(found.len(), run.culprits.len());
        let busy = run.culprits.iter().position(|culprit| culprit.name == "busy-loop").unwrap();
        // It took most of both: the smaller of two is the median.
        assert_eq!((found[busy].spikes.as_slice(), found[busy].typical), ([0, 4].as_slice(), Some(4)));
        let stop = run.culprits.iter().position(|culprit| culprit.kind == SliceKind::Stopped).unwrap();
        assert_eq!(found[stop].typical, Some(5));
        assert_eq!(all(&Run::default()), []);
    }

    #[test]
    fn who_took_most_of_a_spike_comes_first_and_the_typical_one_has_its_number() {
        let run = fixture::run();
        for spike in &run.spikes {
            let found = concerned(&run, spike);
            assert!(found.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            assert_eq!(found.first().map(|first| first.0), most_of(&time_by_culprit(&run.culprits, spike)));
        }
        let involved = all(&run);
        let number = number(&run, &involved, 0).unwrap();
        assert_eq!(Some(by_latency(&run)[number - 1]), involved[0].typical);
        assert_eq!(super::number(&run, &involved, run.culprits.len()), None);
    }

    #[test]
    fn an_example_is_wanted_where_the_worst_is_mostly_another_s() {
        let mut run = fixture::run();
        let worst = (0..run.spikes.len()).max_by_key(|&at| run.spikes[at].latency_ns).unwrap();
        let of_worst = most_of(&time_by_culprit(&run.culprits, &run.spikes[worst])).unwrap();
        run.culprits.swap(0, of_worst);
        assert_eq!(example(&run, &all(&run)), None);
        run.culprits.swap(0, of_worst);
        run.culprits.rotate_left(usize::from(of_worst == 0));
        let involved = all(&run);
        assert_eq!(example(&run, &involved), involved[0].typical);
        assert!(involved[0].typical.is_some_and(|at| at != worst));
        assert_eq!(example(&Run::default(), &[]), None);
    }
}
