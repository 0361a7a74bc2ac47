//! Data from boards: one task that writes rows, a folder for pieces, one assembly of a bundle at a
//! time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use model::error::Failure;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::ingest::staging::Staging;
use crate::store::{FarmStore, RowBatch, RowsStored};
use crate::web::edge::answer::Refusal;
use crate::web::state::attempts::LimitedAttempts;
use crate::web::state::board_quota::BoardQuota;
use crate::web::state::clones::LiveBoots;
use crate::web::state::folder_turn::FolderTurns;
use crate::web::state::last_write::LastWrite;

/// Limit of waiting requests; a further one gets 503.
const QUEUE: usize = 1_024;
/// Limit of requests in one commit, so that after a stalled disk not everything is unpacked at
/// once.
const TOGETHER: usize = 64;

type Waiting = (RowBatch, oneshot::Sender<Result<RowsStored, Refusal>>);

/// Receiver of data from boards, of a farm with a store.
pub struct Intake {
    rows: mpsc::Sender<Waiting>,
    pub staging: Staging,
    /// Lock for assembling bundles one after the other; the work holds it, and continues without
    /// its client.
    pub assembling: Arc<Mutex<()>>,
    /// Lock of the folder of bundles, taken before `assembling`.
    pub folder_turns: FolderTurns,
    /// Wrong codes of an address. A code has 128 bits, so that the limit only protects the store.
    pub codes: LimitedAttempts,
    pub rates: LimitedAttempts<i64>,
    pub boots: LiveBoots,
    /// Quota of each board.
    pub quota: BoardQuota,
    pub rows_stored: Arc<AtomicU64>,
    /// Last write of rows and runs to the store.
    pub store_write: Arc<LastWrite>,
    /// Last write of pieces and runs to the folder of bundles.
    pub bundle_write: LastWrite,
}

impl Intake {
    /// Starts the task that writes rows; bundles are kept in this folder.
    pub fn start(store: FarmStore, bundles: &Path, quota: u64) -> Intake {
        let (rows, waiting) = mpsc::channel(QUEUE);
        let rows_stored = Arc::new(AtomicU64::new(0));
        let store_write = Arc::new(LastWrite::default());
        let writer = RowWriter { store, stored: rows_stored.clone(), last: store_write.clone() };
        tokio::spawn(writer.write(waiting));
        Intake {
            rows,
            staging: Staging::new(bundles),
            assembling: Arc::default(),
            folder_turns: FolderTurns::default(),
            codes: LimitedAttempts::default(),
            rates: LimitedAttempts::of_boards(),
            boots: LiveBoots::default(),
            quota: BoardQuota::of(quota),
            rows_stored,
            store_write,
            bundle_write: LastWrite::default(),
        }
    }

    /// Stores rows; returns when they are on the disk.
    pub async fn put(&self, batch: RowBatch) -> Result<RowsStored, Refusal> {
        let (answer, answered) = oneshot::channel();
        if self.rows.try_send((batch, answer)).is_err() {
            return Err(busy());
        }
        answered.await.unwrap_or_else(|_| Err(busy()))
    }
}

fn busy() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests are waiting: send it again later")
}

/// The one task that writes rows.
struct RowWriter {
    store: FarmStore,
    /// Rows that were new.
    stored: Arc<AtomicU64>,
    last: Arc<LastWrite>,
}

impl RowWriter {
    /// Writes all waiting requests with one commit.
    async fn write(self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut together: Vec<Waiting> = Vec::new();
        while waiting.recv_many(&mut together, TOGETHER).await > 0 {
            let (batches, senders): (Vec<RowBatch>, Vec<_>) = together.drain(..).unzip();
            match self.put(&batches).await {
                Ok(answers) => {
                    for (sender, answer) in senders.into_iter().zip(answers) {
                        self.stored.fetch_add(answer.stored, Ordering::Relaxed);
                        let _ = sender.send(Ok(answer));
                    }
                }
                // What one of them has may be the reason: each by itself. What is there
                // nevertheless, because only the answer to the commit was lost, is known by its
                // key.
                Err(failure) => {
                    let mut away = (!self.store.answers().await).then_some(failure);
                    for (batch, sender) in batches.into_iter().zip(senders) {
                        let answer = match &away {
                            Some(failure) => Err(later(failure)),
                            None => self.alone(batch, &mut away).await,
                        };
                        let _ = sender.send(answer);
                    }
                }
            }
        }
    }

    async fn put(&self, batches: &[RowBatch]) -> Result<Vec<RowsStored>, Failure> {
        let outcome = self.store.put_rows(batches).await;
        self.last.note(&outcome);
        outcome
    }

    /// Stores the rows of one request; keeps the failure for the others if the store has become
    /// unreachable.
    async fn alone(&self, batch: RowBatch, away: &mut Option<Failure>) -> Result<RowsStored, Refusal> {
        match self.put(&[batch]).await {
            Ok(mut answers) => {
                let answer = answers.pop().unwrap_or_default();
                self.stored.fetch_add(answer.stored, Ordering::Relaxed);
                Ok(answer)
            }
            Err(failure) => {
                let refusal = later(&failure);
                *away = (!self.store.answers().await).then_some(failure);
                Err(refusal)
            }
        }
    }
}

fn later(failure: &Failure) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, format!("{failure}: send it again later"))
}
