//! `onbeat tune status`: changes by onbeat that are in force.

use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs};
use host::settings::LiveKernel;
use model::error::{Exit, Result};
use model::plan::PlanDocument;
use report::tuning::text::{Layout, Stage, render};
use study::tuning::boot_id;
use tune::status::status;
use tune::undo::entries;

/// List the changes in force, with their present values
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  sudo onbeat tune status\n  sudo onbeat tune status --all --json -")]
pub struct Args {
    /// Also list undone changes, and those that ended with an earlier boot
    #[arg(long)]
    all: bool,
    /// Print each setting on a separate line
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let boot = boot_id()?;
    let document = match journal::open()? {
        Some(folder) => {
            status(&LiveKernel::default(), &entries(&folder)?, &boot, journal::boot_time().0, args.all)
        }
        None => PlanDocument::new(&boot, Vec::new(), Vec::new()),
    };
    outputs.json_pretty(&args.output.json, &document);
    let layout =
        Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: args.verbose };
    outputs.print(&render(&document, Stage::InForce, "", layout));
    outputs.end(Exit::Ok)
}
