//! Recurrence of events with a period: the test, the members, and the period with its error.
//!
//! The differences of all pairs (see [`super::pair_differences`]) show whether anything recurs:
//! that test alone carries the false alarm rate, under events that fall independently and evenly
//! into the span. Folding then decides the period: every frequent difference, its half and its
//! third are candidates; each is made exact by its multiples, and the events are folded on it. The
//! one with the largest likelihood ratio of its events over chance is the period, unless a part or
//! multiple of it does better. A multiple of the true one loses the cycles between, a part has
//! empty ones, and the difference between two combs has no cycles. Least squares of `t = t0 + n P`
//! refine it.
//!
//! Events must be declustered: the differences inside bursts recur too. Periods above a sixth of
//! the span are never claimed, nor are combs of fewer than five events.

use super::comb_fit::{CombFit, MIN_MEMBERS};
use super::mixture::{self, SearchRange};
use super::pair_differences::{Lag, pair_lags, significant};
use model::sort::CompactSort;

/// Maximum number of events: pass the largest 2000.
pub const MAX_EVENTS: usize = 5000;
/// Maximum number of combs that are taken out of the events, one after the other.
pub const MAX_COMBS: usize = 4;
/// Chance of a claim by the pair differences in a span without a period.
pub const ALPHA: f64 = 0.01;

/// Number of strongest lags among the candidates.
const STRONGEST: usize = 16;
/// Number of shortest lags among the candidates.
const SHORTEST: usize = 8;
/// If most teeth are missing, so are pairs at some multiples of the period: then the next ones are
/// tried.
const MULTIPLES_TRIED: u32 = 8;
/// Margin in log likelihood by which a fold must beat the search for its phase.
const FOLD_MARGIN: f64 = 12.0;

/// Events that recur: those at `phase_ns + n * period_ns` within the jitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Comb {
    /// The period by least squares, ns.
    pub period_ns: f64,
    /// Standard error of the period, ns.
    pub period_se_ns: f64,
    /// Time at which the first member was due, ns in the events' time.
    pub phase_ns: i64,
    /// Standard deviation of the members from the times at which they were due, ns.
    pub jitter_ns: f64,
    /// The members as indices into the events given, in order of time.
    pub members: Vec<usize>,
    /// Number of cycles between the first and the last member without one.
    pub misses: usize,
    /// The probability of such a lag anywhere in events without a period.
    pub p: f64,
    /// Other periods that fit the events about as well, ns, the longest first; empty if the times
    /// determine it.
    pub or_ns: Vec<f64>,
}

/// One event: its time after the start in ns, and its index among the given ones.
type Event = (i64, usize);

/// Span in which events were watched, in ns.
#[derive(Clone, Copy, Debug)]
pub struct WatchedSpan {
    pub from: i64,
    pub to: i64,
}

impl WatchedSpan {
    pub fn new(from: i64, to: i64) -> WatchedSpan {
        WatchedSpan { from, to }
    }

    /// Length in ns; none if it is beyond the range of numbers.
    pub fn length(self) -> Option<i64> {
        self.to.checked_sub(self.from)
    }
}

/// Finds the periods of events in ns, in any order, that were watched over `span`.
///
/// `resolution_ns` is the precision of the times: the measuring interval, or the length of a block
/// if only the block is known. Events outside the span are excluded. The combs are in the order of
/// their evidence.
pub fn combs(times: &[i64], span: WatchedSpan, resolution_ns: i64, alpha: f64) -> Vec<Comb> {
    let length = match span.length() {
        Some(length) if (1..i64::MAX / 8).contains(&length) => length,
        _ => return Vec::new(),
    };
    let inside = times.iter().enumerate().filter(|&(_, &t)| span.from <= t && t <= span.to);
    let mut left: Vec<Event> = inside.map(|(i, &t)| (t - span.from, i)).collect();
    left.sort_unstable();
    let length = left.get(MAX_EVENTS).map_or(length, |event| event.0.max(1));
    left.truncate(MAX_EVENTS);
    let mut found = Vec::new();
    while found.len() < MAX_COMBS {
        let Some((fit, p)) = fundamental(&left, length, resolution_ns.max(1), alpha) else { break };
        let times: Vec<i64> = left.iter().map(|event| event.0).collect();
        let place = SearchRange { span: length as f64, step: resolution_ns.max(1) as f64, besides: None };
        let (fit, or_ns) = mixture::likeliest(fit, &times, place);
        found.push(Comb { or_ns, ..comb_of(&fit, &left, span.from, resolution_ns.max(1), p) });
        // Events near a tooth that are not members would make the same comb again.
        left.retain(|event| fit.residual(event.0).abs() > 2.0 * fit.tolerance);
    }
    found
}

