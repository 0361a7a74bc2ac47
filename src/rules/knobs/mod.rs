//! The knobs: one file per setting that can be judged, and the list of them all.

mod per_cpu;
pub mod sources;

mod container_managers;
mod core_types;
mod coverage_instrumentation;
mod cpu_frequency_support;
mod cpufreq_governor;
mod cpufreq_limit;
mod debug_parameters;
mod devfreq_governor;
mod efi_runtime;
mod fair_server;
mod firmware_updates;
mod graphics_drivers;
mod high_resolution_timers;
mod idle_injection;
mod idle_states;
mod irqbalance;
mod isolation_support;
mod kernel_samepage_merging;
mod kernel_tracing_support;
mod kfence;
mod laptop_mode;
mod latency_tracers;
mod lock_debugging;
mod locked_memory_limit;
mod memory_debugging;
mod memory_nodes;
mod nohz_full;
mod numa_balancing;
mod overcommit;
mod pcie_aspm;
mod preemption_model;
mod pressure_stall_accounting;
mod proactive_compaction;
mod rcu_boost;
mod rcu_lazy;
mod resume_latency_qos;
mod rival_tuners;
mod rt_group_sched;
mod rt_priority_limit;
mod rt_throttling;
mod runtime_statistics;
mod sched_ext;
mod shared_cache;
mod slabinfo_readers;
mod smt_siblings;
mod starvation_monitor;
mod swap;
mod thermal_throttling;
mod threaded_interrupts;
mod tracing_left_on;
mod transparent_hugepages;
mod turbo;
mod unevictable_compaction;
mod vmstat_interval;
mod writeback_interval;
mod zone_reclaim;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &container_managers::KNOB,
    &core_types::KNOB,
    &coverage_instrumentation::KNOB,
    &cpu_frequency_support::KNOB,
    &cpufreq_governor::KNOB,
    &cpufreq_limit::KNOB,
    &debug_parameters::KNOB,
    &devfreq_governor::KNOB,
    &efi_runtime::KNOB,
    &fair_server::KNOB,
    &firmware_updates::KNOB,
    &graphics_drivers::KNOB,
    &high_resolution_timers::KNOB,
    &idle_injection::KNOB,
    &idle_states::KNOB,
    &irqbalance::KNOB,
    &isolation_support::KNOB,
    &kernel_samepage_merging::KNOB,
    &kernel_tracing_support::KNOB,
    &kfence::KNOB,
    &laptop_mode::KNOB,
    &latency_tracers::KNOB,
    &lock_debugging::KNOB,
    &locked_memory_limit::KNOB,
    &memory_debugging::KNOB,
    &memory_nodes::KNOB,
    &nohz_full::KNOB,
    &numa_balancing::KNOB,
    &overcommit::KNOB,
    &pcie_aspm::KNOB,
    &preemption_model::KNOB,
    &pressure_stall_accounting::KNOB,
    &proactive_compaction::KNOB,
    &rcu_boost::KNOB,
    &rcu_lazy::KNOB,
    &resume_latency_qos::KNOB,
    &rival_tuners::KNOB,
    &rt_group_sched::KNOB,
    &rt_priority_limit::KNOB,
    &rt_throttling::KNOB,
    &runtime_statistics::KNOB,
    &sched_ext::KNOB,
    &shared_cache::KNOB,
    &slabinfo_readers::KNOB,
    &smt_siblings::KNOB,
    &starvation_monitor::KNOB,
    &swap::KNOB,
    &thermal_throttling::KNOB,
    &threaded_interrupts::KNOB,
    &tracing_left_on::KNOB,
    &transparent_hugepages::KNOB,
    &turbo::KNOB,
    &unevictable_compaction::KNOB,
    &vmstat_interval::KNOB,
    &writeback_interval::KNOB,
    &zone_reclaim::KNOB,
];
