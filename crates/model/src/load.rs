//! What ran beside a measurement, as `run.json` and `load --json` have it.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// One load, and whether it is known to have loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadRun {
    /// Its kind: `mem`.
    pub name: String,
    /// As it can be asked for again: `mem:2x1G`.
    pub spec: String,
    /// Its processes, or groups of them.
    pub count: u32,
    /// The CPUs that it might use, as a list.
    pub cpus: String,
    /// What `total` counts; `""` for a program of the user's.
    pub unit: String,
    pub total: u64,
    pub rate_per_s: f64,
    /// Processor time in seconds that the kernel counted; null where it could not be read.
    pub cpu_s: Option<f64>,
    /// From when the work began to its end.
    pub span_ns: Option<Nanos>,
    /// The length of the windows that `proof` is about.
    pub window_ns: Option<Nanos>,
    pub proof: Vec<LoadProof>,
    /// The longest time for which nothing looked at it, where that was longer than some windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_ns: Option<Nanos>,
    /// Whether it loaded in every window.
    pub held: bool,
    /// Why not; `""` if it did.
    pub why: String,
    /// The version of onbeat that ran it; `""` for a program of the user's.
    pub version: String,
}

/// The least that was counted in a window, and the least that counts as loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadProof {
    /// What is counted, with `per s` where it is a rate.
    pub what: String,
    /// Null where no window was long enough to be judged.
    pub value: Option<f64>,
    pub floor: f64,
}
