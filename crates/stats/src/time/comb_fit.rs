//! A comb of equally spaced teeth fitted to times: fold, densest phase, least squares of `t =
//! origin + n P`.
//!
//! Assumes that each cycle has at most one event of the comb. The errors allow for times that were
//! rounded and for a phase that drifts.

use model::sort::CompactSort;

/// Least number of members of a comb: three events are two differences, which agree by chance.
pub const MIN_MEMBERS: usize = 5;

/// A comb fitted to times: `origin + n * period` within the tolerance, all ns.
#[derive(Clone, Debug)]
pub struct CombFit {
    /// Time of cycle 0, ns.
    pub origin: f64,
    /// Distance of the teeth, ns.
    pub period: f64,
    /// Width of the bin that gave the period: the tolerance is of its order.
    pub width: f64,
    /// Largest distance of a member from its tooth, ns.
    pub tolerance: f64,
    /// Number of the cycle and index of the time, at most one per cycle.
    pub members: Vec<(i64, usize)>,
}

impl CombFit {
    /// Folds the times on the period, takes the densest phase, and refines both by least squares.
    pub fn of(times: &[i64], period: f64, width: f64, resolution: f64) -> Option<CombFit> {
        let origin = densest_phase(times, period, 2.0 * width)?;
        let mut fit = CombFit { origin, period, width, tolerance: width, members: Vec::new() };
        for _ in 0..3 {
            fit.refine(times, resolution)?;
        }
        Some(fit)
    }

    /// Refines until the members stay the same: those that a wrong period excluded join one by one.
    pub fn settled(mut self, times: &[i64], resolution: f64) -> Option<CombFit> {
        for _ in 0..40 {
            let before = self.members.clone();
            self.refine(times, resolution)?;
            if self.members == before {
                break;
            }
        }
        (self.period >= 4.0 * self.tolerance).then_some(self)
    }

    /// Does one step: least squares on the members, their spread, and the new members.
    fn refine(&mut self, times: &[i64], resolution: f64) -> Option<()> {
        if self.members.is_empty() {
            self.members = self.nearest(times);
        }
        (self.origin, self.period) = least_squares(times, &self.members)?;
        let mut off: Vec<f64> = self.members.iter().map(|&(_, i)| self.residual(times[i]).abs()).collect();
        let middle = off.len() / 2;
        let (_, median, _) = off.select_nth_unstable_by(middle, f64::total_cmp);
        self.tolerance = (3.5 * 1.4826 * *median).min(4.0 * self.width).max(0.75 * resolution);
        self.members = self.nearest(times);
        (self.members.len() >= MIN_MEMBERS && self.period >= 2.0 * self.tolerance).then_some(())
    }

    /// Comb of another period among the same times: its members within the tolerance, the line
    /// through them.
    pub fn moved(&self, times: &[i64], origin: f64, period: f64, tolerance: f64) -> Option<CombFit> {
        let mut fit = CombFit { origin, period, tolerance, width: self.width, members: Vec::new() };
        for _ in 0..3 {
            fit.members = fit.nearest(times);
            (fit.origin, fit.period) = least_squares(times, &fit.members)?;
        }
        fit.members = fit.nearest(times);
        let same = (fit.period / period - 1.0).abs() < 0.01;
        (same && fit.members.len() >= MIN_MEMBERS).then_some(fit)
    }

    fn cycle(&self, time: i64) -> f64 {
        ((time as f64 - self.origin) / self.period).round()
    }

    /// Time after the nearest tooth, ns.
    pub fn residual(&self, time: i64) -> f64 {
        time as f64 - self.origin - self.cycle(time) * self.period
    }

    /// Times within the tolerance, the nearest of each cycle.
    fn nearest(&self, times: &[i64]) -> Vec<(i64, usize)> {
        let mut members: Vec<(i64, usize)> = Vec::new();
        for (i, &time) in times.iter().enumerate() {
            let (cycle, off) = (self.cycle(time) as i64, self.residual(time).abs());
            if off > self.tolerance {
                continue;
            }
            match members.last_mut() {
                Some(last) if last.0 == cycle => {
                    if off < self.residual(times[last.1]).abs() {
                        last.1 = i;
                    }
                }
                _ => members.push((cycle, i)),
            }
        }
        members
    }

    /// Log likelihood ratio (Kullback-Leibler bound) of this number of hit cycles against random
    /// events.
    pub fn score(&self, n: usize, span: f64) -> f64 {
        let cycles = (span / self.period).floor() + 1.0;
        let hit = (self.members.len() as f64).min(cycles);
        let chance = -(-(n as f64) * 2.0 * self.tolerance / span).exp_m1();
        if hit <= cycles * chance {
            return 0.0;
        }
        let missed = cycles - hit;
        let empty = if missed > 0.0 { missed * (missed / (cycles * (1.0 - chance))).ln() } else { 0.0 };
        hit * (hit / (cycles * chance)).ln() + empty
    }

