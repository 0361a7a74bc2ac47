//! Closed vocabularies of the answer, with their names in JSON.

use serde::Serialize;

/// Verdict on a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundsVerdict {
    /// Reached at most once per horizon.
    Supported,
    /// Reached more often than that.
    Failed,
    /// Shown neither to hold nor to fail.
    Inconclusive,
    /// No limit was given.
    #[serde(rename = "")]
    NotAsked,
}

/// Basis of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictBasis {
    Counting,
    /// The fitted tail, if its gates pass.
    Extrapolation,
    /// The blocks are not exchangeable, so that neither of those applies.
    Steadiness,
    /// The run is invalid.
    Integrity,
    /// No limit was given.
    #[serde(rename = "")]
    NotAsked,
}

/// Verdict of the rule for a test that is watched and stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SequentialVerdict {
    Pass,
    Fail,
    /// Undecided so far.
    GoOn,
}

/// Status of an extrapolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtrapolationStatus {
    Ok,
    /// A gate refused it, or could not be judged.
    #[default]
    Refused,
}

/// Exchangeability of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Not refused by any gate.
    Yes,
    /// Refused by a gate.
    No,
    /// Not judged, for lack of data.
    #[default]
    Unknown,
}
