//! Decisions of a cure, which follow only from its record and the remaining time.
//!
//! Runs without recording decide; a hunt only identifies culprits. [`choice`] selects the changes
//! that may be tried, [`negligible`] excludes culprits, [`level`] is the evidence that a change
//! needs to be kept, and [`remaining`](remaining()) lists the remaining delays at the end.

pub mod choice;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod level;
pub mod negligible;
mod remaining;

pub use remaining::remaining;

use model::cure::{CureCandidate, CureCleanRun, CureCulprit, CureHunt, CurePlan, CureRun, CureStep};
use model::experiment::CountedUnit;
use model::units::Nanos;
use stats::pair::verdict::Verdict;

use crate::design::LEAST_PAIRS;
use crate::length::{LEAST, MOST};
use crate::proof::Proof;
use level::{fewest_pairs, level};
use negligible::is_negligible;

/// Reason for which a cure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CureEnd {
    /// The limit is supported for the horizon.
    Held,
    NoCandidate,
    Time,
    /// Two rounds kept no change.
    NoGain,
    Signal,
}

impl CureEnd {
    /// Name in the document.
    pub const fn name(self) -> &'static str {
        match self {
            CureEnd::Held => "held",
            CureEnd::NoCandidate => "no-candidate",
            CureEnd::Time => "time",
            CureEnd::NoGain => "no-gain",
            CureEnd::Signal => "signal",
        }
    }
}

/// Next move of a cure.
#[derive(Clone, Debug, PartialEq)]
pub enum CureMove {
    /// Measure for a while without recording.
    Look,
    /// Measure for three horizons without recording, until a late wake-up.
    Confirm,
    /// Measure for this time with recording.
    Hunt(Nanos),
    /// Prove a change.
    Try(Box<CureTry>),
    /// Keep the change of the last step.
    Keep,
    /// End, with the reason.
    End(CureEnd, String),
    /// Fail, because runs are spoiled repeatedly, for this reason.
    Spoiled(String),
}

/// Change to try.
#[derive(Clone, Debug, PartialEq)]
pub struct CureTry {
    pub culprit: String,
    pub hunt: usize,
    pub candidate: CureCandidate,
    /// Number of the change, from 1.
    pub number: u64,
    /// True if its experiment was begun already.
    pub resumed: bool,
    /// True if it has won once, and has to win again.
    pub again: bool,
}

/// Number of rounds without gain after which no further change is tried.
const ROUNDS: usize = 2;

/// Limit of consecutive runs that are spoiled, or inconclusive.
const SPOILED: usize = 3;

/// Length of a confirming run in horizons: if clean, it supports one per third of its length.
const HORIZONS: i64 = 3;

/// Time that a run takes in addition to measuring: threads, load, bundle.
pub const AROUND: Nanos = Nanos(2_000_000_000);

/// Time that a hunt takes in addition to measuring: it determines the cost of recording.
pub const AROUND_HUNT: Nanos = Nanos(15_000_000_000);

/// Additional time of a run without recording; for followed threads each run is a hunt.
pub const fn around(counted: CountedUnit) -> Nanos {
    match counted {
        CountedUnit::WakeUps => AROUND,
        CountedUnit::Cycles => AROUND_HUNT,
    }
}

/// Length of the run that may support the limit: blocks at its ends may be lost.
pub fn long_run(horizon: Nanos) -> Nanos {
    Nanos(horizon.0.saturating_mul(HORIZONS).saturating_add(3 * Nanos::SECOND.0))
}

/// Removes the last runs that were spoiled and inconclusive from a resumed record: their cause may
/// be repaired by now.
pub fn forget_spoiled(record: &mut CureRun) {
    while record.runs.last().is_some_and(|run| !run.counts()) {
        record.runs.pop();
    }
}

/// Next move, with this time left.
pub fn next(record: &CureRun, left: Nanos) -> CureMove {
    match unfinished(record) {
        Some(to_do) => to_do,
        None => fits(record, decide(record), left),
    }
}

/// Pending part of the last step, which takes precedence.
fn unfinished(record: &CureRun) -> Option<CureMove> {
    let last = record.steps.last()?;
    match last.verdict.as_str() {
        "" => Some(CureMove::Try(Box::new(CureTry {
            culprit: last.culprit.clone(),
            hunt: last.hunt,
            candidate: last.candidate.clone(),
            number: record.steps.len() as u64,
            resumed: last.experiment != last.screened,
            again: !last.screened.is_empty(),
        }))),
        "better" if !last.kept && last.why.is_empty() => Some(CureMove::Keep),
        _ => None,
    }
}

