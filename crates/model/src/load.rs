//! Loads that ran during a measurement, as in `run.json` and `load --json`.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One load, with the proof that it loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadRun {
    /// Kind of the load: `mem`.
    pub name: String,
    /// Specification that repeats it: `mem:2x1G`.
    pub spec: String,
    /// Number of its processes, or of groups of them.
    pub count: u32,
    /// CPUs that it might use, as a list.
    pub cpus: String,
    /// Unit of `total`; `""` for a program of the user's.
    pub unit: String,
    pub total: u64,
    pub rate_per_s: f64,
    /// Processor time in seconds that the kernel counted; null where it could not be read.
    pub cpu_s: Option<f64>,
    /// Time from the start of the work to its end.
    pub span_ns: Option<Nanos>,
    /// Length of the windows of `proof`.
    pub window_ns: Option<Nanos>,
    pub proof: Vec<LoadProof>,
    /// Longest time without a look at it, if that was longer than some windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_ns: Option<Nanos>,
    /// True if it loaded in every window.
    pub held: bool,
    /// Reason why it did not; `""` if it did.
    pub why: String,
    /// Version of onbeat that ran it; `""` for a program of the user's.
    pub version: String,
}

/// Lowest count of a window, and the lowest that counts as loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadProof {
    /// Counted quantity, with `per s` for a rate.
    pub what: String,
    /// Lowest count of a window; null if no window was long enough to be judged.
    pub value: Option<f64>,
    pub floor: f64,
}
