//! Periods of a few blocks among blocks whose times are no finer: too short for differences of
//! pairs.
//!
//! The strongest line of Schuster's periodogram (see [`super::schuster`]) between one cycle in
//! twelve steps and one in two, if events at random have none like it and more than half of the
//! events are in its phase. Assumes events on a lattice of steps, at most one in each.

use std::f64::consts::TAU;

use model::sort::CompactSort;

use super::comb_fit::CombFit;
use super::mixture::{self, SearchRange};
use super::period::{Comb, WatchedSpan, comb_of};
use super::schuster;

/// Longest period, in steps: longer ones show in the differences of pairs.
const LONGEST: f64 = 12.0;
/// Least mean length of the events' unit vectors: the share in phase, 1 for a clean comb.
const COHERENT: f64 = 0.6;
/// Least power, relative to the line's, of another line of which it may be a harmonic.
const AS_STRONG: f64 = 0.6;
/// Largest distance of a member from its due phase, in cycles, or in steps if that is more.
const OFF: (f64, f64) = (0.12, 0.4);
/// Highest harmonic that a line may be.
const HARMONICS: u32 = 150;
const MIN_EVENTS: usize = 8;
/// Least share of occupied cycles: a comb of fewer may be one of a longer period.
const OCCUPIED: f64 = 0.15;

/// Comb of a short period, times and step in ns; `None` if chance may have made it.
pub fn comb(times: &[i64], span: WatchedSpan, step: i64, alpha: f64) -> Option<Comb> {
    let length = span.length().filter(|&length| length > 0 && step > 0)?;
    if times.len() < MIN_EVENTS {
        return None;
    }
    let second = step as f64 / 1e9;
    let (from, to) = (1.0 / (LONGEST * second), 0.5 / second);
    let line = schuster::search(times, length, from, to)?;
    let enough = COHERENT * COHERENT * times.len() as f64;
    if line.false_alarm >= alpha || line.power < enough {
        return None;
    }
    // Below a few cycles in the whole span any events are in phase.
    let slowest = 5e9 / length as f64;
    let strong = |hz: &f64| *hz >= slowest && schuster::power(times, *hz) >= AS_STRONG * line.power;
    let parts = (1..=HARMONICS).map(|part| line.hz / f64::from(part));
    let hz = parts.filter(strong).fold(line.hz, f64::min);
    // A harmonic of a longer period belongs to that period.
    if hz < from {
        None
    } else {
        named(members(times, 1e9 / hz, step as f64, line.false_alarm)?, times, length, step)
    }
}

/// The comb with the likeliest period: a line may be the harmonic of a longer period without being
/// nearly as strong, or the image of a period below two steps, which its blocks have in common with
/// one above.
fn named(comb: Comb, times: &[i64], length: i64, step: i64) -> Option<Comb> {
    let first = times.iter().copied().min()?;
    let mut events: Vec<(i64, usize)> =
        times.iter().enumerate().map(|(at, time)| (time - first, at)).collect();
    events.sort_unstable();
    let at: Vec<i64> = events.iter().map(|event| event.0).collect();
    let width = step as f64;
    let reach = (OFF.0 * comb.period_ns).max(OFF.1 * width);
    let (origin, period) = ((comb.phase_ns - first) as f64, comb.period_ns);
    let start = CombFit { origin, period, width, tolerance: reach, members: Vec::new() };
    let fit = start.moved(&at, origin, period, reach)?;
    let own = fit.period;
    // In blocks, f and 1 - f of a cycle per block differ only in the sign of the phase.
    let cycles = width / own;
    let image = (-origin * cycles / (1.0 - cycles), width / (1.0 - cycles));
    let besides = Some(image).filter(|image| image.1 < 2.0 * width && own > 2.0 * width);
    let (fit, or_ns) =
        mixture::likeliest(fit, &at, SearchRange { span: length as f64, step: width, besides });
    if (fit.period / own - 1.0).abs() < 0.01 {
        return Some(Comb { or_ns, ..comb });
    }
    Some(Comb { or_ns, ..comb_of(&fit, &events, first, step, comb.p) })
}

