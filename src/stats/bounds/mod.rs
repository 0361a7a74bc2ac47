//! What a run supports: counting bounds first, an extrapolation only behind gates that can say no.

pub mod conditions;
pub mod counting;
pub mod events;
pub mod extrapolate;
pub mod gates;
pub mod histogram;
pub mod shape;
pub mod steadiness;
pub mod structure;

use serde::Serialize;

use super::histogram::Row;
use super::series::Series;
use crate::units::Nanos;
pub use counting::{Claim, Counting};
pub use extrapolate::Extrapolation;
pub use gates::Gate;
pub use structure::Structure;

/// The schema of the document.
pub const SCHEMA: &str = "onbeat.bounds/1";

/// The confidence of every bound.
pub const CONFIDENCE: f64 = 0.95;

/// How many times its own length an extrapolation reaches unless more is asked for, and at most.
pub const REACH: f64 = 10.0;
/// Beyond this no fit carries.
pub const LARGEST_REACH: f64 = 100.0;

/// What is asked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The latency that is not to be reached.
    pub limit: Option<Nanos>,
    /// For how long.
    pub horizon: Nanos,
    /// Whether a person chose that horizon; if not, an extrapolation goes no further than it may.
    pub chosen: bool,
    /// How many times the run's length an extrapolation may reach.
    pub reach: f64,
}

/// What there is to answer with.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// Block maxima; empty where only a histogram was kept.
    pub series: &'a Series,
    /// The histogram over all CPUs.
    pub rows: &'a [Row],
    /// Samples beyond the histogram's end, whose value is not known.
    pub overflows: u64,
    /// When those were, in ns, as far as it is known.
    pub overflow_times: &'a [i64],
    /// The largest latency, where it is known beyond the blocks.
    pub max: Option<Nanos>,
    /// What spoiled the measurement, each in words.
    pub spoiled: &'a [String],
    /// Slots that were slept through.
    pub missed: u64,
    /// Timer ticks per second of the kernel, where known.
    pub hz: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Counting: flattened, its fields are the document's.
    #[serde(flatten)]
    pub counting: Counting,
    /// The claim about the limit; null without one.
    pub claim: Option<Claim>,
    /// All gates, in the order of their numbers.
    pub gates: Vec<Gate>,
    /// What lies beyond what was seen, or why that is not said.
    pub extrapolation: Extrapolation,
    /// When the spikes came.
    #[serde(flatten)]
    pub structure: Structure,
    /// `supported`, `failed`, `inconclusive`, or `""` without a limit.
    pub verdict: &'static str,
    /// What the verdict rests on: `counting`, `extrapolation`, `integrity` (the run was spoiled) or `""`.
    pub basis: &'static str,
}

/// Answers.
pub fn bounds(evidence: &Evidence, question: &Question) -> Bounds {
    let counting = counting::count(evidence, question);
    let claim = question.limit.map(|limit| counting::claim(evidence, question, limit));
    let structure = structure::structure(evidence);
    let (gates, extrapolation) = extrapolate::extrapolate(evidence, question, &structure);
    let (verdict, basis) = verdict(evidence, claim.as_ref(), &extrapolation, question);
    Bounds { schema: SCHEMA, counting, claim, gates, extrapolation, structure, verdict, basis }
}

/// A spoiled run decides nothing. Counting decides where it can. An extrapolation may only support, and only with the bound that
/// leaves the tail without an upper limit.
fn verdict(
    evidence: &Evidence,
    claim: Option<&Claim>,
    beyond: &Extrapolation,
    question: &Question,
) -> (&'static str, &'static str) {
    let (Some(claim), Some(limit)) = (claim, question.limit) else { return ("", "") };
    if !evidence.spoiled.is_empty() {
        return ("inconclusive", "integrity");
    }
    if claim.by_counting != "inconclusive" {
        return (claim.by_counting, "counting");
    }
    let reaches = beyond.horizon_ns.is_some_and(|reach| reach >= question.horizon);
    let below = beyond.guarded_upper_ns.is_some_and(|upper| upper < limit.0 as f64);
    if beyond.status == "ok" && reaches && below && claim.exceedances == 0 {
        ("supported", "extrapolation")
    } else {
        ("inconclusive", "counting")
    }
}
