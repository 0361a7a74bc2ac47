//! Priority inversion: a thread waits for one of lower priority, and others run before that one.
//!
//! While the thread slept, its waker ran, or was runnable while another thread had its CPU, or
//! slept in turn until a third one woke it, which is then examined. Without inheritance
//! (`sched_pi_setprio`) any thread may run in between; with it, only one with a higher priority
//! than the sleeper's.
//!
//! Sources: kernel/locking/rtmutex.c, Documentation/locking/rt-mutex-design.rst.

use super::case::{Case, Cause};
use super::holders::{Holders, LockWait, Meanwhile, WaitPart};
use super::locks::{LockProof, proof};
use super::spans::Spans;
use super::tasks::who;
use super::woken::stack_of;
use crate::event::{Named, Task, What};
use model::slice::SliceKind;

/// Cause of a part in which another thread kept the holder from running; none if the scheduler's
/// order does not explain its precedence.
pub(super) fn kept_by(part: &WaitPart, victim: Task) -> Option<Cause> {
    let Meanwhile::Kept(task) = part.what else { return None };
    let WaitPart { holder, waiter, .. } = part;
    let kind = match () {
        // It runs before the victim as well.
        () if task.not_below(victim.prio) => SliceKind::Preempted,
        // Fair threads take turns regardless of their weights.
        () if task.not_below(holder.prio) || (!task.real_time() && !holder.real_time()) => {
            SliceKind::PriorityInversion
        }
        () => return None,
    };
    let evidence =
        format!("{} ran while {}, which {} waited for, was runnable", task.comm, holder.comm, waiter.comm);
    Some(Cause::new(kind, who(task), evidence))
}

/// Times in which the thread waited for a holder, with the thread that ran.
pub(super) fn find(case: &Case<'_>, ordered: &[&Named]) -> Spans<Cause> {
    Spans::new(inverted(case, ordered).unwrap_or_default())
}

fn inverted(case: &Case<'_>, ordered: &[&Named]) -> Option<Vec<(i64, i64, Cause)>> {
    let victim = case.window.victim;
    let to = case.path.waking.filter(|&waking| waking > case.from)?;
    let (pid, true) = case.path.waker? else { return None };
    let holder = base(case, pid, to).filter(|task| task.prio > victim.prio && task.pid != 0)?;
    let slept = sleep_before(ordered, victim.pid, to)?;
    let stack = stack_of(ordered, slept);
    // A wake-up starts before its waking only if that ended a wait for a lock.
    let proof = match proof(case.window, ordered, Some(slept), stack) {
        LockProof::Open | LockProof::Unseen => LockProof::Plain,
        proof => proof,
    };
    let wait = LockWait { waiter: victim, holder: holder.pid, proof, from: slept.time.0.max(case.from), to };
    let parts = Holders::new(case.window, ordered, &case.tasks).parts(&wait)?;
    let causes = parts.into_iter().filter_map(|part| {
        let held = || {
            let evidence = format!(
                "{} held what {} waited for: it woke it at the end",
                part.holder.comm, part.waiter.comm
            );
            Cause::new(SliceKind::PriorityInversion, who(part.holder), evidence)
        };
        let cause = match part.what {
            Meanwhile::Ran => Some(held()),
            _ => kept_by(&part, victim).filter(|cause| cause.kind == SliceKind::PriorityInversion),
        };
        cause.map(|cause| (part.start, part.end, cause))
    });
    Some(causes.collect())
}

/// Thread with its own priority: an inherited one is returned at the waking.
fn base(case: &Case<'_>, pid: i32, waking: i64) -> Option<Task> {
    let task = case.tasks.at(pid, waking)?;
    let lent = case.cpus.values().flatten().filter_map(|event| match event.what {
        What::Inherit { pid: of, old, new } if of == pid && new < old => Some(old),
        _ => None,
    });
    Some(Task { prio: lent.fold(task.prio, i32::max), ..task })
}

/// Switch at the start of the thread's last sleep before its waking.
fn sleep_before<'w>(ordered: &[&'w Named], victim: i32, waking: i64) -> Option<&'w Named> {
    let before = &ordered[..ordered.partition_point(|event| event.time.0 <= waking)];
    before.iter().rev().copied().find(|event| {
        // TASK_INTERRUPTIBLE or TASK_UNINTERRUPTIBLE: a stopped or traced thread does not wait for
        // a lock.
        matches!(&event.what, What::Switch { prev, state, .. } if prev.pid == victim && state & 3 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, slice_lines, window};

    /// The thread waits for `low`, which `mid` preempts; then `low` wakes it.
    const EVENTS: &str = "
        -300 1 70 d  switch low/70/89 P rt/50/19
        -200 1 50 d  switch rt/50/19 S mid/60/49
        9000 1 60 d  switch mid/60/49 S low/70/89
        9500 1 70 d2 waking rt/50/19
        9501 1 70 d  switch low/70/89 P rt/50/19";

    fn with(events: &str) -> Vec<String> {
        let mut window = window(9_501.0, events);
        window.own = false;
        slice_lines(&explained_on(&host(), &window))
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
        // The holder slept voluntarily while the other thread ran.
        let slept = EVENTS.replace("-300 1 70 d  switch low/70/89 P", "-300 1 70 d  switch low/70/89 S");
        assert_eq!(with(&slept), ["priority-inversion low 500", "switch 1", "unexplained 9000"]);
        // The thread did not wait, but was preempted.
        let preempted = EVENTS.replace("rt/50/19 S mid", "rt/50/19 P mid");
        assert_eq!(with(&preempted), unexplained);
    }
}
