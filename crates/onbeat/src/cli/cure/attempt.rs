//! One change of a cure: proven by the same pairs as in `onbeat prove`, then kept or not.

use super::course::{CureCourse, conditions, pilot};
use super::folder::keep;
use crate::cli::prove::arm_switch::ArmSwitch;
use crate::cli::prove::chosen::ChosenProof;
use crate::cli::prove::folder::{keep as keep_experiment, make, read_record};
use crate::cli::prove::segments::{PairsEnd, SegmentSetup, fix_length};
use crate::cli::step_settings::{StepSettings, StepWish};
use ::suite::setting::SuiteSetting;
use experiment::cure::level::of_stage;
use experiment::cure::{CureTry, proven, reserve};
use experiment::design::SETTLE;
use experiment::proof::prove;
use experiment::tally::PairTally;
use host::rt;
use model::cure::{CureCandidate, CureRun, CureStep};
use model::error::{Exit, Failure, Result};
use model::experiment::{EXPERIMENT_SCHEMA, ExperimentArm, ExperimentPlan, ExperimentRun};
use model::units::Nanos;
use report::proving::settling;

impl<'a> CureCourse<'a> {
    /// Proves a change; false if a stop signal came. Returns the settings with nothing of the
    /// change in force.
    pub fn attempt(
        &self,
        record: &mut CureRun,
        tried: CureTry,
        settings: StepSettings<'a>,
        left: Nanos,
    ) -> Result<(StepSettings<'a>, bool)> {
        let begun =
            record.steps.last().filter(|_| tried.resumed).map(|step| self.folder.join(&step.experiment));
        let mut experiment = match begun {
            Some(folder) => read_record(&folder)?,
            None => self.begin(record, &tried)?,
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
            // Later moves need time too.
            at_most: Some(Nanos(left.0.saturating_sub(reserve(&record.plan).0))),
        };
        let mut switch = ArmSwitch::Settings { settings: Box::new(settings), wish: wish(&tried.candidate) };
        let setup = SegmentSetup::new(&folder, &chosen, self.quiet, self.environment);
        let ran = setup.run(&mut experiment, &mut switch);
        let restored = switch.put_back();
        let ArmSwitch::Settings { settings, .. } = switch else {
            return Err(Failure::internal("an experiment with settings was replaced by one with a script"));
        };
        let settings = *settings;
        restored?;
        let step = &mut record.steps[at];
        match ran {
            Ok(PairsEnd::Signal) => return Ok((settings, false)),
            Ok(_) => note(step, &experiment),
            // A change that cannot be set here proves nothing; any other failure ends the cure.
            Err(failure) if failure.exit == Exit::NotSupported => {
                note(step, &experiment);
                (step.verdict, step.why) = ("inconclusive".into(), failure.message);
            }
            Err(failure) => return Err(failure),
        }
        Ok((settings, true))
    }

    /// Creates the experiment of a new step, or the second one of the last step, and writes it
    /// before its first run.
    fn begin(&self, record: &mut CureRun, tried: &CureTry) -> Result<ExperimentRun> {
        let cure = &record.plan;
        let (level, most_pairs) = of_stage(tried.number, tried.again);
        let name = self.new_bundle("steps", tried.number.saturating_sub(1) as usize);
        let folder = make(self.folder.join(&name))?;
        let pilot = record.runs.iter().rev().find(|run| run.valid && run.late > 0).map(pilot);
        let mut plan = ExperimentPlan {
            change: tried.candidate.name(),
            settings: tried.candidate.rules.clone(),
            // Each experiment has a different order.
            seed: cure.seed.wrapping_add(2 * tried.number + u64::from(tried.again)),
            most_pairs,
            win_at: level,
            ..conditions(cure)
        };
        if let Some(pilot) = &pilot {
            fix_length(&mut plan, &folder, pilot)?;
        }
        // The change needs the same time to settle as before.
        let before = record.steps.last().filter(|_| tried.again);
        let trial = match before.map(|step| read_record(&self.folder.join(&step.screened))).transpose()? {
            Some(first) => {
                plan.settle_ns = first.plan.settle_ns;
                first.trial
            }
            None => Vec::new(),
        };
        let experiment = ExperimentRun {
            schema: EXPERIMENT_SCHEMA.into(),
            plan,
            kernel: record.kernel.clone(),
            pilot,
            trial,
            ..ExperimentRun::default()
        };
        keep_experiment(&folder, &experiment)?;
        match record.steps.last_mut().filter(|_| tried.again) {
            Some(step) => (step.experiment, step.level) = (name, level),
            None => record.steps.push(CureStep {
                culprit: tried.culprit.clone(),
                change: tried.candidate.name(),
                hunt: tried.hunt,
                candidate: tried.candidate.clone(),
                experiment: name,
                level,
                ..CureStep::default()
            }),
        }
        keep(self.folder, record)?;
        Ok(experiment)
    }

    /// Keeps the change that the last step has proven: sets it temporarily, writes the record, and
    /// then makes it permanent, so that a kill leaves it recorded or undone.
    pub fn keep_change(&self, record: &mut CureRun, settings: &mut StepSettings) -> Result<()> {
        let Some(step) = record.steps.last_mut() else { return Ok(()) };
        if let Err(failure) = settings.switch(wish(&step.candidate)) {
            let reason = failure.reason()?;
            // A stop is not a refusal: the proven change is kept after a resume.
            if !rt::stop_pending() {
                step.why = format!("it was proven but could not be applied again: {reason}");
            }
            return Ok(());
        }
        (step.kept, step.entry) = (true, settings.entry().to_owned());
        let many = record.plan.counted().many();
        step.why = format!("fewer late {many} with it in {} of {} pairs", step.wins, step.pairs);
        keep(self.folder, record)?;
        settings.leave()
    }
}

fn wish(candidate: &CureCandidate) -> StepWish {
    let rule = |rule: &String| SuiteSetting::Rule { rule: rule.clone(), value: None };
    StepWish {
        settings: candidate.rules.iter().map(rule).collect(),
        threads: candidate.threads.clone(),
        ..StepWish::default()
    }
}

fn note(step: &mut CureStep, experiment: &ExperimentRun) {
    let proof = prove(&experiment.plan, &PairTally::of(&experiment.segments));
    proven(step, &proof, experiment.plan.win_at);
    // The usual settling time is not reported.
    step.settling = if experiment.plan.settle_ns > SETTLE {
        settling(experiment).unwrap_or_default()
    } else {
        String::new()
    };
    let last = |arm: ExperimentArm| {
        let of_arm = experiment.segments.iter().rev().find(|segment| segment.arm == arm && segment.valid);
        of_arm.map_or_else(String::new, |segment| format!("{}/{}", step.experiment, segment.bundle))
    };
    (step.before, step.after) = (last(ExperimentArm::A), last(ExperimentArm::B));
}
