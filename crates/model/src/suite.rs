//! The document of a suite, `onbeat.suite/1`, which is also what `suite --resume` goes on from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::excerpt;
use crate::units::{Cpu, Nanos};

/// The name and version of the JSON.
pub const SUITE_SCHEMA: &str = "onbeat.suite/1";

/// A suite, complete or as of its last phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteRun {
    pub schema: String,
    pub name: String,
    pub title: String,
    /// What the order of the phases follows from.
    pub seed: u64,
    /// Whether every phase was run.
    pub complete: bool,
    /// The wake-ups of each CPU in every phase, where `--phase` replaced those of the recipe.
    pub phase_samples: Option<u64>,
    /// The length of every phase, where `--phase` gives it.
    pub phase_ns: Option<Nanos>,
    /// What of the recipe makes its numbers comparable, as it was when the suite was begun: by what
    /// it is called, `interval` or `phase idle`.
    pub recipe: BTreeMap<String, String>,
    /// The preemption models that are compared; empty where there is one.
    pub models: Vec<String>,
    /// The kernel with which it was begun.
    pub kernel: String,
    /// Measured CPUs, and those of the load; `""` in documents that do not tell.
    pub cpus: String,
    pub load_cpus: String,
    /// Whether `--phase` made its phases shorter than the recipe's.
    pub shortened: bool,
    /// The limit that the recipe names.
    pub limit_ns: Option<Nanos>,
    /// In the order in which they were run; those of other suites (`--with`) behind.
    pub phases: Vec<SuitePhase>,
    /// Rows that this boot, or these flags, cannot have.
    pub left_out: Vec<SuiteLeftOut>,
    /// The last phase without a load minus the first; null where there are no two.
    pub drift: Option<SuiteDrift>,
}

/// A row that was not to be measured, and what to do for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteLeftOut {
    /// A phase's id, or what stands before its `/`.
    pub id: String,
    pub why: String,
}

/// One phase that was run, or why it was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuitePhase {
    /// `none/cpu`.
    pub id: String,
    /// The preemption model, as the run found it.
    pub model: String,
    /// The SPEC of its load; `""` for none.
    pub load: String,
    /// What was measured: `wake-ups` or `spin`.
    pub measure: String,
    /// What was set for it, as the recipe has it.
    pub settings: Vec<String>,
    /// The kernel: rows of another are kept apart.
    pub kernel: String,
    /// Whether it may be compared: the run was valid and its load loaded.
    pub valid: bool,
    /// Why not; `""` if it is.
    pub why: String,
    /// The bundle, below the suite's folder; `""` where there is none.
    pub bundle: String,
    /// Wake-ups of all CPUs together.
    pub samples: u64,
    pub p50_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub p9999_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// How long a real-time task that never sleeps was stopped, per CPU; empty where wake-ups were
    /// measured.
    pub stops: Vec<SuiteStop>,
    /// How long it is stopped in each period by what was set; null where wake-ups were measured.
    pub expected_ns: Option<Nanos>,
    /// What stops it: `fair server` or `throttling`; `""` where wake-ups were measured.
    pub stopped_by: String,
    /// The clock frequency of the first measured CPU after the phase.
    pub khz: Option<u64>,
    /// The highest temperature after the phase, in thousandths of a degree Celsius.
    pub temp_mc: Option<i64>,
}

/// The longest stop of each period of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteStop {
    pub cpu: Cpu,
    /// How many whole periods there were.
    pub periods: u64,
    pub median_ns: Nanos,
    pub max_ns: Nanos,
}

/// What the machine changed by while the suite ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteDrift {
    pub p50_ns: Nanos,
    pub max_ns: Nanos,
}

/// Reads a document; one of a newer schema is refused.
pub fn parse(bytes: &[u8]) -> Result<SuiteRun, String> {
    let suite: SuiteRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is no suite: {}", excerpt(&error.to_string())))?;
    match suite.schema.as_str() {
        SUITE_SCHEMA => Ok(suite),
        other => Err(format!("its schema is '{}', and this onbeat reads {SUITE_SCHEMA}", excerpt(other))),
    }
}
