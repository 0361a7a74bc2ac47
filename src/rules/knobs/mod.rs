//! The knobs: one file per setting that can be judged, and the list of them all.

pub mod sources;

mod coverage_instrumentation;
mod cpu_frequency_support;
mod debug_parameters;
mod efi_runtime;
mod fair_server;
mod graphics_drivers;
mod high_resolution_timers;
mod isolation_support;
mod kernel_tracing_support;
mod kfence;
mod latency_tracers;
mod lock_debugging;
mod memory_debugging;
mod nohz_full;
mod numa_balancing;
mod preemption_model;
mod pressure_stall_accounting;
mod rcu_boost;
mod rcu_lazy;
mod rt_group_sched;
mod rt_throttling;
mod runtime_statistics;
mod sched_ext;
mod slabinfo_readers;
mod threaded_interrupts;
mod tracing_left_on;
mod transparent_hugepages;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &coverage_instrumentation::KNOB,
    &cpu_frequency_support::KNOB,
    &debug_parameters::KNOB,
    &efi_runtime::KNOB,
    &fair_server::KNOB,
    &graphics_drivers::KNOB,
    &high_resolution_timers::KNOB,
    &isolation_support::KNOB,
    &kernel_tracing_support::KNOB,
    &kfence::KNOB,
    &latency_tracers::KNOB,
    &lock_debugging::KNOB,
    &memory_debugging::KNOB,
    &nohz_full::KNOB,
    &numa_balancing::KNOB,
    &preemption_model::KNOB,
    &pressure_stall_accounting::KNOB,
    &rcu_boost::KNOB,
    &rcu_lazy::KNOB,
    &rt_group_sched::KNOB,
    &rt_throttling::KNOB,
    &runtime_statistics::KNOB,
    &sched_ext::KNOB,
    &slabinfo_readers::KNOB,
    &threaded_interrupts::KNOB,
    &tracing_left_on::KNOB,
    &transparent_hugepages::KNOB,
];
