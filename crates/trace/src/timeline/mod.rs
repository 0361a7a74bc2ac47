//! Explanation of a spike from the events around it, by slices that add up to its latency.
//!
//! In reading order: [`state`] turns the events of one CPU into stretches with the context that
//! ran; [`path`] finds the landmarks of the wake-up (interrupt, expiry, waking, switch);
//! [`attribute`] gives the cause of each stretch, with one file per judgement that needs care;
//! [`mod@explain`] adds up. [`response`] does the same for a whole cycle of a thread, in `segments`
//! between its switches. Time during an earlier cycle has that cycle's causes, by [`overrun`].

mod assemble;
mod attribute;
mod blocked;
mod calls;
mod case;
mod classes;
mod common_stall;
mod contested;
mod corroboration;
mod cpu_tracks;
mod cycle_evidence;
mod earlier;
mod explain;
mod gap;
mod hard_irq;
mod holders;
mod hotplug;
mod idle;
mod inherited;
mod interrupted;
mod inversion;
mod irqs_off;
mod last_cycle;
mod late_idle;
mod lent;
mod locks;
mod machine_stall;
mod outside;
mod overrun;
mod own;
mod path;
mod precedence;
mod preempt_off;
mod presence;
mod rearm;
mod remote_call;
mod response;
mod segments;
mod spans;
mod spinning;
mod starved;
mod state;
mod stopper;
mod switch_to_user;
mod tasks;
mod thread_tracks;
mod ticks;
mod virtual_machine;
mod why;
pub mod without_events;
mod woken;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod tests;

pub use crate::kernel_functions::softirq;
pub use classes::classes;
pub use corroboration::{BlamedPlace, Corroboration, contested_as_stop, corroborate, needs_corroboration};
pub use cpu_tracks::{CpuTrack, TrackContext, TrackSpan, cpu_tracks};
pub use explain::explain;
pub use outside::{attribute_to_outside, matters};
pub use overrun::explain_window;
pub use own::Cost;
pub use preempt_off::NOT_PREEMPTED;
pub use response::explain_response;
pub use thread_tracks::{ThreadDoing, ThreadStretch, ThreadTrack, thread_tracks};
pub use virtual_machine::is_virtual;
