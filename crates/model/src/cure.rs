//! Record of a cure, `onbeat.cure/1`: its plan, and each run, hunt and step. The next move follows
//! from it alone, so that `cure --resume` continues an interrupted cure from here; at the end it is
//! the answer.

use serde::{Deserialize, Serialize};

use crate::experiment::CountedUnit;
use crate::setting::Risk;
use crate::text::excerpt;
use crate::units::{Nanos, named_cpus};

/// The name and version of the JSON.
pub const CURE_SCHEMA: &str = "onbeat.cure/1";

/// A cure, complete or as of its last move.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureRun {
    pub schema: String,
    pub limit_ns: Nanos,
    /// True if a run that began after the last change supports the limit for the horizon.
    pub held: bool,
    /// `held`, `no-candidate`, `time`, `no-gain` or `signal`; `""` while it runs.
    pub ended: String,
    /// Reason for the end, in words.
    pub why: String,
    /// Changes that were tried, in order.
    pub steps: Vec<CureStep>,
    /// Remaining causes of lost time, with what a change would take.
    pub remaining: Vec<CureRemaining>,
    /// Faults that `check` finds in the followed program, for people to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program_findings: Vec<CureRemaining>,
    pub plan: CurePlan,
    /// Kernel at the start of the cure.
    pub kernel: String,
    /// Boot at the start of the cure.
    pub boot: String,
    /// Time that it took, without interruptions.
    pub spent_ns: Nanos,
    /// Runs without recording, which decide.
    pub runs: Vec<CureCleanRun>,
    /// Runs with recording, which attribute the time and decide nothing.
    pub hunts: Vec<CureHunt>,
}

/// Plan of a cure, fixed before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurePlan {
    pub limit_ns: Nanos,
    /// Time for which the limit is to be supported.
    pub horizon_ns: Nanos,
    /// Maximum time for the whole cure.
    pub at_most_ns: Nanos,
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
    /// Length of the run before the first change and after each that is kept.
    pub look_ns: Nanos,
    /// Length of the first hunt.
    pub hunt_ns: Nanos,
    /// Length of a segment of an experiment; 0 if the run before it sets the length.
    pub segment_ns: Nanos,
    /// Time excluded after each switch; the minimum if a trial sets it.
    pub settle_ns: Nanos,
    /// Length of each run of that trial; 0 for none.
    pub settle_trial_ns: Nanos,
    pub seed: u64,
    /// True if changes may be tried that cost others something.
    pub yes: bool,
    /// Running threads whose cycles are counted instead of wake-ups of measuring threads, as in
    /// [`ExperimentPlan`](crate::experiment::ExperimentPlan); `cpus` is then where they run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub victim: String,
    /// Program, with arguments, that is started and followed likewise; or empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
}

impl CurePlan {
    pub fn counted(&self) -> CountedUnit {
        CountedUnit::of(&self.victim, &self.program)
    }
}

/// A run without recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureCleanRun {
    /// Path below the cure's folder.
    pub bundle: String,
    /// Number of changes that had been kept when it began.
    pub changes: usize,
    /// True if it may support the limit: three horizons long, ended by the first late wake-up.
    pub long: bool,
    pub valid: bool,
    /// Reason why it is not valid; `""` if it is.
    pub why: String,
    pub observed_ns: Nanos,
    pub samples: u64,
    pub late: u64,
    pub p50_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// Verdict of `bounds` on a long run: `supported`, `failed`, `inconclusive`; `""` elsewhere.
    pub verdict: String,
    /// Evidence for the verdict, in words.
    pub said: String,
}

impl CureCleanRun {
    /// True if it counts: it is valid, or it was to support the limit and something was late in it,
    /// which holds regardless of the fault that spoiled it.
    pub fn counts(&self) -> bool {
        self.valid || self.is_late_and_spoiled()
    }

    /// True if something was late in a run that was to support the limit and was spoiled.
    pub fn is_late_and_spoiled(&self) -> bool {
        !self.valid && self.long && self.late > 0
    }
}

