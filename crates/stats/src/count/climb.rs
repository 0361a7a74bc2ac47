//! Growth of the maximum: the number of running records, against that of exchangeable blocks.
//!
//! Rényi (1962); Arnold, Balakrishnan and Nagaraja (1998), Records: block i of an exchangeable
//! series sets a record with probability 1/i, independently of the others. Ties set none, so that
//! recorded steps only make the check milder. Many records show a climb; few show nothing: the
//! second half of such a series sets no record with probability one half.

/// Number of blocks for which the law is multiplied out exactly.
const EXACT: u64 = 1024;
/// Number of counts that are kept: more records have a probability below 1e-100 for any 64-bit n.
const STATES: usize = 256;

/// Number of values that are larger than all before them; the first one counts.
pub fn records(series: impl IntoIterator<Item = f64>) -> u64 {
    let mut highest: Option<f64> = None;
    let mut count = 0;
    for x in series {
        if highest.is_none_or(|highest| x > highest) {
            highest = Some(x);
            count += 1;
        }
    }
    count
}

/// The expected number of records of n exchangeable blocks.
pub fn mean(n: u64) -> f64 {
    (1..=n.min(EXACT)).map(|i| 1.0 / i as f64).sum::<f64>() + power_sum(1, n)
}

/// The variance of the number of records of n exchangeable blocks.
#[cfg(test)]
fn variance(n: u64) -> f64 {
    let squares: f64 = (1..=n.min(EXACT)).map(|i| 1.0 / (i as f64).powi(2)).sum();
    mean(n) - squares - power_sum(2, n)
}

/// P-value of that many records or more in n exchangeable blocks.
pub fn too_many(records: u64, n: u64) -> f64 {
    if records == 0 {
        return 1.0;
    }
    let tail = law(n).into_iter().skip(usize::try_from(records).unwrap_or(STATES));
    // The smallest terms first: the tail keeps its digits.
    tail.rev().sum::<f64>().clamp(0.0, 1.0)
}

/// The smallest number of records that n exchangeable blocks do not pass with probability p.
#[cfg(test)]
fn quantile(p: f64, n: u64) -> u64 {
    let law = law(n);
    let mut above = 0.0;
    for (r, chance) in law.iter().enumerate().rev() {
        above += chance;
        if above > 1.0 - p {
            return r as u64;
        }
    }
    0
}

/// The probabilities of 0, 1, 2, .. records; absolute error below 1e-12.
fn law(n: u64) -> Vec<f64> {
    let mut exact = vec![0.0; STATES];
    exact[0] = 1.0;
    for i in 1..=n.min(EXACT) {
        let p = 1.0 / i as f64;
        for r in (1..STATES.min(i as usize + 1)).rev() {
            exact[r] += p * (exact[r - 1] - exact[r]);
        }
        exact[0] *= 1.0 - p;
    }
    if n <= EXACT {
        return exact;
    }
    let late = late_records(n);
    (0..STATES).map(|r| (0..=r).map(|k| exact[k] * late[r - k]).sum()).collect()
}

/// The probabilities of 0, 1, 2, .. records after block [`EXACT`], nearly a Poisson law.
///
/// The logarithm of the generating function is the sum over blocks of ln(1 + (z - 1)/i), a series
/// in z - 1 with sums of powers of 1/i, of which the fifth is below 1e-12. The exponential of a
/// polynomial has coefficients by recurrence: k F_k = sum of j g_j F_(k-j).
fn late_records(n: u64) -> Vec<f64> {
    let [a, b, c, d] =
        [power_sum(1, n), -power_sum(2, n) / 2.0, power_sum(3, n) / 3.0, -power_sum(4, n) / 4.0];
    let log = [-a + b - c + d, a - 2.0 * b + 3.0 * c - 4.0 * d, b - 3.0 * c + 6.0 * d, c - 4.0 * d, d];
    let mut chances = vec![log[0].exp()];
    for k in 1..STATES {
        let terms = (1..log.len().min(k + 1)).map(|j| j as f64 * log[j] * chances[k - j]);
        let chance = terms.sum::<f64>() / k as f64;
        chances.push(chance.max(0.0));
    }
    chances
}

