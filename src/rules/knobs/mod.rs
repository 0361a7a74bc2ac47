//! The knobs: one file per setting that can be judged, and the list of them all.

pub mod sources;

mod clocksource;
mod console_loglevel;
mod fair_server;
mod guest_halt_poll;
mod idle_poll;
mod machine_check_polling;
mod mitigations;
mod parameter_conflicts;
mod parameter_length;
mod preemption_model;
mod printk_devkmsg;
mod rcu_callbacks;
mod rcu_expedited;
mod rcu_nocb_poll;
mod rcu_thread_priority;
mod rt_throttling;
mod serial_console;
mod skew_tick;
mod tick_off;
mod timer_migration;
mod tsc_watchdog;
mod unknown_parameters;
mod virtual_machine;
mod watchdog;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[
    &clocksource::KNOB,
    &console_loglevel::KNOB,
    &fair_server::KNOB,
    &guest_halt_poll::KNOB,
    &idle_poll::KNOB,
    &machine_check_polling::KNOB,
    &mitigations::KNOB,
    &parameter_conflicts::KNOB,
    &parameter_length::KNOB,
    &preemption_model::KNOB,
    &printk_devkmsg::KNOB,
    &rcu_callbacks::KNOB,
    &rcu_expedited::KNOB,
    &rcu_nocb_poll::KNOB,
    &rcu_thread_priority::KNOB,
    &rt_throttling::KNOB,
    &serial_console::KNOB,
    &skew_tick::KNOB,
    &tick_off::KNOB,
    &timer_migration::KNOB,
    &tsc_watchdog::KNOB,
    &unknown_parameters::KNOB,
    &virtual_machine::KNOB,
    &watchdog::KNOB,
];
