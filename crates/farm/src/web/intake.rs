//! What boards send: one task that writes rows, a place for pieces, one assembly of a bundle at a
//! time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use model::error::Failure;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::answer::Refusal;
use super::attempts::LimitedAttempts;
use super::board_quota::BoardQuota;
use super::clones::LiveBoots;
use super::folder_turn::FolderTurns;
use super::last_write::LastWrite;
use crate::ingest::staging::Staging;
use crate::store::{FarmStore, RowBatch, RowsStored};

/// Requests that wait; one more is told to come again.
const QUEUE: usize = 1_024;
/// Requests in one commit: after a disk that stood still a second of all boards would be unpacked
/// at once.
const TOGETHER: usize = 64;

type Waiting = (RowBatch, oneshot::Sender<Result<RowsStored, Refusal>>);

/// What boards send to a farm that has a store in a file.
pub struct Intake {
    rows: mpsc::Sender<Waiting>,
    pub staging: Staging,
    /// Bundles are put together one after the other; the turn is the work's, which goes on where
    /// who asked has gone.
    pub assembling: Arc<Mutex<()>>,
    /// In the folder of bundles, taken before the turn to assemble one.
    pub folder_turns: FolderTurns,
    /// Wrong ones of an address: a code has 128 bits, so that this is for the store.
    pub codes: LimitedAttempts,
    pub rates: LimitedAttempts<i64>,
    pub boots: LiveBoots,
    /// Quota of each board.
    pub quota: BoardQuota,
    pub rows_stored: Arc<AtomicU64>,
    /// Of rows and runs into the store,
    pub store_write: Arc<LastWrite>,
    /// and of pieces and runs into the folder of bundles.
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

    /// Hands rows over; answers when they are on the disk.
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
    /// Takes what waits together, and commits once.
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

    /// Stores the rows of one request; where the store went away meanwhile, that is kept for the
    /// others.
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
