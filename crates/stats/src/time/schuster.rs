//! Periodogram of points: a frequency that many weak events favour.
//!
//! `P(f) = |sum exp(-2 pi i f t)|^2 / N` (Schuster 1898, Rayleigh's test); under random events P is
//! exponential with mean 1, and the largest of M independent frequencies exceeds P with probability
//! `1 - (1 - exp(-P))^M`, M being the span times the width of the search. Two lines closer than one
//! over the span are one line here. Assumes an even rate: slow changes of the rate appear at low
//! frequencies.

use std::f64::consts::TAU;

/// Number of frequencies per resolvable line.
const OVERSAMPLING: f64 = 8.0;
/// Maximum number of terms of one search: a longer one ends at a lower frequency, and reports it.
const MAX_TERMS: f64 = 3e7;
/// Number of steps after which a rotating phase is recomputed.
const RENEW: usize = 512;

/// The strongest line of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralLine {
    /// Frequency, Hz.
    pub hz: f64,
    /// Power in units of the mean under random events.
    pub power: f64,
    /// Probability that random events have such a line anywhere in the range searched.
    pub false_alarm: f64,
    /// End of the search, Hz.
    pub searched_to_hz: f64,
}

/// The power at a frequency in Hz of events in ns.
pub fn power(times: &[i64], hz: f64) -> f64 {
    let Some(&first) = times.first() else { return 0.0 };
    let turns = times.iter().map(|&time| (seconds(time, first) * hz).rem_euclid(1.0) * TAU);
    let (re, im) = turns.fold((0.0, 0.0), |(re, im), turn| (re + turn.cos(), im + turn.sin()));
    (re * re + im * im) / times.len() as f64
}

/// Probability that the largest power of this number of independent frequencies is at least this.
pub fn false_alarm(power: f64, independent: f64) -> f64 {
    // 1 - (1 - e)^M without the loss of a small e.
    -(independent.max(1.0) * (-(-power).exp()).ln_1p()).exp_m1()
}

/// Searches events in ns, watched over `span_ns`, for the strongest frequency between two in Hz.
pub fn search(times: &[i64], span_ns: i64, from: f64, to: f64) -> Option<SpectralLine> {
    let span = span_ns as f64 / 1e9;
    if times.len() < 2 || span_ns <= 0 || !(from > 0.0 && to > from && to.is_finite()) {
        return None;
    }
    let step = 1.0 / (OVERSAMPLING * span);
    let affordable = (MAX_TERMS / times.len() as f64).floor().max(2.0);
    let steps = ((to - from) / step).ceil().min(affordable);
    let to = to.min(from + steps * step);
    let (mut hz, at_grid) = grid_peak(times, from, step, steps as usize + 1);
    let mut best = at_grid;
    let mut reach = step;
    while reach > step * 1e-4 {
        for side in [hz - reach, hz + reach] {
            let there = power(times, side);
            if there > best && side >= from && side <= to {
                (hz, best) = (side, there);
            }
        }
        reach *= 0.7;
    }
    let false_alarm = false_alarm(best, span * (to - from));
    Some(SpectralLine { hz, power: best, false_alarm, searched_to_hz: to })
}

/// False alarm probability of one given period, ns, whose error is at most the width of one line.
pub fn confirm(times: &[i64], span_ns: i64, period_ns: f64) -> Option<SpectralLine> {
    let (hz, width) = (1e9 / period_ns, 0.5e9 / span_ns as f64);
    search(times, span_ns, (hz - width).max(width * 1e-3), hz + width)
}

