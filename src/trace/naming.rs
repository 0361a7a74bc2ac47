//! From addresses to names: an event as decoded becomes one that may be kept.

use super::event::{Event, What};

impl<N> Event<N> {
    /// The same event with its addresses named, and its timers and locks numbered.
    pub fn named<M>(self, names: &mut impl Naming<N, M>) -> Event<M> {
        Event {
            time: self.time,
            cpu: self.cpu,
            pid: self.pid,
            context: self.context,
            preempt: self.preempt,
            what: self.what.named(names),
        }
    }
}

/// How addresses become names.
pub trait Naming<N, M> {
    /// The function that an address lies in.
    fn function(&mut self, place: N) -> M;
    /// A number for an object of the kernel, the same within a window.
    fn object(&mut self, address: u64) -> u64;
    /// The frames of a stack, and which of them an interrupt stopped as interrupts came on again.
    fn stack(&mut self, frames: Vec<N>) -> (Vec<M>, Option<usize>);
}

impl<N> What<N> {
    fn named<M>(self, by: &mut impl Naming<N, M>) -> What<M> {
        use What::*;
        match self {
            Switch { prev, state, next } => Switch { prev, state, next },
            Waking { task, target } => Waking { task, target },
            Wakeup { task, target } => Wakeup { task, target },
            Migrate { pid, from, to } => Migrate { pid, from, to },
            Inherit { pid, old, new } => Inherit { pid, old, new },
            IrqEntry { irq, name } => IrqEntry { irq, name },
            IrqExit { irq } => IrqExit { irq },
            SoftirqRaise { vec } => SoftirqRaise { vec },
            SoftirqEntry { vec } => SoftirqEntry { vec },
            SoftirqExit { vec } => SoftirqExit { vec },
            VectorEntry { vector } => VectorEntry { vector },
            VectorExit { vector } => VectorExit { vector },
            IpiEntry { reason } => IpiEntry { reason: by.function(reason) },
            IpiExit { reason } => IpiExit { reason: by.function(reason) },
            IpiSend { targets, callsite, callback } => {
                IpiSend { targets, callsite: by.function(callsite), callback: by.function(callback) }
            }
            CallQueue { target, callsite, function } => {
                CallQueue { target, callsite: by.function(callsite), function: by.function(function) }
            }
            CallEntry { function } => CallEntry { function: by.function(function) },
            CallExit { function } => CallExit { function: by.function(function) },
            TimerStart { timer, function, expires } => {
                TimerStart { timer: by.object(timer), function: by.function(function), expires }
            }
            TimerEntry { timer, function, now } => {
                TimerEntry { timer: by.object(timer), function: by.function(function), now }
            }
            TimerExit { timer } => TimerExit { timer: by.object(timer) },
            WheelEntry { function } => WheelEntry { function: by.function(function) },
            WheelExit => WheelExit,
            Nmi { handler, ns } => Nmi { handler: by.function(handler), ns },
            WorkEntry { function } => WorkEntry { function: by.function(function) },
            WorkExit { function } => WorkExit { function: by.function(function) },
            Idle { state } => Idle { state },
            Frequency { of, khz } => Frequency { of, khz },
            Fault { user } => Fault { user },
            ContentionBegin { lock, flags } => ContentionBegin { lock: by.object(lock), flags },
            ContentionEnd { lock } => ContentionEnd { lock: by.object(lock) },
            Console => Console,
            Toggle { irqs, off, caller } => Toggle { irqs, off, caller: by.function(caller) },
            SyscallEntry { id, args } => SyscallEntry { id, args },
            SyscallExit { id } => SyscallExit { id },
            Stack { frames, .. } => {
                let (frames, enables) = by.stack(frames);
                Stack { frames, enables }
            }
        }
    }
}
