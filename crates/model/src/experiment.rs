//! Record of an experiment, `onbeat.experiment/1`: the plan fixed before its first segment, and
//! each measured segment. All decisions follow from it, so that `prove --resume` continues an
//! interrupted experiment from here.

use serde::{Deserialize, Serialize};

use crate::text::excerpt;
use crate::units::Nanos;

/// The name and version of the JSON.
pub const EXPERIMENT_SCHEMA: &str = "onbeat.experiment/1";

/// An experiment, complete or as of its last segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentRun {
    pub schema: String,
    pub plan: ExperimentPlan,
    /// Kernel at the start of the experiment.
    pub kernel: String,
    /// Run without the change, for the length of the segments; it decides nothing.
    pub pilot: Option<ExperimentSegment>,
    /// Runs after a switch to each side that set the settling time, the one with the change first;
    /// empty if the settling time was given. They decide nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trial: Vec<SettleRun>,
    /// Segments in the order in which they were measured.
    pub segments: Vec<ExperimentSegment>,
}

/// Plan of an experiment, fixed before the first segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentPlan {
    /// Difference between B and A, in words.
    pub change: String,
    /// Settings of B: `RULE=VALUE` each, or `RULE` for the value that the rule asks for; empty if a
    /// script switches.
    pub settings: Vec<String>,
    /// The program that is called with `a` and `b`; `""` for none.
    pub script: String,
    /// Latency from which a wake-up counts as late.
    pub limit_ns: Nanos,
    /// Seed of the coin of each pair.
    pub seed: u64,
    /// Length of a segment; 0 until the pilot has set it.
    pub segment_ns: Nanos,
    /// Time excluded after each switch: as given, or as the trial found it, and until then the
    /// minimum.
    pub settle_ns: Nanos,
    /// Length of each run of the settling trial; 0 for none.
    pub settle_trial_ns: Nanos,
    /// Number of valid pairs after which it ends without a verdict.
    pub most_pairs: u32,
    /// E-value at which it ends with a verdict.
    pub stop_at: f64,
    /// E-value at which it ends for the change, if that takes more than `stop_at`; it ends without
    /// a verdict as soon as neither can be reached any more. 0 for the same.
    pub win_at: f64,
    /// Rate ratios between 1 / this and this count as no difference.
    pub rate_margin: f64,
    /// Factor of a grown median that counts against the change, if it also grows by `p50_ns`.
    pub p50_factor: f64,
    /// Least growth of the median that counts against the change, with `p50_factor`.
    pub p50_ns: Nanos,
    /// Share of its work without the change below which a load counts against the change.
    pub load_share: f64,
    /// Measured CPUs.
    pub cpus: String,
    /// SPECs of the load, joined with commas; `""` for none.
    pub load: String,
    /// CPUs of the load; `""` for none.
    pub load_cpus: String,
    /// Interval of the measuring threads.
    pub interval_ns: Nanos,
    /// Priority of the measuring threads, if one was given.
    pub priority: Option<u32>,
    /// Running threads whose cycles are counted instead of wake-ups of measuring threads, against
    /// the limit as their deadline; `""` for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub victim: String,
    /// Program, with arguments, that is started for each segment and followed likewise; or empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// Maximum time of a call of the script; null without one, and in records from before the
    /// field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_time_ns: Option<Nanos>,
    /// Length of the run before the first pair; null without one, and in records from before the
    /// field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<Nanos>,
}

/// Unit that is counted as late in an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedUnit {
    #[default]
    WakeUps,
    /// Cycles of followed threads, from the release to the sleep for the next one.
    Cycles,
}

impl CountedUnit {
    /// Unit of a plan: wake-ups of measuring threads if no thread is followed, else cycles.
    pub const fn of(victim: &str, program: &[String]) -> CountedUnit {
        if victim.is_empty() && program.is_empty() { CountedUnit::WakeUps } else { CountedUnit::Cycles }
    }

    pub const fn one(self) -> &'static str {
        match self {
            CountedUnit::WakeUps => "wake-up",
            CountedUnit::Cycles => "cycle",
        }
    }

    pub const fn many(self) -> &'static str {
        match self {
            CountedUnit::WakeUps => "wake-ups",
            CountedUnit::Cycles => "cycles",
        }
    }
}

impl ExperimentPlan {
    pub fn counted(&self) -> CountedUnit {
        CountedUnit::of(&self.victim, &self.program)
    }
}

/// Side of an experiment: without the change (A), or with it (B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExperimentArm {
    #[default]
    A,
    B,
}

impl ExperimentArm {
    /// `a` or `b`.
    pub const fn name(self) -> &'static str {
        match self {
            ExperimentArm::A => "a",
            ExperimentArm::B => "b",
        }
    }
}

/// A run that begins with the switch to its arm, and the time until it resembled its second half.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettleRun {
    pub arm: ExperimentArm,
    /// Bundle, below the experiment's folder; `""` without one.
    pub bundle: String,
    /// Time for which its measurements altered; null if unknown.
    pub altered_ns: Option<Nanos>,
    /// True if they altered for as long as that could be seen.
    pub unsettled: bool,
    /// Reason why the time is unknown; `""` if it is known.
    pub why: String,
}

