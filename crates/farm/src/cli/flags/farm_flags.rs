//! `--store` and `--objects`: which farm a command is about.

use std::sync::Arc;

use model::error::Result;

use crate::cli::FarmEnvironment;
use crate::cli::flags::objects_flag::ObjectsFlag;
use crate::cli::flags::store_flag::{StoreFlag, StorePlace};
use crate::objects::ObjectBucket;

#[derive(clap::Args, Default)]
pub struct FarmFlags {
    #[command(flatten)]
    store: StoreFlag,
    #[command(flatten)]
    objects: ObjectsFlag,
}

impl FarmFlags {
    /// True if the location of bundles is given.
    pub fn names_objects(&self) -> bool {
        self.objects.is_given()
    }

    /// Locations of the store and its bundles, and the bucket that the folder caches, if one is
    /// given.
    pub fn open(&self, environment: &FarmEnvironment) -> Result<(StorePlace, Option<Arc<ObjectBucket>>)> {
        self.objects.open(self.store.place(environment)?, environment)
    }
}
