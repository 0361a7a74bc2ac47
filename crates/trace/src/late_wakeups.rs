//! Late wake-ups in a trace of any length: those over a limit, the largest, or those at a mark.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use super::event::{Raw, Task, What};
use super::fixed_str::FixedStr;
use super::wakeups::{Wakeup, WakeupTracker};
use model::histogram::{Counts, EARLY_BUCKET, bucket_of, fill_buckets, mean};
use model::run::{CpuRun, Worst};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Limit of followed threads; machines have fewer under real-time policies.
const MAX_THREADS: usize = 4096;

/// Longest time between a wake-up and the mark that refers to it.
const MAX_BEFORE_MARK: Nanos = Nanos(1_000_000_000);

/// Limit of stored wake-ups before a mark.
const MAX_RECENT: usize = 1 << 14;

/// Number of wake-ups listed per CPU.
const WORST: usize = model::run::WORST;

/// Selection of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedThreads {
    /// All real-time and deadline threads, except the kernel's own helpers.
    RealTime,
    /// The thread with this ID.
    Thread(i32),
    /// All threads with this name, truncated as by the kernel.
    Named(FixedStr<16>),
}

impl WantedThreads {
    fn take(&self, task: &Task) -> bool {
        match self {
            WantedThreads::RealTime => task.real_time() && !task.idle() && !is_kernels_own(task),
            WantedThreads::Thread(tid) => task.pid == *tid && !task.idle(),
            WantedThreads::Named(name) => task.comm == *name && !task.idle(),
        }
    }
}

/// True for the kernel's own real-time threads, whose waits are intended: they work for other
/// threads. Threads of interrupts are not among them.
fn is_kernels_own(task: &Task) -> bool {
    const BEGINS: [&str; 10] = [
        "migration/",
        "ktimers/",
        "ksoftirqd/",
        "rcuc/",
        "rcub/",
        "rcu_",
        "rcuog/",
        "irq_work/",
        "idle_inject/",
        "backlog_napi/",
    ];
    BEGINS.iter().any(|begin| task.comm.starts_with(begin))
}

/// Selection of wake-ups to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedWakeups {
    /// All that are later than this; the largest of them if there are too many.
    Over(Nanos),
    /// The largest ones.
    Largest,
    /// Those before marks with this text.
    AtMark(String),
}

/// Wake-up, ordered by latency, and earlier first among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    latency: Nanos,
    wakeup: Wakeup,
}

impl Ord for Found {
    fn cmp(&self, other: &Found) -> std::cmp::Ordering {
        (self.latency, Reverse(self.wakeup.actual)).cmp(&(other.latency, Reverse(other.wakeup.actual)))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Found) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Statistics of the wake-ups on a CPU.
#[derive(Default)]
struct CpuWakeups {
    rows: Counts,
    count: u64,
    sum: i128,
    worst: BinaryHeap<Reverse<Found>>,
    least: Option<Nanos>,
}

/// Search for late wake-ups in events in order of time.
pub struct LateWakeups {
    threads: WantedThreads,
    wakeups: WantedWakeups,
    most: usize,
    tracker: WakeupTracker,
    /// Followed threads, each with true once it has woken.
    followed: HashMap<i32, (Task, bool)>,
    /// Number of threads not followed for lack of room.
    pub threads_dropped: u64,
    found: BinaryHeap<Reverse<Found>>,
    /// Number of wake-ups to explain, including those without room.
    pub matching: u64,
    /// Number of marks with the text, and of those without a wake-up before them.
    pub marks: [u64; 2],
    recent: VecDeque<Wakeup>,
    cpus: BTreeMap<Cpu, CpuWakeups>,
}

impl LateWakeups {
    /// Keeps at most `most` wake-ups; `monotonic` if the trace's clock is CLOCK_MONOTONIC.
    pub fn new(threads: WantedThreads, wakeups: WantedWakeups, most: usize, monotonic: bool) -> LateWakeups {
        let tracker = WakeupTracker::new([], i64::MIN);
        LateWakeups {
            threads,
            wakeups,
            most: most.max(1),
            tracker: if monotonic { tracker } else { tracker.on_any_clock() },
            followed: HashMap::new(),
            threads_dropped: 0,
            found: BinaryHeap::new(),
            matching: 0,
            marks: [0; 2],
            recent: VecDeque::new(),
            cpus: BTreeMap::new(),
        }
    }

    /// Sets the number of the futex system call: if a call waited for a mutex, the wake-up counts
    /// from the start of the wait.
    pub fn with_futex(self, futex: Option<i64>) -> LateWakeups {
        match futex {
            Some(futex) => LateWakeups { tracker: self.tracker.with_futex(futex), ..self },
            None => self,
        }
    }