fn decide(record: &CureRun) -> CureMove {
    let changes = record.kept_changes();
    let runs: Vec<&CureCleanRun> = record.runs.iter().filter(|run| run.changes == changes).collect();
    match runs.last() {
        None => CureMove::Look,
        Some(last) if !last.counts() => spoiled(&runs, last),
        Some(last) if last.verdict == "supported" => CureMove::End(CureEnd::Held, String::new()),
        Some(last) if last.late > 0 => round(record, changes),
        Some(last) if !last.long => CureMove::Confirm,
        Some(last) => unsteady(&runs, last),
    }
}

/// Move after inconclusive runs without late wake-ups: a machine that altered during one may be
/// steady in the next, so it is repeated; the first late wake-up in any of them still counts.
fn unsteady(runs: &[&CureCleanRun], last: &CureCleanRun) -> CureMove {
    let says_nothing = |run: &&&CureCleanRun| run.long && run.late == 0;
    if runs.iter().rev().take_while(says_nothing).count() >= SPOILED {
        CureMove::End(
            CureEnd::NoCandidate,
            format!("nothing was late in the last run, but it does not support the limit: {}", last.said),
        )
    } else {
        CureMove::Confirm
    }
}

fn spoiled(runs: &[&CureCleanRun], last: &CureCleanRun) -> CureMove {
    let in_a_row = runs.iter().rev().take_while(|run| !run.counts()).count();
    if in_a_row >= SPOILED {
        CureMove::Spoiled(last.why.clone())
    } else if last.long {
        CureMove::Confirm
    } else {
        CureMove::Look
    }
}

/// Move after a late wake-up: the next candidate of this round, or the next round.
fn round(record: &CureRun, changes: usize) -> CureMove {
    let hunts: Vec<(usize, &CureHunt)> =
        record.hunts.iter().enumerate().filter(|(_, hunt)| hunt.changes == changes).collect();
    let Some(&(at, hunt)) = hunts.last() else { return CureMove::Hunt(record.plan.hunt_ns) };
    if let Some((culprit, candidate)) = candidate(record, at, hunt) {
        return CureMove::Try(Box::new(CureTry {
            culprit,
            hunt: at,
            candidate,
            number: record.steps.len() as u64 + 1,
            resumed: false,
            again: false,
        }));
    }
    let found = !hunt.culprits.is_empty();
    let more = |culprit: &&CureCulprit| untried(record, &culprit.candidates).is_some();
    match (hunts.len() >= ROUNDS, found) {
        (_, true) if !worth_it(hunt).any(|culprit| more(&culprit)) => {
            let why = if hunt.culprits.iter().any(|culprit| more(&culprit)) {
                "the remaining candidates are against culprits that took a negligible part of the time \
                     lost"
            } else {
                "nothing is left to try"
            };
            CureMove::End(CureEnd::NoCandidate, why.into())
        }
        (true, true) => {
            CureMove::End(CureEnd::NoGain, "two consecutive rounds found no proven change".into())
        }
        (true, false) => CureMove::End(
            CureEnd::NoGain,
            format!("{} are late, but none was late while tracing", record.plan.counted().many()),
        ),
        (false, true) => CureMove::Hunt(record.plan.hunt_ns),
        // A rare cause takes longer to be seen.
        (false, false) => CureMove::Hunt(Nanos(hunt.length_ns.0.saturating_mul(4))),
    }
}

/// Next candidate for the culprit of a round, which is the costliest one with any.
fn candidate(record: &CureRun, at: usize, hunt: &CureHunt) -> Option<(String, CureCandidate)> {
    let begun = record.steps.iter().find(|step| step.hunt == at).map(|step| &step.culprit);
    worth_it(hunt)
        .filter(|culprit| begun.is_none_or(|begun| *begun == culprit.name))
        .find_map(|culprit| Some((culprit.name.clone(), untried(record, &culprit.candidates)?.clone())))
}

/// Culprits against which changes are tried.
fn worth_it(hunt: &CureHunt) -> impl Iterator<Item = &CureCulprit> {
    hunt.culprits.iter().filter(|culprit| !is_negligible(culprit, hunt))
}

