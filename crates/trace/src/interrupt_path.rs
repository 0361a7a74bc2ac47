//! Path of a hardware event to a thread: its interrupt, the handler, the threaded handler or the
//! softirq, the wake-up and the switch. Pure.
//!
//! Sources: kernel/irq/handle.c (`__handle_irq_event_percpu` calls a handler between its two
//! events), kernel/sched/core.c (`try_to_wake_up`, `__schedule`), include/trace/events/irq.h.

use crate::event::{Raw, Vector, What, is_cpu_timer};
use crate::fixed_str::FixedStr;
use model::units::{Cpu, Nanos};

/// Time before an event within which the interrupt of a timer may have begun: one interrupt serves
/// all timers that are due by its end.
const SERVED_EARLIER: Nanos = Nanos(100_000_000);

/// Interrupts that belong to the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedInterrupt {
    /// That of a CPU's timer.
    Timer,
    Number(i32),
    /// Those whose handler has this name.
    Handler(FixedStr<24>),
}

impl WatchedInterrupt {
    /// True for the entry of the interrupt.
    pub fn is_entry(&self, event: &Raw) -> bool {
        match (self, &event.what) {
            (WatchedInterrupt::Timer, What::VectorEntry { vector }) => *vector == Vector::LocalTimer,
            (WatchedInterrupt::Timer, What::IrqEntry { name, .. }) => is_cpu_timer(&name.text()),
            (WatchedInterrupt::Number(wanted), What::IrqEntry { irq, .. }) => irq == wanted,
            (WatchedInterrupt::Handler(wanted), What::IrqEntry { name, .. }) => name == wanted,
            _ => false,
        }
    }
}

/// Event that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedEvent {
    pub thread: i32,
    /// Time of the hardware event, as well as it is known.
    pub began: Nanos,
    /// Time at which the thread ran again.
    pub ended: Nanos,
}

/// Parts of a response, which add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptPath {
    /// From the event to the entry of its interrupt's handler.
    pub entry: Nanos,
    /// In the handler, up to the wake-up of the thread if the handler wakes it.
    pub handler: Nanos,
    /// From the end of the handler to the wake-up: the handler's own thread, or a softirq.
    pub deferred: Nanos,
    /// From the wake-up to the switch to the thread.
    pub wakeup: Nanos,
    /// From the switch to the thread's first instruction.
    pub switch: Nanos,
}

impl InterruptPath {
    /// The parts in order of time.
    pub fn parts(&self) -> [Nanos; 5] {
        [self.entry, self.handler, self.deferred, self.wakeup, self.switch]
    }
}

/// Reason why a response has no parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSplit {
    /// The event came before the thread slept: nothing woke it.
    NoSleep,
    /// Events of the kernel are missing.
    Missing,
}

/// Divides a response; `events` are of all CPUs, in order of time.
pub fn path(events: &[Raw], line: &WatchedInterrupt, of: &AwaitedEvent) -> Result<InterruptPath, NotSplit> {
    let from = events.partition_point(|event| event.time < of.began);
    let to = events.partition_point(|event| event.time <= of.ended);
    let within = events.get(from..to).unwrap_or_default();
    let wakes = |event: &&Raw| matches!(&event.what, What::Waking { task, .. } if task.pid == of.thread);
    let runs = |event: &&Raw| matches!(&event.what, What::Switch { next, .. } if next.pid == of.thread);
    let Some(woken) = within.iter().rposition(|event| wakes(&event)) else {
        let switched = within.iter().any(|event| runs(&event));
        return Err(if switched { NotSplit::Missing } else { NotSplit::NoSleep });
    };
    let waking = &within[woken];
    let Some(switch) = within[woken..].iter().find(runs).map(|event| event.time) else {
        // Woken on its way to sleep, it has not left its CPU.
        let last = events[..from + woken].iter().rev().find_map(|event| match &event.what {
            What::Switch { prev, next, .. } if prev.pid == of.thread || next.pid == of.thread => {
                Some(next.pid)
            }
            _ => None,
        });
        let ran = last == Some(of.thread);
        return Err(if ran { NotSplit::NoSleep } else { NotSplit::Missing });
    };
    let earliest = match line {
        WatchedInterrupt::Timer => of.began - SERVED_EARLIER,
        _ => of.began,
    };
    let local = *line == WatchedInterrupt::Timer || waking.context.hard_irq();
    let serves = |event: &&Raw| line.is_entry(event) && (!local || event.cpu == waking.cpu);
    let before = events[..from + woken].iter().rev().take_while(|event| event.time >= earliest);
    let entry = before.into_iter().find(serves).ok_or(NotSplit::Missing)?;
    // The interrupt may have begun for an earlier timer.
    let entered = entry.time.max(of.began);
    let left = exit_of(&events[..from + woken], entry).map_or(waking.time, |exit| exit.max(entered));
    Ok(InterruptPath {
        entry: entered - of.began,
        handler: left - entered,
        deferred: waking.time - left,
        wakeup: switch - waking.time,
        switch: of.ended - switch,
    })
}

