//! How much a board may ask at once, and for long.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::units::Nanos;

/// Requests that may come at once: a backlog of some bundles, each with its files,
const BURST: i64 = 1_200;
/// and each second after them.
const EACH_SECOND: i64 = 20;
/// A request in the unit that is counted in.
const ONE: i64 = Nanos::SECOND.0;

/// What is left to each board, by its number: as many as have a token.
#[derive(Debug, Default)]
pub struct RateLimit(Mutex<BTreeMap<i64, Left>>);

#[derive(Clone, Copy, Debug)]
struct Left {
    at: Nanos,
    units: i64,
}

impl RateLimit {
    /// Takes one request; how many seconds to wait where none is left.
    pub fn take(&self, board: i64, now: Nanos) -> Result<(), i64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.entry(board).or_insert(Left { at: now, units: BURST * ONE });
        let since = now.0.saturating_sub(left.at.0).max(0);
        left.units = left.units.saturating_add(since.saturating_mul(EACH_SECOND)).min(BURST * ONE);
        left.at = now;
        if left.units < ONE {
            return Err(1 + (ONE - left.units) / (EACH_SECOND * ONE));
        }
        left.units -= ONE;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_has_a_burst_and_then_so_many_a_second() {
        let (limit, mut now) = (RateLimit::default(), Nanos(7));
        let taken = |now| (0..2 * BURST).filter(|_| limit.take(1, now).is_ok()).count() as i64;
        assert_eq!(taken(now), BURST);
        assert_eq!(limit.take(1, now), Err(1));
        // Others have their own.
        assert_eq!(limit.take(2, now), Ok(()));
        now.0 += Nanos::SECOND.0;
        assert_eq!(taken(now), EACH_SECOND);
        now.0 += 10_000 * Nanos::SECOND.0;
        assert_eq!(taken(now), BURST);
        // A clock that goes back gives nothing.
        assert_eq!(taken(Nanos(0)), 0);
        assert_eq!(taken(Nanos(i64::MAX)), BURST);
    }
}
