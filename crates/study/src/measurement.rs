//! A run, or a list of block maxima, read into a series: the input of bounds and comparisons.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bundle::foreign;
use bundle::foreign::maxima::{self, LINE_LIMIT, Maxima};
use bundle::read::Bundle;
use model::error::{Exit, Failure, Result};
use model::run::{CpuRun, Run};

use model::histogram::Bucket;
use model::text::{quoted, several};
use model::units::{CpuSet, Nanos};
use model::vocabulary::Command;
use stats::bounds::OverflowList;
use stats::series::{BLOCK, Collector, Series};

/// Values that are looked at for repetition.
const MAX_VALUES: usize = 10_000;
/// Average number of occurrences of each value from which values count as rounded.
const MIN_REPEATS: usize = 5;

/// Options for reading inputs.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Only these CPUs of a run; not for a list.
    pub cpus: Option<CpuSet>,
    /// Length of a block of a list; a run states it.
    pub block: Option<Nanos>,
    /// Step in which the latencies of a list were recorded, each rounded down.
    pub resolution: Option<Nanos>,
}

pub struct Measurement {
    /// Its name, for people.
    pub title: String,
    pub series: Series,
    /// Its run; none for a list.
    pub run: Option<Run>,
    /// Remarks on repairs and omissions in reading it.
    pub remarks: Vec<String>,
    pub path: PathBuf,
    /// The identity of the file or folder, independent of its name.
    pub identity: Option<(u64, u64)>,
}

impl Measurement {
    /// A bundle whose blocks were collected.
    pub fn of_bundle(path: &Path, bundle: Bundle, collector: Collector, step: Nanos) -> Measurement {
        let tick = bundle.run.cpus.iter().filter_map(|cpu| cpu.interval_ns).max();
        let mut series = collector.finish(step, tick.unwrap_or(Nanos(1)), length(&bundle.run));
        let measured = bundle.run.cpus.iter().filter(|cpu| cpu.cycles != Some(0)).filter_map(|cpu| cpu.cpu);
        series.unseen = measured.filter(|cpu| !series.cpus.contains(cpu)).collect();
        Measurement {
            title: title(path),
            series,
            run: Some(bundle.run),
            remarks: bundle.remarks,
            path: path.to_owned(),
            identity: host::identity(path),
        }
    }

    /// The histogram over all CPUs; empty for a list.
    pub fn rows(&self) -> Vec<Bucket> {
        report::totals::sum_rows(self.cpus().map(|cpu| cpu.histogram.as_slice()))
    }

    /// The largest latency stated by the run; `None` unless it states that of each CPU.
    pub fn max(&self) -> Option<Nanos> {
        self.run.as_ref().and_then(report::totals::largest)
    }

    /// Number of samples beyond an imported histogram.
    pub fn overflows(&self) -> u64 {
        self.cpus().filter_map(|cpu| cpu.overflows).fold(0, u64::saturating_add)
    }

    /// Number of the run's wake-ups; `None` for a list, or if its file does not state it.
    pub fn wake_ups(&self) -> Option<u64> {
        self.run.as_ref().and_then(Run::samples)
    }

    /// Failed integrity checks that bar a claim about all its wake-ups.
    pub fn invalid(&self) -> Vec<String> {
        let entries = self.run.iter().flat_map(|run| &run.integrity);
        entries.filter(|entry| entry.bars_claims()).map(report::run::sentences::integrity).collect()
    }

    /// Times of the listed samples beyond an imported histogram's end, a list per CPU: cyclictest
    /// gives their cycle numbers, which the interval converts to times.
    pub fn overflow_lists(&self) -> Vec<OverflowList> {
        let planned = self.run.as_ref().and_then(|run| run.plan.interval_ns);
        let of_cpu = |cpu: &CpuRun| {
            let interval = cpu.interval_ns.or(planned)?;
            let time = |cycle: u64| i64::try_from(cycle).ok()?.checked_mul(interval.0);
            let mut times: Vec<i64> = cpu.listed_overflows().filter_map(time).collect();
            times.sort_unstable();
            let cut = cpu.overflows.is_some_and(|all| all > times.len() as u64);
            let until = times.last().copied().filter(|_| cut);
            (!times.is_empty()).then_some(OverflowList { times, until })
        };
        self.cpus().filter_map(of_cpu).collect()
    }

    /// The entries that the run is judged by; none for a list.
    pub fn cpus(&self) -> impl Iterator<Item = &CpuRun> {
        self.run.iter().flat_map(Run::primary)
    }
}

impl ReadOptions {
    /// Reads an input: a bundle's folder or `run.json`, or a list of maxima.
    pub fn open(&self, path: &Path) -> Result<Measurement> {
        let run = path.file_name().is_some_and(|name| name == "run.json");
        let folder = run || host::is_dir(path).map_err(|error| self.unreadable(path, &error))?;
        if folder { self.bundle(path) } else { self.list(path) }
    }

    fn unreadable(&self, path: &Path, error: &std::io::Error) -> Failure {
        let expected = "expected a bundle or a list of block maxima in ns";
        Failure::of_call(format!("cannot read {}", quoted(path)), error, Exit::Usage, expected)
    }