/// The best fold of the candidates, if the pair differences allow any.
fn fundamental(events: &[Event], span: i64, resolution: i64, alpha: f64) -> Option<(CombFit, f64)> {
    if events.len() < MIN_MEMBERS {
        return None;
    }
    let times: Vec<i64> = events.iter().map(|event| event.0).collect();
    let longest = span / 6;
    let lags = pair_lags(&times, longest);
    let frequent = significant(&lags, times.len(), span, longest, resolution, alpha);
    let mut best: Option<(f64, CombFit, f64)> = None;
    for lag in candidates(frequent) {
        for part in [1, 2, 3] {
            let Some(period) = period_by_multiples(&lags, &lag, part, longest) else { continue };
            let Some(fit) = CombFit::of(&times, period, lag.width_ns as f64, resolution as f64) else {
                continue;
            };
            let score = fit.score(times.len(), span as f64);
            let claim = FOLD_MARGIN + (fit.period / (2.0 * fit.tolerance)).ln().max(0.0);
            let better = best.as_ref().is_none_or(|best| score > best.0);
            if score >= claim && better && fit.period <= longest as f64 {
                best = Some((score, fit, lag.p));
            }
        }
    }
    let (_, fit, p) = best?;
    let fit = fit.settled(&times, resolution as f64)?;
    Some((likeliest(fit, &times, span, resolution), p))
}

/// The fit, or that of a part or multiple of its period whose fuller cycles make it likelier: if
/// most teeth are missing, all pairs may be many periods apart.
fn likeliest(mut fit: CombFit, times: &[i64], span: i64, resolution: i64) -> CombFit {
    const PARTS: [f64; 8] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 1.0 / 2.0, 1.0 / 3.0];
    let score = |fit: &CombFit| fit.score(times.len(), span as f64);
    for _ in 0..PARTS.len() {
        let of_part = |part: &f64| {
            let period = fit.period / part;
            let other = CombFit::of(times, period, fit.tolerance, resolution as f64)?;
            other.settled(times, resolution as f64).filter(|other| other.period <= span as f64 / 6.0)
        };
        let others = PARTS.iter().filter_map(of_part);
        match others.max_by(|a, b| score(a).total_cmp(&score(b))) {
            Some(best) if score(&best) > score(&fit) => fit = best,
            _ => break,
        }
    }
    fit
}

/// The lags that are folded: a bounded number, the strongest and the shortest.
fn candidates(mut lags: Vec<Lag>) -> Vec<Lag> {
    lags.compact_sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let mut rest = lags.split_off(STRONGEST.min(lags.len()));
    rest.compact_sort_by(|a, b| a.lag_ns.total_cmp(&b.lag_ns));
    rest.truncate(SHORTEST);
    lags.append(&mut rest);
    lags
}

/// Period, ns, from ever longer multiples of a lag: each fixes the place of the next one to within
/// a bin.
fn period_by_multiples(lags: &[i64], lag: &Lag, part: u32, longest: i64) -> Option<f64> {
    let width = lag.width_ns as f64;
    let mut multiple = f64::from(part);
    let mut period = lag.lag_ns / multiple;
    if period < 4.0 * width {
        return None;
    }
    let below = |edge: f64| lags.partition_point(|&lag| (lag as f64) < edge);
    // The uncertainty at one multiple is twice as large at its double, still within a bin.
    'longer: loop {
        let furthest = (2.0 * multiple).min((longest as f64 / period).floor());
        for back in 0..MULTIPLES_TRIED {
            let next = furthest - f64::from(back);
            if next <= multiple {
                break;
            }
            let place = next * period;
            let inside = &lags[below(place - width)..below(place + width)];
            if inside.len() as f64 >= 2.0 + 4.0 * lag.expected {
                let off = inside.iter().map(|&lag| lag as f64 - place).sum::<f64>() / inside.len() as f64;
                period = (place + off) / next;
                multiple = next;
                continue 'longer;
            }
        }
        return Some(period);
    }
}

