//! Memory budget of responses, finished and being made: a client that reads its response slowly, or
//! not at all, holds the rest of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::web::edge::answer::Refusal;

/// KiB of all long responses.
const LONG_KIB: usize = 64 << 10;
/// KiB of all responses up to `SHORT`, so that slow readers of long ones block no pages.
const SHORT_KIB: usize = 64 << 10;
const SHORT: usize = 256 << 10;
/// KiB of all responses that are sent in parts.
const PARTS_KIB: usize = 32 << 10;
/// KiB of one response in parts: a part as values and as text, the part before it, and the buffers
/// of compression.
const IN_PARTS_KIB: usize = 512;
/// Responses made from the store at a time.
const OF_STORE: usize = 12;
/// Responses in parts made at a time; they wait for a place during their turn.
const OF_PARTS: usize = 6;
/// Responses made from bundles at a time; each takes seconds.
const OF_BUNDLES: usize = 6;
/// Responses with the farm's metrics, which have turns of their own under load.
const OF_METRICS: usize = 2;
/// Limit of requests of an address that have or await a turn of one kind: without it one address
/// could hold all connections.
const MOST_OF_ONE: usize = 128;
/// Timeout of a finished response that waits for memory; of a long one, which holds the turn of a
/// page, a tenth of it.
const PATIENCE: Duration = Duration::from_secs(3);
/// Timeout of a request that waits for its turn and holds no memory yet.
const PATIENCE_FOR_TURN: Duration = Duration::from_secs(20);

/// Memory of responses, and turns at making one.
pub struct AnswerBudget {
    patience: Duration,
    long: AnswerPlaces,
    short: AnswerPlaces,
    in_parts: AnswerPlaces,
    of_clients: ClientShares,
    of_store: FairTurns,
    of_parts: FairTurns,
    of_bundles: FairTurns,
    of_metrics: FairTurns,
}

/// Memory of one kind of response.
struct AnswerPlaces {
    free: Arc<Semaphore>,
    most_kib: usize,
}

impl AnswerPlaces {
    fn of(most_kib: usize) -> AnswerPlaces {
        AnswerPlaces { free: Arc::new(Semaphore::new(most_kib)), most_kib }
    }

    async fn take(&self, kib: usize, patience: Duration) -> Result<OwnedSemaphorePermit, Refusal> {
        let kib = u32::try_from(kib.min(self.most_kib)).unwrap_or(u32::MAX);
        match timeout(patience, self.free.clone().acquire_many_owned(kib)).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(busy("response memory is exhausted by slow clients")),
        }
    }
}

/// Share of each client that holds or awaits something.
struct ClientShares {
    most: usize,
    of_each: Mutex<BTreeMap<String, Arc<Semaphore>>>,
}

impl ClientShares {
    fn of(most: usize) -> ClientShares {
        ClientShares { most, of_each: Mutex::default() }
    }

    /// Share of a client. Each turn that it has or awaits holds a reference, as this map does.
    fn of_client(&self, client: &str) -> Arc<Semaphore> {
        let mut of_each = self.of_each.lock().unwrap_or_else(PoisonError::into_inner);
        of_each.retain(|_, share| Arc::strong_count(share) > 1);
        of_each.entry(client.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.most))).clone()
    }
}

/// Turns of one kind. A client holds at most three quarters of them; its further requests queue
/// behind its own, and only that many queue with those of others.
struct FairTurns {
    free: Arc<Semaphore>,
    of_clients: ClientShares,
}

impl FairTurns {
    fn of(count: usize) -> FairTurns {
        let of_clients = ClientShares::of((count * 3 / 4).max(1));
        FairTurns { free: Arc::new(Semaphore::new(count)), of_clients }
    }

    async fn take(&self, client: &str) -> Result<AnswerTurn, Refusal> {
        let own = self.of_clients.of_client(client);
        if Arc::strong_count(&own) > MOST_OF_ONE + 1 {
            return Err(busy("too many simultaneous requests from your address"));
        }
        let both = async { Ok((own.acquire_owned().await?, self.free.clone().acquire_owned().await?)) };
        match timeout(PATIENCE_FOR_TURN, both).await {
            Ok(Ok(both)) => Ok(AnswerTurn { _both: Arc::new(both) }),
            Ok(Err::<_, AcquireError>(_)) | Err(_) => Err(busy("too many simultaneous requests")),
        }
    }
}

