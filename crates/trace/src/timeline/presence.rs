//! Presence of threads: on a CPU, ready for one, or asleep, from switches and wakings.
//!
//! Times that events contradict, or do not reach back to, are unknown: after an unrecorded switch
//! no thread counts as having run or waited.
//!
//! Source: kernel/sched/core.c (`sched_waking` has the CPU that the thread was last on,
//! `sched_migrate_task` and `sched_wakeup` the one where it is queued).

use std::collections::HashMap;

use crate::event::{Named, Task, What};
use model::units::Cpu;

/// Presence of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Running,
    /// Runnable, and queued on this CPU.
    Ready(Cpu),
    /// Asleep, with its index among all sleeps.
    Asleep(usize),
    Unknown,
}

/// Sleep, with the switch at its start and the waking at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepSpan<'w> {
    pub switch: Option<&'w Named>,
    pub waking: Option<&'w Named>,
}

/// Presence of all threads of a window, at all times.
#[derive(Debug, Default)]
pub(super) struct Presences<'w> {
    threads: HashMap<i32, Vec<(i64, Presence)>>,
    cpus: HashMap<Cpu, Turns>,
    sleeps: Vec<SleepSpan<'w>>,
    /// Time since which the events of all CPUs are complete, if known.
    complete: Option<i64>,
}

/// Threads that were current on a CPU, each with its start.
#[derive(Debug, Default)]
struct Turns {
    all: Vec<(i64, Option<i32>)>,
    /// Previous thread of the last switch: until the first event of the next thread, events of the
    /// kernel are still its own.
    left: Option<i32>,
}