/// The residuals and errors of a fit, and its members among the events given.
pub fn comb_of(fit: &CombFit, events: &[Event], start: i64, resolution: i64, p: f64) -> Comb {
    let times: Vec<i64> = events.iter().map(|event| event.0).collect();
    let errors = fit.errors(&times, resolution as f64);
    let (first, last) = (fit.members[0].0, fit.members[fit.members.len() - 1].0);
    Comb {
        period_ns: fit.period,
        period_se_ns: errors.period_se,
        phase_ns: start + (fit.origin + first as f64 * fit.period).round() as i64,
        jitter_ns: errors.jitter,
        members: fit.members.iter().map(|&(_, i)| events[i].1).collect(),
        misses: (last - first + 1) as usize - fit.members.len(),
        p,
        or_ns: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Recipe, period_claims, period_found};
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    const S: f64 = 1e9;
    const HOUR: Recipe = Recipe::HOUR;
    const CSV: Recipe = Recipe { span_ns: 600_000_000_000, resolution_ns: 1_000_000_000, ..HOUR };

    #[test]
    fn events_at_random_have_no_period() {
        assert_eq!(period_claims(&Recipe::AT_RANDOM, 150, SEED), 0);
        assert_eq!(period_claims(&Recipe { random: 12, ..CSV }, 400, SEED), 0);
        assert_eq!(period_claims(&Recipe { random: 200, ..CSV }, 30, SEED), 0);
    }

    #[test]
    fn a_comb_among_as_many_events_at_random_is_found() {
        let comb = Recipe::MINUTE;
        assert_eq!(period_found(&comb, 5e6, 20, SEED), 20);
        assert_eq!(period_found(&Recipe { missing: 0.3, ..comb }, 5e6, 20, SEED), 20);
        assert_eq!(period_found(&Recipe { jitter_ns: 50e6, ..comb }, 20e6, 20, SEED), 20);
    }

    #[test]
    fn other_periods_are_found_with_misses() {
        let ten_minutes =
            Recipe { span_ns: 600_000_000_000, random: 30, jitter_ns: 2e6, missing: 0.3, ..HOUR };
        for (period, recipe) in [(1.0, ten_minutes), (2.048, ten_minutes), (10.0, ten_minutes)] {
            assert_eq!(
                period_found(&Recipe { period_ns: period * S, ..recipe }, 2e6, 5, SEED),
                5,
                "{period}"
            );
        }
        let five_minutes = Recipe { random: 60, period_ns: 300.0 * S, jitter_ns: 2e6, ..HOUR };
        assert_eq!(period_found(&five_minutes, 5e6, 10, SEED), 10);
        let most_missing = Recipe { random: 60, period_ns: 10.0 * S, jitter_ns: 2e6, missing: 0.88, ..HOUR };
        assert!(period_found(&most_missing, 5e6, 10, SEED) >= 9);
    }

    #[test]
    fn block_numbers_are_enough() {
        assert_eq!(period_found(&Recipe::TOP_12, 0.2 * S, 100, SEED), 100);
        let odd = Recipe {
            random: 30,
            period_ns: 60.3 * S,
            missing: 0.3,
            resolution_ns: CSV.resolution_ns,
            ..HOUR
        };
        assert_eq!(period_found(&odd, 0.05 * S, 10, SEED), 10);
    }

    #[test]
    fn two_combs_are_two_and_their_difference_none() {
        let mut rng = Rng::new(SEED);
        for _ in 0..3 {
            let minute = Recipe { random: 60, period_ns: 60.0 * S, jitter_ns: 2e6, missing: 0.2, ..HOUR };
            let mut times = minute.events(&mut rng);
            times.extend(Recipe { random: 0, period_ns: 300.0 * S, ..minute }.events(&mut rng));
            let found = combs(&times, WatchedSpan::new(0, HOUR.span_ns), HOUR.resolution_ns, ALPHA);
            let periods: Vec<f64> = found.iter().map(|comb| (comb.period_ns / 1e8).round() / 10.0).collect();
            assert_eq!(periods[0], 60.0, "{periods:?}");
            assert!(periods.iter().all(|p| [60.0, 300.0].contains(p)), "{periods:?}");
        }
    }

    #[test]
    fn a_fit_reports_its_uncertainty() {
        let mut rng = Rng::new(SEED);
        let recipe = Recipe { random: 20, period_ns: 60.0 * S, jitter_ns: 5e6, missing: 0.3, ..HOUR };
        for walk_ns in [0.0, 20e6] {
            let mut outside = 0;
            for _ in 0..10 {
                let times = Recipe { walk_ns, ..recipe }.events(&mut rng);
                let comb =
                    combs(&times, WatchedSpan::new(0, HOUR.span_ns), HOUR.resolution_ns, ALPHA).remove(0);
                let drawn = times.len() - 20;
                outside += usize::from((comb.period_ns - 60.0 * S).abs() > 3.0 * comb.period_se_ns);
                assert!(comb.members.windows(2).all(|pair| times[pair[0]] < times[pair[1]]));
                assert!(comb.members.iter().filter(|&&i| i < drawn).count() >= drawn - 2, "{comb:?}");
                assert!((comb.phase_ns - times[comb.members[0]]).abs() < 150_000_000);
                assert!(comb.p < 1e-6 && (walk_ns > 0.0 || comb.period_se_ns < 2e6), "{comb:?}");
                assert!(walk_ns > 0.0 || (3e6..8e6).contains(&comb.jitter_ns), "{comb:?}");
                assert!(comb.misses + comb.members.len() <= 61);
            }
            assert!(outside <= 1, "{outside} of 10 with a walk of {walk_ns}");
        }
    }

    #[test]
    fn what_is_bunched_is_not_periodic() {
        let mut rng = Rng::new(SEED);
        for _ in 0..20 {
            let mut times = Recipe { random: 20, ..HOUR }.events(&mut rng);
            times.extend(Recipe { random: 80, span_ns: HOUR.span_ns / 10, ..HOUR }.events(&mut rng));
            assert_eq!(combs(&times, WatchedSpan::new(0, HOUR.span_ns), HOUR.resolution_ns, ALPHA), []);
        }
    }

    #[test]
    fn a_few_events_in_a_row_are_no_comb_nor_are_long_periods() {
        let times: Vec<i64> = (0..4).map(|i| (i * 60 + 5) * 1_000_000_000).collect();
        assert_eq!(combs(&times, WatchedSpan::new(0, HOUR.span_ns), 1_000_000, ALPHA), []);
        let times: Vec<i64> = (0..6).map(|i| (i * 700 + 5) * 1_000_000_000).collect();
        assert_eq!(combs(&times, WatchedSpan::new(0, HOUR.span_ns), 1_000_000, ALPHA), []);
        let same = [7_000_000_000; 50];
        assert_eq!(combs(&same, WatchedSpan::new(0, HOUR.span_ns), 1_000_000, ALPHA), []);
        assert_eq!(combs(&same, WatchedSpan::new(5, 5), 1, ALPHA), []);
        assert_eq!(
            combs(&[i64::MIN, 0, i64::MAX], WatchedSpan::new(i64::MIN, i64::MAX), i64::MAX, f64::NAN),
            []
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_input_is_answered(
            times in proptest::collection::vec(any::<i64>(), 0..20),
            near in proptest::collection::vec(-50i64..2_000, 0..40),
            span in any::<(i64, i64)>(), resolution in any::<i64>(), alpha in any::<f64>(),
        ) {
            let _ = combs(&times, WatchedSpan::new(span.0, span.1), resolution, alpha);
            let found = combs(&near, WatchedSpan::new(0, 1_000), resolution % 3, alpha);
            prop_assert!(found.iter().flat_map(|comb| &comb.members).all(|&i| (0..=1_000).contains(&near[i])));
        }
    }
}