/// Time at which the handler of that entry returned, if it is among the events.
fn exit_of(events: &[Raw], entry: &Raw) -> Option<Nanos> {
    let after = events.partition_point(|event| event.time < entry.time);
    let leaves = |event: &&Raw| {
        let same = match (&entry.what, &event.what) {
            (What::IrqEntry { irq, .. }, What::IrqExit { irq: left }) => irq == left,
            (What::VectorEntry { vector }, What::VectorExit { vector: left }) => vector == left,
            _ => false,
        };
        same && event.cpu == entry.cpu
    };
    events[after..].iter().find(leaves).map(|event| event.time)
}

/// Outcome of an interrupt whose event came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideEvent {
    /// It woke a thread, which runs: the response begins with the entry of the handler.
    Response { began: Nanos, path: InterruptPath },
    /// It woke no thread that slept.
    NoThread { began: Nanos },
}

/// Thread that was woken.
#[derive(Clone, Copy, Debug)]
struct WokenThread {
    pid: i32,
    time: Nanos,
    /// True for the handler's own thread.
    handles: bool,
}

/// Interrupt whose response is not over.
#[derive(Clone, Copy, Debug)]
struct OpenInterrupt {
    cpu: Cpu,
    irq: i32,
    began: Nanos,
    left: Option<Nanos>,
    woken: Option<WokenThread>,
    /// Waking of the handler's thread and the switch to it.
    handler_ran: Option<(WokenThread, Nanos)>,
}

impl OpenInterrupt {
    /// Response of a thread that was woken at one time and runs from another.
    fn response(&self, waking: Nanos, switch: Nanos) -> OutsideEvent {
        let left = self.left.map_or(waking, |left| left.min(waking));
        OutsideEvent::Response {
            began: self.began,
            path: InterruptPath {
                handler: left - self.began,
                deferred: waking - left,
                wakeup: switch - waking,
                ..InterruptPath::default()
            },
        }
    }

    fn wake(&mut self, event: &Raw) -> Option<OutsideEvent> {
        let What::Waking { task, .. } = &event.what else { return None };
        let time = event.time;
        let woken = || WokenThread { pid: task.pid, time, handles: task.comm.starts_with("irq/") };
        match (self.handler_ran, self.woken) {
            // The handler's thread wakes the one that waits.
            (Some((thread, _)), None) if event.pid == thread.pid && !event.context.hard_irq() => {
                self.woken = Some(WokenThread { handles: false, ..woken() });
            }
            (None, None) => {
                // The kernel wakes the handler's thread after the handler has returned.
                let own = || task.comm.starts_with(&format!("irq/{}-", self.irq));
                let handler = event.context.hard_irq() && (self.left.is_none() || own());
                let softirq = !event.context.hard_irq() && event.context.soft_irq() && self.left.is_some();
                if event.cpu == self.cpu && (handler || softirq) {
                    self.woken = Some(woken());
                }
            }
            _ => {}
        }
        None
    }

    fn switch(&mut self, event: &Raw) -> Option<OutsideEvent> {
        let What::Switch { prev, state, next } = &event.what else { return None };
        match (self.woken, self.handler_ran) {
            (Some(woken), _) if next.pid == woken.pid && woken.handles => {
                (self.handler_ran, self.woken) = (Some((woken, event.time)), None);
                None
            }
            (Some(woken), _) if next.pid == woken.pid => Some(self.response(woken.time, event.time)),
            // It sleeps again, and has woken no other thread.
            (None, Some((thread, ran))) if prev.pid == thread.pid && !matches!(state, 0 | 256) => {
                Some(self.response(thread.time, ran))
            }
            (None, None) if event.cpu == self.cpu => Some(OutsideEvent::NoThread { began: self.began }),
            _ => None,
        }
    }
}

/// Follows interrupts whose events come from outside to the threads that they wake.
pub struct OutsideFollower {
    line: WatchedInterrupt,
    open: Vec<OpenInterrupt>,
}

impl OutsideFollower {
    /// For the interrupts of a line.
    pub fn new(line: WatchedInterrupt) -> OutsideFollower {
        OutsideFollower { line, open: Vec::new() }
    }