    /// Jitter and the error of the period.
    pub fn errors(&self, times: &[i64], resolution: f64) -> Errors {
        let residuals: Vec<f64> = self.members.iter().map(|&(_, i)| self.residual(times[i])).collect();
        let n = residuals.len() as f64;
        let jitter = (residuals.iter().map(|off| off * off).sum::<f64>() / (n - 2.0).max(1.0)).sqrt();
        let mean = self.members.iter().map(|member| member.0 as f64).sum::<f64>() / n;
        let spread: f64 = self.members.iter().map(|member| (member.0 as f64 - mean).powi(2)).sum();
        // Rounded times are uncertain even if they agree.
        let noise = jitter.max(resolution / 12f64.sqrt());
        let period_se = (noise / spread.max(1.0).sqrt()).max(drift_se(&self.members, &residuals));
        Errors { jitter, period_se }
    }
}

/// Errors of a comb, ns.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    /// Standard deviation of the members about their teeth.
    pub jitter: f64,
    /// Standard error of the period.
    pub period_se: f64,
}

/// The middle of the densest stretch of phases, ns after the start.
fn densest_phase(times: &[i64], period: f64, stretch: f64) -> Option<f64> {
    let mut phases: Vec<f64> = times.iter().map(|&time| (time as f64).rem_euclid(period)).collect();
    phases.compact_sort_by(f64::total_cmp);
    let n = phases.len();
    phases.extend_from_within(..);
    phases[n..].iter_mut().for_each(|phase| *phase += period);
    let mut to = 0;
    let mut best = (0, None);
    for from in 0..n {
        while to < from + n && phases[to] - phases[from] <= stretch {
            to += 1;
        }
        if to - from > best.0 {
            let inside = &phases[from..to];
            best = (to - from, Some(inside.iter().sum::<f64>() / inside.len() as f64));
        }
    }
    best.1
}

/// Origin and slope of time over cycle, ns.
fn least_squares(times: &[i64], members: &[(i64, usize)]) -> Option<(f64, f64)> {
    let n = members.len() as f64;
    let (cycle0, time0) = members.first().map(|&(cycle, i)| (cycle, times[i]))?;
    let points = || members.iter().map(|&(cycle, i)| ((cycle - cycle0) as f64, (times[i] - time0) as f64));
    let (x, y) = points().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
    let (xx, xy) =
        points().fold((0.0, 0.0), |sum, (a, b)| (sum.0 + (a - x) * (a - x), sum.1 + (a - x) * (b - y)));
    let slope = xy / xx;
    (xx > 0.0 && slope > 0.0).then_some((time0 as f64 + y - slope * (x + cycle0 as f64), slope))
}

/// The standard error of the period, ns, where neighbouring residuals are correlated: the phase
/// drifts.
///
/// The slope of a random walk by least squares has the variance `6/5 step^2 / cycles` (Durlauf and
/// Phillips 1988).
fn drift_se(members: &[(i64, usize)], residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|off| off * off).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = (2.0 / (residuals.len() as f64).sqrt()).max(0.3);
    if residuals.len() < 8 || products < alike * squares {
        return 0.0;
    }
    let steps = members.windows(2).zip(residuals.windows(2));
    let per_cycle: f64 =
        steps.map(|(cycle, off)| (off[1] - off[0]).powi(2) / (cycle[1].0 - cycle[0].0).max(1) as f64).sum();
    let cycles = (members[members.len() - 1].0 - members[0].0).max(1) as f64;
    (1.2 * per_cycle / (residuals.len() - 1) as f64 / cycles).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rough_period_becomes_exact_and_strangers_stay_out() {
        let mut times: Vec<i64> = (0..40).filter(|i| i % 7 != 3).map(|i| 500 + i * 10_007).collect();
        times.extend([4_000, 123_456, 300_001]);
        times.sort_unstable();
        let fit = CombFit::of(&times, 10_010.0, 100.0, 1.0)
            .and_then(|fit| fit.settled(&times, 1.0))
            .expect("a comb");
        assert!((fit.period - 10_007.0).abs() < 1e-6, "{fit:?}");
        assert_eq!(fit.members.len(), 34);
        assert!(fit.errors(&times, 1.0).jitter < 1e-6);
        assert!(fit.score(times.len(), 400_780.0) > 34.0);
    }

    #[test]
    fn two_in_a_cycle_are_one_member_the_nearer() {
        let times = [0, 1000, 2000, 2009, 3000, 4000, 5000];
        let fit = CombFit::of(&times, 1000.0, 20.0, 10.0).expect("a comb");
        assert_eq!(fit.members.iter().map(|member| member.1).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn least_squares_are_those_of_a_line_far_from_its_origin() {
        let far = 1i64 << 58;
        let times: Vec<i64> = [3, 13, 22, 34].iter().map(|t| far + t).collect();
        let (_, slope) = least_squares(&times, &[(90, 0), (91, 1), (92, 2), (93, 3)]).expect("a line");
        assert!((slope - 10.2).abs() < 1e-12, "{slope}");
        assert!(least_squares(&times, &[(1, 0)]).is_none() && least_squares(&times, &[]).is_none());
    }
}
