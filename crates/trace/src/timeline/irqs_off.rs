//! Sections with interrupts off while the timer's interrupt was due, if something proves them.
//!
//! An interrupt that stops the CPU right after the instruction that enables interrupts was pending;
//! the window contains the stack at the expiry (`enables`). Anywhere else, user mode included, the
//! interrupt was late for a reason that no event shows: firmware or a hypervisor can stop a CPU at
//! any place.
//!
//! Sources: include/linux/irqflags.h, kernel/trace/trace_preemptirq.c.

use super::case::{Case, Cause, StopCertainty};
use super::own::MAX_BOUNDED_NS;
use super::spans::Spans;
use super::tasks::is_stopper;
use super::virtual_machine::is_virtual;
use super::{rearm, spinning, stopper};
use crate::event::{Named, What};
use crate::irq_enable_site::interrupted;
use crate::kernel_functions::is_entry;
use crate::kernel_functions::{is_lock_helper, named};
use model::slice::SliceKind;

/// Longest time between two interrupts enabled at the same place: if they were pending together,
/// only the exit of one and the entry of the next are between them.
const MAX_ADJACENT_NS: i64 = 100_000;

/// Stretches with interrupts off between the expected time and the timer's interrupt.
pub(super) fn find(case: &Case<'_>) -> Spans<Cause> {
    let Some(expiry) = &case.path.expiry else { return Spans::new(Vec::new()) };
    let until = expiry.interrupt.min(case.to);
    let events = case.events(case.home());
    let before = events.partition_point(|event| event.time.0 < until);
    let mut found = toggled(case, &events[..before]);
    if found.is_empty() && !expiry.soft {
        let late = rearm::late(case);
        let set = late.as_ref().map_or(i64::MIN, |late| late.1);
        let section = by_stack(case, events, before, until).filter(|section| section.1 > set);
        if let Some((start, end, cause)) = section {
            found.extend(spinning::parted(case, start.max(set), end, cause));
        }
        found.extend(late);
    }
    Spans::new(found)
}

fn by_stack(case: &Case<'_>, events: &[&Named], before: usize, until: i64) -> Option<(i64, i64, Cause)> {
    // An idle CPU always enables interrupts at the same place, after leaving its state: that is no
    // proof.
    let expiry = case.path.expiry.as_ref().filter(|expiry| expiry.pid != 0)?;
    let (frames, enables) = case.stack_of(case.home(), expiry.index)?;
    let stack = frames.get(enables?..)?;
    let function = stack.iter().find(|frame| !is_lock_helper(frame)).or(stack.first())?;
    let begun = first_of_cluster(&events[..before], until);
    // After the exit path of another interrupt: it was pending with that one, or not at all.
    let behind = interrupted(&frames.iter().map(String::as_str).collect::<Vec<_>>());
    let between = behind.and_then(|first| frames.get(first..enables?)).unwrap_or_default();
    if begun == until && between.iter().any(|name| is_entry(name)) {
        return None;
    }
    let on = events[..before].iter().rev().find(|event| event.time.0 < begun && proves_on(event));
    let start = on.map_or(case.from, |event| event.time.0.max(case.from));
    // Every switch ends there, so it cannot rule out a stop of one virtual CPU.
    if function == AFTER_SWITCH && is_virtual(case.host) {
        return None;
    }
    let begun = before_the_switch(&events[..before], begun, function);
    // Even with this proof: a machine that was stopped for most of the time was delayed from
    // outside.
    let stopped = case.silent.covered(start, begun, |stop| stop.certainty == StopCertainty::Proven);
    if stopped.saturating_mul(2) > begun.saturating_sub(start) {
        return None;
    }
    let thread = case.tasks.who(expiry.pid, until);
    let stopper = case.tasks.at(expiry.pid, until).is_some_and(|task| is_stopper(&task));
    let kind = if stopper { SliceKind::StopMachine } else { SliceKind::IrqsOff };
    let evidence = format!("the timer's interrupt came in where {function} let interrupts in again");
    let who = named(thread, function);
    let (who, asked) = if stopper {
        stopper::asked(case, who, start, begun, until)
    } else {
        (who, OFF_ELSEWHERE.to_owned())
    };
    let cause = Cause { stack: stack.to_vec(), ..Cause::new(kind, who, format!("{evidence}{asked}")) };
    (start < begun).then_some((start, begun, cause))
}

