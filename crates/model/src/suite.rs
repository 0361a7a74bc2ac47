//! Document of a suite, `onbeat.suite/1`, from which `suite --resume` continues.

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
    /// Seed of the order of the phases.
    pub seed: u64,
    /// True if every phase was run.
    pub complete: bool,
    /// Wake-ups per CPU in every phase, as set by `--phase`; null where the recipe decides.
    pub phase_samples: Option<u64>,
    /// Length of every phase, as set by `--phase`; null where the recipe decides.
    pub phase_ns: Option<Nanos>,
    /// Parts of the recipe that make its numbers comparable, as of the start of the suite, by name:
    /// `interval`, `phase idle`.
    pub recipe: BTreeMap<String, String>,
    /// Preemption models that are compared; empty if there is only one.
    pub models: Vec<String>,
    /// Kernel at the start of the suite.
    pub kernel: String,
    /// Measured CPUs; `""` in documents that do not state them.
    pub cpus: String,
    /// CPUs of the load; `""` in documents that do not state them.
    pub load_cpus: String,
    /// True if `--phase` made the phases shorter than the recipe's.
    pub shortened: bool,
    /// The limit that the recipe names.
    pub limit_ns: Option<Nanos>,
    /// Phases in the order in which they ran, followed by those of other suites (`--with`).
    pub phases: Vec<SuitePhase>,
    /// Rows that this boot or these flags cannot have.
    pub left_out: Vec<SuiteLeftOut>,
    /// Last phase without a load minus the first; null if there are fewer than two.
    pub drift: Option<SuiteDrift>,
}

/// A row that is not measured, and the remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteLeftOut {
    /// Id of a phase, or the part before its `/`.
    pub id: String,
    pub why: String,
}

/// One phase, or the reason why it was not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuitePhase {
    /// `none/cpu`.
    pub id: String,
    /// The preemption model, as the run found it.
    pub model: String,
    /// SPEC of its load; `""` for none.
    pub load: String,
    /// Kind of measurement: `wake-ups` or `spin`.
    pub measure: String,
    /// Settings of the phase, as the recipe states them.
    pub settings: Vec<String>,
    /// The kernel: rows of another are kept apart.
    pub kernel: String,
    /// True if the phase may be compared: the run was valid and its load ran all the time.
    pub valid: bool,
    /// Reason why it is not valid; `""` if it is.
    pub why: String,
    /// Bundle, below the suite's folder; `""` without one.
    pub bundle: String,
    /// Wake-ups of all CPUs together.
    pub samples: u64,
    pub p50_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub p9999_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// Stops of a real-time task that never sleeps, per CPU; empty where wake-ups were measured.
    pub stops: Vec<SuiteStop>,
    /// Stop in each period that the settings lead to; null where wake-ups were measured.
    pub expected_ns: Option<Nanos>,
    /// Mechanism of the stops: `fair server` or `throttling`; `""` where wake-ups were measured.
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
    /// Number of whole periods.
    pub periods: u64,
    pub median_ns: Nanos,
    pub max_ns: Nanos,
}

/// Drift of the machine over the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteDrift {
    pub p50_ns: Nanos,
    pub max_ns: Nanos,
}

/// Reads a document; refuses other schemas.
pub fn parse(bytes: &[u8]) -> Result<SuiteRun, String> {
    let suite: SuiteRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is not a suite: {}", excerpt(&error.to_string())))?;
    match suite.schema.as_str() {
        SUITE_SCHEMA => Ok(suite),
        other => Err(format!("its schema is '{}', but this onbeat reads {SUITE_SCHEMA}", excerpt(other))),
    }
}
