//! Cost of one tick: a timer interrupt that runs nothing but the tick, from entry to exit, in
//! windows of spikes. Pure.

use model::units::Nanos;
use trace::event::{Vector, What};
use trace::kernel_functions::is_tick;
use trace::window::Window;

/// Maximum number of ticks that are counted.
const MAX_TICKS: usize = 100_000;

/// Durations of the ticks in the windows of spikes.
#[derive(Clone, Debug, Default)]
pub struct Ticks {
    lengths: Vec<Nanos>,
}

impl Ticks {
    /// Adds the ticks of all CPUs in a window.
    pub fn add(&mut self, window: &Window) {
        let mut cpus: Vec<_> = window.events.iter().map(|event| event.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let mut begun: Option<(Nanos, u32, bool)> = None;
            for event in window.events.iter().filter(|event| event.cpu == cpu) {
                begun = match (&event.what, begun) {
                    (What::VectorEntry { vector: Vector::LocalTimer }, _) => Some((event.time, 0, false)),
                    (What::IrqEntry { name, .. }, _) if name.text().contains("timer") => {
                        Some((event.time, 0, false))
                    }
                    (What::TimerEntry { function, .. }, Some((start, timers, tick))) => {
                        Some((start, timers + 1, tick || is_tick(function)))
                    }
                    (What::TimerExit { .. } | What::SoftirqRaise { .. }, begun) => begun,
                    (What::VectorExit { .. } | What::IrqExit { .. }, Some((start, 1, true))) => {
                        if self.lengths.len() < MAX_TICKS {
                            self.lengths.push(event.time - start);
                        }
                        None
                    }
                    // Anything else that happens in it makes it more than a tick.
                    _ => None,
                };
            }
        }
    }

    /// Median duration and number of the ticks.
    pub fn summary(&mut self) -> (Option<Nanos>, u64) {
        (median(&mut self.lengths), self.lengths.len() as u64)
    }
}

/// Median, the upper of two middle values; reorders the values.
pub fn median(values: &mut [Nanos]) -> Option<Nanos> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Cpu;
    use trace::event::{Context, Event, Named};

    fn at(time: i64, cpu: u32, what: What<String>) -> Named {
        Event { time: Nanos(time), cpu: Cpu(cpu), pid: 0, context: Context(8), preempt: 0, what }
    }

    fn enter(time: i64, cpu: u32) -> Named {
        at(time, cpu, What::VectorEntry { vector: Vector::LocalTimer })
    }

    fn leave(time: i64, cpu: u32) -> Named {
        at(time, cpu, What::VectorExit { vector: Vector::LocalTimer })
    }

    fn fires(time: i64, cpu: u32, function: &str) -> Named {
        at(time, cpu, What::TimerEntry { timer: 1, function: function.into(), now: Nanos(time) })
    }

    #[test]
    fn an_interrupt_with_the_tick_alone_counts() {
        let mut ticks = Ticks::default();
        let events = vec![
            enter(0, 0),
            enter(1, 1),
            fires(2, 0, "tick_nohz_handler"),
            fires(3, 1, "hrtimer_wakeup"),
            at(4, 0, What::SoftirqRaise { vec: 1 }),
            at(5, 0, What::TimerExit { timer: 1 }),
            leave(7, 0),
            leave(9, 1),
            enter(10, 0),
            fires(11, 0, "tick_nohz_handler"),
            fires(12, 0, "hrtimer_wakeup"),
            leave(20, 0),
        ];
        ticks.add(&Window { events, ..Window::default() });
        assert_eq!(ticks.summary(), (Some(Nanos(7)), 1));
        assert_eq!(Ticks::default().summary(), (None, 0));
    }
}