/// A run with recording, and the changes to try against its culprits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureHunt {
    pub bundle: String,
    /// Number of changes that had been kept when it began.
    pub changes: usize,
    /// Length of the hunt.
    pub length_ns: Nanos,
    /// Culprits, those that took most time of late wake-ups first.
    pub culprits: Vec<CureCulprit>,
    /// Number of late wake-ups that it explained.
    pub spikes: u64,
    /// Time of these wake-ups that no event accounts for.
    pub unexplained_ns: Nanos,
    /// Latency of these wake-ups, added up.
    pub latency_ns: Nanos,
}

/// A cause of lost time in late wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureCulprit {
    pub name: String,
    /// Rule that knows it; `""` for none.
    pub rule: String,
    /// Time that it took of late wake-ups, added up.
    pub lost_ns: Nanos,
    /// Number of late wake-ups in which it has a part.
    pub spikes: u64,
    /// Late wake-ups of which it is the largest part, or which would have been in time without it;
    /// null if unknown, because the hunt had more of them than it kept.
    pub decisive: Option<u64>,
    /// Changes in the order in which they are to be tried.
    pub candidates: Vec<CureCandidate>,
    /// Further remedies, which are not tried.
    pub left: Vec<CureRemaining>,
}

/// A change that may cure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureCandidate {
    /// Rules, in the order in which they are set.
    pub rules: Vec<String>,
    /// Threads of programs that are to run elsewhere.
    pub threads: Vec<CureThread>,
    /// Settings, `KEY: OLD -> NEW` each.
    pub changes: Vec<String>,
    pub risk: Risk,
}

/// A program's thread that is to run elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureThread {
    pub tid: u32,
    /// Start in ticks since boot, which distinguishes it from a later thread with its number.
    pub start: u64,
    pub comm: String,
    pub cpus: String,
}

impl Default for CureCandidate {
    fn default() -> CureCandidate {
        CureCandidate { rules: Vec::new(), threads: Vec::new(), changes: Vec::new(), risk: Risk::Low }
    }
}

impl CureCandidate {
    /// Name in texts.
    pub fn name(&self) -> String {
        let moved =
            self.threads.iter().map(|one| format!("{} ({}) to {}", one.comm, one.tid, named_cpus(&one.cpus)));
        self.rules.iter().cloned().chain(moved).collect::<Vec<_>>().join(" ")
    }

    /// True if the other sets everything that this one sets: the same rules and threads, or the
    /// same changes, which two rules may plan.
    pub fn is_within(&self, other: &CureCandidate) -> bool {
        let has_thread = |own: &CureThread| {
            other.threads.iter().any(|theirs| (theirs.tid, theirs.start) == (own.tid, own.start))
        };
        let same_rules = self.rules.iter().all(|rule| other.rules.contains(rule));
        let same_changes =
            !self.changes.is_empty() && self.changes.iter().all(|change| other.changes.contains(change));
        self.threads.iter().all(has_thread) && (same_rules || same_changes)
    }

    /// True if both set the same.
    pub fn sets_the_same(&self, other: &CureCandidate) -> bool {
        self.is_within(other) && other.is_within(self)
    }
}

/// A change that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureStep {
    /// Name of the culprit.
    pub culprit: String,
    /// Rules and threads of the change, in words.
    pub change: String,
    /// `better`, `worse`, `equivalent` or `inconclusive`; `""` while it is measured.
    pub verdict: String,
    pub kept: bool,
    /// Reason why it was kept or not.
    pub why: String,
    /// Time excluded after its switches, in words; `""` for the usual.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settling: String,
    /// Last run without the change, below the cure's folder.
    pub before: String,
    /// Last run with the change, below the cure's folder.
    pub after: String,
    /// The hunt that found the culprit, from 0.
    pub hunt: usize,
    pub candidate: CureCandidate,
    /// Folder of its experiment, below the cure's.
    pub experiment: String,
    /// Folder of the earlier experiment in which it won for the first time, or `""`.
    pub screened: String,
    /// E-value that it had to reach.
    pub level: f64,
    /// E-value that it reached.
    pub e_value: f64,
    /// Rate of late wake-ups with the change over that without it.
    pub rate_ratio: Option<f64>,
    /// Confidence interval of `rate_ratio`.
    pub ci: Option<[f64; 2]>,
    /// Number of valid pairs.
    pub pairs: u64,
    /// Pairs with fewer late wake-ups with the change.
    pub wins: u64,
    /// Late wake-ups without and with the change.
    pub late: [u64; 2],
    /// Id of its entry in the journal; `""` if it was not kept.
    pub entry: String,
}

