//! Cures of synthetic machines, through all decisions.

use model::cure::{CureCandidate, CureCleanRun, CureCulprit, CureHunt, CurePlan, CureRun, CureStep};
use model::experiment::{ExperimentPlan, ExperimentSegment};
use model::units::Nanos;
use stats::rng::Rng;

use super::level::of_stage;
use super::{AROUND, AROUND_HUNT, CureMove, CureTry, long_run, next, proven, reserve};
use crate::design::usual;
use crate::fixture::{DrawnExperiment, poisson};
use crate::order::of_pair;
use crate::proof::prove;
use crate::tally::PairTally;

/// Cause of late wake-ups, and changes against it.
#[derive(Clone, Debug)]
pub struct DrawnFault {
    pub name: &'static str,
    /// Late wake-ups per second.
    pub rate: f64,
    /// Changes, each with its factor on this rate.
    pub changes: Vec<(&'static str, f64)>,
}

/// Machine with its faults.
#[derive(Clone, Debug)]
pub struct DrawnMachine {
    pub faults: Vec<DrawnFault>,
    /// Scatter, drift and spoiled runs of its segments.
    pub unrest: DrawnExperiment,
}

/// Machine during its cure.
struct Patient<'a> {
    machine: &'a DrawnMachine,
    rng: &'a mut Rng,
    record: CureRun,
    /// ln of the drift's present factor on all rates.
    drift: f64,
    spent: Nanos,
}

/// Plan of two hours, for a horizon of ten minutes.
pub fn drawn_plan() -> CurePlan {
    let second = Nanos::SECOND.0;
    CurePlan {
        limit_ns: Nanos(100_000),
        horizon_ns: Nanos(600 * second),
        at_most_ns: Nanos(7_200 * second),
        interval_ns: Nanos(1_000_000),
        look_ns: Nanos(20 * second),
        hunt_ns: Nanos(30 * second),
        segment_ns: Nanos(10 * second),
        settle_ns: Nanos(2 * second),
        ..CurePlan::default()
    }
}

impl DrawnMachine {
    /// Late wake-ups per second, with the kept changes and further ones.
    fn rate(&self, record: &CureRun, more: &[String]) -> f64 {
        let rules = record.steps.iter().filter(|step| step.kept).flat_map(|step| &step.candidate.rules);
        let in_force: Vec<&String> = rules.chain(more).collect();
        let of = |fault: &DrawnFault| {
            let set = |(name, _): &&(&str, f64)| in_force.iter().any(|rule| rule == name);
            fault.rate * fault.changes.iter().filter(set).map(|(_, factor)| factor).product::<f64>()
        };
        self.faults.iter().map(of).sum()
    }

    /// Cures it until the end.
    pub fn cure(&self, plan: CurePlan, rng: &mut Rng) -> CureRun {
        let record = CureRun { plan, ..CureRun::default() };
        let mut patient = Patient { machine: self, rng, record, drift: 0.0, spent: Nanos(0) };
        loop {
            let left = Nanos(patient.record.plan.at_most_ns.0 - patient.spent.0);
            match next(&patient.record, left) {
                CureMove::End(end, why) => {
                    (patient.record.ended, patient.record.why) = (end.name().into(), why);
                    patient.record.held = end == super::CureEnd::Held;
                    patient.record.spent_ns = patient.spent;
                    return patient.record;
                }
                CureMove::Spoiled(why) => {
                    patient.record.why = why;
                    return patient.record;
                }
                to_do => patient.act(to_do),
            }
        }
    }
}

