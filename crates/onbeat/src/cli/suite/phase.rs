//! One phase of a suite: a run of `onbeat measure` in a process of its own, read from its bundle.

use std::io::{self, Write};
use std::path::Path;

use ::suite::outcome::{not_run, row};
use ::suite::phases::{SuiteStep, length};
use ::suite::recipe::{LoadOn, Recipe};
use bundle::read::Bundle;
use host::rt::{self, Woken};
use host::{MachineFiles, OwnRun, clock};
use model::error::{Exit, Failure, Result};
use model::suite::SuitePhase;
use model::units::{CpuSet, Nanos};

/// What is common to all phases.
pub struct PhaseSetup<'a> {
    pub recipe: &'a Recipe,
    /// The folder of the suite.
    pub folder: &'a Path,
    /// Measured CPUs, and those of the load.
    pub cpus: CpuSet,
    pub load_cpus: CpuSet,
    pub kernel: &'a str,
    /// Whether progress is drawn on standard error.
    pub shows: bool,
}

/// How a phase ended.
pub enum PhaseEnd {
    Row(Box<SuitePhase>),
    /// A stop signal came; what was measured of it is in its bundle.
    Stopped,
}

/// How often the run is looked at.
const PERIOD: Nanos = Nanos(200_000_000);

/// The measured CPUs and those of the load among these.
///
/// # Errors
/// There are too few to divide.
pub fn divided(recipe: &Recipe, permitted: &CpuSet) -> Result<(CpuSet, CpuSet)> {
    match recipe.load_on {
        LoadOn::Same => Ok((permitted.clone(), permitted.clone())),
        LoadOn::Other if permitted.len() < 2 => Err(Failure::not_supported(format!(
            "{} measures other CPUs than it loads, and there is one: it takes a machine with two or more",
            recipe.name
        ))),
        LoadOn::Other => {
            let load: CpuSet = permitted.iter().take(permitted.len() / 2).collect();
            Ok((permitted.without(&load), load))
        }
    }
}

impl PhaseSetup<'_> {
    /// Settles, runs a step and reads what it came to. `place` is its number among all, `left` what
    /// the later ones take.
    pub fn run(&self, step: &SuiteStep, place: &str, left: Nanos) -> Result<PhaseEnd> {
        let begun = clock::monotonic();
        if self.wait(begun + self.recipe.settle(), step, place, left) {
            self.clear();
            return Ok(PhaseEnd::Stopped);
        }
        let name = format!("{}-{}", place.replace(" of ", "-"), step.id.replace('/', "-"));
        let bundle = self.new_bundle(&name);
        let failed = |error: io::Error| {
            Failure::of_call("the phase's run cannot be started", &error, Exit::Internal, "try again")
        };
        let mut run = OwnRun::start(&self.arguments(step, &self.folder.join(&bundle))).map_err(failed)?;
        let mut stopped = false;
        let code = loop {
            if let Some(code) = run.ended().map_err(failed)? {
                break code;
            }
            if self.wait(clock::monotonic() + PERIOD, step, place, left) && !stopped {
                stopped = true;
                run.stop();
            }
        };
        self.clear();
        if stopped {
            return Ok(PhaseEnd::Stopped);
        }
        let words = run.last_words();
        let row = match Bundle::open(&self.folder.join(&bundle)) {
            Ok(opened) => row(step, &opened.run, &bundle),
            Err(_) if words.is_empty() => {
                not_run(step, self.kernel, &format!("its run ended with exit code {code}"))
            }
            Err(_) => not_run(step, self.kernel, &words),
        };
        Ok(PhaseEnd::Row(Box::new(self.with_conditions(row))))
    }

    /// A folder that is not there yet: what a suite that was killed had measured is not the phase,
    /// and is left as it is.
    fn new_bundle(&self, name: &str) -> String {
        let again = (2..).map(|time| format!("phases/{name}-again-{time}"));
        let mut names = std::iter::once(format!("phases/{name}")).chain(again);
        let is_new = |bundle: &String| host::identity(&self.folder.join(bundle)).is_none();
        names.find(is_new).unwrap_or_default()
    }

    fn arguments(&self, step: &SuiteStep, bundle: &Path) -> Vec<String> {
        let recipe = self.recipe;
        let mut line: Vec<String> = ["measure", "-q", "-i", &recipe.interval].map(str::to_owned).into();
        line.extend(["-p".into(), recipe.priority.to_string(), "-l".into(), step.samples.to_string()]);
        line.extend(["-a".into(), self.cpus.to_string(), "-o".into(), bundle.display().to_string()]);
        if !recipe.distance.is_empty() {
            line.extend(["-d".into(), recipe.distance.clone()]);
        }
        if !step.load.is_empty() {
            line.extend([
                "--load".into(),
                step.load.clone(),
                "--load-cpus".into(),
                self.load_cpus.to_string(),
            ]);
        }
        line
    }

    /// Frequency and temperature, read between phases alone: on some machines that takes firmware.
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

    /// Waits, and shows how far the suite is; true if a stop signal came.
    fn wait(&self, until: Nanos, step: &SuiteStep, place: &str, left: Nanos) -> bool {
        loop {
            if self.shows && host::in_foreground() {
                let all = Nanos(left.0.saturating_add(length(self.recipe, step).0));
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

/// In minutes, or in seconds where they are few.
pub fn spoken(span: Nanos) -> String {
    match span.0 / Nanos::SECOND.0 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}
