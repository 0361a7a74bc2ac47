//! Which function let preemption in again: from the stack at the switch to the victim.
//!
//! `preempt_enable` and its like call the scheduler at once when a switch is due, so below the scheduler's frames
//! stands whoever had preemption off. The way out of an interrupt calls it too, but says nothing of who had it off.
//!
//! Sources: include/linux/preempt.h, kernel/sched/core.c (`preempt_schedule`, `__cond_resched`), kernel/entry.

use super::case::{Case, Cause};
use super::frames::{is_entry_code, is_lock_helper, is_scheduler, named};
use super::kind::Kind;
use super::spans::Spans;
use super::state::Stretch;
use super::tasks::who;
use crate::trace::event::{Named, Task, What};
use crate::units::Cpu;

/// Beyond this, a thread that let preemption in at the end had it off; below, it may just have been switched.
const SHORT: i64 = 50_000;

/// What a thread of lower priority did that runs on from before the victim was runnable; none without proof.
pub(super) fn cause(case: &Case<'_>, stretch: &Stretch, current: Task) -> Option<Cause> {
    let held = case.path.expiry.as_ref().map_or(0, |expiry| expiry.preempt) > 0;
    let stack = case.path.switch_index.and_then(|index| {
        let cpu = case.path.legs.last()?.1;
        let What::Switch { prev, .. } = &case.events(cpu).get(index)?.what else { return None };
        (prev.pid == current.pid).then(|| case.stack_of(cpu, index).map(|(frames, _)| frames))?
    });
    let below = stack.and_then(|frames| let_in(frames).map(|at| &frames[at..]));
    let waited = case.path.queued?.abs_diff(case.path.switch.unwrap_or(case.to));
    let long = i64::try_from(waited).unwrap_or(i64::MAX) > SHORT;
    if !held && !(below.is_some() && long) || stretch.since > case.path.queued? {
        return None;
    }
    let function = below.and_then(|frames| frames.first()).map_or("", String::as_str);
    let evidence = match (function, held) {
        ("", _) => "the timer's interrupt found preemption off".to_owned(),
        (_, true) => format!("the interrupt found preemption off; {function} let it in again"),
        (_, false) => format!("{function} let preemption in again"),
    };
    let who = named(who(current), function);
    Some(Cause { stack: below.unwrap_or_default().to_vec(), ..Cause::new(Kind::PreemptOff, who, evidence) })
}

/// By the events that tell of each switching off and on, where the kernel has them.
pub(super) fn toggled(case: &Case<'_>, cpu: Cpu) -> Spans<Cause> {
    let mut found = Vec::new();
    let mut off: Option<&Named> = None;
    for event in case.events(cpu) {
        let What::Toggle { irqs: false, off: now_off, caller } = &event.what else { continue };
        if *now_off {
            off = Some(event);
            continue;
        }
        let Some(begin) = off.take().filter(|begin| begin.pid == event.pid) else { continue };
        let who = named(case.tasks.who(event.pid, event.time.0), caller);
        let evidence =
            format!("preempt_disable and preempt_enable enclose it; {caller} let preemption in again");
        found.push((begin.time.0, event.time.0, Cause::new(Kind::PreemptOff, who, evidence)));
    }
    Spans::new(found)
}

/// The frame of whoever called the scheduler to let it preempt; none where an interrupt or a sleep did.
fn let_in(frames: &[String]) -> Option<usize> {
    let top = frames.iter().position(|frame| !is_scheduler(frame) || is_entry_code(frame))?;
    let helped = frames[top..].iter().position(|frame| !is_lock_helper(frame) && !is_scheduler(frame))?;
    let found = top + helped;
    let called = frames[..found].iter().any(|frame| {
        let bare = frame.trim_start_matches('_');
        let preempts = bare.contains("preempt_schedule") && !bare.contains("irq");
        preempts || bare.contains("cond_resched")
    });
    (called && !is_entry_code(&frames[found])).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(frames: &[&str]) -> Option<String> {
        let frames: Vec<String> = frames.iter().map(|&frame| frame.to_owned()).collect();
        let_in(&frames).map(|at| frames[at].clone())
    }

    #[test]
    fn whoever_enabled_preemption_stands_below_the_scheduler() {
        let frames =
            ["__schedule", "preempt_schedule", "preempt_schedule_thunk", "_raw_spin_unlock", "hold [faults]"];
        assert_eq!(name(&frames).as_deref(), Some("hold [faults]"));
        assert_eq!(name(&["__schedule", "__cond_resched", "shrink_slab"]).as_deref(), Some("shrink_slab"));
    }

    #[test]
    fn interrupts_and_sleeps_say_nothing() {
        assert_eq!(name(&["__schedule", "preempt_schedule_irq", "irqentry_exit_cond_resched", "hold"]), None);
        assert_eq!(name(&["__schedule", "schedule", "do_nanosleep"]), None);
        assert_eq!(name(&["__schedule", "preempt_schedule"]), None);
        assert_eq!(name(&[]), None);
    }
}
