//! Course of a cure: executes and records the moves of `experiment::cure` until there are no more.

use std::path::Path;

use super::chosen::ChosenCure;
use super::folder::keep;
use crate::cli::Environment;
use crate::cli::capture;
use crate::cli::child_run::{ChildEnd, run_child};
use crate::cli::condition_flags::require_online;
use crate::cli::progress_line::ProgressLine;
use crate::cli::prove::segments::{arguments, deciding, require_rare};
use crate::cli::step_settings::StepSettings;
use experiment::cure::{CureEnd, CureMove, forget_spoiled, long_run, next};
use experiment::design::usual;
use host::{clock, rt};
use model::cure::{CureCleanRun, CureHunt, CurePlan, CureRun};
use model::error::{Exit, Failure, Result};
use model::experiment::{CountedUnit, ExperimentPlan, ExperimentSegment};
use model::setting::Risk;
use model::units::Nanos;
use study::curing::{clean_run, curable, hunted, machine};

/// State common to all moves.
pub struct CureCourse<'a> {
    pub folder: &'a Path,
    pub chosen: &'a ChosenCure,
    pub environment: &'a Environment,
    pub quiet: bool,
    pub progress: ProgressLine,
}

/// End of a cure.
pub enum CourseEnd {
    Ended(CureEnd),
    Spoiled(String),
}

/// Interval of the checks on a run.
const PERIOD: Nanos = Nanos(200_000_000);