    /// Takes the next event.
    pub fn observe(&mut self, event: &Raw) {
        match &event.what {
            What::Waking { task, .. } | What::Wakeup { task, .. } => self.meet(task),
            What::Switch { prev, next, .. } => {
                self.meet(prev);
                self.meet(next);
            }
            What::Mark { text } => return self.mark(event, &text.text()),
            _ => {}
        }
        let Some(wakeup) = self.tracker.observe(event) else { return };
        // A thread that is fair now had only inherited its priority.
        if !self.threads.take(&wakeup.task) {
            return;
        }
        self.count(&wakeup);
        match self.wakeups {
            WantedWakeups::Over(over) if wakeup.actual - wakeup.expected <= over => {}
            WantedWakeups::AtMark(_) => {
                let horizon = wakeup.actual - MAX_BEFORE_MARK;
                let old = |recent: &VecDeque<Wakeup>| recent.front().is_some_and(|one| one.actual < horizon);
                while self.recent.len() >= MAX_RECENT || old(&self.recent) {
                    self.recent.pop_front();
                }
                self.recent.push_back(wakeup);
            }
            _ => self.keep(wakeup),
        }
    }

    /// Resets the state of the threads after lost events.
    pub fn forget(&mut self) {
        self.tracker.forget();
    }

    fn meet(&mut self, task: &Task) {
        if self.tracker.follows(task.pid) || !self.threads.take(task) {
            return;
        }
        if self.followed.len() >= MAX_THREADS {
            self.threads_dropped += 1;
            return;
        }
        self.followed.insert(task.pid, (*task, false));
        self.tracker.follow(task.pid);
    }

    fn count(&mut self, wakeup: &Wakeup) {
        if let Some(thread) = self.followed.get_mut(&wakeup.task.pid) {
            *thread = (wakeup.task, true);
        }
        let latency = wakeup.actual - wakeup.expected;
        let cpu = self.cpus.entry(wakeup.cpu).or_default();
        cpu.rows.add(bucket_of(latency), 1);
        cpu.count += 1;
        cpu.sum += i128::from(latency.0);
        cpu.least = Some(cpu.least.map_or(latency, |least| least.min(latency)));
        push(&mut cpu.worst, Found { latency, wakeup: *wakeup }, WORST);
    }

    fn keep(&mut self, wakeup: Wakeup) {
        self.matching += 1;
        let latency = wakeup.actual - wakeup.expected;
        push(&mut self.found, Found { latency, wakeup }, self.most);
    }

    /// Selects the wake-up before a mark: the last of the thread that wrote it, else the largest.
    fn mark(&mut self, event: &Raw, text: &str) {
        let WantedWakeups::AtMark(wanted) = &self.wakeups else { return };
        if !text.contains(wanted.as_str()) {
            return;
        }
        self.marks[0] += 1;
        let near = || self.recent.iter().filter(|one| one.actual >= event.time - MAX_BEFORE_MARK);
        let own = near().rfind(|one| one.task.pid == event.pid);
        match own.or_else(|| near().max_by_key(|one| one.actual - one.expected)).copied() {
            Some(wakeup) if self.found.iter().any(|found| found.0.wakeup == wakeup) => {}
            Some(wakeup) => self.keep(wakeup),
            None => self.marks[1] += 1,
        }
    }

    /// Threads with wake-ups, by ID.
    pub fn threads(&self) -> Vec<Task> {
        let mut woken: Vec<Task> =
            self.followed.values().filter(|thread| thread.1).map(|thread| thread.0).collect();
        woken.compact_sort_by_key(|task| task.pid);
        woken
    }

    /// Wake-ups to explain, in order of time.
    pub fn found(&self) -> Vec<Wakeup> {
        let mut found: Vec<Wakeup> = self.found.iter().map(|found| found.0.wakeup).collect();
        found.compact_sort_by_key(|wakeup| wakeup.actual);
        found
    }