impl Patient<'_> {
    fn act(&mut self, to_do: CureMove) {
        match to_do {
            CureMove::Look => self.run(self.record.plan.look_ns, false),
            CureMove::Confirm => self.run(long_run(self.record.plan.horizon_ns), true),
            CureMove::Hunt(length) => self.hunt(length),
            CureMove::Try(tried) => self.attempt(*tried),
            CureMove::Keep => {
                let last = self.record.steps.last_mut().expect("there is one to be kept");
                (last.kept, last.why) = (true, "it was proven".into());
            }
            CureMove::End(..) | CureMove::Spoiled(_) => {}
        }
    }

    fn passes(&mut self, length: Nanos, around: Nanos) {
        self.spent = Nanos(self.spent.0 + length.0 + around.0);
        self.drift += self.machine.unrest.drift + self.machine.unrest.wander * self.rng.normal();
    }

    fn run(&mut self, length: Nanos, long: bool) {
        let shifted = (self.drift + self.machine.unrest.shifts * self.rng.normal()).exp();
        let late = poisson(self.rng, self.machine.rate(&self.record, &[]) * shifted * length.as_secs());
        let valid = self.rng.uniform() >= self.machine.unrest.spoiled;
        let verdict = match (long, late) {
            (false, _) => "",
            (true, 0) => "supported",
            (true, _) => "failed",
        };
        self.passes(length, AROUND);
        self.record.runs.push(CureCleanRun {
            changes: self.record.kept_changes(),
            long,
            valid,
            observed_ns: length,
            late,
            verdict: verdict.into(),
            ..CureCleanRun::default()
        });
    }

    fn hunt(&mut self, length: Nanos) {
        let changes: Vec<String> =
            self.record.steps.iter().filter(|step| step.kept).map(|step| step.change.clone()).collect();
        let mut culprits = Vec::new();
        for fault in &self.machine.faults {
            let of = DrawnMachine { faults: vec![fault.clone()], unrest: self.machine.unrest };
            let rate = of.rate(&self.record, &[]);
            let spikes = poisson(self.rng, rate * self.drift.exp() * length.as_secs());
            let open = fault.changes.iter().filter(|(name, _)| !changes.iter().any(|rule| rule == name));
            let candidates = open.map(|(name, _)| CureCandidate {
                rules: vec![(*name).to_owned()],
                ..CureCandidate::default()
            });
            culprits.push(CureCulprit {
                name: fault.name.into(),
                spikes,
                lost_ns: Nanos(spikes as i64 * 200_000),
                candidates: candidates.collect(),
                ..CureCulprit::default()
            });
        }
        culprits.retain(|culprit| culprit.spikes > 0);
        culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.lost_ns));
        self.passes(length, AROUND_HUNT);
        let changes = self.record.kept_changes();
        self.record.hunts.push(CureHunt { changes, length_ns: length, culprits, ..CureHunt::default() });
    }

    fn attempt(&mut self, tried: CureTry) {
        let (level, most_pairs) = of_stage(tried.number, tried.again);
        let plan = ExperimentPlan { win_at: level, most_pairs, ..usual() };
        let segment = self.record.plan.segment_ns;
        let rates = [&[][..], &tried.candidate.rules].map(|more| self.machine.rate(&self.record, more));
        let drawn = DrawnExperiment {
            late: rates[0] * segment.as_secs(),
            factor: if rates[0] > 0.0 { rates[1] / rates[0] } else { 1.0 },
            ..self.machine.unrest
        };
        let seed = self.rng.next_u64();
        let mut segments: Vec<ExperimentSegment> = Vec::new();
        let proof = loop {
            let proof = prove(&plan, &PairTally::of(&segments));
            let pair = segments.last().map_or(0, |last| last.pair + 1);
            let takes = 2 * (segment.0 + self.record.plan.settle_ns.0 + AROUND.0);
            let least = takes + reserve(&self.record.plan).0;
            if proof.end.is_some() || self.spent.0 + least > self.record.plan.at_most_ns.0 {
                break proof;
            }
            for arm in of_pair(seed, pair) {
                self.passes(segment, Nanos(self.record.plan.settle_ns.0 + AROUND.0));
                let arm_segment = drawn.segment(pair, arm, self.drift, self.rng);
                let valid = arm_segment.valid;
                segments.push(arm_segment);
                if !valid {
                    break;
                }
            }
        };
        if !tried.again {
            self.record.steps.push(step(&tried));
        }
        let step = self.record.steps.last_mut().expect("it was begun");
        if step.screened == step.experiment {
            step.experiment = "again".into();
        }
        proven(step, &proof, level);
    }
}

/// Step that was begun.
fn step(tried: &CureTry) -> CureStep {
    CureStep {
        culprit: tried.culprit.clone(),
        change: tried.candidate.name(),
        hunt: tried.hunt,
        candidate: tried.candidate.clone(),
        experiment: "first".into(),
        ..CureStep::default()
    }
}
