//! The closed vocabularies of the answer, with their names in JSON.

use serde::Serialize;

/// Whether a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundsVerdict {
    /// It is reached at most once per horizon.
    Supported,
    /// It is reached more often than that.
    Failed,
    /// The run shows neither.
    Inconclusive,
    /// No limit was given.
    #[serde(rename = "")]
    NotAsked,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictBasis {
    Counting,
    /// The fitted tail, behind its gates.
    Extrapolation,
    /// The blocks are not exchangeable, so that neither of those applies.
    Steadiness,
    /// The run is invalid.
    Integrity,
    /// No limit was given.
    #[serde(rename = "")]
    NotAsked,
}

/// The result of the rule for a test that is watched and stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SequentialVerdict {
    Pass,
    Fail,
    /// Neither is sure yet.
    GoOn,
}

/// Whether an extrapolation is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtrapolationStatus {
    Ok,
    /// A gate refused it, or could not be judged.
    #[default]
    Refused,
}

/// Whether blocks are exchangeable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// No gate refuses it.
    Yes,
    /// A gate refuses it.
    No,
    /// There was too little to judge by.
    #[default]
    Unknown,
}
