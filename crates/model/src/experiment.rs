//! The record of an experiment, `onbeat.experiment/1`: what was fixed before its first segment, and
//! each segment that was measured. All that is decided follows from it, so that an experiment that
//! was interrupted is gone on with from here (`prove --resume`).

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
    /// The kernel on which it was begun.
    pub kernel: String,
    /// The run without the change from which the length of the segments follows; it decides
    /// nothing.
    pub pilot: Option<ExperimentSegment>,
    /// The runs behind a switch to each side from which the settling time follows, the one with the
    /// change first; none where that was asked for. They decide nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trial: Vec<SettleRun>,
    /// In the order in which they were measured.
    pub segments: Vec<ExperimentSegment>,
}

/// What is fixed before the first segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentPlan {
    /// What B has and A has not, in words.
    pub change: String,
    /// The settings of B, `RULE=VALUE` each, or `RULE` for what the rule asks for; none where a
    /// script switches.
    pub settings: Vec<String>,
    /// The program that is called with `a` and `b`; `""` for none.
    pub script: String,
    /// Wake-ups of this latency or more are counted.
    pub limit_ns: Nanos,
    /// What the coin of each pair follows from.
    pub seed: u64,
    /// The length of a segment; 0 while the pilot has not told it.
    pub segment_ns: Nanos,
    /// Left out behind each switch: what was asked for, or what the trial has told, and until then
    /// the least.
    pub settle_ns: Nanos,
    /// The length of each run of the trial that tells it; 0 for none.
    pub settle_trial_ns: Nanos,
    /// Valid pairs after which it ends without a verdict.
    pub most_pairs: u32,
    /// The e-value at which it ends with one.
    pub stop_at: f64,
    /// The e-value at which it ends for the change, where that takes more: it ends without a
    /// verdict then as soon as neither can be reached any more. 0 for the same.
    pub win_at: f64,
    /// A rate ratio between 1 / this and this is no difference.
    pub rate_margin: f64,
    /// A median that grows by more than this factor and by more than this span is a reason against
    /// the change, and so is a load that does less than this share of its work.
    pub p50_factor: f64,
    pub p50_ns: Nanos,
    pub load_share: f64,
    /// Measured CPUs.
    pub cpus: String,
    /// The SPECs of the load, joined with commas, and its CPUs; `""` for none.
    pub load: String,
    pub load_cpus: String,
    /// Of the measuring threads: interval, and priority where one was asked for.
    pub interval_ns: Nanos,
    pub priority: Option<u32>,
    /// Whose cycles are counted in place of the measuring threads' wake-ups: threads that run
    /// already, or a program that is started for each segment, with its arguments; `""` and nothing
    /// for none. The limit is their deadline.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub victim: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// How long a call of the script may take, and the length of the run before the first pair;
    /// null in a record of before these were kept, and where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_time_ns: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<Nanos>,
}

/// What is late in an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedUnit {
    #[default]
    WakeUps,
    /// Of followed threads, from the release to the sleep for the next one.
    Cycles,
}

impl CountedUnit {
    /// Of a plan: where nobody is followed, wake-ups of measuring threads are counted.
    pub const fn of(victim: &str, program: &[String]) -> CountedUnit {
        match victim.is_empty() && program.is_empty() {
            true => CountedUnit::WakeUps,
            false => CountedUnit::Cycles,
        }
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

/// Without the change (A), or with it (B).
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

/// A run that begins with the switch to its arm, and how long it took to be like its second half.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettleRun {
    pub arm: ExperimentArm,
    /// The bundle, below the experiment's folder; `""` where there is none.
    pub bundle: String,
    /// How long what it measured altered; null where that is not known.
    pub altered_ns: Option<Nanos>,
    /// Whether it altered for as long as that could be seen.
    pub unsettled: bool,
    /// Why it is not known; `""` if it is.
    pub why: String,
}

/// One run of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentSegment {
    /// Which pair it belongs to, from 0.
    pub pair: u32,
    pub arm: ExperimentArm,
    /// Whether it counts: its run was valid and its load loaded.
    pub valid: bool,
    /// Why not; `""` if it does.
    pub why: String,
    /// The bundle, below the experiment's folder; `""` where there is none.
    pub bundle: String,
    /// From the beginning of the switch to its beginning: left out.
    pub settled_ns: Nanos,
    /// Interrupts that came during it, and were not where its arm has them when it began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub astray: Vec<u32>,
    /// How long it was measured.
    pub observed_ns: Nanos,
    /// Wake-ups of all CPUs together, and those that reached the limit.
    pub samples: u64,
    pub late: u64,
    /// Seconds in which one reached the limit, in its first half and in its second.
    pub late_blocks: [u64; 2],
    pub p50_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// What each load did.
    pub loads: Vec<SegmentLoad>,
}

/// What one load did in a segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentLoad {
    pub spec: String,
    /// Of its unit; null where its work is not counted.
    pub rate_per_s: Option<f64>,
}

/// No experiment has more pairs.
const MOST_PAIRS: u32 = 10_000;

impl ExperimentRun {
    /// Whether its rules are such that could have been fixed: a record may come from anywhere.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        let above_one = |factor: f64| factor > 1.0 && factor.is_finite();
        if ![plan.stop_at, plan.rate_margin, plan.p50_factor].into_iter().all(above_one)
            || !(plan.win_at == 0.0 || above_one(plan.win_at))
            || !(0.0..1.0).contains(&plan.load_share)
        {
            return Err("its rules are none: a level or a margin is out of range".into());
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

/// Reads a record; one of a newer schema is refused.
///
/// # Errors
/// What is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<ExperimentRun, String> {
    let run: ExperimentRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is no experiment: {}", excerpt(&error.to_string())))?;
    match run.schema.as_str() {
        EXPERIMENT_SCHEMA => run.check().map(|()| run),
        other => {
            Err(format!("its schema is '{}', and this onbeat reads {EXPERIMENT_SCHEMA}", excerpt(other)))
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
