//! When interrupts were off while the timer's interrupt should have come: only where something proves it.
//!
//! An interrupt that finds the CPU right behind the instruction that lets interrupts in has waited for it; the
//! window keeps that of the stack at the expiry (`enables`). Found anywhere else, user mode included, the
//! interrupt was late for a reason that no event knows: firmware or a hypervisor can stop a CPU at any place.
//!
//! Sources: include/linux/irqflags.h, kernel/trace/trace_preemptirq.c.

use super::case::{Case, Cause};
use super::frames::{is_lock_helper, named};
use super::kind::Kind;
use super::spans::Spans;
use super::tasks::is_stopper;
use crate::trace::event::{Named, What};

/// Interrupts that were pending together follow each other with nothing but the way out of one and into the next
/// between them: closer than this, they were let in at the same place.
const ADJACENT: i64 = 100_000;

/// The stretches of time, between expected time and the timer's interrupt, in which interrupts were off.
pub(super) fn find(case: &Case<'_>) -> Spans<Cause> {
    let Some(expiry) = &case.path.expiry else { return Spans::new(Vec::new()) };
    let until = expiry.interrupt.min(case.to);
    let events = case.events(case.home());
    let before = events.partition_point(|event| event.time.0 < until);
    let mut found = toggled(case, &events[..before]);
    if found.is_empty() && !expiry.soft {
        found.extend(by_stack(case, events, before, until));
    }
    Spans::new(found)
}

fn by_stack(case: &Case<'_>, events: &[&Named], before: usize, until: i64) -> Option<(i64, i64, Cause)> {
    let expiry = case.path.expiry.as_ref()?;
    let (frames, enables) = case.stack_of(case.home(), expiry.index)?;
    let stack = frames.get(enables?..)?;
    let function = stack.iter().find(|frame| !is_lock_helper(frame)).or(stack.first())?;
    let begun = first_of_cluster(&events[..before], until);
    let on = events[..before].iter().rev().find(|event| event.time.0 < begun && proves_on(event));
    let start = on.map_or(case.from, |event| event.time.0.max(case.from));
    let thread = case.tasks.who(expiry.pid, until);
    let stopper = case.tasks.at(expiry.pid, until).is_some_and(|task| is_stopper(&task));
    let kind = if stopper { Kind::StopMachine } else { Kind::IrqsOff };
    let evidence = format!("the timer's interrupt came in where {function} let interrupts in again");
    let cause = Cause { kind, who: named(thread, function), evidence, stack: stack.to_vec() };
    (start < begun).then_some((start, begun, cause))
}

/// When the first of the interrupts began that were let in together with the one at `until`.
fn first_of_cluster(before: &[&Named], until: i64) -> i64 {
    let mut begun = until;
    let mut open = false;
    for event in before.iter().rev() {
        match &event.what {
            What::VectorExit { .. } | What::IrqExit { .. } | What::IpiExit { .. } => {
                if !open && begun.saturating_sub(event.time.0) > ADJACENT {
                    break;
                }
                open = true;
            }
            What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. } if open => {
                begun = event.time.0;
                open = false;
            }
            _ if open || event.context.hard_irq() || event.context.nmi() => {}
            // Raising softirqs and waking their thread is part of the way out, with interrupts still off.
            _ if event.context.irqs_off() => {}
            _ => break,
        }
    }
    begun
}

/// Whether interrupts were on where the event was, or where it came in.
fn proves_on(event: &Named) -> bool {
    let context = event.context;
    match event.what {
        What::Stack { .. } | What::Nmi { .. } => false,
        What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. } => true,
        _ => !context.irqs_off() && !context.hard_irq() && !context.nmi(),
    }
}

/// By the events that tell of each switching off and on, where the kernel has them.
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
        let evidence = format!("irq_disable and irq_enable enclose it; {caller} let interrupts in again");
        let (start, end) = (begin.time.0.max(case.from), event.time.0);
        found.push((start, end, Cause::new(Kind::IrqsOff, who, evidence)));
    }
    found
}
