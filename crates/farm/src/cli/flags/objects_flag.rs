//! `--objects`: location of the bundles, in a folder or in a bucket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::error::Result;
use model::text::several;

use crate::cli::flags::store_flag::StorePlace;
use crate::cli::{FarmEnvironment, say};
use crate::objects::{BucketAddress, ObjectBucket};
use crate::store::FarmStore;

#[derive(clap::Args, Clone, Default)]
pub struct ObjectsFlag {
    /// Location of the bundles: a folder, or s3://BUCKET/PREFIX with the keys in AWS_ACCESS_KEY_ID
    /// and AWS_SECRET_ACCESS_KEY, its region in AWS_REGION and its address in AWS_ENDPOINT_URL
    /// [default: the folder next to the store's file; onbeat/farm.bundles in the state folder for
    /// PostgreSQL]
    #[arg(long, value_name = "PLACE")]
    objects: Option<PathBuf>,
}

/// True if a bundle is at its place, in a folder.
pub fn is_at(place: &str) -> bool {
    host::identity(&Path::new(place).join("run.json")).is_some()
}

/// Hint for that many bundles that are not at their places, if the flag is absent.
pub fn where_to_look(missing: u64) -> Option<String> {
    let bundles = several(missing, "bundle is", "bundles are");
    (missing > 0).then(|| {
        format!(
            "{bundles} not where the store expects them: if they were moved to another folder, name it once \
             with --objects DIR; if they are in a bucket, give --objects s3://BUCKET to each command"
        )
    })
}

/// Prints the hint once at the start of a server.
pub async fn look_for_bundles(store: FarmStore) {
    let Ok(places) = store.places().await else { return };
    let count = move || places.iter().filter(|run| !is_at(&run.place)).count() as u64;
    if let Some(words) = tokio::task::spawn_blocking(count).await.ok().and_then(where_to_look) {
        say(&format!("onbeat-farm: {words}"));
    }
}

impl ObjectsFlag {
    /// True if a location is given.
    pub fn is_given(&self) -> bool {
        self.objects.is_some()
    }

    /// The store with the folder of bundles, and the bucket that the folder caches, if one is
    /// given.
    pub fn open(
        &self,
        place: StorePlace,
        environment: &FarmEnvironment,
    ) -> Result<(StorePlace, Option<Arc<ObjectBucket>>)> {
        let Some(objects) = &self.objects else { return Ok((place, None)) };
        match BucketAddress::of(objects)? {
            Some(address) => Ok((place, Some(address.open(&environment.objects)?))),
            None => Ok((place.with_bundles(Some(objects)), None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_that_are_not_at_their_places_are_told_with_the_flag_that_finds_them() {
        assert_eq!(where_to_look(0), None);
        let (one, more) = (where_to_look(1).unwrap(), where_to_look(2).unwrap());
        assert!(one.starts_with("1 bundle is not") && more.starts_with("2 bundles are not"), "{one}");
        assert!(one.contains("--objects DIR") && one.contains("s3://") && !one.contains('\n'), "{one}");
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/runs/hunt");
        assert!(is_at(fixture) && !is_at("/nowhere/run"));
    }
}
