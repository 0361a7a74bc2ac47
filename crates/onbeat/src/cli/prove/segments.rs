//! Warm-up and pairs of an experiment, each run of `onbeat measure` in a separate process; the
//! trial between them is in `trial.rs`.

use std::cell::Cell;
use std::path::Path;

use super::arm_switch::ArmSwitch;
use super::chosen::ChosenProof;
use super::folder::keep;
use super::timing::{nothing_late, pair_length, switches, trial_of};
use crate::cli::Environment;
use crate::cli::child_run::{ChildEnd, run_child};
use crate::cli::condition_flags::require_online;
use crate::cli::outputs::remark;
use crate::cli::progress_line::ProgressLine;
use experiment::length::{memory, segment_length};
use experiment::order::of_pair;
use experiment::proof::{Proof, prove};
use experiment::tally::PairTally;
use host::clock;
use host::rt;
use model::error::{Exit, Failure, Result};
use model::experiment::{CountedUnit, ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::text::{clean, several};
use model::units::Nanos;
use study::proving::{maxima, segment};

/// State common to all segments.
pub struct SegmentSetup<'a> {
    pub folder: &'a Path,
    pub chosen: &'a ChosenProof,
    quiet: bool,
    progress: ProgressLine,
    /// Longest switch to each arm up to now, a and b.
    longest_switches: Cell<[Nanos; 2]>,
}

/// Reason to measure no further pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairsEnd {
    /// Decision by the pairs: `e-value` or `fixed`.
    Decided(&'static str),
    /// End of the time given by `--for`.
    Time,
    Signal,
}

impl PairsEnd {
    /// Word for the document.
    pub fn name(self) -> &'static str {
        match self {
            PairsEnd::Decided(name) => name,
            PairsEnd::Time => "time",
            PairsEnd::Signal => "signal",
        }
    }
}

/// End of one segment.
pub enum SegmentEnd {
    Measured(Box<ExperimentSegment>),
    /// A run without a bundle: its last message and its exit code.
    Refused(Failure),
    Stopped,
}

/// Interval of the checks on a run.
const PERIOD: Nanos = Nanos(200_000_000);

impl<'a> SegmentSetup<'a> {
    pub fn new(folder: &'a Path, chosen: &'a ChosenProof, quiet: bool, environment: &Environment) -> Self {
        let progress = ProgressLine::new(quiet, environment);
        SegmentSetup { folder, chosen, quiet, progress, longest_switches: Cell::default() }
    }

    /// Measures the missing segments, and writes the record after each.
    pub fn run(&self, record: &mut ExperimentRun, switch: &mut ArmSwitch) -> Result<PairsEnd> {
        let begun = clock::monotonic();
        if record.pilot.is_none() && !self.warm_up(record, switch)? {
            return Ok(PairsEnd::Signal);
        }
        if lacks_trial(record) {
            let takes = Nanos(trial_of(&record.plan).0.saturating_add(self.next_pair(record).0));
            if !self.is_time(begun, takes) {
                return Ok(PairsEnd::Time);
            }
            if !self.trial(record, switch)? {
                return Ok(PairsEnd::Signal);
            }
        }
        loop {
            let (next, proof) = {
                let tally = PairTally::of(&record.segments);
                (tally.next, prove(&record.plan, &tally))
            };
            if let Some(end) = proof.end {
                return Ok(PairsEnd::Decided(end.name()));
            }
            if !self.is_time(begun, self.next_pair(record)) {
                return Ok(PairsEnd::Time);
            }
            if !self.pair(next, record, switch, &proof)? {
                return Ok(PairsEnd::Signal);
            }
        }
    }

    /// Duration of a pair with its switches.
    fn next_pair(&self, record: &ExperimentRun) -> Nanos {
        let switches = switches(record, self.longest_switches.get());
        Nanos(pair_length(&record.plan).0.saturating_add(switches.0))
    }

    /// True if there is time for this duration.
    fn is_time(&self, begun: Nanos, takes: Nanos) -> bool {
        let until = Nanos((clock::monotonic() - begun).0.saturating_add(takes.0));
        self.chosen.at_most.is_none_or(|at_most| until <= at_most)
    }

