//! Threads of a culprit, and the lengths of their turns on the CPU: counted slice by slice, in
//! bounded memory.
//!
//! A thread's turn lasts from the switch to it until the switch to another thread. Several late
//! wake-ups can lie in one turn, and several turns in one late cycle: the turns are counted.

use std::collections::BTreeMap;

use super::names::bare_function;
use model::run::{CulpritThread, CulpritTurns, Slice, Spike};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Limit of distinct threads of a culprit; further ones are only counted.
const MAX_THREADS: usize = 64;
/// Threads in the ranking.
const MAX_LISTED: usize = 8;
/// Limit of turns whose length is kept: the latest.
const MAX_TURNS: usize = 1000;
/// Minimum number of distances between turns for a median.
const MIN_DISTANCES: usize = 5;
/// Limit of the interquartile range of the distances, as a part of the median.
const MAX_SPREAD: f64 = 0.25;
/// Ratio of the interquartile range to the standard deviation, and of the standard errors of median
/// and mean (both of a normal distribution).
const QUARTILES: f64 = 1.349;
const OF_MEDIAN: f64 = 1.2533;
/// Finest precision of a period, as a part of it: clocks and sleeps are not better.
const FINEST: f64 = 5e-3;

/// A slice, with the data of its spike.
#[derive(Clone, Copy)]
pub struct SpikeSlice<'a> {
    /// Number of the spike, which counts from one.
    pub number: u64,
    pub cpu: Cpu,
    pub slice: &'a Slice,
    /// End of the spike.
    pub end: Nanos,
    pub latency: Nanos,
    /// Turn of the thread that had the CPU, as far as the spike shows it.
    turn: Option<SeenTurn>,
}

/// A turn in one spike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenTurn {
    start: i64,
    end: i64,
    /// Time in it without anything on top of it.
    ns: i64,
}

impl<'a> SpikeSlice<'a> {
    /// The only slice of a spike.
    pub fn alone(number: u64, cpu: Cpu, slice: &'a Slice, end: Nanos) -> SpikeSlice<'a> {
        SpikeSlice { number, cpu, slice, end, latency: slice.ns, turn: None }
    }
}

/// Slices of a spike, each with the turn that it belongs to.
pub fn slices_of(number: u64, spike: &Spike) -> Vec<SpikeSlice<'_>> {
    let (cpu, end, latency) = (spike.cpu, spike.actual_ns, spike.latency_ns);
    let one = |slice| SpikeSlice { number, cpu, slice, end, latency, turn: None };
    let mut all: Vec<SpikeSlice<'_>> = spike.slices.iter().map(one).collect();
    let mut begun: Option<(i32, SeenTurn, Vec<usize>)> = None;
    for at in 0..=all.len() {
        let next = all.get(at).map(|of| of.slice);
        if let Some((pid, seen, places)) = &mut begun {
            if next.is_some_and(|slice| slice.who.pid == *pid && has_cpu(slice)) {
                let slice = all[at].slice;
                seen.end = seen.end.max(slice.start_ns.0.saturating_add(slice.ns.0));
                seen.ns = seen.ns.saturating_add(slice.ns.0.max(0));
                places.push(at);
                continue;
            }
            if next.is_some_and(|slice| !is_of_another(slice, *pid)) {
                continue;
            }
            places.iter().for_each(|&place| all[place].turn = Some(*seen));
            begun = None;
        }
        if let Some(slice) = next.filter(|slice| has_cpu(slice)) {
            let (start, ns) = (slice.start_ns.0, slice.ns.0.max(0));
            begun = Some((slice.who.pid, SeenTurn { start, end: start.saturating_add(ns), ns }, vec![at]));
        }
    }
    all
}

/// True for a slice in which a thread other than the late one had the CPU.
fn has_cpu(slice: &Slice) -> bool {
    let runs = matches!(slice.kind.known(), Some(SliceKind::Thread | SliceKind::Preempted));
    runs && slice.who.pid > 0
}

/// True for a slice that ends a thread's turn: another one had the CPU, or none. Interrupts on top
/// of a thread do not end its turn.
fn is_of_another(slice: &Slice, pid: i32) -> bool {
    use SliceKind::{
        Blocked, FairServer, IdleExit, Own, PreemptOff, Preempted, Switch, Syscall, Thread, Workqueue,
    };
    match slice.kind.known() {
        Some(Own | Syscall | Blocked | IdleExit | FairServer | Switch) => true,
        Some(Thread | Preempted | PreemptOff | Workqueue) => slice.who.pid != pid,
        _ => false,
    }
}

