//! Verification of a bucket against the store, by its lists, or byte for byte.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::text::several;

use super::bucket::{BucketFault, ObjectBucket, some_at_a_time};
use super::files::piece_places;
use crate::ingest::environment::hex;

impl ObjectBucket {
    /// Faults of a bundle, a sentence each; with `deep` each piece is fetched and compared. Fails
    /// if the bucket does not answer or refuses.
    pub async fn faults(
        self: &Arc<Self>,
        name: &str,
        digest: &[u8],
        deep: bool,
    ) -> Result<Vec<String>, BucketFault> {
        let manifest = match self.manifest(name).await {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return Ok(vec![self.missing(name, "no manifest").words().to_owned()]),
            Err(fault) if fault.is_of_bucket() => return Err(fault),
            Err(fault) => return Ok(vec![fault.words().to_owned()]),
        };
        let mut faults = Vec::new();
        // A document of several pieces is compared when they are fetched.
        if let Err(fault) = self.check_document(name, manifest.run_digest(), digest) {
            faults.push(fault.words().to_owned());
        }
        let there: BTreeMap<String, u64> =
            self.objects(name).await?.into_iter().map(|object| (object.name, object.bytes)).collect();
        let places = piece_places(&manifest);
        let missing = places.values().filter(|piece| there.get(&piece.digest) != Some(&piece.bytes)).count();
        if missing > 0 {
            let none = format!("{} missing or of wrong length", several(missing as u64, "piece", "pieces"));
            faults.push(self.damaged(name, &none).words().to_owned());
        } else if deep {
            faults.extend(self.damaged_pieces(name, places.into_keys()).await?);
        }
        Ok(faults)
    }

    /// Fails if a bundle's document differs from that in the store, by their digests: its manifest
    /// may be another run's. An unknown digest passes.
    pub(super) fn check_document(
        &self,
        name: &str,
        found: Option<&str>,
        digest: &[u8],
    ) -> Result<(), BucketFault> {
        match found {
            Some(found) if found != hex(digest) => Err(BucketFault::Damaged(format!(
                "the bucket {} has a different run.json of {name} than the store: import the run again",
                self.name()
            ))),
            _ => Ok(()),
        }
    }

    async fn damaged_pieces(
        self: &Arc<Self>,
        name: &str,
        digests: impl Iterator<Item = String>,
    ) -> Result<Vec<String>, BucketFault> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let all = some_at_a_time(digests, |digest| {
            let (bucket, name, found) = (self.clone(), name.to_owned(), found.clone());
            async move {
                match bucket.piece(&name, &digest).await {
                    Err(fault) if fault.is_of_bucket() => return Err(fault),
                    Err(fault) => {
                        found.lock().unwrap_or_else(PoisonError::into_inner).push(fault.words().to_owned());
                    }
                    Ok(_) => {}
                }
                Ok(())
            }
        });
        all.await?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.sort();
        Ok(std::mem::take(&mut found))
    }
}
