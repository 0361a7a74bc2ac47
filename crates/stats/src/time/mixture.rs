//! Choice of the period if the events also fit one of its multiples: a comb with jitter among
//! random events, by likelihood.
//!
//! If teeth are missing, pairs of events are more often some periods apart than one, and a search
//! may find a multiple first. Folded on a period Q with teeth of spread sigma, to which a share f
//! of the events belong, a time has the density `(1 - f + f Q g) / span`, g being the tooth's
//! shape: a normal law seen through a step of the clock, or a block. A multiple leaves the teeth
//! between to chance, and a part spreads the same events over too many teeth: each is less likely.
//! If the spread is a large part of the period, they cannot be distinguished from each other.
//! Expectation and maximisation as for any mixture (Dempster, Laird and Rubin 1977).

use super::comb_fit::CombFit;
use crate::law;
use model::sort::CompactSort;

/// Largest divisor of the period that is tried.
const MAX_DIVISOR: u32 = 40;
/// Largest multiple of the likeliest part that is tried.
const MAX_MULTIPLE: u32 = 6;
/// Least number of steps of a period; shorter ones cannot be distinguished on their lattice.
const MIN_PERIOD_STEPS: f64 = 2.0;
/// Difference in logarithms of the likelihood below which another period is an alternative.
const TIE: f64 = 4.0;
/// Number of candidates that are fitted, not only evaluated.
const FITTED: usize = 4;
const ROUNDS: usize = 12;
/// Largest distance of a member from its tooth, in standard deviations.
const REACH: f64 = 2.5;
/// Largest distance of a member from its tooth, as a part of the period.
const HALF: f64 = 0.45;

/// A comb among events at random; ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mixture {
    origin: f64,
    period: f64,
    sigma: f64,
    /// Share of events that belong to the comb.
    share: f64,
    /// Logarithm of its likelihood over that of random events.
    gain: f64,
}

impl Mixture {
    fn residual(&self, time: f64) -> (f64, f64) {
        let cycle = ((time - self.origin) / self.period).round();
        (cycle, time - self.origin - cycle * self.period)
    }

    /// Relative density of events at this distance from a tooth, if all belong to the comb.
    fn height(&self, off: f64, step: f64) -> f64 {
        let below = |x: f64| {
            let half = law::normal_two_sided(x / self.sigma) / 2.0;
            if x < 0.0 { half } else { 1.0 - half }
        };
        let tooth = |off: f64| below(off + step / 2.0) - below(off - step / 2.0);
        let near = self.sigma.max(step) > self.period / 12.0;
        let sides = if near { tooth(off - self.period) + tooth(off + self.period) } else { 0.0 };
        self.period / step * (tooth(off) + sides)
    }

    /// Finds the best share for these heights, and the gain with it.
    fn share(mut self, heights: &[f64]) -> Mixture {
        for _ in 0..ROUNDS {
            let f = self.share;
            let weights = heights.iter().map(|height| f * height / (1.0 - f + f * height));
            self.share = (weights.sum::<f64>() / heights.len() as f64).clamp(1e-3, 0.999);
        }
        let f = self.share;
        self.gain = heights.iter().map(|height| (1.0 - f + f * height).ln()).sum();
        self
    }

    fn heights(&self, times: &[f64], step: f64) -> Vec<f64> {
        times.iter().map(|&time| self.height(self.residual(time).1, step)).collect()
    }

    /// Does one round: each event's share in the comb, then the line and the spread of those.
    fn round(self, times: &[f64], step: f64) -> Option<Mixture> {
        let f = self.share;
        let mut rows = Vec::with_capacity(times.len());
        for &time in times {
            let (cycle, off) = self.residual(time);
            let height = self.height(off, step);
            rows.push((cycle, time, f * height / (1.0 - f + f * height)));
        }
        let n: f64 = rows.iter().map(|row| row.2).sum();
        let mean = |of: fn(&(f64, f64, f64)) -> f64| rows.iter().map(|row| row.2 * of(row)).sum::<f64>() / n;
        let (x, y) = (mean(|row| row.0), mean(|row| row.1));
        let xx: f64 = rows.iter().map(|row| row.2 * (row.0 - x).powi(2)).sum();
        let xy: f64 = rows.iter().map(|row| row.2 * (row.0 - x) * (row.1 - y)).sum();
        let period = xy / xx;
        if !(n > 1.0 && xx > 0.0 && (period / self.period - 1.0).abs() < 0.02) {
            return None;
        }
        let next =
            Mixture { origin: y - x * period, period, share: (n / times.len() as f64).min(0.999), ..self };
        let squares: f64 = rows.iter().map(|row| row.2 * next.residual(row.1).1.powi(2)).sum();
        let sigma = (squares / n - step * step / 12.0).max((0.05 * step).powi(2)).sqrt().min(period / 2.0);
        Some(Mixture { sigma, ..next })
    }

