//! The minimum of a smooth function of one to three variables, and the zero of a function of one.
//!
//! Nelder and Mead (1965), A simplex method for function minimization, with one kind of restart;
//! Newton's method for the last digits; Brent (1973) chapter 4 for the zero. All deterministic, all
//! with bounded work. A function returns infinity where it is not defined: likelihoods have edges.

use model::sort::CompactSort;

/// The least value found and its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimum<const D: usize> {
    pub at: [f64; D],
    pub value: f64,
}

/// Gradient and matrix of second derivatives of a function of D variables.
pub type Derivatives<const D: usize> = ([f64; D], [[f64; D]; D]);

/// Minimises by Nelder-Mead from a start and the simplex that `step` spans, until the values differ
/// by less than `tolerance`, and again from there until a restart gains less; at most `evaluations`
/// in all.
pub fn nelder_mead<const D: usize>(
    f: &impl Fn(&[f64; D]) -> f64,
    start: [f64; D],
    step: [f64; D],
    tolerance: f64,
    evaluations: usize,
) -> Minimum<D> {
    let mut left = evaluations;
    let mut best = Minimum { at: start, value: value_of(f, &start) };
    let mut step = step;
    while left > 0 {
        let next = descend(f, best, step, tolerance, &mut left);
        let gain = best.value - next.value;
        best = next;
        // A collapsed simplex looks like a minimum: only a fresh one that finds nothing better
        // confirms it.
        if gain.is_nan() || gain <= tolerance {
            break;
        }
        step = step.map(|s| s * 0.2);
    }
    best
}

fn value_of<const D: usize>(f: &impl Fn(&[f64; D]) -> f64, at: &[f64; D]) -> f64 {
    let value = f(at);
    if value.is_nan() { f64::INFINITY } else { value }
}

fn descend<const D: usize>(
    f: &impl Fn(&[f64; D]) -> f64,
    start: Minimum<D>,
    step: [f64; D],
    tolerance: f64,
    left: &mut usize,
) -> Minimum<D> {
    let evaluate = |at: [f64; D], left: &mut usize| {
        *left = left.saturating_sub(1);
        Minimum { at, value: value_of(f, &at) }
    };
    let mut simplex = vec![start];
    for axis in 0..D {
        let mut at = start.at;
        at[axis] += step[axis];
        let forth = evaluate(at, left);
        at[axis] -= 2.0 * step[axis];
        simplex.push(if forth.value.is_finite() { forth } else { evaluate(at, left) });
    }
    while *left > 0 {
        simplex.compact_sort_by(|a, b| a.value.total_cmp(&b.value));
        let (best, worst) = (simplex[0], simplex[D]);
        if worst.value - best.value <= tolerance && spread(&simplex) < 1e-2 {
            break;
        }
        if spread(&simplex) < 1e-13 {
            break;
        }
        let along = |by: f64| {
            std::array::from_fn(|i| {
                let centre = simplex[..D].iter().map(|v| v.at[i]).sum::<f64>() / D as f64;
                centre + by * (centre - worst.at[i])
            })
        };
        let reflected = evaluate(along(1.0), left);
        let next = if reflected.value < best.value {
            let expanded = evaluate(along(2.0), left);
            if expanded.value < reflected.value { expanded } else { reflected }
        } else if reflected.value < simplex[D - 1].value {
            reflected
        } else {
            evaluate(along(if reflected.value < worst.value { 0.5 } else { -0.5 }), left)
        };
        if next.value < worst.value.min(reflected.value) || next == reflected && next.value < worst.value {
            simplex[D] = next;
            continue;
        }
        for vertex in &mut simplex[1..] {
            let at = std::array::from_fn(|i| best.at[i] + 0.5 * (vertex.at[i] - best.at[i]));
            *vertex = evaluate(at, left);
        }
    }
    simplex.into_iter().min_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(start)
}

fn spread<const D: usize>(simplex: &[Minimum<D>]) -> f64 {
    let from_first = |v: &Minimum<D>| (0..D).map(|i| (v.at[i] - simplex[0].at[i]).abs()).fold(0.0, f64::max);
    simplex.iter().map(from_first).fold(0.0, f64::max)
}

