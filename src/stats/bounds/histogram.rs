//! A histogram without times: a tail can be fitted, but what a fit rests on cannot be tested.
//!
//! Whether the run was stationary, and whether its large values came in bursts, is lost with the order.
//! So the fit is shown as unverifiable, and nothing is decided by it.

use serde::Serialize;

use super::conditions::{self, farthest};
use super::extrapolate::{self, Extrapolation};
use super::gates::Gate;
use super::steadiness::p_value;
use super::{Evidence, LARGEST_REACH, Question};
use crate::stats::dice::SEED;
use crate::stats::tail::gpd::{self, Fit};
use crate::stats::tail::profile::TWO_SIDED_95;
use crate::stats::tail::steps::Steps;
use crate::stats::tail::threshold::{self, Candidate, Choice};
use crate::units::Nanos;

const LOST: &str = "the histogram does not say when its values came";
const FARTHEST_BOUND: f64 = 3.0;

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
    /// Its 95 % profile interval, null where it has no end.
    pub xi_interval: [Option<f64>; 2],
    /// Minus the log-likelihood of the rows.
    pub nllh: f64,
    /// The level reached once in the horizon on average, if the assumptions hold.
    pub level_ns: f64,
    /// Its 95 % profile interval.
    pub lower_ns: Option<f64>,
    /// The upper end.
    pub upper_ns: Option<f64>,
    /// Always true: order and dependence of the samples are not known.
    pub unverifiable: bool,
}

/// Fits the tail of the histogram; always a refusal.
pub fn extrapolate(evidence: &Evidence, question: &Question) -> (Vec<Gate>, Extrapolation) {
    let observed = evidence.series.observed;
    let horizon =
        if question.chosen { question.horizon } else { question.horizon.min(farthest(question, observed)) };
    let steps = Steps::of_rows(evidence.rows, evidence.overflows);
    let choice = steps.as_ref().map(|steps| threshold::choose(steps, SEED));
    let picked = choice.as_ref().and_then(|choice| choice.candidates.get(choice.picked?));
    let times = horizon.0 as f64 / observed.0.max(1) as f64;
    let tail = steps.as_ref().zip(picked).map(|(steps, picked)| tail(steps, picked, times.max(1.0)));
    let unknown = |id, name| Gate::not_judged(id, name, LOST);
    let gates = vec![
        unknown("G1", "level"),
        unknown("G2", "dependence"),
        unknown("G3", "evenness"),
        fits(choice.as_ref(), picked),
        unknown("G5", "one mode"),
        unknown("G6", "periodicity"),
        Gate::refused(
            "G7",
            "enough data",
            format!("a histogram of {} values and no block maxima", steps.as_ref().map_or(0.0, Steps::n)),
            format!("Only a histogram was kept: {LOST}, so neither steadiness nor bursts can be checked."),
            "Measure with onbeat, which keeps the maximum of each second with its time.",
        ),
        conditions::horizon(&Question { reach: question.reach.min(LARGEST_REACH), ..*question }, observed),
        width(tail.as_ref(), evidence),
        unknown("G10", "back-test"),
        conditions::integrity(evidence),
    ];
    let mut beyond = Extrapolation {
        horizon_ns: Some(horizon),
        gpd: tail.filter(|tail| is_narrow(tail, evidence)),
        ..Extrapolation::default()
    };
    extrapolate::refuse(&mut beyond, &gates);
    (gates, beyond)
}

fn tail(steps: &Steps, picked: &Candidate, times: f64) -> Tail {
    let Candidate { level, fit, shape, .. } = picked;
    let Fit { law, nllh, .. } = fit;
    let excesses = steps.above(*level);
    let n = excesses.as_ref().map_or(0.0, Steps::n);
    let expected = times * n;
    let ends = excesses.map(|excesses| gpd::level_interval(&excesses, fit, expected, TWO_SIDED_95));
    Tail {
        threshold_ns: Nanos(*level as i64),
        excesses: n,
        sigma: law.sigma,
        xi: law.xi,
        xi_interval: [shape.low, shape.high],
        nllh: *nllh,
        level_ns: level + law.level(expected),
        lower_ns: ends.and_then(|ends| ends.low).map(|low| level + low),
        upper_ns: ends.and_then(|ends| ends.high).map(|high| level + high),
        unverifiable: true,
    }
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

fn is_narrow(tail: &Tail, evidence: &Evidence) -> bool {
    let seen = evidence.max.map_or_else(|| evidence.rows.last().map_or(0, |row| row.1.0), |max| max.0);
    tail.upper_ns.is_some_and(|upper| upper <= FARTHEST_BOUND * seen as f64)
}

fn width(tail: Option<&Tail>, evidence: &Evidence) -> Gate {
    const NAME: &str = "width";
    let Some(tail) = tail else { return Gate::not_judged("G9", NAME, "no law could be fitted") };
    let upper =
        tail.upper_ns.map_or_else(|| "no upper end".into(), |ns| Nanos(ns.min(9e18) as i64).to_string());
    let detail = format!("shape {:.3}, level {} to {upper}", tail.xi, Nanos(tail.level_ns as i64));
    if is_narrow(tail, evidence) {
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
