//! `onbeat threads`: threads by priority, with their CPUs.

use std::path::PathBuf;

use super::Environment;
use super::flags::cpu_list;
use super::named_run::named_by_flag;
use super::outputs::{OutputFlags, Outputs};
use model::error::{Exit, Result};
use report::placement::ListLayout;
use report::placement::threads::{ThreadRows, render};
use study::audit::MachineSource;
use study::placement::{ThreadsRequest, threads_of};

/// List threads by priority, with their CPUs and what cannot be moved
///
/// Real-time threads come in the order in which they preempt each other: deadline threads, then
/// priorities 99 to 1; migration/N is above all of them. Of other threads the number is printed. On
/// a terminal, threads whose names differ in numbers only are joined if they do not fit. Reads
/// /proc, changes nothing; the JSON has all threads.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat threads\n  \
        onbeat threads --cpus 2-3 --all\n  \
        onbeat threads --pid 1234\n  \
        onbeat threads --json - | jq '.threads[] | select(.priority > 50)'")]
pub struct Args {
    /// Only threads that may run on any of these CPUs
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<String>,
    /// Only threads of this process, each in a row
    #[arg(long, value_name = "PID", conflicts_with = "bundle")]
    pid: Option<u32>,
    /// Only real-time threads, each in a row
    #[arg(long, conflicts_with = "all")]
    rt: bool,
    /// All threads, each in a row
    #[arg(long)]
    all: bool,
    /// List the threads of a capture
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let cpus = args.cpus.as_deref().map(|text| cpu_list("--cpus", text)).transpose()?;
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let bundle = named_by_flag(args.bundle.as_ref(), environment)?;
    let wanted = ThreadsRequest { cpus, pid: args.pid, realtime: args.rt };
    let document = threads_of(MachineSource::of(bundle.as_deref(), None), &wanted)?;
    outputs.json_pretty(&args.output.json, &document);
    let each = args.all || args.rt || args.pid.is_some();
    let rows = if each { ThreadRows::All } else { ThreadRows::Screen };
    let (columns, color) = (outputs.screen.columns, outputs.screen.color);
    outputs.print(&render(&document, rows, ListLayout { columns, rows: environment.rows(), color }));
    outputs.end(Exit::Ok)
}