/// Memory of a response that is sent in parts.
#[derive(Debug)]
pub struct PartsPlace {
    /// Permit of its client's share.
    _own: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Default for AnswerBudget {
    fn default() -> AnswerBudget {
        AnswerBudget::of([LONG_KIB, SHORT_KIB, PARTS_KIB], PATIENCE)
    }
}

impl AnswerBudget {
    /// A budget of KiB for long responses, short ones and those in parts, and the timeout of a
    /// finished response that waits for them.
    pub fn of([long, short, in_parts]: [usize; 3], patience: Duration) -> AnswerBudget {
        AnswerBudget {
            patience,
            long: AnswerPlaces::of(long),
            short: AnswerPlaces::of(short),
            in_parts: AnswerPlaces::of(in_parts),
            of_clients: ClientShares::of((in_parts / 2).max(1)),
            of_store: FairTurns::of(OF_STORE),
            of_parts: FairTurns::of(OF_PARTS),
            of_bundles: FairTurns::of(OF_BUNDLES),
            of_metrics: FairTurns::of(OF_METRICS),
        }
    }

    /// Reserves memory for a response of that many bytes until it is sent or its client has gone. A
    /// response larger than the whole budget takes all of it.
    pub async fn whole(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let (places, patience) = match bytes <= SHORT {
            true => (&self.short, self.patience),
            false => (&self.long, self.patience / 10),
        };
        places.take(bytes.div_ceil(1 << 10), patience).await
    }

    /// Reserves memory for a response in parts that holds `held` bytes besides. A client gets at
    /// most half of all; beyond that it is refused at once, since other clients wait for the turn
    /// that it would keep.
    pub async fn in_parts(&self, client: &str, held: usize) -> Result<PartsPlace, Refusal> {
        let kib = IN_PARTS_KIB + held.div_ceil(1 << 10);
        let most = u32::try_from(kib.min(self.of_clients.most)).unwrap_or(u32::MAX);
        let own = self.of_clients.of_client(client).try_acquire_many_owned(most);
        let own = own.map_err(|_| busy("too many simultaneous long answers to your address"))?;
        let place = self.in_parts.take(kib, self.patience).await?;
        Ok(PartsPlace { _own: own, _place: place })
    }

    /// Waits for a turn at making a response for a client.
    pub async fn turn(&self, source: AnswerSource, client: &str) -> Result<AnswerTurn, Refusal> {
        let turns = match source {
            AnswerSource::Store => &self.of_store,
            AnswerSource::Parts => &self.of_parts,
            AnswerSource::Bundles => &self.of_bundles,
            AnswerSource::Metrics => &self.of_metrics,
        };
        turns.take(client).await
    }

