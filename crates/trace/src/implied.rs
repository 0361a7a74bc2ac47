//! Events that a recording of measuring threads leaves out, because others imply them: the entry
//! and exit of a timer's interrupt, the end of a timer's function that only wakes a thread, the
//! entry of a thread in the queue of the CPU that wakes it, and the end of an idle state. Pure.
//!
//! Source: kernel/time/hrtimer.c (`hrtimer_interrupt` begins with reading `now`, which
//! `__run_hrtimer` passes on), kernel/sched/idle.c (an idle CPU leaves its state for each
//! interrupt).

use crate::event::{Raw, Task, Vector, What};
use model::units::Nanos;

/// Completes the events of one CPU, which come in order of time.
#[derive(Default)]
pub struct ImpliedEvents {
    /// True if threads put in a queue have events.
    has_wakeups: bool,
    /// Expiry of the timer whose function runs in an interrupt.
    expiry: Option<Raw>,
    /// True in an interrupt of the timer that has no events.
    implied: bool,
    /// Number of open interrupts with events.
    interrupts: u32,
    /// True if the CPU is in an idle state.
    asleep: bool,
    last: Option<Raw>,
    /// Waking of a thread of this CPU as the last event.
    woken: Option<(Task, Raw)>,
    /// Softirqs raised in an interrupt whose first expiry may follow: those of soft timers are
    /// raised before other timers expire.
    raised: Vec<Raw>,
}

impl ImpliedEvents {
    /// `has_wakeups` is true if the recording has events of threads put in a queue.
    pub fn new(has_wakeups: bool) -> ImpliedEvents {
        ImpliedEvents { has_wakeups, ..ImpliedEvents::default() }
    }

    /// Passes an event on, with those that it implies.
    pub fn complete(&mut self, event: Raw, each: &mut dyn FnMut(Raw)) {
        if event.context.nmi() || matches!(event.what, What::Stack { .. } | What::Nmi { .. }) {
            return each(event);
        }
        let enters =
            matches!(event.what, What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. });
        let leaves =
            matches!(event.what, What::VectorExit { .. } | What::IrqExit { .. } | What::IpiExit { .. });
        let hard = event.context.hard_irq();
        let goes_on = hard && self.last.as_ref().is_none_or(|last| last.pid == event.pid);
        let expires = match event.what {
            What::TimerEntry { now, .. } if hard => Some(now),
            _ => None,
        };
        let alone = !goes_on || self.interrupts == 0 && self.expiry.is_none();
        let raises = hard && alone && matches!(event.what, What::SoftirqRaise { .. });
        // Timers of one interrupt have the same time.
        let anew = expires.is_some_and(|now| self.last.as_ref().is_none_or(|last| now > last.time));
        // A mark for rescheduling stays until the next switch.
        let due = matches!(event.what, What::Switch { .. }) || event.context.need_resched();
        self.queue(&event, due, each);
        if !goes_on || enters || leaves || expires.is_some() {
            self.end_function(due, each);
        }
        if !goes_on || enters || leaves || raises || anew {
            self.end_interrupt(each);
        }
        if raises {
            return self.raised.push(event);
        }
        let same = self.raised.first().is_some_and(|raised| raised.pid == event.pid);
        self.enter_raised(expires.filter(|_| same), each);
        if !(goes_on || enters || leaves) {
            self.interrupts = 0;
            self.wake_up(&event, each);
        }
        if let Some(now) = expires {
            if self.interrupts == 0 && !self.implied {
                self.enter(&event, now, each);
            }
            self.expiry = Some(event.clone());
        }
        self.interrupts = (self.interrupts + u32::from(enters)).saturating_sub(u32::from(leaves));
        match &event.what {
            What::Idle { state } => self.asleep = state.is_some(),
            _ if event.pid != 0 => self.asleep = false,
            _ => {}
        }
        if let What::Waking { task, target } = &event.what {
            self.woken = (!self.has_wakeups && *target == event.cpu).then(|| (*task, event.clone()));
        }
        if matches!(event.what, What::TimerExit { .. }) {
            self.expiry = None;
        }
        each(event.clone());
        if leaves && self.interrupts == 0 {
            self.wake_up(&event, each);
        }
        self.last = Some(event);
    }

    /// Passes on what is left at the end of the events.
    pub fn finish(&mut self, each: &mut dyn FnMut(Raw)) {
        self.enter_raised(None, each);
        if self.expiry.is_none() {
            self.end_interrupt(each);
        }
    }

    /// Enters an interrupt by its first event. `now` is at most the trace's time if the timer is on
    /// its clock.
    fn enter(&mut self, first: &Raw, now: Nanos, each: &mut dyn FnMut(Raw)) {
        let last = self.last.as_ref().map_or(Nanos(i64::MIN), |last| last.time);
        let time = if now > first.time { first.time } else { now.max(last) };
        each(like(first, time, What::VectorEntry { vector: Vector::LocalTimer }));
        self.implied = true;
    }

    /// Passes on softirqs raised in an interrupt that the events do not show; `now` is the time of
    /// an expiry in the same one.
    fn enter_raised(&mut self, now: Option<Nanos>, each: &mut dyn FnMut(Raw)) {
        let raised = std::mem::take(&mut self.raised);
        let Some(first) = raised.first() else { return };
        self.enter(first, now.unwrap_or(first.time), each);
        for event in raised {
            each(event.clone());
            self.last = Some(event);
        }
        if now.is_none() {
            self.end_interrupt(each);
        }
    }

    /// Puts a thread in the queue of the CPU that wakes it, if the next event does not move it to
    /// another one.
    fn queue(&mut self, next: &Raw, due: bool, each: &mut dyn FnMut(Raw)) {
        let Some((task, waking)) = self.woken.take() else { return };
        if !matches!(next.what, What::Migrate { pid, .. } if pid == task.pid) {
            let event = like(&waking, waking.time, What::Wakeup { task, target: waking.cpu });
            let event = Raw { context: waking.context.with_need_resched(due), ..event };
            each(event.clone());
            self.last = Some(event);
        }
    }

    /// Ends a function whose end was not recorded with its last event.
    fn end_function(&mut self, due: bool, each: &mut dyn FnMut(Raw)) {
        let (Some(expiry), Some(last)) = (self.expiry.take(), &self.last) else { return };
        if let What::TimerEntry { timer, .. } = expiry.what {
            // A waking holds locks, which the interrupted code does not.
            let (preempt, context) = (expiry.preempt, last.context.with_need_resched(due));
            let end = Raw { preempt, context, ..like(last, last.time, What::TimerExit { timer }) };
            each(end.clone());
            self.last = Some(end);
        }
    }

    /// Ends an interrupt without events, and the idle state that it interrupted, with the last
    /// event.
    fn end_interrupt(&mut self, each: &mut dyn FnMut(Raw)) {
        if let Some(last) = self.last.clone().filter(|_| std::mem::take(&mut self.implied)) {
            each(like(&last, last.time, What::VectorExit { vector: Vector::LocalTimer }));
            self.wake_up(&last, each);
        }
    }

    fn wake_up(&mut self, by: &Raw, each: &mut dyn FnMut(Raw)) {
        let idles = matches!(by.what, What::Idle { .. });
        if std::mem::take(&mut self.asleep) && by.pid == 0 && !idles {
            each(like(by, by.time, What::Idle { state: None }));
        }
    }
}

