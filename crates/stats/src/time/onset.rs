//! Daily test for a change of the rate of events within the last two weeks.
//!
//! The Shiryaev-Roberts sum of likelihood ratios over the days on which it may have begun (Pollak
//! 1985, Annals of Statistics 13), of twice or half the rate against the rate of the days before.
//! `change::segments` finds changes in a complete series; this test may be repeated every day: its
//! chance of a false report is per year, not per look.
//!
//! Counts of days vary more than by chance alone, so that they are taken as negative binomial with
//! a variance of phi times the mean; phi is that of neighbouring days, which a change does not
//! enter. Assumes that days are independent of each other.

use crate::law::ln_gamma;
use crate::pair::conditional_binomial::{Exposure, total};

/// Number of last days in which a change is searched.
pub const RECENT: usize = 14;
/// Largest number of earlier days for the usual rate.
const LONGEST: usize = 180;
/// Least number of earlier days for the usual rate.
pub const LEAST: usize = 42;
/// Days per report by chance: fifty years.
const DAYS_PER_FALSE: f64 = 18_250.0;
/// Level that the sum must reach, from `cargo xtask experiments --only farm-changes`: for
/// counts that vary by chance alone.
const LEVEL: f64 = 9.0;
/// Level for counts that vary more, higher because phi itself is an estimate.
const LEVEL_DISPERSED: f64 = 10.8;

/// Direction in which a rate changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    More,
    Fewer,
}

impl Direction {
    fn factor(self) -> f64 {
        match self {
            Direction::More => 2.0,
            Direction::Fewer => 0.5,
        }
    }

    /// Fewer events are no alarm: these reports may come later.
    fn level(self, phi: f64) -> f64 {
        let dispersed = ((phi - 1.2) / 0.6).clamp(0.0, 1.0);
        let level = LEVEL + (LEVEL_DISPERSED - LEVEL) * dispersed;
        if self == Direction::More { level } else { level + 1.5 }
    }
}

/// A change of rate, as it was known on a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateOnset {
    pub direction: Direction,
    /// Day on which it was detected.
    pub seen: usize,
    /// Day on which it seems to have begun.
    pub from: usize,
    /// First of the usual days with which it was compared, up to [`RECENT`] days before it was
    /// detected.
    pub usual_from: usize,
    /// Events a day of the usual days, as used for the test: slightly more than their mean.
    pub before: f64,
    /// Events a day since the change, up to the day of detection.
    pub after: f64,
    /// Variance over mean of the usual days.
    pub phi: f64,
    /// Upper bound of the chance of such a report on a day.
    pub p_day: f64,
}

/// Changes in days, oldest first, each detected with the days up to its day alone. After a change
/// the days since then are the usual ones.
pub fn onsets(days: &[Exposure]) -> Vec<RateOnset> {
    let mut found: Vec<RateOnset> = Vec::new();
    let mut usual_from = 0;
    for seen in 0..days.len() {
        let Some(begin) = (seen + 1).checked_sub(RECENT) else { continue };
        if begin < usual_from + LEAST {
            continue;
        }
        let past = usual_from.max(begin.saturating_sub(LONGEST));
        let both = [Direction::More, Direction::Fewer];
        let here = both.iter().find_map(|way| onset(&days[past..begin], &days[begin..=seen], *way));
        if let Some(onset) = here {
            let from = begin + onset.from;
            found.push(RateOnset { seen, from, usual_from: past, ..onset });
            usual_from = from;
        }
    }
    found
}

/// Tests for a change within the recent days; `from` counts in these.
fn onset(past: &[Exposure], recent: &[Exposure], direction: Direction) -> Option<RateOnset> {
    let usual = UsualRate::of(past)?;
    let (mut sum, mut ratio, mut best) = (0.0, 0.0, (f64::NEG_INFINITY, 0));
    for (at, day) in recent.iter().enumerate().rev() {
        ratio += usual.log_ratio(day, direction.factor());
        sum += f64::exp(ratio);
        if ratio > best.0 {
            best = (ratio, at);
        }
    }
    let excess = sum.ln() - direction.level(usual.phi);
    let since = total(&recent[best.1..]);
    (excess >= 0.0 && since.time > 0.0).then(|| RateOnset {
        direction,
        seen: 0,
        from: best.1,
        usual_from: 0,
        before: usual.rate,
        after: since.events as f64 / since.time,
        phi: usual.phi,
        p_day: (-excess).exp() / DAYS_PER_FALSE,
    })
}

/// Usual rate for the last of some days, oldest first, if the rate last changed on day `changed` (0
/// if never); `None` if there are too few.
pub fn usual_rate(days: &[Exposure], changed: usize) -> Option<UsualRate> {
    let begin = days.len().checked_sub(RECENT)?;
    let past = changed.max(begin.saturating_sub(LONGEST));
    if begin < changed + LEAST { None } else { UsualRate::of(&days[past..begin]) }
}

/// Usual rate of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualRate {
    /// Events a day.
    pub rate: f64,
    /// Variance over mean of the daily events.
    pub phi: f64,
}

impl UsualRate {
    fn of(days: &[Exposure]) -> Option<UsualRate> {
        let seen: Vec<Exposure> = days.iter().copied().filter(|day| day.time > 0.0).collect();
        if seen.len() < LEAST {
            return None;
        }
        let all = total(&seen);
        let (mut differences, mut sums) = (2.0, 2.0);
        for pair in seen.windows(2) {
            let [a, b] = [pair[0], pair[1]];
            let apart = a.events as f64 / a.time - b.events as f64 / b.time;
            differences += apart * apart / (1.0 / a.time + 1.0 / b.time);
            sums += (a.events as f64 + b.events as f64) / (a.time + b.time);
        }
        let phi = differences / sums;
        // A rate of 0 in so few days may be slightly higher, and any rate higher than it looks: by
        // a third of its standard deviation.
        let events = all.events as f64 + 0.5;
        let rate = (events + 0.3 * (events * phi.max(1.0)).sqrt()) / all.time;
        Some(UsualRate { rate, phi })
    }

