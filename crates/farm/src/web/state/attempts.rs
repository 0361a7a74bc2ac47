//! Rate limits: attempts to log in by address and by name, whether the user exists or not; unknown
//! tokens and wrong codes of boards by address; requests by board. Crates for rates give no attempt
//! back and do not bound their keys.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use model::units::Nanos;

/// Burst of attempts.
const BURST: i64 = 10;
/// Seconds per further attempt.
const EACH_S: i64 = 20;
/// Burst and seconds per attempt with an unknown token: a misconfigured board has to wait without
/// blocking its neighbours.
const TOKENS: (i64, i64) = (60, 1);
/// Burst of requests of a board, for a backlog of some bundles with their files, and its rate.
const REQUESTS: i64 = 1_200;
const EACH_SECOND: i64 = 20;
/// Limit of addresses and names counted apart; all others share one.
const MOST: usize = 10_000;

/// Attempts left to each address and name; by default those of logging in.
#[derive(Debug)]
pub struct LimitedAttempts<K = String> {
    all: Mutex<BTreeMap<K, Attempts>>,
    /// Limit of keys counted apart.
    keys: usize,
    /// Length of one attempt and of a full burst, in ns.
    one: i64,
    most: i64,
}

impl Default for LimitedAttempts {
    fn default() -> LimitedAttempts {
        LimitedAttempts::of(BURST, EACH_S * Nanos::SECOND.0, MOST)
    }
}

impl LimitedAttempts<i64> {
    /// Limit of requests by board id; only boards with a token have one.
    pub fn of_boards() -> LimitedAttempts<i64> {
        LimitedAttempts::of(REQUESTS, Nanos::SECOND.0 / EACH_SECOND, usize::MAX)
    }
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    at: Nanos,
    left: i64,
}

impl LimitedAttempts {
    /// Limit of requests with unknown tokens.
    pub fn of_tokens() -> LimitedAttempts {
        LimitedAttempts::of(TOKENS.0, TOKENS.1 * Nanos::SECOND.0, MOST)
    }
}

impl<K: Clone + Default + Ord> LimitedAttempts<K> {
    fn of(burst: i64, one: i64, keys: usize) -> LimitedAttempts<K> {
        LimitedAttempts { all: Mutex::default(), keys, one, most: burst * one }
    }

    /// Takes one attempt of each key. The error is the time in seconds until the next one.
    pub fn take(&self, keys: &[K], now: Nanos) -> Result<(), i64> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.keys {
            all.retain(|_, one| one.at_time(now, self.most).left < self.most);
        }
        for key in keys {
            let is_known = all.contains_key(key) || all.len() < self.keys;
            let one = all.entry(if is_known { key.clone() } else { K::default() });
            let one = one.or_insert(Attempts { at: now, left: self.most });
            *one = one.at_time(now, self.most);
            if one.left < self.one {
                return Err(1 + (self.one - one.left) / Nanos::SECOND.0);
            }
            one.left -= self.one;
        }
        Ok(())
    }

    /// Gives back the attempt of each key, after a correct one.
    pub fn give_back(&self, keys: &[K]) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if let Some(one) = all.get_mut(key) {
                one.left = (one.left + self.one).min(self.most);
            }
        }
    }
}

impl Attempts {
    fn at_time(self, now: Nanos, most: i64) -> Attempts {
        let since = now.0.saturating_sub(self.at.0).max(0);
        Attempts { at: now.max(self.at), left: self.left.saturating_add(since).min(most) }
    }
}

/// Key of an address: IPv6 is truncated to its /64, which usually belongs to one client.
pub fn counted(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: i64 = EACH_S * Nanos::SECOND.0;

    #[test]
    fn an_address_and_a_name_have_some_attempts_and_then_wait() {
        let (attempts, now) = (LimitedAttempts::default(), Nanos(7));
        let keys = |address: &str, name: &str| [format!("from {address}"), format!("as {name}")];
        let tried = |address: &str, name: &str, now| {
            (0..2 * BURST).filter(|_| attempts.take(&keys(address, name), now).is_ok()).count() as i64
        };
        assert_eq!(tried("a", "ann", now), BURST);
        assert_eq!(attempts.take(&keys("a", "ann"), now), Err(21));
        // From elsewhere as the same name, or as another from the same address, is no way round.
        assert_eq!((tried("b", "ann", now), tried("a", "bob", now)), (0, 0));
        let later = Nanos(now.0 + 3 * ONE);
        assert_eq!(tried("a", "ann", later), 3);
        // Who is right is not counted.
        for _ in 0..5 * BURST {
            attempts.take(&keys("c", "eve"), now).unwrap();
            attempts.give_back(&keys("c", "eve"));
        }
        assert_eq!(tried("c", "eve", Nanos(0)), BURST);
    }

    #[test]
    fn many_names_take_no_more_memory_than_a_bound() {
        let attempts = LimitedAttempts::default();
        for name in 0..MOST + 1_000 {
            let _ = attempts.take(&[format!("as {name}")], Nanos(5));
        }
        assert!(attempts.all.lock().unwrap().len() <= MOST + 1);
        assert!(attempts.take(&["as somebody else".to_owned()], Nanos(5)).is_err());
        // Those that are whole again are forgotten.
        assert!(attempts.take(&["as somebody".to_owned()], Nanos(5 + BURST * ONE)).is_ok());
        assert!(attempts.all.lock().unwrap().len() < 9);
    }

    #[test]
    fn a_board_has_a_burst_and_then_so_many_a_second() {
        let (limit, mut now) = (LimitedAttempts::of_boards(), Nanos(7));
        let taken = |now| (0..2 * REQUESTS).filter(|_| limit.take(&[1], now).is_ok()).count() as i64;
        assert_eq!(taken(now), REQUESTS);
        assert_eq!((limit.take(&[1], now), limit.take(&[2], now)), (Err(1), Ok(())));
        now.0 += Nanos::SECOND.0;
        assert_eq!(taken(now), EACH_SECOND);
        now.0 += 10_000 * Nanos::SECOND.0;
        assert_eq!(taken(now), REQUESTS);
        // A clock that goes back gives nothing.
        assert_eq!((taken(Nanos(0)), taken(Nanos(i64::MAX))), (0, REQUESTS));
    }

    #[test]
    fn networks_are_counted_as_one() {
        let of = |text: &str| counted(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
    }
}
