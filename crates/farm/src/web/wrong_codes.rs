//! How often a code may be wrong with which a board enrols.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::answer::Refusal;
use super::attempts::LimitedAttempts;
use crate::wall_clock::now;

/// Wrong codes of an hour, of all addresses together, from which on each request waits. A code has
/// 128 bits, so that none is guessed: this is for the store, and keeps no board out.
const MOST_AT_ONCE: u64 = 3_600;
const WAITS: Duration = Duration::from_secs(1);

/// Wrong codes. An address may send as many as wrong passwords; those of all are counted, too.
#[derive(Debug, Default)]
pub struct WrongCodes {
    by_address: LimitedAttempts,
    /// Of which hour, and how many.
    all: Mutex<(i64, u64)>,
}

impl WrongCodes {
    /// Takes an attempt of an address, and waits where the farm is flooded; what to give back where
    /// the code was right.
    pub async fn admit(&self, from: String) -> Result<[String; 1], Refusal> {
        let keys = [from];
        let taken = self.by_address.take(&keys, host::clock::monotonic());
        taken.map_err(|wait_s| Refusal::too_often("too many wrong codes from this address", wait_s))?;
        if self.is_flooded(now()) {
            tokio::time::sleep(WAITS).await;
        }
        Ok(keys)
    }

    pub fn give_back(&self, keys: [String; 1]) {
        self.by_address.give_back(&keys);
    }

    pub fn count(&self, now: i64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let hour = now.div_euclid(3_600);
        *all = if all.0 == hour { (hour, all.1.saturating_add(1)) } else { (hour, 1) };
    }

    fn is_flooded(&self, now: i64) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 == now.div_euclid(3_600) && all.1 >= MOST_AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_flood_of_wrong_codes_slows_and_for_its_hour() {
        let codes = WrongCodes::default();
        for _ in 1..MOST_AT_ONCE {
            codes.count(7_200);
        }
        assert!(!codes.is_flooded(7_201));
        codes.count(10_799);
        assert!(codes.is_flooded(10_799) && !codes.is_flooded(10_800));
        codes.count(10_800);
        assert!(!codes.is_flooded(10_800));
    }
}
