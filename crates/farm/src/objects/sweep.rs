//! Removes orphans from a bucket: earlier states of runs, and bundles that were put and then not
//! stored.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use model::error::Result;

use super::bucket::ObjectBucket;
use crate::store::FarmStore;
use crate::wall_clock::DAY;

/// Minimum age: a younger one may belong to a run that is about to be stored.
const LEAST_AGE: i64 = DAY;

/// Number of orphaned bundles; they are removed unless `dry`.
pub async fn swept(bucket: &Arc<ObjectBucket>, store: &FarmStore, now: i64, dry: bool) -> Result<u64> {
    // The names first: bundles put later are not among them.
    let names = bucket.bundles().await?;
    let named: BTreeSet<String> = store
        .places()
        .await?
        .iter()
        .filter_map(|run| Some(Path::new(&run.place).file_name()?.to_str()?.to_owned()))
        .collect();
    let mut gone = 0;
    // A sent bundle has a plus in its name; others may be about to be imported.
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

/// Removes all states of a run that was removed and may not return: the store refuses any state put
/// since, and no other run shares a part of them. [`swept`] removes those that remain because the
/// bucket does not answer.
pub async fn remove_states(bucket: &Arc<ObjectBucket>, store: &FarmStore, run: &str) -> Result<()> {
    let names = bucket.bundles().await.unwrap_or_default();
    for name in names.iter().filter(|name| is_state_of(name, run)) {
        // It may return if an admin has allowed that since.
        if store.why_not_again(run).await?.is_none() || store.run(run).await?.is_some() {
            return Ok(());
        }
        let _ = bucket.remove(name).await;
    }
    Ok(())
}

/// True if a bundle of this name is of a run: ids contain no plus.
pub fn is_state_of(name: &str, run: &str) -> bool {
    name.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}
