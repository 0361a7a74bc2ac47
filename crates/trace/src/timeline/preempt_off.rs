//! Reasons for which a thread of lower priority had the CPU: preemption was off, or the kernel does
//! not preempt its own code.
//!
//! The stack at the switch to the victim names the function that re-enabled preemption:
//! `preempt_enable` and the like call the scheduler immediately if a switch is due, so the frame
//! below the scheduler's is the code with preemption off. In kernels that preempt late (none,
//! voluntary), that is only the place of the check; the place at the timer's interrupt is closer.
//! The exit path of an interrupt calls the scheduler, too, but does not show the code with
//! preemption off.
//!
//! Sources: include/linux/preempt.h, kernel/sched/core.c (`preempt_schedule`, `__cond_resched`),
//! kernel/entry.

use super::case::{Case, Cause};
use super::interrupted::{Found, found, working};
use super::remote_call;
use super::spans::Spans;
use super::spinning;
use super::state::Stretch;
use super::tasks::who;
use crate::event::{Named, Task, What};
use crate::kernel_functions::{is_entry_code, is_lock_helper, is_scheduler, named};
use model::slice::SliceKind;
use model::units::Cpu;
use model::vocabulary::Preempt;

/// Time in ns above which a thread that enabled preemption at the end must have had it off; below,
/// it may just have been switched.
const MAX_SWITCH_NS: i64 = 50_000;

/// Start of the evidence if preemption was not off, and the kernel's preemption model is the cause.
pub const NOT_PREEMPTED: &str = "the kernel does not preempt its own code";

/// Cause for a thread of lower priority that keeps running since before the victim was runnable;
/// none without proof.
pub(super) fn cause(case: &Case<'_>, stretch: &Stretch, current: Task) -> Option<Cause> {
    let queued = case.path.queued.filter(|&queued| stretch.since <= queued)?;
    if case.path.switch.is_some_and(|switch| switch <= stretch.start) {
        return None;
    }
    let until = case.path.switch.unwrap_or(case.to);
    let long = until.saturating_sub(queued) > MAX_SWITCH_NS;
    let seen = Seen::new(case, stretch, current, queued);
    if let (Found::Kernel(frames), true) = (seen.found, seen.held || long) {
        if spinning::spins(case, frames) {
            let how = "the timer's interrupt found it there";
            return Some(spinning::cause(case, &who(current), how, frames, queued, until));
        }
    }
    let late = case.host.preempt == Preempt::None || case.host.preempt == Preempt::Voluntary;
    let (stack, evidence) = if seen.held {
        seen.section()
    } else if long && late {
        seen.unpreempted()?
    } else if long && seen.let_in.is_some() {
        seen.section()
    } else {
        return None;
    };
    let function = remote_call::caller(stack);
    let found = if let Found::Kernel(frames) = seen.found { frames } else { &[] };
    let evidence = format!("{evidence}{}", remote_call::waited_for(case, stretch, current, [stack, found]));
    let who = named(who(current), function);
    Some(Cause { stack: stack.to_vec(), ..Cause::new(SliceKind::PreemptOff, who, evidence) })
}

/// Cause for a thread below the one that runs the timer's softirq, from the interrupt that raised
/// it.
pub(super) fn before_softirq(case: &Case<'_>, stretch: &Stretch, current: Task) -> Option<Cause> {
    let expiry = case.path.expiry.as_ref().filter(|expiry| expiry.soft && expiry.preempt > 0)?;
    let goes_on = !current.idle() && stretch.since <= expiry.interrupt;
    let evidence = "the interrupt that raised the timer's softirq found preemption off";
    goes_on.then(|| Cause::new(SliceKind::PreemptOff, who(current), evidence))
}

/// Evidence on a thread that kept running.
struct Seen<'w> {
    /// True if an interrupt found preemption off.
    held: bool,
    /// Its state at the timer's interrupt.
    found: Found<'w>,
    /// Stack at the switch from it.
    switch: &'w [String],
    /// Part of that stack from the function that called the scheduler to allow preemption.
    let_in: Option<&'w [String]>,
    /// True if it slept voluntarily.
    slept: bool,
}

