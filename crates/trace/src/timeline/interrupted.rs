//! State of the CPU that the timer's interrupt found: the stack at the expiry, below the entry of
//! the interrupt.
//!
//! It shows the position of the current thread at the time of the waking, not for how long: a name
//! for a stretch that other events attribute to this thread. In user mode there is no kernel
//! function to name.
//!
//! Sources: arch/x86/entry/entry_64.S, arch/arm64/kernel/entry.S, kernel/trace/trace.c
//! (`ftrace_trace_stack`).

use super::case::Case;
use crate::event::Task;
use crate::irq_enable_site::{interrupted, outward};
use crate::kernel_functions::is_entry;
use crate::kernel_functions::{is_lock_helper, is_scheduler, passes_time};

/// State that the interrupt found which woke the thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found<'w> {
    /// No stack, or one without a usable function.
    Unknown,
    User,
    /// In these kernel functions, innermost first.
    Kernel(&'w [String]),
}

/// State found by the interrupt, if `current` was interrupted by it and runs since `since`.
pub(super) fn found<'w>(case: &Case<'w>, current: Task, since: i64) -> Found<'w> {
    let Some(expiry) = &case.path.expiry else { return Found::Unknown };
    if expiry.soft || expiry.pid != current.pid || since > expiry.interrupt {
        return Found::Unknown;
    }
    case.stack_of(case.home(), expiry.index).map_or(Found::Unknown, |(frames, _)| below(frames))
}

pub(super) fn below(frames: &[String]) -> Found<'_> {
    let names: Vec<&str> = frames.iter().map(String::as_str).collect();
    let Some(entry) = names.iter().position(|name| is_entry(name)) else { return Found::Unknown };
    let Some(at) = interrupted(&names) else {
        let user =
            names[entry].starts_with("el0") || names[entry].ends_with("_user") || entry + 1 == names.len();
        return if user { Found::User } else { Found::Unknown };
    };
    outward(&names, at).and_then(|at| frames.get(at..)).map_or(Found::Unknown, Found::Kernel)
}

/// Stack from the first function that does its own work: functions that take locks, pass the time
/// or switch threads act for their caller. None if the stack leads straight into the scheduler.
pub(super) fn working(frames: &[String]) -> Option<&[String]> {
    // Frames of the recording are above the recorded ones.
    let traced = frames.iter().take(MAX_TRACING_FRAMES).rposition(|frame| frame.starts_with("__traceiter_"));
    let frames = &frames[traced.map_or(0, |at| at + 1)..];
    let at = frames.iter().position(|frame| !is_lock_helper(frame) && !passes_time(frame))?;
    (!is_scheduler(&frames[at]) && frames[at] != AFTER_SWITCH && !frames[at].is_empty())
        .then(|| &frames[at..])
}

/// Limit of frames that may belong to the recording.
const MAX_TRACING_FRAMES: usize = 12;

/// Function at the end of a switch, which belongs to the scheduler for any thread.
const AFTER_SWITCH: &str = "finish_task_switch";

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &str) -> Vec<String> {
        frames.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn below_the_entry_is_what_was_interrupted() {
        let of = |frames: &str| match below(&stack(frames)) {
            Found::Kernel(frames) => working(frames).map_or("-".to_owned(), |frames| frames[0].clone()),
            other => format!("{other:?}"),
        };
        let timer =
            "hrtimer_wakeup hrtimer_interrupt sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt";
        assert_eq!(of(&format!("{timer} spin kthread")), "spin");
        assert_eq!(of(&format!("{timer} delay_tsc __const_udelay spin kthread")), "spin");
        assert_eq!(of(&format!("{timer} _raw_spin_unlock_irqrestore spin")), "spin");
        assert_eq!(of(timer), "User");
        let records = "rb_commit ring_buffer_unlock_commit trace_event_raw_event_hrtimer_start __traceiter_hrtimer_start";
        assert_eq!(of(&format!("{timer} {records} hrtimer_start_range_ns nap")), "hrtimer_start_range_ns");
        assert_eq!(of(&format!("{timer} finish_task_switch __schedule schedule nap")), "-");
        assert_eq!(of(&format!("{timer} __schedule schedule nap")), "-");
        assert_eq!(of("hrtimer_run_softirq handle_softirqs kthread"), "Unknown");
        assert_eq!(of("gic_handle_irq el0t_64_irq stale"), "User");
        // On the exit path of another interrupt to user mode, no kernel code was at work.
        assert_eq!(of(&format!("{timer} irqentry_exit_to_user_mode asm_sysvec_reschedule_ipi")), "Unknown");
        let nested = format!("{timer} handle_softirqs __irq_exit_rcu asm_common_interrupt copy_page");
        assert_eq!(of(&nested), "copy_page");
    }

    #[test]
    fn a_thread_of_higher_priority_is_named_with_its_function() {
        use super::super::fixture::explained;
        let of = |stack: &str, since: &str| {
            let events = format!(
                "{since} 1 50 d  switch rt/50/19 S hog/60/9
                 2     1 60 dh vector+ local_timer
                 3     1 60 dh timer+ 1 hrtimer_wakeup
                 3     1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt{stack}
                 4     1 60 dh2 waking rt/50/19
                 6     1 60 dNh timer- 1
                 7     1 60 dNh vector- local_timer
                 20007 1 60 d  switch hog/60/9 S rt/50/19"
            );
            explained(20_007.0, &events).slices.swap_remove(1)
        };
        let spin = of(",read_tsc,ktime_get,spin+[faults],kthread", "-500");
        assert_eq!((spin.kind.as_str(), spin.who.comm.as_str()), ("thread", "hog"));
        assert_eq!((spin.who.function.as_str(), spin.who.module.as_str()), ("spin", "faults"));
        assert_eq!(spin.stack, ["spin [faults]", "kthread"]);
        assert!(
            spin.evidence.ends_with("the timer's interrupt found it in spin [faults]"),
            "{}",
            spin.evidence
        );
        // In user mode there is no kernel function.
        let user = of("", "-500");
        assert_eq!((user.who.comm.as_str(), user.who.function.as_str(), user.stack.len()), ("hog", "", 0));
    }
}