/// Strongest of equally spaced frequencies: each step turns every event's phase by the same angle.
fn grid_peak(times: &[i64], from: f64, step: f64, count: usize) -> (f64, f64) {
    let first = times[0];
    let at: Vec<f64> = times.iter().map(|&time| seconds(time, first)).collect();
    let turn =
        |hz: f64| at.iter().map(move |t| ((t * hz).rem_euclid(1.0) * TAU).sin_cos()).collect::<Vec<_>>();
    let by = turn(step);
    let mut phases = Vec::new();
    let mut best = (from, 0.0);
    for k in 0..count {
        let hz = from + step * k as f64;
        if k % RENEW == 0 {
            phases = turn(hz);
        }
        let (mut re, mut im) = (0.0, 0.0);
        for ((sin, cos), (by_sin, by_cos)) in phases.iter_mut().zip(&by) {
            re += *cos;
            im += *sin;
            (*sin, *cos) = (*sin * by_cos + *cos * by_sin, *cos * by_cos - *sin * by_sin);
        }
        let power = (re * re + im * im) / at.len() as f64;
        if power > best.1 {
            best = (hz, power);
        }
    }
    best
}

fn seconds(time: i64, origin: i64) -> f64 {
    (i128::from(time) - i128::from(origin)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Recipe;
    use super::*;
    use crate::rng::{Rng, SEED};

    #[test]
    fn powers_by_hand() {
        let s = 1_000_000_000;
        assert!((power(&[0, s, 2 * s, 3 * s], 1.0) - 4.0).abs() < 1e-12);
        assert!(power(&[0, s, 2 * s, 3 * s], 0.5).abs() < 1e-12);
        assert!((power(&[i64::MIN, i64::MAX], 1e-12) - 2.0).abs() < 0.01);
        assert!((false_alarm(10.0, 1.0) - (-10f64).exp()).abs() < 1e-15);
        assert!((false_alarm(60.0, 1e6) / (1e6 * (-60f64).exp()) - 1.0).abs() < 1e-9);
        assert!((false_alarm(3.0, 100.0) - (1.0 - (1.0 - (-3f64).exp()).powi(100))).abs() < 1e-12);
    }

    #[test]
    fn many_weak_events_give_the_line_away() {
        let mut rng = Rng::new(SEED);
        let weak = Recipe {
            span_ns: 600_000_000_000,
            random: 150,
            period_ns: 3.7e9,
            jitter_ns: 0.4e9,
            missing: 0.4,
            ..Recipe::HOUR
        };
        let times = weak.events(&mut rng);
        let line = search(&times, weak.span_ns, 0.1, 1.0).expect("events");
        assert!((line.hz - 1.0 / 3.7).abs() < 0.3 / 600.0 && line.false_alarm < 1e-6, "{line:?}");
        assert!(confirm(&times, weak.span_ns, 3.7e9).expect("events").false_alarm < line.false_alarm);
        assert_eq!(line.searched_to_hz, 1.0);
    }

    #[test]
    fn the_grid_agrees_with_the_sum() {
        let times = Recipe { random: 40, ..Recipe::HOUR }.events(&mut Rng::new(SEED));
        let (hz, found) = grid_peak(&times, 0.01, 1e-5, 1500);
        assert!((found - power(&times, hz)).abs() < 1e-6 * found, "{found}");
        assert!((0..1500).all(|k| power(&times, 0.01 + 1e-5 * f64::from(k)) < found * (1.0 + 1e-6)));
    }

    #[test]
    fn events_at_random_rarely_have_one() {
        // The peak between independent frequencies is higher than on them: the formula's M is too
        // small by two or three, and an alarm at 0.01 is one in fifty. Four standard deviations
        // above that.
        let mut rng = Rng::new(SEED);
        let recipe = Recipe { random: 50, ..Recipe::HOUR };
        let mut line = || search(&recipe.events(&mut rng), recipe.span_ns, 0.002, 0.1);
        let claims = (0..60).filter(|_| line().is_some_and(|line| line.false_alarm < 0.01)).count();
        assert!(claims <= 5, "{claims}");
    }

    #[test]
    fn edges_are_answered() {
        assert_eq!(search(&[], 10, 0.1, 1.0), None);
        assert_eq!(search(&[1, 2], 10, 1.0, f64::INFINITY), None);
        assert_eq!(search(&[1, 2], 0, 0.1, 1.0), None);
        assert_eq!(confirm(&[1, 2, 3], 10, 0.0), None);
        let far = search(&vec![5; 30_000], 3_600_000_000_000, 0.1, 1e9).expect("events");
        assert!(far.searched_to_hz < 0.2, "{far:?}");
    }
}
