//! How much of answers the server holds at the same time, made and being made: a client that takes
//! its answer slowly, or not at all, holds what is left of it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::answer::Refusal;

/// KiB that answers take together, whole ones and those that go out as they are read.
const HELD_KIB: usize = 64 << 10;
/// What one takes that goes out as it is read: a part as values and as text, the one before it, and
/// what packs them.
const IN_PARTS_KIB: u32 = 512;
/// Answers that are made at the same time of what the store says,
const OF_STORE: usize = 12;
/// and of bundles, which wait for each other for seconds.
const OF_BUNDLES: usize = 6;
/// Measurements of the farm: they are made also where much else is asked for.
const OF_METRICS: usize = 2;
/// An answer that is made waits for others to be taken no longer than this,
const PATIENCE: Duration = Duration::from_secs(3);
/// and one that is asked for for its turn: nothing is held for it yet.
const PATIENCE_FOR_TURN: Duration = Duration::from_secs(20);

/// Places of answers, and turns at making one.
pub struct AnswerBudget {
    patience: Duration,
    held: Arc<Semaphore>,
    most_kib: usize,
    of_store: Arc<Semaphore>,
    of_bundles: Arc<Semaphore>,
    of_metrics: Arc<Semaphore>,
}

impl Default for AnswerBudget {
    fn default() -> AnswerBudget {
        AnswerBudget::of(HELD_KIB, PATIENCE)
    }
}

impl AnswerBudget {
    /// With so many KiB, for which an answer that is made waits for so long.
    pub fn of(most_kib: usize, patience: Duration) -> AnswerBudget {
        AnswerBudget {
            patience,
            held: Arc::new(Semaphore::new(most_kib)),
            most_kib,
            of_store: Arc::new(Semaphore::new(OF_STORE)),
            of_bundles: Arc::new(Semaphore::new(OF_BUNDLES)),
            of_metrics: Arc::new(Semaphore::new(OF_METRICS)),
        }
    }

    /// The place of an answer of so many bytes, until it is sent or its client has gone; one that
    /// is larger than all of them together takes all.
    pub async fn whole(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let kib = bytes.div_ceil(1 << 10).min(self.most_kib);
        self.place(u32::try_from(kib).unwrap_or(u32::MAX)).await
    }

    /// The place of one that goes out as it is read.
    pub async fn in_parts(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.place(IN_PARTS_KIB).await
    }

    /// A turn at making one, as soon as few others are being made.
    pub async fn turn(&self, source: AnswerSource) -> Result<AnswerTurn, Refusal> {
        let turns = match source {
            AnswerSource::Store => &self.of_store,
            AnswerSource::Bundles => &self.of_bundles,
            AnswerSource::Metrics => &self.of_metrics,
        };
        match timeout(PATIENCE_FOR_TURN, turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(AnswerTurn { _turn: Arc::new(turn) }),
            _ => Err(busy("the farm makes as many answers as it can at once")),
        }
    }

    async fn place(&self, kib: u32) -> Result<OwnedSemaphorePermit, Refusal> {
        match timeout(self.patience, self.held.clone().acquire_many_owned(kib)).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(busy("answers that others take slowly hold the memory that there is for answers")),
        }
    }

    /// KiB that no answer holds.
    #[cfg(test)]
    pub fn free_kib(&self) -> usize {
        self.held.available_permits()
    }
}

fn busy(why: &str) -> Refusal {
    let detail = format!("{why}: ask again later");
    Refusal { wait_s: Some(5), ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
}

/// The turn of an answer, which it keeps with what it holds until it has its place.
#[derive(Clone)]
pub struct AnswerTurn {
    _turn: Arc<OwnedSemaphorePermit>,
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    Store,
    Bundles,
    Metrics,
}

impl AnswerSource {
    /// By the address of its route.
    pub fn of_route(path: &str) -> AnswerSource {
        let of_bundles = ["/runs/", "/v1/runs/", "/compare", "/v1/compare"];
        match path {
            "/metrics" => AnswerSource::Metrics,
            _ if of_bundles.iter().any(|begin| path.starts_with(begin)) => AnswerSource::Bundles,
            _ => AnswerSource::Store,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_place_is_told_when_to_ask_again() {
        let budget = AnswerBudget::of(1_024, Duration::from_millis(20));
        let first = budget.whole(600 << 10).await.unwrap();
        let second = budget.whole(1).await.unwrap();
        assert_eq!(budget.free_kib(), 423);
        let refused = budget.whole(424 << 10).await.unwrap_err();
        assert_eq!((refused.status, refused.wait_s), (StatusCode::SERVICE_UNAVAILABLE, Some(5)));
        assert!(!refused.detail.contains('\n'));
        assert!(budget.in_parts().await.is_err());
        drop(first);
        let in_parts = budget.in_parts().await.unwrap();
        drop((second, in_parts));
        // One that is larger than all has all of it.
        let all = budget.whole(usize::MAX).await.unwrap();
        assert_eq!(budget.free_kib(), 0);
        drop(all);
        assert_eq!(budget.free_kib(), 1_024);
    }

    #[tokio::test]
    async fn few_answers_are_made_at_once() {
        let budget = AnswerBudget::default();
        let mut turns = Vec::new();
        for _ in 0..OF_STORE {
            turns.push(budget.turn(AnswerSource::Store).await.unwrap());
        }
        let waits = timeout(Duration::from_millis(20), budget.turn(AnswerSource::Store)).await;
        assert!(waits.is_err());
        assert!(budget.turn(AnswerSource::Bundles).await.is_ok());
        turns.pop();
        assert!(budget.turn(AnswerSource::Store).await.is_ok());
    }

    #[test]
    fn what_reads_bundles_does_not_keep_lists_waiting() {
        for (path, source) in [
            ("/runs", AnswerSource::Store),
            ("/v1/runs.csv", AnswerSource::Store),
            ("/", AnswerSource::Store),
            ("/runs/{id}", AnswerSource::Bundles),
            ("/v1/runs/{id}/report.json", AnswerSource::Bundles),
            ("/v1/compare.csv", AnswerSource::Bundles),
            ("/metrics", AnswerSource::Metrics),
        ] {
            assert_eq!(AnswerSource::of_route(path), source, "{path}");
        }
    }
}
