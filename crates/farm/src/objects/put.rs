//! Puts bundles into a bucket: pieces, then the manifest. After an interruption at any point, the
//! bucket has the previous state, or the new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bundle::manifest::BundleManifest;

use super::bucket::{BucketFault, ObjectBucket, blocking, some_at_a_time};
use super::files::{encoded, manifest_of, piece_places};
use crate::ingest::environment::hex;

/// Object that lists the parts of a bundle, put last.
pub(super) const MANIFEST: &str = "manifest.json";
/// The largest manifest: 20,000 files with the longest paths.
pub(super) const MANIFEST_LIMIT: u64 = 16 << 20;

impl ObjectBucket {
    /// Puts a bundle that lies in a folder, but for pieces that are there already.
    pub async fn put(
        self: &Arc<Self>,
        name: &str,
        manifest: &BundleManifest,
        folder: &Path,
        there: &BTreeSet<String>,
    ) -> Result<(), BucketFault> {
        let text = encoded(manifest).map_err(BucketFault::Here)?;
        let new = piece_places(manifest).into_values().filter(|piece| !there.contains(&piece.digest));
        some_at_a_time(new, |piece| {
            let (bucket, name, folder) = (self.clone(), name.to_owned(), folder.to_owned());
            async move {
                let digest = piece.digest.clone();
                let bytes = blocking(move || piece.read(&folder).map_err(BucketFault::Here)).await?;
                bucket.put_object(&name, &digest, bytes.into()).await
            }
        })
        .await?;
        self.put_object(name, MANIFEST, text.into()).await
    }

    /// Puts a bundle from a folder elsewhere, whose document has this digest, and removes the rest
    /// of an earlier state; returns the number of skipped files.
    pub async fn put_folder(
        self: &Arc<Self>,
        name: &str,
        folder: &Path,
        digest: &[u8],
    ) -> Result<u64, BucketFault> {
        let at = folder.to_owned();
        let (manifest, left_out) = blocking(move || manifest_of(&at).map_err(BucketFault::Here)).await?;
        if manifest.run_digest().is_some_and(|found| found != hex(digest)) {
            return Err(BucketFault::Here(
                "it changed while it was read: import it when the run has ended".to_owned(),
            ));
        }
        self.put(name, &manifest, folder, &BTreeSet::new()).await?;
        // Remaining objects are unreferenced, and removed when the bundle is put or thinned again.
        let _ = self.remove_unnamed(name, &manifest).await;
        Ok(left_out)
    }

    /// Removes objects that a bundle's manifest does not name, such as pieces of an earlier state.
    pub async fn remove_unnamed(
        self: &Arc<Self>,
        name: &str,
        manifest: &BundleManifest,
    ) -> Result<(), BucketFault> {
        let named: BTreeSet<&str> = manifest.pieces().into_iter().chain([MANIFEST]).collect();
        let there = self.objects(name).await?;
        let unnamed = there.into_iter().filter(|object| !named.contains(object.name.as_str()));
        some_at_a_time(unnamed, |object| {
            let (bucket, name) = (self.clone(), name.to_owned());
            async move { bucket.remove_object(&name, &object.name).await }
        })
        .await
    }

    /// Removes a bundle; its manifest first, so that a partial removal leaves none.
    pub async fn remove(self: &Arc<Self>, name: &str) -> Result<(), BucketFault> {
        self.remove_object(name, MANIFEST).await?;
        let there = self.objects(name).await?;
        some_at_a_time(there, |object| {
            let (bucket, name) = (self.clone(), name.to_owned());
            async move { bucket.remove_object(&name, &object.name).await }
        })
        .await
    }
}