impl<'w> Seen<'w> {
    fn new(case: &Case<'w>, stretch: &Stretch, current: Task, queued: i64) -> Seen<'w> {
        let (switch, slept) = at_switch(case, current).unwrap_or((&[], false));
        let let_in = let_in(switch).map(|at| &switch[at..]);
        let held = is_preemption_off(case, stretch, current, queued);
        Seen { held, found: found(case, current, stretch.since), switch, let_in, slept }
    }

    /// Section with preemption off, by the function that ended it, or the interrupted one.
    fn section(&self) -> (&'w [String], String) {
        let found = if self.held { "the interrupt found preemption off; " } else { "" };
        let asked = self.switch.iter().any(|frame| frame.contains("cond_resched"));
        match (self.let_in, self.place()) {
            (Some(stack), _) if !asked => (stack, format!("{found}{} let it in again", stack[0])),
            (_, Some(stack)) => {
                (stack, format!("the timer's interrupt found preemption off in {}", stack[0]))
            }
            (Some(stack), None) => (stack, format!("{found}{} let it in again", stack[0])),
            (None, None) => (&[], "the interrupt found preemption off".to_owned()),
        }
    }

    /// Stretch in kernel code that only the kernel's model kept from being preempted; none if the
    /// thread was found in user mode, where every kernel preempts it.
    fn unpreempted(&self) -> Option<(&'w [String], String)> {
        if self.found == Found::User {
            return None;
        }
        let evidence = |evidence: String| format!("{NOT_PREEMPTED}: {evidence}");
        if let Some(stack) = self.place() {
            return Some((
                stack,
                evidence(format!("the timer's interrupt found the thread in {}", stack[0])),
            ));
        }
        if let Some(stack) = self.let_in {
            return Some((stack, evidence(format!("it asked in {} whether to switch", stack[0]))));
        }
        let words = match () {
            () if matches!(self.found, Found::Kernel(_)) => "the timer's interrupt found the thread in it",
            () if ends_call(self.switch) => "it gave the CPU away only at the end of a system call",
            () if self.slept && !self.switch.is_empty() => "the thread ran in it until it slept",
            () => return None,
        };
        Some((&[], evidence(words.to_owned())))
    }

    /// Stack of the thread's work at the timer's interrupt, from its function.
    fn place(&self) -> Option<&'w [String]> {
        let Found::Kernel(frames) = self.found else { return None };
        working(frames)
    }
}

/// True if an interrupt found preemption off: the timer's, or the first one after a waking from
/// elsewhere.
fn is_preemption_off(case: &Case<'_>, stretch: &Stretch, current: Task, queued: i64) -> bool {
    if let Some(expiry) = case.path.expiry.as_ref().filter(|expiry| !expiry.soft) {
        return expiry.preempt > 0 && expiry.pid == current.pid;
    }
    let Some(&(_, cpu)) = case.path.cpu_intervals.iter().rev().find(|leg| leg.0 <= stretch.start) else {
        return false;
    };
    let events = case.events(cpu);
    let after = events.partition_point(|event| event.time.0 < queued);
    let enters = |event: &&&Named| {
        matches!(event.what, What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. })
    };
    let first = events[after..].iter().take_while(|event| event.pid == current.pid).find(enters);
    first.is_some_and(|event| event.preempt > 0)
}

/// Stack at the switch from this thread to the victim, and true if the thread slept voluntarily.
fn at_switch<'w>(case: &Case<'w>, current: Task) -> Option<(&'w [String], bool)> {
    let (index, cpu) = (case.path.switch_index?, case.path.cpu_intervals.last()?.1);
    let What::Switch { prev, state, .. } = &case.events(cpu).get(index)?.what else { return None };
    let frames = case.stack_of(cpu, index).map_or(&[][..], |(frames, _)| frames);
    (prev.pid == current.pid).then_some((frames, !matches!(state, 0 | 256)))
}

/// True if the thread was returning from a system call, not from an interrupt.
fn ends_call(frames: &[String]) -> bool {
    let any =
        |starts: &[&str]| frames.iter().any(|frame| starts.iter().any(|start| frame.starts_with(start)));
    let interrupts =
        ["irqentry_", "asm_sysvec", "asm_common_interrupt", "asm_exc", "el0_irq", "el0_interrupt"];
    any(&["do_syscall_64", "syscall_exit_to_user_mode", "el0_svc", "invoke_syscall"]) && !any(&interrupts)
}

/// Sections from events of disabling and enabling, if the kernel has them.
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
        found.push((begin.time.0, event.time.0, Cause::new(SliceKind::PreemptOff, who, evidence)));
    }
    Spans::new(found)
}

/// Limit of frames of the tracing itself above the scheduler's.
const MAX_TRACING_FRAMES: usize = 8;