    fn fitted(self, times: &[f64], step: f64) -> Mixture {
        let mut best = self;
        for _ in 0..ROUNDS {
            let Some(next) = best.round(times, step) else { break };
            let next = next.share(&next.heights(times, step));
            let done = next.gain < best.gain + 0.01;
            if next.gain > best.gain {
                best = next;
            }
            if done {
                break;
            }
        }
        best
    }
}

/// Range in which the likeliest period is searched.
#[derive(Clone, Copy, Debug)]
pub struct SearchRange {
    /// Observed time, ns.
    pub span: f64,
    /// Step of the times, ns.
    pub step: f64,
    /// A phase and a period in addition to those of the fit, its parts and their multiples.
    pub besides: Option<(f64, f64)>,
}

/// The likeliest of the fit's period, its parts and their multiples, as a fit of the same events;
/// with it the other periods, ns, that are about as likely, the longest first.
pub fn likeliest(fit: CombFit, times: &[i64], place: SearchRange) -> (CombFit, Vec<f64>) {
    let (all, step) = (candidates(&fit, times, place), place.step.max(1.0));
    // An image differs by the share of blocks with a tooth alone, which jitter changes, too.
    let tie = |one: &Mixture| {
        let is = |period: f64| (one.period / period - 1.0).abs() < 0.01;
        if place.besides.is_some_and(|image| is(image.1) || is(fit.period)) { 2.0 * TIE } else { TIE }
    };
    let alike = all.iter().filter(|one| one.gain >= all[0].gain - tie(one));
    let longest = alike.clone().max_by(|a, b| a.period.total_cmp(&b.period)).copied().unwrap_or(all[0]);
    let mut others: Vec<f64> =
        alike.map(|one| one.period).filter(|one| *one < 0.99 * longest.period).collect();
    others.compact_sort_by(|a, b| b.total_cmp(a));
    others.dedup_by(|a, b| (*a / *b - 1.0).abs() < 0.01);
    if (longest.period / fit.period - 1.0).abs() < 0.01 {
        return (fit, others);
    }
    let spread = (longest.sigma.powi(2) + step * step / 12.0).sqrt();
    let tolerance = (REACH * spread).max(0.75 * step).min(HALF * longest.period);
    match fit.moved(times, longest.origin, longest.period, tolerance) {
        Some(moved) => (moved, others),
        None => (fit, others),
    }
}