impl<'a> CureCourse<'a> {
    pub fn new(
        folder: &'a Path,
        chosen: &'a ChosenCure,
        quiet: bool,
        environment: &'a Environment,
    ) -> CureCourse<'a> {
        CureCourse { folder, chosen, environment, quiet, progress: ProgressLine::new(quiet, environment) }
    }

    /// Executes the moves one by one, and records each. At the end, exactly the kept changes are in
    /// force.
    pub fn run(&self, record: &mut CureRun, mut settings: StepSettings<'a>) -> Result<CourseEnd> {
        let (begun, spent_before) = (clock::monotonic(), record.spent_ns);
        (record.ended, record.why) = (String::new(), String::new());
        forget_spoiled(record);
        keep(self.folder, record)?;
        self.remember(record);
        let ended = loop {
            record.spent_ns = spent_before + (clock::monotonic() - begun);
            let left = Nanos(record.plan.at_most_ns.0.saturating_sub(record.spent_ns.0));
            let goes_on = match next(record, left) {
                CureMove::End(end, why) => {
                    record.why = why;
                    break CourseEnd::Ended(end);
                }
                CureMove::Spoiled(why) => {
                    record.why = format!("the runs are invalid: {why}");
                    CureEnd::NoCandidate.name().clone_into(&mut record.ended);
                    break CourseEnd::Spoiled(why);
                }
                CureMove::Look => self.measure(record, record.plan.look_ns, false)?,
                CureMove::Confirm => self.measure(record, long_run(record.plan.horizon_ns), true)?,
                CureMove::Hunt(length) => self.hunt(record, length)?,
                CureMove::Try(tried) => {
                    let (back, goes_on) = self.attempt(record, *tried, settings, left)?;
                    settings = back;
                    goes_on
                }
                CureMove::Keep => self.keep_change(record, &mut settings).map(|()| true)?,
            };
            keep(self.folder, record)?;
            if !goes_on || rt::stop_pending() {
                break CourseEnd::Ended(CureEnd::Signal);
            }
        };
        settings.put_back()?;
        self.remember(record);
        if let CourseEnd::Ended(end) = &ended {
            record.held = *end == CureEnd::Held;
            end.name().clone_into(&mut record.ended);
        }
        record.spent_ns = spent_before + (clock::monotonic() - begun);
        record.remaining = experiment::cure::remaining(record);
        keep(self.folder, record)?;
        Ok(ended)
    }

    /// Captures the machine with the changes kept up to now, for its map on the page. A failure is
    /// ignored: the page then uses the descriptions in the runs.
    fn remember(&self, record: &CureRun) {
        let path = self.folder.join(machine(record.kept_changes()));
        if host::identity(&path).is_none() {
            let _ = capture::take(&path);
        }
    }

    /// Measures without recording; false if a stop signal came.
    fn measure(&self, record: &mut CureRun, length: Nanos, long: bool) -> Result<bool> {
        let bundle = self.new_bundle("runs", record.runs.len());
        let (plan, conditions) = (&record.plan, conditions(&record.plan));
        let doing = match (long, record.runs.is_empty()) {
            (true, _) => "final run, to support the limit",
            (false, true) => "before any change",
            (false, false) => "after a change",
        };
        // One late wake-up decides; a followed program is not stopped at a late cycle.
        let more = match (long, plan.counted()) {
            (true, CountedUnit::WakeUps) => vec!["-b".to_owned(), format!("{}ns", plan.limit_ns.0)],
            _ => Vec::new(),
        };
        let line = arguments(deciding(&conditions), &conditions, length, &self.folder.join(&bundle), &more);
        if !self.child(&line, &bundle, doing)? {
            return Ok(false);
        }
        let begun = CureCleanRun { bundle, changes: record.kept_changes(), long, ..CureCleanRun::default() };
        let run = clean_run(self.folder, begun, plan.limit_ns, plan.horizon_ns)?;
        if run.valid && !long {
            require_rare(plan.limit_ns, plan.counted(), &pilot(&run))?;
        }
        let (valid, load_cpus) = (run.valid, plan.load_cpus.clone());
        record.runs.push(run);
        if !valid {
            // Its late wake-ups count, whatever the reason for the end.
            keep(self.folder, record)?;
            require_online(&self.chosen.cpus, &load_cpus)?;
        }
        Ok(true)
    }

    /// Runs a hunt, and records possible changes; false if a stop signal came.
    fn hunt(&self, record: &mut CureRun, length: Nanos) -> Result<bool> {
        let bundle = self.new_bundle("hunts", record.hunts.len());
        let plan = &record.plan;
        let over = ["--over".to_owned(), format!("{}ns", plan.limit_ns.0)];
        let line = arguments("hunt", &conditions(plan), length, &self.folder.join(&bundle), &over);
        if !self.child(&line, &bundle, "hunting for culprits")? {
            return Ok(false);
        }
        let machine = curable(&self.chosen.cpus)?;
        let kept = record.steps.iter().filter(|step| step.kept);
        let kept: Vec<String> = kept.flat_map(|step| step.candidate.rules.clone()).collect();
        let begun =
            CureHunt { bundle, changes: record.kept_changes(), length_ns: length, ..CureHunt::default() };
        let allowed = allowed(plan);
        record.hunts.push(hunted(self.folder, begun, plan.limit_ns, &machine, &kept, allowed)?);
        if record.hunts.len() > 1 { Ok(true) } else { self.look_at_program(record) }
    }

    /// Waits for a moment during a run; true if a stop signal came.
    pub fn pause(&self, doing: &str) -> bool {
        self.progress.wait(clock::monotonic() + PERIOD, doing)
    }

    /// Runs this program in a separate process; false if a stop signal came.
    fn child(&self, line: &[String], bundle: &str, doing: &str) -> Result<bool> {
        let end = run_child(line, None, &mut || self.pause(doing));
        self.progress.clear();
        let ChildEnd::Ended { code, words } = end? else { return Ok(false) };
        // A run with late wake-ups ends with 3; one that cannot begin has no bundle.
        if host::identity(&self.folder.join(bundle).join("run.json")).is_some() {
            return Ok(true);
        }
        require_online(&self.chosen.cpus, &self.chosen.plan.load_cpus)?;
        let message = if words.is_empty() { format!("its run ended with exit code {code}") } else { words };
        let exits = [Exit::Usage, Exit::NotPermitted, Exit::NotSupported];
        let exit = exits.into_iter().find(|exit| *exit as i32 == code).unwrap_or(Exit::Internal);
        Err(Failure { exit, message: message.trim_start_matches("onbeat: ").to_owned() })
    }

    /// Name of a new folder: runs begun by a killed cure are not part of it.
    pub fn new_bundle(&self, kind: &str, number: usize) -> String {
        let first = format!("{kind}/{:03}", number + 1);
        let again = (2..).map(|time| format!("{first}-again-{time}"));
        let mut names = std::iter::once(first.clone()).chain(again);
        let is_new = |bundle: &String| host::identity(&self.folder.join(bundle)).is_none();
        names.find(is_new).unwrap_or_default()
    }
}

/// Maximum risk of a change.
pub fn allowed(plan: &CurePlan) -> Risk {
    if plan.yes { Risk::High } else { Risk::Low }
}

/// A clean run as the first run of an experiment, with its bundle relative to that.
pub fn pilot(run: &CureCleanRun) -> ExperimentSegment {
    ExperimentSegment {
        valid: run.valid,
        bundle: format!("../../{}", run.bundle),
        observed_ns: run.observed_ns,
        samples: run.samples,
        late: run.late,
        p50_ns: run.p50_ns,
        max_ns: run.max_ns,
        ..ExperimentSegment::default()
    }
}

/// Conditions that all runs of a cure share.
pub fn conditions(plan: &CurePlan) -> ExperimentPlan {
    ExperimentPlan {
        limit_ns: plan.limit_ns,
        segment_ns: plan.segment_ns,
        settle_ns: plan.settle_ns,
        settle_trial_ns: plan.settle_trial_ns,
        cpus: plan.cpus.clone(),
        load: plan.load.clone(),
        load_cpus: plan.load_cpus.clone(),
        interval_ns: plan.interval_ns,
        priority: plan.priority,
        victim: plan.victim.clone(),
        program: plan.program.clone(),
        ..usual()
    }
}