    /// Statistics of the wake-ups, by CPU on which the threads ran.
    pub fn cpus(&self) -> Vec<CpuRun> {
        self.cpus.iter().map(|(&cpu, wakeups)| wakeups.document(cpu)).collect()
    }
}

/// Adds a wake-up, and removes the least one if the heap is full.
fn push(heap: &mut BinaryHeap<Reverse<Found>>, found: Found, most: usize) {
    if heap.len() < most {
        heap.push(Reverse(found));
    } else if heap.peek().is_some_and(|least| least.0 < found) {
        heap.pop();
        heap.push(Reverse(found));
    }
}

impl CpuWakeups {
    fn document(&self, cpu: Cpu) -> CpuRun {
        let mut worst: Vec<Found> = self.worst.iter().map(|found| found.0).collect();
        worst.compact_sort_by(|a, b| b.cmp(a));
        let mut run = CpuRun {
            cycles: Some(self.count),
            early: Some(self.rows.get(EARLY_BUCKET)),
            min_ns: self.least,
            mean_ns: (self.count > 0).then(|| mean(self.sum, self.count)),
            max_ns: worst.first().map(|found| found.latency),
            sum_ns: i64::try_from(self.sum).ok(),
            ..CpuRun::without_schedule(cpu)
        };
        run.worst = worst.iter().map(Found::document).collect();
        fill_buckets(&mut run.histogram, &[&self.rows], self.least.unwrap_or_default());
        run.fill_quantiles();
        run
    }
}

impl Found {
    fn document(&self) -> Worst {
        Worst { latency_ns: Some(self.latency), mono_ns: Some(self.wakeup.actual), ..Worst::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Address, Context, Event};

    fn at(time: i64, pid: i32, what: What<Address>) -> Raw {
        Event { time: Nanos(time), cpu: Cpu(0), pid, context: Context(0), preempt: 0, what }
    }

    fn task(pid: i32) -> Task {
        let prio = if pid < 10 { 19 } else { 120 };
        Task { pid, prio, comm: if pid == 7 { "rt".into() } else { "other".into() } }
    }

    fn switch(time: i64, from: i32, to: i32) -> Raw {
        at(time, from, What::Switch { prev: task(from), state: 1, next: task(to) })
    }

    /// Thread `pid` is woken and runs `late` ns later.
    fn wakeup(time: i64, pid: i32, late: i64) -> [Raw; 3] {
        let waking = at(time, 50, What::Waking { task: task(pid), target: Cpu(0) });
        [waking, switch(time + late, 50, pid), switch(time + late + 1, pid, 50)]
    }

    fn mark(time: i64, pid: i32, text: &str) -> Raw {
        at(time, pid, What::Mark { text: text.into() })
    }

    fn found(threads: WantedThreads, wakeups: WantedWakeups, most: usize, events: &[Raw]) -> (Vec<i64>, u64) {
        let mut late = LateWakeups::new(threads, wakeups, most, true);
        events.iter().for_each(|event| late.observe(event));
        let spans = late.found().iter().map(|one| one.actual.0 - one.expected.0).collect();
        (spans, late.matching)
    }

    fn events() -> Vec<Raw> {
        [wakeup(1_000, 7, 30), wakeup(2_000, 8, 70), wakeup(3_000, 20, 900), wakeup(4_000, 7, 50)].concat()
    }

    #[test]
    fn the_largest_or_those_over_a_span_are_found_of_the_threads_that_are_wanted() {
        let all = events();
        use WantedThreads::*;
        use WantedWakeups::*;
        assert_eq!(found(RealTime, Largest, 10, &all), (vec![30, 70, 50], 3));
        assert_eq!(found(RealTime, Largest, 2, &all), (vec![70, 50], 3));
        assert_eq!(found(RealTime, Over(Nanos(49)), 9, &all), (vec![70, 50], 2));
        assert_eq!(found(Thread(20), Largest, 9, &all), (vec![900], 1));
        assert_eq!(found(Named("rt".into()), Largest, 9, &all), (vec![30, 50], 2));
    }

    #[test]
    fn a_mark_is_of_the_wake_up_of_its_writer_else_of_the_largest() {
        let mut all = events();
        all.push(mark(4_060, 7, "hit latency threshold (40 > 20)"));
        all.push(mark(4_070, 99, "hit"));
        all.push(mark(4_080, 99, "other"));
        let (spans, matching) = found(WantedThreads::RealTime, WantedWakeups::AtMark("hit".into()), 9, &all);
        assert_eq!((spans, matching), (vec![70, 50], 2));
        let late = [mark(9_000_000_000, 99, "hit")];
        let mut far = LateWakeups::new(WantedThreads::RealTime, WantedWakeups::AtMark("hit".into()), 9, true);
        all[..12].iter().chain(&late).for_each(|event| far.observe(event));
        assert_eq!((far.marks, far.found().len()), ([1, 1], 0));
    }

    #[test]
    fn a_wait_for_a_mutex_is_part_of_the_lateness() {
        let call = |value| at(1_000, 7, What::SyscallEntry { id: 202, args: [64, 0, value, 0] });
        let of = |futex, value| {
            let waits = [call(value), switch(1_010, 7, 50)];
            let events = [&wakeup(500, 7, 1)[..], &waits, &wakeup(2_000, 7, 30)].concat();
            let new = LateWakeups::new(WantedThreads::Thread(7), WantedWakeups::Largest, 1, true);
            let mut late = new.with_futex(futex);
            events.iter().for_each(|event| late.observe(event));
            late.found().first().map(|one| one.actual.0 - one.expected.0)
        };
        assert_eq!(of(Some(202), 2), Some(1_020));
        assert_eq!(of(Some(202), 5), Some(30), "no mutex has that value");
        assert_eq!(of(None, 2), Some(30));
    }

    #[test]
    fn the_numbers_are_those_of_all_wake_ups() {
        let mut late = LateWakeups::new(WantedThreads::RealTime, WantedWakeups::Largest, 1, true);
        events().iter().for_each(|event| late.observe(event));
        let cpus = late.cpus();
        assert_eq!(
            (cpus[0].cycles, cpus[0].max_ns, cpus[0].min_ns),
            (Some(3), Some(Nanos(70)), Some(Nanos(30)))
        );
        assert_eq!((cpus[0].mean_ns, cpus[0].worst.len()), (Some(Nanos(50)), 3));
        assert_eq!(late.threads().iter().map(|task| task.pid).collect::<Vec<_>>(), [7, 8]);
    }
}
