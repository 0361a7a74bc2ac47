//! A histogram without times: a tail can be fitted, but what a fit rests on cannot be tested.
//!
//! Whether the run was stationary, and whether its large values came in bursts, is lost with the order.
//! So the fit is shown as unverifiable, and nothing is decided by it.

use serde::Serialize;

use super::conditions::{self, farthest};
use super::extrapolate::{self, Extrapolation};
use super::gates::Gate;
use super::structure::Structure;
use super::words::p_value;
use super::{Evidence, Question, overflows};
use crate::dice::SEED;
use crate::tail::determined::{self, Determined};
use crate::tail::gpd::{self, Fit};
use crate::tail::profile::TWO_SIDED_95;
use crate::tail::steps::Steps;
use crate::tail::threshold::{self, Candidate, Choice};
use model::units::Nanos;

/// What is said wherever the order of the samples would be needed.
pub const LOST: &str = "the histogram does not say when its values came";

/// The tail of a histogram: `S(y) = (1 + xi y / sigma)^(-1/xi)` of the excess y over the threshold, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tail {
    /// The threshold.
    pub threshold_ns: Nanos,
    /// Values above it.
    pub excesses: f64,
    /// Scale.
    pub sigma: f64,
    /// Shape.
    pub xi: f64,
    /// Standard errors of sigma and xi; null where the fit lies on the edge of what is allowed.
    pub se: Option<[f64; 2]>,
    /// The shape's 95 % profile interval, null where it has no end.
    pub xi_interval: [Option<f64>; 2],
    /// Minus the log-likelihood of the rows.
    pub nllh: f64,
    /// The level reached once in the horizon on average, if the assumptions hold.
    pub level_ns: f64,
    /// Its 95 % profile interval.
    pub lower_ns: Option<f64>,
    /// The upper end.
    pub upper_ns: Option<f64>,
    /// How many times as many wake-ups the level is for.
    pub times: f64,
    /// Whether the histogram determines the level well enough to speak of it.
    pub determined: bool,
    /// Always true: order and dependence of the samples are not known.
    pub unverifiable: bool,
}

/// Fits the tail of the histogram; always a refusal.
pub fn extrapolate(
    evidence: &Evidence,
    question: &Question,
    structure: &Structure,
) -> (Vec<Gate>, Extrapolation) {
    let observed = evidence.series.observed;
    let horizon =
        if question.chosen { question.horizon } else { question.horizon.min(farthest(question, observed)) };
    let known = Some(horizon).filter(|_| observed.0 > 0);
    // Where the length is not known, as many times as many wake-ups.
    let times = known.map_or(question.reach, |horizon| horizon.0 as f64 / observed.0 as f64);
    let steps = Steps::of_rows(evidence.rows, evidence.overflows, evidence.listed.from);
    let choice = steps.as_ref().map(|steps| threshold::choose(steps, SEED));
    let picked = choice.as_ref().and_then(|choice| choice.candidates.get(choice.picked?));
    let tail = steps
        .as_ref()
        .zip(picked)
        .and_then(|(steps, picked)| tail(steps, picked, times.max(1.0), evidence.max));
    let (tail, determined) = tail.unzip();
    let largest = match (evidence.max, evidence.overflows) {
        (None, 1..) => "the histogram's end, beyond which its largest values lie",
        _ => "the largest value seen",
    };
    let unknown = |id, name| Gate::not_judged(id, name, LOST);
    let gates = vec![
        unknown("G1", "level"),
        unknown("G2", "dependence"),
        unknown("G3", "evenness"),
        fits(choice.as_ref(), picked),
        unknown("G5", "one mode"),
        overflows::period(evidence, structure),
        Gate::refused(
            "G7",
            "enough data",
            kept(evidence, steps.as_ref()),
            match evidence.rows.is_empty() {
                true => "Neither block maxima nor a histogram were kept: nothing can be checked.".to_owned(),
                false => format!(
                    "Only a histogram was kept: {LOST}, so neither steadiness nor bursts can be checked."
                ),
            },
            "Measure with onbeat, which keeps the maximum of each second with its time.",
        ),
        conditions::horizon(question, observed),
        width(determined, largest),
        unknown("G10", "back-test"),
        conditions::integrity(evidence),
    ];
    let mut beyond = Extrapolation { horizon_ns: known, gpd: tail, ..Extrapolation::default() };
    extrapolate::refuse(&mut beyond, &gates);
    (gates, beyond)
}

fn kept(evidence: &Evidence, steps: Option<&Steps>) -> String {
    match (evidence.rows.is_empty(), steps) {
        (true, _) => "no histogram and no block maxima".to_owned(),
        (false, steps) => {
            let n = steps.map_or(0.0, Steps::n);
            format!("a histogram of {n} {} and no block maxima", if n == 1.0 { "value" } else { "values" })
        }
    }
}