/// Threads of one culprit.
#[derive(Clone, Debug, Default)]
pub struct ThreadTurns {
    /// Threads, each with those of its turns that are no longer kept.
    threads: BTreeMap<i32, CulpritThread>,
    /// Slices of threads over the limit, counted at each change from one such thread to another.
    beyond: u64,
    last_beyond: i32,
    /// Turns by thread and start, which do not overlap.
    turns: BTreeMap<(i32, i64), OneTurn>,
    dropped: u64,
}

/// A turn over all spikes that contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OneTurn {
    end: i64,
    ns: i64,
    /// End of the time in which its spikes show other activity.
    known_until: i64,
    /// True if it took most of a spike, as any similar turn would.
    large: bool,
}

impl ThreadTurns {
    /// Adds a slice, if a thread had the CPU in it.
    pub fn add(&mut self, of: &SpikeSlice<'_>) {
        let (slice, who, ns) = (of.slice, &of.slice.who, of.slice.ns.0.max(0));
        if !has_cpu(slice) {
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
        // Start of kernel threads (kernel/kthread.c); no user thread has it on its stack.
        thread.of_kernel |= slice.stack.iter().any(|frame| bare_function(frame) == "kthread");
        thread.total_ns = Nanos(thread.total_ns.0.saturating_add(ns));
        thread.first_ns = thread.first_ns.min(slice.start_ns);
        thread.last_ns = thread.last_ns.max(slice.start_ns);
        let start = slice.start_ns.0;
        let seen = of.turn.unwrap_or(SeenTurn { start, end: start.saturating_add(ns), ns });
        let large = seen.ns.saturating_mul(2) >= of.latency.0;
        let turn = OneTurn { end: seen.end, ns: seen.ns, known_until: of.end.0, large };
        self.put(who.pid, seen.start, turn);
    }

    /// Adds a turn; one that overlaps another is the same turn, of which more is visible.
    fn put(&mut self, tid: i32, mut start: i64, mut turn: OneTurn) {
        while let Some((&(_, first), &last)) = self.turns.range((tid, i64::MIN)..=(tid, turn.end)).next_back()
        {
            if last.end < start {
                break;
            }
            self.turns.remove(&(tid, first));
            start = start.min(first);
            turn = OneTurn {
                end: turn.end.max(last.end),
                ns: turn.ns.max(last.ns),
                known_until: turn.known_until.max(last.known_until),
                large: turn.large || last.large,
            };
        }
        self.turns.insert((tid, start), turn);
        if self.turns.len() > MAX_TURNS {
            self.drop_earliest(tid);
        }
    }

    /// Drops the earliest turn of a thread with several, or else of any thread, and counts it.
    fn drop_earliest(&mut self, tid: i32) {
        let mut own = self.turns.range((tid, i64::MIN)..=(tid, i64::MAX)).map(|(&key, _)| key);
        let earliest = own.next().filter(|_| own.next().is_some());
        let Some(key) = earliest.or_else(|| self.turns.keys().next().copied()) else { return };
        self.turns.remove(&key);
        self.dropped += 1;
        self.threads.entry(key.0).and_modify(|thread| thread.turns += 1);
    }

    /// Merges the threads of another group.
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
        self.dropped += other.dropped;
        for (&(tid, start), &turn) in &other.turns {
            self.put(tid, start, turn);
        }
    }

    /// Threads that took most time, in that order; and the number of all threads.
    pub fn threads(&self) -> (Vec<CulpritThread>, u64) {
        let open_turns = |tid: i32| self.turns.range((tid, i64::MIN)..=(tid, i64::MAX)).count() as u64;
        let whole = |thread: &CulpritThread| CulpritThread {
            turns: thread.turns + open_turns(thread.tid),
            ..thread.clone()
        };
        let mut threads: Vec<CulpritThread> = self.threads.values().map(whole).collect();
        threads.compact_sort_by_key(|thread| (std::cmp::Reverse(thread.total_ns), thread.tid));
        let seen = (threads.len() as u64).saturating_add(self.beyond);
        threads.truncate(MAX_LISTED);
        (threads, seen)
    }