/// The sum of i^-power over the blocks after [`EXACT`] up to n, by Euler and Maclaurin; 0 for fewer
/// blocks.
fn power_sum(power: i32, n: u64) -> f64 {
    if n <= EXACT {
        return 0.0;
    }
    let (first, last) = (EXACT as f64, n as f64);
    let s = f64::from(power);
    let integral = match power {
        1 => (last / first).ln(),
        _ => (first.powi(1 - power) - last.powi(1 - power)) / (s - 1.0),
    };
    let corrected = |x: f64| x.powi(-power) / 2.0 - s * x.powi(-power - 1) / 12.0;
    integral + corrected(last) - corrected(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    fn near(value: f64, expected: f64, absolute: f64) {
        assert!((value - expected).abs() <= absolute, "{value} is not {expected}");
    }

    #[test]
    fn an_hour_of_seconds_is_as_in_the_reference() {
        near(mean(3600), 8.766_043_7, 1e-7);
        near(variance(3600), 7.121_387_3, 1e-7);
        assert_eq!(quantile(0.99, 3600), 16);
        assert!(too_many(17, 3600) <= 0.01 && too_many(16, 3600) > 0.01);
    }

    #[test]
    fn few_blocks_are_those_of_stirling() {
        // Unsigned Stirling numbers of the first kind for n = 4: 6, 11, 6, 1 of 24.
        for (r, ways) in [(1, 24.0), (2, 18.0), (3, 7.0), (4, 1.0), (5, 0.0)] {
            near(too_many(r, 4), ways / 24.0, 1e-15);
        }
        assert_eq!((quantile(0.5, 1), quantile(0.99, 4), quantile(0.95, 4)), (1, 4, 3));
    }

    #[test]
    fn the_late_law_agrees_with_multiplying_on() {
        let n = 20_000u64;
        let mut exact = [0.0; 64];
        exact[0] = 1.0;
        for i in 1..=n {
            let p = 1.0 / i as f64;
            for r in (1..64).rev() {
                exact[r] += p * (exact[r - 1] - exact[r]);
            }
            exact[0] *= 1.0 - p;
        }
        for (r, chance) in exact.into_iter().enumerate() {
            near(law(n)[r], chance, 1e-13);
        }
        let tail: f64 = exact[30..].iter().rev().sum();
        near(too_many(30, n) / tail, 1.0, 1e-9);
        // Multiplied out over all blocks elsewhere.
        near(too_many(20, 400_000), 0.046_667_682_436, 1e-11);
        near(too_many(40, 400_000) / 4.769_722_669e-10, 1.0, 1e-8);
    }

    #[test]
    fn long_runs_have_the_moments_of_the_sums() {
        for n in [EXACT + 1, 10_000_000, u64::MAX] {
            let law = law(n);
            let mean_of_law: f64 = law.iter().enumerate().map(|(r, p)| r as f64 * p).sum();
            let square: f64 = law.iter().enumerate().map(|(r, p)| (r as f64 - mean(n)).powi(2) * p).sum();
            near(law.iter().sum(), 1.0, 1e-11);
            near(mean_of_law, mean(n), 1e-9);
            near(square, variance(n), 1e-8);
        }
        near(mean(10_000_000), 16.695_311_365_86, 1e-10);
    }

    #[test]
    fn records_are_strict() {
        assert_eq!(records([]), 0);
        assert_eq!(records([2.0, 2.0, 1.0, 3.0, 3.0, 4.0]), 3);
        assert_eq!(records([f64::NAN, 1.0, f64::NEG_INFINITY]), 1);
        assert_eq!(
            (too_many(0, 0), too_many(1, 0), quantile(0.99, 0), mean(0), variance(0)),
            (1.0, 0.0, 0, 0.0, 0.0)
        );
        assert!((0.999_999_999..=1.0).contains(&too_many(1, 5)) && too_many(u64::MAX, u64::MAX) == 0.0);
        let _ = (quantile(f64::NAN, 9), quantile(-1.0, 9), quantile(2.0, u64::MAX));
    }

    #[test]
    fn a_drift_sets_too_many_and_noise_does_not() {
        let (mut rng, runs) = (Rng::new(SEED), 400);
        // The first number that is too many at 5 %, and the chance that noise reaches it.
        let limit = quantile(0.95, 600) + 1;
        let chance = too_many(limit, 600);
        assert!(chance <= 0.05 && too_many(limit - 1, 600) > 0.05);
        let mut alarm = || {
            let noise: Vec<f64> = (0..600).map(|_| rng.exponential()).collect();
            u32::from(records(noise) >= limit)
        };
        let alarms = f64::from((0..runs).map(|_| alarm()).sum::<u32>()) / f64::from(runs);
        near(alarms, chance, 3.0 * (chance * (1.0 - chance) / f64::from(runs)).sqrt());
        let drift: Vec<f64> = (0..600).map(|i| rng.exponential() + 0.1 * f64::from(i)).collect();
        assert!(too_many(records(drift), 600) < 1e-6);
    }

    proptest! {
        // Each case multiplies out several laws.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn monotone_transformations_keep_records(x in proptest::collection::vec(-20i32..20, 0..60)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let bent: Vec<f64> = x.iter().map(|x| (x / 5.0).exp() + 3.0).collect();
            prop_assert_eq!(records(x), records(bent));
        }

        #[test]
        fn the_tail_falls_with_the_count_and_grows_with_time(r in 1u64..40, n in 40u64..100_000) {
            prop_assert!(too_many(r + 1, n) <= too_many(r, n));
            prop_assert!(too_many(r, n) <= too_many(r, 2 * n) + 1e-12);
        }
    }
}