/// A cause of lost time that was not changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureRemaining {
    pub culprit: String,
    /// `reboot`, `kernel`, `hardware` or `decision`.
    pub needs: String,
    pub what: String,
}

/// Maximum number of steps, of runs and of hunts of a cure.
const MOST: usize = 10_000;

impl CureRun {
    /// Number of changes that are kept so far.
    pub fn kept_changes(&self) -> usize {
        self.steps.iter().filter(|step| step.kept).count()
    }

    /// Checks the spans, the lengths and the folders: a record may come from any source.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        let positive =
            [plan.limit_ns, plan.horizon_ns, plan.at_most_ns, plan.interval_ns, plan.look_ns, plan.hunt_ns];
        let others = [plan.segment_ns, plan.settle_ns, plan.settle_trial_ns];
        if positive.iter().any(|span| span.0 <= 0) || others.iter().any(|span| span.0 < 0) {
            return Err("a span of its plan is out of range".into());
        }
        if [self.steps.len(), self.runs.len(), self.hunts.len()].into_iter().any(|length| length > MOST) {
            return Err(format!("it has more than {MOST} steps"));
        }
        let outside = |path: &str| path.starts_with('/') || path.split('/').any(|part| part == "..");
        let paths =
            self.steps.iter().flat_map(|step| [&step.experiment, &step.screened, &step.before, &step.after]);
        let paths = paths.chain(self.runs.iter().map(|run| &run.bundle));
        if paths.chain(self.hunts.iter().map(|hunt| &hunt.bundle)).any(|path| outside(path)) {
            Err("it names a folder outside of its own".into())
        } else {
            Ok(())
        }
    }
}

/// Reads a record; refuses other schemas.
///
/// # Errors
/// The fault in the record.
pub fn parse(bytes: &[u8]) -> Result<CureRun, String> {
    let run: CureRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is not a cure: {}", excerpt(&error.to_string())))?;
    match run.schema.as_str() {
        CURE_SCHEMA => run.check().map(|()| run),
        other => Err(format!("its schema is '{}', but this onbeat reads {CURE_SCHEMA}", excerpt(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> CureRun {
        let second = Nanos::SECOND;
        let plan = CurePlan {
            limit_ns: Nanos(1),
            horizon_ns: second,
            at_most_ns: second,
            interval_ns: Nanos(1),
            look_ns: second,
            hunt_ns: second,
            ..CurePlan::default()
        };
        CureRun { schema: CURE_SCHEMA.into(), plan, ..CureRun::default() }
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let candidate = CureCandidate { rules: vec!["swap".into()], ..CureCandidate::default() };
        let step = CureStep { candidate, ci: Some([0.1, 0.5]), kept: true, ..CureStep::default() };
        let run = CureRun { steps: vec![step], ..run() };
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!((parse(text.as_bytes()), run.kept_changes()), (Ok(run.clone()), 1));
    }

    #[test]
    fn what_is_no_record_of_this_version_is_refused() {
        for text in ["", "{}", "[]", "{\"schema\":\"onbeat.cure/2\"}", "{\"schema\":\"onbeat.cure/1\"}"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        let refused = |edit: &dyn Fn(&mut CureRun)| {
            let mut run = run();
            edit(&mut run);
            run.check().is_err()
        };
        assert!(!refused(&|_| {}) && refused(&|run| run.plan.horizon_ns = Nanos(0)));
        assert!(
            refused(&|run| run.runs = vec![CureCleanRun { bundle: "../x".into(), ..Default::default() }])
        );
        assert!(refused(&|run| run.steps = vec![CureStep { after: "/etc".into(), ..Default::default() }]));
    }
}
