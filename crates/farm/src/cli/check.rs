//! `onbeat-farm check`: whether everything is as it was written.

use std::io::Write;

use host::MachineFiles;
use model::error::{Exit, Result};
use model::fact::Fact;
use model::text::{clean, several};
use sha2::{Digest, Sha256};

use super::store_flag::StorePlace;
use super::{FarmEnvironment, say};

/// Look whether the store and its bundles are as they were written
///
/// Reads everything: whether the database is whole, each histogram readable and the sums of slots,
/// hours and days the same, and whether each run's document is where it was put, unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let store = StorePlace::of(args.store.as_deref(), environment)?.open_existing().await?;
    let mut faults = store.faults().await?;
    let places = store.places().await?;
    faults.extend(places.iter().filter_map(|(id, place, digest)| {
        let document = MachineFiles::folder(place).read_at_most("/run.json", bundle::manifest::RUN_LIMIT);
        match document {
            Fact::Known(bytes) if Sha256::digest(&bytes).to_vec() == *digest => None,
            Fact::Known(_) => Some(format!("{id}: its run.json was changed, in {place}")),
            _ => Some(format!("{id}: its run.json cannot be read, in {place}")),
        }
    }));
    for fault in &faults {
        // A closed standard output does not end the check.
        let _ = writeln!(std::io::stdout(), "{}", clean(fault));
    }
    say(&format!(
        "onbeat-farm: {} looked at, {} found",
        several(places.len() as u64, "run", "runs"),
        several(faults.len() as u64, "fault", "faults")
    ));
    Ok(if faults.is_empty() { Exit::Ok } else { Exit::Limit })
}
