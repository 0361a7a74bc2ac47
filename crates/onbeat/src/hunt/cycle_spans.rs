//! Release and end of the cycles of a followed thread.

use std::collections::VecDeque;

use model::units::{Cpu, Nanos};

/// Recent cycles kept per thread: a late wake-up is examined when its cycle has ended.
const MAX_RECENT: usize = 64;

/// Release and end of a cycle, and the CPU of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleSpan {
    pub cpu: Cpu,
    pub release: Nanos,
    pub end: Nanos,
}

/// Latest cycles of a thread, late or not.
#[derive(Default)]
pub struct RecentCycles(VecDeque<CycleSpan>);

impl RecentCycles {
    /// Adds a cycle, in order of time.
    pub fn add(&mut self, cycle: CycleSpan) {
        if self.0.len() >= MAX_RECENT {
            self.0.pop_front();
        }
        self.0.push_back(cycle);
    }

    /// The cycle in progress at `due` that had ended by `ran`.
    pub fn on_at(&self, due: Nanos, ran: Nanos) -> Option<CycleSpan> {
        // A wake-up within a cycle belongs to that cycle, which ends later.
        let mut before = self.0.iter().rev().filter(|cycle| cycle.release < due && cycle.end <= ran);
        before.next().filter(|cycle| cycle.end > due).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(release: i64, end: i64) -> CycleSpan {
        CycleSpan { cpu: Cpu(1), release: Nanos(release), end: Nanos(end) }
    }

    #[test]
    fn the_cycle_that_was_on_is_found_and_one_that_had_ended_is_not() {
        let mut recent = RecentCycles::default();
        (0..100).for_each(|n| recent.add(span(n * 1_000, n * 1_000 + if n == 98 { 1_500 } else { 400 })));
        let on_at = |due: i64, ran: i64| recent.on_at(Nanos(due), Nanos(ran));
        assert_eq!(on_at(99_000, 99_510), Some(span(98_000, 99_500)));
        assert_eq!(on_at(98_000, 98_100), None, "ended in time");
        assert_eq!(on_at(10_000, 10_100), None, "too long ago");
        assert_eq!(on_at(98_700, 98_900), None, "within the cycle itself");
    }
}
