//! `onbeat isolate list`: threads on the isolated CPUs, and work that may come to them.

use std::path::PathBuf;

use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs, is_one_terminal, remark};
use host::clock;
use model::error::{Exit, Result};
use model::isolation::IsolationDocument;
use model::units::Nanos;
use report::isolation::text;
use study::audit::MachineSource;
use study::isolating::{count_arrivals, isolation_of};
use study::tuning::boot_id;
use tune::isolate::list::current;
use tune::undo::entries;

/// List the threads and interrupts that can use the isolated CPUs, with reasons
///
/// Shows whether the partition is in force, which threads may run there, which of them cannot be
/// moved, and which interrupts may arrive. Without root it reads the control groups, but not the
/// journal.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        sudo onbeat isolate list\n  \
        sudo onbeat isolate list --check\n  \
        sudo onbeat isolate list --json - | jq '.threads[] | select(.movable)'")]
pub struct Args {
    /// Count interrupts and other work on the CPUs for 10 s
    #[arg(long)]
    check: bool,
    /// List a copy of a machine's file system
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    root: Option<PathBuf>,
    /// Print each thread on a separate line
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: OutputFlags,
}

/// Duration of the count.
const COUNTED: Nanos = Nanos(10 * Nanos::SECOND.0);

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let document = match &args.root {
        Some(root) => isolation_of(MachineSource::Tree(root), None)?,
        None => {
            let known = match journal::open() {
                Ok(Some(folder)) => entries(&folder)?,
                Ok(None) => Vec::new(),
                // All users may read the groups.
                Err(_) if !host::is_root() => Vec::new(),
                Err(failure) => return Err(failure),
            };
            isolation_of(MachineSource::Live, current(&known, &boot_id()?))?
        }
    };
    print(&mut outputs, document, args.check, args.verbose, &args.output)?;
    outputs.end(Exit::Ok)
}

/// Prints the document, after a count of the arrivals if that was requested.
pub fn print(
    outputs: &mut Outputs,
    mut document: IsolationDocument,
    check: bool,
    verbose: bool,
    flags: &OutputFlags,
) -> Result<()> {
    if check {
        if !flags.quiet && is_one_terminal() {
            remark(&format!("onbeat: counting interrupts and other work for {}", COUNTED.spoken()));
        }
        count_arrivals(&mut document, || {
            let begun = clock::monotonic();
            clock::sleep_for(COUNTED);
            (clock::monotonic() - begun).0
        })?;
    }
    outputs.json_pretty(&flags.json, &document);
    outputs.print(&text::render(&document, outputs.screen.columns, outputs.screen.color, verbose));
    Ok(())
}