/// End of a section. Only bounded work follows a switch: if interrupts were off for far longer
/// after it, the CPU did not run, and the section ends at the switch.
fn before_the_switch(before: &[&Named], begun: i64, function: &str) -> i64 {
    let end = before.partition_point(|event| event.time.0 < begun);
    let last = before[..end].iter().rev().find(|event| matches!(event.what, What::Switch { .. }));
    match last {
        Some(switch) if function == AFTER_SWITCH && begun.saturating_sub(switch.time.0) > MAX_BOUNDED_NS => {
            switch.time.0
        }
        _ => begun,
    }
}

/// Evidence: a stack shows where interrupts were enabled, not the code that disabled them.
const OFF_ELSEWHERE: &str = "; it or one that ran before it had switched them off, and no event tells which";

/// Function that enables interrupts after a switch (kernel/sched/core.c).
const AFTER_SWITCH: &str = "finish_task_switch";

/// Start of the first interrupt that was enabled together with the one at `until`.
fn first_of_cluster(before: &[&Named], until: i64) -> i64 {
    let mut begun = until;
    let mut open = false;
    for event in before.iter().rev() {
        match &event.what {
            What::VectorExit { .. } | What::IrqExit { .. } | What::IpiExit { .. } => {
                if !open && begun.saturating_sub(event.time.0) > MAX_ADJACENT_NS {
                    break;
                }
                open = true;
            }
            What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. } if open => {
                begun = event.time.0;
                open = false;
            }
            _ if open || event.context.hard_irq() || event.context.nmi() => {}
            // Raising softirqs and waking their thread is part of the exit path, with interrupts
            // still off.
            _ if event.context.irqs_off() => {}
            _ => break,
        }
    }
    begun
}

/// True if interrupts were on at an event or when it interrupted the CPU.
fn proves_on(event: &Named) -> bool {
    let context = event.context;
    match event.what {
        What::Stack { .. } | What::Nmi { .. } => false,
        What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. } => true,
        _ => !context.irqs_off() && !context.hard_irq() && !context.nmi(),
    }
}