/// All candidates, the likeliest first.
fn candidates(
    fit: &CombFit,
    times: &[i64],
    SearchRange { span, step, besides }: SearchRange,
) -> Vec<Mixture> {
    let at: Vec<f64> = times.iter().map(|&time| time as f64).collect();
    let step = step.max(1.0);
    let jitter = fit.errors(times, step).jitter;
    let sigma = (jitter * jitter - step * step / 12.0).max(0.09 * step * step).sqrt();
    let tried = |origin: f64, period: f64| {
        let start = Mixture { origin, period, sigma: sigma.min(period / 4.0), share: 0.5, gain: 0.0 };
        start.share(&start.heights(&at, step))
    };
    let parts = (1..=MAX_DIVISOR).map(|part| fit.period / f64::from(part));
    let parts = parts.filter(|period| *period == fit.period || *period >= MIN_PERIOD_STEPS * step);
    let mut all: Vec<Mixture> = parts
        .map(|period| (fit.origin, period))
        .chain(besides)
        .map(|(origin, period)| tried(origin, period))
        .collect();
    let by_gain = |a: &Mixture, b: &Mixture| b.gain.total_cmp(&a.gain);
    let refine = |all: &mut Vec<Mixture>| {
        all.compact_sort_by(by_gain);
        all.iter_mut().take(FITTED).for_each(|one| *one = one.fitted(&at, step));
        all.compact_sort_by(by_gain);
    };
    refine(&mut all);
    let best = all[0];
    for times in 2..=MAX_MULTIPLE {
        let period = best.period * f64::from(times);
        if period <= span / 6.0 {
            all.extend((0..times).map(|tooth| tried(best.origin + f64::from(tooth) * best.period, period)));
        }
    }
    refine(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};

    const SPAN: f64 = 3_600e9;
    const STEP: f64 = 1e9;

    /// Events in blocks of a second: a comb with jitter of which this share occurs, and this number
    /// of others; in s.
    fn events(period: f64, jitter: f64, rate: f64, others: usize, rng: &mut Rng) -> Vec<i64> {
        let due = (0..).map(|n| 1.5 + f64::from(n) * period).take_while(|due| *due < SPAN / 1e9);
        let mut at: Vec<i64> = Vec::new();
        for due in due {
            if rng.uniform() < rate {
                at.push((due + jitter * rng.normal()).max(0.0) as i64);
            }
        }
        at.extend((0..others).map(|_| rng.below(3_600) as i64));
        at.sort_unstable();
        at.dedup();
        at.into_iter().map(|second| second * STEP as i64).collect()
    }

    /// Period that is named if this one was found, and the others, in s.
    fn named(times: &[i64], found: f64) -> (f64, Vec<f64>) {
        let fit =
            CombFit { origin: 1e9, period: found * 1e9, width: 2e9, tolerance: 2e9, members: Vec::new() };
        let fit = fit.moved(times, 1e9, found * 1e9, 2e9).expect("a comb");
        let (fit, others) = likeliest(fit, times, SearchRange { span: SPAN, step: STEP, besides: None });
        (fit.period / 1e9, others.iter().map(|other| other / 1e9).collect())
    }

    #[test]
    fn multiples_and_parts_lead_to_the_period() {
        let mut rng = Rng::new(SEED);
        for (period, jitter, rate) in [(20.3, 0.5, 0.3), (20.3, 0.5, 0.6), (7.3, 0.5, 0.4), (5.2, 0.3, 0.3)] {
            for times in [1.0, 2.0, 3.0, 5.0] {
                let (found, others) = named(&events(period, jitter, rate, 60, &mut rng), times * period);
                assert!(
                    (found / period - 1.0).abs() < 0.005 && others.is_empty(),
                    "{period}: {found} {others:?}"
                );
            }
        }
        let (found, _) = named(&events(20.3, 0.5, 0.6, 40, &mut rng), 20.3 / 4.0);
        assert!((found - 20.3).abs() < 0.1, "{found}");
    }

    #[test]
    fn indistinguishable_periods_are_named_together() {
        // Eight 20 s apart and one in the middle: an unrelated one, or the only present one of
        // seven teeth between.
        let times = [0, 20, 40, 50, 60, 80, 100, 120, 140].map(|second| second * STEP as i64);
        let fit = CombFit { origin: 0.0, period: 20e9, width: 2e9, tolerance: 2e9, members: Vec::new() };
        let fit = fit.moved(&times, 0.0, 20e9, 2e9).expect("a comb");
        let (fit, others) = likeliest(fit, &times, SearchRange { span: 3_600e9, step: STEP, besides: None });
        assert!((fit.period / 1e9 - 20.0).abs() < 0.1, "{fit:?}");
        assert!(others.iter().any(|other| (other / 1e9 - 10.0).abs() < 0.1), "{others:?}");
    }

    #[test]
    fn strange_input_is_answered() {
        let times = [0i64, 1, 2, 3, 4, i64::MAX / 16];
        let fit = CombFit { origin: 0.0, period: 1.0, width: 1.0, tolerance: 0.4, members: Vec::new() };
        if let Some(fit) = fit.moved(&times, 0.0, 1.0, 0.4) {
            likeliest(fit, &times, SearchRange { span: 1e18, step: 0.0, besides: Some((f64::NAN, 1.0)) });
        }
    }
}