/// Events in phase, with the period by least squares.
fn members(times: &[i64], period: f64, step: f64, p: f64) -> Option<Comb> {
    let first = *times.iter().min()?;
    let after = |&time: &i64| (time.saturating_sub(first)) as f64;
    let turns = times.iter().map(|time| (after(time) / period).rem_euclid(1.0) * TAU);
    let (re, im) = turns.fold((0.0, 0.0), |(re, im), turn| (re + turn.cos(), im + turn.sin()));
    let origin = im.atan2(re) / TAU * period;
    let reach = (OFF.0 * period).max(OFF.1 * step);
    let mut found: Vec<(f64, f64, usize)> = Vec::new();
    for (index, time) in times.iter().enumerate() {
        let cycle = ((after(time) - origin) / period).round();
        if (after(time) - origin - cycle * period).abs() <= reach {
            found.push((cycle, after(time), index));
        }
    }
    found.compact_sort_by(|a, b| a.1.total_cmp(&b.1));
    let n = found.len() as f64;
    let (mean_n, mean_t) = (
        found.iter().map(|member| member.0).sum::<f64>() / n,
        found.iter().map(|member| member.1).sum::<f64>() / n,
    );
    let spread: f64 = found.iter().map(|member| (member.0 - mean_n).powi(2)).sum();
    if found.len() < MIN_EVENTS || spread <= 0.0 {
        return None;
    }
    let slope = found.iter().map(|member| (member.0 - mean_n) * (member.1 - mean_t)).sum::<f64>() / spread;
    let start = mean_t - slope * mean_n;
    let squares: f64 = found.iter().map(|member| (member.1 - start - slope * member.0).powi(2)).sum();
    // Times that were rounded down to steps are off by a step over the root of twelve.
    let jitter = (squares / (n - 2.0)).sqrt();
    let error = jitter.max(step / 12f64.sqrt()) / spread.sqrt();
    let (first_cycle, last_cycle) = (found.first()?.0, found.last()?.0);
    if n < OCCUPIED * (last_cycle - first_cycle + 1.0) {
        return None;
    }
    Some(Comb {
        period_ns: slope,
        period_se_ns: error,
        phase_ns: first.saturating_add((start + slope * first_cycle) as i64),
        jitter_ns: jitter,
        misses: ((last_cycle - first_cycle + 1.0) - n).max(0.0) as usize,
        members: found.into_iter().map(|member| member.2).collect(),
        p,
        or_ns: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const STEP: i64 = 1_000_000_000;
    const BLOCKS: usize = 3_600;

    /// Blocks of 3600 with a tooth, less the missing ones, and this number of others.
    fn events(period: f64, rate: f64, others: usize, seed: u64) -> Vec<i64> {
        let mut rng = Rng::new(seed);
        let teeth = (0..).map(|n| (n as f64 * period) as usize).take_while(|&at| at < BLOCKS);
        let mut blocks: Vec<usize> = teeth.filter(|_| rng.uniform() < rate).collect();
        blocks.extend((0..others).map(|_| rng.below(BLOCKS)));
        blocks.sort_unstable();
        blocks.dedup();
        blocks.into_iter().map(|block| block as i64 * STEP).collect()
    }

    fn period_of(times: &[i64]) -> Option<f64> {
        comb(times, WatchedSpan::new(0, BLOCKS as i64 * STEP), STEP, 0.002)
            .map(|comb| comb.period_ns / STEP as f64)
    }

    #[test]
    fn short_combs_are_found_with_their_period() {
        for (period, rate, others) in
            [(2.0, 0.2, 60), (3.0, 0.3, 60), (5.0, 0.5, 60), (7.0, 0.5, 60), (10.0, 1.0, 60), (2.5, 0.3, 30)]
        {
            let all: Vec<Option<f64>> =
                (0..10).map(|seed| period_of(&events(period, rate, others, seed))).collect();
            let right = all.iter().flatten().filter(|got| (*got - period).abs() < 0.01 * period).count();
            assert!(right >= 9, "{period}: {all:?}");
        }
    }

    #[test]
    fn a_period_below_two_steps_is_not_mistaken_for_its_alias() {
        for seed in 0..10 {
            let times = events(1.9, 0.8, 0, seed);
            let span = WatchedSpan::new(0, BLOCKS as i64 * STEP);
            let Some(found) = comb(&times, span, STEP, 0.002) else { continue };
            let named = [found.period_ns].into_iter().chain(found.or_ns).map(|ns| ns / STEP as f64);
            assert!(named.into_iter().any(|period| (period - 1.9).abs() < 0.01), "{seed}");
        }
        assert!((0..10).any(|seed| period_of(&events(1.9, 0.8, 0, seed)).is_some()));
    }

    #[test]
    fn a_short_list_is_enough() {
        let times: Vec<i64> = (0..600).step_by(5).map(|block| block * STEP).collect();
        let found =
            comb(&times, WatchedSpan::new(0, 600 * STEP), STEP, 0.002).expect("every fifth of 600 blocks");
        assert!((found.period_ns / STEP as f64 - 5.0).abs() < 1e-6 && found.members.len() == 120);
        let long: Vec<i64> = (0..60).map(|n| n * 17 * STEP).collect();
        assert_eq!(
            comb(&long, WatchedSpan::new(0, 1_020 * STEP), STEP, 0.002),
            None,
            "17 blocks are for the differences of pairs"
        );
    }

    #[test]
    fn random_and_bunched_events_have_none() {
        let random = (0..100).filter(|&seed| period_of(&events(1e9, 0.0, 100, seed)).is_some()).count();
        assert!(random <= 1, "{random} of 100");
        let bunches: Vec<i64> =
            (0..10).flat_map(|bunch| (0..12).map(move |k| (bunch * 311 + k) * STEP)).collect();
        assert_eq!(period_of(&bunches), None);
        assert_eq!(
            (period_of(&[]), period_of(&[0; 20]), comb(&[1; 9], WatchedSpan::new(5, 5), 0, 0.1)),
            (None, None, None)
        );
    }
}