    /// Lengths and number of turns; none if no thread was seen.
    pub fn summary(&self) -> Option<CulpritTurns> {
        let mut lengths: Vec<i64> = self.turns.values().map(|turn| turn.ns).collect();
        lengths.sort_unstable();
        let every = self.every();
        Some(CulpritTurns {
            count: self.dropped + self.turns.len() as u64,
            median_ns: Nanos(*lengths.get(lengths.len().saturating_sub(1) / 2)?),
            longest_ns: Nanos(*lengths.last()?),
            every_ns: every.map(|every| every.0),
            every_se_ns: every.map(|every| every.1),
        })
    }

    /// Median distance between turns of one thread, if half of the distances are close to it, and
    /// its standard error.
    fn every(&self) -> Option<(Nanos, Nanos)> {
        let turns: Vec<(&(i32, i64), &OneTurn)> = self.turns.iter().collect();
        // If no spike connects two turns, other turns between them are possible, unless each turn
        // alone makes a spike.
        let distance = |pair: &[(&(i32, i64), &OneTurn)]| {
            let [(&(before, from), one), (&(after, to), next)] = *pair else { return None };
            let known = one.known_until >= to || (one.large && next.large);
            (before == after && known).then(|| to.saturating_sub(from))
        };
        let mut distances: Vec<i64> = turns.windows(2).filter_map(distance).collect();
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

    const MILLI: i64 = 1_000_000;

    fn of_kind(kind: SliceKind, tid: i32, start: i64, ns: i64) -> Slice {
        let who = Who { comm: "hog".into(), pid: tid, prio: 9, ..Who::default() };
        Slice { kind: kind.into(), start_ns: Nanos(start), ns: Nanos(ns), who, ..Slice::default() }
    }

    fn slice(tid: i32, start: i64, ns: i64) -> Slice {
        of_kind(SliceKind::Thread, tid, start, ns)
    }

    /// Adds the slices of one spike that belong to a thread.
    fn add(turns: &mut ThreadTurns, tid: i32, number: u64, slices: Vec<Slice>) {
        let from = slices.first().map_or(0, |slice| slice.start_ns.0);
        let to = slices.last().map_or(0, |slice| slice.start_ns.0.saturating_add(slice.ns.0));
        let latency_ns = Nanos(to.saturating_sub(from));
        let spike =
            Spike { expected_ns: Nanos(from), actual_ns: Nanos(to), latency_ns, slices, ..Spike::default() };
        let all = slices_of(number, &spike);
        all.iter().filter(|of| of.slice.who.pid == tid).for_each(|of| turns.add(of));
    }

    #[test]
    fn turns_of_one_thread_have_a_period_and_an_interrupted_one_is_whole() {
        let mut turns = ThreadTurns::default();
        for spike in 0..20i64 {
            let at = spike * 790 * MILLI + (spike * 7919 % 9) * MILLI;
            let irq = of_kind(SliceKind::Irq, 0, at + 2 * MILLI, 100_000);
            let two = vec![slice(4203, at, 2 * MILLI), irq, slice(4203, at + 2_100_000, 4 * MILLI)];
            add(&mut turns, 4203, spike as u64 + 1, two);
        }
        let summary = turns.summary().expect("turns");
        assert_eq!((summary.count, summary.median_ns), (20, Nanos(6 * MILLI)));
        let every = summary.every_ns.expect("a period").0;
        assert!((780 * MILLI..800 * MILLI).contains(&every), "{every}");
        assert!(summary.every_se_ns.is_some_and(|se| se.0 >= every / 201));
        let (threads, seen) = turns.threads();
        assert_eq!((threads.len(), seen, threads[0].turns, threads[0].total_ns.0), (1, 1, 20, 120 * MILLI));
    }

    #[test]
    fn a_turn_that_makes_several_cycles_late_is_one() {
        // 15 ms once a second; each cycle of a 1 ms loop that was due in that time is late.
        let mut turns = ThreadTurns::default();
        for second in 0..8i64 {
            let at = second * 1_000 * MILLI;
            for cycle in 0..15 {
                let due = at + cycle * MILLI;
                let own = of_kind(SliceKind::Own, 50, at + 15 * MILLI, 20_000);
                add(
                    &mut turns,
                    9,
                    (second * 15 + cycle) as u64 + 1,
                    vec![slice(9, due, (15 - cycle) * MILLI), own],
                );
            }
        }
        let summary = turns.summary().expect("turns");
        assert_eq!(
            (summary.count, summary.median_ns, summary.longest_ns),
            (8, Nanos(15 * MILLI), Nanos(15 * MILLI))
        );
        assert_eq!(summary.every_ns, Some(Nanos(1_000 * MILLI)));
        assert_eq!(turns.threads().0[0].turns, 8);
    }

    #[test]
    fn turns_within_one_cycle_are_several_and_one_that_no_spike_shows_is_not_left_out() {
        // A 1 ms loop takes 20 us each time; a cycle of 12 ms is late once a second.
        let cycle = |at: i64, length: i64| -> Vec<Slice> {
            let each = |n: i64| {
                [
                    of_kind(SliceKind::Preempted, 9, at + n * MILLI, 20_000),
                    of_kind(SliceKind::Own, 50, at + n * MILLI + 20_000, 980_000),
                ]
            };
            (0..length).flat_map(each).collect()
        };
        let mut turns = ThreadTurns::default();
        (0..8).for_each(|second| add(&mut turns, 9, second as u64 + 1, cycle(second * 1_000 * MILLI, 12)));
        let summary = turns.summary().expect("turns");
        assert_eq!((summary.count, summary.median_ns), (96, Nanos(20_000)));
        assert_eq!(summary.every_ns, Some(Nanos(MILLI)));
        // Cycles that show one turn each say nothing about turns between them.
        let mut turns = ThreadTurns::default();
        (0..8).for_each(|second| add(&mut turns, 9, second as u64 + 1, cycle(second * 1_000 * MILLI, 1)));
        let summary = turns.summary().expect("turns");
        assert_eq!((summary.count, summary.every_ns), (8, None));
    }

    #[test]
    fn more_turns_than_are_kept_are_counted() {
        let mut turns = ThreadTurns::default();
        for n in 0..MAX_TURNS as i64 + 500 {
            for again in 0..2 {
                add(&mut turns, 9, n as u64 + 1, vec![slice(9, n * MILLI + again, 1_000 - again)]);
            }
        }
        let summary = turns.summary().expect("turns");
        assert_eq!((summary.count, turns.threads().0[0].turns), (1_500, 1_500));
        assert!(turns.turns.len() <= MAX_TURNS);
    }

    #[test]
    fn distances_between_threads_that_come_and_go_are_no_period() {
        let mut turns = ThreadTurns::default();
        (0..40).for_each(|n| {
            add(
                &mut turns,
                100 + n,
                n as u64 + 1,
                vec![slice(100 + n, i64::from(n) * 1_000 * MILLI, 4 * MILLI)],
            )
        });
        let (threads, seen) = turns.threads();
        assert_eq!((threads.len(), seen), (MAX_LISTED, 40));
        assert_eq!(turns.summary().expect("turns").every_ns, None);
        // Scattered turns of one thread have no period either.
        let mut turns = ThreadTurns::default();
        for n in 0..40i64 {
            add(
                &mut turns,
                7,
                n as u64 + 1,
                vec![slice(7, (n * n % 37) * 100 * MILLI + n * 5_000 * MILLI, MILLI)],
            );
        }
        let wide = turns.summary().expect("turns");
        assert!(wide.every_ns.is_none_or(|every| every.0 > 4_000 * MILLI), "{wide:?}");
    }

    #[test]
    fn what_is_no_thread_that_ran_has_no_turn() {
        let mut turns = ThreadTurns::default();
        add(&mut turns, 5, 1, vec![of_kind(SliceKind::Irq, 5, 0, 9)]);
        add(&mut turns, 0, 1, vec![slice(0, 0, 9)]);
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
                add(&mut all, tid, spike, vec![slice(tid, start, ns)]);
                add(&mut parts[usize::from(tid % 2 == 0)], tid, spike, vec![slice(tid, start, ns)]);
            }
            let [mut first, second] = parts;
            first.merge(&second);
            let summary = |turns: &ThreadTurns| {
                let (threads, seen) = turns.threads();
                let each = |thread: &CulpritThread| (thread.tid, thread.total_ns, thread.turns);
                (threads.iter().map(each).collect::<Vec<_>>(), seen)
            };
            prop_assert_eq!(summary(&first), summary(&all));
            prop_assert_eq!(first.summary(), all.summary());
        }
    }
}
