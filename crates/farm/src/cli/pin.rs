//! `onbeat-farm pin`: runs that stay whole for ever.

use std::io::Write;

use model::error::{Exit, Failure, Result};
use model::text::quoted_value;

use super::store_flag::StorePlace;
use super::{FarmEnvironment, note};
use crate::store::FarmStore;
use crate::web::sender::now;

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
    /// They need not be kept whole any more
    #[arg(long, requires = "runs", conflicts_with = "note")]
    remove: bool,
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let store = StorePlace::of(args.store.as_deref(), environment)?.open_existing().await?;
    if args.runs.is_empty() {
        return print(&store).await;
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
    Ok(Exit::Ok)
}

async fn print(store: &FarmStore) -> Result<Exit> {
    for pin in store.pins().await? {
        let at = crate::pages::parts::moment(pin.t);
        // A closed standard output does not matter.
        let _ = writeln!(std::io::stdout(), "{}\t{}\t{at}\t{}\t{}", pin.run, pin.board, pin.who, pin.note);
    }
    Ok(Exit::Ok)
}
