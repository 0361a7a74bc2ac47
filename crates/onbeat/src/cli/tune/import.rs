//! `onbeat tune import`: a plan from other programs' settings.

use std::path::PathBuf;

use crate::cli::Environment;
use crate::cli::named_run::named_by_flag;
use crate::cli::outputs::{OutputFlags, Outputs};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use report::tuning::text::{Layout, Stage, render};
use study::audit::MachineSource;
use study::tuning::{ImportRequest, import_tuning};

/// Convert other programs' settings files to a plan
///
/// Reads a file of sysctl.d, a folder with such files or the root of a file system (/etc counts
/// before /run and /usr/lib, the last file by name wins), lines of tmpfiles.d that write, a tuned
/// profile by name or folder with the profiles that it includes, and partrt's partrt_env. Each
/// value is compared with the machine; values that are already set are omitted. Nothing in a file
/// is executed. If a profile does not support the machine, or a part of it cannot be read, nothing
/// is planned.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat tune import /etc/sysctl.d/90-latency.conf\n  onbeat tune import \
        realtime --set isolated_cores=2-3 -o plan.json\n  sudo onbeat tune apply --plan plan.json"
)]
pub struct Args {
    /// File or folder, or the name of a tuned profile
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// Variable of the tuned profile; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Plan the readable parts of a tuned profile if other parts cannot be read
    #[arg(long)]
    partial: bool,
    /// Plan for the machine of this capture
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// Plan for this copy of a machine's file system
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Also change settings that a running tuned, irqbalance or similar service manages
    #[arg(long)]
    take_over: bool,
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
    let given = args.set.iter().map(|text| variable(text)).collect::<Result<Vec<_>>>()?;
    let request = ImportRequest { given, partial: args.partial };
    let document = import_tuning(&args.from, &request, machine, args.take_over)?;
    outputs.json_pretty(&args.output.json, &document);
    outputs.json_pretty(&args.file, &document);
    let layout =
        Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: args.verbose };
    outputs.print(&render(&document, Stage::Planned, &quoted(&args.from), layout));
    outputs.end(Exit::Ok)
}

fn variable(text: &str) -> Result<(String, String)> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let named = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
    named.ok_or_else(|| Failure::usage(format!("invalid --set {}: expected NAME=VALUE", quoted(text))))
}
