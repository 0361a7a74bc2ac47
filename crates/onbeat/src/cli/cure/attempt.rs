//! One change of a cure: proven by the same pairs as `onbeat prove` measures, then kept or not.

use super::course::{Course, pilot};
use super::folder::keep;
use crate::cli::prove::arm_switch::ArmSwitch;
use crate::cli::prove::chosen::ChosenProof;
use crate::cli::prove::folder::{keep as keep_experiment, make, read_record};
use crate::cli::prove::segments::{PairsEnd, SegmentSetup, fix_length};
use crate::cli::step_settings::{StepSettings, StepWish};
use ::suite::setting::SuiteSetting;
use experiment::cure::level::{level, most_pairs};
use experiment::cure::{CureTry, proven};
use experiment::design::usual;
use experiment::proof::prove;
use experiment::tally::PairTally;
use model::cure::{CureCandidate, CureRun, CureStep};
use model::error::{Exit, Failure, Result};
use model::experiment::{EXPERIMENT_SCHEMA, ExperimentArm, ExperimentPlan, ExperimentRun};
use model::units::Nanos;

impl<'a> Course<'a> {
    /// Proves a change; false if a stop signal came. The settings are given back, with nothing of
    /// it in force.
    pub fn attempt(
        &self,
        record: &mut CureRun,
        tried: CureTry,
        settings: StepSettings<'a>,
        left: Nanos,
    ) -> Result<(StepSettings<'a>, bool)> {
        let mut experiment = match tried.resumed {
            true => read_record(&self.folder.join(&record.steps[record.steps.len() - 1].experiment))?,
            false => self.begin(record, &tried)?,
        };
        let at = record.steps.len() - 1;
        let folder = self.folder.join(&record.steps[at].experiment);
        let chosen = ChosenProof {
            plan: experiment.plan.clone(),
            cpus: self.chosen.cpus.clone(),
            settings: Vec::new(),
            script: None,
            script_time: Nanos::SECOND,
            warm_up: record.plan.look_ns,
            at_most: Some(left),
        };
        let mut switch = ArmSwitch::Settings { settings, wanted: wanted(&tried.candidate) };
        let setup = SegmentSetup::new(&folder, &chosen, self.quiet, self.environment);
        let ran = setup.run(&mut experiment, &mut switch);
        let restored = switch.put_back();
        let ArmSwitch::Settings { settings, .. } = switch else {
            return Err(Failure::internal("an experiment of settings became one of a script"));
        };
        restored?;
        let step = &mut record.steps[at];
        match ran {
            Ok(PairsEnd::Signal) => return Ok((settings, false)),
            Ok(_) => note(step, &experiment),
            // What this machine does not let be set proves nothing; whatever else is wrong ends it.
            Err(failure) if failure.exit == Exit::NotSupported => {
                note(step, &experiment);
                (step.verdict, step.why) = ("inconclusive".into(), failure.message);
            }
            Err(failure) => return Err(failure),
        }
        Ok((settings, true))
    }

    /// The experiment of a new step, written down before its first run.
    fn begin(&self, record: &mut CureRun, tried: &CureTry) -> Result<ExperimentRun> {
        let (cure, level) = (&record.plan, level(tried.number));
        let name = self.new_bundle("steps", record.steps.len());
        let folder = make(self.folder.join(&name))?;
        let pilot = record.runs.iter().rev().find(|run| run.valid && run.late > 0).map(pilot);
        let mut plan = ExperimentPlan {
            change: tried.candidate.name(),
            settings: tried.candidate.rules.clone(),
            limit_ns: cure.limit_ns,
            // Each change has an order of its own.
            seed: cure.seed.wrapping_add(tried.number),
            segment_ns: cure.segment_ns,
            settle_ns: cure.settle_ns,
            most_pairs: most_pairs(level),
            win_at: level,
            cpus: cure.cpus.clone(),
            load: cure.load.clone(),
            load_cpus: cure.load_cpus.clone(),
            interval_ns: cure.interval_ns,
            priority: cure.priority,
            ..usual()
        };
        if let Some(pilot) = &pilot {
            fix_length(&mut plan, &folder, pilot)?;
        }
        let experiment = ExperimentRun {
            schema: EXPERIMENT_SCHEMA.into(),
            plan,
            kernel: record.kernel.clone(),
            pilot,
            ..ExperimentRun::default()
        };
        keep_experiment(&folder, &experiment)?;
        record.steps.push(CureStep {
            culprit: tried.culprit.clone(),
            change: tried.candidate.name(),
            hunt: tried.hunt,
            candidate: tried.candidate.clone(),
            experiment: name,
            level,
            ..CureStep::default()
        });
        keep(self.folder, record)?;
        Ok(experiment)
    }

    /// Keeps what the last step has proven.
    pub fn keep_change(&self, record: &mut CureRun, settings: &mut StepSettings) -> Result<()> {
        let Some(step) = record.steps.last_mut() else { return Ok(()) };
        let wish = StepWish { settings: wanted(&step.candidate), ..StepWish::default() };
        match settings.keep(&wish)? {
            Ok(entry) => {
                step.why =
                    format!("late wake-ups are rarer with it in {} of {} pairs", step.wins, step.pairs);
                (step.kept, step.entry) = (true, entry);
            }
            Err(why) => step.why = format!("it was proven and could not be set again: {why}"),
        }
        Ok(())
    }
}

fn wanted(candidate: &CureCandidate) -> Vec<SuiteSetting> {
    candidate.rules.iter().map(|rule| SuiteSetting::Rule { rule: rule.clone(), value: None }).collect()
}

fn note(step: &mut CureStep, experiment: &ExperimentRun) {
    let proof = prove(&experiment.plan, &PairTally::of(&experiment.segments));
    proven(step, &proof, experiment.plan.win_at);
    let last = |arm: ExperimentArm| {
        let of_arm = experiment.segments.iter().rev().find(|segment| segment.arm == arm && segment.valid);
        of_arm.map_or_else(String::new, |segment| format!("{}/{}", step.experiment, segment.bundle))
    };
    (step.before, step.after) = (last(ExperimentArm::A), last(ExperimentArm::B));
}
