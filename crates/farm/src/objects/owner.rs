//! Owner of a part of a bucket. An object next to the bundles names the store, so that no farm
//! removes another one's bundles as orphans.

use axum::body::Bytes;

use super::bucket::{BucketFault, ObjectBucket};

/// Name of the object; no bundle has it, because bundles are folders.
pub(super) const OWNER: &str = "onbeat-farm-store";
/// Size limit of the object, which contains one number.
const MOST_BYTES: u64 = 64;

impl ObjectBucket {
    /// Claims this part of the bucket for a store, by its unique number. Fails if it belongs to
    /// another.
    pub async fn claim(&self, store: i64) -> Result<(), BucketFault> {
        if self.check_owner(store).await? {
            return Ok(());
        }
        self.put_at_top(OWNER, Bytes::from(line_of(store))).await?;
        // Of two simultaneous claims the later one holds.
        self.check_owner(store).await.map(|_| ())
    }

    /// True if this store has claimed it, false if it is unclaimed; a fault if another has.
    pub async fn check_owner(&self, store: i64) -> Result<bool, BucketFault> {
        let found = self.get_at_top(OWNER, MOST_BYTES).await?;
        let is_other = found.as_ref().is_some_and(|text| text != line_of(store).as_bytes());
        let taken = is_other.then(|| {
            format!(
                "the bundles in {} belong to another store: give this one a different prefix, or, if it \
                 replaces that store, remove the object {OWNER} there first",
                self.name()
            )
        });
        self.note_owner(taken.clone());
        match taken {
            Some(words) => Err(BucketFault::OtherStore(words)),
            None => Ok(found.is_some()),
        }
    }
}

fn line_of(store: i64) -> String {
    format!("{store}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::in_memory;
    use crate::store::FarmStore;

    #[tokio::test]
    async fn a_part_of_a_bucket_is_of_the_store_that_came_first() {
        let (one, other) = (FarmStore::in_memory().await.unwrap(), FarmStore::in_memory().await.unwrap());
        let (one, other) = (one.identity().await.unwrap(), other.identity().await.unwrap());
        assert_ne!(one, other);
        let bucket = in_memory();
        assert!(!bucket.check_owner(one).await.unwrap());
        bucket.claim(one).await.unwrap();
        bucket.claim(one).await.unwrap();
        assert!(bucket.check_owner(one).await.unwrap());
        for fault in [bucket.claim(other).await.unwrap_err(), bucket.check_owner(other).await.unwrap_err()] {
            assert!(matches!(fault, BucketFault::OtherStore(_)) && fault.is_of_bucket());
            assert!(fault.words().contains("a different prefix") && fault.words().contains(OWNER));
        }
        assert!(bucket.bundles().await.unwrap().is_empty(), "it is no bundle");
        // An answer does not make it this store's: the fault stays reported, and nothing is put.
        let is_told = || bucket.trouble().borrow().as_ref().is_some_and(|words| words.contains(OWNER));
        assert!(is_told() && matches!(bucket.answers().await, Err(BucketFault::OtherStore(_))));
        bucket.claim(one).await.unwrap();
        assert!(!is_told() && bucket.answers().await.is_ok());
    }
}
