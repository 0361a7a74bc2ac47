//! Culprits over the fleet and by day.

use model::units::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// A culprit over the fleet, or on one board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FarmCulprit {
    /// Key in its address.
    pub fingerprint: String,
    pub rule: String,
    pub name: String,
    pub kind: String,
    pub boards: u64,
    pub runs: u64,
    pub spikes: u64,
    #[schemars(with = "i64")]
    pub total_ns: Nanos,
    pub first: i64,
    pub last: i64,
    /// A run that shows it; empty if none does.
    pub example: String,
    pub remedy: String,
    /// Number of recorders' five minutes in whose largest latency it had a part: they are not
    /// spikes, and may be small. The series of the recorder with the most of them counts.
    pub five_minutes: u64,
}

/// A day on which a board's recorder named a culprit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CulpritDay {
    pub board: String,
    /// The day, and the first five minutes of it with the culprit, in seconds since 1970.
    pub t: i64,
    pub first: i64,
    /// The series of the recorder that shows it most.
    pub series: String,
    pub five_minutes: u64,
    #[schemars(with = "i64")]
    pub total_ns: Nanos,
}
