//! The knobs: one file per setting that can be judged, and the list of them all.

pub mod sources;

mod cgroup_cpuset;
mod cpu_isolation;
mod cpu_quota;
mod cpuset_partition;
mod default_irq_affinity;
mod fair_server;
mod group_placement;
mod housekeeping_left;
mod irq_affinity;
mod isolation_lists;
mod kernel_thread_affinity;
mod kernel_thread_priorities;
mod managed_interrupts;
mod network_queues;
mod preemption_model;
mod priority_99;
mod rcu_offload_affinity;
mod realtime_neighbours;
mod rt_throttling;
mod workqueue_cpumask;
mod workqueue_queues;
mod writeback_affinity;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &cgroup_cpuset::KNOB,
    &cpu_isolation::KNOB,
    &cpu_quota::KNOB,
    &cpuset_partition::KNOB,
    &default_irq_affinity::KNOB,
    &fair_server::KNOB,
    &group_placement::KNOB,
    &housekeeping_left::KNOB,
    &irq_affinity::KNOB,
    &isolation_lists::KNOB,
    &kernel_thread_affinity::KNOB,
    &kernel_thread_priorities::KNOB,
    &managed_interrupts::KNOB,
    &network_queues::KNOB,
    &preemption_model::KNOB,
    &priority_99::KNOB,
    &rcu_offload_affinity::KNOB,
    &realtime_neighbours::KNOB,
    &rt_throttling::KNOB,
    &workqueue_cpumask::KNOB,
    &workqueue_queues::KNOB,
    &writeback_affinity::KNOB,
];
