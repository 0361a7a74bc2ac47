//! One phase of a suite: a run of `onbeat measure` or `probe spin` in a separate process, read from
//! its bundle.

use std::io::{self, Write};
use std::path::Path;

use super::plan_text::spoken;
use crate::cli::child_run::{ChildEnd, run_child};
use crate::cli::load_flags::existing;
use ::load::running::{RunningLoads, plan};
use ::load::spec;
use ::suite::outcome::{not_run, row};
use ::suite::phases::{SuiteStep, length};
use ::suite::recipe::Recipe;
use ::suite::recipe_phase::{LoadOn, StepKind};
use bundle::read::Bundle;
use host::rt::{self, Woken};
use host::{MachineFiles, clock};
use model::error::{Failure, Result};
use model::isolation::INNER_GROUP;
use model::load::LoadRun;
use model::setting::Key;
use model::suite::SuitePhase;
use model::units::{CpuSet, Nanos};
use report::load::sentence;

/// State common to all phases.
pub struct PhaseSetup<'a> {
    pub recipe: &'a Recipe,
    /// Folder of the suite.
    pub folder: &'a Path,
    /// Measured CPUs.
    pub cpus: CpuSet,
    pub load_cpus: CpuSet,
    pub kernel: &'a str,
    /// Labels of all runs, as given.
    pub labels: &'a [String],
    /// True if progress is drawn on standard error.
    pub shows: bool,
}

/// End of a phase.
pub enum PhaseEnd {
    Row(Box<SuitePhase>),
    /// A stop signal came; the bundle contains what was measured.
    Stopped,
}

/// Interval of the checks on a run.
const PERIOD: Nanos = Nanos(200_000_000);

