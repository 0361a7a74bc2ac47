//! `onbeat tune plan`: shows the changes, and makes none.

use std::path::PathBuf;

use super::plan_flags::{PlanFlags, about};
use crate::cli::Environment;
use crate::cli::named_run::named_by_flag;
use crate::cli::outputs::{OutputFlags, Outputs};
use model::error::{Exit, Result};
use report::tuning::text::{Layout, Stage, brief, plan_answer, render};
use study::audit::MachineSource;

/// Print what would be changed, in order, and write nothing
///
/// For each failing rule: the present value, the new value, the reason, and the cost; then the
/// settings that are not changed at run time, with what to do instead.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat tune plan --cpus 2-3\n  onbeat tune plan --bundle board --profile \
        busy-poll\n  onbeat tune plan -a 2-3 -o plan.json && sudo onbeat tune apply --plan plan.json"
)]
pub struct Args {
    #[command(flatten)]
    what: PlanFlags,
    /// Plan for the machine of this capture
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// Plan for this copy of a machine's file system
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Write the plan to a file, for `apply --plan`
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print each setting on a separate line
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json, &args.file], environment)?;
    let bundle = named_by_flag(args.bundle.as_ref(), environment)?;
    let machine = MachineSource::of(bundle.as_deref(), args.root.as_deref());
    let planned = args.what.plan(machine)?;
    outputs.json_pretty(&args.output.json, &planned.document);
    outputs.json_pretty(&args.file, &planned.document);
    let layout =
        Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: args.verbose };
    let about = about(&planned);
    outputs.print(&if args.output.quiet {
        brief(&planned.document, layout.columns)
    } else {
        render(&planned.document, Stage::Planned, &about, layout)
    });
    outputs.print(&plan_answer(&planned.document, &about, layout));
    outputs.end(Exit::Ok)
}