fn tail(steps: &Steps, picked: &Candidate, times: f64, max: Option<Nanos>) -> Option<(Tail, Determined)> {
    let Candidate { level, fit, shape, .. } = picked;
    let Fit { law, nllh, .. } = fit;
    let excesses = steps.above(*level)?;
    let expected = times * excesses.n();
    let ends = gpd::level_interval(&excesses, fit, expected, TWO_SIDED_95);
    let upper_ns = ends.high.map(|high| level + high);
    let determined = determined::of_excesses(&excesses, fit, *level, upper_ns, max.map(|max| max.0 as f64));
    let tail = Tail {
        threshold_ns: Nanos(*level as i64),
        excesses: excesses.n(),
        sigma: law.sigma,
        xi: law.xi,
        se: gpd::standard_errors(&excesses, fit),
        xi_interval: [shape.low, shape.high],
        nllh: *nllh,
        times,
        level_ns: level + law.level(expected),
        lower_ns: ends.low.map(|low| level + low),
        upper_ns,
        determined: determined.is_enough(),
        unverifiable: true,
    };
    Some((tail, determined))
}

fn fits(choice: Option<&Choice>, picked: Option<&Candidate>) -> Gate {
    const NAME: &str = "tail fit";
    if let Some(picked) = picked {
        let p = picked.p.map_or_else(String::new, |p| format!(", fits with p {}", p_value(p)));
        return Gate::passed("G4", NAME, format!("threshold {}{p}", Nanos(picked.level as i64)));
    }
    let tried = choice.map_or(0, |choice| choice.candidates.len());
    Gate::refused(
        "G4",
        NAME,
        format!("none of {tried} thresholds has a good fit that all higher ones agree with"),
        "No tail law fits the histogram above any threshold.".into(),
        "Look at it for separate modes.",
    )
}

fn width(determined: Option<Determined>, largest: &str) -> Gate {
    const NAME: &str = "width";
    let Some(found) = determined else { return Gate::not_judged("G9", NAME, "no law could be fitted") };
    let high = found.shape.high.map_or_else(|| "none".to_owned(), |high| format!("{high:.3}"));
    let detail = format!(
        "upper end of the shape {high} (refused above 0.5), of the level {:.2} times {largest} (refused above 3)",
        found.times_largest
    );
    if found.is_enough() {
        return Gate::passed("G9", NAME, detail);
    }
    Gate::refused(
        "G9",
        NAME,
        detail,
        "The tail is not determined by this histogram.".into(),
        "Measure for longer.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::LARGEST_REACH;
    use super::*;
    use crate::reference::RPI2_HIST_US;
    use crate::series::Series;
    use model::histogram::Row;

    fn answer(times: i64) -> (Vec<Gate>, Extrapolation) {
        let rows: Vec<Row> = RPI2_HIST_US
            .iter()
            .map(|&(us, n)| (Nanos(us as i64 * 1_000), Nanos(us as i64 * 1_000 + 1_000), n))
            .collect();
        let observed = Nanos(4_000 * Nanos::SECOND.0);
        let series = Series { observed, ..Series::default() };
        let evidence = Evidence { rows: &rows, max: Some(Nanos(76_000)), ..Evidence::of(&series) };
        let question =
            Question { limit: None, horizon: Nanos(observed.0 * times), chosen: true, reach: LARGEST_REACH };
        extrapolate(&evidence, &question, &Structure::default())
    }

    fn gate(gates: &[Gate], id: &str) -> bool {
        gates.iter().any(|gate| gate.id == id && gate.passed)
    }

    #[test]
    fn the_raspberry_s_tail_is_that_of_the_reference_and_decides_nothing() {
        let (gates, beyond) = answer(10);
        let tail = beyond.gpd.expect("a tail");
        assert_eq!((beyond.status, tail.threshold_ns, tail.excesses), ("refused", Nanos(53_000), 135.0));
        for (found, expected) in [
            (tail.level_ns, 96_087.0),
            (tail.lower_ns.unwrap_or(0.0), 77_333.0),
            (tail.upper_ns.unwrap_or(0.0), 173_105.0),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} is not {expected}");
        }
        let [sigma, xi] = tail.se.expect("standard errors");
        assert!((sigma / 380.0 - 1.0).abs() < 0.2 && (0.05..0.2).contains(&xi), "{sigma} {xi}");
        assert!(gate(&gates, "G9") && gate(&gates, "G4") && !gate(&gates, "G7"));
        assert!(beyond.upper_ns.is_none(), "nothing beyond the counting bounds");
    }

    #[test]
    fn a_hundredfold_is_too_far() {
        assert!(!gate(&answer(100).0, "G9"));
    }
}
