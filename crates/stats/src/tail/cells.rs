//! Whether one generalised Pareto law describes excesses of which only a histogram is known: Anderson-Darling on cells.
//!
//! Choulakian, Lockhart and Stephens (1994), Cramer-von Mises statistics for discrete distributions, equation 3,
//! with a parametric bootstrap that fits the same cells again. Assumes independent excesses. A count per cell is
//! enough, so the work does not grow with the number of samples.

use super::fit_test::Tally;
use super::gpd::{self, Fit, Gpd};
use super::steps::{Step, Steps};
use crate::dice::Dice;

/// A bootstrap draws at most this many excesses: the law of the statistic depends on the cells, hardly on the count.
const DRAWN: usize = 2000;

/// How well a fitted law describes excesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellTest {
    /// A^2 of the cells.
    pub a2: f64,
    /// Its p-value by the refits done.
    pub p: f64,
    /// How many cells.
    pub cells: usize,
    /// How many refits it took until the verdict at alpha was certain.
    pub refits: u32,
}

/// Tests a fit of excesses at level alpha with at most `refits` refits; None for less than three cells.
pub fn of_excesses(excesses: &Steps, fit: &Fit, alpha: f64, refits: u32, seed: u64) -> Option<CellTest> {
    let cells = cells(excesses, &fit.law);
    let law = refit(&cells, &fit.law, fit)?;
    let a2 = statistic(&cells, &law)?;
    let n = (excesses.n() as usize).min(DRAWN);
    let mut dice = Dice::new(seed);
    let mut tally = Tally::new(refits);
    while !tally.is_certain(alpha) {
        let drawn = drawn(&cells, &law, n, &mut dice);
        let reached = refit(&drawn, &law, fit).and_then(|refit| statistic(&drawn, &refit));
        // Drawn data that cannot be fitted count as reaching it.
        tally.count(reached.is_none_or(|drawn| drawn >= a2));
    }
    Some(CellTest { a2, p: tally.p(), cells: cells.len(), refits: tally.done() })
}

/// Cells about as probable as one another, finer in the tail, that cut no recorded step; the last one is open.
fn cells(excesses: &Steps, law: &Gpd) -> Vec<Step> {
    let body = (1..=36).map(|j| 1.0 - f64::from(j) / 40.0);
    let tail = (1..).map(|k| 0.1 * 0.75f64.powi(k)).take_while(|s| excesses.n() * s > 0.5).take(80);
    let mut edges = vec![0.0];
    for share in body.chain(tail) {
        let level = law.level(1.0 / share);
        let steps = excesses.all();
        let inside = steps[..steps.partition_point(|s| s.low < level)].last().filter(|s| s.high > level);
        let edge = inside.map_or(level, |s| s.high);
        if edge.is_finite() && edges.last().is_none_or(|last| *last < edge) {
            edges.push(edge);
        }
    }
    let upper = edges.iter().skip(1).copied().chain([f64::INFINITY]);
    let mut cells: Vec<Step> =
        edges.iter().zip(upper).map(|(&low, high)| Step { low, high, count: 0.0 }).collect();
    for step in excesses.all() {
        let at = cells.partition_point(|cell| cell.high <= step.low);
        if let Some(cell) = cells.get_mut(at) {
            cell.count += step.count;
        }
    }
    cells
}

fn refit(cells: &[Step], start: &Gpd, fit: &Fit) -> Option<Gpd> {
    let occupied: Vec<Step> = cells.iter().filter(|cell| cell.count > 0.0).copied().collect();
    if occupied.len() < 3 { None } else { gpd::fit_from(&occupied, start, fit.shape) }
}

fn statistic(cells: &[Step], law: &Gpd) -> Option<f64> {
    let n: f64 = cells.iter().map(|cell| cell.count).sum();
    let (mut seen, mut sum) = (0.0, 0.0);
    for cell in &cells[..cells.len().checked_sub(1)?] {
        seen += cell.count;
        let (below, above) = (law.cdf(cell.high), law.sf(cell.high));
        if above > 0.0 {
            sum += (seen - n * below).powi(2) * law.ln_step(cell).exp() / (below * above);
        }
    }
    let a2 = sum / n;
    a2.is_finite().then_some(a2)
}

fn drawn(cells: &[Step], law: &Gpd, n: usize, dice: &mut Dice) -> Vec<Step> {
    let mut drawn: Vec<Step> = cells.iter().map(|cell| Step { count: 0.0, ..*cell }).collect();
    let below: Vec<f64> = cells.iter().map(|cell| law.cdf(cell.high)).collect();
    for _ in 0..n {
        let part = dice.even();
        let at = below.partition_point(|p| *p <= part).min(drawn.len() - 1);
        drawn[at].count += 1.0;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SEED;

    fn tested(values: &[f64], width: f64) -> Option<CellTest> {
        let excesses = Steps::new(values, width)?;
        let fit = gpd::fit(&excesses, Gpd::USUAL)?;
        of_excesses(&excesses, &fit, 0.1, 99, SEED)
    }

    fn drawn_from(law: Gpd, n: usize, seed: u64) -> Vec<f64> {
        let mut dice = Dice::new(seed);
        (0..n).map(|_| law.level(1.0 / dice.even())).collect()
    }

    #[test]
    fn clean_excesses_pass_about_as_often_as_the_level_says() {
        let passed = |width: f64| {
            let clean = |seed| tested(&drawn_from(Gpd { sigma: 3.0, xi: 0.1 }, 150, seed), width).unwrap();
            (0..20).filter(|&seed| clean(seed).p >= 0.1).count()
        };
        // 18 of 20 are expected, with a standard deviation of 1.3.
        assert!(passed(0.0) >= 14, "{}", passed(0.0));
        assert!(passed(1.0) >= 14, "{}", passed(1.0));
    }

    #[test]
    fn two_groups_do_not_pass() {
        let mut values = drawn_from(Gpd { sigma: 3.0, xi: 0.0 }, 300, 3);
        values.extend((0..60).map(|i| 30.0 + f64::from(i) / 30.0));
        for width in [0.0, 1.0] {
            assert!(tested(&values, width).unwrap().p < 0.1);
        }
    }

    #[test]
    fn cells_hold_everything_and_cut_nothing() {
        let excesses = Steps::new(&drawn_from(Gpd { sigma: 3.0, xi: 0.2 }, 500, 1), 1.0).unwrap();
        let cells = cells(&excesses, &gpd::fit(&excesses, Gpd::USUAL).unwrap().law);
        assert_eq!(cells.iter().map(|cell| cell.count).sum::<f64>(), 500.0);
        assert!(cells.windows(2).all(|pair| pair[0].high == pair[1].low && pair[0].low < pair[0].high));
        let cut = |edge: f64| excesses.all().iter().any(|s| s.low < edge && edge < s.high);
        assert!(!cells.iter().any(|cell| cut(cell.low)));
        assert_eq!(tested(&[0.0, 1.0, 0.0, 1.0], 1.0), None);
    }
}