/// Sections from events of disabling and enabling, if the kernel has them.
fn toggled(case: &Case<'_>, before: &[&Named]) -> Vec<(i64, i64, Cause)> {
    let mut found = Vec::new();
    let mut off: Option<&Named> = None;
    for event in before {
        let What::Toggle { irqs: true, off: now_off, caller } = &event.what else { continue };
        if *now_off {
            off = Some(event);
            continue;
        }
        let Some(begin) = off.take().filter(|begin| begin.pid == event.pid) else { continue };
        let who = named(case.tasks.who(event.pid, event.time.0), caller);
        let by = match &begin.what {
            What::Toggle { caller: by, .. } if by != caller => format!("{by} switched interrupts off, "),
            _ => String::new(),
        };
        let evidence = format!("irq_disable and irq_enable enclose it; {by}{caller} let interrupts in again");
        let (start, end) = (begin.time.0.max(case.from), event.time.0);
        found.push((start, end, Cause::new(SliceKind::IrqsOff, who, evidence)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};

    const BEFORE: &str = "-500 1 50 d switch rt/50/19 S busy/60/120";
    const STACK: &str = "hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,hold,write";

    fn with(between: &str, thread: &str, enables: &str) -> Vec<String> {
        with_stack(between, thread, &format!("{STACK} {enables}"))
    }

    fn with_stack(between: &str, thread: &str, stack: &str) -> Vec<String> {
        let events = format!(
            "{}
             {between}
             20000 1 60 dh  vector+ local_timer
             20001 1 60 dh  timer+ 1 hrtimer_wakeup
             20001 1 60 dh  stack {stack}
             20002 1 60 dh  waking rt/50/19
             20003 1 60 dNh timer- 1
             20004 1 60 dNh vector- local_timer
             20004 1 60 d   switch {thread} P rt/50/19",
            BEFORE.replace("busy/60/120", thread),
        );
        slice_lines(&explained(20_004.0, &events))
    }

    #[test]
    fn from_the_last_sign_that_they_were_on() {
        let rest = ["timer-irq local_timer 4"];
        let busy = |between| with(between, "busy/60/120", "2");
        let of = |us: u32, unexplained: u32| {
            let off = format!("irqs-off hold/busy {us}");
            [&[off], &rest.map(str::to_owned)[..], &[format!("unexplained {unexplained}")]].concat()
        };
        assert_eq!(busy(""), of(20_000, 0));
        assert_eq!(busy("100 1 60 . work- x"), of(19_900, 100));
        assert_eq!(busy("100 1 60 d work- x"), of(20_000, 0));
    }

    #[test]
    fn interrupts_enabled_together_waited_together() {
        let between = "19990 1 60 dh irq+ 24 eth0\n19995 1 60 dh irq- 24";
        assert_eq!(
            with(between, "busy/60/120", "2"),
            ["irqs-off hold/busy 19990", "irq eth0 5", "timer-irq local_timer 4", "unexplained 5"]
        );
        // An interrupt that arrived long before proves that interrupts were on then.
        let between = "9990 1 60 dh irq+ 24 eth0\n9995 1 60 dh irq- 24";
        assert_eq!(
            with(between, "busy/60/120", "2"),
            ["irq eth0 5", "irqs-off hold/busy 10005", "timer-irq local_timer 4", "unexplained 9990"]
        );
    }

    #[test]
    fn waiting_for_a_lock_and_stopping_the_machine_have_their_own_kinds() {
        let between = "-5 1 60 d spin+ 3\n19000 1 60 d spin- 3";
        assert_eq!(
            with(between, "busy/60/120", "2")[..2],
            ["lock-contention 19000", "irqs-off hold/busy 1000"]
        );
        // Spinning with interrupts on blocks no interrupt; sleeping for a lock is not spinning.
        let on = with("-5 1 60 . spin+ 3\n19000 1 60 . spin- 3", "busy/60/120", "");
        assert_eq!(on, ["timer-irq local_timer 4", "unexplained 20000"]);
        let asleep = with("-5 1 60 d spin+ 3 8\n19000 1 60 d spin- 3", "busy/60/120", "2");
        assert_eq!(asleep[0], "irqs-off hold/busy 20000");
        assert_eq!(with("", "migration/1/60/-1", "2")[0], "stop-machine hold/migration/1 20000");
        assert_eq!(with("", "migration/1/60/-1", "")[0], "stop-machine migration/1 20000");
    }

    #[test]
    fn irq_disable_events_are_used_where_the_kernel_has_them() {
        let between = "10 1 60 d irqs_off hold\n15010 1 60 d irqs_on hold";
        assert_eq!(
            with(between, "busy/60/120", ""),
            ["irqs-off hold/busy 15000", "timer-irq local_timer 4", "unexplained 5000"]
        );
    }

    /// With the exit path of another interrupt between the timer's and the function.
    #[test]
    fn what_came_in_before_the_timer_waited_with_it_or_not_at_all() {
        let with = |between: &str| {
            let stack = "asm_sysvec_apic_timer_interrupt,preempt_schedule_irq,asm_sysvec_reschedule_ipi,hold";
            with_stack(between, "busy/60/120", &format!("{stack} 3"))
        };
        assert_eq!(
            with("19990 1 60 dh vector+ reschedule\n19995 1 60 dNh vector- reschedule")[0],
            "irqs-off hold/busy 19990"
        );
        assert_eq!(
            with("90 1 60 dh vector+ reschedule\n95 1 60 dNh vector- reschedule"),
            ["ipi reschedule 5", "timer-irq local_timer 4", "unexplained 19995"]
        );
    }

    #[test]
    fn a_switch_takes_no_milliseconds() {
        let stack = STACK.replace("hold", "finish_task_switch");
        let with = |switch: &str| with_stack(switch, "busy/60/120", &format!("{stack} 2"));
        let after = "50 1 60 d switch busy/60/120 S b/61/120\n100 1 61 d switch b/61/120 S busy/60/120";
        assert_eq!(
            with(after)[..],
            ["irqs-off finish_task_switch/busy 100", "timer-irq local_timer 4", "unexplained 19900"]
        );
        let before = "19850 1 60 d switch busy/60/120 S b/61/120\n19900 1 61 d switch b/61/120 S busy/60/120";
        assert_eq!(with(before)[0], "irqs-off finish_task_switch/busy 20000");
    }

    #[test]
    fn a_frame_that_is_not_there_proves_nothing() {
        assert_eq!(with("", "busy/60/120", "9"), ["timer-irq local_timer 4", "unexplained 20000"]);
    }

    #[test]
    fn an_idle_cpu_enables_interrupts_at_its_usual_place() {
        let events = "
            -500  1 50 d  switch rt/50/19 S swapper/0/120
            20000 1 0 dh  vector+ local_timer
            20001 1 0 dh  timer+ 1 hrtimer_wakeup
            20001 1 0 dh  stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,cpuidle_enter_state,do_idle 2
            20002 1 0 dh  waking rt/50/19
            20004 1 0 dNh vector- local_timer
            20004 1 0 d   switch swapper/0/120 R rt/50/19";
        assert_eq!(
            slice_lines(&explained(20_004.0, events)),
            ["timer-irq local_timer 4", "unexplained 20000"]
        );
    }
}
