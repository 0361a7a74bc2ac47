//! Flags of every command that reads runs or lists of maxima.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use host::clock;
use model::error::{Failure, Result};
use model::units::{Bare, CpuSet, Nanos};
use study::compare::reading_remarks;
use study::measurement::{Measurement, ReadOptions};
use study::parallel;

use super::flags::{cpu_list, positive_span};
use super::outputs::{is_one_terminal, remark};

/// Time after which progress is shown.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// Interpretation of the inputs.
#[derive(clap::Args, Default)]
pub struct ReadFlags {
    /// Use only these CPUs of a run, like 2-3
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    cpus: Option<String>,
    /// Block length in a CSV file; a bare number is in seconds [default: 1s]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    block: Option<String>,
    /// Resolution of the latencies, each rounded down; a bare number is in us [default: 1ns]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    resolution: Option<String>,
}

impl ReadFlags {
    /// The values of the flags; an error names the flag.
    pub fn options(&self) -> Result<ReadOptions> {
        let span = |flag: &str, text: &Option<String>, bare| {
            text.as_deref().map(|text| positive_span(flag, text, bare)).transpose()
        };
        let cpus = self.cpus.as_deref().map(|text| cpu_list("-a", text)).transpose()?;
        if cpus.as_ref().is_some_and(CpuSet::is_empty) {
            return Err(Failure::usage("invalid -a: expected at least one CPU"));
        }
        Ok(ReadOptions {
            cpus,
            block: span("--block", &self.block, Bare::Seconds)?,
            resolution: span("--resolution", &self.resolution, Bare::Micros)?,
        })
    }
}

/// Reads the inputs in their order, with a progress line if that takes long.
pub fn read_all(paths: &[PathBuf], options: &ReadOptions, progress: bool) -> Result<Vec<Measurement>> {
    let begun = clock::monotonic();
    let progress = progress && std::io::stderr().is_terminal();
    let read = parallel::read(paths, options, |ready| {
        if progress {
            show_progress(ready, paths.len(), clock::monotonic() - begun);
        }
    });
    if progress && clock::monotonic() - begun > PATIENCE {
        let _ = write!(std::io::stderr(), "\r\u{1b}[K");
    }
    read
}

fn show_progress(ready: usize, of: usize, spent: Nanos) {
    if spent > PATIENCE && ready < of {
        let left = spent.as_secs() / ready as f64 * (of - ready) as f64;
        let _ = write!(std::io::stderr(), "\r\u{1b}[Kread {ready} of {of} runs, {left:.0} s left");
    }
}

/// Prints the remarks on inputs on standard error; true if they are on one terminal with the
/// answer, which need not repeat them.
pub fn print_remarks(measurements: &[&Measurement], quiet: bool) -> bool {
    if quiet {
        return false;
    }
    reading_remarks(measurements).iter().for_each(|line| remark(&format!("onbeat: {line}")));
    is_one_terminal()
}
