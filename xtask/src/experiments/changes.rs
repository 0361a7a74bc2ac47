//! A fleet that is checked every day: the rate of false reports of changes, and of doublings found
//! within a week.

use stats::pair::adjusted_p::benjamini_hochberg;
use stats::pair::conditional_binomial::Exposure;
use stats::rng::{Rng, SEED};
use stats::time::fixture::dispersed_counts;
use stats::time::onset::{Direction, RateOnset, onsets};

use super::line::ResultLine;
use super::{Experiment, Length};

const NAME: &str = "farm-changes";
const YEAR: usize = 365;
/// Days before the year, so that the usual rate is known when it begins.
const BEFORE: usize = 210;
/// Days that a page looks back.
const SHOWN: usize = 90;
/// Limit of the share of false reports on a page.
const FALSE_SHARE: f64 = 0.05;
/// Events a day, and variance over mean, of boards without a change.
const FLEET: [(f64, f64); 8] =
    [(10.0, 1.0), (10.0, 1.2), (10.0, 1.3), (15.0, 1.2), (10.0, 2.0), (20.0, 1.5), (40.0, 2.0), (40.0, 3.0)];
/// A doubling must be found in 95 of 100 cases if the flag is set; rarer or more variable events
/// cannot show it within a week (`stats::time::onset::smallest_factor`).
const PLANTED: [(f64, f64, bool); 6] = [
    (10.0, 1.0, true),
    (10.0, 1.3, true),
    (20.0, 2.0, true),
    (40.0, 3.0, true),
    (10.0, 1.5, false),
    (10.0, 2.0, false),
];

/// All of them.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> =
        vec![(NAME, Box::new(nothing_changes)), (NAME, Box::new(some_boards_change))];
    for (rate, phi, held) in PLANTED {
        all.push((NAME, Box::new(move |length| vec![doubling(rate, phi, held, length)])));
    }
    all
}

fn days(counts: &[u64]) -> Vec<Exposure> {
    counts.iter().map(|&events| Exposure { events, time: 1.0 }).collect()
}

/// Reports of a year.
fn reports(counts: &[u64]) -> Vec<RateOnset> {
    onsets(&days(counts)).into_iter().filter(|one| one.seen >= BEFORE).collect()
}

fn nothing_changes(length: Length) -> Vec<ResultLine> {
    let years = length.of(8_000, 800);
    let mut rng = Rng::new(SEED);
    let mut found = 0;
    for at in 0..years {
        let (rate, phi) = FLEET[at as usize % FLEET.len()];
        found += reports(&dispersed_counts(rate, phi, BEFORE + YEAR, &mut rng)).len();
    }
    let share = found as f64 / f64::from(years);
    vec![ResultLine::rate("no change: reports of a board in a year", share, years).at_most(0.02)]
}

fn doubling(rate: f64, phi: f64, held: bool, length: Length) -> ResultLine {
    let cases = length.of(4_000, 400);
    let mut rng = Rng::new(SEED);
    let begin = 210;
    let found = (0..cases).filter(|_| {
        let mut counts = dispersed_counts(rate, phi, begin, &mut rng);
        counts.extend(dispersed_counts(2.0 * rate, phi, 7, &mut rng));
        onsets(&days(&counts)).iter().any(|one| one.seen >= begin && one.direction == Direction::More)
    });
    let share = found.count() as f64 / f64::from(cases);
    let what = format!("{rate} a day, variance {phi} times the mean, doubled: found within 7 days");
    let line = ResultLine::rate(what, share, cases);
    if held { line.at_least(0.95) } else { line }
}

/// A year of a thousand boards, a quarter of which double on some day, as the page shows it each
/// day: those that Benjamini and Hochberg leave of ninety days.
fn some_boards_change(length: Length) -> Vec<ResultLine> {
    let boards = length.of(1_000, 200) as usize;
    let mut rng = Rng::new(SEED);
    let mut planted: Vec<Option<usize>> = Vec::new();
    let mut all: Vec<(usize, RateOnset)> = Vec::new();
    for board in 0..boards {
        let (rate, phi) = FLEET[board % FLEET.len()];
        let day = (board % 4 == 0).then(|| BEFORE + 30 + rng.below(YEAR - 60));
        let first = day.unwrap_or(BEFORE + YEAR);
        let mut counts = dispersed_counts(rate, phi, first, &mut rng);
        counts.extend(dispersed_counts(2.0 * rate, phi, BEFORE + YEAR - first, &mut rng));
        all.extend(reports(&counts).into_iter().map(|one| (board, one)));
        planted.push(day);
    }
    let mut shown = vec![false; all.len()];
    let mut in_week = 0;
    for today in BEFORE..BEFORE + YEAR {
        let window: Vec<usize> = (0..all.len())
            .filter(|at| (today.saturating_sub(SHOWN)..=today).contains(&all[*at].1.seen))
            .collect();
        let mut p: Vec<f64> = window.iter().map(|at| (all[*at].1.p_day * SHOWN as f64).min(1.0)).collect();
        // Boards without a report count too.
        p.resize(p.len().max(boards), 1.0);
        for (at, adjusted) in window.into_iter().zip(benjamini_hochberg(&p)) {
            if adjusted <= FALSE_SHARE && !shown[at] {
                shown[at] = true;
                let (board, one) = all[at];
                in_week += usize::from(planted[board].is_some_and(|day| one.seen >= day && today < day + 7));
            }
        }
    }
    let is_true = |(board, one): &(usize, RateOnset)| {
        planted[*board].is_some_and(|day| one.seen >= day && one.from.abs_diff(day) <= 21)
    };
    let told: Vec<&(usize, RateOnset)> =
        all.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(one, _)| one).collect();
    let wrong = told.iter().filter(|one| !is_true(one)).count();
    let changed = planted.iter().flatten().count();
    let part = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    let reps = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
    vec![
        ResultLine::rate(
            format!("{boards} boards, {changed} double in a year: false reports"),
            part(wrong, told.len()),
            reps(told.len()),
        )
        .at_most(0.05),
        ResultLine::rate(
            "of these doublings on the page within 7 days".to_owned(),
            part(in_week, changed),
            reps(changed),
        ),
    ]
}