    /// Free KiB.
    #[cfg(test)]
    pub fn free_kib(&self) -> usize {
        [&self.long, &self.short, &self.in_parts].map(|of| of.free.available_permits()).iter().sum()
    }
}

fn busy(why: &str) -> Refusal {
    let detail = format!("{why}: retry later");
    Refusal { wait_s: Some(5), ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
}

/// Turn at making a response, held until its memory is reserved.
#[derive(Clone)]
pub struct AnswerTurn {
    _both: Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

/// Source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    Store,
    /// The store, part by part.
    Parts,
    Bundles,
    Metrics,
}

impl AnswerSource {
    /// By the address of its route.
    pub fn of_route(path: &str) -> AnswerSource {
        let of_bundles = ["/runs/", "/v1/runs/", "/compare", "/v1/compare"];
        let in_parts =
            ["/slots", "/slots.csv", "/histograms", "/histograms.csv", "/environments", "/environments.csv"];
        match path {
            _ if in_parts.iter().any(|end| path.ends_with(end)) => AnswerSource::Parts,
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
        let budget = AnswerBudget::of([1_024, 64, 512], Duration::from_millis(20));
        let first = budget.whole(600 << 10).await.unwrap();
        let short = budget.whole(60_000).await.unwrap();
        assert_eq!(budget.free_kib(), 424 + 5 + 512);
        let refused = budget.whole(425 << 10).await.unwrap_err();
        assert_eq!((refused.status, refused.wait_s), (StatusCode::SERVICE_UNAVAILABLE, Some(5)));
        assert!(!refused.detail.contains('\n'));
        assert!(budget.whole(60_000).await.is_err());
        let in_parts = budget.in_parts("a", 0).await.unwrap();
        assert!(budget.in_parts("b", 0).await.is_err());
        drop((first, short, in_parts));
        // One that is larger than all has all of it, and short ones have theirs.
        let all = budget.whole(usize::MAX).await.unwrap();
        assert!(budget.whole(SHORT + 1).await.is_err() && budget.whole(60_000).await.is_ok());
        drop(all);
        assert_eq!(budget.free_kib(), 1_024 + 64 + 512);
    }

    #[tokio::test]
    async fn a_client_has_half_of_the_places_in_parts() {
        let budget = AnswerBudget::of([1_024, 64, 8 * IN_PARTS_KIB], Duration::from_millis(20));
        let mut first = Vec::new();
        while let Ok(place) = budget.in_parts("a", 0).await {
            first.push(place);
        }
        assert_eq!(first.len(), 4);
        let refused = budget.in_parts("a", 0).await.unwrap_err();
        assert_eq!((refused.status, refused.wait_s), (StatusCode::SERVICE_UNAVAILABLE, Some(5)));
        let second = budget.in_parts("b", 0).await.unwrap();
        first.pop();
        first.push(budget.in_parts("a", 0).await.unwrap());
        drop((first, second));
        assert_eq!(budget.free_kib(), 1_024 + 64 + 8 * IN_PARTS_KIB);
        let _third = budget.in_parts("c", 0).await.unwrap();
        assert_eq!(budget.of_clients.of_each.lock().unwrap().len(), 1, "the others are forgotten");
    }

    #[tokio::test]
    async fn few_answers_are_made_at_once() {
        let budget = AnswerBudget::default();
        let mut turns = Vec::new();
        for at in 0..OF_STORE {
            turns.push(budget.turn(AnswerSource::Store, &(at % 2).to_string()).await.unwrap());
        }
        let waits = timeout(Duration::from_millis(20), budget.turn(AnswerSource::Store, "2")).await;
        assert!(waits.is_err());
        assert!(budget.turn(AnswerSource::Bundles, "0").await.is_ok());
        assert!(budget.turn(AnswerSource::Parts, "0").await.is_ok());
        turns.pop();
        assert!(budget.turn(AnswerSource::Store, "0").await.is_ok());
    }

    #[tokio::test]
    async fn who_asks_for_a_thousand_keeps_nobody_from_the_next_turn() {
        let budget = Arc::new(AnswerBudget::default());
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        let ask = |client: &'static str| {
            let (budget, sender) = (budget.clone(), sender.clone());
            tokio::spawn(async move {
                let turn = budget.turn(AnswerSource::Store, client).await;
                let _ = sender.send((client, turn));
            })
        };
        let asked: Vec<_> = (0..1_000).map(|_| ask("flood")).collect();
        let mut turns = Vec::new();
        let mut refused = 0;
        while turns.len() + refused < 9 + 1_000 - MOST_OF_ONE {
            let (_, turn) = order.recv().await.unwrap();
            turn.map_or_else(|_| refused += 1, |turn| turns.push(turn));
        }
        assert_eq!(turns.len(), 9, "three quarters, and no more wait than one may have");
        // Others have theirs at once, and wait behind few of the flood where all are taken.
        for client in ["one", "two", "three", "one", "two"] {
            ask(client);
        }
        let mut seen = Vec::new();
        while seen.len() < 6 {
            let (client, turn) = timeout(PATIENCE, order.recv()).await.unwrap().unwrap();
            seen.push(client);
            turns.push(turn.unwrap());
            if seen.len() >= 3 {
                turns.remove(0);
            }
        }
        assert!(seen[..5].iter().all(|client| *client != "flood") && seen[5] == "flood", "{seen:?}");
        // Who goes waits no more, and what was given to it goes to the next.
        asked.iter().for_each(|one| one.abort());
        turns.clear();
        let all = budget.of_store.free.acquire_many(OF_STORE as u32);
        assert!(timeout(PATIENCE, all).await.is_ok());
    }

    #[test]
    fn what_takes_long_does_not_keep_lists_waiting() {
        for (path, source) in [
            ("/runs", AnswerSource::Store),
            ("/v1/runs.csv", AnswerSource::Store),
            ("/", AnswerSource::Store),
            ("/v1/boards/{board}/slots.csv", AnswerSource::Parts),
            ("/v1/boards/{board}/environments", AnswerSource::Parts),
            ("/runs/{id}", AnswerSource::Bundles),
            ("/v1/runs/{id}/report.json", AnswerSource::Bundles),
            ("/v1/compare.csv", AnswerSource::Bundles),
            ("/metrics", AnswerSource::Metrics),
        ] {
            assert_eq!(AnswerSource::of_route(path), source, "{path}");
        }
    }
}