    /// Measures without the change, and fixes the length of the segments; false if a stop signal
    /// came.
    fn warm_up(&self, record: &mut ExperimentRun, switch: &mut ArmSwitch) -> Result<bool> {
        let plan = &record.plan;
        if !self.switched(switch, ExperimentArm::A)?
            || self.progress.wait(clock::monotonic() + plan.settle_ns, "warm-up")
        {
            return Ok(false);
        }
        let pilot = match self.segment(plan, "warm-up", self.chosen.warm_up, "warm-up")? {
            SegmentEnd::Stopped => return Ok(false),
            // Later runs would fail in the same way.
            SegmentEnd::Refused(failure) => return Err(failure),
            SegmentEnd::Measured(pilot) => *pilot,
        };
        if !pilot.valid {
            require_online(&self.chosen.cpus, &record.plan.load_cpus)?;
            let why = clean(&pilot.why);
            let message = format!("the warm-up is invalid: {why}: fix that first, or choose another load");
            return Err(Failure { exit: Exit::Inconclusive, message });
        }
        require_rare(plan.limit_ns, plan.counted(), &pilot)?;
        fix_length(&mut record.plan, self.folder, &pilot)?;
        if let Some(line) = nothing_late(&record.plan, &pilot).filter(|_| !self.quiet) {
            remark(&line);
        }
        record.pilot = Some(pilot);
        keep(self.folder, record).map(|()| true)
    }

    /// Measures both arms, or only the first if it is spoiled; false if a stop signal came.
    fn pair(
        &self,
        number: u32,
        record: &mut ExperimentRun,
        switch: &mut ArmSwitch,
        so_far: &Proof,
    ) -> Result<bool> {
        switch.be_patient(record.plan.segment_ns);
        for arm in of_pair(record.plan.seed, number) {
            let doing = format!(
                "{}, {}; fewer late in {} of {} so far",
                place(number, record.plan.most_pairs),
                arm.name(),
                so_far.wins,
                so_far.pairs - so_far.ties
            );
            let begun = clock::monotonic();
            if !self.switched(switch, arm)?
                || self.progress.wait(clock::monotonic() + record.plan.settle_ns, &doing)
            {
                return Ok(false);
            }
            let settled_ns = clock::monotonic() - begun;
            let unmoved = switch.unmoved();
            let name = format!("{:03}-{}", number + 1, arm.name());
            let measured = match self.segment(&record.plan, &name, record.plan.segment_ns, &doing)? {
                SegmentEnd::Stopped => return Ok(false),
                SegmentEnd::Refused(failure) => {
                    require_online(&self.chosen.cpus, &record.plan.load_cpus)?;
                    ExperimentSegment { why: failure.message, ..ExperimentSegment::default() }
                }
                SegmentEnd::Measured(measured) => *measured,
            };
            let valid = measured.valid;
            let astray = switch.astray(&unmoved);
            record.segments.push(ExperimentSegment { pair: number, arm, settled_ns, astray, ..measured });
            keep(self.folder, record)?;
            if !valid {
                require_online(&self.chosen.cpus, &record.plan.load_cpus)?;
                break;
            }
        }
        Ok(true)
    }

    /// Makes or undoes the change; false if a stop signal came.
    pub fn switched(&self, switch: &mut ArmSwitch, arm: ExperimentArm) -> Result<bool> {
        let begun = clock::monotonic();
        let switched = switch.to(arm);
        let mut longest = self.longest_switches.get();
        let of_arm = &mut longest[usize::from(arm == ExperimentArm::B)];
        *of_arm = (clock::monotonic() - begun).max(*of_arm);
        self.longest_switches.set(longest);
        match switched {
            Err(failure) if rt::stop_pending() => {
                // A script ended by the stop may have hung.
                if failure.exit == Exit::Interrupted {
                    remark(&format!("onbeat: {}", failure.message));
                }
                Ok(false)
            }
            switched => switched.map(|()| !rt::stop_pending()),
        }
    }

