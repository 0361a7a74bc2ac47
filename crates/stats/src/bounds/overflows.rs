//! Samples beyond the end of an imported histogram: the latency of each is unknown, the times only
//! of the first ones.
//!
//! cyclictest lists the numbers of the wake-ups beyond, up to a limit, and counts the others. So
//! the listed ones are the first, not the worst, and each is at least as late as the histogram's
//! end. Only their recurrence can be judged.

use super::conditions::{ONCE, TREAT};
use super::events::TOGETHER;
use super::gates::{Gate, LOST};
use super::input::{BoundsInput, OverflowList};
use super::periods::{self, MAX_SPIKES, MIN_SPIKES, Period};
use super::structure::Structure;
use crate::time::cluster;
use crate::time::period::{self, WatchedSpan};
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;

const NAME: &str = "periodicity";
/// Largest number of CPUs that are searched each by itself.
const MAX_LISTS: usize = 16;

/// Events of several lists, and the time up to which none is missing.
fn events(lists: &[OverflowList], input: &BoundsInput) -> (Vec<i64>, i64) {
    let observed = input.series.observed.0.max(0);
    let mut until = lists.iter().filter_map(|list| list.until).min().unwrap_or(observed);
    let mut all: Vec<i64> = lists.iter().flat_map(|list| &list.times).copied().collect();
    all.retain(|at| (0..=until).contains(at));
    all.sort_unstable();
    let mut times = Vec::new();
    // Late samples on several CPUs at the same time, or in consecutive blocks, are one event.
    let gap = input.series.tick.0.saturating_mul(TOGETHER);
    cluster::peaks(all.into_iter().map(|at| (at, 0)), gap, |event| times.push(event.0));
    if let Some(&next) = times.get(MAX_SPIKES) {
        until = next;
        times.truncate(MAX_SPIKES);
    }
    (times, until)
}

/// Structure of the listed events: their periods, and a sentence on the lists.
pub fn structure(input: &BoundsInput) -> Structure {
    let mut found = Structure::default();
    let lists = input.histogram.listed.lists;
    // A CPU whose list was full early must not hide what another's shows: each alone, then all
    // together.
    let alone = lists.chunks(1).take(if lists.len() > 1 { MAX_LISTS } else { 0 });
    let sets: Vec<&[OverflowList]> = alone.chain(std::iter::once(lists)).collect();
    let alpha = period::ALPHA / sets.len() as f64;
    let tick = Nanos(input.series.tick.0.max(1));
    for (times, until) in sets.into_iter().map(|lists| events(lists, input)) {
        found.spikes_looked_at = found.spikes_looked_at.max(times.len());
        if times.len() >= MIN_SPIKES {
            for comb in period::combs(&times, WatchedSpan::new(0, until), tick.0, alpha) {
                let new = periods::of_overflows(input, &comb, &times, until);
                periods::keep(&mut found.periods, new, tick);
            }
        }
    }
    found.periods.compact_sort_by(|a, b| b.members.cmp(&a.members).then(a.p_value.total_cmp(&b.p_value)));
    found.sentences = found.periods.iter().map(Period::sentence).collect();
    if input.histogram.listed.cycles > 0 {
        found.sentences.push(about(input));
    }
    found
}

/// Describes the lists in a sentence.
fn about(input: &BoundsInput) -> String {
    let (all, listed) = (input.histogram.overflows, input.histogram.listed.cycles);
    let late = input
        .histogram
        .listed
        .from
        .map_or_else(String::new, |from| format!(", each at least {}", from.spoken()));
    let beyond = several(all, "sample was", "samples were");
    let lists = match input.histogram.listed.lists.len() {
        _ if listed >= all => "all".to_owned(),
        0 | 1 => format!("the first {listed}"),
        _ => format!("{listed}, the first ones of each CPU,"),
    };
    format!(
        "{beyond} beyond the histogram's end{late}, with unknown values. The import lists {lists} of them by cycle, not by lateness."
    )
}

/// G6 if only a histogram was kept: a period refuses; without one the gate is not judged.
pub fn period(input: &BoundsInput, structure: &Structure) -> Gate {
    if let Some(period) = structure.periods.first() {
        return Gate::refused("G6", NAME, period.detail(), period.refusal(), TREAT).on(ONCE);
    }
    let listed = input.histogram.listed.cycles;
    let samples = several(listed, "listed sample", "listed samples");
    let why = match (listed, input.histogram.listed.lists.is_empty()) {
        (0, _) => LOST.to_owned(),
        (_, true) => format!(
            "without the interval the {samples} beyond the histogram's end have no times: import with -i"
        ),
        _ if structure.spikes_looked_at < MIN_SPIKES => {
            format!(
                "{samples} beyond the histogram's end have {} different times, which is too few",
                structure.spikes_looked_at
            )
        }
        _ => format!("no period among the {samples} beyond the histogram's end; of all others {}", LOST),
    };
    Gate::not_judged("G6", NAME, &why)
}

#[cfg(test)]
mod tests {
    use super::super::input::{HistogramInput, ListedOverflows};
    use super::*;
    use crate::bounds::events::reached;
    use crate::bounds::{Bounds, Question, bounds};
    use crate::rng::{Rng, SEED};
    use crate::series::Series;
    use model::histogram::Bucket;

