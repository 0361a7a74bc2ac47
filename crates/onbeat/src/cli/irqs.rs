//! `onbeat irqs`: interrupts by number, with their CPUs, counts and threads.

use std::path::PathBuf;

use super::Environment;
use super::flags::{cpu_list, positive_span};
use super::named_run::named_by_flag;
use super::outputs::{OutputFlags, Outputs};
use host::clock;
use model::error::{Exit, Result};
use model::units::Bare;
use report::placement::ListLayout;
use report::placement::irqs::render;
use study::audit::MachineSource;
use study::placement::irqs_of;

/// List interrupts with their CPUs, counts and threads, and what cannot be moved
///
/// The answer is about the given CPUs, or else the isolated ones: how many interrupts may arrive
/// there, and which of them the kernel does not let move. A managed interrupt belongs to a queue of
/// a device, and the kernel places it. On a terminal, interrupts whose names differ in numbers only
/// are joined if they do not fit. Changes nothing, but do not call it during a measurement: reading
/// /proc/interrupts takes the lock of each interrupt, with interrupts off. The JSON has all
/// interrupts.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat irqs\n  \
        onbeat irqs --cpus 2-3 --over 10s\n  \
        onbeat irqs --json - | jq '.irqs[] | select(.movable | not) | .name'")]
pub struct Args {
    /// Only interrupts that may arrive on any of these CPUs, and their counts there
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<String>,
    /// Count for this long, and print rates; a bare number is in seconds
    #[arg(long, value_name = "SPAN", conflicts_with = "bundle", allow_hyphen_values = true)]
    over: Option<String>,
    /// All interrupts, each in a row, with those of the architecture that have no count
    #[arg(long)]
    all: bool,
    /// List the interrupts of a capture, which has no counts
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let cpus = args.cpus.as_deref().map(|text| cpu_list("--cpus", text)).transpose()?;
    let span = args.over.as_deref().map(|text| positive_span("--over", text, Bare::Seconds)).transpose()?;
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let bundle = named_by_flag(args.bundle.as_ref(), environment)?;
    let wait = span.map(|span| {
        move || {
            let begun = clock::monotonic();
            clock::sleep_for(span);
            (clock::monotonic() - begun).0
        }
    });
    let wait = wait.as_ref().map(|wait| wait as &dyn Fn() -> i64);
    let document = irqs_of(MachineSource::of(bundle.as_deref(), None), cpus.as_ref(), wait)?;
    outputs.json_pretty(&args.output.json, &document);
    let (columns, color) = (outputs.screen.columns, outputs.screen.color);
    let layout = ListLayout { columns, rows: environment.rows(), color };
    outputs.print(&render(&document, args.all, layout));
    outputs.end(Exit::Ok)
}
