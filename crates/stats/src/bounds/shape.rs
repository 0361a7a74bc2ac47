//! Gates G4, G5, G9 and G10: one law fits, no separate mode, a finite bound, the first half
//! predicts the second.

use super::gates::{ALPHA, Gate};
use super::numbers::p_value;
use super::sample::{PredictedLevels, Sample};
use crate::law;
use crate::rng::SEED;
use crate::tail::determined;
use crate::tail::fit_test::{self, REFITS};
use crate::tail::gap;
use crate::tail::gev::{self, GevFit, Shape};
use crate::tail::grouped_sample::GroupedSample;
use crate::tail::profile::{self, Level, TWO_SIDED_95};
use model::text::several;
use model::units::Nanos;

const NO_FIT: &str = "no distribution could be fitted";

/// The second half's blocks are compared with the level that one in this number exceeds.
const ONE_IN: f64 = 30.0;
/// Ratio of a bound to the largest value seen above which it is reported as wide.
pub const WIDE: f64 = 3.0;
/// Probability below which the back-test warns.
const WARN: f64 = 0.001;

/// G4: Anderson-Darling with all and with the upper weight, and the same bound from blocks of twice
/// the length.
pub fn fits(sample: &Sample, doubled: &Sample, blocks: f64) -> Gate {
    const NAME: &str = "tail fit";
    let (Some(steps), Some(fit)) = (&sample.steps, sample.usual_fit()) else {
        return Gate::not_judged("G4", NAME, NO_FIT);
    };
    // Two statistics share the gate's level; a bootstrap that ends early knows the side, not the
    // digits.
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
        let refusal = "One tail distribution does not describe this run.".to_owned();
        return Gate::refused(
            "G4",
            NAME,
            detail,
            refusal,
            "Look for separate modes in the histogram, and bound their causes.",
        );
    }
    if overlap == Some(false) {
        let refusal =
            "The tail depends on the block length: one distribution does not describe this run.".to_owned();
        return Gate::refused("G4", NAME, detail, refusal, "Measure longer.");
    }
    Gate::passed("G4", NAME, detail)
}

/// True if the intervals of the typical worst overlap; `None` if blocks of twice the length are too
/// few.
fn overlap<'a>(sample: &'a Sample<'a>, doubled: &'a Sample<'a>, blocks: f64) -> Option<bool> {
    let fitted = |sample: &'a Sample<'a>, blocks: f64| -> Option<(&'a GroupedSample, GevFit, Level)> {
        let enough = sample.values().len() >= 30 && blocks > 0.0;
        let level = Level { blocks, probability: 0.5 };
        Some((sample.steps.as_ref().filter(|_| enough)?, sample.usual_fit()?, level))
    };
    let (one, two) = (fitted(sample, blocks)?, fitted(doubled, blocks / 2.0)?);
    let typical = |(_, fit, level): &(&GroupedSample, GevFit, Level)| level.of(&fit.law);
    let (lower, upper) = if typical(&one) <= typical(&two) { (one, two) } else { (two, one) };
    // They overlap if the upper end of the lower one lies within the other, or above its estimate.
    let Some(end) = profile::level_upper(lower.0, &lower.1, lower.2, TWO_SIDED_95) else { return Some(true) };
    if end >= typical(&upper) {
        return Some(true);
    }
    profile::level_within(upper.0, &upper.1, upper.2, end, TWO_SIDED_95)
}

/// G5: no separate group of the largest events.
pub fn one_mode(sample: &Sample) -> Gate {
    const NAME: &str = "one mode";
    let (Some(steps), Some(fit)) = (&sample.steps, sample.usual_fit()) else {
        return Gate::not_judged("G5", NAME, NO_FIT);
    };
    let Some(gap) = gap::widest_gap(steps, &fit.law) else {
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

/// G9: a shape within its range, and a finite bound.
///
/// The width of the bound must not decide: of a heavy tail the runs that look light would be
/// picked, and their bounds are too low (of xi 0.2 and 60 blocks 68 % held where those above three
/// times the largest value were refused).
pub fn width(sample: &Sample, levels: Option<&PredictedLevels>) -> Gate {
    const NAME: &str = "width";
    let (Some(steps), Some(fit), Some(levels)) = (&sample.steps, sample.fit, levels) else {
        return Gate::not_judged("G9", NAME, NO_FIT);
    };
    let found = determined::of_maxima(steps, &fit, levels.upper.and(levels.guarded));
    let end = |end: Option<f64>| end.map_or_else(|| "none".to_owned(), |end| format!("{end:.3}"));
    let shape = format!("shape {:.3} [{}, {}]", fit.law.xi, end(found.shape.low), end(found.shape.high));
    if found.is_bounded() {
        let times = found.times_largest;
        let wide = if times > WIDE { "warning: " } else { "" };
        let detail = format!("{wide}{shape}, bound {times:.2} times the largest value seen");
        return Gate::passed("G9", NAME, detail);
    }
    let Shape { low, high } = fit.shape;
    let (detail, why) = if found.at_edge {
        (
            format!("{shape}, at an end of the fitted range, {low} to {high}"),
            if fit.law.xi > 0.0 { "it is too heavy for a bound" } else { "its end is too sharp for a fit" },
        )
    } else {
        (format!("{shape}, no bound"), "no level can be excluded")
    };
    let refusal = format!("The tail is not determined by this run: {why}.");
    Gate::refused("G9", NAME, detail, refusal, "Measure longer, and in finer steps.")
}

/// G10: the first half's fit tested on the second half. Only a warning, as the fit of a half is
/// uncertain.
pub fn back_test(sample: &Sample) -> Gate {
    const NAME: &str = "back-test";
    let values = sample.values();
    let (first, second) = values.split_at(values.len() / 2);
    let steps = GroupedSample::new(first, sample.step.0 as f64);
    let Some(fit) = steps.as_ref().and_then(|steps| gev::fit(steps, Shape::USUAL)) else {
        return Gate::not_judged("G10", NAME, "the first half is too short, or all its values are equal");
    };
    let level = fit.law.quantile(1.0 - 1.0 / ONE_IN);
    let above = second.iter().filter(|value| *value > level).count() as u64;
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
