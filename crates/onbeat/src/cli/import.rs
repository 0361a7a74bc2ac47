//! `onbeat import`: another tool's result as a bundle.

use std::path::PathBuf;

use super::Environment;
use super::outputs::{OutputFlags, Outputs, remark};
use super::running::{block_signals, unless_stopped};
use bundle::foreign;
use bundle::write::BundleWriter;
use host::{self, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::{Bare, Nanos, parse_span};
use report::run::table;

/// Histograms of any length fit; a file that is larger is something else.
const FILE_LIMIT: u64 = 64 << 20;

/// Keep another tool's result as a bundle
///
/// Reads cyclictest's JSON (--json) and its histogram text (-h, -H, --histfile), of versions before
/// and after 2.7. What such a file does not carry stays unknown, unless a flag gives it.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write run.json there too; `-` is standard output, which then holds nothing else")),
    mut_arg("quiet", |arg| arg.help("Do not print the result")),
    after_help = "Examples:\n  onbeat import results.json -i 200\n  onbeat import hist.txt -i 1000 -o bundle && onbeat report bundle -o latency.html"
)]
pub struct Args {
    /// The file
    file: PathBuf,
    /// The interval it was measured with, which it does not carry; a bare number is in us
    #[arg(short, long, value_name = "SPAN")]
    interval: Option<String>,
    /// The histogram text was written with cyclictest's -N: its numbers are ns, which it does not
    /// say
    #[arg(short = 'N', long)]
    nsecs: bool,
    /// The folder to keep the run in; by default under ~/.local/state/onbeat/runs
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let shown = quoted(&args.file);
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let interval = args.interval.as_deref().map(interval).transpose()?;
    let bytes = host::read_user_file(&args.file, FILE_LIMIT).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "run as its owner",
            _ => "give a result of cyclictest's",
        };
        Failure::of_call(format!("cannot read {shown}"), &error, Exit::Usage, remedy)
    })?;
    let mut run = foreign::import(&bytes).map_err(|what| Failure::usage(format!("{shown}: {what}")))?;
    let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if args.nsecs && is_json {
        return Err(Failure::usage("-N is for histogram text: cyclictest's JSON says its unit itself"));
    }
    drop(bytes);
    if args.nsecs {
        foreign::set_nanoseconds(&mut run);
    }
    if let Some(interval) = interval {
        foreign::set_interval(&mut run, interval);
    }
    run.id = format!("import-{:016x}", random_u64());
    let path = args.folder.clone().unwrap_or_else(|| environment.runs().join(&run.id));
    block_signals()?;
    let writer = BundleWriter::create(&path, run.cpus.len())?;
    let path = writer.finish(&run, &run.spikes)?;
    rt::unblock_signals();
    outputs.json(&args.output.json, &run);
    if !args.output.quiet {
        let table = table::render(&run, outputs.screen.columns, outputs.screen.color);
        outputs.print(&format!("{table}kept in {}\n", quoted(&path)));
    }
    if run.plan.interval_ns.is_none() {
        remark(
            "onbeat: the interval is not in the file: give it with -i, so that cycle numbers become times",
        );
    }
    unless_stopped(outputs.end(Exit::Ok))
}

fn interval(text: &str) -> Result<Nanos> {
    match parse_span(text, Bare::Micros) {
        Ok(span) if span.0 > 0 => Ok(span),
        Ok(_) => Err(Failure::usage("-i: an interval of 0 is none: give the one of the measurement")),
        Err(what) => Err(Failure::usage(format!("-i: {what}"))),
    }
}
