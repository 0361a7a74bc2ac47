//! Stretches of time of one CPU from its events, each with its top context: hard interrupt over
//! softirq over thread.
//!
//! The softirqs and work items of a thread are saved with it at a switch, because softirqs can be
//! preempted on PREEMPT_RT. If an event contradicts an earlier one, events are missing: the time in
//! between is [`RunningContext::Unknown`]. Non-maskable interrupts are recorded at their end, and
//! the caller overlays them.
//!
//! Sources: kernel/softirq.c, include/linux/hardirq.h, arch/x86/include/asm/idtentry.h.

use std::collections::HashMap;

use crate::event::{Named, Vector, What};
use crate::fixed_str::FixedStr;

/// Limit of nested contexts, which the kernel never reaches.
const DEPTH: usize = 16;

/// Time of one CPU between two of its events.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch<'w> {
    pub start: i64,
    pub end: i64,
    pub pid: Option<i32>,
    /// Time since which the thread is current; `i64::MIN` if since before the first event.
    pub since: i64,
    /// Idle state while the CPU is in it.
    pub idle: Option<u32>,
    pub top: RunningContext<'w>,
}

/// Context that time belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunningContext<'w> {
    Unknown,
    Hard(Hard<'w>),
    /// A softirq, with the function of its running timer or tasklet.
    Soft {
        vec: u8,
        function: &'w str,
    },
    /// A function requested by another CPU, outside of an interrupt: before the CPU idles.
    Call {
        function: &'w str,
        entry: i64,
    },
    /// A work item of a workqueue.
    Work(&'w str),
    /// The thread itself, in user or kernel mode.
    Thread,
}

/// Properties of a hard interrupt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hard<'w> {
    pub entry: i64,
    /// Vector, on x86.
    pub vector: Option<Vector>,
    pub handler: Option<FixedStr<24>>,
    /// Reason for which another CPU sent it, on architectures other than x86.
    pub reason: Option<&'w str>,
    /// Function of the timer that expires.
    pub timer: Option<&'w str>,
    /// Function requested by another CPU, and its start.
    pub call: Option<(&'w str, i64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Frame<'w> {
    Vector(Vector),
    Handler(i32, FixedStr<24>),
    Reason(&'w str),
    Timer(u64, &'w str),
    Call(&'w str),
    Soft(u8),
    Wheel(&'w str),
    Tasklet(&'w str),
    Work(&'w str),
}

/// Frames with the times of their entry, outermost first.
type Frames<'w> = Vec<(i64, Frame<'w>)>;

#[derive(Default)]
struct Machine<'w> {
    hard: Frames<'w>,
    threads: HashMap<i32, Frames<'w>>,
    pid: Option<i32>,
    since: Option<i64>,
    idle: Option<u32>,
    last: Option<i64>,
}

/// Stretches of one CPU from its first event to `until`; its events are in order of time.
pub(super) fn stretches<'w>(events: &[&'w Named], until: i64) -> Vec<Stretch<'w>> {
    let mut machine = Machine::default();
    let mut stretches = Vec::with_capacity(events.len() + 1);
    for event in events {
        let before = machine.stretch(event.time.0);
        let whole = machine.agree(event);
        if let Some(mut stretch) = before {
            if !whole {
                stretch.top = RunningContext::Unknown;
            }
            stretches.push(stretch);
        }
        machine.last = Some(event.time.0);
        machine.step(event);
    }
    stretches.extend(machine.stretch(until));
    stretches
}

impl<'w> Machine<'w> {
    /// Stretch from the last event to this time, if time passed.
    fn stretch(&self, end: i64) -> Option<Stretch<'w>> {
        let start = self.last.filter(|&start| start < end)?;
        let since = self.since.unwrap_or(i64::MIN);
        Some(Stretch { start, end, pid: self.pid, since, idle: self.idle, top: self.top() })
    }

    fn top(&self) -> RunningContext<'w> {
        if !self.hard.is_empty() {
            return RunningContext::Hard(hard(&self.hard));
        }
        let frames = self.pid.and_then(|pid| self.threads.get(&pid)).map_or(&[][..], Vec::as_slice);
        let function = |frames: &[(i64, Frame<'w>)]| match frames.last() {
            Some(&(_, Frame::Wheel(function) | Frame::Tasklet(function) | Frame::Timer(_, function))) => {
                function
            }
            _ => "",
        };
        let innermost = frames.iter().rev().find_map(|&(entry, frame)| match frame {
            Frame::Soft(vec) => Some(RunningContext::Soft { vec, function: function(frames) }),
            Frame::Call(function) => Some(RunningContext::Call { function, entry }),
            Frame::Work(function) => Some(RunningContext::Work(function)),
            _ => None,
        });
        innermost.unwrap_or(RunningContext::Thread)
    }

    /// Aligns the state with the context that the event records; false if they contradict each
    /// other.
    fn agree(&mut self, event: &Named) -> bool {
        let context = event.context;
        if context.nmi() || matches!(event.what, What::Stack { .. } | What::Nmi { .. }) {
            return true;
        }
        let mut whole = true;
        if self.pid != Some(event.pid) {
            whole = self.pid.is_none();
            self.since = self.last.filter(|_| !whole).map(|_| event.time.0);
            self.pid = Some(event.pid);
            self.hard.clear();
            self.idle = self.idle.filter(|_| event.pid == 0);
        }
        // A vector does not enter another interrupt, nor does a thread run in one: its exit was
        // missed. On architectures other than x86 the event of an IPI is inside that of its
        // handler.
        let enters = matches!(event.what, What::VectorEntry { .. });
        if !self.hard.is_empty() && (enters || !context.hard_irq()) {
            self.hard.clear();
            whole = false;
        }
        if !context.hard_irq() && !context.soft_irq() && !is_softirq(&event.what) {
            let frames = self.threads.entry(event.pid).or_default();
            if let Some(at) = frames.iter().position(|(_, frame)| matches!(frame, Frame::Soft(_))) {
                frames.truncate(at);
                whole = false;
            }
        }
        whole
    }

    fn step(&mut self, event: &'w Named) {
        let (time, hard) = (event.time.0, event.context.hard_irq());
        match &event.what {
            What::Switch { next, .. } => {
                self.hard.clear();
                self.pid = Some(next.pid);
                self.since = Some(time);
                self.idle = None;
            }
            What::VectorEntry { vector } => self.enter(true, time, Frame::Vector(*vector)),
            What::VectorExit { vector } => self.leave(|frame| frame == Frame::Vector(*vector)),
            What::IrqEntry { irq, name } => self.enter(true, time, Frame::Handler(*irq, *name)),
            What::IrqExit { irq } => {
                self.leave(|frame| matches!(frame, Frame::Handler(open, _) if open == *irq))
            }
            What::IpiEntry { reason } => self.enter(true, time, Frame::Reason(reason)),
            What::IpiExit { .. } => self.leave(|frame| matches!(frame, Frame::Reason(_))),
            What::TimerEntry { timer, function, .. } => {
                self.enter(hard, time, Frame::Timer(*timer, function))
            }
            What::TimerExit { timer } => {
                self.leave(|frame| matches!(frame, Frame::Timer(open, _) if open == *timer));
            }
            What::CallEntry { function } => self.enter(hard, time, Frame::Call(function)),
            What::CallExit { function } => self.leave(|frame| frame == Frame::Call(function)),
            What::SoftirqEntry { vec } => {
                // A softirq does not enter another one: its exit was missed.
                self.leave(|frame| matches!(frame, Frame::Soft(_)));
                self.enter(false, time, Frame::Soft(*vec));
            }
            What::SoftirqExit { vec } => self.leave(|frame| frame == Frame::Soft(*vec)),
            What::WheelEntry { function } => self.enter(false, time, Frame::Wheel(function)),
            What::WheelExit => self.leave(|frame| matches!(frame, Frame::Wheel(_))),
            What::TaskletEntry { function } => self.enter(false, time, Frame::Tasklet(function)),
            What::TaskletExit => self.leave(|frame| matches!(frame, Frame::Tasklet(_))),
            What::WorkEntry { function } => {
                self.leave(|frame| matches!(frame, Frame::Work(_)));
                self.enter(false, time, Frame::Work(function));
            }
            What::WorkExit { .. } => self.leave(|frame| matches!(frame, Frame::Work(_))),
            What::Idle { state } => self.idle = *state,
            _ => {}
        }
    }

    fn enter(&mut self, hard: bool, time: i64, frame: Frame<'w>) {
        let frames = match (hard, self.pid) {
            (false, Some(pid)) => self.threads.entry(pid).or_default(),
            _ => &mut self.hard,
        };
        if frames.len() < DEPTH {
            frames.push((time, frame));
        }
    }

    /// Closes the innermost such frame with all frames in it, if there is one.
    fn leave(&mut self, is: impl Fn(Frame<'w>) -> bool) {
        let frames = match self.pid.and_then(|pid| self.threads.get_mut(&pid)) {
            Some(frames) if !self.hard.iter().any(|&(_, frame)| is(frame)) => frames,
            _ => &mut self.hard,
        };
        if let Some(at) = frames.iter().rposition(|&(_, frame)| is(frame)) {
            frames.truncate(at);
        }
    }
}

fn is_softirq(what: &What<String>) -> bool {
    matches!(what, What::SoftirqEntry { .. } | What::SoftirqExit { .. } | What::SoftirqRaise { .. })
}

fn hard<'w>(frames: &[(i64, Frame<'w>)]) -> Hard<'w> {
    let mut hard = Hard { entry: frames.first().map_or(0, |frame| frame.0), ..Hard::default() };
    for &(time, frame) in frames {
        match frame {
            Frame::Vector(vector) => hard.vector = Some(vector),
            Frame::Handler(_, name) => hard.handler = Some(name),
            Frame::Reason(reason) => hard.reason = Some(reason),
            Frame::Timer(_, function) => hard.timer = Some(function),
            Frame::Call(function) => hard.call = Some((function, time)),
            _ => {}
        }
    }
    hard
}