impl<'w> Presences<'w> {
    /// Builds it from events in order of time, and the time since which none is missing on any CPU.
    pub(super) fn new(ordered: &[&'w Named], complete: Option<i64>) -> Presences<'w> {
        let mut all = Presences { complete, ..Presences::default() };
        for &event in ordered {
            match &event.what {
                What::Stack { .. } => continue,
                What::Switch { prev, state, next } => all.switched(event, prev, *state, next),
                _ => all.current_is(event.cpu, event.pid, event.time.0),
            }
            match &event.what {
                What::Waking { task, target } => all.woken(event, task.pid, *target),
                What::Wakeup { task, target } => all.queued(event.time.0, task.pid, *target, true),
                What::Migrate { pid, from, to } => {
                    all.was(*pid, event.time.0, Presence::Ready(*from));
                    all.queued(event.time.0, *pid, *to, false);
                }
                _ => {}
            }
        }
        all
    }

    /// Presence of a thread at a time.
    pub(super) fn at(&self, pid: i32, time: i64) -> Presence {
        let Some(all) = self.threads.get(&pid) else { return Presence::Unknown };
        let before = all.partition_point(|&(since, _)| since <= time);
        all[..before].last().map_or(Presence::Unknown, |&(_, there)| there)
    }

    /// Current thread of a CPU at a time, which may be the idle thread.
    pub(super) fn current(&self, cpu: Cpu, time: i64) -> Option<i32> {
        let all = &self.cpus.get(&cpu)?.all;
        all[..all.partition_point(|&(since, _)| since <= time)].last()?.1
    }

    /// Sleep by its index.
    pub(super) fn sleep(&self, number: usize) -> Option<SleepSpan<'w>> {
        self.sleeps.get(number).copied()
    }

    fn switched(&mut self, event: &'w Named, prev: &Task, state: i64, next: &Task) {
        let (time, cpu) = (event.time.0, event.cpu);
        self.current_is(cpu, prev.pid, time);
        let turns = self.cpus.entry(cpu).or_default();
        turns.all.push((time, Some(next.pid)));
        turns.left = Some(prev.pid);
        // Preempted is 256 (TASK_REPORT_MAX).
        let left = if matches!(state, 0 | 256) {
            Presence::Ready(cpu)
        } else {
            self.sleeps.push(SleepSpan { switch: Some(event), waking: None });
            Presence::Asleep(self.sleeps.len() - 1)
        };
        self.was(prev.pid, time, Presence::Running);
        self.was(next.pid, time, Presence::Ready(cpu));
        self.comes_to(prev.pid, time, left, |before| before == Presence::Running);
        self.comes_to(next.pid, time, Presence::Running, |before| before == Presence::Ready(cpu));
    }

    /// Notes the presence of a thread between the start of complete events and its first event,
    /// which would not be its first if it had changed. A thread that slept has an event anyway.
    fn was(&mut self, pid: i32, time: i64, there: Presence) {
        let Some(complete) = self.complete.filter(|&complete| complete < time && pid != 0) else { return };
        let all = self.threads.entry(pid).or_default();
        let moved = |before: Presence| before != there && !matches!(before, Presence::Asleep(_));
        if all.last().is_none_or(|last| last.0 < complete && moved(last.1)) {
            all.push((complete, there));
        }
    }

    /// Changes the presence of a thread; the earlier one becomes unknown if it does not fit.
    fn comes_to(&mut self, pid: i32, time: i64, now: Presence, fits: impl Fn(Presence) -> bool) {
        if pid == 0 {
            return;
        }
        let all = self.threads.entry(pid).or_default();
        if let Some(last) = all.last_mut().filter(|last| !fits(last.1)) {
            last.1 = Presence::Unknown;
        }
        all.push((time, now));
    }

    /// Notes that the thread is current, as an event of that CPU shows.
    fn current_is(&mut self, cpu: Cpu, pid: i32, time: i64) {
        let turns = self.cpus.entry(cpu).or_default();
        let last = turns.all.last().copied();
        if last.is_some_and(|(_, current)| current == Some(pid)) {
            turns.left = None;
            return;
        }
        if last.is_some() && turns.left == Some(pid) {
            return;
        }
        let Some((since, before)) = last else {
            let since = self.complete.filter(|&complete| complete < time).unwrap_or(time);
            turns.all.push((since, Some(pid)));
            self.was(pid, time, Presence::Running);
            if pid != 0 && self.at(pid, time) == Presence::Unknown {
                self.comes_to(pid, time, Presence::Running, |_| false);
            }
            return;
        };
        // A switch is missing at an unknown time.
        turns.all.pop();
        turns.all.push((since, None));
        if let Some(before) = before.filter(|&before| before != 0) {
            self.comes_to(before, time, Presence::Unknown, |_| false);
        }
        let turns = self.cpus.entry(cpu).or_default();
        turns.all.push((time, Some(pid)));
        turns.left = None;
        self.comes_to(pid, time, Presence::Running, |_| false);
    }

    fn woken(&mut self, event: &'w Named, pid: i32, target: Cpu) {
        let all = self.threads.entry(pid).or_default();
        // It slept since before its first event.
        let since = match all.last().copied() {
            None => Some(i64::MIN),
            Some((_, Presence::Asleep(_))) => None,
            Some((since, _)) => self.complete.filter(|&complete| since < complete && complete < event.time.0),
        };
        if let Some(since) = since {
            self.sleeps.push(SleepSpan { switch: None, waking: None });
            all.push((since, Presence::Asleep(self.sleeps.len() - 1)));
        }
        match all.last().map(|last| last.1) {
            Some(Presence::Asleep(number)) => {
                if let Some(sleep) = self.sleeps.get_mut(number) {
                    sleep.waking = Some(event);
                }
                all.push((event.time.0, Presence::Ready(target)));
            }
            Some(Presence::Unknown) => all.push((event.time.0, Presence::Ready(target))),
            _ => {}
        }
    }

    /// Moves a runnable thread to another CPU's queue; one that slept has been `woken`.
    fn queued(&mut self, time: i64, pid: i32, target: Cpu, woken: bool) {
        let all = self.threads.entry(pid).or_default();
        match all.last().map(|last| last.1) {
            Some(Presence::Ready(cpu)) if cpu != target => all.push((time, Presence::Ready(target))),
            Some(Presence::Asleep(_) | Presence::Unknown) | None if woken => {
                all.push((time, Presence::Ready(target)));
            }
            _ => {}
        }
    }
}