/// Index of the frame that let the scheduler preempt; `None` if an interrupt or a sleep did.
pub(super) fn let_in(frames: &[String]) -> Option<usize> {
    let scheduler = frames.iter().take(MAX_TRACING_FRAMES).position(|frame| is_scheduler(frame)).unwrap_or(0);
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
    use super::super::fixture::{explained, explained_on, host, slice_lines, window};
    use super::*;
    use model::run::Host;

    fn name(frames: &[&str]) -> Option<String> {
        let frames: Vec<String> = frames.iter().map(|&frame| frame.to_owned()).collect();
        let_in(&frames).map(|at| frames[at].clone())
    }

    #[test]
    fn the_function_that_enabled_preemption_is_below_the_scheduler() {
        let frames =
            ["__schedule", "preempt_schedule", "preempt_schedule_thunk", "_raw_spin_unlock", "hold [faults]"];
        assert_eq!(name(&frames).as_deref(), Some("hold [faults]"));
        assert_eq!(name(&["__schedule", "__cond_resched", "shrink_slab"]).as_deref(), Some("shrink_slab"));
        // The functions that record the stack are on it.
        let traced =
            [&["trace_event_raw_event_sched_switch", "__traceiter_sched_switch"][..], &frames].concat();
        assert_eq!(name(&traced).as_deref(), Some("hold [faults]"));
        assert_eq!(name(&["trace_event_raw_event_sched_switch", "__schedule", "schedule", "nap"]), None);
    }

    #[test]
    fn interrupts_and_sleeps_give_no_function() {
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
        slice_lines(&explained(f64::from(us), &events(depth, us, stack))).swap_remove(1)
    }

    #[test]
    fn the_function_that_held_it_is_named() {
        assert_eq!(third(1, 20_005, HELD), "preempt-off hold/busy 20000");
        assert_eq!(third(0, 20_005, HELD), "preempt-off hold/busy 20000");
        assert_eq!(third(1, 20_005, "__schedule,schedule,nap"), "preempt-off busy 20000");
        assert_eq!(third(1, 9, HELD), "preempt-off hold/busy 4");
    }

    #[test]
    fn locks_of_the_waking_itself_are_no_proof() {
        let events = "-500 1 50 d   switch rt/50/19 S busy/60/120
             4    1 60 dh2 waking rt/50/19
             905  1 60 d   switch busy/60/120 R rt/50/19";
        let lines = slice_lines(&explained(910.0, events));
        assert!(lines.iter().all(|slice| !slice.starts_with("preempt-off")), "{lines:?}");
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
            let host = Host { preempt: preempt.into(), ..host() };
            let window = window(20_005.0, &events(0, 20_005, stack));
            slice_lines(&explained_on(&host, &window)).swap_remove(1)
        };
        let call = "__schedule,schedule,exit_to_user_mode_loop,do_syscall_64,entry_SYSCALL_64_after_hwframe";
        assert_eq!(on("none", call), "preempt-off busy 20000");
        assert_eq!(on("full", call), "unexplained 20002");
        assert_eq!(
            on("none", "__schedule,schedule,irqentry_exit_to_user_mode,asm_sysvec"),
            "unexplained 20002"
        );
    }

    /// Fair worker whose work item has preemption off: nothing else keeps a real-time thread from
    /// its CPU.
    #[test]
    fn a_work_item_with_preemption_off_is_a_section() {
        let item = |depth: u8, stack: &str| {
            let events = events(depth, 20_005, stack);
            let events = events.replace("2    1 60 dh", "-100 1 60 . work+ poll+[driver]\n2 1 60 dh");
            slice_lines(&explained(20_005.0, &events)).swap_remove(1)
        };
        assert_eq!(item(1, HELD), "preempt-off hold/busy 20000");
        assert_eq!(item(1, "__schedule,schedule,nap"), "preempt-off poll/busy 20000");
        // Without proof that it could not be preempted, it is not to blame.
        assert_eq!(item(0, "__schedule,schedule,nap"), "unexplained 20002");
    }

    const TIMER: &str = "hrtimer_interrupt,asm_sysvec_apic_timer_interrupt";

    /// Stacks at the switch and at the timer's interrupt.
    fn found(preempt: &str, depth: u8, found: &str, stack: &str) -> (String, String) {
        let events = events(depth, 20_005, stack).replace(
            "timer+ 1 hrtimer_wakeup",
            &format!("timer+ 1 hrtimer_wakeup\n3 1 60 dh stack {TIMER}{found}"),
        );
        let host = Host { preempt: preempt.into(), ..host() };
        let spike = explained_on(&host, &window(20_005.0, &events));
        let evidence = spike.slices.get(1).map_or_else(String::new, |slice| slice.evidence.clone());
        (slice_lines(&spike).swap_remove(1), evidence)
    }

    #[test]
    fn where_the_kernel_preempts_late_the_interrupt_names_the_function() {
        let slept = "__schedule,schedule,worker_thread,kthread";
        let asked = "__schedule,__cond_resched,process_one_work,kthread";
        for (preempt, depth) in [("none", 0), ("voluntary", 0), ("none", 1), ("full", 1), ("rt", 1)] {
            for stack in [slept, asked] {
                let (line, evidence) =
                    found(preempt, depth, ",ktime_get,poll+[driver],process_one_work", stack);
                assert_eq!(line, "preempt-off poll/busy 20000", "{preempt} {depth} {stack}");
                assert_eq!(evidence.starts_with(NOT_PREEMPTED), depth == 0, "{evidence}");
                assert!(evidence.contains("found") && evidence.contains("in poll [driver]"), "{evidence}");
            }
        }
        // The function that enabled preemption is closer than the interrupted one.
        assert_eq!(found("full", 1, ",poll,write", HELD).0, "preempt-off hold/busy 20000");
        // In user mode every kernel takes the CPU away.
        assert_eq!(found("none", 0, "", slept).0, "unexplained 20002");
        assert_eq!(found("full", 0, ",poll,write", slept).0, "unexplained 20002");
    }

    #[test]
    fn a_waking_from_elsewhere_has_its_own_interrupt() {
        let of = |depth: u8| {
            let events = format!(
                "-500  1 50 d  switch rt/50/19 S busy/60/120
                 0     0 7  d2 waking rt/50/19 1
                 2     1 60 dh{depth} vector+ reschedule
                 3     1 60 dNh vector- reschedule
                 20003 1 60 d  switch busy/60/120 S rt/50/19"
            );
            let mut window = window(20_003.0, &events);
            window.own = false;
            slice_lines(&explained_on(&host(), &window))
        };
        assert_eq!(of(1)[..2], ["preempt-off busy 2", "ipi reschedule 1"]);
        assert_eq!(of(1)[2], "preempt-off busy 20000");
        assert_eq!(of(0).last().unwrap(), "unexplained 20000");
    }

    #[test]
    fn what_keeps_the_timers_softirq_waiting_has_preemption_off() {
        let of = |depth: u8| {
            let events = format!(
                "-500  1 50 d  switch rt/50/19 S kworker/1:0/60/120
                 -100  1 60 .  work+ poll
                 2     1 60 dh{depth} vector+ local_timer
                 3     1 60 dh{depth} raise 8
                 4     1 60 dh waking ktimers/1/18/98
                 5     1 60 dh vector- local_timer
                 40005 1 60 d  switch kworker/1:0/60/120 P ktimers/1/18/98
                 40006 1 18 s  soft+ 8
                 40007 1 18 s  timer+ 1 timerfd_tmrproc
                 40008 1 18 s  waking rt/50/19
                 40009 1 18 d  switch ktimers/1/18/98 P rt/50/19"
            );
            slice_lines(&explained(40_009.0, &events)).swap_remove(1)
        };
        assert_eq!(of(1), "preempt-off poll/kworker/1:0 40000");
        assert!(of(0).starts_with("timer-softirq"), "{}", of(0));
    }

    #[test]
    fn a_thread_that_spins_waits_for_a_lock() {
        let spun = events(1, 20_005, HELD).replace(
            "5    1 60 dNh vector-",
            "5 1 60 dNh vector- local_timer\n6 1 60 N2 spin+ 9\n20004 1 60 N2 spin- 9\n#",
        );
        assert_eq!(slice_lines(&explained(20_005.0, &spun))[2], "lock-contention 19998");
    }

    #[test]
    fn preempt_disable_events_are_used_where_the_kernel_has_them() {
        let told_of =
            events(0, 20_005, "__schedule").replace("\n             2 ", "\n1 1 60 . preempt_off hold\n2 ");
        let told_of =
            told_of.replace("20005 1 60 d   switch", "20004 1 60 . preempt_on hold\n20005 1 60 d switch");
        assert_eq!(slice_lines(&explained(20_005.0, &told_of))[1], "preempt-off hold/busy 19999");
    }
}