    /// Takes an event; those of all CPUs come in order of time.
    pub fn take(&mut self, event: &Raw, each: &mut impl FnMut(OutsideEvent)) {
        if self.line.is_entry(event) {
            self.begin(event, each);
            return;
        }
        let line = &self.line;
        self.open.retain_mut(|open| {
            let outcome = match &event.what {
                What::Waking { .. } => open.wake(event),
                What::Switch { .. } => open.switch(event),
                What::IrqExit { irq } if event.cpu == open.cpu => {
                    let own = !matches!(line, WatchedInterrupt::Number(wanted) if wanted != irq);
                    open.left = open.left.or(own.then_some(event.time));
                    None
                }
                _ => None,
            };
            outcome.map(&mut *each).is_none()
        });
    }

    /// Begins with an entry; an earlier one of its CPU without a thread is over.
    fn begin(&mut self, event: &Raw, each: &mut impl FnMut(OutsideEvent)) {
        self.open.retain(|open| {
            let over = open.cpu == event.cpu && open.woken.is_none() && open.handler_ran.is_none();
            if over {
                each(OutsideEvent::NoThread { began: open.began });
            }
            !over
        });
        let irq = match event.what {
            What::IrqEntry { irq, .. } => irq,
            _ => -1,
        };
        self.open.push(OpenInterrupt {
            cpu: event.cpu,
            irq,
            began: event.time,
            left: None,
            woken: None,
            handler_ran: None,
        });
    }

    /// Number of interrupts whose responses are not over.
    pub fn open(&self) -> u64 {
        self.open.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event, Task};
    use proptest::prelude::*;

    const HARD: Context = Context(0x08);
    const THREAD: i32 = 70;

    fn event(time: i64, cpu: u32, context: Context, what: What<u64>) -> Raw {
        Event { time: Nanos(time), cpu: Cpu(cpu), pid: 0, context, preempt: 0, what }
    }

    fn enters(irq: i32) -> What<u64> {
        What::IrqEntry { irq, name: FixedStr::new(b"eth0") }
    }

    fn follow(events: &[Raw]) -> (Vec<OutsideEvent>, u64) {
        let (mut follower, mut found) = (OutsideFollower::new(WatchedInterrupt::Number(24)), Vec::new());
        events.iter().for_each(|event| follower.take(event, &mut |outcome| found.push(outcome)));
        (found, follower.open())
    }

    fn response(began: i64, handler: i64, deferred: i64, wakeup: i64) -> OutsideEvent {
        let [handler, deferred, wakeup] = [handler, deferred, wakeup].map(Nanos);
        let path = InterruptPath { handler, deferred, wakeup, ..InterruptPath::default() };
        OutsideEvent::Response { began: Nanos(began), path }
    }

    #[test]
    fn events_from_outside_are_followed_to_the_threads_they_wake() {
        let left = || What::IrqExit { irq: 24 };
        let named = |pid| What::Waking {
            task: Task { comm: FixedStr::new(b"irq/24-eth0"), ..task(pid) },
            target: Cpu(0),
        };
        let direct = [
            event(10, 0, HARD, enters(24)),
            event(15, 0, HARD, wakes(THREAD)),
            event(18, 0, HARD, left()),
            event(30, 1, Context(0), switches(THREAD)),
        ];
        assert_eq!(follow(&direct), (vec![response(10, 5, 0, 15)], 0));
        assert_eq!(follow(&direct[..3]), (vec![], 1));
        let softirq = [
            event(10, 0, HARD, enters(24)),
            event(18, 0, HARD, left()),
            event(25, 0, Context(0x10), wakes(THREAD)),
            event(30, 0, Context(0), switches(THREAD)),
        ];
        assert_eq!(follow(&softirq), (vec![response(10, 8, 7, 5)], 0));
        let threaded = [
            event(10, 0, HARD, enters(24)),
            event(18, 0, HARD, left()),
            event(20, 0, HARD, named(50)),
            event(30, 0, Context(0), switches(50)),
            Event { pid: 50, ..event(40, 0, Context(0), wakes(THREAD)) },
            event(60, 0, Context(0), switches(THREAD)),
        ];
        assert_eq!(follow(&threaded), (vec![response(10, 8, 22, 20)], 0));
        let sleeps = What::Switch { prev: task(50), state: 1, next: task(0) };
        let alone = [&threaded[..4], &[event(45, 0, Context(0), sleeps)]].concat();
        assert_eq!(follow(&alone), (vec![response(10, 8, 2, 10)], 0));
        let foreign =
            [&threaded[..2], &[event(20, 0, HARD, wakes(90)), event(30, 0, Context(0), switches(90))]];
        let none_of_it = vec![OutsideEvent::NoThread { began: Nanos(10) }];
        assert_eq!(follow(&foreign.concat()), (none_of_it, 0), "another interrupt wakes");
        let none =
            [event(10, 0, HARD, enters(24)), event(18, 0, HARD, left()), event(20, 0, HARD, enters(24))];
        assert_eq!(follow(&none), (vec![OutsideEvent::NoThread { began: Nanos(10) }], 1));
    }

