//! The threads that a culprit was, and how long each had the CPU each time: counted slice by slice,
//! in bounded memory.

use std::collections::BTreeMap;

use super::names::bare_function;
use model::run::{CulpritThread, CulpritTurns, Slice};
use model::slice::SliceKind;
use model::units::Nanos;

/// Threads of a culprit that are kept apart; those beyond are counted as seen.
const MAX_THREADS: usize = 64;
/// Threads in the ranking.
const MAX_LISTED: usize = 8;
/// Turns whose length is kept: the first.
const MAX_TURNS: usize = 1000;
/// Distances between turns that a median is told of.
const MIN_DISTANCES: usize = 5;
/// The half of the distances in the middle may differ by this part of the median.
const MAX_SPREAD: f64 = 0.25;
/// From the width of the middle half to a standard deviation, and from that of a mean to that of a
/// median (both of a normal distribution).
const QUARTILES: f64 = 1.349;
const OF_MEDIAN: f64 = 1.2533;
/// A period is not told to more than a part of this: clocks and sleeps are no better.
const FINEST: f64 = 5e-3;

/// The threads of one culprit.
#[derive(Clone, Debug, Default)]
pub struct ThreadTurns {
    threads: BTreeMap<i32, CulpritThread>,
    /// Slices of threads that found no room, by the last such thread.
    beyond: u64,
    last_beyond: i32,
    turns: Vec<OneTurn>,
    count: u64,
    last: Option<(u64, i32)>,
}

/// A stretch of a thread in one spike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OneTurn {
    tid: i32,
    start: Nanos,
    ns: i64,
    spike: u64,
}

