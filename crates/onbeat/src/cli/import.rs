//! `onbeat import`: the result of another tool as a bundle.

use std::path::{Path, PathBuf};

use super::Environment;
use super::outputs::{OutputFlags, Outputs, remark};
use super::running::{block_signals, unless_stopped};
use bundle::foreign::{self, ImportOptions};
use bundle::write::BundleWriter;
use host::{self, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::run::{CpuRun, Run, Worst};
use model::text::{quoted, several};
use model::units::{Bare, Nanos, parse_span};
use report::run::table;

/// Maximum size of a file: histograms of any length fit.
const FILE_LIMIT: u64 = foreign::FILE_LIMIT as u64;

/// Convert another tool's result to a bundle
///
/// The format is detected from the file's heading, footer, command line, columns and units. Results
/// within a longer log are found; several become DIR, DIR-2 and so on. Facts that a file does not
/// contain stay unknown unless a flag gives them. `docs/formats.md` lists the formats.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Also write run.json to this file; `-` is standard output, which then holds nothing else")),
    mut_arg("quiet", |arg| arg.help("Print only the table, no details")),
    after_help = "Examples:\n  onbeat import results.json -i 200\n  onbeat import hist.txt -i 1000 -o bundle && onbeat report bundle -o latency.html\n  onbeat import job.log --block 2\n  grep -v '#' hist.txt > rows.txt; onbeat import rows.txt --as cyclictest-text"
)]
pub struct Args {
    /// File to convert: plain or gzip, UTF-8 or UTF-16
    file: PathBuf,
    /// Format of the file; rows without their heading are then accepted
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<String>,
    /// Convert only the Nth result of the file
    #[arg(long, value_name = "N")]
    block: Option<usize>,
    /// Interval of the measurement, if the file does not state it; a bare number is in us
    #[arg(short, long, value_name = "SPAN")]
    interval: Option<String>,
    /// Read numbers without a unit as nanoseconds, as cyclictest -N writes them
    #[arg(short = 'N', long)]
    nsecs: bool,
    /// Folder of the run; by default under ~/.local/state/onbeat/runs
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let shown = quoted(&args.file);
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let options = ImportOptions {
        format: args.format.as_deref().map(format_id),
        interval: args.interval.as_deref().map(interval).transpose()?,
        nanoseconds: args.nsecs,
    };
    if host::identity(&args.file.join("run.json")).is_some() {
        return Err(Failure::usage(format!(
            "{shown} is a run of onbeat: report, bounds and compare read it without a conversion"
        )));
    }
    let bytes = host::read_user_file(&args.file, FILE_LIMIT).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "run as its owner",
            std::io::ErrorKind::Other => "extract the lines of the result",
            _ => "give the output of a latency tool",
        };
        Failure::of_call(format!("cannot read {shown}"), &error, Exit::Usage, remedy)
    })?;
    let mut results =
        foreign::import(&bytes, &options).map_err(|what| Failure::usage(format!("{shown}: {what}")))?;
    drop(bytes);
    if let Some(block) = args.block {
        let count = results.len();
        if !(1..=count).contains(&block) {
            return Err(Failure::usage(format!(
                "invalid --block {block}: {shown} holds {}",
                several(count as u64, "result", "results")
            )));
        }
        results = vec![results.swap_remove(block - 1)];
    }
    if results.len() > 1 && args.output.json.is_some() {
        return Err(Failure::usage(format!(
            "{shown} holds {} results, and --json takes one: choose one with --block",
            results.len()
        )));
    }
    let folders: Vec<PathBuf> = (0..results.len()).map(|index| folder(args, environment, index)).collect();
    if let Some(there) = folders.iter().find(|folder| folder.exists()) {
        return Err(Failure::usage(format!(
            "{} already exists: choose another folder with -o",
            quoted(there)
        )));
    }
    block_signals()?;
    for (result, folder) in results.iter_mut().zip(folders) {
        result.run.id = folder_name(&folder);
        let mut writer = BundleWriter::create(&folder, result.run.cpus.len())?;
        if !result.blocks.is_empty() {
            writer.second(&result.blocks, &[]).map_err(Failure::internal)?;
        }
        let path = writer.finish(&result.run, &result.run.spikes)?;
        outputs.json(&args.output.json, &result.run);
        let render = if args.output.quiet { table::brief } else { table::render };
        let table = render(&result.run, outputs.screen.columns, outputs.screen.color);
        outputs.print(&format!("{table}kept in {}\n", quoted(&path)));
        result.remarks.iter().for_each(|what| remark(&format!("onbeat: {what}")));
    }
    rt::unblock_signals();
    if results.iter().any(|result| needs_interval(&result.run)) {
        remark(
            "onbeat: the file does not state the interval: give it with -i to convert cycle numbers to times",
        );
    }
    unless_stopped(outputs.end(Exit::Ok))
}

/// Format name that `--as` takes; a tool's name alone stands for its text format.
fn format_id(name: &str) -> String {
    match name {
        "cyclictest" => "cyclictest-text".to_owned(),
        name => name.to_owned(),
    }
}

/// Folder of the result with this index, counted from 0.
fn folder(args: &Args, environment: &Environment, index: usize) -> PathBuf {
    let Some(first) = &args.folder else {
        return environment.runs().join(format!("import-{:016x}", random_u64()));
    };
    if index == 0 {
        return first.clone();
    }
    let name = first.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    first.with_file_name(format!("{name}-{}", index + 1))
}

/// Identity of a run: the name of its default folder, or a random one.
fn folder_name(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| name.starts_with("import-")).unwrap_or_else(|| format!("import-{:016x}", random_u64()))
}

/// True if an interval would turn the file's cycle numbers into times.
fn needs_interval(run: &Run) -> bool {
    let listed = |cpu: &CpuRun| cpu.listed_overflows().next().is_some() || cpu.worst.iter().any(is_numbered);
    run.plan.interval_ns.is_none() && run.cpus.iter().any(listed)
}

fn is_numbered(worst: &Worst) -> bool {
    worst.cycle.is_some() && worst.mono_ns.is_none()
}

fn interval(text: &str) -> Result<Nanos> {
    match parse_span(text, Bare::Micros) {
        Ok(span) if span.0 > 0 => Ok(span),
        Ok(_) => {
            Err(Failure::usage("invalid -i: expected an interval above 0; give that of the measurement"))
        }
        Err(what) => Err(Failure::usage(format!("-i: {what}"))),
    }
}
