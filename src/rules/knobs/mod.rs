//! The knobs: one file per setting that can be judged, and the list of them all.

pub mod sources;

mod container_managers;
mod fair_server;
mod firmware_updates;
mod irqbalance;
mod kernel_samepage_merging;
mod laptop_mode;
mod locked_memory_limit;
mod overcommit;
mod preemption_model;
mod proactive_compaction;
mod rival_tuners;
mod rt_priority_limit;
mod rt_throttling;
mod starvation_monitor;
mod swap;
mod unevictable_compaction;
mod vmstat_interval;
mod writeback_interval;
mod zone_reclaim;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &container_managers::KNOB,
    &fair_server::KNOB,
    &firmware_updates::KNOB,
    &irqbalance::KNOB,
    &kernel_samepage_merging::KNOB,
    &laptop_mode::KNOB,
    &locked_memory_limit::KNOB,
    &overcommit::KNOB,
    &preemption_model::KNOB,
    &proactive_compaction::KNOB,
    &rival_tuners::KNOB,
    &rt_priority_limit::KNOB,
    &rt_throttling::KNOB,
    &starvation_monitor::KNOB,
    &swap::KNOB,
    &unevictable_compaction::KNOB,
    &vmstat_interval::KNOB,
    &writeback_interval::KNOB,
    &zone_reclaim::KNOB,
];
