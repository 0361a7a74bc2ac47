//! The recorded threads, and each one's count of its sleeps.

use std::collections::BTreeMap;

use host::clock;
use host::threads::{ThreadFacts, real_time_threads, thread_facts};
use model::error::{Failure, Result};
use model::units::Nanos;
use model::watch::WatchTask;

use super::machine::WakeupMachine;
use crate::records::WorstFound;
use crate::slots::{ChosenThread, KnownThread, Looked};

/// The ticks that /proc counts time in (USER_HZ, sysconf(3)).
const TICK: i64 = 10_000_000;

/// A look at a thread in /proc, and its time.
pub struct ThreadLook {
    pub at: Nanos,
    tid: u32,
    facts: Option<ThreadFacts>,
}

/// Threads and their counts.
pub struct RingThreads {
    known: BTreeMap<u32, KnownThread>,
    pub chosen: Vec<ChosenThread>,
    limit: usize,
}

impl RingThreads {
    pub fn new(limit: usize) -> RingThreads {
        RingThreads { known: BTreeMap::new(), chosen: Vec::new(), limit }
    }

    /// Adds the real-time threads that exist before the recording begins.
    pub fn add_present(&self, machine: &mut WakeupMachine) {
        for facts in real_time_threads() {
            machine.add(facts.tid, facts.kernel, facts.asleep);
        }
    }

    /// Gives a thread separate histograms.
    pub fn choose(&mut self, machine: &mut WakeupMachine, tid: u32) -> Result<()> {
        let facts = thread_facts(tid).ok_or_else(|| Failure::usage(format!("no thread {tid}")))?;
        if self.chosen.iter().any(|chosen| chosen.tid == tid) {
            return Ok(());
        }
        if self.chosen.len() >= self.limit {
            let limit = self.limit;
            return Err(Failure::usage(format!("at most {limit} threads can have separate histograms")));
        }
        if !machine.add(tid, facts.kernel, facts.asleep) {
            return Err(Failure::not_supported(format!(
                "cannot record thread {tid}: there are too many real-time threads"
            )));
        }
        machine.choose(tid);
        if !self.known.contains_key(&tid) {
            self.note(machine, &facts);
        }
        self.chosen.push(ChosenThread::of(&facts));
        Ok(())
    }

    /// Looks at all recorded threads; their events up to this time have still to be read.
    pub fn look(&self, machine: &WakeupMachine) -> Vec<ThreadLook> {
        let look = |tid: u32| {
            let facts = thread_facts(tid);
            ThreadLook { at: clock::monotonic(), tid, facts }
        };
        machine.tids().into_iter().map(look).collect()
    }

    /// Compares the recorded wake-ups up to a look with the thread's own count.
    pub fn compare(&mut self, look: &ThreadLook, machine: &mut WakeupMachine, looked: &mut Looked) {
        let Some(facts) = &look.facts else {
            // Its end may have been seen since the look.
            looked.swept += u64::from(machine.thread(look.tid).is_some());
            machine.remove(look.tid);
            self.known.remove(&look.tid);
            return;
        };
        let known = self.known.remove(&look.tid);
        let Some(chosen) = machine.thread(look.tid).map(|thread| thread.chosen) else { return };
        looked.threads += 1;
        self.note(machine, facts);
        // A thread that inherited a real-time priority for a while (rt_mutex) sleeps mostly without
        // it, and those sleeps are not recorded.
        if !facts.real_time && !chosen {
            return;
        }
        let Some(now) = self.known.get(&look.tid) else { return };
        match known {
            Some(last) if last.start == now.start => looked.add(now.since(&last, facts)),
            Some(_) => machine.replace(look.tid, facts.kernel),
            None => {}
        }
    }

    /// Forgets chosen threads an interval after their end: their last wake-ups come with that.
    pub fn sweep_chosen(&mut self) {
        self.chosen.retain(|chosen| !chosen.ended);
        for chosen in &mut self.chosen {
            chosen.ended = !self.known.contains_key(&chosen.tid);
        }
    }

    fn note(&mut self, machine: &WakeupMachine, facts: &ThreadFacts) {
        let Some(thread) = machine.thread(facts.tid) else { return };
        self.known.insert(facts.tid, KnownThread::of(facts, thread.slept, thread.recorded));
    }
}

/// Facts about the threads of the worst wake-ups that no event contains: their processes, and the
/// name of an interrupted one.
#[derive(Default)]
pub struct ThreadNames(BTreeMap<u32, Option<ThreadFacts>>);

impl ThreadNames {
    pub fn complete(&mut self, worst: &mut WorstFound) {
        let at = worst.wakeup.mono_ns.0.saturating_add(clock::boot_offset().0);
        for task in [&mut worst.wakeup.victim, &mut worst.wakeup.previous, &mut worst.wakeup.interrupted] {
            self.add(task, at);
        }
    }

    fn add(&mut self, task: &mut WatchTask, at: i64) {
        let tid = task.tid.and_then(|tid| u32::try_from(tid).ok()).filter(|tid| *tid != 0);
        let Some(tid) = tid else { return };
        // One that began later has a number only.
        let began = |facts: &ThreadFacts| i64::try_from(facts.start).map_or(i64::MAX, |start| start * TICK);
        let found = self.0.entry(tid).or_insert_with(|| thread_facts(tid));
        let Some(facts) = found.as_ref().filter(|facts| began(facts) <= at) else { return };
        task.pid = task.pid.or(i32::try_from(facts.process).ok());
        if task.comm.is_empty() {
            task.comm.clone_from(&facts.comm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::watch::WorstWakeup;

    #[test]
    fn a_thread_is_named_where_it_was_there_at_that_time() {
        let tid = host::rt::thread_id();
        let at = |mono_ns| {
            let interrupted = WatchTask { tid: Some(tid), ..WatchTask::default() };
            let wakeup = WorstWakeup { mono_ns, interrupted, ..WorstWakeup::default() };
            let mut found = WorstFound { wakeup, ..WorstFound::default() };
            ThreadNames::default().complete(&mut found);
            found.wakeup.interrupted
        };
        let now = at(clock::monotonic());
        assert_eq!(now.pid, i32::try_from(std::process::id()).ok());
        assert!(!now.comm.is_empty());
        let before = at(Nanos(-clock::boot_offset().0));
        assert_eq!((before.pid, before.comm.as_str()), (None, ""));
    }
}