    const MILLI: i64 = 1_000_000;

    /// Ten minutes at 1 ms with a histogram that ends at 60 us and its last counted sample at 24
    /// us.
    fn answer(lists: &[OverflowList], cycles: u64, overflows: u64) -> Bounds {
        let rows = [
            Bucket::new(Nanos(10_000), Nanos(11_000), 500_000),
            Bucket::new(Nanos(23_000), Nanos(24_000), 90_000),
        ];
        let series =
            Series { observed: Nanos(600 * Nanos::SECOND.0), tick: Nanos(MILLI), ..Series::default() };
        let listed = ListedOverflows { lists, cycles, from: Some(Nanos(60_000)) };
        let input = BoundsInput {
            histogram: HistogramInput { buckets: &rows, overflows, listed, max: Some(Nanos(380_000)) },
            ..BoundsInput::of(&series)
        };
        let horizon = Nanos(3_600 * Nanos::SECOND.0);
        bounds(&input, &Question { horizon, chosen: true, ..Question::default() })
    }

    fn every(n: i64, step_us: i64) -> Vec<i64> {
        (0..n).map(|k| (100_000 + k * step_us) / 1_000 * MILLI).collect()
    }

    fn at_random(n: usize) -> Vec<i64> {
        let mut rng = Rng::new(SEED);
        let mut times: Vec<i64> = (0..n).map(|_| rng.below(600_000) as i64 * MILLI).collect();
        times.sort_unstable();
        times
    }

    fn periodicity(found: &Bounds) -> &Gate {
        found.gates.iter().find(|gate| gate.id == "G6").expect("G6")
    }

    #[test]
    fn what_is_listed_is_known_to_have_come() {
        let lists =
            [every(25, 4_873_000), every(25, 4_873_000)].map(|times| OverflowList { times, until: None });
        let series = Series { tick: Nanos(MILLI), ..Series::default() };
        let listed = ListedOverflows { lists: &lists, cycles: 50, from: Some(Nanos(60_000)) };
        let input = BoundsInput {
            histogram: HistogramInput { overflows: 92, listed, ..HistogramInput::default() },
            ..BoundsInput::of(&series)
        };
        let at_least = |us: i64| reached(&input, Nanos(us * 1_000)).at_least;
        assert_eq!((at_least(60), at_least(61)), (25, 0), "on two CPUs at once is one event");
        assert!(about(&input).contains("lists 50, the first ones of each CPU, of them"));
    }

    #[test]
    fn the_first_of_a_comb_have_its_period_and_neither_a_value_nor_a_rank() {
        let times = every(60, 487_310);
        let until = times.last().copied();
        let found = answer(&[OverflowList { times, until }], 60, 1_232);
        let period = &found.structure.periods[0];
        assert!((period.period_s - 0.48731).abs() < 1e-5, "{period:?}");
        assert_eq!((period.from_ns, period.to_ns, period.at_least_ns), (None, None, Some(Nanos(60_000))));
        assert_eq!((period.members, period.among, period.worst, period.of_the_worst), (60, 60, 0, 0));
        let gate = periodicity(&found);
        assert!(gate.judged && !gate.passed && gate.detail.contains("0.4873"), "{gate:?}");
        let mut sentences = found.structure.sentences.clone();
        sentences.extend([gate.detail.clone(), gate.refusal.clone()]);
        let all = sentences.join(" ");
        assert!(!all.contains("largest") && !all.contains("24") && !all.contains("worst"), "{all}");
        assert!(all.contains("at least 60 us") && all.contains("the first 60 of them"), "{all}");
    }

    #[test]
    fn that_none_was_found_proves_nothing() {
        let lists = |times: Vec<i64>| [OverflowList { times, until: None }];
        for (found, why) in [
            (answer(&lists(at_random(40)), 40, 40), "no period among the 40 listed samples"),
            (answer(&lists(at_random(3)), 3, 3), "too few"),
            (answer(&[], 9, 40), "import with -i"),
            (answer(&[], 0, 40), "a histogram has no times"),
        ] {
            let gate = periodicity(&found);
            assert!(!gate.judged && !gate.passed && gate.detail.contains(why), "{gate:?}");
            assert!(found.structure.periods.is_empty());
        }
        let all = answer(&lists(at_random(40)), 40, 40).structure.sentences;
        assert!(all[0].contains("lists all of them"), "{all:?}");
    }

    #[test]
    fn a_list_that_was_full_early_hides_no_other() {
        let early: Vec<i64> = at_random(40).iter().map(|at| at / 300).collect();
        let until = early.last().copied();
        let lists =
            [OverflowList { times: early, until }, OverflowList { times: every(60, 9_700_000), until: None }];
        let found = answer(&lists, 100, 5_000).structure.periods;
        assert!((found[0].period_s - 9.7).abs() < 1e-3 && found.len() == 1, "{found:?}");
        let both = [
            OverflowList { times: every(60, 9_700_000), until: None },
            OverflowList { times: every(60, 9_700_000), until: None },
        ];
        let found = answer(&both, 120, 120).structure.periods;
        assert_eq!((found.len(), found[0].members), (1, 60), "what was late on both at once is one event");
    }
}