    fn task(pid: i32) -> Task {
        Task { pid, ..Task::default() }
    }

    fn wakes(pid: i32) -> What<u64> {
        What::Waking { task: task(pid), target: Cpu(1) }
    }

    fn switches(pid: i32) -> What<u64> {
        What::Switch { prev: task(0), state: 0, next: task(pid) }
    }

    fn split(events: &[Raw], line: &WatchedInterrupt) -> Result<[i64; 5], NotSplit> {
        let of = AwaitedEvent { thread: THREAD, began: Nanos(100), ended: Nanos(1_000) };
        path(events, line, &of).map(|path| path.parts().map(|part| part.0))
    }

    #[test]
    fn a_handler_that_wakes_the_thread_is_left_with_the_waking() {
        let events = [
            event(150, 0, HARD, enters(9)),
            event(200, 1, HARD, enters(24)),
            event(260, 1, HARD, wakes(THREAD)),
            event(270, 1, HARD, What::IrqExit { irq: 24 }),
            event(400, 1, Context(0), switches(THREAD)),
        ];
        assert_eq!(split(&events, &WatchedInterrupt::Number(24)), Ok([100, 60, 0, 140, 600]));
        assert_eq!(
            split(&events, &WatchedInterrupt::Handler(FixedStr::new(b"eth0"))),
            Ok([100, 60, 0, 140, 600])
        );
        assert_eq!(split(&events, &WatchedInterrupt::Number(9)), Err(NotSplit::Missing), "on another CPU");
        assert_eq!(split(&events[..4], &WatchedInterrupt::Number(24)), Err(NotSplit::Missing));
        assert_eq!(split(&events[..2], &WatchedInterrupt::Number(24)), Err(NotSplit::NoSleep));
        let awake = [&[event(50, 1, Context(0), switches(THREAD))], &events[1..4]].concat();
        assert_eq!(
            split(&awake, &WatchedInterrupt::Number(24)),
            Err(NotSplit::NoSleep),
            "on its way to sleep"
        );
    }

    #[test]
    fn a_threaded_handler_takes_the_time_up_to_the_waking() {
        let events = [
            event(200, 0, HARD, enters(24)),
            event(230, 0, HARD, wakes(50)),
            event(250, 0, HARD, What::IrqExit { irq: 24 }),
            event(300, 1, Context(0), switches(50)),
            event(500, 1, Context(0), wakes(THREAD)),
            event(600, 1, Context(0), switches(THREAD)),
        ];
        assert_eq!(split(&events, &WatchedInterrupt::Number(24)), Ok([100, 50, 250, 100, 400]));
    }

    #[test]
    fn a_timer_may_be_served_by_an_interrupt_that_began_before() {
        let timer = Vector::LocalTimer;
        let events = [
            event(40, 0, HARD, What::VectorEntry { vector: timer }),
            event(90, 1, HARD, What::VectorEntry { vector: timer }),
            event(180, 1, HARD, wakes(THREAD)),
            event(190, 1, HARD, What::VectorExit { vector: timer }),
            event(300, 1, Context(0), switches(THREAD)),
        ];
        assert_eq!(split(&events, &WatchedInterrupt::Timer), Ok([0, 80, 0, 120, 700]));
        assert_eq!(split(&events[..1], &WatchedInterrupt::Timer), Err(NotSplit::NoSleep));
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_response(
            steps in proptest::collection::vec((0i64..400, 0u32..2, 0u8..6, any::<bool>()), 0..12),
            began in 0i64..900, length in 0i64..900,
        ) {
            let mut events: Vec<Raw> = steps.iter().map(|&(time, cpu, kind, hard)| {
                let what = match kind {
                    0 => enters(24),
                    1 => What::IrqExit { irq: 24 },
                    2 => wakes(THREAD),
                    3 => switches(THREAD),
                    4 => What::VectorEntry { vector: Vector::LocalTimer },
                    _ => What::VectorExit { vector: Vector::LocalTimer },
                };
                event(4 * time, cpu, if hard { HARD } else { Context(0) }, what)
            }).collect();
            events.sort_by_key(|event| event.time);
            let of = AwaitedEvent { thread: THREAD, began: Nanos(began), ended: Nanos(began + length) };
            for line in [WatchedInterrupt::Timer, WatchedInterrupt::Number(24)] {
                if let Ok(path) = path(&events, &line, &of) {
                    prop_assert_eq!(path.parts().iter().map(|part| part.0).sum::<i64>(), length);
                    prop_assert!(path.parts().iter().all(|part| part.0 >= 0), "{:?}", path);
                }
            }
        }
    }
}
