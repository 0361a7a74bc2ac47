//! Course of the level if a gate refuses: a climb, a step, or an outlying stretch. A climb is not a
//! burst.

use super::gates::{ALPHA, BUNCHED};
use crate::steady::homogeneity::{BusyStretch, Homogeneity};
use crate::steady::scan::ScanWindow;
use crate::steady::scores::{Placed, ValueRanking};
use crate::steady::{kpss, mann_kendall, median_shift, ranks};
use crate::values::SeriesValues;
use model::units::Nanos;

const HOUR: f64 = 3.6e12;
/// Least number of blocks that can show a trend.
const MIN_TREND_BLOCKS: usize = 10;

/// Course of the maxima over the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course {
    /// A rise or fall by this many ns per block.
    Drifting(f64),
    /// A step at this block, with the typical value before and after.
    Changed(usize, f64, f64),
    /// Larger values in one stretch.
    Bunched(BusyStretch),
    /// The largest values come ever more often if true, else ever less.
    Spreading(bool),
    /// Movement that is not in one direction.
    Wandering,
}

/// Determines the course of the maxima, after a test has rejected that they are one series.
pub fn course(values: SeriesValues, found: Option<&Homogeneity>, window: Option<&ScanWindow>) -> Course {
    let n = values.len();
    let of_window =
        |window: &ScanWindow| BusyStretch { first: window.first, blocks: window.blocks, large: 0 };
    let stretch = window.map(of_window).or(found.map(|found| found.stretch));
    let trend = |values: SeriesValues| {
        mann_kendall::trend(values)
            .filter(|trend| values.len() >= MIN_TREND_BLOCKS && trend.p < ALPHA)
            .map(|trend| trend.z)
    };
    let moves = |values: SeriesValues| {
        trend(values).is_some() || kpss::level(values).is_some_and(|level| level.rejects_at_1_percent)
    };
    if let Some(stretch) = stretch {
        let end = stretch.first + stretch.blocks;
        let within = stretch.first > 0 && end < n;
        let steady = !moves(values.without(stretch.first..end));
        if steady && 4 * stretch.blocks <= n && (within || window.is_none()) {
            return spreading(n, found, window).unwrap_or(Course::Bunched(stretch));
        }
        if steady && window.is_some() && !within {
            let at = if stretch.first == 0 { stretch.blocks } else { stretch.first };
            // Windows are tried in few lengths: their edge is near the change, but not on it.
            return changed(values, split(values).unwrap_or(at));
        }
    }
    let Some(way) = trend(values) else {
        let shifts = median_shift::most_likely(values).is_some_and(|shift| shift.p < ALPHA);
        return match split(values) {
            Some(at) if shifts => changed(values, at),
            _ if moves(values) => Course::Wandering,
            _ => spreading(n, found, window).or(stretch.map(Course::Bunched)).unwrap_or(Course::Wandering),
        };
    };
    if let Some(at) = split(values) {
        let (before, after) = values.split_at(at);
        let goes_on = [before, after].into_iter().filter_map(trend).any(|part| part * way > 0.0);
        let changed = changed(values, at);
        if !goes_on
            && is_step(values, at)
            && matches!(changed, Course::Changed(_, before, after) if (after - before) * way > 0.0)
        {
            return changed;
        }
    }
    Course::Drifting(slope(values))
}

/// Largest blocks that come ever more or less often, without a stretch that holds them.
fn spreading(n: usize, found: Option<&Homogeneity>, window: Option<&ScanWindow>) -> Option<Course> {
    let found = found.filter(|found| found.halves_p < ALPHA && 8 * found.stretch.blocks >= n)?;
    window.is_none().then_some(Course::Spreading(2 * found.first_half < found.large))
}