/// First and second derivatives by central differences.
pub fn derivatives<const D: usize>(
    f: &impl Fn(&[f64; D]) -> f64,
    at: &[f64; D],
    step: f64,
) -> Derivatives<D> {
    let moved = |i: usize, by_i: f64, j: usize, by_j: f64| {
        let mut point = *at;
        point[i] += by_i * step;
        point[j] += by_j * step;
        f(&point)
    };
    let centre = f(at);
    let (mut gradient, mut second) = ([0.0; D], [[0.0; D]; D]);
    for i in 0..D {
        let (forth, back) = (moved(i, 1.0, i, 0.0), moved(i, -1.0, i, 0.0));
        gradient[i] = (forth - back) / (2.0 * step);
        second[i][i] = (forth - 2.0 * centre + back) / (step * step);
    }
    for (i, j) in (0..D).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let same = moved(i, 1.0, j, 1.0) + moved(i, -1.0, j, -1.0);
        let opposite = moved(i, 1.0, j, -1.0) + moved(i, -1.0, j, 1.0);
        let mixed = (same - opposite) / (4.0 * step * step);
        (second[i][j], second[j][i]) = (mixed, mixed);
    }
    (gradient, second)
}

/// At most `rounds` steps of Newton's method, each taken only if it does not lead uphill; for a
/// start that is close.
pub fn polish<const D: usize>(
    f: &impl Fn(&[f64; D]) -> f64,
    start: Minimum<D>,
    step: f64,
    rounds: usize,
) -> Minimum<D> {
    let mut best = start;
    for _ in 0..rounds {
        let (gradient, second) = derivatives(f, &best.at, step);
        let Some(inverse) = inverse(&second) else { break };
        let at: [f64; D] =
            std::array::from_fn(|i| best.at[i] - (0..D).map(|j| inverse[i][j] * gradient[j]).sum::<f64>());
        let value = value_of(f, &at);
        // Near the minimum the values differ by rounding alone, but the gradient still gives the
        // direction.
        if value > best.value + 1e-12 * (1.0 + best.value.abs()) {
            break;
        }
        let moved = spread(&[best, Minimum { at, value }]);
        // A leap leads out of the region in which Newton's method is valid.
        if moved > 0.5 {
            break;
        }
        best = Minimum { at, value };
        if moved < 1e-11 {
            break;
        }
    }
    best
}

/// The inverse of a small positive definite matrix; None for any other.
pub fn inverse<const D: usize>(matrix: &[[f64; D]; D]) -> Option<[[f64; D]; D]> {
    let mut left = *matrix;
    let mut right: [[f64; D]; D] =
        std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    for pivot in 0..D {
        // Gauss-Jordan without exchanges: the pivots of a positive definite matrix are positive.
        let size = left[pivot][pivot];
        if !(size > 0.0 && size.is_finite()) {
            return None;
        }
        left[pivot] = left[pivot].map(|v| v / size);
        right[pivot] = right[pivot].map(|v| v / size);
        for row in (0..D).filter(|&row| row != pivot) {
            let factor = left[row][pivot];
            for column in 0..D {
                left[row][column] -= factor * left[pivot][column];
                right[row][column] -= factor * right[pivot][column];
            }
        }
    }
    right.iter().flatten().all(|v| v.is_finite()).then_some(right)
}