/// First candidate that was not tried.
fn untried<'a>(record: &CureRun, candidates: &'a [CureCandidate]) -> Option<&'a CureCandidate> {
    candidates.iter().find(|candidate| is_untried(record, candidate))
}

/// True if a candidate may still be tried: no other rule with the same changes was, and it contains
/// no change that made the machine worse.
fn is_untried(record: &CureRun, candidate: &CureCandidate) -> bool {
    let is_out = |step: &CureStep| {
        let tried = &step.candidate;
        tried.sets_the_same(candidate) || (step.verdict == "worse" && tried.is_within(candidate))
    };
    !record.steps.iter().any(is_out)
}

/// The move if there is time for it, else the end.
fn fits(record: &CureRun, wanted: CureMove, left: Nanos) -> CureMove {
    let plan = &record.plan;
    let around = around(plan.counted());
    let (takes, what) = match &wanted {
        CureMove::Look => (sum(plan.look_ns, around), "another run"),
        CureMove::Confirm => (sum(long_run(plan.horizon_ns), around), "the final run"),
        CureMove::Hunt(length) => {
            (sum(sum(*length, AROUND_HUNT), reserve(plan)), "another hunt and the final run")
        }
        CureMove::Try(tried) => (
            sum(least_experiment(record, tried.number), reserve(plan)),
            "another experiment and the final run",
        ),
        CureMove::Keep | CureMove::End(..) | CureMove::Spoiled(_) => return wanted,
    };
    if takes <= left {
        wanted
    } else {
        CureMove::End(CureEnd::Time, format!("the time is over: {what} would take {}", takes.spoken()))
    }
}

/// Time reserved for the runs after the last change.
pub fn reserve(plan: &CurePlan) -> Nanos {
    sum(sum(plan.look_ns, long_run(plan.horizon_ns)), Nanos(2 * around(plan.counted()).0))
}

fn sum(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

/// Time of the least number of pairs in which the n-th change wins twice.
fn least_experiment(record: &CureRun, number: u64) -> Nanos {
    let plan = &record.plan;
    let segment = match plan.segment_ns.0 {
        0 => LEAST.max(plan.look_ns.min(MOST)),
        asked => Nanos(asked),
    };
    let one = segment.0.saturating_add(plan.settle_ns.0).saturating_add(around(plan.counted()).0);
    let pairs = LEAST_PAIRS + fewest_pairs(level(number));
    let all = Nanos(one.saturating_mul(2).saturating_mul(i64::from(pairs)));
    sum(all, trial_length(plan.settle_trial_ns, plan.counted()))
}

/// Time of both runs of a trial; 0 if there is none.
pub fn trial_length(each: Nanos, counted: CountedUnit) -> Nanos {
    match each.0 {
        0 => Nanos(0),
        each => Nanos(each.saturating_add(around(counted).0).saturating_mul(2)),
    }
}

/// Records the result of a step's pairs. A change that is better for the first time must win again,
/// in new pairs; winning twice does not yet mean that it is kept.
pub fn proven(step: &mut CureStep, proof: &Proof, level: f64) {
    let first = step.screened.is_empty();
    step.verdict = proof.verdict.name().into();
    if first && proof.verdict == Verdict::Better {
        step.screened.clone_from(&step.experiment);
        step.verdict.clear();
    }
    (step.level, step.e_value) = (level, proof.e_value);
    (step.rate_ratio, step.ci) = (proof.rate_ratio, proof.enclosing());
    (step.pairs, step.wins, step.late) = (proof.pairs, proof.wins, proof.late);
    step.why = match proof.verdict {
        // Set when it is kept.
        Verdict::Better => String::new(),
        Verdict::Worse if proof.reason.is_empty() => "more was late with the change".into(),
        Verdict::Equivalent => {
            format!("the number of late {} is the same within a factor of 2", proof.counted.many())
        }
        Verdict::Worse | Verdict::Inconclusive => proof.reason.clone(),
    };
    if !first && proof.verdict != Verdict::Better {
        step.why = format!("it won once, but not again: {}", step.why);
    }
}

/// True if the last run had late wake-ups: then the limit is not held, else that is unknown.
pub fn is_late(record: &CureRun) -> bool {
    let changes = record.kept_changes();
    let last = record.runs.iter().rev().find(|run| run.changes == changes && run.counts());
    last.is_some_and(|run| run.late > 0)
}

#[cfg(test)]
mod tests;
