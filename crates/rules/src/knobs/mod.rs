//! The knobs: one file per setting that can be judged, and the list of all of them.

mod per_cpu;
pub mod sources;
mod takers;
pub mod unsettable;

mod cache_aware_balancing;
mod cgroup_cpuset;
mod clocksource;
mod co_kernel;
mod console_loglevel;
mod container_managers;
mod core_types;
mod coverage_instrumentation;
mod cpu_frequency_support;
mod cpu_isolation;
mod cpu_quota;
mod cpufreq_governor;
mod cpufreq_limit;
mod cpuset_partition;
mod damon_monitoring;
mod debug_parameters;
mod default_irq_affinity;
mod devfreq_governor;
mod efi_runtime;
mod emulator_threads;
mod energy_efficient_ethernet;
mod ext_server;
mod fair_server;
mod firmware_random;
mod firmware_updates;
mod gpu_runtime_power;
mod graphics_drivers;
mod group_placement;
mod guest_halt_poll;
mod high_resolution_timers;
mod housekeeping_left;
mod hrtick;
mod idle_injection;
mod idle_poll;
mod idle_states;
mod idle_tick;
mod interrupt_coalescing;
mod irq_affinity;
mod irq_polling;
mod irqbalance;
mod isolation_lists;
mod isolation_support;
mod kernel_samepage_merging;
mod kernel_thread_affinity;
mod kernel_thread_priorities;
mod kernel_tracing_support;
mod kfence;
mod kvm_halt_poll;
mod kvm_periodic_work;
mod laptop_mode;
mod latency_tracers;
mod lock_debugging;
mod locked_memory_limit;
mod machine_check_polling;
mod managed_interrupts;
mod memory_debugging;
mod memory_nodes;
mod mitigations;
mod network_queues;
mod nohz_full;
mod numa_balancing;
mod other_governors;
mod overcommit;
mod packet_delay;
mod parameter_conflicts;
mod parameter_length;
mod pcie_aspm;
mod preemption_model;
mod pressure_stall_accounting;
mod printk_devkmsg;
mod priority_99;
mod proactive_compaction;
mod rcu_boost;
mod rcu_callbacks;
mod rcu_expedited;
mod rcu_lazy;
mod rcu_nocb_poll;
mod rcu_offload_affinity;
mod rcu_thread_priority;
mod realtime_neighbours;
mod resume_latency_qos;
mod rival_tuners;
mod rt_group_sched;
mod rt_priority_limit;
pub(crate) mod rt_throttling;
mod runtime_statistics;
mod sched_ext;
mod serial_console;
mod shared_cache;
mod shared_interrupts;
mod skew_tick;
mod slabinfo_readers;
mod smt_siblings;
mod starvation_monitor;
mod swap;
mod swappiness;
mod thermal_throttling;
mod threaded_interrupts;
mod tick_off;
mod timer_migration;
mod tracing_left_on;
mod transparent_hugepages;
mod tsc_watchdog;
mod turbo;
mod unevictable_compaction;
mod unknown_parameters;
mod vcpu_placement;
mod vcpu_policy;
mod virtual_machine;
mod vmstat_interval;
mod watchdog;
mod workqueue_cpumask;
mod workqueue_queues;
mod writeback_affinity;
mod writeback_interval;
mod zone_reclaim;

use crate::knob::Knob;

