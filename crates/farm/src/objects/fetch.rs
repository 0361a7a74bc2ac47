//! Fetches bundles from a bucket. The contents are untrusted: paths, sizes and digests are checked
//! as those from a board.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use bundle::manifest::{BundleManifest, ManifestFile, PIECE};
use host::dir::Dir;
use sha2::{Digest, Sha256};

use super::bucket::{BucketFault, ObjectBucket, blocking, some_at_a_time};
use super::put::{MANIFEST, MANIFEST_LIMIT};
use crate::ingest::environment::hex;

impl ObjectBucket {
    /// Manifest of a bundle; `None` if the bucket has no such bundle.
    pub async fn manifest(&self, name: &str) -> Result<Option<BundleManifest>, BucketFault> {
        let Some(text) = self.get_object(name, MANIFEST, MANIFEST_LIMIT).await? else { return Ok(None) };
        BundleManifest::read(&text).map(Some).map_err(|why| self.damaged(name, &why))
    }

    /// A piece of a bundle, compared with its digest.
    pub(super) async fn piece(&self, name: &str, digest: &str) -> Result<Bytes, BucketFault> {
        let found = self.get_object(name, digest, PIECE).await?;
        let bytes = found.ok_or_else(|| self.missing(name, &format!("no piece {}..", short(digest))))?;
        match hex(&Sha256::digest(&bytes)) == digest {
            true => Ok(bytes),
            false => Err(self.damaged(name, &format!("piece {}.. has wrong bytes", short(digest)))),
        }
    }

    /// Fetches the files of a manifest into a folder that is there and empty.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        name: &str,
        files: Vec<ManifestFile>,
        into: &Path,
    ) -> Result<(), BucketFault> {
        some_at_a_time(files, |file| {
            let (bucket, name, into) = (self.clone(), name.to_owned(), into.to_owned());
            async move { bucket.fetch_file(&name, file, &into).await }
        })
        .await
    }

    async fn fetch_file(&self, name: &str, file: ManifestFile, into: &Path) -> Result<(), BucketFault> {
        let (into, path) = (into.to_owned(), file.path.clone());
        let mut to = blocking(move || new_file(&into, &path).map_err(here)).await?;
        let mut written = 0;
        for digest in &file.pieces {
            let bytes = self.piece(name, digest).await?;
            written += bytes.len() as u64;
            to = blocking(move || to.write_all(&bytes).map(|()| to).map_err(here)).await?;
        }
        if written != file.bytes {
            return Err(self.damaged(name, &format!("the bytes of {} do not match the manifest", file.path)));
        }
        // A cut of power must not leave a file of zeros under the name of a bundle.
        blocking(move || to.sync_all().map_err(here)).await
    }
}

fn short(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}

fn new_file(into: &Path, path: &str) -> std::io::Result<std::fs::File> {
    let mut folder = Dir::existing(into)?;
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    for name in above.split('/').filter(|name| !name.is_empty()) {
        folder = folder.subdir(name)?;
    }
    folder.new_file(name)
}

pub(super) fn here(error: std::io::Error) -> BucketFault {
    BucketFault::Here(format!(
        "cannot write data from the bucket ({error}): check the free space next to the store"
    ))
}
