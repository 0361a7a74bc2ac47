//! Facts of a machine that no trace states and the events around its late wake-ups show.

use super::windows::each_window;
use bundle::foreign_trace::{ForeignTrace, TraceError};
use trace::event::Raw;
use trace::kernel_functions::is_tick;
use trace::names::Names;
use trace::naming::Naming;
use trace::tick_period::TickPeriod;
use trace::timer_arrivals::{TimerArrival, TimerArrivals};
use trace::wakeups::Wakeup;

/// Number of wake-ups that may end after an interrupt that delayed one of them.
const OVERLAPPING: usize = 64;

/// Facts of the machine that the events around the wake-ups show.
#[derive(Default)]
pub struct TracedMachine {
    /// Arrivals of timers, in place of the kernel's code, which no trace has.
    pub arrivals: TimerArrivals,
    pub tick: TickPeriod,
}

impl TracedMachine {
    pub fn read(
        trace: &mut dyn ForeignTrace,
        found: &[Wakeup],
        names: &mut Names,
    ) -> std::result::Result<TracedMachine, TraceError> {
        let mut known = TracedMachine::default();
        let mut observe = |event: &Raw| {
            known.tick.observe(event, |function| is_tick(&names.function(function)));
            let interrupted = |frames: &[u64]| names.interrupted(frames);
            known.arrivals.observe(event, interrupted, |arrival| delays_one(found, &arrival));
        };
        each_window(trace, found, &mut observe, &mut |_, _| {})?;
        Ok(known)
    }
}

/// True for the first interrupt since a wake-up was due, if it took most of that wake-up's time.
fn delays_one(found: &[Wakeup], arrival: &TimerArrival) -> bool {
    let from = found.partition_point(|wakeup| wakeup.actual < arrival.time);
    found[from..].iter().take(OVERLAPPING).any(|wakeup| {
        let late = arrival.time.0.saturating_sub(wakeup.expected.0);
        wakeup.cpu == arrival.cpu
            && late > wakeup.actual.0.saturating_sub(wakeup.expected.0) / 2
            && arrival.before.is_none_or(|before| before < wakeup.expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::foreign_trace::facts::TraceFacts;
    use bundle::foreign_trace::{StepSink, TracePart, TraceStep};
    use model::units::{Cpu, Nanos};
    use trace::event::{Context, Event, Task, Vector, What};
    use trace::symbols::Symbols;

    const HARD: Context = Context(8);
    const FUNCTIONS: &[u8] = b"ffffffff81000000 T hrtimer_interrupt
ffffffff81000100 T asm_sysvec_apic_timer_interrupt
ffffffff81000200 t tick_nohz_handler
ffffffff81000300 t hold
ffffffff81000400 t last
";
    const HOLD: u64 = 0xffff_ffff_8100_0300;
    const MS: i64 = 1_000_000;

    struct ScriptedTrace(Vec<Raw>);

    impl ForeignTrace for ScriptedTrace {
        fn facts(&self) -> TraceFacts {
            TraceFacts::default()
        }

        fn each(&mut self, _: TracePart, sink: &mut StepSink) -> Result<(), TraceError> {
            let _ = self.0.iter().try_for_each(|event| sink(TraceStep::Event(event)));
            Ok(())
        }

        fn names(&mut self) -> Names {
            Names::new(Symbols::parse(FUNCTIONS).ok(), "", "x86_64", None)
        }
    }

    /// The timer's interrupt finds a place in `hold`, and starts the next tick.
    fn interrupt(time: i64, place: u64) -> Vec<Raw> {
        let frames = vec![HOLD - 0x2f0, HOLD - 0x1f0, HOLD + place, HOLD + 0x110];
        let due = Nanos(time / (4 * MS) * (4 * MS) + 4 * MS);
        let whats = [
            What::VectorEntry { vector: Vector::LocalTimer },
            What::TimerEntry { timer: 1, function: HOLD - 0x100, now: Nanos(time) },
            What::Stack { frames, enables: None },
            What::TimerExit { timer: 1 },
            What::TimerStart { timer: 1, function: HOLD - 0x100, expires: due },
            What::VectorExit { vector: Vector::LocalTimer },
        ];
        let event = |what| Event { time: Nanos(time), cpu: Cpu(1), pid: 9, context: HARD, preempt: 0, what };
        whats.map(event).into()
    }

    #[test]
    fn the_first_interrupt_after_a_late_wake_up_was_due_shows_what_delayed_it() {
        let (mut events, mut found) = (Vec::new(), Vec::new());
        for due in [1_000, 2_000, 3_000].map(|ms| ms * MS) {
            let times = [(-4, 3), (20, 7), (22, 9), (26, 3)];
            events.extend(times.iter().flat_map(|&(after, place)| interrupt(due + after * MS, place)));
            let (expected, actual) = (Nanos(due), Nanos(due + 24 * MS));
            let task = Task::default();
            found.push(Wakeup { task, cpu: Cpu(1), expected, actual, timer_offset: None });
        }
        let mut trace = ScriptedTrace(events);
        let mut names = trace.names();
        let known = TracedMachine::read(&mut trace, &found, &mut names).expect("read");
        let lets_in = [3, 7, 9].map(|place| known.arrivals.lets_in(HOLD + place));
        assert_eq!(lets_in, [false, true, false]);
        assert_eq!(known.tick.frequency(), Some(250));
    }
}
