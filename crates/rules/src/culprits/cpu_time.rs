//! Time that a culprit took from a thread, a CPU or the machine: each nanosecond once, regardless
//! of the number of late wake-ups that contain it. Bounded.

use std::collections::BTreeMap;

use model::run::Slice;
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};

/// Limit of distinct stretches, of which the latest are kept: new ones are recent.
const MAX_STRETCHES: usize = 512;
/// Limit of owners whose summed time has a known end.
const MAX_SETTLED: usize = 256;

/// Owner of time: each moment of it can be taken only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakenFrom {
    /// All CPUs at once.
    Machine,
    Thread(i32),
    Cpu(Cpu),
}

impl TakenFrom {
    /// Owner of a slice of a spike on that CPU.
    pub fn of(cpu: Cpu, slice: &Slice) -> TakenFrom {
        use SliceKind::{StopMachine, Stopped, Unexplained};
        let all = matches!(slice.kind.known(), Some(StopMachine | Stopped | Unexplained));
        match slice.who.pid {
            _ if all => TakenFrom::Machine,
            1.. => TakenFrom::Thread(slice.who.pid),
            _ => TakenFrom::Cpu(cpu),
        }
    }
}

/// Stretches of time; overlapping ones are merged.
#[derive(Clone, Debug, Default)]
pub struct TimeTaken {
    /// Start and end.
    stretches: BTreeMap<(TakenFrom, i64), i64>,
    /// Sum of the stretches that are no longer kept, and the end of the last by owner.
    settled: i64,
    settled_until: BTreeMap<TakenFrom, i64>,
}

impl TimeTaken {
    /// Adds a stretch.
    pub fn add(&mut self, of: TakenFrom, start: Nanos, ns: Nanos) {
        let floor = self.settled_until.get(&of).copied().unwrap_or(i64::MIN);
        let (mut from, mut to) = (start.0.max(floor), start.0.saturating_add(ns.0));
        if from >= to {
            return;
        }
        // They do not overlap: only the last that starts before the end has to be checked.
        while let Some((&(_, first), &last)) = self.stretches.range((of, i64::MIN)..=(of, to)).next_back() {
            if last < from {
                break;
            }
            self.stretches.remove(&(of, first));
            (from, to) = (from.min(first), to.max(last));
        }
        self.stretches.insert((of, from), to);
        if self.stretches.len() > MAX_STRETCHES {
            self.settle(of);
        }
    }

    /// Drops the earliest stretch of an owner with several, or else of any.
    fn settle(&mut self, of: TakenFrom) {
        let mut own = self.stretches.range((of, i64::MIN)..=(of, i64::MAX)).map(|(&key, _)| key);
        let earliest = own.next().filter(|_| own.next().is_some());
        let Some(key) = earliest.or_else(|| self.stretches.keys().next().copied()) else { return };
        let Some(to) = self.stretches.remove(&key) else { return };
        self.settled = self.settled.saturating_add(to.saturating_sub(key.1));
        if self.settled_until.len() < MAX_SETTLED || self.settled_until.contains_key(&key.0) {
            self.settled_until.insert(key.0, to);
        }
    }

    /// Adds the time of another group.
    pub fn merge(&mut self, other: &TimeTaken) {
        self.settled = self.settled.saturating_add(other.settled);
        for (&(of, from), &to) in &other.stretches {
            self.add(of, Nanos(from), Nanos(to.saturating_sub(from)));
        }
    }

    /// Total time.
    pub fn total(&self) -> Nanos {
        let lengths = self.stretches.iter().map(|(&(_, from), &to)| to.saturating_sub(from));
        Nanos(lengths.fold(self.settled, i64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Who;
    use proptest::prelude::*;

    #[test]
    fn time_is_a_thread_s_or_its_cpu_s_or_that_of_all() {
        let slice = |kind: SliceKind, pid: i32| Slice {
            kind: kind.into(),
            who: Who { pid, ..Who::default() },
            ..Slice::default()
        };
        assert_eq!(TakenFrom::of(Cpu(1), &slice(SliceKind::Thread, 7)), TakenFrom::Thread(7));
        assert_eq!(TakenFrom::of(Cpu(1), &slice(SliceKind::Irq, 0)), TakenFrom::Cpu(Cpu(1)));
        for all in [SliceKind::StopMachine, SliceKind::Stopped] {
            assert_eq!(TakenFrom::of(Cpu(1), &slice(all, 7)), TakenFrom::Machine);
        }
    }

    #[test]
    fn of_many_stretches_in_order_of_time_none_is_lost_and_none_counted_twice() {
        let mut time = TimeTaken::default();
        for n in 0..3_000i64 {
            for again in 0..3 {
                time.add(TakenFrom::Thread(7), Nanos(n * 100 + again), Nanos(40 - again));
            }
        }
        assert_eq!(time.total(), Nanos(3_000 * 40));
        assert!(time.stretches.len() <= MAX_STRETCHES);
        (0..5_000).for_each(|pid| time.add(TakenFrom::Thread(100 + pid), Nanos(0), Nanos(10)));
        assert_eq!(time.total(), Nanos(3_000 * 40 + 50_000));
        assert!(time.stretches.len() <= MAX_STRETCHES && time.settled_until.len() <= MAX_SETTLED);
        time.add(TakenFrom::Machine, Nanos(i64::MAX - 5), Nanos(i64::MAX));
        time.add(TakenFrom::Machine, Nanos(i64::MIN), Nanos(-3));
    }

    proptest! {
        #[test]
        fn it_is_the_union(
            parts in prop::collection::vec((0..3i32, 0..200i64, 0..30i64), 0..80),
            cut in 0..80usize,
        ) {
            let mut seen = std::collections::BTreeSet::new();
            let mut whole = TimeTaken::default();
            let mut halves = [TimeTaken::default(), TimeTaken::default()];
            for (at, &(pid, start, ns)) in parts.iter().enumerate() {
                seen.extend((start..start + ns).map(|moment| (pid, moment)));
                whole.add(TakenFrom::Thread(pid), Nanos(start), Nanos(ns));
                halves[usize::from(at < cut)].add(TakenFrom::Thread(pid), Nanos(start), Nanos(ns));
            }
            let [mut first, second] = halves;
            first.merge(&second);
            prop_assert_eq!(whole.total(), Nanos(seen.len() as i64));
            prop_assert_eq!(first.total(), whole.total());
        }
    }
}
