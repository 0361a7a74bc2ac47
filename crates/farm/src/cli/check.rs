//! `onbeat-farm check`: whether everything is as it was written.

use std::path::Path;

use model::error::{Exit, Failure, Result};
use model::text::{clean, several};
use serde::Serialize;

use super::FarmEnvironment;
use super::document_flags::DocumentFlags;
use super::farm_flags::FarmFlags;
use super::kept_copy::bundle_fault;
use crate::ingest::plausible::latest;
use crate::objects::name_in_bucket;
use crate::web::sender::now;

/// Look whether the store and its bundles are as they were written
///
/// Reads everything: whether the database is whole, each histogram readable, the sums of slots,
/// hours and days the same and the largest latency of each that of its slots, and whether each
/// run's document is where it was put, unchanged, and its seconds and five minutes add up to what
/// was counted. Of a bucket it lists what there is, and looks whether each run has its manifest and
/// its pieces.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    farm: FarmFlags,
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
    let (place, bucket) = args.farm.open(environment)?;
    if args.deep && bucket.is_none() {
        return Err(Failure::usage("--deep: is for a bucket: name it with --objects s3://BUCKET"));
    }
    let store = place.open_existing().await?;
    if let Some(bucket) = &bucket {
        // Also where no run is in it yet.
        bucket.check_owner(store.identity().await?).await?;
    }
    let mut faults = store.out_of_range(latest(now())).await?;
    let mut places = store.places().await?;
    for run in &mut places {
        // A bundle with such a number cannot be read, and it is named already.
        run.has_seconds &= !faults.iter().any(|named| named.contains(&run.id));
    }
    faults.extend(store.faults().await?);
    let counted = store.counted_seconds().await?;
    for run in &places {
        let at = Path::new(&run.place);
        let (Some(bucket), Some(name)) = (&bucket, name_in_bucket(at, &place.bundles)) else {
            let found = bundle_fault(run, &place.bundles, counted.get(&run.id));
            // One that was removed meanwhile has no files.
            if found.is_some() && store.run(&run.id).await?.is_some() {
                faults.extend(found);
            }
            continue;
        };
        faults.extend(bucket.faults(&name, &run.digest, args.deep).await?);
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
