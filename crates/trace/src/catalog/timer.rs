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
    EventSpec::new("timer", "timer_expire_entry", &["function"], |f| {
        Some(What::WheelEntry { function: f.address(0)? })
    }),
    EventSpec::new("timer", "timer_expire_exit", &[], |_| Some(What::WheelExit)),
];
