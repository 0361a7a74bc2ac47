//! The knobs: one file per setting that can be judged, and the list of them all.

mod per_cpu;
pub mod sources;

mod core_types;
mod cpufreq_governor;
mod cpufreq_limit;
mod devfreq_governor;
mod fair_server;
mod idle_injection;
mod idle_states;
mod memory_nodes;
mod pcie_aspm;
mod preemption_model;
mod resume_latency_qos;
mod rt_throttling;
mod shared_cache;
mod smt_siblings;
mod thermal_throttling;
mod turbo;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &core_types::KNOB,
    &cpufreq_governor::KNOB,
    &cpufreq_limit::KNOB,
    &devfreq_governor::KNOB,
    &fair_server::KNOB,
    &idle_injection::KNOB,
    &idle_states::KNOB,
    &memory_nodes::KNOB,
    &pcie_aspm::KNOB,
    &preemption_model::KNOB,
    &resume_latency_qos::KNOB,
    &rt_throttling::KNOB,
    &shared_cache::KNOB,
    &smt_siblings::KNOB,
    &thermal_throttling::KNOB,
    &turbo::KNOB,
];