impl PhaseSetup<'_> {
    /// Waits to settle, runs a step and reads its result. `place` is its number among all, `left`
    /// the duration of the later ones.
    pub fn run(&self, step: &SuiteStep, place: &str, left: Nanos) -> Result<PhaseEnd> {
        let begun = clock::monotonic();
        if self.wait(begun + self.recipe.settle(), step, place, left) {
            self.clear();
            return Ok(PhaseEnd::Stopped);
        }
        let name = format!("{}-{}", place.replace(" of ", "-"), step.id.replace('/', "-"));
        let bundle = self.new_bundle(&name);
        let mut beside = match self.load_outside(step) {
            Ok(beside) => beside,
            Err(failure) => return Ok(self.hole(step, &failure.message)),
        };
        let group = step.isolates().then(|| Key::GroupFile(INNER_GROUP.to_owned()).path());
        let arguments = self.arguments(step, &self.folder.join(&bundle));
        let mut sampled = clock::monotonic();
        let end = run_child(&arguments, group.as_deref().map(Path::new), &mut || {
            let now = clock::monotonic();
            if let Some(loads) = beside.as_mut().filter(|_| now >= sampled + Nanos::SECOND) {
                loads.sample(now);
                sampled = now;
            }
            self.wait(clock::monotonic() + PERIOD, step, place, left)
        })?;
        self.clear();
        let loads = beside.map(|loads| loads.finish(clock::monotonic())).unwrap_or_default();
        let ChildEnd::Ended { code, words } = end else { return Ok(PhaseEnd::Stopped) };
        let row = match Bundle::open(&self.folder.join(&bundle)) {
            Ok(opened) => beside_loads(row(step, &opened.run, &bundle), &loads),
            Err(_) if words.is_empty() => {
                not_run(step, self.kernel, &format!("its run ended with exit code {code}"))
            }
            Err(_) => not_run(step, self.kernel, &words),
        };
        Ok(PhaseEnd::Row(Box::new(self.with_conditions(row))))
    }

    /// Load of a phase whose run is in a partition without the load's CPUs: this process starts it.
    fn load_outside(&self, step: &SuiteStep) -> Result<Option<RunningLoads>> {
        if !step.isolates() || step.load.is_empty() {
            return Ok(None);
        }
        let specs = spec::parse(&[&step.load]).map_err(Failure::usage)?;
        let cpus = self.load_cpus(step).without(&self.cpus);
        let planned = plan(specs, &cpus, &existing(self.folder))?;
        RunningLoads::start(planned, &cpus).map(Some)
    }

    fn load_cpus(&self, step: &SuiteStep) -> CpuSet {
        match step.load_on {
            LoadOn::All => self.load_cpus.or(&self.cpus),
            LoadOn::Same | LoadOn::Other => self.load_cpus.clone(),
        }
    }

    fn hole(&self, step: &SuiteStep, why: &str) -> PhaseEnd {
        PhaseEnd::Row(Box::new(not_run(step, self.kernel, why)))
    }

    /// Name of a new folder: runs of a killed suite are not the phase, and are left unchanged.
    fn new_bundle(&self, name: &str) -> String {
        let again = (2..).map(|time| format!("phases/{name}-again-{time}"));
        let mut names = std::iter::once(format!("phases/{name}")).chain(again);
        let is_new = |bundle: &String| host::identity(&self.folder.join(bundle)).is_none();
        names.find(is_new).unwrap_or_default()
    }

    fn arguments(&self, step: &SuiteStep, bundle: &Path) -> Vec<String> {
        let recipe = self.recipe;
        let mut line: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
        match step.kind {
            StepKind::WakeUps { samples } => {
                add(&["measure", "-i", &recipe.interval, "-l", &samples.to_string()]);
                if !recipe.distance.is_empty() {
                    add(&["-d", &recipe.distance]);
                }
            }
            StepKind::Spin { length, hog } => {
                add(&["probe", "spin", "-D", &format!("{}ns", length.0)]);
                if hog {
                    add(&["--hog"]);
                }
            }
        }
        add(&["-q", "-p", &recipe.priority.to_string(), "-a", &self.cpus.to_string()]);
        add(&["-o", &bundle.display().to_string()]);
        self.labels.iter().for_each(|label| add(&["--label", label]));
        if !step.load.is_empty() && !step.isolates() {
            add(&["--load", &step.load, "--load-cpus", &self.load_cpus(step).to_string()]);
        }
        line
    }

    /// Adds frequency and temperature; read between phases only, as they may need firmware.
    fn with_conditions(&self, row: SuitePhase) -> SuitePhase {
        let files = MachineFiles::live();
        let number =
            |path: &str| files.read_text(path).known().and_then(|text| text.trim().parse::<i64>().ok());
        let cpu = self.cpus.iter().next().map_or(0, |cpu| cpu.0);
        let frequency = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let zone = |zone| number(&format!("/sys/class/thermal/thermal_zone{zone}/temp"));
        SuitePhase {
            khz: number(&frequency).and_then(|khz| u64::try_from(khz).ok()),
            temp_mc: (0..32).map_while(zone).max(),
            ..row
        }
    }

    /// Waits, and shows the progress of the suite; true if a stop signal came.
    fn wait(&self, until: Nanos, step: &SuiteStep, place: &str, left: Nanos) -> bool {
        loop {
            if self.shows && host::in_foreground() {
                let all = Nanos(left.0.saturating_add(length(self.recipe, step.kind).0));
                let line = format!("phase {place}: {}; at most {} left", step.id, spoken(all));
                let _ = io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
            }
            let now = clock::monotonic();
            if now >= until {
                return false;
            }
            if rt::wait_until(until.min(now + Nanos::SECOND)) == Woken::Stop {
                return true;
            }
        }
    }

    fn clear(&self) {
        if self.shows && host::in_foreground() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// Row with the result of loads that are not in its run.
fn beside_loads(row: SuitePhase, loads: &[LoadRun]) -> SuitePhase {
    let idle = loads.iter().filter(|load| !load.held).map(sentence);
    let why: Vec<String> = idle.chain(Some(row.why.clone()).filter(|why| !why.is_empty())).collect();
    SuitePhase { valid: why.is_empty(), why: why.join("; "), ..row }
}