    /// Logarithm of the likelihood of a day at a multiple of the rate over that at the rate.
    fn log_ratio(&self, day: &Exposure, factor: f64) -> f64 {
        let (events, mean) = (day.events as f64, self.rate * day.time);
        if day.time <= 0.0 {
            return 0.0;
        }
        if self.phi <= 1.02 {
            return events * factor.ln() - (factor - 1.0) * mean;
        }
        let size = mean / (self.phi - 1.0);
        ln_gamma(events + factor * size) - ln_gamma(factor * size) - ln_gamma(events + size) + ln_gamma(size)
            - (factor - 1.0) * size * self.phi.ln()
    }
}

/// Smallest factor by which a rate may rise and be detected within a week in 95 of 100 cases;
/// `None` from a hundred on.
pub fn smallest_factor(rate: f64, phi: f64) -> Option<f64> {
    let phi = phi.max(1.0);
    let level = Direction::More.level(phi);
    let two = 2f64.ln();
    let seen = |factor: f64| {
        let mean = 7.0 * rate * (factor * two - 1.0) / phi;
        let spread = (7.0 * factor * rate / phi).sqrt() * two;
        mean - 1.645 * spread >= level
    };
    (11..=1_000).map(|tenths| f64::from(tenths) / 10.0).find(|factor| seen(*factor))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{dispersed_counts, poisson_counts};
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    fn days(counts: &[u64]) -> Vec<Exposure> {
        counts.iter().map(|&events| Exposure { events, time: 1.0 }).collect()
    }

    #[test]
    fn a_doubling_is_seen_within_a_week_and_once() {
        let mut rng = Rng::new(SEED);
        let mut counts = dispersed_counts(20.0, 1.3, 100, &mut rng);
        counts.extend(dispersed_counts(40.0, 1.3, 60, &mut rng));
        let found = onsets(&days(&counts));
        assert_eq!(found.len(), 1, "{found:?}");
        let one = found[0];
        assert!((100..107).contains(&one.seen) && one.from.abs_diff(100) <= 2, "{one:?}");
        assert!(one.direction == Direction::More && one.p_day < 1e-4 && one.after / one.before > 1.5);
        assert_eq!(one.usual_from, 0);
    }

    #[test]
    fn half_the_rate_is_seen_and_one_wild_day_is_not() {
        let mut rng = Rng::new(SEED + 1);
        let mut counts = poisson_counts(30.0, 80, &mut rng);
        counts.extend(poisson_counts(12.0, 20, &mut rng));
        let found = onsets(&days(&counts));
        assert_eq!(found.iter().map(|one| one.direction).collect::<Vec<_>>(), [Direction::Fewer]);
        let mut wild = dispersed_counts(10.0, 2.0, 120, &mut rng);
        wild[100] += 15;
        assert!(onsets(&days(&wild)).is_empty());
    }

    #[test]
    fn days_of_half_the_length_count_half_and_days_without_any_not_at_all() {
        let mut rng = Rng::new(SEED + 2);
        let counts = poisson_counts(15.0, 100, &mut rng);
        let mut shorter = days(&poisson_counts(30.0, 60, &mut rng));
        shorter.extend(counts.iter().take(40).map(|&events| Exposure { events, time: 0.5 }));
        shorter.extend(counts.iter().skip(40).map(|_| Exposure { events: 0, time: 0.0 }));
        assert!(onsets(&shorter).is_empty());
    }

    #[test]
    fn what_is_usual_is_what_the_last_day_is_judged_by() {
        let mut rng = Rng::new(SEED);
        let mut all = days(&poisson_counts(20.0, 100, &mut rng));
        let usual = usual_rate(&all, 0).unwrap();
        assert_eq!(Some(usual), UsualRate::of(&all[..86]));
        assert!(usual_rate(&all, 44).is_some() && usual_rate(&all, 45).is_none());
        assert!(usual_rate(&all[..55], 0).is_none() && usual_rate(&all[..9], 0).is_none());
        // The report of a change names the same numbers.
        all.extend(days(&poisson_counts(80.0, 3, &mut rng)));
        let found = onsets(&all);
        let before = usual_rate(&all[..=found[0].seen], 0).unwrap();
        assert_eq!((found[0].before, found[0].phi), (before.rate, before.phi));
    }

    #[test]
    fn the_smallest_factor_falls_with_the_rate() {
        let factors: Vec<f64> =
            [1.0, 10.0, 100.0, 1_000.0].iter().map(|&rate| smallest_factor(rate, 1.0).unwrap()).collect();
        assert!(factors.windows(2).all(|pair| pair[1] < pair[0]), "{factors:?}");
        assert!(smallest_factor(10.0, 1.0).unwrap() <= 2.0 && smallest_factor(0.0, 1.0).is_none());
    }

    proptest! {
        #[test]
        fn any_days_have_an_answer(
            counts in prop::collection::vec((prop::num::u64::ANY, 0.0f64..2.0), 0..100)) {
            let days: Vec<Exposure> =
                counts.iter().map(|&(events, time)| Exposure { events, time }).collect();
            for one in onsets(&days) {
                prop_assert!(one.from <= one.seen && one.seen < days.len());
                prop_assert!(one.usual_from + LEAST <= one.from);
            }
        }
    }
}
