//! Explanation of spikes: from the kernel's trace buffers to slices of time that add up. Bytes in,
//! values out; `hunt` reads the bytes.
//!
//! [`mod@format`] parses the kernel's description of an event, [`page`] finds the records of a
//! page, [`catalog`] has an entry per event with its meaning, [`decode`] makes [`event`]s of them.
//! [`symbols`] and [`naming`] turn addresses into functions, a [`window`] holds the events around a
//! spike, and [`timeline`] explains it. [`cycles`] follows threads of other programs from their
//! releases to their next sleep; [`activity`] counts the activity of a program's threads;
//! [`interrupt_path`] divides the response to a hardware event.

pub mod activity;
pub mod byte_order;
pub mod catalog;
pub mod cycles;
pub mod decode;
pub mod event;
pub mod fields;
pub mod fixed_str;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod held;
pub mod implied;
pub mod interrupt_path;
pub mod irq_enable_site;
pub mod kernel_functions;
pub mod last_switch;
pub mod late_wakeups;
pub mod names;
pub mod naming;
pub mod page;
pub mod recent_events;
pub mod symbols;
pub mod symbols_near;
pub mod tick_period;
pub mod timeline;
pub mod timer_arrivals;
pub mod timer_clocks;
pub mod tracer_record;
pub mod wakeups;
pub mod window;
pub mod window_events;
pub mod x86;
