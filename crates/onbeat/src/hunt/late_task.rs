//! A late wake-up or a late cycle that is to be explained.

use super::cycle_spans::CycleSpan;
use crate::measure::late::LateWakeup;
use model::units::Nanos;
use trace::event::Task;

/// A wake-up that is to be explained.
#[derive(Clone, Copy, Debug)]
pub struct LateTask {
    pub wakeup: LateWakeup,
    /// The slot's number, where there are slots.
    pub cycle: Option<u64>,
    pub victim: Task,
    /// Whether it is one of onbeat's own threads.
    pub own: bool,
    /// Of a cycle that was late: its deadline. The wake-up is then its release and its end.
    pub deadline: Option<Nanos>,
    /// The thread's cycle that was on when this one was due.
    pub previous: Option<CycleSpan>,
}
