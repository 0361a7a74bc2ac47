//! Gates G4, G5, G9 and G10: one law fits, no mode stands apart, the bound is not wide, the first half foretells the second.

use super::extrapolate::{Levels, Sample};
use super::gates::{ALPHA, Gate};
use super::words::p_value;
use crate::stats::dice::SEED;
use crate::stats::law;
use crate::stats::tail::determined;
use crate::stats::tail::fit_test::{self, REFITS};
use crate::stats::tail::gap;
use crate::stats::tail::gev::{self, Shape};
use crate::stats::tail::profile::{self, Interval, Level, TWO_SIDED_95};
use crate::stats::tail::steps::Steps;
use crate::text::several;
use crate::units::Nanos;

const NO_FIT: &str = "no law could be fitted";

/// The second half's blocks are held against the level that one in so many exceeds.
const ONE_IN: f64 = 30.0;
/// Below this probability the back-test warns.
const WARN: f64 = 0.001;

/// G4: Anderson-Darling with all and with the upper weight, and the same bound from blocks of twice the length.
pub fn fits(sample: &Sample, doubled: &Sample, blocks: f64) -> Gate {
    const NAME: &str = "tail fit";
    let (Some(steps), Some(fit)) = (&sample.steps, sample.fit) else {
        return Gate::not_judged("G4", NAME, NO_FIT);
    };
    // Two statistics share the gate's level; a bootstrap that ends early knows the side, not the digits.
    let side = |p: f64| format!("p {} {}", if p < ALPHA / 2.0 { "below" } else { "above" }, ALPHA / 2.0);
    let Some(test) = fit_test::of_maxima(steps, &fit, ALPHA / 2.0, REFITS, SEED) else {
        return Gate::not_judged("G4", NAME, NO_FIT);
    };
    let overlap = overlap(sample, doubled, blocks);
    let stable = match overlap {
        Some(true) => "; blocks of twice the length agree",
        Some(false) => "; blocks of twice the length do not agree",
        None => "",
    };
    let detail = format!(
        "Anderson-Darling {:.2} ({}), upper tail {:.2} ({}), settled by {} refits{stable}",
        test.a2,
        side(test.a2_p),
        test.au2,
        side(test.au2_p),
        test.refits
    );
    if test.a2_p < ALPHA / 2.0 || test.au2_p < ALPHA / 2.0 {
        let refusal = "One tail law does not describe this run.".to_owned();
        return Gate::refused(
            "G4",
            NAME,
            detail,
            refusal,
            "Look at the histogram for separate modes, and bound what causes them.",
        );
    }
    if overlap == Some(false) {
        let refusal = "The tail depends on the block length: one law does not describe this run.".to_owned();
        return Gate::refused("G4", NAME, detail, refusal, "Measure for longer.");
    }
    Gate::passed("G4", NAME, detail)
}

/// Whether the intervals of the typical worst overlap; none where blocks of twice the length are too few to say.
fn overlap(sample: &Sample, doubled: &Sample, blocks: f64) -> Option<bool> {
    let interval = |sample: &Sample, blocks: f64| -> Option<Interval> {
        let level = Level { blocks, probability: 0.5 };
        let enough = sample.values.len() >= 30 && blocks > 0.0;
        let (steps, fit) = (sample.steps.as_ref().filter(|_| enough)?, sample.fit?);
        Some(profile::level_interval(steps, &fit, level, TWO_SIDED_95))
    };
    let (one, two) = (interval(sample, blocks)?, interval(doubled, blocks / 2.0)?);
    let above =
        |high: Option<f64>, low: Option<f64>| high.is_none_or(|high| low.is_none_or(|low| high >= low));
    Some(above(one.high, two.low) && above(two.high, one.low))
}

/// G5: no group of the largest events apart from the rest.
pub fn one_mode(sample: &Sample) -> Gate {
    const NAME: &str = "one mode";
    let (Some(steps), Some(fit)) = (&sample.steps, sample.fit) else {
        return Gate::not_judged("G5", NAME, NO_FIT);
    };
    let Some(gap) = gap::widest_gap(steps, &fit.law, SEED) else {
        return Gate::not_judged("G5", NAME, "too few blocks");
    };
    let at = Nanos(gap.starts_at as i64).spoken();
    let detail = format!(
        "the widest gap of the tail is below {at}, with {} above (p {})",
        several(gap.events as u64, "event", "events"),
        p_value(gap.p)
    );
    if gap.p >= ALPHA {
        return Gate::passed("G5", NAME, detail);
    }
    let refusal =
        format!("{} of the worst events form a separate group at about {at} and above.", gap.events);
    Gate::refused(
        "G5",
        NAME,
        detail,
        refusal,
        "Treat them as a mechanism: find it, fix it or budget for it, then measure again.",
    )
}

/// G9: a shape within its box, and a bound that is not far beyond what was seen.
pub fn width(sample: &Sample, levels: Option<&Levels>) -> Gate {
    const NAME: &str = "width";
    let (Some(steps), Some(fit), Some(levels)) = (&sample.steps, sample.fit, levels) else {
        return Gate::not_judged("G9", NAME, NO_FIT);
    };
    let found = determined::of_maxima(steps, &fit, levels.upper.and(levels.guarded));
    let end = |end: Option<f64>| end.map_or_else(|| "none".to_owned(), |end| format!("{end:.3}"));
    let detail = format!(
        "shape {:.3} [{}, {}] (refused above 0.5), bound {:.2} times the largest value seen (refused above 3)",
        fit.law.xi,
        end(found.shape.low),
        end(found.shape.high),
        found.times_largest
    );
    if found.is_enough() {
        return Gate::passed("G9", NAME, detail);
    }
    let refusal = format!(
        "The tail is not determined by this run: the largest value seen is {}, and the bound would be far beyond it.",
        Nanos(steps.largest().min(9e18) as i64).spoken()
    );
    Gate::refused("G9", NAME, detail, refusal, "Measure for longer, or ask for a shorter --horizon.")
}

/// G10: the first half's fit held against the second half. A warning, as the fit of a half is itself uncertain.
pub fn back_test(sample: &Sample) -> Gate {
    const NAME: &str = "back-test";
    let (first, second) = sample.values.split_at(sample.values.len() / 2);
    let steps = Steps::new(first, sample.step.0 as f64);
    let Some(fit) = steps.as_ref().and_then(|steps| gev::fit(steps, Shape::USUAL)) else {
        return Gate::not_judged("G10", NAME, "the first half is too short, or all alike");
    };
    let level = fit.law.quantile(1.0 - 1.0 / ONE_IN);
    let above = second.iter().filter(|value| **value > level).count() as u64;
    let p = law::binomial_at_least(above, second.len() as u64, 1.0 / ONE_IN);
    let warning = if p < WARN { "warning: " } else { "" };
    let expected = second.len() as f64 / ONE_IN;
    Gate::passed(
        "G10",
        NAME,
        format!(
            "{warning}{} of the second half above the first half's 1-in-30 level, {expected:.1} expected (p {})",
            several(above, "block", "blocks"),
            p_value(p)
        ),
    )
}
