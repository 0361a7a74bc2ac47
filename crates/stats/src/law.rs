//! The distribution functions that the methods use: statrs behind one interface, total for any
//! input.
//!
//! Tails are computed as tails, never as one minus the rest: the results here are small
//! probabilities. Where statrs bisects coarsely, the quantile is found here from its distribution
//! function.

use statrs::function::{beta, erf, gamma};

/// P(|Z| > |z|) of a standard normal variable.
pub fn normal_two_sided(z: f64) -> f64 {
    erf::erfc(z.abs() / std::f64::consts::SQRT_2).min(1.0)
}

/// Value that a standard normal variable stays below with this probability.
pub fn normal_quantile(p: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * p.clamp(0.0, 1.0))
}

/// P(X > x) of a chi-squared variable.
pub fn chi2_tail(x: f64, df: f64) -> f64 {
    gamma_upper(df / 2.0, x / 2.0)
}

/// Value that a chi-squared variable stays below with this probability.
pub fn chi2_quantile(p: f64, df: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    if p == 0.0 || df <= 0.0 {
        return 0.0;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    let below = |x: f64| gamma_lower(df / 2.0, x / 2.0) < p;
    let mut high = df.max(1.0);
    while below(high) && high.is_finite() {
        high *= 2.0;
    }
    bisect(0.0, high, below)
}

/// P(X >= k) of a Poisson variable.
pub fn poisson_at_least(k: u64, mean: f64) -> f64 {
    if k == 0 { 1.0 } else { gamma_lower(k as f64, mean) }
}

/// P(X <= k) of the number of successes in n trials.
pub fn binomial_at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    beta_lower((n - k) as f64, k as f64 + 1.0, 1.0 - p)
}

/// P(X >= k) of the number of successes in n trials.
pub fn binomial_at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    beta_lower(k as f64, (n - k) as f64 + 1.0, p)
}

/// P(|T| > |t|) of Student's t.
pub fn student_two_sided(t: f64, df: f64) -> f64 {
    if df <= 0.0 || t.is_nan() {
        return 1.0;
    }
    beta_lower(df / 2.0, 0.5, df / (df + t * t))
}

/// Value that Student's t stays below with this probability.
pub fn student_quantile(p: f64, df: f64) -> f64 {
    let p = p.clamp(1e-15, 1.0 - 1e-15);
    let tail = 2.0 * p.min(1.0 - p);
    let mut high = 1.0;
    while student_two_sided(high, df) > tail && high < 1e300 {
        high *= 2.0;
    }
    let t = bisect(0.0, high, |t| student_two_sided(t, df) > tail);
    if p < 0.5 { -t } else { t }
}

/// The regularised incomplete beta function `I_x(a, b)`, to at least nine digits.
pub fn beta_lower(a: f64, b: f64, x: f64) -> f64 {
    // Not by statrs: it stops after 140 terms, and a day of one-second blocks needs more.
    if !(a > 0.0 && b > 0.0) || x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - beta::ln_beta(a, b)).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function by Lentz's method
/// (Abramowitz and Stegun 26.5.8); it takes about the square root of the larger parameter in terms.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut sum = d;
    let terms = 200 + (10.0 * a.max(b).sqrt()).min(1e6) as u64;
    for m in 1..terms {
        let m = m as f64;
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            sum *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    sum
}

/// ln of the gamma function.
pub fn ln_gamma(x: f64) -> f64 {
    gamma::ln_gamma(x)
}

pub fn gamma_of(x: f64) -> f64 {
    gamma::gamma(x)
}

/// ln of the beta function.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// ln of the number of ways to choose k of n.
pub fn ln_choose(n: u64, k: u64) -> f64 {
    ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k.min(n)) as f64 + 1.0)
}

fn gamma_lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return if a <= 0.0 { 1.0 } else { 0.0 };
    }
    if x.is_finite() { gamma::checked_gamma_lr(a, x).unwrap_or(f64::NAN) } else { 1.0 }
}

fn gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 || a <= 0.0 {
        return if a <= 0.0 { 0.0 } else { 1.0 };
    }
    if x.is_finite() { gamma::checked_gamma_ur(a, x).unwrap_or(f64::NAN) } else { 0.0 }
}

/// The point where `below` turns false, to the last significant bit.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        near(chi2_quantile(0.95, 2.0) / 2.0, 2.995_732_3, 1e-7);
        near(chi2_quantile(0.95, 22.0) / 2.0, 16.962_219, 1e-7);
        near(chi2_quantile(0.95, 1.0), 3.841_458_82, 1e-8);
        near(chi2_quantile(0.90, 1.0), 2.705_543_45, 1e-8);
        near(normal_quantile(0.975), 1.959_963_985, 1e-9);
        near(student_quantile(0.95, 4.0), 2.131_846_786, 1e-8);
        near(student_quantile(0.05, 18.0), -1.734_063_607, 1e-8);
    }

    #[test]
    fn tails_are_exact_where_they_are_small() {
        near(normal_two_sided(10.0), 2.0 * 7.619_853_024e-24, 1e-8);
        near(poisson_at_least(9, 0.396), 4.63e-10, 1e-2);
        near(poisson_at_least(1, 1e-9), 1e-9, 1e-6);
        near(chi2_tail(5.829_842_3, 10.0), 0.829_350_74, 1e-7);
        near(binomial_at_least(12, 16, 0.5), 0.038_406_372, 1e-7);
    }

    #[test]
    fn binomial_tails_add_up_for_small_and_large_n() {
        for (n, p) in [(20u64, 0.3), (5_000, 0.01), (1_000_000, 0.5), (1_000_000, 1e-4)] {
            let k = (n as f64 * p) as u64;
            near(binomial_at_most(k, n, p) + binomial_at_least(k + 1, n, p), 1.0, 1e-9);
        }
        // The median of a symmetric law, where the distribution function is one half plus half the
        // middle term.
        let n = 1_000_000u64;
        let middle = (ln_choose(n, n / 2) - n as f64 * 2f64.ln()).exp();
        near(binomial_at_most(n / 2, n, 0.5), 0.5 + middle / 2.0, 1e-8);
    }

    #[test]
    fn nothing_panics_at_the_edges() {
        for x in [f64::NEG_INFINITY, -1.0, 0.0, 1e-320, 1.0, 1e300, f64::INFINITY, f64::NAN] {
            for p in [-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN] {
                let _ =
                    (normal_two_sided(x), normal_quantile(p), chi2_tail(x, p), chi2_quantile(p, x.min(1e6)));
                let _ = (poisson_at_least(3, x), binomial_at_most(3, 7, p), binomial_at_least(9, 7, p));
                let _ = (student_two_sided(x, p), student_quantile(p, 3.0), beta_lower(x, p, 0.5));
            }
        }
    }
}