    fn bundle(&self, path: &Path) -> Result<Measurement> {
        let mut bundle = Bundle::open(path)?;
        let wanted = &self.cpus;
        if self.block.is_some() || self.resolution.is_some() {
            return Err(Failure::usage(
                "--block and --resolution are only for CSV files: a run contains them",
            ));
        }
        if let Some(thread) = bundle.run.cpus.iter().find(|cpu| cpu.cpu.is_none() && wanted.is_some()) {
            let (name, quoted_path) = (thread.name(), quoted(path));
            return Err(Failure::usage(format!("{quoted_path} does not state the CPU of {name}: remove -a")));
        }
        if let Some(missing) =
            wanted.iter().flat_map(CpuSet::iter).find(|cpu| !bundle.run.plan.cpus.contains(cpu))
        {
            return Err(Failure::usage(format!(
                "{}: CPU {missing} was not measured: choose others with -a",
                quoted(path)
            )));
        }
        let mut collector = Collector::new(
            wanted.as_ref().map(|set| set.iter().collect()),
            bundle.run.plan.interval_ns.unwrap_or_default(),
        );
        let unread = bundle.each_peak(|peak| collector.add(peak))?;
        if unread > 0 {
            bundle.remarks.push(format!(
                "{} of blocks.jsonl could not be read and were skipped",
                several(unread, "line", "lines")
            ));
        }
        if let Some(wanted) = wanted {
            bundle.run.cpus.retain(|cpu| cpu.cpu.is_some_and(|cpu| wanted.contains(cpu)));
        }
        bundle.remarks.extend(of_hunt(&bundle.run));
        Ok(Measurement::of_bundle(path, bundle, collector, self.step()))
    }

    fn list(&self, path: &Path) -> Result<Measurement> {
        let name = quoted(path);
        let failed = |error: std::io::Error| self.unreadable(path, &error);
        if self.cpus.is_some() {
            return Err(Failure::usage(format!("{name} is a list, which has no CPUs: remove -a")));
        }
        let block = self.block.unwrap_or(BLOCK);
        let mut lines = host::Lines::open(path, LINE_LIMIT).map_err(failed)?;
        let mut maxima = Maxima::default();
        let mut first = true;
        while let Some(line) = lines.next_line().map_err(failed)? {
            if std::mem::take(&mut first) && line.starts_with(b"{") {
                let what = known_content(path).map_or_else(
                    || {
                        " is JSON: give a bundle's folder; `onbeat import` converts a result of cyclictest"
                            .into()
                    },
                    |what| format!(": {what}"),
                );
                return Err(Failure::usage(format!("{name}{what}")));
            }
            maxima
                .line(line)
                .map_err(|what| Failure::usage(format!("{name}: {}", known_content(path).unwrap_or(what))))?;
        }
        if lines.too_long() > 0 {
            return Err(Failure::usage(format!(
                "{name}: a line is longer than {LINE_LIMIT} bytes: expected one integer in ns"
            )));
        }
        let (list, mut remarks) =
            maxima.finish().map_err(|what| Failure::usage(format!("{name}: {what}")))?;
        let length = (list.len() as i64).checked_mul(block.0);
        if length.is_none() {
            return Err(Failure::usage(format!(
                "{name}: these blocks last longer than 292 years: give a shorter --block"
            )));
        }
        let step = match (self.resolution, coarse_step(|| maxima::values(&list).flatten())) {
            (None, Some(step)) => {
                remarks.push(format!(
                    "few different values, all multiples of {}: used as the resolution, --resolution overrides it",
                    step.spoken()
                ));
                step
            }
            _ => self.step(),
        };
        let series = Series::of_maxima(maxima::values(&list), block, step);
        Ok(Measurement {
            title: title(path),
            series,
            run: None,
            remarks,
            path: path.to_owned(),
            identity: host::identity(path),
        })
    }

    fn step(&self) -> Nanos {
        self.resolution.unwrap_or(Nanos(1))
    }
}

/// Kind of a file that is not a list, and the command that reads it.
fn known_content(path: &Path) -> Option<String> {
    let bytes = host::read_user_file(path, foreign::FILE_LIMIT as u64).ok()?;
    foreign::known_file(&bytes)
}

/// Length of a run; for an import, from its cycles and their interval.
fn length(run: &Run) -> Option<Nanos> {
    let of_cpu = |cpu: &CpuRun| {
        let interval = cpu.interval_ns.or(run.plan.interval_ns)?;
        i64::try_from(cpu.cycles?).ok()?.checked_mul(interval.0).map(Nanos)
    };
    run.elapsed_ns.or_else(|| run.cpus.iter().filter_map(of_cpu).max())
}

/// A microsecond if all values are multiples of one and most recur: rounded numbers, each of which
/// represents all values that were rounded to it.
fn coarse_step<I: Iterator<Item = Nanos>>(known: impl Fn() -> I) -> Option<Nanos> {
    let different: BTreeSet<Nanos> = known().take(MAX_VALUES).collect();
    let repeated = different.len() > 1 && different.len() * MIN_REPEATS <= known().take(MAX_VALUES).count();
    (repeated && known().all(|value| value.0 % Nanos::MICRO.0 == 0)).then_some(Nanos::MICRO)
}

fn title(path: &Path) -> String {
    let name = path.file_name().filter(|name| *name != "run.json").or_else(|| path.parent()?.file_name());
    name.map_or_else(|| path.to_string_lossy().into_owned(), |name| name.to_string_lossy().into_owned())
}

/// Caveat for the maxima of a hunt.
fn of_hunt(run: &Run) -> Option<String> {
    if run.command != Command::Hunt {
        return None;
    }
    let late: u64 = run.threads.iter().filter_map(|thread| thread.late).sum();
    let worst = run.threads.iter().filter_map(|thread| thread.worst_ns).max();
    Some(match worst {
        Some(worst) => format!(
            "a hunt of a program: these are its wake-ups; of its responses, the worst was {} and {late} \
             missed the deadline",
            worst.spoken()
        ),
        None => "a hunt, whose tracing adds latency: for the machine's latency use a run of `onbeat measure`"
            .to_owned(),
    })
}
