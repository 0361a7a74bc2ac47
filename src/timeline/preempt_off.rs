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
    let queued = case.path.queued.filter(|&queued| stretch.since <= queued)?;
    if case.path.switch.is_some_and(|switch| switch <= stretch.start) {
        return None;
    }
    let held = case.path.expiry.as_ref().map_or(0, |expiry| expiry.preempt) > 0;
    let long = case.path.switch.unwrap_or(case.to).saturating_sub(queued) > SHORT;
    let (frames, slept) = at_switch(case, current).unwrap_or((&[], false));
    let below = let_in(frames).map(|at| &frames[at..]);
    let whole = case.host.preempt == "none" || case.host.preempt == "voluntary";
    let (function, evidence) = match below.and_then(|frames| frames.first()) {
        Some(function) if held => {
            (function.as_str(), format!("the interrupt found preemption off; {function} let it in again"))
        }
        Some(function) if long => (function.as_str(), format!("{function} let preemption in again")),
        None if held => ("", "the interrupt found preemption off".to_owned()),
        None if long && whole && ends_call(frames) => {
            ("", "the kernel gave the CPU away only at the end of a system call".to_owned())
        }
        None if long && whole && slept && !frames.is_empty() => (
            "",
            "the kernel does not preempt its own code, and the thread ran in it until it slept".to_owned(),
        ),
        _ => return None,
    };
    let who = named(who(current), function);
    Some(Cause { stack: below.unwrap_or_default().to_vec(), ..Cause::new(Kind::PreemptOff, who, evidence) })
}

/// The stack at the switch from this thread to the victim, and whether the thread slept of itself.
fn at_switch<'w>(case: &Case<'w>, current: Task) -> Option<(&'w [String], bool)> {
    let (index, cpu) = (case.path.switch_index?, case.path.legs.last()?.1);
    let What::Switch { prev, state, .. } = &case.events(cpu).get(index)?.what else { return None };
    let frames = case.stack_of(cpu, index).map_or(&[][..], |(frames, _)| frames);
    (prev.pid == current.pid).then_some((frames, !matches!(state, 0 | 256)))
}

/// Whether the thread came from a system call that was about to return, not from an interrupt.
fn ends_call(frames: &[String]) -> bool {
    let any =
        |starts: &[&str]| frames.iter().any(|frame| starts.iter().any(|start| frame.starts_with(start)));
    let interrupts =
        ["irqentry_", "asm_sysvec", "asm_common_interrupt", "asm_exc", "el0_irq", "el0_interrupt"];
    any(&["do_syscall_64", "syscall_exit_to_user_mode", "el0_svc", "invoke_syscall"]) && !any(&interrupts)
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

/// Frames of the tracing itself that stand above the scheduler's at most.
const TRACING: usize = 8;

/// The frame of whoever called the scheduler to let it preempt; none where an interrupt or a sleep did.
fn let_in(frames: &[String]) -> Option<usize> {
    let scheduler = frames.iter().take(TRACING).position(|frame| is_scheduler(frame)).unwrap_or(0);
    let below = frames[scheduler..].iter().position(|frame| !is_scheduler(frame) || is_entry_code(frame));
    let top = scheduler + below?;
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
    use super::super::fixture::{explained, explained_on, host, told, window};
    use super::*;
    use crate::bundle::run::Host;

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
        // What takes the stack is on it.
        let traced =
            [&["trace_event_raw_event_sched_switch", "__traceiter_sched_switch"][..], &frames].concat();
        assert_eq!(name(&traced).as_deref(), Some("hold [faults]"));
        assert_eq!(name(&["trace_event_raw_event_sched_switch", "__schedule", "schedule", "nap"]), None);
    }

    #[test]
    fn interrupts_and_sleeps_say_nothing() {
        assert_eq!(name(&["__schedule", "preempt_schedule_irq", "irqentry_exit_cond_resched", "hold"]), None);
        assert_eq!(name(&["__schedule", "schedule", "do_nanosleep"]), None);
        assert_eq!(name(&["__schedule", "preempt_schedule"]), None);
        assert_eq!(name(&[]), None);
    }

    const HELD: &str = "__schedule,preempt_schedule,preempt_schedule_thunk,hold+[faults],write";

    fn events(depth: u8, us: u32, stack: &str) -> String {
        format!(
            "-500 1 50 d  switch rt/50/19 S busy/60/120
             2    1 60 dh{depth} vector+ local_timer
             3    1 60 dh{depth} timer+ 1 hrtimer_wakeup
             4    1 60 dh2 waking rt/50/19
             5    1 60 dNh timer- 1
             5    1 60 dNh vector- local_timer
             {us} 1 60 d   switch busy/60/120 P rt/50/19
             {us} 1 60 d   stack {stack}"
        )
    }

    fn third(depth: u8, us: u32, stack: &str) -> String {
        told(&explained(f64::from(us), &events(depth, us, stack))).swap_remove(1)
    }

    #[test]
    fn the_function_that_held_it_is_named() {
        assert_eq!(third(1, 20_005, HELD), "preempt-off hold/busy 20000");
        assert_eq!(third(0, 20_005, HELD), "preempt-off hold/busy 20000");
        assert_eq!(third(1, 20_005, "__schedule,schedule,nap"), "preempt-off busy 20000");
        assert_eq!(third(1, 9, HELD), "preempt-off hold/busy 4");
    }

    #[test]
    fn without_proof_it_is_a_switch_or_nothing() {
        assert_eq!(third(0, 9, HELD), "switch 4");
        let way_out = "__schedule,preempt_schedule_irq,irqentry_exit,asm_sysvec_apic_timer_interrupt,hold";
        assert_eq!(third(0, 900, way_out), "switch 895");
        assert_eq!(third(0, 20_005, way_out), "unexplained 20002");
    }

    #[test]
    fn a_kernel_that_does_not_preempt_itself_holds_until_the_end_of_a_call() {
        let on = |preempt: &str, stack: &str| {
            let host = Host { preempt: preempt.to_owned(), ..host() };
            let window = window(20_005.0, &events(0, 20_005, stack));
            told(&explained_on(&host, &window)).swap_remove(1)
        };
        let call = "__schedule,schedule,exit_to_user_mode_loop,do_syscall_64,entry_SYSCALL_64_after_hwframe";
        assert_eq!(on("none", call), "preempt-off busy 20000");
        assert_eq!(on("full", call), "unexplained 20002");
        assert_eq!(
            on("none", "__schedule,schedule,irqentry_exit_to_user_mode,asm_sysvec"),
            "unexplained 20002"
        );
    }

    #[test]
    fn a_thread_that_spins_waits_for_a_lock() {
        let spun = events(1, 20_005, HELD).replace(
            "5    1 60 dNh vector-",
            "5 1 60 dNh vector- local_timer\n6 1 60 N2 spin+ 9\n20004 1 60 N2 spin- 9\n#",
        );
        assert_eq!(told(&explained(20_005.0, &spun))[2], "lock-contention busy 19998");
    }

    #[test]
    fn switching_it_off_and_on_is_told_where_the_kernel_tells() {
        let told_of =
            events(0, 20_005, "__schedule").replace("\n             2 ", "\n1 1 60 . preempt_off hold\n2 ");
        let told_of =
            told_of.replace("20005 1 60 d   switch", "20004 1 60 . preempt_on hold\n20005 1 60 d switch");
        assert_eq!(told(&explained(20_005.0, &told_of))[1], "preempt-off hold/busy 19999");
    }
}
