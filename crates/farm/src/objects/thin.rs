//! Removes old parts of a bundle in a bucket: prepared on a copy of the few files concerned, then
//! the new manifest is put, then unreferenced objects are removed.

use std::path::Path;
use std::sync::Arc;

use bundle::manifest::{BundleManifest, ManifestFile};
use host::MachineFiles;
use host::dir::Dir;

use super::bucket::{BucketFault, ObjectBucket, blocking};
use super::fetch::here;
use super::files::manifest_of;
use crate::ingest::remove_tree::remove_tree;
use crate::ingest::stored::WINDOWS;
use crate::ingest::thin::{BLOCK_FILES, ThinnedBundle, WindowsKept, thin_windows};
use crate::store::ThinnedPart;

/// A bundle as the bucket has it.
pub struct BucketBundle {
    bucket: Arc<ObjectBucket>,
    name: String,
    manifest: BundleManifest,
    /// Time when its document was put, in seconds since 1970.
    pub came: i64,
}

impl BucketBundle {
    /// Looks at a bundle.
    pub async fn look(bucket: &Arc<ObjectBucket>, name: &str) -> Result<BucketBundle, BucketFault> {
        let missing = || bucket.missing(name, "nothing");
        let manifest = bucket.manifest(name).await?.ok_or_else(missing)?;
        let document = manifest.files.iter().find(|file| file.path == "run.json");
        let first = document.and_then(|file| file.pieces.first()).ok_or_else(missing)?;
        // Thinning puts the manifest again, and leaves the document.
        let came = bucket.put_at(name, first).await?;
        let came = came.ok_or_else(|| bucket.missing(name, "no run.json"))?;
        Ok(BucketBundle { bucket: bucket.clone(), name: name.to_owned(), manifest, came })
    }

    /// Removes the seconds, or the windows that do not stay, unless `dry`. The folder is a scratch
    /// folder.
    pub async fn thin(
        &mut self,
        work: &Path,
        part: ThinnedPart,
        kept: &WindowsKept,
        dry: bool,
    ) -> Result<ThinnedBundle, BucketFault> {
        let has = |path: &str| self.manifest.files.iter().find(|file| file.path == path);
        let mut of = ThinnedBundle::default();
        let mut left = self.manifest.clone();
        match part {
            ThinnedPart::Windows if has(WINDOWS).is_some() => {
                let spikes;
                (of, spikes) = self.thin_windows(work, kept, dry).await?;
                if of.window_bytes > 0 {
                    left.files.retain(|file| file.path != WINDOWS);
                    left.files.extend(spikes);
                }
            }
            ThinnedPart::Windows => {}
            ThinnedPart::Blocks => {
                of.blocks = BLOCK_FILES.into_iter().filter_map(has).map(|file| file.bytes).sum();
                left.files.retain(|file| !BLOCK_FILES.contains(&file.path.as_str()));
            }
        }
        if !dry && left != self.manifest {
            // The signature does not match the remaining parts.
            left.signature = None;
            let there = self.manifest.pieces().into_iter().map(str::to_owned).collect();
            self.bucket.put(&self.name, &left, work, &there).await?;
            self.manifest = left;
        }
        Ok(of)
    }

    /// Removes the pieces of the removed parts.
    pub async fn remove_unnamed(&self) -> Result<(), BucketFault> {
        self.bucket.remove_unnamed(&self.name, &self.manifest).await
    }

    /// Removed part of the windows, and the file of those that stay, if any.
    async fn thin_windows(
        &self,
        work: &Path,
        kept: &WindowsKept,
        dry: bool,
    ) -> Result<(ThinnedBundle, Option<ManifestFile>), BucketFault> {
        let needed = |file: &&ManifestFile| {
            matches!(file.path.as_str(), "run.json" | "tail") || file.path.starts_with("events/")
        };
        let needed: Vec<ManifestFile> = self.manifest.files.iter().filter(needed).cloned().collect();
        let at = work.to_owned();
        blocking(move || emptied(&at)).await?;
        self.bucket.fetch(&self.name, needed, work).await?;
        let (at, kept) = (work.to_owned(), kept.clone());
        blocking(move || {
            let of = thin_windows(&at, &kept, dry).map_err(BucketFault::Here)?;
            let (manifest, _) = manifest_of(&at).map_err(BucketFault::Here)?;
            Ok((of, manifest.files.into_iter().find(|file| file.path == WINDOWS)))
        })
        .await
    }
}

/// A folder with nothing in it.
fn emptied(work: &Path) -> Result<(), BucketFault> {
    let (Some(above), Some(name)) = (work.parent(), work.file_name()) else { return Ok(()) };
    let (top, name) = (Dir::existing(above).map_err(here)?, name.to_string_lossy());
    remove_tree(&MachineFiles::folder(above), &top, &name, 0);
    top.subdir(&name).map(|_| ()).map_err(here)
}