/// Block at which the level changes most clearly, also near an end.
fn split(values: SeriesValues) -> Option<usize> {
    let ranking = ValueRanking::of(values)?;
    let scores = &ranking.scores();
    let n = values.len() as f64;
    let mut sum = 0.0;
    let all = Placed { places: ranking.places(), scores }.iter();
    let clear = all.enumerate().take(values.len() - 1).map(|(i, score)| {
        sum += score;
        let before = (i + 1) as f64;
        (i + 1, f64::abs(sum) / (before * (1.0 - before / n)).sqrt())
    });
    clear.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// True if a step there fits clearly better than a line: with few blocks neither part shows a
/// trend. Values show it in few blocks, ranks also next to a huge value.
fn is_step(values: SeriesValues, at: usize) -> bool {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let centred = || values.iter().map(|value| value - mean);
    step_fits(values.len(), &centred, at)
        || ValueRanking::of(values).is_none_or(|ranking| {
            let scores = &ranking.scores();
            step_fits(values.len(), &|| Placed { places: ranking.places(), scores }.iter(), at)
        })
}

/// Like [`is_step`], by the residual sums of squares of values whose mean is 0.
fn step_fits<I: Iterator<Item = f64>>(n: usize, values: &dyn Fn() -> I, at: usize) -> bool {
    let n = n as f64;
    let before: f64 = values().take(at).sum();
    let of_step = before * before * n / (at as f64 * (n - at as f64));
    let middle = (n - 1.0) / 2.0;
    let with_time: f64 = values().enumerate().map(|(i, value)| (i as f64 - middle) * value).sum();
    let of_line = with_time * with_time / (n * (n * n - 1.0) / 12.0);
    let whole: f64 = values().map(|value| value * value).sum();
    // Twice the difference of the log-likelihoods, against the penalty for choosing the place.
    n * ((whole - of_line) / (whole - of_step).max(1e-9 * whole)).ln() > n.ln()
}

fn changed(values: SeriesValues, at: usize) -> Course {
    let (before, after) = values.split_at(at);
    let typical = |values: SeriesValues| ranks::median(values).unwrap_or_default();
    Course::Changed(at, typical(before), typical(after))
}

/// Drift per block; for few recurring values, whose median slope is zero, that of the halves'
/// means.
fn slope(values: SeriesValues) -> f64 {
    let slope = mann_kendall::slope(values).unwrap_or_default();
    if slope != 0.0 {
        return slope;
    }
    let (first, second) = values.split_at(values.len() / 2);
    let mean = |values: SeriesValues| values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean(second) - mean(first)) / (values.len().max(2) as f64 / 2.0)
}

impl Course {
    /// Describes the change of the maxima in a sentence without its end; `block` is the length of
    /// each.
    pub fn clause(&self, values: SeriesValues, block: Nanos) -> String {
        let at = |blocks: usize| Nanos(block.0.saturating_mul(blocks as i64)).spoken();
        let us = |ns: f64| Nanos(ns.abs().min(9e18) as i64).spaced();
        match *self {
            Course::Drifting(slope) => {
                let way = if slope < 0.0 { "fall" } else { "rise" };
                let whole = us(slope * values.len() as f64);
                let per_hour = slope * HOUR / block.0.max(1) as f64;
                // For blocks spread over a year a rate per hour is too fine.
                if per_hour.abs() >= 1.0 {
                    format!("The maxima {way} by {} per hour ({whole} over the run)", us(per_hour))
                } else {
                    format!("The maxima {way} by {whole} over the run")
                }
            }
            Course::Changed(first, before, after) => {
                let way = if after < before { "fell" } else { "rose" };
                format!(
                    "The maxima {way} {} into the run, from typically {} to {}",
                    at(first),
                    us(before),
                    us(after)
                )
            }
            Course::Bunched(stretch) => {
                let end = stretch.first + stretch.blocks;
                let inside = ranks::median(values.part(stretch.first..end)).unwrap_or_default();
                let rest = values.without(stretch.first..end);
                format!(
                    "Spikes are bunched: for {} from {} on the blocks typically have {}, the others {}",
                    at(stretch.blocks),
                    at(stretch.first),
                    us(inside),
                    us(ranks::median(rest).unwrap_or_default())
                )
            }
            Course::Spreading(more) => {
                format!("Large values become {} frequent", if more { "more" } else { "less" })
            }
            Course::Wandering => "The level of the maxima wanders".to_owned(),
        }
    }

    /// Assumption of a count, as a clause.
    pub fn condition(&self) -> &'static str {
        match self {
            Course::Drifting(slope) if *slope < 0.0 => "if the maxima did not fall",
            Course::Drifting(_) => "if the maxima did not rise",
            Course::Changed(..) => "if the level had not changed",
            Course::Bunched(_) => BUNCHED,
            Course::Spreading(true) => "if large values did not become more frequent",
            Course::Spreading(false) => "if large values did not become less frequent",
            Course::Wandering => "if the level did not wander",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};

    #[test]
    fn a_climb_of_few_blocks_is_no_step_and_a_step_is() {
        let mut rng = Rng::new(SEED);
        for n in [12, 20, 30, 60] {
            let mut values = |shape: &dyn Fn(f64) -> f64| -> Vec<f64> {
                (0..n).map(|i| shape((f64::from(i) + 0.5) / f64::from(n)) - rng.exponential().ln()).collect()
            };
            let (mut climbs, mut steps) = (0, 0);
            for _ in 0..20 {
                let climb = values(&|part| 9.0 * part);
                climbs += u32::from(!matches!(course((&climb).into(), None, None), Course::Changed(..)));
                let step = values(&|part| if part < 0.5 { 0.0 } else { 9.0 });
                steps += u32::from(matches!(course((&step).into(), None, None), Course::Changed(..)));
            }
            // With twelve blocks no test of a trend or of a shift detects a step reliably.
            assert!(climbs >= 15 && (steps >= 15 || n == 12), "{n}: {climbs} climbs and {steps} steps of 20");
        }
    }
}