/// Point between a and b where a function changes its sign, by Brent's method, from its values
/// there; `None` if it does not.
pub fn crossing_from(
    f: &mut impl FnMut(f64) -> f64,
    mut a: f64,
    mut fa: f64,
    mut b: f64,
    mut fb: f64,
    tolerance: f64,
) -> Option<f64> {
    if fa.is_nan() || fb.is_nan() || (fa > 0.0) == (fb > 0.0) && fa != 0.0 && fb != 0.0 {
        return None;
    }
    let (mut c, mut fc, mut step, mut before) = (a, fa, b - a, b - a);
    for _ in 0..100 {
        if (fb > 0.0) == (fc > 0.0) {
            (c, fc, step, before) = (a, fa, b - a, b - a);
        }
        if fc.abs() < fb.abs() {
            (a, b, c) = (b, c, b);
            (fa, fb, fc) = (fb, fc, fb);
        }
        let enough = 2.0 * f64::EPSILON * b.abs() + 0.5 * tolerance;
        let half = 0.5 * (c - b);
        if half.abs() <= enough || fb == 0.0 {
            break;
        }
        let (mut p, mut q) = if a == c {
            (2.0 * half * fb / fa, 1.0 - fb / fa)
        } else {
            let (s, t, r) = (fb / fa, fa / fc, fb / fc);
            (s * (2.0 * half * t * (t - r) - (b - a) * (r - 1.0)), (t - 1.0) * (r - 1.0) * (s - 1.0))
        };
        (p, q) = if p > 0.0 { (p, -q) } else { (-p, q) };
        let trusted = 2.0 * p < (3.0 * half * q - (enough * q).abs()).min((before * q).abs());
        (before, step) = if before.abs() >= enough && fa.abs() > fb.abs() && trusted && q.is_finite() {
            (step, p / q)
        } else {
            (half, half)
        };
        (a, fa) = (b, fb);
        b += if step.abs() > enough { step } else { enough.copysign(half) };
        fb = f(b);
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let valley = |x: &[f64; 2]| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2);
        let rough = nelder_mead(&valley, [-1.2, 1.0], [0.3, 0.3], 1e-6, 2_000);
        let least = polish(&valley, rough, 1e-5, 5);
        assert!(least.at.iter().all(|v| (v - 1.0).abs() < 1e-6), "{least:?}");
    }

    #[test]
    fn edges_and_constants_end_the_search() {
        let walled = |x: &[f64; 3]| {
            if x[2] < 0.5 { f64::INFINITY } else { x.iter().map(|v| v * v).sum() }
        };
        let least = nelder_mead(&walled, [1.0, -2.0, 0.9], [0.5; 3], 1e-10, 3_000);
        assert!((least.value - 0.25).abs() < 1e-4, "{least:?}");
        assert_eq!(nelder_mead(&|_: &[f64; 2]| 7.0, [0.0, 0.0], [1.0; 2], 1e-9, 500).value, 7.0);
        assert_eq!(nelder_mead(&|_: &[f64; 1]| f64::NAN, [3.0], [1.0], 1e-9, 500).value, f64::INFINITY);
        assert!(nelder_mead(&|x: &[f64; 1]| -x[0], [0.0], [1.0], 1e-9, 50).at[0].is_finite());
    }

    #[test]
    fn an_inverse_undoes_its_matrix() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]];
        let inverse = inverse(&matrix).unwrap();
        for (i, j) in [(0, 0), (1, 1), (2, 2), (0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
            let product: f64 = (0..3).map(|k| matrix[i][k] * inverse[k][j]).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
        }
        assert_eq!(super::inverse(&[[1.0, 2.0], [2.0, 1.0]]), None);
        assert_eq!(super::inverse(&[[f64::NAN]]), None);
    }

    fn crossing(f: &mut impl FnMut(f64) -> f64, a: f64, b: f64, tolerance: f64) -> Option<f64> {
        let (fa, fb) = (f(a), f(b));
        crossing_from(f, a, fa, b, fb, tolerance)
    }

    #[test]
    fn crossings_are_found_or_denied() {
        let mut calls = 0;
        let root = crossing(
            &mut |x: f64| {
                calls += 1;
                x.exp() - 5.0
            },
            0.0,
            10.0,
            1e-12,
        );
        assert!((root.unwrap() - 5f64.ln()).abs() < 1e-11 && calls < 20, "{root:?} {calls}");
        assert_eq!(crossing(&mut |x| x * x + 1.0, -1.0, 1.0, 1e-9), None);
        assert_eq!(crossing(&mut |_| f64::NAN, -1.0, 1.0, 1e-9), None);
        let jump = crossing(&mut |x| if x < 0.25 { -1.0 } else { f64::INFINITY }, 0.0, 1.0, 1e-9);
        assert!((jump.unwrap() - 0.25).abs() < 1e-8);
    }
}
