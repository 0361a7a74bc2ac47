//! Period of the kernel's tick, which traces do not contain: from the starts of its timer, whose
//! due times differ by whole ticks.
//!
//! Sources: kernel/time/tick-sched.c (`hrtimer_forward`), kernel/Kconfig.hz, arch/*/Kconfig.

use std::collections::{BTreeMap, HashMap};

use super::event::{Address, Raw, What};
use model::units::Nanos;

/// Tick frequencies that kernels can be configured with, in Hz.
const FREQUENCIES: [u32; 10] = [100, 128, 200, 250, 256, 300, 500, 512, 1000, 1024];

/// Number of equal steps that rules out coincidence.
const MIN_STEPS: u64 = 3;

/// Limit of stored timers of CPUs, and of lengths of steps.
const MAX_HELD: usize = 4096;

/// Steps of the tick's timers.
#[derive(Debug, Default)]
pub struct TickPeriod {
    /// Due time of each timer.
    due: HashMap<Address, Nanos>,
    /// Number of steps by their length.
    steps: BTreeMap<i64, u64>,
}

impl TickPeriod {
    /// Takes the next event; `is_tick` decides on the function of a timer.
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

    /// Ticks per second, from the shortest frequent step that matches a configuration.
    pub fn frequency(&self) -> Option<u32> {
        let often = self.steps.iter().filter(|(_, count)| **count >= MIN_STEPS);
        often.filter_map(|(step, _)| frequency_of(*step)).next()
    }
}

/// Frequency of a step, which the kernel rounds to nanoseconds.
fn frequency_of(step: i64) -> Option<u32> {
    let near = |hz: &u32| step.abs_diff(1_000_000_000 / i64::from(*hz)) <= 1;
    FREQUENCIES.into_iter().find(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event};
    use model::units::Cpu;

    /// Frequency from the starts of two timers, one of them the tick's.
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
