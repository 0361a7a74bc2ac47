//! `--store` and `--objects`: which farm a command is about.

use std::sync::Arc;

use model::error::Result;

use super::FarmEnvironment;
use super::objects_flag::ObjectsFlag;
use super::store_flag::{StoreFlag, StorePlace};
use crate::objects::ObjectBucket;

#[derive(clap::Args, Default)]
pub struct FarmFlags {
    #[command(flatten)]
    store: StoreFlag,
    #[command(flatten)]
    objects: ObjectsFlag,
}

impl FarmFlags {
    /// Whether it is named where bundles are.
    pub fn names_objects(&self) -> bool {
        self.objects.is_given()
    }

    /// Where the store and its bundles are, and the bucket of which that folder is a cache, where
    /// one is named.
    pub fn open(&self, environment: &FarmEnvironment) -> Result<(StorePlace, Option<Arc<ObjectBucket>>)> {
        self.objects.open(self.store.place(environment)?, environment)
    }
}
