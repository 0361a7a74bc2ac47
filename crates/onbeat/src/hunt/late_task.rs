//! Late wake-ups and late cycles that are to be explained.

use super::cycle_spans::CycleSpan;
use crate::measure::late::LateWakeup;
use model::units::Nanos;
use trace::event::Task;

/// Late wake-up or late cycle to be explained.
#[derive(Clone, Copy, Debug)]
pub struct LateTask {
    pub wakeup: LateWakeup,
    /// Number of the slot, if the thread has slots.
    pub cycle: Option<u64>,
    pub victim: Task,
    /// True if it is one of onbeat's threads.
    pub own: bool,
    /// Deadline of a late cycle; `wakeup` is its release and its end then.
    pub deadline: Option<Nanos>,
    /// Earlier cycle of the thread, in progress when this one was due.
    pub previous: Option<CycleSpan>,
}