    pub fn segment(
        &self,
        plan: &ExperimentPlan,
        name: &str,
        length: Nanos,
        doing: &str,
    ) -> Result<SegmentEnd> {
        let bundle = self.new_bundle(name);
        let line = arguments(deciding(plan), plan, length, &self.folder.join(&bundle), &[]);
        let end = run_child(&line, None, &mut || self.progress.wait(clock::monotonic() + PERIOD, doing));
        self.progress.clear();
        let ChildEnd::Ended { code, words } = end? else { return Ok(SegmentEnd::Stopped) };
        if let Ok(measured) = segment(self.folder, &bundle, plan.limit_ns) {
            return Ok(SegmentEnd::Measured(Box::new(measured)));
        }
        let message = if words.is_empty() { format!("its run ended with exit code {code}") } else { words };
        let exits = [Exit::Usage, Exit::NotPermitted, Exit::NotSupported];
        let exit = exits.into_iter().find(|exit| *exit as i32 == code).unwrap_or(Exit::Internal);
        Ok(SegmentEnd::Refused(Failure { exit, message }))
    }

    /// Name of a new folder: runs begun by a killed experiment are not segments, and are left
    /// unchanged.
    fn new_bundle(&self, name: &str) -> String {
        let again = (2..).map(|time| format!("segments/{name}-again-{time}"));
        let mut names = std::iter::once(format!("segments/{name}")).chain(again);
        let is_new = |bundle: &String| host::identity(&self.folder.join(bundle)).is_none();
        names.find(is_new).unwrap_or_default()
    }
}

/// Sets the length of the segments from a run without the change, unless the user gave it.
pub fn fix_length(plan: &mut ExperimentPlan, folder: &Path, pilot: &ExperimentSegment) -> Result<()> {
    if plan.segment_ns.0 == 0 {
        let late = events(pilot) as f64 / pilot.observed_ns.as_secs().max(1e-9);
        let memory = memory(&maxima(folder, &pilot.bundle)?);
        plan.segment_ns = segment_length(late, memory);
    }
    Ok(())
}

/// Number of independent events: seconds with late wake-ups, since one stall makes each period in
/// it late. All late wake-ups if the seconds are unknown.
fn events(pilot: &ExperimentSegment) -> u64 {
    match pilot.late_blocks.iter().sum() {
        0 => pilot.late,
        seconds => seconds,
    }
}

/// True if a trial has to determine the settling time and has not run yet.
fn lacks_trial(record: &ExperimentRun) -> bool {
    record.plan.settle_trial_ns.0 > 0 && record.trial.is_empty()
}

fn place(number: u32, most: u32) -> String {
    format!("pair {} of at most {most}", number.saturating_add(1))
}

/// Command of the runs that decide: followed threads are only seen through their events.
pub fn deciding(plan: &ExperimentPlan) -> &'static str {
    match plan.counted() {
        CountedUnit::WakeUps => "measure",
        CountedUnit::Cycles => "hunt",
    }
}

/// Command line of an unattended run under the conditions of a plan; the flags in `more` come
/// before the program and its arguments.
pub fn arguments(
    command: &str,
    plan: &ExperimentPlan,
    length: Nanos,
    bundle: &Path,
    more: &[String],
) -> Vec<String> {
    let mut line: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
    add(&[command, "-q", "-D", &format!("{}ns", length.0), "-o", &bundle.display().to_string()]);
    match plan.counted() {
        CountedUnit::WakeUps => add(&["-i", &format!("{}ns", plan.interval_ns.0), "-a", &plan.cpus]),
        CountedUnit::Cycles => add(&["--deadline", &format!("{}ns", plan.limit_ns.0)]),
    }
    if let Some(priority) = plan.priority {
        add(&["-p", &priority.to_string()]);
    }
    if !plan.load.is_empty() {
        add(&["--load", &plan.load, "--load-cpus", &plan.load_cpus]);
    }
    if !plan.victim.is_empty() {
        add(&["--victim", &plan.victim]);
    }
    line.extend_from_slice(more);
    if !plan.program.is_empty() {
        line.push("--".to_owned());
        line.extend(plan.program.iter().cloned());
    }
    line
}

/// Refuses a limit that the usual wake-up reaches: reaching it is not rare then.
pub fn require_rare(limit: Nanos, counted: CountedUnit, pilot: &ExperimentSegment) -> Result<()> {
    if pilot.late.saturating_mul(2) <= pilot.samples {
        return Ok(());
    }
    let p50 = pilot.p50_ns.map_or_else(String::new, |p50| format!(", their median is {}", p50.spaced()));
    Err(Failure::usage(format!(
        "invalid --limit: {} of {} reach {} in the warm-up{p50}; choose a higher limit",
        pilot.late,
        several(pilot.samples, counted.one(), counted.many()),
        limit.spaced()
    )))
}