impl ThreadTurns {
    /// Adds a slice of the spike of that number, if it is time that a thread had the CPU.
    pub fn add(&mut self, spike: u64, slice: &Slice) {
        let kind = slice.kind.known();
        let runs = kind.is_some_and(|kind| matches!(kind, SliceKind::Thread | SliceKind::Preempted));
        let (who, ns) = (&slice.who, slice.ns.0.max(0));
        if !runs || who.pid <= 0 {
            return;
        }
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&who.pid) {
            self.beyond += u64::from(self.last_beyond != who.pid);
            self.last_beyond = who.pid;
            return;
        }
        let thread = self.threads.entry(who.pid).or_insert_with(|| CulpritThread {
            tid: who.pid,
            comm: who.comm.clone(),
            prio: who.prio,
            first_ns: slice.start_ns,
            last_ns: slice.start_ns,
            ..CulpritThread::default()
        });
        thread.prio = thread.prio.min(who.prio);
        // Where the kernel's threads begin (kernel/kthread.c): no user's thread has it there.
        thread.of_kernel |= slice.stack.iter().any(|frame| bare_function(frame) == "kthread");
        thread.total_ns = Nanos(thread.total_ns.0.saturating_add(ns));
        thread.first_ns = thread.first_ns.min(slice.start_ns);
        thread.last_ns = thread.last_ns.max(slice.start_ns);
        if self.last.replace((spike, who.pid)) == Some((spike, who.pid)) {
            // Interrupted meanwhile: the same turn.
            let same = self.turns.last_mut().filter(|turn| (turn.spike, turn.tid) == (spike, who.pid));
            same.into_iter().for_each(|turn| turn.ns = turn.ns.saturating_add(ns));
            return;
        }
        thread.turns += 1;
        self.count += 1;
        if self.turns.len() < MAX_TURNS {
            self.turns.push(OneTurn { tid: who.pid, start: slice.start_ns, ns, spike });
        }
    }

    /// Merges another's.
    pub fn merge(&mut self, other: &ThreadTurns) {
        self.beyond += other.beyond;
        for (tid, theirs) in &other.threads {
            if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(tid) {
                self.beyond += 1;
                continue;
            }
            match self.threads.get_mut(tid) {
                None => drop(self.threads.insert(*tid, theirs.clone())),
                Some(ours) => {
                    ours.prio = ours.prio.min(theirs.prio);
                    ours.of_kernel |= theirs.of_kernel;
                    ours.turns += theirs.turns;
                    ours.total_ns = Nanos(ours.total_ns.0.saturating_add(theirs.total_ns.0));
                    ours.first_ns = ours.first_ns.min(theirs.first_ns);
                    ours.last_ns = ours.last_ns.max(theirs.last_ns);
                }
            }
        }
        self.count += other.count;
        self.turns.extend(&other.turns);
        self.turns.sort_unstable_by_key(|turn| (turn.spike, turn.start));
        self.turns.truncate(MAX_TURNS);
    }

    /// Those that took most, first; and how many there were.
    pub fn threads(&self) -> (Vec<CulpritThread>, u64) {
        let mut threads: Vec<CulpritThread> = self.threads.values().cloned().collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.total_ns), thread.tid));
        let seen = (threads.len() as u64).saturating_add(self.beyond);
        threads.truncate(MAX_LISTED);
        (threads, seen)
    }

    /// How long, and how often; none where no thread was seen.
    pub fn summary(&self) -> Option<CulpritTurns> {
        let mut lengths: Vec<i64> = self.turns.iter().map(|turn| turn.ns).collect();
        lengths.sort_unstable();
        let every = self.every();
        Some(CulpritTurns {
            count: self.count,
            median_ns: Nanos(*lengths.get(lengths.len().saturating_sub(1) / 2)?),
            longest_ns: Nanos(*lengths.last()?),
            every_ns: every.map(|every| every.0),
            every_se_ns: every.map(|every| every.1),
        })
    }

    /// The median distance between turns of one thread, where half of the distances are close to
    /// it, and its standard error.
    fn every(&self) -> Option<(Nanos, Nanos)> {
        let mut turns = self.turns.clone();
        turns.sort_unstable();
        // The spikes of two CPUs, or of two followed threads, can have one turn in common.
        turns.dedup_by(|next, kept| {
            next.tid == kept.tid && next.start.0 < kept.start.0.saturating_add(kept.ns)
        });
        let pairs = turns.windows(2).filter(|pair| pair[0].tid == pair[1].tid);
        let mut distances: Vec<i64> =
            pairs.map(|pair| pair[1].start.0.saturating_sub(pair[0].start.0)).collect();
        distances.sort_unstable();
        let many = distances.len();
        if many < MIN_DISTANCES {
            return None;
        }
        let at = |quarter: usize| distances[(many - 1) * quarter / 4] as f64;
        let (median, spread) = (at(2), at(3) - at(1));
        let error = (OF_MEDIAN * spread / QUARTILES / (many as f64).sqrt()).max(FINEST * median);
        (median > 0.0 && spread <= MAX_SPREAD * median).then_some((Nanos(median as i64), Nanos(error as i64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Who;
    use proptest::prelude::*;

    fn slice(tid: i32, start: i64, ns: i64) -> Slice {
        let who = Who { comm: "hog".into(), pid: tid, prio: 9, ..Who::default() };
        Slice {
            kind: SliceKind::Thread.into(),
            start_ns: Nanos(start),
            ns: Nanos(ns),
            who,
            ..Slice::default()
        }
    }

    #[test]
    fn turns_of_one_thread_have_a_period_and_an_interrupted_one_is_whole() {
        let mut turns = ThreadTurns::default();
        for spike in 0..20i64 {
            let at = spike * 790_000_000 + (spike * 7919 % 9) * 1_000_000;
            turns.add(spike as u64 + 1, &slice(4203, at, 2_000_000));
            turns.add(spike as u64 + 1, &slice(4203, at + 2_100_000, 4_000_000));
        }
        let summary = turns.summary().expect("turns");
        assert_eq!((summary.count, summary.median_ns), (20, Nanos(6_000_000)));
        let every = summary.every_ns.expect("a period").0;
        assert!((780_000_000..800_000_000).contains(&every), "{every}");
        assert!(summary.every_se_ns.is_some_and(|se| se.0 >= every / 201));
        let (threads, seen) = turns.threads();
        assert_eq!((threads.len(), seen, threads[0].turns, threads[0].total_ns.0), (1, 1, 20, 120_000_000));
    }

    #[test]
    fn distances_between_threads_that_come_and_go_are_no_period() {
        let mut turns = ThreadTurns::default();
        (0..40)
            .for_each(|n| turns.add(n as u64 + 1, &slice(100 + n, i64::from(n) * 1_000_000_000, 4_000_000)));
        let (threads, seen) = turns.threads();
        assert_eq!((threads.len(), seen), (MAX_LISTED, 40));
        assert_eq!(turns.summary().expect("turns").every_ns, None);
        // Nor do scattered ones of one thread have one.
        let mut turns = ThreadTurns::default();
        for n in 0..40i64 {
            turns.add(n as u64 + 1, &slice(7, (n * n % 37) * 100_000_000 + n * 5_000_000_000, 1_000_000));
        }
        let wide = turns.summary().expect("turns");
        assert!(wide.every_ns.is_none_or(|every| every.0 > 4_000_000_000), "{wide:?}");
    }

    #[test]
    fn what_is_no_thread_that_ran_has_no_turn() {
        let mut turns = ThreadTurns::default();
        let irq = Slice { kind: SliceKind::Irq.into(), ..slice(5, 0, 9) };
        let idle = slice(0, 0, 9);
        turns.add(1, &irq);
        turns.add(1, &idle);
        assert_eq!((turns.threads(), turns.summary()), ((Vec::new(), 0), None));
    }

    proptest! {
        #[test]
        fn merged_has_the_time_that_was_counted_together(
            slices in prop::collection::vec((1u64..30, 1i32..60, any::<i64>(), any::<i64>()), 0..200),
        ) {
            let mut all = ThreadTurns::default();
            let mut parts = [ThreadTurns::default(), ThreadTurns::default()];
            for &(spike, tid, start, ns) in &slices {
                all.add(spike, &slice(tid, start, ns));
                parts[usize::from(tid % 2 == 0)].add(spike, &slice(tid, start, ns));
            }
            let [mut first, second] = parts;
            first.merge(&second);
            let told = |turns: &ThreadTurns| {
                let (threads, seen) = turns.threads();
                (threads.iter().map(|thread| (thread.tid, thread.total_ns)).collect::<Vec<_>>(), seen)
            };
            prop_assert_eq!(told(&first), told(&all));
            prop_assert_eq!(first.summary().is_some(), all.summary().is_some());
        }
    }
}
