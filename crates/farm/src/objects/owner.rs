//! Whose a part of a bucket is. An object beside the bundles names the store, so that no farm takes
//! what another has put there for bundles of no run.

use axum::body::Bytes;

use super::bucket::{BucketFault, ObjectBucket};

/// Its name: no bundle has it, because those are folders.
pub(super) const OWNER: &str = "onbeat-farm-store";
/// It has one number.
const MOST_BYTES: u64 = 64;

impl ObjectBucket {
    /// Makes this part of the bucket a store's, by the number that no other store has. A fault
    /// where it is another's.
    pub async fn claim(&self, store: i64) -> Result<(), BucketFault> {
        if self.check_owner(store).await? {
            return Ok(());
        }
        self.put_at_top(OWNER, Bytes::from(line_of(store))).await?;
        // Of two at once the later one has it.
        self.check_owner(store).await.map(|_| ())
    }

    /// Whether this store has claimed it; false while no store has, a fault where another has.
    pub async fn check_owner(&self, store: i64) -> Result<bool, BucketFault> {
        let found = self.get_at_top(OWNER, MOST_BYTES).await?;
        let is_other = found.as_ref().is_some_and(|text| text != line_of(store).as_bytes());
        let taken = is_other.then(|| {
            format!(
                "the bundles in {} are of another store: give this one a prefix of its own, or where it \
                 takes that one's place, remove the object {OWNER} there first",
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
            assert!(fault.words().contains("a prefix of its own") && fault.words().contains(OWNER));
        }
        assert!(bucket.bundles().await.unwrap().is_empty(), "it is no bundle");
        // That it answers does not make it this store's: it is told, and nothing is put there.
        let is_told = || bucket.trouble().borrow().as_ref().is_some_and(|words| words.contains(OWNER));
        assert!(is_told() && matches!(bucket.answers().await, Err(BucketFault::OtherStore(_))));
        bucket.claim(one).await.unwrap();
        assert!(!is_told() && bucket.answers().await.is_ok());
    }
}
