//! Call that a thread waits for with preemption off: a function that other CPUs run for it.
//!
//! Source: kernel/smp.c (`smp_call_function_many_cond`, `smp_call_function_single`,
//! `csd_lock_wait`): the caller spins until the last CPU has run the function. On 7.3 the wait
//! itself allows preemption: its caller has it off then, and ends the section.

use std::collections::BTreeSet;

use super::case::Case;
use super::state::Stretch;
use crate::event::{Named, Task, What};
use model::units::{Cpu, CpuSet};

/// Kernel functions that wait for a call.
const WAITS: [&str; 4] =
    ["smp_call_function_", "csd_lock_wait", "on_each_cpu_cond_mask", "generic_exec_single"];

fn waits(frame: &str) -> bool {
    WAITS.iter().any(|start| frame.trim_start_matches('_').starts_with(start))
}

/// Function that a section is named by: the one that waits for a call, not the part of the call
/// in which the interrupt found it, which differs from spike to spike. Empty without a stack.
pub(super) fn caller(stack: &[String]) -> &str {
    stack.iter().find(|frame| !waits(frame)).or(stack.first()).map_or("", String::as_str)
}

/// Text `; it waited for CPUS to run FUNCTION` for a thread with a stack that waits for a call;
/// empty for others, and with a substitute if no event has the function.
pub(super) fn waited_for(
    case: &Case<'_>,
    stretch: &Stretch<'_>,
    current: Task,
    stacks: [&[String]; 2],
) -> String {
    if !stacks.iter().any(|stack| stack.iter().take(3).any(|frame| waits(frame))) {
        return String::new();
    }
    // Calls queued by an interrupt's handler are not the thread's, and no thread waits for them.
    let own =
        |event: &Named| event.pid == current.pid && !event.context.hard_irq() && !event.context.soft_irq();
    let asked = |event: &&&Named| own(event) && event.time.0 < stretch.end;
    let queued = |event: &&Named| match &event.what {
        What::CallQueue { target, function, .. } => Some((*target, function.clone())),
        _ => None,
    };
    let mut calls = case.sent.iter().filter(asked).filter(|event| event.time.0 >= stretch.since);
    let last = calls.rfind(|event| queued(event).is_some()).and_then(queued);
    let Some((_, function)) = last else {
        return "; it waited for other CPUs to run a function that no event names".to_owned();
    };
    let same =
        case.sent.iter().filter(asked).filter(|event| event.time.0 >= stretch.since).filter_map(queued);
    let targets: BTreeSet<Cpu> = same.filter(|call| call.1 == function).map(|call| call.0).collect();
    let targets: CpuSet = targets.into_iter().collect();
    format!("; it waited for CPU {targets} to run {function}")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::explained;
    use model::run::Slice;

    /// Evidence for a thread that waits for a function on CPU 0 with preemption off.
    fn evidence(queue: &str, frame: &str) -> String {
        section_of(queue, "", frame).evidence
    }

    /// Slice of a section, with the stack at the timer's interrupt.
    fn section_of(queue: &str, found: &str, frame: &str) -> Slice {
        let events = format!(
            "-900 1 60 d switch rt/50/19 S busy/60/120
             {queue}
             2     1 60 dh1 vector+ local_timer
             3     1 60 dh1 timer+ 1 hrtimer_wakeup
             {found}
             4     1 60 dh1 waking rt/50/19
             5     1 60 dh1 wakeup rt/50/19
             6     1 60 dNh1 timer- 1
             7     1 60 dNh1 vector- local_timer
             5000  1 60 d switch busy/60/120 P rt/50/19
             5000  1 60 d stack __schedule,preempt_schedule,{frame},membarrier"
        );
        let spike = explained(5_001.0, &events);
        let section = spike.slices.iter().find(|slice| slice.who.comm == "busy").unwrap();
        section.clone()
    }

    #[test]
    fn a_call_that_is_waited_for_is_named_with_its_cpus() {
        let queue = "-20 1 60 . queue 0 site ipi_mb\n-19 1 60 . queue 2 site ipi_mb";
        let text = evidence(queue, "smp_call_function_many_cond");
        assert!(text.ends_with("it waited for CPU 0,2 to run ipi_mb"), "{text}");
        let text = evidence("", "smp_call_function_many_cond");
        assert!(text.ends_with("it waited for other CPUs to run a function that no event names"), "{text}");
        // The caller has preemption off, and enables it after the wait.
        let found = "3 1 60 dh1 stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,\
                     __smp_call_function_single,hold_long";
        let text = section_of("-20 1 60 . queue 0 site called", found, "hold_long").evidence;
        assert!(text.ends_with("hold_long let it in again; it waited for CPU 0 to run called"), "{text}");
        // In between, the tick's handler kicks another CPU, and a softirq wakes a thread there.
        let queue = "-20 1 60 . queue 0 site called\n-10 1 60 dh queue 0 tick nohz_csd_func\n\
                     -9 1 60 ds queue 0 wake sched_ttwu_pending";
        let text = evidence(queue, "smp_call_function_single");
        assert!(text.ends_with("it waited for CPU 0 to run called"), "{text}");
        // A call of another thread, and a section that waits for no call.
        let text = evidence("-20 1 61 . queue 0 site ipi_mb", "smp_call_function_many_cond");
        assert!(text.ends_with("that no event names"), "{text}");
        assert!(!evidence(queue, "hold_long").contains("waited for"), "{}", evidence(queue, "hold_long"));
    }

    #[test]
    fn a_section_is_named_by_the_function_that_waits_in_whatever_part_of_the_call_it_was_found() {
        for place in [
            "smp_call_function_single",
            "__smp_call_function_single",
            "csd_lock_wait,smp_call_function_single",
            "generic_exec_single,__smp_call_function_single",
        ] {
            let found = format!(
                "3 1 60 dh1 stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,{place},hold_long"
            );
            for (found, end) in [("", &*format!("{place},hold_long")), (&found, "hold_long")] {
                let slice = section_of("-20 1 60 . queue 0 site called", found, end);
                assert_eq!(slice.who.function, "hold_long", "{place}: {}", slice.evidence);
            }
        }
    }
}
