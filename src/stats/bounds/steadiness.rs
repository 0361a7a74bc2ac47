//! Gates G1 to G3: whether the blocks are one series, without memory, with its large values spread evenly.

use super::gates::{ALPHA, Gate};
use super::words::p_value;
use crate::stats::steady::homogeneity::Stretch;
use crate::stats::steady::{homogeneity, kpss, ljung_box, mann_kendall, median_shift, runs};
use crate::units::Nanos;

const TOO_FEW: &str = "too few blocks, or all alike";
const HOUR: f64 = 3.6e12;

/// Lags of the test of dependence.
pub const LAGS: usize = 10;

/// G1: one level from beginning to end, in the blocks of the fit and in the finest ones.
///
/// A change of level makes neighbours alike, so that longer blocks are taken for the fit, of which there are fewer
/// to show the change. KPSS allows for short memory; it alone is asked of the finest.
pub fn level(values: &[f64], finest: &[f64], block: Nanos) -> Gate {
    const NAME: &str = "level";
    let (Some(kpss), Some(trend)) = (kpss::level(values), mann_kendall::trend(values)) else {
        return Gate::not_judged("G1", NAME, TOO_FEW);
    };
    let fine = kpss::level(finest).unwrap_or(kpss);
    let statistic = kpss.statistic.max(fine.statistic);
    let detail = format!("KPSS {statistic:.3} (refused above 0.739), Mann-Kendall p {}", p_value(trend.p));
    let steady = !kpss.rejects_at_1_percent && !fine.rejects_at_1_percent;
    if steady && trend.p >= ALPHA {
        return Gate::passed("G1", NAME, detail);
    }
    let slope = mann_kendall::slope(values).unwrap_or_default();
    let per_hour = slope * HOUR / block.0.max(1) as f64;
    // Of blocks of a year an hour says nothing.
    let (drift, span) = if per_hour.abs() >= 1.0 {
        (per_hour, "an hour")
    } else {
        (slope * values.len() as f64, "over the run")
    };
    let changed =
        median_shift::most_likely(values).filter(|shift| shift.p < ALPHA).map_or_else(String::new, |shift| {
            let when = Nanos(block.0.saturating_mul(shift.first_after as i64)).spoken();
            let (before, after) = (Nanos(shift.before as i64).spoken(), Nanos(shift.after as i64).spoken());
            format!(", most likely changed {when} into the run, from typically {before} to {after}")
        });
    let sign = if drift < 0.0 { "-" } else { "" };
    let drift = Nanos(drift.abs().min(9e18) as i64).spoken();
    let refusal = format!("The run is not stationary: drift of {sign}{drift} {span}{changed}.");
    Gate::refused(
        "G1",
        NAME,
        detail,
        refusal,
        "Find what changed, let the machine settle, or judge the stretches by themselves.",
    )
}

/// G2: blocks without memory.
pub fn dependence(values: &[f64], block: Nanos) -> Gate {
    const NAME: &str = "dependence";
    let (Some(memory), Some(runs)) = (ljung_box::test(values, LAGS), runs::about_median(values)) else {
        return Gate::not_judged("G2", NAME, TOO_FEW);
    };
    let detail = format!(
        "Ljung-Box p {} over {} lags, runs about the median p {} (blocks of {})",
        p_value(memory.p),
        memory.lags,
        p_value(runs.p),
        block.spoken()
    );
    if memory.p >= ALPHA && runs.p >= ALPHA {
        return Gate::passed("G2", NAME, detail);
    }
    let refusal = format!(
        "Neighbouring blocks resemble each other, even blocks of {}: there is less in this run than its length says.",
        block.spoken()
    );
    Gate::refused(
        "G2",
        NAME,
        detail,
        refusal,
        "Measure for longer, so that longer blocks remain enough of them.",
    )
}

/// G3: the largest twentieth of the blocks spread over the run; of the finest blocks, which are the most.
///
/// Longer blocks take memory away, and with it the trace of a burst: what is remembered in one stretch alone is one.
pub fn evenness(finest: &[f64], block: Nanos) -> Gate {
    const NAME: &str = "evenness";
    let Some(found) = homogeneity::of_top_blocks(finest) else {
        return Gate::not_judged("G3", NAME, TOO_FEW);
    };
    let burst = burst(finest);
    let memory = burst.map_or_else(String::new, |burst| {
        format!("; blocks have memory only in the {} from {} on", long(&burst, block), begin(&burst, block))
    });
    let detail = format!(
        "of the {} largest blocks {} in the first half (p {}), dispersion over ten windows p {}{memory}",
        found.large,
        found.first_half,
        p_value(found.halves_p),
        p_value(found.dispersion_p)
    );
    let spread = found.halves_p >= ALPHA && found.dispersion_p >= ALPHA;
    if spread && burst.is_none() {
        return Gate::passed("G3", NAME, detail);
    }
    let stretch = burst.filter(|_| spread).unwrap_or(found.stretch);
    let refusal = format!(
        "Spikes are bunched: {} of the {} largest blocks lie within {} from {} on.",
        stretch.large,
        found.large,
        long(&stretch, block),
        begin(&stretch, block)
    );
    Gate::refused("G3", NAME, detail, refusal, "Find what ran then; bound that stretch by itself.")
}

