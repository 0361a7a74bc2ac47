//! `onbeat-farm pin`: runs that stay whole for ever.

use model::error::{Exit, Failure, Result};
use model::text::quoted_value;
use serde::Serialize;

use crate::cli::flags::store_flag::StoreFlag;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::{FarmEnvironment, note};
use crate::store::{FarmStore, RunPin};
use crate::wall_clock::now;

/// Pin runs, so that they are kept in full, or print pinned runs
///
/// `prune` deletes nothing of a pinned run: its seconds and the traces around its spikes stay, for
/// example as a baseline for later runs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm pin 20261123T201500-1a2b3c4d --note 'before the new kernel'\n  \
     onbeat-farm pin --remove 20261123T201500-1a2b3c4d\n  onbeat-farm pin"
)]
pub struct Args {
    /// The runs; without one, pinned runs are printed
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The reason, shown on the run's page
    #[arg(long, value_name = "TEXT", requires = "runs")]
    note: Option<String>,
    /// Remove the pins: `prune` treats the runs like others again
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
    args.change(&store).await?;
    args.output.write(&PinsDocument { schema: "onbeat.farm-pins/1", pins: store.pins().await? })?;
    Ok(Exit::Ok)
}

impl Args {
    /// Pins the runs, or removes their pins: all of them are checked before any is changed.
    async fn change(&self, store: &FarmStore) -> Result<()> {
        let mut runs: Vec<&String> = Vec::new();
        let pins = if self.remove { store.pins().await? } else { Vec::new() };
        for run in &self.runs {
            let is_known = if self.remove {
                pins.iter().any(|pin| pin.run == *run)
            } else {
                store.run(run).await?.is_some()
            };
            if !is_known {
                return Err(self.unknown(run));
            }
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        let text = self.note.as_deref().unwrap_or_default();
        for run in runs {
            let done = if self.remove {
                store.unpin(run).await?
            } else {
                store.pin(run, "the command line", text, now()).await?
            };
            if !done {
                return Err(self.unknown(run));
            }
            note(store, format!("{} {run}", if self.remove { "no longer pinned:" } else { "pinned" }))
                .await?;
        }
        Ok(())
    }

    fn unknown(&self, run: &str) -> Failure {
        let what = if self.remove { "is not pinned" } else { "is not a run of this farm" };
        let remedy = "see the runs of its board";
        Failure::usage(format!("{} {what}: {remedy}", quoted_value(run)))
    }
}

async fn print(store: &FarmStore, output: &DocumentFlags) -> Result<()> {
    for pin in store.pins().await? {
        let at = crate::pages::parts::moment(pin.t);
        output.print(&format!("{}\t{}\t{at}\t{}\t{}", pin.run, pin.board, pin.who, pin.note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;

    fn asked(runs: &[&str], remove: bool) -> Args {
        Args {
            runs: runs.iter().map(|run| (*run).to_owned()).collect(),
            note: None,
            remove,
            store: StoreFlag::default(),
            output: DocumentFlags::default(),
        }
    }

    #[test]
    fn where_one_is_no_run_no_other_is_pinned_or_loses_its_pin() {
        on_each_engine(async |store| {
            let record = recorded_run("measured", "a");
            store.put(&record).await.unwrap();
            let id = record.run.id.as_str();
            let refused = asked(&[id, "nosuch"], false).change(&store).await.unwrap_err();
            assert!(
                refused.exit == Exit::Usage && refused.message.contains("nosuch is not a run"),
                "{refused}"
            );
            assert_eq!(store.pins().await.unwrap().len(), 0);
            asked(&[id, id], false).change(&store).await.unwrap();
            let refused = asked(&[id, "nosuch"], true).change(&store).await.unwrap_err();
            assert!(refused.exit == Exit::Usage && refused.message.contains("nosuch is not"), "{refused}");
            assert_eq!(store.pins().await.unwrap().len(), 1);
            asked(&[id, id], true).change(&store).await.unwrap();
            assert_eq!(store.pins().await.unwrap().len(), 0);
        });
    }
}
