//! Shortest period that a run supports, in sentences: its parts, their basis, and the conditions of
//! the measurement.

use super::sentences::verdict;
use crate::run::conditions::in_short;
use crate::run::policy::policy;
use crate::run::probes;
use crate::words::{duration, percent, rounded_up, span, uncapitalised};
use model::run::Run;
use model::units::Nanos;
use stats::bounds::{Bounds, Holds, ShortestPeriod, VerdictBasis};

/// Period of a usual servo thread.
const SERVO: Nanos = Nanos::MILLI;

/// Length, rounded up so that it is never shown too short.
fn at_least(length: Nanos) -> String {
    span(rounded_up(length.0 as f64))
}

/// Period and its parts in a sentence, or the reason that there is none.
pub fn answer(bounds: &Bounds, shortest: &ShortestPeriod) -> String {
    let Some((period, lateness)) = shortest.period_ns.zip(shortest.lateness_ns) else {
        let why = bounds.claim.as_ref().map_or_else(
            || "nothing was measured.".to_owned(),
            // The sentences above explain how blocks are counted.
            |claim| {
                let words = verdict(bounds, claim).replace(" (a block counts once)", "");
                uncapitalised(words.trim_start_matches("Inconclusive: "))
            },
        );
        return format!("No period is supported: {why}");
    };
    let servo = match SERVO.0 - lateness.0 {
        left if left > 0 => format!("leaves {}", span(Nanos(left))),
        _ => "is too short".to_owned(),
    };
    format!(
        "Shortest (base) period: {} with lateness up to {} and {} of computing; a servo period of {} \
         {servo}. A cycle misses it at most once in {} on average (95 %, {}).",
        at_least(period),
        at_least(lateness),
        computing(shortest),
        span(SERVO),
        duration(bounds.counting.horizon_ns),
        basis(bounds)
    )
}

/// Basis of the period, with the condition of its confidence.
fn basis(bounds: &Bounds) -> &'static str {
    let reached = bounds.claim.as_ref().is_some_and(|claim| claim.exceedances_at_most > 0);
    match bounds.basis {
        VerdictBasis::Extrapolation => "by extrapolation",
        _ if bounds.exchangeable.holds == Holds::Unknown => "by counting, if the run was steady",
        _ if reached => "by counting, if its length was fixed",
        _ => "by counting",
    }
}

fn computing(shortest: &ShortestPeriod) -> String {
    let time = shortest.computing_ns.map_or_else(String::new, span);
    shortest.computing_share.map_or_else(|| time.clone(), |share| format!("{time} ({})", percent(share)))
}

/// The conditions of the answer, in sentences.
pub fn conditions(bounds: &Bounds, run: Option<&Run>) -> Vec<String> {
    let mut lines: Vec<String> =
        bounds.claim.as_ref().map(|claim| verdict(bounds, claim)).into_iter().collect();
    lines.push(
        "A cycle's deadline is taken to be its period less its computing; --period=200us or --period=30% \
         sets what computing takes. That of threads on one CPU adds up."
            .into(),
    );
    lines.push(match run {
        Some(run) => format!("Measured on {}: {}.", probes::sample(run).1, in_short(run)),
        None => "A list does not state how its maxima were measured: the period holds only for that method."
            .into(),
    });
    lines
}

/// Conditions of the measurement in a few words.
pub fn measured(run: &Run) -> String {
    let interval =
        run.plan.interval_ns.map_or_else(String::new, |interval| format!(", every {}", span(interval)));
    format!("{}{interval}", policy(run))
}
