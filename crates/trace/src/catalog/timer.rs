//! Timers.
//!
//! Source: include/trace/events/timer.h.

use super::EventSpec;
use crate::event::What;
use model::units::Nanos;

pub const EVENTS: &[EventSpec] = &[
    EventSpec::new("timer", "hrtimer_start", &["hrtimer", "function", "softexpires"], |f| {
        Some(What::TimerStart { timer: f.address(0)?, function: f.address(1)?, expires: Nanos(f.int(2)?) })
    }),
    EventSpec::new("timer", "hrtimer_expire_entry", &["hrtimer", "function", "now"], |f| {
        Some(What::TimerEntry { timer: f.address(0)?, function: f.address(1)?, now: Nanos(f.int(2)?) })
    }),
    EventSpec::new("timer", "hrtimer_expire_exit", &["hrtimer"], |f| {
        Some(What::TimerExit { timer: f.address(0)? })
    }),
    EventSpec::new("timer", "hrtimer_start_expired", &["hrtimer"], |f| {
        Some(What::TimerStartExpired { timer: f.address(0)? })
    })
    .of_newer_kernels(),
    EventSpec::new("timer", "hrtimer_rearm", &["next_event", "deferred"], |f| {
        Some(What::TimerRearm { next: Nanos(f.int(0)?), deferred: f.int(1)? != 0 })
    })
    .of_newer_kernels(),
    EventSpec::new("timer", "timer_expire_entry", &["function"], |f| {
        Some(What::WheelEntry { function: f.address(0)? })
    }),
    EventSpec::new("timer", "timer_expire_exit", &[], |_| Some(What::WheelExit)),
];
