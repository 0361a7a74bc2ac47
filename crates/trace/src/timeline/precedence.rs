//! Threads that run before the victim: by a priority that events show, or by one known only to the
//! scheduler.
//!
//! A change by `sched_setscheduler` has no event. But when the victim entered the run queue, the
//! scheduler marked the current thread for rescheduling, unless that had at least its priority: the
//! mark is in every later event.
//!
//! Source: kernel/sched/core.c (`ttwu_do_activate`, `wakeup_preempt`), include/linux/trace_events.h
//! (`TRACE_FLAG_NEED_RESCHED`).

use super::case::{Case, Cause};
use super::inherited;
use super::interrupted::{Found, found, working};
use super::state::Stretch;
use super::tasks::{runs_callbacks, who};
use crate::event::{Named, Task, What};
use crate::kernel_functions::named;
use model::run::Who;
use model::slice::SliceKind;

/// Cause for a thread that runs before the victim, with its function at the timer's interrupt.
pub(super) fn thread(case: &Case<'_>, piece: &Stretch<'_>, current: Task) -> Cause {
    let victim = case.window.victim.comm;
    let from = inherited::from(case, current, piece.start);
    let words = |from| format!(" {}", inherited::words(case, current, from, piece.start));
    let by = from.as_ref().map_or_else(String::new, words);
    let evidence = format!("it ran{by} while {victim} was runnable");
    let thread = Who { inherited_from: from, ..who(current) };
    let place = match found(case, current, piece.since) {
        Found::Kernel(frames) => working(frames),
        _ => None,
    };
    let Some(stack) = place else {
        let unknown = if runs_callbacks(&current) { CALLBACK } else { "" };
        return Cause::new(SliceKind::Thread, thread, evidence + unknown);
    };
    let evidence = format!("{evidence}; the timer's interrupt found it in {}", stack[0]);
    Cause { stack: stack.to_vec(), ..Cause::new(SliceKind::Thread, named(thread, &stack[0]), evidence) }
}

/// Evidence for RCU: most kernels are built without its events (`CONFIG_RCU_TRACE`).
const CALLBACK: &str = "; no event shows the RCU callback";

/// True if the events up to the piece show that the thread, current since before, was never marked
/// for rescheduling, although the victim was in the run queue.
pub(super) fn no_switch_due(case: &Case<'_>, piece: &Stretch<'_>, current: Task) -> bool {
    let Some(queued) = case.path.queued.filter(|&queued| piece.since <= queued) else { return false };
    if case.path.switch.is_some_and(|switch| switch <= piece.start) {
        return false;
    }
    let Some(&(_, cpu)) = case.path.cpu_intervals.iter().rev().find(|leg| leg.0 <= piece.start) else {
        return false;
    };
    let events = case.events(cpu);
    let end = events.partition_point(|event| event.time.0 <= piece.start);
    let tells = |event: &&&Named| {
        // The waking precedes the scheduler's comparison of the two.
        !event.context.nmi()
            && !matches!(
                event.what,
                What::Waking { .. } | What::Stack { .. } | What::Nmi { .. } | What::Switch { .. }
            )
    };
    // A thread whose mark was cleared was chosen again, for instance by the fair server.
    let since = events[..end].partition_point(|event| event.time.0 < queued);
    let mut seen = events[since..end].iter().filter(tells).peekable();
    let put_in =
        |event: &Named| matches!(event.what, What::Wakeup { task, .. } if task.pid == case.window.victim.pid);
    seen.peek().is_some_and(|event| put_in(event))
        && seen.all(|event| event.pid == current.pid && !event.context.need_resched())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};

    #[test]
    fn of_a_thread_of_rcu_that_no_stack_shows_the_unknown_callback_is_said() {
        let of = |comm: &str, stack: &str| {
            let events = format!(
                "-500  1 50 d  switch rt/50/19 S {comm}/60/9
                 2     1 60 dh vector+ local_timer
                 3     1 60 dh timer+ 1 hrtimer_wakeup
                 {stack}
                 4     1 60 dh waking rt/50/19
                 6     1 60 dNh timer- 1
                 7     1 60 dNh vector- local_timer
                 20007 1 60 d  switch {comm}/60/9 S rt/50/19"
            );
            explained(20_007.0, &events).slices.swap_remove(1)
        };
        let unknown =
            |comm: &str, stack: &str| of(comm, stack).evidence.contains("no event shows the RCU callback");
        assert!(unknown("rcuc/1", "") && unknown("rcuop/1", "") && !unknown("rcub/1", ""));
        let stack = "3 1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,free_it,rcu_do_batch";
        assert!(!unknown("rcuc/1", stack));
        assert_eq!(of("rcuc/1", stack).who.function, "free_it");
    }

    #[test]
    fn a_thread_that_the_scheduler_keeps_running_had_its_priority_raised() {
        let of = |due: &str| {
            let events = format!(
                "-500  1 50 d  switch rt/50/19 S kworker/1:0/60/120
                 -100  1 60 .  work+ refresh+[driver]
                 2     1 60 dh vector+ local_timer
                 3     1 60 dh timer+ 1 hrtimer_wakeup
                 4     1 60 dh waking rt/50/19
                 5     1 60 d{due}h wakeup rt/50/19
                 6     1 60 d{due}h timer- 1
                 7     1 60 d{due}h vector- local_timer
                 20000 1 60 d{due} work- refresh+[driver]
                 20007 1 60 d  switch kworker/1:0/60/120 P rt/50/19"
            );
            explained(20_007.0, &events)
        };
        let raised = of("");
        assert_eq!(
            slice_lines(&raised)[1..],
            ["workqueue refresh/kworker/1:0 19993", "thread kworker/1:0 7", "unexplained 2"]
        );
        assert!(raised.slices[1].evidence.ends_with("raised"), "{}", raised.slices[1].evidence);
        // A switch was due, and did not happen for an unknown reason.
        assert_eq!(slice_lines(&of("N"))[1..], ["switch 7", "unexplained 19995"]);
    }
}
