//! Spikes of a running hunt for the screen: their number, and the largest culprit. Pure.

use std::collections::BTreeMap;

use crate::measure::sink::SpikeProgress;
use model::run::Spike;
use model::units::Nanos;
use rules::culprits::names::fallback_name;

/// Maximum number of names; a later one is not among the largest.
const MAX_NAMES: usize = 256;

/// Name for time that no event accounts for.
const NO_EVENT: &str = "no kernel event";

/// Counts each spike for the cause of its longest slice; the exact account needs all spikes, and is
/// made at the end.
#[derive(Default)]
pub struct SpikesSoFar {
    count: u64,
    taken: BTreeMap<String, i64>,
}

impl SpikesSoFar {
    pub fn add(&mut self, spike: &Spike) {
        self.count += 1;
        let longest = spike.slices.iter().max_by_key(|slice| slice.ns);
        let longest = longest.filter(|slice| slice.ns >= spike.unexplained_ns);
        let (name, ns) = match longest {
            Some(slice) => (fallback_name(slice), slice.ns),
            None => (NO_EVENT.to_owned(), spike.unexplained_ns),
        };
        let room = self.taken.len() < MAX_NAMES;
        match self.taken.get_mut(&name) {
            Some(taken) => *taken = taken.saturating_add(ns.0),
            None if room => _ = self.taken.insert(name, ns.0),
            None => {}
        }
    }

    /// Progress; `skipped` spikes were not explained.
    pub fn progress(&self, skipped: u64) -> SpikeProgress {
        let most = self.taken.iter().max_by_key(|(_, ns)| **ns);
        let top = most.map_or_else(String::new, |(name, ns)| format!("{name}, {}", Nanos(*ns)));
        SpikeProgress { count: self.count + skipped, top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Slice, Who};

    fn spike(comm: &str, ns: i64, unexplained: i64) -> Spike {
        let who = Who { comm: comm.to_owned(), pid: 1, ..Who::default() };
        let slices = vec![Slice { ns: Nanos(ns), who, ..Slice::default() }];
        Spike { slices, unexplained_ns: Nanos(unexplained), ..Spike::default() }
    }

    #[test]
    fn who_took_most_is_named() {
        let mut found = SpikesSoFar::default();
        assert_eq!(found.progress(0), SpikeProgress::default());
        found.add(&spike("hog", 3_000, 10));
        found.add(&spike("other", 4_000, 0));
        found.add(&spike("hog", 2_000, 0));
        assert_eq!(found.progress(2), SpikeProgress { count: 5, top: "hog, 5 us".to_owned() });
        found.add(&spike("hog", 1, 9_000_000));
        assert_eq!(found.progress(0).top, "no kernel event, 9 ms");
    }
}
