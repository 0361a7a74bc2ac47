//! `onbeat-farm check`: whether everything is as it was written.

use std::path::Path;

use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::fact::Fact;
use model::text::{clean, several};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::FarmEnvironment;
use super::document_flags::DocumentFlags;
use super::objects_flag::{ObjectsFlag, name_in_bucket};
use super::store_flag::{STORE_HELP, StorePlace};
use crate::ingest::plausible::latest;
use crate::web::sender::now;

/// Look whether the store and its bundles are as they were written
///
/// Reads everything: whether the database is whole, each histogram readable and the sums of slots,
/// hours and days the same, and whether each run's document is where it was put, unchanged. Of a
/// bucket it lists what there is, and looks whether each run has its manifest and its pieces.
#[derive(clap::Args)]
pub struct Args {
    #[arg(long, value_name = "URL", help = STORE_HELP)]
    store: Option<String>,
    #[command(flatten)]
    objects: ObjectsFlag,
    /// Fetch all that is in the bucket, too, and compare it with its SHA-256
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    output: DocumentFlags,
}

/// What was found.
#[derive(Serialize)]
struct CheckDocument {
    schema: &'static str,
    /// Runs that were looked at.
    runs: u64,
    /// A sentence for each.
    faults: Vec<String>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let (place, bucket) =
        args.objects.open(StorePlace::of(args.store.as_deref(), environment)?, environment)?;
    if args.deep && bucket.is_none() {
        return Err(Failure::usage("--deep: is for a bucket: name it with --objects s3://BUCKET"));
    }
    let store = place.open_existing().await?;
    if let Some(bucket) = &bucket {
        // Also where no run is in it yet.
        bucket.check_owner(store.identity().await?).await?;
    }
    let mut faults = store.out_of_range(latest(now())).await?;
    faults.extend(store.faults().await?);
    let places = store.places().await?;
    for (id, at, digest) in &places {
        let at = Path::new(at);
        let (Some(bucket), Some(name)) = (&bucket, name_in_bucket(at, &place.bundles)) else {
            faults.extend(document_fault(id, at, digest));
            continue;
        };
        faults.extend(bucket.faults(&name, digest, args.deep).await?);
    }
    let faults: Vec<String> = faults.iter().map(|fault| clean(fault)).collect();
    faults.iter().for_each(|fault| args.output.print(fault));
    let runs = places.len() as u64;
    args.output.remark(&format!(
        "{} looked at, {} found",
        several(runs, "run", "runs"),
        several(faults.len() as u64, "fault", "faults")
    ));
    let exit = if faults.is_empty() { Exit::Ok } else { Exit::Limit };
    args.output.write(&CheckDocument { schema: "onbeat.farm-check/1", runs, faults })?;
    Ok(exit)
}

fn document_fault(id: &str, at: &Path, digest: &[u8]) -> Option<String> {
    let shown = at.display();
    match MachineFiles::folder(at).read_at_most("/run.json", bundle::manifest::RUN_LIMIT) {
        Fact::Known(bytes) if Sha256::digest(&bytes)[..] == *digest => None,
        Fact::Known(_) => Some(format!("{id}: its run.json was changed, in {shown}")),
        _ => Some(format!("{id}: its run.json cannot be read, in {shown}")),
    }
}
