//! `--objects`: where bundles are, in a folder or in a bucket.

use std::path::PathBuf;
use std::sync::Arc;

use model::error::Result;

use super::FarmEnvironment;
use super::store_flag::StorePlace;
use crate::objects::{BucketAddress, ObjectBucket};

#[derive(clap::Args, Clone, Default)]
pub struct ObjectsFlag {
    /// Where bundles are: a folder, or s3://BUCKET/PREFIX with the keys in AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY; AWS_REGION and AWS_ENDPOINT_URL say where that is [default: the
    /// folder next to the store's file; onbeat/farm.bundles in the state folder for PostgreSQL]
    #[arg(long, value_name = "PLACE")]
    objects: Option<PathBuf>,
}

impl ObjectsFlag {
    /// The store with the folder of bundles, and the bucket of which that is a cache, where one is
    /// named.
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
