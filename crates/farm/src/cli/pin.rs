//! `onbeat-farm pin`: runs that stay whole for ever.

use model::error::{Exit, Failure, Result};
use model::text::quoted_value;
use serde::Serialize;

use super::document_flags::DocumentFlags;
use super::store_flag::StoreFlag;
use super::{FarmEnvironment, note};
use crate::store::{FarmStore, RunPin};
use crate::wall_clock::now;

/// Keep runs whole for ever, or print those that are
///
/// `prune` takes nothing from a run that is pinned: its seconds and what was traced around its
/// spikes stay, as for a baseline that later runs are compared with.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm pin 20261123T201500-1a2b3c4d --note 'before the new kernel'\n  \
     onbeat-farm pin --remove 20261123T201500-1a2b3c4d\n  onbeat-farm pin"
)]
pub struct Args {
    /// The runs; without one those that are pinned are printed
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Why, for people
    #[arg(long, value_name = "TEXT", requires = "runs")]
    note: Option<String>,
    /// Take the pins off: they are thinned out like others again
    #[arg(long, requires = "runs", conflicts_with = "note")]
    remove: bool,
    #[command(flatten)]
    store: StoreFlag,
    #[command(flatten)]
    output: DocumentFlags,
}

/// The runs that are pinned, the latest pin first.
#[derive(Serialize)]
struct PinsDocument {
    schema: &'static str,
    pins: Vec<RunPin>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let store = args.store.place(environment)?.open_existing().await?;
    if args.runs.is_empty() {
        print(&store, &args.output).await?;
    }
    let text = args.note.as_deref().unwrap_or_default();
    for run in &args.runs {
        let done = match args.remove {
            true => store.unpin(run).await?,
            false => store.pin(run, "the command line", text, now()).await?,
        };
        if !done {
            let what = if args.remove { "is not pinned" } else { "is no run" };
            let remedy = "look at the runs of its board";
            return Err(Failure::usage(format!("{} {what} of this farm: {remedy}", quoted_value(run))));
        }
        note(&store, format!("{} {run}", if args.remove { "no longer pinned:" } else { "pinned" })).await?;
    }
    args.output.write(&PinsDocument { schema: "onbeat.farm-pins/1", pins: store.pins().await? })?;
    Ok(Exit::Ok)
}

async fn print(store: &FarmStore, output: &DocumentFlags) -> Result<()> {
    for pin in store.pins().await? {
        let at = crate::pages::parts::moment(pin.t);
        output.print(&format!("{}\t{}\t{at}\t{}\t{}", pin.run, pin.board, pin.who, pin.note));
    }
    Ok(())
}
