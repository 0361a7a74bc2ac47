//! The record of a cure, `onbeat.cure/1`: what was fixed before it began, each run, hunt and step.
//! What is done next follows from it alone, so that a cure that was interrupted is gone on with
//! from here (`cure --resume`); at the end it is the answer.

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
    /// Whether a run that began after the last change supports the limit for the horizon.
    pub held: bool,
    /// `held`, `no-candidate`, `time`, `no-gain` or `signal`; `""` while it goes on.
    pub ended: String,
    /// The same in words.
    pub why: String,
    /// Changes that were tried, in their order.
    pub steps: Vec<CureStep>,
    /// What takes time and was not changed, with what that would take.
    pub remaining: Vec<CureRemaining>,
    /// What `check` finds wrong in the program that was followed, for people to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program_findings: Vec<CureRemaining>,
    pub plan: CurePlan,
    /// The kernel and the boot on which it was begun.
    pub kernel: String,
    pub boot: String,
    /// How long it took, interruptions left out.
    pub spent_ns: Nanos,
    /// Runs without recording, which decide.
    pub runs: Vec<CureCleanRun>,
    /// Runs with recording, which say whose time it was and decide nothing.
    pub hunts: Vec<CureHunt>,
}

/// What is fixed before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurePlan {
    pub limit_ns: Nanos,
    /// For so long the limit is to be supported.
    pub horizon_ns: Nanos,
    /// All of it may take so long.
    pub at_most_ns: Nanos,
    /// Measured CPUs.
    pub cpus: String,
    /// The SPECs of the load, joined with commas, and its CPUs; `""` for none.
    pub load: String,
    pub load_cpus: String,
    /// Of the measuring threads: interval, and priority where one was asked for.
    pub interval_ns: Nanos,
    pub priority: Option<u32>,
    /// The length of the run before the first change and after each that is kept.
    pub look_ns: Nanos,
    /// The length of the first hunt.
    pub hunt_ns: Nanos,
    /// The length of a segment of an experiment; 0 where the run before it tells it.
    pub segment_ns: Nanos,
    /// Left out behind each switch; the least where a trial tells it.
    pub settle_ns: Nanos,
    /// The length of each run of that trial; 0 for none.
    pub settle_trial_ns: Nanos,
    pub seed: u64,
    /// Whether changes may be tried that cost others something.
    pub yes: bool,
    /// Whose cycles are counted in place of the measuring threads' wake-ups, as in
    /// [`ExperimentPlan`](crate::experiment::ExperimentPlan); `cpus` is where its threads run then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub victim: String,
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
    /// Below the cure's folder.
    pub bundle: String,
    /// How many changes had been kept when it began.
    pub changes: usize,
    /// Whether it is one that may support the limit: three horizons long, ended by the first late
    /// wake-up.
    pub long: bool,
    pub valid: bool,
    /// Why not; `""` if it is.
    pub why: String,
    pub observed_ns: Nanos,
    pub samples: u64,
    pub late: u64,
    pub p50_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// What `bounds` says of a long one: `supported`, `failed`, `inconclusive`; `""` elsewhere.
    pub verdict: String,
    /// What that rests on, in words.
    pub said: String,
}

impl CureCleanRun {
    /// Whether it says something: it was valid, or it was to support the limit and something was
    /// late in it, which is so whatever else spoiled it.
    pub fn counts(&self) -> bool {
        self.valid || self.is_late_and_spoiled()
    }

    /// Whether something was late in a run that was to support the limit, and it was spoiled.
    pub fn is_late_and_spoiled(&self) -> bool {
        !self.valid && self.long && self.late > 0
    }
}

/// A run with recording, and what may be tried against what it found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureHunt {
    pub bundle: String,
    /// How many changes had been kept when it began.
    pub changes: usize,
    /// Its length.
    pub length_ns: Nanos,
    /// Those that took most time of late wake-ups first.
    pub culprits: Vec<CureCulprit>,
    /// Late wake-ups that it took apart, and what no event accounts for.
    pub spikes: u64,
    pub unexplained_ns: Nanos,
    pub latency_ns: Nanos,
}

/// What took time of late wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureCulprit {
    pub name: String,
    /// The rule that knows it; `""` for none.
    pub rule: String,
    /// What it took of late wake-ups, and how many of them it is in.
    pub lost_ns: Nanos,
    pub spikes: u64,
    /// Late wake-ups of which it is the largest part, or which would have been in time without it;
    /// null where that is not known, because the hunt had more of them than it kept.
    pub decisive: Option<u64>,
    /// The first to be tried first.
    pub candidates: Vec<CureCandidate>,
    /// What would cure it too, and is not tried.
    pub left: Vec<CureRemaining>,
}

