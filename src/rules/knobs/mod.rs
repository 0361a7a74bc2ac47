//! The knobs: one file per setting that can be judged, and the list of them all.

mod per_cpu;
pub mod sources;

mod container_managers;
mod core_types;
mod cpufreq_governor;
mod cpufreq_limit;
mod devfreq_governor;
mod fair_server;
mod firmware_updates;
mod idle_injection;
mod idle_states;
mod irqbalance;
mod kernel_samepage_merging;
mod laptop_mode;
mod locked_memory_limit;
mod memory_nodes;
mod overcommit;
mod pcie_aspm;
mod preemption_model;
mod proactive_compaction;
mod resume_latency_qos;
mod rival_tuners;
mod rt_priority_limit;
mod rt_throttling;
mod shared_cache;
mod smt_siblings;
mod starvation_monitor;
mod swap;
mod thermal_throttling;
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
    &cpufreq_governor::KNOB,
    &cpufreq_limit::KNOB,
    &devfreq_governor::KNOB,
    &fair_server::KNOB,
    &firmware_updates::KNOB,
    &idle_injection::KNOB,
    &idle_states::KNOB,
    &irqbalance::KNOB,
    &kernel_samepage_merging::KNOB,
    &laptop_mode::KNOB,
    &locked_memory_limit::KNOB,
    &memory_nodes::KNOB,
    &overcommit::KNOB,
    &pcie_aspm::KNOB,
    &preemption_model::KNOB,
    &proactive_compaction::KNOB,
    &resume_latency_qos::KNOB,
    &rival_tuners::KNOB,
    &rt_priority_limit::KNOB,
    &rt_throttling::KNOB,
    &shared_cache::KNOB,
    &smt_siblings::KNOB,
    &starvation_monitor::KNOB,
    &swap::KNOB,
    &thermal_throttling::KNOB,
    &turbo::KNOB,
    &unevictable_compaction::KNOB,
    &vmstat_interval::KNOB,
    &writeback_interval::KNOB,
    &zone_reclaim::KNOB,
];
