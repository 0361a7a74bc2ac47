//! The culprits: one file per cause of lost time, and the list of all of them.
//!
//! A knob is a setting that can be judged; a culprit is a pattern of events. Its record holds the
//! words (the page in `docs/rules`, the culprit table of a hunt), the function that matches its
//! slices, and one spike each that it matches and that it does not. A wrong name is worse than
//! none: a rule matches the exact names of functions, threads and interrupts in the kernel's
//! source, and slices without a rule are ranked by their names. `CONTRIBUTING.md` lists the four
//! steps to add one.

// A record that names every field today ends with the defaults, too: a new field is then one edit.
#![allow(clippy::needless_update)]

pub mod advice;
pub mod belonging;
pub mod context;
mod cpu_time;
mod deferred;
#[cfg(test)]
pub(crate) mod fixture;
mod group;
pub mod names;
mod naming;
pub mod patterns;
pub mod rule;
pub mod sources;
mod spike_set;
pub mod steal;
pub mod subsystems;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod turns;
pub mod watched;
#[cfg(test)]
mod windows;

mod blocked_in_kernel;
mod blocked_unseen;
mod clock_set;
mod clocksource_check;
mod code_patching;
mod console_output;
mod contended_lock;
mod counter_access;
mod counter_interrupt;
mod cpu_stopper;
mod device_interrupt;
mod edac_poll;
mod expedited_grace_period;
mod fair_neighbour;
mod fair_server_turn;
mod frequency_change;
mod futex_wait;
mod idle_exit;
mod inherited_priority;
mod inheriting_lock_wait;
mod injected_idle;
mod inverted_priority;
mod irq_thread;
mod irqs_off_section;
mod kept_by_kernel_code;
mod load_balancing;
mod machine_check_poll;
mod memory_barrier_call;
mod network_softirq;
mod own_time;
mod own_work;
mod page_fault;
mod preempt_off_section;
mod preempted_by_fair_thread;
mod preempted_by_inheritance;
mod preempted_by_irq_thread;
mod preempted_by_kernel_thread;
mod preempted_by_thread;
mod preempted_out_of_order;
mod rcu_softirq;
mod rcu_thread;
mod realtime_thread;
mod register_access;
mod remote_call;
mod rt_throttled;
mod slab_statistics;
mod slice_timer_start;
mod softirq_thread;
mod softirq_work;
mod starved_timer_thread;
mod stopped_from_outside;
mod system_call;
mod thermal_interrupt;
mod timer_function;
mod tlb_flush;
mod unpreempted_kernel;
mod vmstat_work;
mod waking_timer;
mod work_item;

use context::SliceContext;
use rule::CulpritRule;

/// Every culprit, in alphabetical order: a slice goes to the first exact rule that matches it, else
/// to the first fallback.
pub static ALL: &[&CulpritRule] = &[
    &blocked_in_kernel::CULPRIT,
    &blocked_unseen::CULPRIT,
    &clock_set::CULPRIT,
    &clocksource_check::CULPRIT,
    &code_patching::CULPRIT,
    &console_output::CULPRIT,
    &contended_lock::CULPRIT,
    &counter_access::CULPRIT,
    &counter_interrupt::CULPRIT,
    &cpu_stopper::CULPRIT,
    &device_interrupt::CULPRIT,
    &edac_poll::CULPRIT,
    &expedited_grace_period::CULPRIT,
    &fair_neighbour::CULPRIT,
    &fair_server_turn::CULPRIT,
    &frequency_change::CULPRIT,
    &futex_wait::CULPRIT,
    &idle_exit::CULPRIT,
    &inherited_priority::CULPRIT,
    &inheriting_lock_wait::CULPRIT,
    &injected_idle::CULPRIT,
    &inverted_priority::CULPRIT,
    &irq_thread::CULPRIT,
    &irqs_off_section::CULPRIT,
    &kept_by_kernel_code::CULPRIT,
    &load_balancing::CULPRIT,
    &machine_check_poll::CULPRIT,
    &memory_barrier_call::CULPRIT,
    &network_softirq::CULPRIT,
    &own_time::CULPRIT,
    &own_work::CULPRIT,
    &page_fault::CULPRIT,
    &preempt_off_section::CULPRIT,
    &preempted_by_fair_thread::CULPRIT,
    &preempted_by_inheritance::CULPRIT,
    &preempted_by_irq_thread::CULPRIT,
    &preempted_by_kernel_thread::CULPRIT,
    &preempted_by_thread::CULPRIT,
    &preempted_out_of_order::CULPRIT,
    &rcu_softirq::CULPRIT,
    &rcu_thread::CULPRIT,
    &realtime_thread::CULPRIT,
    &register_access::CULPRIT,
    &remote_call::CULPRIT,
    &rt_throttled::CULPRIT,
    &slab_statistics::CULPRIT,
    &slice_timer_start::CULPRIT,
    &softirq_thread::CULPRIT,
    &softirq_work::CULPRIT,
    &starved_timer_thread::CULPRIT,
    &stopped_from_outside::CULPRIT,
    &system_call::CULPRIT,
    &thermal_interrupt::CULPRIT,
    &timer_function::CULPRIT,
    &tlb_flush::CULPRIT,
    &unpreempted_kernel::CULPRIT,
    &vmstat_work::CULPRIT,
    &waking_timer::CULPRIT,
    &work_item::CULPRIT,
];

/// Culprit by ID.
pub fn find(id: &str) -> Option<&'static CulpritRule> {
    ALL.iter().copied().find(|culprit| culprit.id == id)
}

/// Culprits that a knob cures.
pub fn cured_by(knob: &str) -> Vec<&'static CulpritRule> {
    ALL.iter().copied().filter(|culprit| culprit.cured_by.contains(&knob)).collect()
}

/// The rule that matches a slice, and the description of the match.
pub fn classify(context: &SliceContext) -> Option<(&'static CulpritRule, String)> {
    let ask = |fallback: bool| {
        let asked = ALL.iter().filter(|rule| rule.fallback == fallback && rule.covers(&context.slice.kind));
        asked.copied().find_map(|rule| (rule.matches)(context).map(|evidence| (rule, evidence)))
    };
    ask(false).or_else(|| ask(true))
}
