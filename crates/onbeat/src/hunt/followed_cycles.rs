//! Sums of the cycles of each followed thread; late cycles are returned to be explained. Pure.

use std::collections::BTreeMap;

use super::cycle_spans::{CycleSpan, RecentCycles};
use super::late_task::LateTask;
use super::victims::Victim;
use crate::measure::late::LateWakeup;
use crate::measure::sink::ThreadProgress;
use model::histogram::{Counts, bucket_of, buckets_of};
use model::run::ThreadRun;
use model::units::{Cpu, Nanos};
use trace::cycles::place::SleepPlace;
use trace::cycles::{Cycle, CyclePart, CycleTracker, LongestPart, ReleaseKind};
use trace::event::{Address, Raw, Task, What};
use trace::fixed_str::FixedStr;

/// Maximum number of ended threads in the list; thousands of histograms would be useless.
const MAX_ENDED: usize = 256;

/// Maximum number of those without a cycle: they show that there were real-time threads.
const MAX_WITHOUT: usize = 16;

/// Sums of one thread.
#[derive(Default)]
struct ThreadSums {
    document: ThreadRun,
    /// Name at the last switch; the one in the document may be newer.
    switched_as: FixedStr<16>,
    response: Counts,
    execution: Counts,
    period: Counts,
    recent: RecentCycles,
}

/// Threads that are followed, and those that have ended.
pub struct FollowedCycles {
    tracker: CycleTracker,
    /// Deadline given by the user; otherwise the period of each thread.
    deadline: Option<Nanos>,
    threads: BTreeMap<i32, ThreadSums>,
    ended: Vec<ThreadRun>,
    ended_without: usize,
    /// Cycles that ended since they were asked for.
    finished: Vec<FinishedCycle>,
}

/// Finished cycle, as counted in its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCycle {
    pub thread: i32,
    /// CPU on which it ended.
    pub cpu: Cpu,
    pub end: Nanos,
    pub response: Nanos,
}

impl FollowedCycles {
    /// An empty set; `futex` is the number of that system call if calls are recorded.
    pub fn new(deadline: Option<Nanos>, futex: Option<i64>) -> FollowedCycles {
        FollowedCycles {
            tracker: CycleTracker::new(futex),
            deadline,
            threads: BTreeMap::new(),
            ended: Vec::new(),
            ended_without: 0,
            finished: Vec::new(),
        }
    }

    /// Follows a thread, or updates its document.
    pub fn follow(&mut self, victim: &Victim) {
        self.tracker.follow(victim.thread);
        let document = &mut self.threads.entry(victim.thread).or_default().document;
        (document.tid, document.priority) = (victim.thread, victim.priority);
        (document.comm, document.policy) = (victim.comm.clone(), victim.policy.to_owned());
        document.deadline_ns = document.deadline_ns.or(self.deadline);
    }

    /// Stops following a thread that has ended, and keeps its sums.
    pub fn ended(&mut self, thread: i32) {
        let document = self.document(thread);
        self.unfollow(thread);
        let Some(document) = document else { return };
        let without = document.cycles == 0 && document.untold == 0;
        let room = self.ended.len() < MAX_ENDED && !(without && self.ended_without >= MAX_WITHOUT);
        self.ended_without += usize::from(without && room);
        if room {
            self.ended.push(document);
        }
    }

    /// Drops a thread that is not to be followed, with its sums.
    pub fn unfollow(&mut self, thread: i32) {
        self.tracker.unfollow(thread);
        self.threads.remove(&thread);
    }

    /// Discards open cycles, because events are missing.
    pub fn forget(&mut self) {
        self.tracker.forget();
    }

    /// Notes that system calls are no longer recorded: a mutex and a condition look the same again.
    pub fn end_syscalls(&mut self) {
        self.tracker.end_syscalls();
    }

    /// Notes that a thread's system calls are unknown.
    pub fn has_other_numbers(&mut self, thread: i32) {
        self.tracker.has_other_numbers(thread);
    }

    /// The thread's cycle in progress at `due` that had ended by `ran`.
    pub fn overran(&self, thread: i32, due: Nanos, ran: Nanos) -> Option<CycleSpan> {
        self.threads.get(&thread)?.recent.on_at(due, ran)
    }

    /// True if the thread is in a cycle that began by `time`.
    pub fn is_in_cycle(&self, thread: i32, time: Nanos) -> bool {
        self.tracker.open_since(thread).is_some_and(|since| since <= time)
    }

