//! Priority inversion: a thread waits for one of lower priority, and others go before that one.
//!
//! Detected where the thread is woken by another thread of lower priority: what it waited for, that
//! one held. Who ran on the holder's CPU while the holder was runnable and did not run kept both
//! from going on. Without inheritance (`sched_pi_setprio`) that is any thread between the two; with
//! it, only what has a higher priority than the thread itself.
//!
//! Sources: kernel/locking/rtmutex.c, Documentation/locking/rt-mutex-design.rst.

use super::case::{Case, Cause};
use super::spans::Spans;
use super::tasks::who;
use crate::event::{Named, Task, What};
use model::slice::SliceKind;
use model::units::Cpu;

/// Where the thread waited for a holder, and who ran.
pub(super) fn find(case: &Case<'_>) -> Spans<Cause> {
    Spans::new(inverted(case).unwrap_or_default())
}

fn inverted(case: &Case<'_>) -> Option<Vec<(i64, i64, Cause)>> {
    let victim = case.window.victim;
    let waking = case.path.waking.filter(|&waking| waking > case.from)?;
    let (pid, true) = case.path.waker? else { return None };
    let holder = base(case, pid, waking).filter(|task| task.prio > victim.prio && task.pid != 0)?;
    let blocked = blocked_since(case, waking)?.max(case.from);
    let cpu = where_it_ran(case, holder.pid, waking)?;
    let mut found = Vec::new();
    let mut runnable = false;
    let mut since = blocked;
    let mut current: Option<Task> = None;
    for event in case.events(cpu).iter().take_while(|event| event.time.0 <= waking) {
        if event.time.0 > blocked {
            let span = (since, event.time.0.min(waking));
            found.extend(cause(current, &holder, &victim, runnable).map(|cause| (span.0, span.1, cause)));
            since = event.time.0;
        }
        step(event, &holder, &mut runnable, &mut current);
    }
    found.extend(cause(current, &holder, &victim, runnable).map(|cause| (since, waking, cause)));
    Some(found)
}

fn step(event: &Named, holder: &Task, runnable: &mut bool, current: &mut Option<Task>) {
    match &event.what {
        What::Switch { prev, state, next } => {
            if prev.pid == holder.pid {
                *runnable = matches!(state, 0 | 256);
            }
            *runnable |= next.pid == holder.pid;
            *current = Some(*next);
        }
        What::Waking { task, .. } if task.pid == holder.pid => *runnable = true,
        _ => {}
    }
}

fn cause(current: Option<Task>, holder: &Task, victim: &Task, runnable: bool) -> Option<Cause> {
    let current = current.filter(|task| runnable && task.pid != 0)?;
    let evidence = if current.pid == holder.pid {
        format!("{} held what {} waited for: it woke it at the end", holder.comm, victim.comm)
    } else if current.prio <= holder.prio && current.prio > victim.prio {
        format!("{} ran while {}, which {} waited for, was runnable", current.comm, holder.comm, victim.comm)
    } else {
        return None;
    };
    Some(Cause::new(SliceKind::PriorityInversion, who(current), evidence))
}

/// The thread with the priority that it has by itself: an inherited one is given back at the
/// waking.
fn base(case: &Case<'_>, pid: i32, waking: i64) -> Option<Task> {
    let task = case.tasks.at(pid, waking)?;
    let lent = case.cpus.values().flatten().filter_map(|event| match event.what {
        What::Inherit { pid: of, old, new } if of == pid && new < old => Some(old),
        _ => None,
    });
    Some(Task { prio: lent.fold(task.prio, i32::max), ..task })
}

/// Since when the thread slept.
fn blocked_since(case: &Case<'_>, waking: i64) -> Option<i64> {
    let out = case.cpus.values().flatten().filter(|event| event.time.0 <= waking).filter_map(|event| {
        let What::Switch { prev, state, .. } = &event.what else { return None };
        // TASK_INTERRUPTIBLE or TASK_UNINTERRUPTIBLE: a stopped or traced thread does not wait for
        // a lock.
        let blocks = prev.pid == case.window.victim.pid && state & 3 != 0;
        blocks.then_some(event.time.0)
    });
    out.max()
}

/// The CPU that the holder was last seen on.
fn where_it_ran(case: &Case<'_>, pid: i32, waking: i64) -> Option<Cpu> {
    let all = case.cpus.values().flatten().filter(|event| event.time.0 <= waking && event.pid == pid);
    all.max_by_key(|event| event.time).map(|event| event.cpu)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, told, window};

    /// The thread waits for `low`, which `mid` keeps from running; then `low` wakes it.
    const EVENTS: &str = "
        -300 1 70 d  switch low/70/89 P rt/50/19
        -200 1 50 d  switch rt/50/19 S mid/60/49
        9000 1 60 d  switch mid/60/49 S low/70/89
        9500 1 70 d2 waking rt/50/19
        9501 1 70 d  switch low/70/89 P rt/50/19";

    fn with(events: &str) -> Vec<String> {
        let mut window = window(9_501.0, events);
        window.own = false;
        told(&explained_on(&host(), &window))
    }

    #[test]
    fn the_thread_that_ran_instead_of_the_holder_is_named() {
        assert_eq!(
            with(EVENTS),
            ["priority-inversion mid 9000", "priority-inversion low 500", "switch 1", "unexplained 0"]
        );
    }

    #[test]
    fn waiting_for_others_is_no_inversion() {
        let unexplained = ["switch 1", "unexplained 9500"];
        // Woken by a thread of higher priority, or by an interrupt without a timer event.
        assert_eq!(with(&EVENTS.replace("low/70/89", "low/70/9"))[..1], ["thread low 1"]);
        assert_eq!(
            with(&EVENTS.replace("d2 waking", "dh waking")).last().map(String::as_str),
            Some("unexplained 9500")
        );
        // The holder slept voluntarily while the other ran.
        let slept = EVENTS.replace("-300 1 70 d  switch low/70/89 P", "-300 1 70 d  switch low/70/89 S");
        assert_eq!(with(&slept), ["priority-inversion low 500", "switch 1", "unexplained 9000"]);
        // No thread waited: it was only preempted.
        let preempted = EVENTS.replace("rt/50/19 S mid", "rt/50/19 P mid");
        assert_eq!(with(&preempted), unexplained);
    }
}
