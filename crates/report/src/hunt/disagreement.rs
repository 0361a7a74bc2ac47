//! Spikes whose trace has no switch to the thread at the time that the thread's clock gives for its
//! wake-up, and their effect on the ranking.

use super::parts::{by_latency, share, total};
use super::sentences::percent;
use super::unlisted::passed_over;
use crate::words::{clean, several};
use model::run::{Run, Spike};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::Nanos;
use rules::culprits::belonging::time_by_culprit;

/// Number of first culprits whose order is compared; `LEAST` is the least share of each.
const COMPARED: usize = 3;
const LEAST: f64 = 0.01;
/// Divisor of the tolerated number: the ranking counts if at most one spike in 20 disagrees.
const FEW: u64 = 20;
/// Limit of spikes that are named by number.
const LISTED: usize = 5;

/// Effect of such spikes on the ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// Number of such spikes, and the ranking without them.
    pub sentence: String,
    /// Numbers among the latest spikes; empty if they are not known.
    pub which: String,
    /// True if the first culprits stay the same, in the same order, without them.
    pub holds: bool,
    /// True if they are few among the ranked spikes.
    pub few: bool,
}

/// Disagreement of a run; none if all spikes agree.
pub fn of(run: &Run) -> Option<Disagreement> {
    let counted = run.recorder.as_ref().map_or(0, |recorder| recorder.disagreeing);
    if counted == 0 {
        return None;
    }
    let order = by_latency(run);
    let listed_suspects = order.iter().enumerate().filter(|(_, at)| is_suspect(&run.spikes[**at]));
    let (numbers, suspects): (Vec<usize>, Vec<&Spike>) =
        listed_suspects.map(|(rank, &at)| (rank + 1, &run.spikes[at])).unzip();
    let dropped = run.spikes_dropped - passed_over(run);
    let ranked = (run.spikes.len() as u64).saturating_add(dropped);
    let few = counted.saturating_mul(FEW) <= ranked;
    let many = match counted {
        1 => "1 spike".to_owned(),
        counted => format!("{counted} of {}", several(ranked.max(counted), "spike", "spikes")),
    };
    let clause = format!("in {many} the timestamps of the trace and of the thread disagree");
    // Unlisted spikes, and those whose parts were not kept, cannot be subtracted.
    if (suspects.len() as u64) < counted {
        let sentence = format!("{clause}; their explanation is unreliable");
        return Some(Disagreement { sentence, which: listed(&numbers, counted), holds: false, few });
    }
    let (holds, first) = without(run, &suspects);
    let end = match (holds, first) {
        (true, Some((_, of))) => {
            format!("without them the ranking stays the same, the first with {}", percent(of))
        }
        (false, Some((name, of))) => format!("without them {name} may be first, with {}", percent(of)),
        (_, None) => "without them no culprit remains".to_owned(),
    };
    Some(Disagreement { sentence: format!("{clause}; {end}"), which: listed(&numbers, counted), holds, few })
}

/// True for a spike of onbeat's own threads without a switch in the trace. A thread that still ran
/// when it was woken does not count as a contradiction but looks the same: it is subtracted as
/// well.
fn is_suspect(spike: &Spike) -> bool {
    spike.cycle.is_some()
        && spike.switched_ns.is_none()
        && !(spike.slices.is_empty() && spike.classes.is_empty())
}

/// Checks that the order holds without these spikes, and returns the then first culprit with its
/// share. Time without an event may belong to any culprit of a rule for such time: the order has to
/// hold with all of it subtracted and with none.
fn without(run: &Run, suspects: &[&Spike]) -> (bool, Option<(String, f64)>) {
    let mut took = vec![0i64; run.culprits.len()];
    for spike in suspects {
        time_by_culprit(&run.culprits, spike)
            .iter()
            .zip(&mut took)
            .for_each(|(ns, sum)| *sum = sum.saturating_add(*ns));
    }
    let late = suspects.iter().fold(0i64, |sum, spike| sum.saturating_add(spike.latency_ns.0.max(0)));
    let whole = Nanos(total(run).0.saturating_sub(late).max(0));
    let left = |place: usize, all: bool| {
        let culprit = &run.culprits[place];
        let is_fixed = culprit.kind == SliceKind::Unexplained && !all;
        culprit.total_ns.0.saturating_sub(if is_fixed { 0 } else { took[place] }).max(0)
    };
    let compared =
        run.culprits.iter().take(COMPARED).take_while(|culprit| culprit.share >= LEAST).count().max(1);
    let order = |all: bool| {
        let mut order: Vec<usize> = (0..run.culprits.len()).collect();
        order.compact_sort_by_key(|&place| std::cmp::Reverse(left(place, all)));
        order
    };
    let orders = [order(true), order(false)];
    let holds =
        orders.iter().all(|order| order.iter().take(compared).copied().eq(0..compared.min(order.len())));
    let other = orders.iter().filter_map(|order| order.first()).find(|place| **place != 0);
    let first = other.or(orders[0].first()).filter(|place| left(**place, true) > 0);
    let name_and_share =
        |&place: &usize| (clean(&run.culprits[place].name), share(Nanos(left(place, true)), whole));
    (holds, first.map(name_and_share))
}

