//! Names and priorities of thread IDs over time, from every event that has them.

use std::collections::HashMap;

use crate::event::{Named, Task, What};
use model::run::Who;

/// Threads of a window, by ID and time.
pub(super) struct Tasks(HashMap<i32, Vec<(i64, Task)>>);

impl Tasks {
    /// Collects them from events in order of time.
    pub(super) fn new<'w>(events: impl Iterator<Item = &'w Named>, victim: Task) -> Tasks {
        let mut tasks = Tasks(HashMap::new());
        // Priorities set and reset before an event named the thread.
        let mut unnamed: HashMap<i32, Vec<(i64, i32)>> = HashMap::new();
        // Times since which threads run with their own priorities.
        let mut running: HashMap<i32, i64> = HashMap::new();
        for event in events {
            let time = event.time.0;
            match &event.what {
                What::Switch { prev, next, .. } => {
                    if let Some(came) = running.remove(&prev.pid) {
                        tasks.raised(came, *prev);
                    }
                    tasks.see(time, *prev, &mut unnamed);
                    tasks.see(time, *next, &mut unnamed);
                    running.insert(next.pid, time);
                }
                What::Waking { task, .. } | What::Wakeup { task, .. } => {
                    tasks.see(time, *task, &mut unnamed);
                }
                What::Inherit { pid, old, new } => {
                    running.remove(pid);
                    let known = tasks.0.get(pid).and_then(|seen| seen.last()).map(|&(_, task)| task);
                    match known {
                        Some(task) => tasks.see(time, Task { prio: *new, ..task }, &mut unnamed),
                        None => {
                            let prios = unnamed.entry(*pid).or_insert_with(|| vec![(i64::MIN, *old)]);
                            prios.push((time, *new));
                        }
                    }
                }
                _ => {}
            }
        }
        tasks.0.entry(victim.pid).or_insert_with(|| vec![(i64::MIN, victim)]);
        tasks
    }

    /// Backdates a raised priority to the switch to the thread: no event shows the time of the
    /// change, and before it a real-time thread would have preempted this one.
    fn raised(&mut self, came: i64, left: Task) {
        let seen = self.0.entry(left.pid).or_default();
        // An event after the switch already named it.
        if seen.last().is_none_or(|&(when, task)| when > came || task.prio <= left.prio) {
            return;
        }
        seen.retain(|&(when, _)| when < came);
        seen.push((came, left));
    }

    fn see(&mut self, time: i64, task: Task, unnamed: &mut HashMap<i32, Vec<(i64, i32)>>) {
        let earlier = unnamed.remove(&task.pid).unwrap_or_default();
        let seen = self.0.entry(task.pid).or_default();
        seen.extend(earlier.into_iter().map(|(time, prio)| (time, Task { prio, ..task })));
        if seen.last().is_none_or(|&(_, last)| last != task) {
            seen.push((time, task));
        }
    }

    /// Thread as last seen by then, else as first seen later; none if no event names it.
    pub(super) fn at(&self, pid: i32, time: i64) -> Option<Task> {
        let seen = self.0.get(&pid)?;
        let before = seen.partition_point(|&(when, _)| when <= time);
        seen.get(before.saturating_sub(1)).map(|&(_, task)| task)
    }

    /// Thread as a culprit.
    pub(super) fn who(&self, pid: i32, time: i64) -> Who {
        self.at(pid, time).map_or_else(|| Who { pid, ..Who::default() }, who)
    }
}

/// Thread as a culprit.
pub(super) fn who(task: Task) -> Who {
    Who { comm: task.comm.text().into_owned(), pid: task.pid, prio: task.prio, ..Who::default() }
}

/// True for the thread that runs `stop_machine` and migrations on its CPU, above every policy
/// (kernel/stop_machine.c).
pub(super) fn is_stopper(task: &Task) -> bool {
    task.comm.text().starts_with("migration/")
}

/// True for threads that run RCU callbacks: `rcuc/N`, and for CPUs with offloaded callbacks
/// `rcuop/N` and `rcuos/N` (kernel/rcu/tree.c, tree_nocb.h).
pub(super) fn runs_callbacks(task: &Task) -> bool {
    let comm = task.comm.text();
    ["rcuc/", "rcuop/", "rcuos/"].iter().any(|name| comm.starts_with(name))
}

/// True for threads that run softirqs: `ksoftirqd/N`, and on PREEMPT_RT `ktimers/N`
/// (kernel/softirq.c).
pub(super) fn runs_softirqs(task: &Task) -> bool {
    let comm = task.comm.text();
    comm.starts_with("ksoftirqd/") || comm.starts_with("ktimers/")
}
