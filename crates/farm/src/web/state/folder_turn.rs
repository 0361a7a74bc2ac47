//! Lock for moving a bundle into its folder and storing it. `import`, `prune` and `forget` take it,
//! too, so that none of them removes a bundle that was just acknowledged.

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use host::FolderLock;
use model::units::Nanos;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::ingest::keep::writer_lock;
use crate::web::edge::answer::Refusal;

/// Time for which a request waits for another program, which may copy for minutes; less in tests.
pub const PATIENCE: Nanos = Nanos(if cfg!(test) { Nanos::SECOND.0 / 10 } else { 5 * Nanos::SECOND.0 });

/// Lock for requests, taken one after the other.
#[derive(Debug, Default)]
pub struct FolderTurns {
    one: Arc<Mutex<()>>,
}

/// The held lock; the default is for bundles in a bucket, which need none.
#[derive(Default)]
pub struct FolderTurn {
    _one: Option<OwnedMutexGuard<()>>,
    /// `None` on a file system without locks.
    _folder: Option<FolderLock>,
}

impl FolderTurns {
    /// Takes the lock of a folder. Requests wait for each other, but only some seconds for another
    /// program.
    pub async fn take(&self, folder: &Path) -> Result<FolderTurn, Refusal> {
        let until = host::clock::monotonic() + PATIENCE;
        let one = self.one.clone().lock_owned().await;
        let left = until - host::clock::monotonic();
        let lock = writer_lock(folder, left).await.map_err(|_| busy())?;
        Ok(FolderTurn { _one: Some(one), _folder: lock })
    }
}

fn busy() -> Refusal {
    let detail = "another program is writing to the folder of bundles: send it again later";
    Refusal { wait_s: Some(5), ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::RecordFolder;
    use std::time::Duration;

    #[tokio::test]
    async fn requests_wait_for_each_other_and_not_for_long_for_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let turns = FolderTurns::default();
        let other = writer_lock(folder.path(), PATIENCE).await.unwrap();
        assert!(other.is_some());
        let (first, second) = tokio::join!(turns.take(folder.path()), turns.take(folder.path()));
        for refused in [first, second] {
            let refusal = refused.err().unwrap();
            assert_eq!((refusal.status, refusal.wait_s), (StatusCode::SERVICE_UNAVAILABLE, Some(5)));
        }
        drop(other);
        let turn = turns.take(folder.path()).await.unwrap();
        let look = || RecordFolder::make(folder.path()).and_then(|folder| folder.take_turn()).unwrap();
        assert!(look().is_none(), "another program has it as well");
        let mut waiting = std::pin::pin!(turns.take(folder.path()));
        let soon = tokio::time::sleep(Duration::from_nanos(2 * PATIENCE.0 as u64));
        tokio::select! {
            _ = &mut waiting => panic!("two requests have it, or one gave up"),
            () = soon => {}
        }
        drop(turn);
        let turn = waiting.await.unwrap();
        assert!(look().is_none());
        drop(turn);
        assert!(look().is_some());
    }
}
