//! Removes from a bucket what no run is in: earlier states of runs, and bundles that were put and
//! then not stored.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use model::error::Result;

use super::bucket::ObjectBucket;
use crate::store::FarmStore;
use crate::wall_clock::DAY;

/// What came later may belong to a run that is about to be stored.
const LEAST_AGE: i64 = DAY;

/// How many bundles of no run are there; they are removed where this is no try.
pub async fn swept(bucket: &Arc<ObjectBucket>, store: &FarmStore, now: i64, dry: bool) -> Result<u64> {
    // The names first: what is put meanwhile is not among them.
    let names = bucket.bundles().await?;
    let named: BTreeSet<String> = store
        .places()
        .await?
        .iter()
        .filter_map(|run| Some(Path::new(&run.place).file_name()?.to_str()?.to_owned()))
        .collect();
    let mut gone = 0;
    // What boards send has a plus in its name; the rest may be about to be imported.
    for name in names.iter().filter(|name| name.contains('+') && !named.contains(*name)) {
        let objects = bucket.objects(name).await?;
        if objects.is_empty() || objects.iter().any(|object| object.put > now - LEAST_AGE) {
            continue;
        }
        gone += 1;
        if !dry {
            bucket.remove(name).await?;
        }
    }
    Ok(gone)
}