/// Numbers of the spikes, and the count of those whose number is not known.
fn listed(numbers: &[usize], counted: u64) -> String {
    let examples: Vec<String> = numbers.iter().take(LISTED).map(usize::to_string).collect();
    let known = match numbers.len() {
        0 => return String::new(),
        1 => format!("spike {}", examples[0]),
        many if many > LISTED => format!("spikes {} and {} more", examples.join(", "), many - LISTED),
        _ => format!("spikes {}", examples.join(", ")),
    };
    match counted.saturating_sub(numbers.len() as u64) {
        0 => known,
        1 => format!("{known}; one more has no known number"),
        others => format!("{known}; {others} more have no known number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Culprit, Recorder, Slice, Who};

    /// Run with these spikes of `hog` and `other`; those with `true` have no switch.
    fn run(spikes: &[(&str, i64, bool)]) -> Run {
        let spike = |&(comm, ms, suspect): &(&str, i64, bool)| {
            let who = Who { comm: comm.into(), pid: 5, prio: 120, ..Who::default() };
            let slice = Slice { kind: "thread".into(), ns: Nanos(ms * 1_000_000), who, ..Slice::default() };
            Spike {
                cycle: Some(1),
                latency_ns: slice.ns,
                switched_ns: (!suspect).then_some(Nanos(1)),
                slices: vec![slice],
                ..Spike::default()
            }
        };
        let sum =
            |name: &str| spikes.iter().filter(|spike| spike.0 == name).map(|spike| spike.1).sum::<i64>();
        let all: i64 = spikes.iter().map(|spike| spike.1).sum();
        let mut culprits: Vec<Culprit> = ["hog", "other"]
            .map(|name| Culprit {
                name: name.into(),
                kind: "thread".into(),
                total_ns: Nanos(sum(name) * 1_000_000),
                share: sum(name) as f64 / all as f64,
                ..Culprit::default()
            })
            .into();
        culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.total_ns));
        let disagreeing = spikes.iter().filter(|spike| spike.2).count() as u64;
        let recorder = Recorder { disagreeing, ..Recorder::default() };
        Run {
            spikes: spikes.iter().map(spike).collect(),
            culprits,
            recorder: Some(recorder),
            ..Run::default()
        }
    }

    #[test]
    fn the_ranking_is_made_again_without_them() {
        assert_eq!(of(&run(&[("hog", 5, false)])), None);
        let same = of(&run(&[("hog", 6, false), ("hog", 2, true), ("other", 2, false)])).expect("one");
        assert_eq!(
            (same.holds, same.sentence.as_str(), same.which.as_str()),
            (
                true,
                "in 1 spike the timestamps of the trace and of the thread disagree; without them the ranking \
                 stays the same, the first with 75 %",
                "spike 2"
            )
        );
        let other = of(&run(&[("hog", 6, true), ("hog", 1, false), ("other", 2, false)])).expect("one");
        assert!(
            !other.holds && other.sentence.ends_with("without them other may be first, with 67 %"),
            "{other:?}"
        );
    }

    #[test]
    fn spikes_that_are_not_kept_cannot_be_taken_out() {
        let mut run = run(&[("hog", 6, false), ("hog", 2, true)]);
        run.recorder.as_mut().expect("one").disagreeing = 9;
        let some = of(&run).expect("nine");
        assert!(!some.holds && some.sentence.contains("unreliable"), "{some:?}");
        assert_eq!(some.which, "spike 2; 8 more have no known number");
        assert!(!some.few);
        run.spikes_dropped = 200;
        let few = of(&run).expect("nine");
        assert!(few.few && few.sentence.starts_with("in 9 of 202 spikes the timestamps"), "{few:?}");
        run.spikes_dropped = 0;
        run.spikes = vec![run.spikes[1].clone(); 8];
        let most = of(&run).expect("nine").which;
        assert_eq!(most, "spikes 1, 2, 3, 4, 5 and 3 more; one more has no known number");
        run.spikes.clear();
        assert_eq!(of(&run).expect("nine").which, "");
    }
}