fn like(event: &Raw, time: Nanos, what: What<u64>) -> Raw {
    Raw { time, what, ..event.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Context;
    use model::units::Cpu;

    const TIMER: Vector = Vector::LocalTimer;
    /// In a hard interrupt, with interrupts off, marked for rescheduling.
    const MARKED: u8 = 0x0d;

    fn at(time: i64, pid: i32, context: u8, what: What<u64>) -> Raw {
        Raw { time: Nanos(time), cpu: Cpu(1), pid, context: Context(context), preempt: 0, what }
    }

    fn hard(time: i64, pid: i32, what: What<u64>) -> Raw {
        at(time, pid, 0x09, what)
    }

    fn expiry(timer: u64, now: i64) -> What<u64> {
        What::TimerEntry { timer, function: 7, now: Nanos(now) }
    }

    fn task(pid: i32) -> Task {
        Task { pid, ..Task::default() }
    }

    fn queued(pid: i32) -> What<u64> {
        What::Wakeup { task: task(pid), target: Cpu(1) }
    }

    fn completed(events: &[Raw]) -> Vec<Raw> {
        let (mut implied, mut all) = (ImpliedEvents::default(), Vec::new());
        events.iter().for_each(|event| implied.complete(event.clone(), &mut |event| all.push(event)));
        implied.finish(&mut |event| all.push(event));
        all
    }

    /// A CPU that idles, the expiry of timer 5, whose end is not recorded, and the switch.
    fn wakeup(stack: bool) -> Vec<Raw> {
        let mut events = vec![at(100, 0, 1, What::Idle { state: Some(1) }), hard(203, 0, expiry(5, 201))];
        events.extend(stack.then(|| hard(204, 0, What::Stack { frames: Vec::new(), enables: None })));
        events.push(Raw { preempt: 2, ..hard(205, 0, What::Waking { task: task(50), target: Cpu(1) }) });
        events.push(at(209, 0, 1, What::Switch { prev: task(0), state: 0, next: task(50) }));
        events
    }

    #[test]
    fn a_wakeup_from_idle_is_as_if_all_were_recorded() {
        for stack in [false, true] {
            let mut expected = wakeup(stack);
            let end = expected.len() - 1;
            let ends = [
                What::TimerExit { timer: 5 },
                What::VectorExit { vector: TIMER },
                What::Idle { state: None },
            ];
            expected.splice(end..end, ends.map(|what| at(205, 0, MARKED, what)));
            expected.insert(end, Raw { preempt: 2, ..at(205, 0, MARKED, queued(50)) });
            expected.insert(1, hard(201, 0, What::VectorEntry { vector: TIMER }));
            assert_eq!(completed(&wakeup(stack)), expected);
        }
    }

    #[test]
    fn a_function_has_its_recorded_end_and_the_next_timer_the_same_interrupt() {
        let exit = |timer| What::TimerExit { timer };
        let events = [
            hard(103, 60, expiry(8, 101)),
            hard(20_103, 60, exit(8)),
            hard(20_104, 60, expiry(5, 101)),
            hard(20_105, 60, What::Waking { task: task(50), target: Cpu(1) }),
            // The next interrupt, by a timer on another clock.
            hard(24_103, 60, expiry(9, i64::MAX)),
            hard(24_104, 60, exit(9)),
            at(24_200, 60, 1, What::Switch { prev: task(60), state: 0, next: task(50) }),
        ];
        let (enter, leave) = (What::VectorEntry { vector: TIMER }, What::VectorExit { vector: TIMER });
        let mut expected = events.to_vec();
        expected.insert(6, hard(24_104, 60, leave.clone()));
        expected.insert(4, hard(24_103, 60, enter.clone()));
        expected.splice(4..4, [queued(50), exit(5), leave].map(|what| hard(20_105, 60, what)));
        expected.insert(0, hard(101, 60, enter));
        assert_eq!(completed(&events), expected);
    }

    #[test]
    fn a_thread_is_queued_once_and_where_it_was_put() {
        let waking = |target| hard(205, 60, What::Waking { task: task(50), target: Cpu(target) });
        let moved = hard(206, 60, What::Migrate { pid: 50, from: Cpu(1), to: Cpu(0) });
        let count = |has_wakeups, events: &[Raw]| {
            let (mut implied, mut all) = (ImpliedEvents::new(has_wakeups), 0);
            events.iter().for_each(|event| implied.complete(event.clone(), &mut |_| all += 1));
            all - events.len()
        };
        let ends = at(209, 60, 1, What::Exit);
        assert_eq!(count(false, &[waking(1), ends.clone()]), 1);
        assert_eq!(count(true, &[waking(1), ends.clone()]), 0);
        assert_eq!(count(false, &[waking(0), ends.clone()]), 0);
        assert_eq!(count(false, &[waking(1), moved, ends]), 0);
    }

    #[test]
    fn softirqs_of_soft_timers_are_raised_within_the_interrupt() {
        let (enter, leave) = (What::VectorEntry { vector: TIMER }, What::VectorExit { vector: TIMER });
        let raise = |time| hard(time, 60, What::SoftirqRaise { vec: 8 });
        let alone = [raise(103), at(300, 60, 1, What::Exit)];
        let mut expected = alone.to_vec();
        expected.insert(1, hard(103, 60, leave));
        expected.insert(0, hard(103, 60, enter.clone()));
        assert_eq!(completed(&alone), expected);
        assert_eq!(completed(&alone[..1]), expected[..3]);
        let before = [raise(103), hard(107, 60, expiry(8, 101)), hard(109, 60, What::TimerExit { timer: 8 })];
        let passed = completed(&before);
        assert_eq!((&passed[0], &passed[1..4]), (&hard(101, 60, enter), &before[..]));
        assert_eq!(passed.len(), 5);
    }

    #[test]
    fn recorded_interrupts_are_not_repeated() {
        let enter = What::VectorEntry { vector: Vector::Reschedule };
        let irq = |what| hard(104, 60, what);
        let name = crate::fixed_str::FixedStr::from("timer");
        let events = [
            hard(101, 0, enter),
            hard(102, 0, What::VectorExit { vector: Vector::Reschedule }),
            at(103, 0, 1, What::Switch { prev: task(0), state: 0, next: task(60) }),
            irq(What::IrqEntry { irq: 0, name }),
            irq(expiry(5, 100)),
            irq(What::TimerExit { timer: 5 }),
            irq(What::IrqExit { irq: 0 }),
            at(109, 60, 1, What::Idle { state: None }),
        ];
        assert_eq!(completed(&events), events);
        let mut asleep = vec![at(100, 0, 1, What::Idle { state: Some(1) })];
        asleep.extend(events.clone());
        let mut expected = asleep.clone();
        expected.insert(3, hard(102, 0, What::Idle { state: None }));
        assert_eq!(completed(&asleep), expected);
    }
}