    /// Processes the next event in order of time; returns a cycle that exceeded its deadline.
    pub fn observe(
        &mut self,
        event: &Raw,
        place: &mut dyn FnMut(&[Address]) -> SleepPlace,
    ) -> Option<LateTask> {
        if let What::Switch { prev, next, .. } = &event.what {
            self.name(prev);
            self.name(next);
        }
        let cycle = self.tracker.observe(event, place)?;
        let sums = self.threads.get_mut(&cycle.task.pid)?;
        let deadline = self.deadline.or(cycle.period);
        sums.count(&cycle, deadline);
        let previous = sums.recent.on_at(cycle.release, cycle.end);
        sums.recent.add(CycleSpan { cpu: cycle.cpu, release: cycle.release, end: cycle.end });
        let (cpu, end, response) = (cycle.cpu, cycle.end, cycle.response());
        self.finished.push(FinishedCycle { thread: cycle.task.pid, cpu, end, response });
        let deadline = deadline.filter(|&deadline| cycle.response() > deadline)?;
        let wakeup = LateWakeup { cpu: cycle.cpu, cycle: 0, expected: cycle.release, actual: cycle.end };
        let (victim, deadline) = (cycle.task, Some(deadline));
        Some(LateTask { wakeup, cycle: None, victim, own: false, deadline, previous })
    }

    /// Updates the name, which a thread may change before it ends; /proc is read too seldom.
    fn name(&mut self, task: &Task) {
        let Some(sums) = self.threads.get_mut(&task.pid) else { return };
        if task.comm != sums.switched_as {
            sums.switched_as = task.comm;
            sums.document.comm = task.comm.text().into_owned();
        }
    }

    /// Cycles that ended since the last call, in order of time.
    pub fn take_finished(&mut self) -> Vec<FinishedCycle> {
        std::mem::take(&mut self.finished)
    }

    /// Sums of each thread up to now, ended ones first.
    pub fn documents(&self) -> Vec<ThreadRun> {
        let live = self.threads.keys().filter_map(|&thread| self.document(thread));
        self.ended.iter().cloned().chain(live).collect()
    }

    /// A line for each thread that is followed, for the screen.
    pub fn progress(&self) -> Vec<ThreadProgress> {
        let line = |sums: &ThreadSums| {
            let ThreadRun { tid, comm, period_ns, cycles, late, worst_ns, worst_culprit, .. } =
                &sums.document;
            ThreadProgress {
                name: format!("{comm}:{tid}"),
                period: *period_ns,
                cycles: *cycles,
                late: *late,
                worst: *worst_ns,
                culprit: worst_culprit.clone(),
            }
        };
        self.threads.values().map(line).collect()
    }

    fn document(&self, thread: i32) -> Option<ThreadRun> {
        let sums = self.threads.get(&thread)?;
        let counters = self.tracker.counters(thread);
        Some(ThreadRun {
            untold: counters.untold,
            overrun: counters.overrun,
            unseen_switches: counters.unseen_switches,
            response: buckets_of(&sums.response, Nanos(0)),
            execution: buckets_of(&sums.execution, Nanos(0)),
            period: buckets_of(&sums.period, Nanos(0)),
            ..sums.document.clone()
        })
    }
}

impl ThreadSums {
    fn count(&mut self, cycle: &Cycle, deadline: Option<Nanos>) {
        let (document, response) = (&mut self.document, cycle.response());
        document.cycles += 1;
        match cycle.by {
            ReleaseKind::Timer => document.by_timer += 1,
            ReleaseKind::Interrupt => document.by_interrupt += 1,
            ReleaseKind::Thread => document.by_thread += 1,
        }
        self.response.add(bucket_of(response), 1);
        self.execution.add(bucket_of(cycle.own), 1);
        cycle.distance.into_iter().for_each(|distance| self.period.add(bucket_of(distance), 1));
        document.period_ns = cycle.period.or(document.period_ns);
        if let Some(deadline) = deadline {
            document.deadline_ns = Some(deadline);
            document.judged += 1;
            *document.late.get_or_insert(0) += u64::from(response > deadline);
        }
        if document.worst_ns.is_none_or(|worst| worst < response) {
            document.worst_ns = Some(response);
            document.worst_culprit = culprit(cycle);
        }
    }
}

