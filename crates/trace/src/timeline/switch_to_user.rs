//! Page faults and sleeps between the switch to the thread and its timestamp, in addition to the
//! return to user space.
//!
//! Source: arch/x86/mm/fault.c (page_fault_user and page_fault_kernel are recorded at the start of
//! a fault).

use super::case::{Case, Cause};
use super::spans::Spans;
use super::tasks::who;
use crate::event::{Named, What};
use model::slice::SliceKind;
use model::sort::CompactSort;

/// Page faults up to the end, and sleeps up to the next waking; none for a sleep without a fault.
pub(super) fn find(case: &Case<'_>) -> Spans<Option<Cause>> {
    let Some(switch) = case.path.switch else { return Spans::new(Vec::new()) };
    let victim = case.window.victim.pid;
    let mut after: Vec<&Named> = case.cpus.values().flatten().copied().collect();
    after.retain(|event| (switch..=case.to).contains(&event.time.0) && concerns(event, victim));
    after.compact_sort_by_key(|event| event.time);
    let mut fault: Option<Cause> = None;
    // Time since which the thread runs in a fault, or sleeps; `None` while it is runnable or
    // returns to user space.
    let mut since: Option<i64> = None;
    let mut found = Vec::new();
    for event in after {
        let time = event.time.0;
        match &event.what {
            What::Fault { user } => {
                let space = if *user { "user space" } else { "the kernel" };
                let evidence = format!("a page fault of {space} after the switch");
                found.extend(since.take().map(|start| (start, time, fault.clone())));
                fault = Some(Cause::new(SliceKind::PageFault, who(case.window.victim), evidence));
                since = Some(time);
            }
            What::Switch { prev, state, .. } if prev.pid == victim => {
                found.extend(since.take().map(|start| (start, time, fault.clone())));
                since = (!matches!(state, 0 | 256)).then_some(time);
            }
            What::Waking { .. } => found.extend(since.take().map(|start| (start, time, fault.clone()))),
            What::Switch { .. } => since = fault.is_some().then_some(time),
            _ => {}
        }
    }
    found.extend(since.map(|start| (start, case.to, fault)));
    for span in &mut found {
        span.2 = span.2.take().or_else(|| case.inverted.at(span.0).map(|inverted| inverted.2.clone()));
    }
    Spans::new(found)
}

fn concerns(event: &Named, victim: i32) -> bool {
    match &event.what {
        What::Fault { .. } => event.pid == victim && !event.context.hard_irq(),
        What::Switch { prev, next, .. } => prev.pid == victim || next.pid == victim,
        What::Waking { task, .. } => task.pid == victim,
        _ => false,
    }
}