/// A change that may cure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureCandidate {
    /// Its rules, in the order in which they are set.
    pub rules: Vec<String>,
    /// Threads of programs that are to run elsewhere.
    pub threads: Vec<CureThread>,
    /// What is set, `KEY: OLD -> NEW` each.
    pub changes: Vec<String>,
    pub risk: Risk,
}

/// A program's thread that is to run elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureThread {
    pub tid: u32,
    /// In ticks since boot, which tells it from a later one with its number.
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
    /// As people read it.
    pub fn name(&self) -> String {
        let moved =
            self.threads.iter().map(|one| format!("{} ({}) to {}", one.comm, one.tid, named_cpus(&one.cpus)));
        self.rules.iter().cloned().chain(moved).collect::<Vec<_>>().join(" ")
    }

    /// Whether all that this one sets is set by the other as well: the same rules and threads, or
    /// the same changes, which two rules may plan.
    pub fn is_within(&self, other: &CureCandidate) -> bool {
        let has_thread = |own: &CureThread| {
            other.threads.iter().any(|theirs| (theirs.tid, theirs.start) == (own.tid, own.start))
        };
        let same_rules = self.rules.iter().all(|rule| other.rules.contains(rule));
        let same_changes =
            !self.changes.is_empty() && self.changes.iter().all(|change| other.changes.contains(change));
        self.threads.iter().all(has_thread) && (same_rules || same_changes)
    }

    /// Whether both set the same.
    pub fn sets_the_same(&self, other: &CureCandidate) -> bool {
        self.is_within(other) && other.is_within(self)
    }
}

/// A change that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureStep {
    /// Against which culprit.
    pub culprit: String,
    /// Its rules, in words.
    pub change: String,
    /// `better`, `worse`, `equivalent` or `inconclusive`; `""` while it is measured.
    pub verdict: String,
    pub kept: bool,
    /// Why it was kept, or was not.
    pub why: String,
    /// What was left out behind its switches, in words; `""` for the usual.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settling: String,
    /// The last run without it and the last with it, below the cure's folder.
    pub before: String,
    pub after: String,
    /// The hunt that found the culprit, from 0.
    pub hunt: usize,
    pub candidate: CureCandidate,
    /// The folder of its experiment, below the cure's.
    pub experiment: String,
    /// That of the one before, in which it won for the first time; `""` while it has not.
    pub screened: String,
    /// The e-value that it had to reach, and the one that it reached.
    pub level: f64,
    pub e_value: f64,
    /// The rate of late wake-ups with it over that without it, and its interval.
    pub rate_ratio: Option<f64>,
    pub ci: Option<[f64; 2]>,
    /// Pairs that count, those with fewer late wake-ups with it, late wake-ups without and with it.
    pub pairs: u64,
    pub wins: u64,
    pub late: [u64; 2],
    /// The journal's entry; `""` where it was not kept.
    pub entry: String,
}

/// What takes time and was not changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CureRemaining {
    pub culprit: String,
    /// `reboot`, `kernel`, `hardware` or `decision`.
    pub needs: String,
    pub what: String,
}

/// No cure has more of anything.
const MOST: usize = 10_000;

impl CureRun {
    /// How many changes are kept so far.
    pub fn kept(&self) -> usize {
        self.steps.iter().filter(|step| step.kept).count()
    }

    /// Whether it was fixed so by anyone: a record may come from anywhere.
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
        match paths.chain(self.hunts.iter().map(|hunt| &hunt.bundle)).any(|path| outside(path)) {
            true => Err("it names a folder outside its own".into()),
            false => Ok(()),
        }
    }
}

/// Reads a record; one of a newer schema is refused.
///
/// # Errors
/// What is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<CureRun, String> {
    let run: CureRun = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is no cure: {}", excerpt(&error.to_string())))?;
    match run.schema.as_str() {
        CURE_SCHEMA => run.check().map(|()| run),
        other => Err(format!("its schema is '{}', and this onbeat reads {CURE_SCHEMA}", excerpt(other))),
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
        assert_eq!((parse(text.as_bytes()), run.kept()), (Ok(run.clone()), 1));
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