/// The fullest tenth of the run, if the blocks have memory with it and none without it.
///
/// A change of level makes neighbours alike as well: where there is one, G1 names it.
fn burst(finest: &[f64]) -> Option<Stretch> {
    let remembers = |values: &[f64]| ljung_box::test(values, LAGS).is_some_and(|memory| memory.p < ALPHA);
    if !remembers(finest) || kpss::level(finest).is_some_and(|level| level.rejects_at_1_percent) {
        return None;
    }
    let stretch = homogeneity::fullest_tenth(finest)?;
    let (before, after) = (finest.get(..stretch.first)?, finest.get(stretch.first + stretch.blocks..)?);
    (!remembers(&[before, after].concat())).then_some(stretch)
}

fn long(stretch: &Stretch, block: Nanos) -> String {
    Nanos(block.0.saturating_mul(stretch.blocks as i64)).spoken()
}

fn begin(stretch: &Stretch, block: Nanos) -> String {
    Nanos(block.0.saturating_mul(stretch.first as i64)).spoken()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::dice::Dice;
    use crate::stats::series::BLOCK;

    fn clean(seed: u64) -> Vec<f64> {
        let mut dice = Dice::new(seed);
        (0..600).map(|_| 20_000.0 - 2_000.0 * dice.exponential().ln()).collect()
    }

    #[test]
    fn a_steady_run_passes() {
        let values = clean(1);
        for gate in [level(&values, &values, BLOCK), dependence(&values, BLOCK), evenness(&values, BLOCK)] {
            assert!(gate.passed, "{gate:?}");
        }
    }

    #[test]
    fn a_shift_is_refused_with_its_place() {
        let shifted: Vec<f64> =
            clean(2).iter().enumerate().map(|(i, x)| if i < 300 { *x } else { x + 3_000.0 }).collect();
        let gate = level(&shifted, &shifted, BLOCK);
        assert!(!gate.passed && gate.refusal.contains("changed"), "{gate:?}");
    }

    #[test]
    fn memory_is_refused() {
        let mut last = 0.0;
        let series: Vec<f64> = clean(3)
            .iter()
            .map(|x| {
                last = 0.6 * last + x;
                last
            })
            .collect();
        assert!(!dependence(&series, BLOCK).passed);
    }

    #[test]
    fn bunched_spikes_are_refused_with_their_stretch() {
        let mut values = clean(4);
        values[100..130].iter_mut().for_each(|x| *x += 30_000.0);
        let gate = evenness(&values, BLOCK);
        assert!(!gate.passed && gate.refusal.contains("bunched"), "{gate:?}");
    }

    #[test]
    fn a_burst_across_two_windows_is_refused_and_memory_throughout_is_not() {
        // Half of it in each of two windows, whose dispersion alone lets most of these pass.
        let burst_of = |seed| {
            let mut values = clean(seed);
            values[105..135].iter_mut().for_each(|x| *x += 5_000.0);
            values
        };
        let even = |values: &Vec<f64>| {
            homogeneity::of_top_blocks(values)
                .is_some_and(|found| found.dispersion_p.min(found.halves_p) >= ALPHA)
        };
        let values = (0..20).map(burst_of).find(even).expect("one of them passes");
        let gate = evenness(&values, BLOCK);
        assert!(!gate.passed && gate.refusal.contains("within 60.0 s from"), "{gate:?}");
        let mut last = 0.0;
        let remembering: Vec<f64> = clean(6)
            .iter()
            .map(|x| {
                last = 0.4 * last + x;
                last
            })
            .collect();
        assert_eq!(burst(&remembering), None);
        assert_eq!(burst(&clean(7)), None, "no memory, no burst");
    }

    #[test]
    fn what_cannot_be_judged_is_no_pass() {
        for values in [vec![], vec![5.0; 100]] {
            for gate in [level(&values, &values, BLOCK), dependence(&values, BLOCK), evenness(&values, BLOCK)]
            {
                assert!(!gate.passed && gate.detail.starts_with("not judged"), "{gate:?}");
            }
        }
    }
}
