//! Cache of the numbers of failing checks of runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rules::audit::VerdictCounts;

/// Limit of cached runs; each takes some hundred bytes.
const MOST_KEPT: usize = 10_000;

/// Verdict counts of the requested runs; `None` for a run that cannot be judged, so that it is
/// tried only once.
#[derive(Debug, Default)]
pub struct KnownVerdicts {
    kept: Mutex<BTreeMap<String, Option<VerdictCounts>>>,
}

impl KnownVerdicts {
    pub fn get(&self, key: &str) -> Option<Option<VerdictCounts>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    pub fn keep(&self, key: String, counts: Option<VerdictCounts>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stays_up_to_a_bound() {
        let all = KnownVerdicts::default();
        let counts = VerdictCounts { fail: 3, ..VerdictCounts::default() };
        assert_eq!(all.get("a"), None);
        all.keep("a".into(), Some(counts));
        all.keep("b".into(), None);
        assert_eq!((all.get("a"), all.get("b")), (Some(Some(counts)), Some(None)));
        (0..MOST_KEPT).for_each(|number| all.keep(number.to_string(), None));
        assert_eq!(all.get("a"), None);
        assert!(all.kept.lock().unwrap().len() <= MOST_KEPT);
    }
}