/// One run of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentSegment {
    /// Pair to which it belongs, from 0.
    pub pair: u32,
    pub arm: ExperimentArm,
    /// True if it counts: its run was valid and its load ran all the time.
    pub valid: bool,
    /// Reason why it does not count; `""` if it does.
    pub why: String,
    /// Bundle, below the experiment's folder; `""` without one.
    pub bundle: String,
    /// Time from the start of the switch to the start of the segment, excluded.
    pub settled_ns: Nanos,
    /// Interrupts that occurred during it and were not where its arm has them when it began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub astray: Vec<u32>,
    /// Measured time.
    pub observed_ns: Nanos,
    /// Wake-ups of all CPUs together.
    pub samples: u64,
    /// Wake-ups that reached the limit.
    pub late: u64,
    /// Seconds in which a wake-up reached the limit, in its first half and in its second.
    pub late_blocks: [u64; 2],
    pub p50_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// Work of each load.
    pub loads: Vec<SegmentLoad>,
}

/// Work of one load in a segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentLoad {
    pub spec: String,
    /// Rate in the load's unit; null if its work is not counted.
    pub rate_per_s: Option<f64>,
}

/// Maximum number of pairs of an experiment.
const MOST_PAIRS: u32 = 10_000;

impl ExperimentRun {
    /// Checks that the plan and the pairs are in range: a record may come from any source.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        let above_one = |factor: f64| factor > 1.0 && factor.is_finite();
        if ![plan.stop_at, plan.rate_margin, plan.p50_factor].into_iter().all(above_one)
            || !(plan.win_at == 0.0 || above_one(plan.win_at))
            || !(0.0..1.0).contains(&plan.load_share)
        {
            return Err("invalid rules: a level or a margin is out of range".into());
        }
        let spans = [plan.segment_ns, plan.settle_ns, plan.settle_trial_ns];
        let is_negative = spans.iter().any(|span| span.0 < 0);
        let is_none = [plan.script_time_ns, plan.warm_up_ns].into_iter().flatten().any(|span| span.0 <= 0);
        if is_negative || is_none || plan.interval_ns.0 <= 0 || plan.limit_ns.0 <= 0 {
            return Err("a span of its plan is out of range".into());
        }
        if plan.most_pairs > MOST_PAIRS || self.segments.iter().any(|segment| segment.pair >= MOST_PAIRS) {
            return Err(format!("it has more than {MOST_PAIRS} pairs"));
        }
        Ok(())
    }
}

/// Reads a record; refuses other schemas.
///
/// # Errors
/// The fault in the record.
pub fn parse(bytes: &[u8]) -> Result<ExperimentRun, String> {
    let run: ExperimentRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is not an experiment: {}", excerpt(&error.to_string())))?;
    match run.schema.as_str() {
        EXPERIMENT_SCHEMA => run.check().map(|()| run),
        other => {
            Err(format!("its schema is '{}', but this onbeat reads {EXPERIMENT_SCHEMA}", excerpt(other)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> ExperimentRun {
        let plan = ExperimentPlan {
            stop_at: 20.0,
            rate_margin: 2.0,
            p50_factor: 1.1,
            load_share: 0.8,
            limit_ns: Nanos(1),
            interval_ns: Nanos(1),
            seed: u64::MAX,
            ..ExperimentPlan::default()
        };
        ExperimentRun { schema: EXPERIMENT_SCHEMA.into(), plan, ..ExperimentRun::default() }
    }

    #[test]
    fn rules_that_nobody_could_have_fixed_are_refused() {
        let refused = |edit: &dyn Fn(&mut ExperimentRun)| {
            let mut run = run();
            edit(&mut run);
            run.check().is_err()
        };
        assert!(!refused(&|_| {}));
        assert!(refused(&|run| run.plan.win_at = f64::INFINITY) && !refused(&|run| run.plan.win_at = 40.0));
        assert!(refused(&|run| run.plan.stop_at = f64::NAN) && refused(&|run| run.plan.rate_margin = 1.0));
        assert!(refused(&|run| run.plan.load_share = -1.0) && refused(&|run| run.plan.settle_ns = Nanos(-1)));
        assert!(
            refused(&|run| run.plan.limit_ns = Nanos(0)) && refused(&|run| run.plan.most_pairs = u32::MAX)
        );
        assert!(refused(&|run| run.plan.script_time_ns = Some(Nanos(0))));
        assert!(refused(&|run| run.plan.warm_up_ns = Some(Nanos(-1))));
        let far = ExperimentSegment { pair: u32::MAX, ..ExperimentSegment::default() };
        assert!(refused(&|run| run.segments = vec![far.clone()]));
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let segment = ExperimentSegment { arm: ExperimentArm::B, late: 7, ..ExperimentSegment::default() };
        let run = ExperimentRun { segments: vec![segment], ..run() };
        let text = serde_json::to_string(&run).unwrap();
        assert!(text.contains("\"arm\":\"b\""), "{text}");
        assert_eq!(parse(text.as_bytes()), Ok(run));
    }

    #[test]
    fn what_is_no_record_of_this_version_is_refused() {
        for text in ["", "{}", "[]", "{\"schema\":\"onbeat.experiment/2\"}", "{\"schema\":1}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