/// Every knob, in alphabetical order, which is also that of the findings.
pub static ALL: &[&Knob] = &[
    &cache_aware_balancing::KNOB,
    &cgroup_cpuset::KNOB,
    &clocksource::KNOB,
    &co_kernel::KNOB,
    &console_loglevel::KNOB,
    &container_managers::KNOB,
    &core_types::KNOB,
    &coverage_instrumentation::KNOB,
    &cpu_frequency_support::KNOB,
    &cpu_isolation::KNOB,
    &cpu_quota::KNOB,
    &cpufreq_governor::KNOB,
    &cpufreq_limit::KNOB,
    &cpuset_partition::KNOB,
    &damon_monitoring::KNOB,
    &debug_parameters::KNOB,
    &default_irq_affinity::KNOB,
    &devfreq_governor::KNOB,
    &efi_runtime::KNOB,
    &emulator_threads::KNOB,
    &energy_efficient_ethernet::KNOB,
    &ext_server::KNOB,
    &fair_server::KNOB,
    &firmware_random::KNOB,
    &firmware_updates::KNOB,
    &gpu_runtime_power::KNOB,
    &graphics_drivers::KNOB,
    &group_placement::KNOB,
    &guest_halt_poll::KNOB,
    &high_resolution_timers::KNOB,
    &housekeeping_left::KNOB,
    &hrtick::KNOB,
    &idle_injection::KNOB,
    &idle_poll::KNOB,
    &idle_states::KNOB,
    &idle_tick::KNOB,
    &interrupt_coalescing::KNOB,
    &irq_affinity::KNOB,
    &irq_polling::KNOB,
    &irqbalance::KNOB,
    &isolation_lists::KNOB,
    &isolation_support::KNOB,
    &kernel_samepage_merging::KNOB,
    &kernel_thread_affinity::KNOB,
    &kernel_thread_priorities::KNOB,
    &kernel_tracing_support::KNOB,
    &kfence::KNOB,
    &kvm_halt_poll::KNOB,
    &kvm_periodic_work::KNOB,
    &laptop_mode::KNOB,
    &latency_tracers::KNOB,
    &lock_debugging::KNOB,
    &locked_memory_limit::KNOB,
    &machine_check_polling::KNOB,
    &managed_interrupts::KNOB,
    &memory_debugging::KNOB,
    &memory_nodes::KNOB,
    &mitigations::KNOB,
    &network_queues::KNOB,
    &nohz_full::KNOB,
    &numa_balancing::KNOB,
    &other_governors::KNOB,
    &overcommit::KNOB,
    &packet_delay::KNOB,
    &parameter_conflicts::KNOB,
    &parameter_length::KNOB,
    &pcie_aspm::KNOB,
    &preemption_model::KNOB,
    &pressure_stall_accounting::KNOB,
    &printk_devkmsg::KNOB,
    &priority_99::KNOB,
    &proactive_compaction::KNOB,
    &rcu_boost::KNOB,
    &rcu_callbacks::KNOB,
    &rcu_expedited::KNOB,
    &rcu_lazy::KNOB,
    &rcu_nocb_poll::KNOB,
    &rcu_offload_affinity::KNOB,
    &rcu_thread_priority::KNOB,
    &realtime_neighbours::KNOB,
    &resume_latency_qos::KNOB,
    &rival_tuners::KNOB,
    &rt_group_sched::KNOB,
    &rt_priority_limit::KNOB,
    &rt_throttling::KNOB,
    &runtime_statistics::KNOB,
    &sched_ext::KNOB,
    &serial_console::KNOB,
    &shared_cache::KNOB,
    &shared_interrupts::KNOB,
    &skew_tick::KNOB,
    &slabinfo_readers::KNOB,
    &smt_siblings::KNOB,
    &starvation_monitor::KNOB,
    &swap::KNOB,
    &swappiness::KNOB,
    &thermal_throttling::KNOB,
    &threaded_interrupts::KNOB,
    &tick_off::KNOB,
    &timer_migration::KNOB,
    &tracing_left_on::KNOB,
    &transparent_hugepages::KNOB,
    &tsc_watchdog::KNOB,
    &turbo::KNOB,
    &unevictable_compaction::KNOB,
    &unknown_parameters::KNOB,
    &vcpu_placement::KNOB,
    &vcpu_policy::KNOB,
    &virtual_machine::KNOB,
    &vmstat_interval::KNOB,
    &watchdog::KNOB,
    &workqueue_cpumask::KNOB,
    &workqueue_queues::KNOB,
    &writeback_affinity::KNOB,
    &writeback_interval::KNOB,
    &zone_reclaim::KNOB,
];
