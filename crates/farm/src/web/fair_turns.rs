//! Turns that go round the addresses which wait for one; no address has all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot::{Receiver, Sender, channel};

/// Turns of one kind.
#[derive(Debug)]
pub struct FairTurns {
    /// Turns that a client has at most.
    most_of_one: usize,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    free: usize,
    /// Turns that each client has, of those that have any.
    taken: BTreeMap<String, usize>,
    waiting: BTreeMap<String, VecDeque<Sender<()>>>,
    /// The clients that wait; the next one is the first.
    order: VecDeque<String>,
}

impl TurnState {
    fn may(&self, client: &str, most: usize) -> bool {
        self.free > 0 && self.taken.get(client).is_none_or(|taken| *taken < most)
    }

    fn take(&mut self, client: &str) {
        self.free -= 1;
        *self.taken.entry(client.to_owned()).or_default() += 1;
    }

    fn give_back(&mut self, client: &str) {
        self.free += 1;
        if let Some(taken) = self.taken.get_mut(client) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(client);
            }
        }
    }

    /// Gives what is free to those that wait and have not gone.
    fn grant(&mut self, most: usize) {
        while let Some(at) = self.order.iter().position(|client| self.may(client, most)) {
            let Some(client) = self.order.remove(at) else { return };
            let Some(waiting) = self.waiting.get_mut(&client) else { continue };
            let granted = std::iter::from_fn(|| waiting.pop_front()).any(|one| one.send(()).is_ok());
            if waiting.is_empty() {
                self.waiting.remove(&client);
            } else {
                self.order.push_back(client.clone());
            }
            if granted {
                self.take(&client);
            }
        }
    }
}

impl FairTurns {
    /// A number of turns, of which a client has three quarters at most.
    pub fn of(count: usize) -> Arc<FairTurns> {
        let state = TurnState { free: count, ..TurnState::default() };
        Arc::new(FairTurns { most_of_one: (count * 3 / 4).max(1), state: Mutex::new(state) })
    }

    /// A turn of a client, as soon as it has one.
    pub async fn take(self: &Arc<Self>, client: &str) -> FairTurn {
        let granted = {
            let mut state = self.state();
            if state.may(client, self.most_of_one) {
                state.take(client);
                return self.turn_of(client);
            }
            let (grant, granted) = channel();
            let waiting = state.waiting.entry(client.to_owned()).or_default();
            waiting.push_back(grant);
            if waiting.len() == 1 {
                state.order.push_back(client.to_owned());
            }
            granted
        };
        let mut waiting = WaitingTurn { turns: self.clone(), client: client.to_owned(), granted };
        // The other end stays until it is used.
        let _ = (&mut waiting.granted).await;
        self.turn_of(client)
    }

    fn turn_of(self: &Arc<Self>, client: &str) -> FairTurn {
        FairTurn { turns: self.clone(), client: client.to_owned() }
    }

    fn give_back(&self, client: &str) {
        let mut state = self.state();
        state.give_back(client);
        state.grant(self.most_of_one);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that waits; a turn that it was given and did not see is given back.
struct WaitingTurn {
    turns: Arc<FairTurns>,
    client: String,
    granted: Receiver<()>,
}

impl Drop for WaitingTurn {
    fn drop(&mut self) {
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            self.turns.give_back(&self.client);
        }
    }
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct FairTurn {
    turns: Arc<FairTurns>,
    client: String,
}

impl Drop for FairTurn {
    fn drop(&mut self) {
        self.turns.give_back(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn who_asks_for_a_thousand_keeps_nobody_from_the_next_turn() {
        let turns = FairTurns::of(4);
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(turns.take("flood").await);
        }
        assert!(timeout(SHORT, turns.take("flood")).await.is_err());
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        let ask = |client: &'static str| {
            let (turns, sender) = (turns.clone(), sender.clone());
            tokio::spawn(async move {
                let turn = turns.take(client).await;
                sender.send((client, turn)).unwrap();
            })
        };
        (0..1_000).for_each(|_| drop(ask("flood")));
        sleep(SHORT).await;
        // The fourth is another's at once, also behind all of these.
        let one = timeout(LONG, turns.take("one")).await.unwrap();
        for client in ["one", "two", "two"] {
            ask(client);
            sleep(SHORT).await;
        }
        assert!(order.try_recv().is_err());
        taken.push(one);
        let mut seen = Vec::new();
        for _ in 0..6 {
            taken.remove(0);
            let (client, turn) = timeout(LONG, order.recv()).await.unwrap().unwrap();
            seen.push(client);
            taken.push(turn);
        }
        assert_eq!(seen[..4], ["flood", "one", "two", "flood"]);
        assert_eq!(seen.iter().filter(|client| **client == "two").count(), 2, "{seen:?}");
    }

    #[tokio::test]
    async fn who_waits_no_longer_takes_no_turn() {
        let turns = FairTurns::of(1);
        let first = turns.take("a").await;
        for _ in 0..10 {
            assert!(timeout(SHORT / 10, turns.take("b")).await.is_err());
        }
        // Given at the moment in which it stops waiting.
        let mut late = Box::pin(turns.take("b"));
        assert!(timeout(SHORT, &mut late).await.is_err());
        drop(first);
        drop(late);
        let last = timeout(LONG, turns.take("c")).await.unwrap();
        assert_eq!(turns.state().free, 0);
        drop(last);
        let state = turns.state();
        assert!(state.free == 1 && state.taken.is_empty() && state.waiting.is_empty());
        assert!(state.order.is_empty());
    }
}
