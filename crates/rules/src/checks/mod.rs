//! The checks: one file per mistake in a program's real-time code, and the list of all of them.
//!
//! A check's record holds the words (the page in `docs/rules`, `onbeat rules`, the findings), the
//! function that judges a running program, and one program each on which it fails, passes, and is
//! unknown. They agree with the kernel's monitors of real-time applications
//! (Documentation/trace/rv/monitor_rtapp.rst). Only facts that are visible from outside are judged:
//! a check that lacks its facts is unknown.

pub mod findings;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(any(test, feature = "fixture"))]
mod fixture_words;
pub mod releases;
pub mod rule;
pub mod sources;
#[cfg(test)]
mod tests;
pub mod view;

mod above_interrupt_thread;
mod allocation_in_loop;
mod blocking_calls;
mod busy_waiting;
mod distant_memory;
mod faulting;
mod faults_in_loop;
mod group_budget;
mod highest_priority;
mod lock_without_inheritance;
mod loose_timer_slack;
mod memory_lock_limit;
mod memory_unlocked;
mod no_affinity;
mod realtime_budget;
mod realtime_limit;
mod relative_sleep;
mod same_priority;
mod sibling_in_use;
mod signal_timing;
mod softirq_timer;
mod stack_untouched;
mod storage_in_loop;
mod swapped_out;
mod system_call_filter;
mod timer_waits;
mod traced_program;
mod wall_clock_sleep;
mod woken_by_lower;
mod writes_in_loop;

use rule::CheckRule;

/// Every check, in alphabetical order.
pub static ALL: &[&CheckRule] = &[
    &above_interrupt_thread::CHECK,
    &allocation_in_loop::CHECK,
    &blocking_calls::CHECK,
    &busy_waiting::CHECK,
    &distant_memory::CHECK,
    &faults_in_loop::CHECK,
    &group_budget::CHECK,
    &highest_priority::CHECK,
    &lock_without_inheritance::CHECK,
    &loose_timer_slack::CHECK,
    &memory_lock_limit::CHECK,
    &memory_unlocked::CHECK,
    &no_affinity::CHECK,
    &realtime_budget::CHECK,
    &realtime_limit::CHECK,
    &relative_sleep::CHECK,
    &same_priority::CHECK,
    &sibling_in_use::CHECK,
    &signal_timing::CHECK,
    &softirq_timer::CHECK,
    &stack_untouched::CHECK,
    &storage_in_loop::CHECK,
    &swapped_out::CHECK,
    &system_call_filter::CHECK,
    &traced_program::CHECK,
    &wall_clock_sleep::CHECK,
    &woken_by_lower::CHECK,
    &writes_in_loop::CHECK,
];

/// Check by ID.
pub fn find(id: &str) -> Option<&'static CheckRule> {
    ALL.iter().copied().find(|check| check.id == id)
}
