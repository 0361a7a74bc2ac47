//! The period of the kernel's tick, which no trace states: from the starts of its timer, each of
//! which is due whole ticks after the one before.
//!
//! Sources: kernel/time/tick-sched.c (`hrtimer_forward`), kernel/Kconfig.hz, arch/*/Kconfig.

use std::collections::{BTreeMap, HashMap};

use super::event::{Address, Raw, What};
use model::units::Nanos;

/// The frequencies that kernels are configured with.
const FREQUENCIES: [u32; 10] = [100, 128, 200, 250, 256, 300, 500, 512, 1000, 1024];

/// A step that is seen so often is no coincidence.
const MIN_STEPS: u64 = 3;

/// Timers of CPUs, and lengths of steps, that are held.
const MAX_HELD: usize = 4096;

/// The steps of the tick's timers.
#[derive(Debug, Default)]
pub struct TickPeriod {
    /// By timer when it is due.
    due: HashMap<Address, Nanos>,
    /// By its length how often a step was seen.
    steps: BTreeMap<i64, u64>,
}

impl TickPeriod {
    /// Takes the next event; `is_tick` judges the function of a timer.
    pub fn observe(&mut self, event: &Raw, is_tick: impl FnOnce(Address) -> bool) {
        let What::TimerStart { timer, function, expires } = event.what else { return };
        let room = self.due.len() < MAX_HELD && self.steps.len() < MAX_HELD;
        if !room || !is_tick(function) {
            return;
        }
        if let Some(before) = self.due.insert(timer, expires) {
            *self.steps.entry(expires.0.saturating_sub(before.0)).or_default() += 1;
        }
    }

    /// Ticks per second: by the shortest step that is a kernel's.
    pub fn frequency(&self) -> Option<u32> {
        let often = self.steps.iter().filter(|(_, count)| **count >= MIN_STEPS);
        often.filter_map(|(step, _)| frequency_of(*step)).next()
    }
}

/// The kernel rounds its period to nanoseconds.
fn frequency_of(step: i64) -> Option<u32> {
    let near = |hz: &u32| step.abs_diff(1_000_000_000 / i64::from(*hz)) <= 1;
    FREQUENCIES.into_iter().find(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event};
    use model::units::Cpu;

    /// Starts of two timers, of which one is the tick's.
    fn frequency(due: &[i64]) -> Option<u32> {
        let mut period = TickPeriod::default();
        for expires in due {
            for function in [1, 2] {
                let expires = Nanos(if function == 1 { *expires } else { *expires * 4 });
                let what = What::TimerStart { timer: function, function, expires };
                let event =
                    Event { time: expires, cpu: Cpu(0), pid: 0, context: Context(8), preempt: 0, what };
                period.observe(&event, |function| function == 1);
            }
        }
        period.frequency()
    }

    #[test]
    fn the_shortest_step_that_recurs_is_the_tick() {
        let every = |step: i64| (0..5).map(|n| n * step).collect::<Vec<_>>();
        assert_eq!(frequency(&every(4_000_000)), Some(250));
        assert_eq!(frequency(&every(3_333_333)), Some(300));
        assert_eq!(frequency(&every(123_456)), None, "no kernel's");
        // Idle for some ticks, then four in a row; a step that occurs once proves nothing.
        let idle = [0, 40_000_000, 44_000_000, 48_000_000, 52_000_000, 53_000_000];
        assert_eq!(frequency(&idle), Some(250));
        assert_eq!(frequency(&idle[..3]), None);
    }
}
