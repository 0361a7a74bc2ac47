//! Events of followed threads, in order of time over all CPUs, and the losses among them.

use super::explainer::{Explainer, timer_start};
use super::family::{Family, FamilyChange};
use super::followed_cycles::FollowedCycles;
use super::followed_spikes::FollowOptions;
use super::late_task::LateTask;
use super::losses::Losses;
use super::victims::Victim;
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;
use trace::cycles::CycleTracker;
use trace::event::Raw;
use trace::wakeups::{Wakeup, WakeupTracker};

/// Collected events that are not processed yet, and the state of the followed threads.
pub struct FollowedEvents {
    pub tracker: WakeupTracker,
    pub cycles: FollowedCycles,
    pub family: Family,
    pub losses: Losses,
    /// Events newer than the time up to which all CPUs were read.
    waiting: Vec<Raw>,
    /// Starts of timers (thread, function, timer) while they are learned.
    starts: Option<Vec<(i32, u64, u64)>>,
    /// True if stacks are to be taken at timers.
    learns: bool,
}

/// Results of a poll.
#[derive(Default)]
pub struct PolledEvents {
    pub wakeups: Vec<Wakeup>,
    /// Cycles that exceeded their deadline.
    pub late: Vec<LateTask>,
    /// New threads; `left` is true if any thread left.
    pub came: Vec<i32>,
    pub left: bool,
    /// Time up to which the events were complete.
    pub seen: Nanos,
}

impl FollowedEvents {
    /// Events of the threads that the family follows from the beginning; with `learn_timers`,
    /// stacks are to be taken at their timers.
    pub fn new(family: Family, cycles: FollowedCycles, futex: i64, learn_timers: bool) -> FollowedEvents {
        let tracker = WakeupTracker::new(family.followed().map(|victim| victim.thread), futex);
        let starts = learn_timers.then(Vec::new);
        let losses = Losses::default();
        let mut all = FollowedEvents {
            tracker,
            cycles,
            family,
            losses,
            waiting: Vec::new(),
            starts,
            learns: learn_timers,
        };
        all.family.followed().for_each(|victim| all.cycles.follow(victim));
        all
    }

    /// Collects events, and processes them up to `upto`, or as far as the events of all CPUs are
    /// complete.
    pub fn poll(&mut self, explainer: &mut Explainer, upto: Nanos) -> PolledEvents {
        let FollowedEvents { waiting, starts, .. } = self;
        let collected = explainer.collect_each(&mut |event| {
            if let Some(starts) = starts {
                starts.extend(timer_start(&event));
            }
            if CycleTracker::wants(&event) || Family::wants(&event) {
                waiting.push(event);
            }
        });
        if let Some(gap) = collected.lost_before {
            self.losses.missed(gap);
            self.tracker.forget();
            self.cycles.forget();
        }
        // A waking without its switch would make the next switch a spike. Later events of a CPU
        // that lags behind may still lie before the gap.
        let gap = self.losses.gap();
        self.waiting.retain(|event| event.time >= gap);
        self.waiting.compact_sort_by_key(|event| event.time);
        let seen = upto.min(collected.complete_until);
        self.losses.read_until(seen);
        let ready = self.waiting.partition_point(|event| event.time <= seen);
        let ready: Vec<Raw> = self.waiting.drain(..ready).collect();
        let mut told = PolledEvents { seen, ..PolledEvents::default() };
        for event in &ready {
            self.take(event, explainer, &mut told);
        }
        told
    }

    fn take(&mut self, event: &Raw, explainer: &mut Explainer, told: &mut PolledEvents) {
        match self.family.observe(event) {
            Some(FamilyChange::Came(task)) => {
                self.tracker.follow(task.pid);
                self.cycles.follow(&Victim::from_event(&task));
                told.came.push(task.pid);
            }
            Some(FamilyChange::Left(thread)) => {
                self.tracker.unfollow(thread);
                self.cycles.ended(thread);
                told.left = true;
            }
            None => {}
        }
        if !explainer.knows_calls(event) {
            // None of its calls is one that the trackers look for.
            self.cycles.has_other_numbers(event.pid);
            return;
        }
        told.wakeups.extend(self.tracker.observe(event));
        told.late.extend(self.cycles.observe(event, &mut |frames| explainer.sleep_place(frames)));
    }

    /// Checks new threads in /proc; stops following those that are refused, and returns them.
    pub fn confirm(&mut self, came: &[i32], host: &host::MachineFiles) -> Vec<i32> {
        let mut refused = Vec::new();
        for &thread in came {
            let of = |family: &Family| family.followed().find(|victim| victim.thread == thread).cloned();
            let as_it_came = of(&self.family);
            if self.family.confirm(host, thread) {
                // A thread that has ended is unchanged, and may have had another name since.
                let found = of(&self.family).filter(|found| as_it_came.as_ref() != Some(found));
                found.iter().for_each(|victim| self.cycles.follow(victim));
            } else {
                self.tracker.unfollow(thread);
                self.cycles.unfollow(thread);
                refused.push(thread);
            }
        }
        // Timers of the new threads are not known yet.
        if !came.is_empty() && self.learns {
            self.starts.get_or_insert_default();
        }
        refused
    }

    /// Ends the recording of system calls after the requested time, because it slows down every
    /// process; returns a note.
    pub fn end_syscalls(
        &mut self,
        explainer: &mut Explainer,
        elapsed: Nanos,
        options: &mut FollowOptions,
    ) -> Option<String> {
        options.syscalls.take_if(|span| elapsed >= *span)?;
        explainer.end_syscalls();
        self.cycles.end_syscalls();
        Some(format!("system calls were recorded for the first {}", elapsed.spoken()))
    }

    /// Notes on threads that were not examined and wake-ups that were not seen.
    pub fn missing(&self) -> Vec<String> {
        let (unremembered, unseen) = (self.family.unremembered(), self.tracker.unseen);
        let threads = (unremembered > 0).then(|| {
            let many = several(unremembered, "thread was", "threads were");
            format!("{many} created beyond the limit of followed threads, and not examined")
        });
        let wakeups = (unseen > 0).then(|| {
            let many = several(unseen, "wake-up has", "wake-ups have");
            format!("{many} no latency: the kernel recorded no switch to the thread")
        });
        threads.into_iter().chain(wakeups).collect()
    }

    /// Takes the starts of timers once there are any; ends their collection.
    pub fn take_timer_starts(&mut self) -> Option<Vec<(i32, u64, u64)>> {
        self.starts.take_if(|starts| !starts.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{event, explainer, task};
    use crate::hunt::victims::FollowedKind;
    use host::MachineFiles;
    use trace::event::{Task, What};

    #[test]
    fn a_thread_that_ended_before_it_was_asked_for_has_its_last_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, mut explainer, _) = explainer(&[0], &folder.path().join("run"));
        let family = Family::new(FollowedKind::Program, Vec::new(), [7]);
        let mut events = FollowedEvents::new(family, FollowedCycles::new(None, None), 202, false);
        let named = |name: &str| Task { comm: name.into(), ..task(7) };
        let comes = What::Switch { prev: task(3), state: 1, next: named("program") };
        let leaves = What::Switch { prev: named("control"), state: 1, next: task(3) };
        script.borrow_mut().events = vec![event(100, 0, 3, comes), event(200, 0, 7, leaves)];
        let told = events.poll(&mut explainer, Nanos(1_000));
        assert_eq!(told.came, [7]);
        assert!(events.confirm(&told.came, &MachineFiles::in_memory(Default::default())).is_empty());
        assert_eq!(events.cycles.documents()[0].comm, "control");
    }
}