/// Largest part of a cycle as a short text, with its cause if the longest stretch of the cycle
/// belongs to that part.
fn culprit(cycle: &Cycle) -> String {
    let parts = [
        (CyclePart::Blocked, cycle.blocked),
        (CyclePart::Preempted, cycle.preempted),
        (CyclePart::Wait, cycle.wait),
    ];
    let most = parts.into_iter().max_by_key(|(_, length)| *length).filter(|(_, length)| *length > cycle.own);
    let Some((part, length)) = most else { return format!("its own {}", cycle.own.spaced()) };
    let length = length.spaced();
    let Some(LongestPart { by, .. }) = cycle.longest.filter(|longest| longest.part == part) else {
        return match part {
            CyclePart::Wait => format!("{length} before it ran"),
            CyclePart::Preempted => format!("{length} preempted"),
            CyclePart::Blocked => format!("{length} blocked"),
        };
    };
    let name = by.comm.text();
    let who = match (name.is_empty(), by.pid) {
        (_, 0) => "an interrupt".to_owned(),
        (true, pid) => format!("thread {pid}"),
        (false, pid) => format!("{name}:{pid}"),
    };
    match part {
        CyclePart::Wait => format!("{length} before it ran"),
        CyclePart::Preempted => format!("{length} preempted by {}", if by.pid == 0 { "idle" } else { &who }),
        CyclePart::Blocked => format!("{length} blocked until {who} woke it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{event, switch, task, waking};
    use model::histogram::total_of;
    use trace::event::What;

    /// Cycles with a period of 1000 and these responses.
    fn cycles(responses: &[i64]) -> Vec<Raw> {
        let mut events = vec![switch(1, 0, 3, 7)];
        for at in 0..responses.len() {
            let release = (at as i64 + 1) * 1_000;
            let start = What::TimerStart { timer: 5, function: 1, expires: Nanos(release) };
            let before = if at == 0 { 500 } else { release - 1_000 + responses[at - 1] };
            events.extend([event(before - 1, 0, 7, start), switch(before, 0, 7, 3)]);
            let entry = What::TimerEntry { timer: 5, function: 1, now: Nanos(release) };
            events.extend([event(release, 0, 3, entry), waking(release + 1, 0, 3, 7)]);
            events.extend([event(release + 2, 0, 3, What::TimerExit { timer: 5 })]);
            events.push(switch(release + 10, 0, 3, 7));
        }
        events
    }

    fn followed(deadline: Option<i64>, responses: &[i64]) -> (FollowedCycles, Vec<i64>) {
        let mut all = FollowedCycles::new(deadline.map(Nanos), None);
        all.follow(&Victim::from_event(&task(7)));
        let mut late = Vec::new();
        for event in cycles(responses) {
            let found = all.observe(&event, &mut |_| SleepPlace::default());
            late.extend(found.map(|late| (late.wakeup.actual - late.wakeup.expected).0));
        }
        (all, late)
    }

    #[test]
    fn cycles_are_counted_and_the_late_ones_are_told() {
        let responses = [100, 200, 900, 100, 100, 100];
        let (all, late) = followed(Some(500), &responses);
        let documents = all.documents();
        let one = &documents[0];
        assert_eq!((late, one.cycles, one.late, one.judged), (vec![900], 5, Some(1), 5));
        assert_eq!((one.worst_ns, one.by_timer, one.deadline_ns), (Some(Nanos(900)), 5, Some(Nanos(500))));
        for rows in [&one.response, &one.execution] {
            assert_eq!(total_of(rows), one.cycles);
        }
        assert_eq!((total_of(&one.period), one.worst_culprit.as_str()), (4, "its own 890 ns"));
        assert_eq!(all.progress()[0].worst, Some(Nanos(900)));
    }

    #[test]
    fn without_a_deadline_the_period_is_it_and_before_that_none() {
        let (all, late) = followed(None, &[100; 6]);
        assert_eq!((all.documents()[0].late, late.len()), (None, 0));
        let (all, _) = followed(None, &[100; 12]);
        let one = &all.documents()[0];
        assert_eq!(
            (one.period_ns, one.deadline_ns, one.late),
            (Some(Nanos(1_000)), Some(Nanos(1_000)), Some(0))
        );
        assert!(one.judged > 0 && one.judged < one.cycles);
    }

    #[test]
    fn a_thread_has_the_newest_name_that_is_known_of_it() {
        let named = |name: &str| Task { comm: name.into(), ..task(7) };
        let mut all = FollowedCycles::new(None, None);
        let switches = |all: &mut FollowedCycles, name: &str, leaves: bool| {
            let (prev, next) = if leaves { (named(name), task(3)) } else { (task(3), named(name)) };
            let event = event(1, 0, prev.pid, What::Switch { prev, state: 1, next });
            all.observe(&event, &mut |_| SleepPlace::default());
            all.documents()[0].comm.clone()
        };
        all.follow(&Victim::from_event(&named("program")));
        assert_eq!(switches(&mut all, "program", false), "program");
        assert_eq!(switches(&mut all, "control", true), "control");
        assert_eq!(switches(&mut all, "control", false), "control");
        // /proc was read after events that are still to come.
        all.follow(&Victim::from_event(&named("renamed")));
        assert_eq!(switches(&mut all, "control", true), "renamed");
        assert_eq!(switches(&mut all, "again", false), "again");
        all.ended(7);
        assert_eq!(all.documents()[0].comm, "again");
    }

    #[test]
    fn some_that_ended_without_a_cycle_are_listed() {
        let mut all = FollowedCycles::new(None, None);
        for thread in 0..MAX_WITHOUT as i32 + 3 {
            all.follow(&Victim::from_event(&task(100 + thread)));
            all.ended(100 + thread);
        }
        assert_eq!(all.documents().len(), MAX_WITHOUT);
    }

    #[test]
    fn what_an_ended_thread_did_stays_and_a_number_that_is_used_again_begins_anew() {
        let (mut all, _) = followed(Some(500), &[100; 5]);
        all.ended(7);
        assert_eq!((all.documents().len(), all.progress().len()), (1, 0));
        all.follow(&Victim::from_event(&task(7)));
        assert_eq!(all.documents().iter().map(|one| one.cycles).collect::<Vec<_>>(), [4, 0]);
        all.unfollow(7);
        assert_eq!(all.documents().len(), 1);
    }
}
