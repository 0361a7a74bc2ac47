//! A bundle with the contents of its report: pictures over time, spikes with their events, bounds.

use std::path::Path;

use bundle::events::each_window;
use bundle::read::Bundle;
use facts::differences::Settings;
use model::error::Result;
use model::run::{Peak, Run};
use model::text::{quoted, several};
use model::units::Nanos;
use model::vocabulary::Command;
use report::Input;
use report::hunt::parts::by_latency;
use report::hunt::windows::Windows;
use report::hunt::{perfetto, typical};
use report::plot::history::History;
use rules::culprits::context::StealInterval;
use stats::bounds::{Bounds, Question};
use stats::series::Collector;
use trace::window::Window;

use crate::compare::settings;
use crate::measurement::Measurement;
use crate::{bounds, explain};

/// Columns of the pictures over time; a longer run has more time in each.
const COLUMNS: usize = report::plot::history::COLUMNS;

/// A run with the data of its pictures.
pub struct ReportedRun {
    pub measurement: Measurement,
    history: History,
    bounds: Option<Bounds>,
    windows: Option<Windows>,
    settings: Option<Settings>,
    place: String,
}

impl ReportedRun {
    /// Reads a bundle; its blocks only once, because those of a day are a quarter of a gigabyte.
    pub fn open(path: &Path) -> Result<ReportedRun> {
        let mut bundle = Bundle::open(path)?;
        let mut history = History::for_run(&bundle.run, COLUMNS);
        let mut collector = Collector::new(None, bundle.run.plan.interval_ns.unwrap_or_default());
        let mut stolen = Vec::new();
        let unread = bundle.each_block(|block| {
            stolen.extend(StealInterval::of(block));
            collector.add(&Peak::of(block));
            history.add(block);
        })?;
        if unread > 0 {
            bundle.remarks.push(format!(
                "{} of blocks.jsonl could not be read and are missing from the pictures over time",
                several(unread, "line", "lines")
            ));
        }
        let hunted = bundle.run.command == Command::Hunt;
        let windows = hunted.then(|| windows(path, &mut bundle, &stolen)).transpose()?;
        let measurement = Measurement::of_bundle(path, bundle, collector, Nanos(1));
        Ok(ReportedRun { measurement, history, bounds: None, windows, settings: None, place: quoted(path) })
    }

    /// Sets the run's name in its heading and in commands: the path of a bundle on a server is of
    /// no use to a reader of its page.
    pub fn named(mut self, name: &str) -> ReportedRun {
        name.clone_into(&mut self.measurement.title);
        self.place = quoted(name);
        self
    }

    /// Adds the claims that the run supports, if any; for the run's limit if none is requested.
    pub fn ask(&mut self, question: &Question) {
        let own = self.measurement.run.as_ref().and_then(|run| run.plan.limit_ns);
        let question = Question { limit: question.limit.or(own), ..*question };
        self.bounds = bounds::bounds(&self.measurement, &question).ok();
    }

    /// Reads the conditions that it is compared in with others.
    pub fn read_settings(&mut self) {
        self.settings = settings(&self.measurement);
    }

    /// Input of the report.
    pub fn input(&self) -> Option<Input<'_>> {
        Some(Input {
            run: self.measurement.run.as_ref()?,
            history: &self.history,
            series: &self.measurement.series,
            bounds: self.bounds.as_ref(),
            windows: self.windows.as_ref(),
            remarks: &self.measurement.remarks,
            settings: self.settings.as_ref(),
            title: &self.measurement.title,
            place: &self.place,
        })
    }
}

/// A spike of a hunt, with the trace around it if that was kept.
pub struct ReportedSpike {
    pub run: Run,
    pub window: Option<Window>,
}

/// A run with all of its spikes, as [`spike`] numbers them.
pub fn spiked_run(path: &Path) -> Result<Run> {
    let mut bundle = Bundle::open(path)?;
    explain::bring_up_to_date(path, &mut bundle)?;
    Ok(bundle.run)
}

/// A spike by its number, 1 for the latest of all; `None` if the run has fewer.
pub fn spike(path: &Path, number: usize) -> Result<Option<ReportedSpike>> {
    let run = spiked_run(path)?;
    let at = number.checked_sub(1).and_then(|at| by_latency(&run).get(at).copied());
    let Some(spike) = at.map(|at| &run.spikes[at]) else { return Ok(None) };
    let wanted = (spike.cpu, spike.expected_ns, spike.actual_ns);
    let mut found = None;
    each_window(path, |window| {
        if (window.cpu, window.expected_ns, window.actual_ns) == wanted {
            found = Some(window);
        }
    })?;
    Ok(Some(ReportedSpike { run, window: found }))
}

/// Traces around a hunt's spikes; for a hunt that was killed, also of the spikes since its last
/// checkpoint.
fn windows(path: &Path, bundle: &mut Bundle, stolen: &[StealInterval]) -> Result<Windows> {
    let typical = typical::all(&bundle.run).into_iter().filter_map(|part| part.typical);
    let mut windows = Windows::wanting(typical.map(|at| &bundle.run.spikes[at]));
    let unread = if bundle.run.complete {
        each_window(path, |window| windows.add(window))?
    } else {
        explain::explain(path, &mut bundle.run, stolen, |window| windows.add(window))?
    };
    if unread > 0 {
        bundle.remarks.push(format!(
            "{} of events could not be read and are missing from the pictures",
            several(unread, "window", "windows")
        ));
    }
    Ok(windows)
}

/// Number of spikes whose events go into a trace for Perfetto: more than anyone looks at, and few
/// enough for its memory.
pub const MAX_TRACED_SPIKES: usize = 200;
/// And this many events of theirs.
const MAX_TRACED_EVENTS: usize = 500_000;

/// The windows of a trace that are drawn, as far as there is room.
#[derive(Default)]
pub struct TracedWindows {
    windows: Vec<Window>,
    events: usize,
}

impl TracedWindows {
    /// Adds a window.
    pub fn add(&mut self, window: Window) {
        if self.windows.len() < MAX_TRACED_SPIKES && self.events < MAX_TRACED_EVENTS {
            self.events += window.events.len();
            self.windows.push(window);
        }
    }

    /// The text that ui.perfetto.dev opens, of the run that they are of.
    pub fn perfetto(&self, named: &Path, run: &Run) -> String {
        let title =
            named.file_name().map_or_else(|| run.id.clone(), |name| name.to_string_lossy().into_owned());
        perfetto::render(&[perfetto::Traced { title: &title, run, windows: &self.windows }])
    }
}

/// Trace for ui.perfetto.dev, of the worst spikes whose windows the bundle has.
pub fn perfetto(bundle: &Path, run: &Run) -> Result<String> {
    let mut latencies: Vec<_> = run.spikes.iter().map(|spike| spike.latency_ns).collect();
    latencies.sort_unstable_by(|a, b| b.cmp(a));
    let least = latencies.get(MAX_TRACED_SPIKES - 1).copied().unwrap_or_default();
    let mut traced = TracedWindows::default();
    each_window(bundle, |window| {
        if window.latency() >= least {
            traced.add(window);
        }
    })?;
    Ok(traced.perfetto(bundle, run))
}
