//! Conversion of decoded events with addresses to events with names, which may be stored.

use super::event::{Event, What};

impl<N> Event<N> {
    /// Event with its addresses named, and its timers and locks numbered.
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

/// Naming of addresses.
pub trait Naming<N, M> {
    /// Function that contains an address.
    fn function(&mut self, place: N) -> M;
    /// Number of a kernel object, the same within a window.
    fn object(&mut self, address: u64) -> u64;
    /// Names of a stack's frames, and the one interrupted as interrupts were re-enabled.
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
            TimerArmed { function, mode } => TimerArmed { function: by.function(function), mode },
            TimerEntry { timer, function, now } => {
                TimerEntry { timer: by.object(timer), function: by.function(function), now }
            }
            TimerExit { timer } => TimerExit { timer: by.object(timer) },
            TimerStartExpired { timer } => TimerStartExpired { timer: by.object(timer) },
            TimerRearm { next, deferred } => TimerRearm { next, deferred },
            WheelEntry { function } => WheelEntry { function: by.function(function) },
            WheelExit => WheelExit,
            TaskletEntry { function } => TaskletEntry { function: by.function(function) },
            TaskletExit => TaskletExit,
            Nmi { handler, ns } => Nmi { handler: by.function(handler), ns },
            WorkEntry { function } => WorkEntry { function: by.function(function) },
            WorkExit { function } => WorkExit { function: by.function(function) },
            HotplugEntry { of, offline, function } => {
                HotplugEntry { of, offline, function: by.function(function) }
            }
            HotplugExit { of } => HotplugExit { of },
            Idle { state } => Idle { state },
            Frequency { of, khz } => Frequency { of, khz },
            Fault { user } => Fault { user },
            // Both are addresses in the program.
            FaultAt { address, instruction } => {
                FaultAt { address: by.object(address), instruction: by.object(instruction) }
            }
            MemoryLocked { write } => MemoryLocked { write },
            ContentionBegin { lock, flags } => ContentionBegin { lock: by.object(lock), flags },
            ContentionEnd { lock } => ContentionEnd { lock: by.object(lock) },
            ContendedRelease { lock } => ContendedRelease { lock: by.object(lock) },
            Suspend => Suspend,
            Fork { child } => Fork { child },
            Exec { old } => Exec { old },
            Exit => Exit,
            Console => Console,
            Mark { text } => Mark { text },
            Tracer { record } => Tracer { record },
            Toggle { irqs, off, caller } => Toggle { irqs, off, caller: by.function(caller) },
            // The first and the last are addresses in the program; between them are the operation
            // and its value.
            SyscallEntry { id, args } => SyscallEntry { id, args: [by.object(args[0]), args[1], args[2], 0] },
            SyscallExit { id } => SyscallExit { id },
            Stack { frames, .. } => {
                let (frames, enables) = by.stack(frames);
                Stack { frames, enables }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::What::*;
    use crate::event::{Context, Named, NoiseSource, Task, TracerRecord, Vector};
    use model::units::{Cpu, Nanos};

    /// Naming by the decimal form of the address.
    struct Plain;

    impl Naming<u64, String> for Plain {
        fn function(&mut self, place: u64) -> String {
            format!("f{place}")
        }

        fn object(&mut self, address: u64) -> u64 {
            address & 0xff
        }

        fn stack(&mut self, frames: Vec<u64>) -> (Vec<String>, Option<usize>) {
            (frames.iter().map(|frame| self.function(*frame)).collect(), Some(1))
        }
    }

    fn one_of_each() -> Vec<What<u64>> {
        let task = Task { comm: "a b".into(), pid: 7, prio: 120 };
        let targets = [Cpu(1), Cpu(3)].into_iter().collect();
        vec![
            Switch { prev: task, state: 256, next: Task::default() },
            Waking { task, target: Cpu(2) },
            Wakeup { task, target: Cpu(2) },
            Migrate { pid: 7, from: Cpu(0), to: Cpu(1) },
            Inherit { pid: 7, old: 120, new: 19 },
            IrqEntry { irq: -1, name: "eth0".into() },
            IrqExit { irq: 9 },
            SoftirqRaise { vec: 1 },
            SoftirqEntry { vec: 1 },
            SoftirqExit { vec: 1 },
            VectorEntry { vector: Vector::CallFunctionSingle },
            VectorExit { vector: Vector::LocalTimer },
            IpiEntry { reason: 1 },
            IpiExit { reason: 1 },
            IpiSend { targets, callsite: 2, callback: 0 },
            CallQueue { target: Cpu(1), callsite: 2, function: 3 },
            CallEntry { function: 3 },
            CallExit { function: 3 },
            TimerStart { timer: u64::MAX, function: 4, expires: Nanos(-1) },
            TimerArmed { function: 4, mode: Some(1) },
            TimerEntry { timer: 0x1ff, function: 4, now: Nanos(i64::MAX) },
            TimerExit { timer: 0x1ff },
            TimerStartExpired { timer: 0x1ff },
            TimerRearm { next: Nanos(i64::MAX), deferred: true },
            WheelEntry { function: 5 },
            WheelExit,
            TaskletEntry { function: 5 },
            TaskletExit,
            Nmi { handler: 6, ns: Nanos(9) },
            WorkEntry { function: 7 },
            WorkExit { function: 0 },
            HotplugEntry { of: Cpu(1), offline: true, function: 7 },
            HotplugExit { of: Cpu(1) },
            Idle { state: Some(2) },
            Idle { state: None },
            Frequency { of: Cpu(1), khz: 1_800_000 },
            Fault { user: true },
            FaultAt { address: 0xffff_8880_0000_0001, instruction: 0xffff_8880_0000_0001 },
            MemoryLocked { write: true },
            ContentionBegin { lock: 0xffff_8880_0000_0001, flags: 1 },
            ContentionEnd { lock: 0xffff_8880_0000_0001 },
            ContendedRelease { lock: 0xffff_8880_0000_0001 },
            Console,
            Mark { text: "hit latency threshold".into() },
            Tracer { record: TracerRecord::Noise { source: NoiseSource::Thread, ns: Nanos(9) } },
            Tracer { record: TracerRecord::TimerLatency { activation: 7, context: 1, ns: Nanos(9) } },
            Toggle { irqs: true, off: false, caller: 8 },
            SyscallEntry { id: 202, args: [0xffff_8880_0000_0001, 1, 2, 0xffff_8880_0000_0001] },
            SyscallExit { id: 202 },
            Stack { frames: vec![1, 2], enables: None },
        ]
    }

    #[test]
    fn each_event_comes_back_from_a_bundle_as_it_was_and_holds_no_address() {
        for what in one_of_each() {
            let event = Event { time: Nanos(5), cpu: Cpu(1), pid: 3, context: Context(9), preempt: 2, what };
            let named: Named = event.named(&mut Plain);
            let line = serde_json::to_string(&named).expect("written");
            assert_eq!(serde_json::from_str::<Named>(&line).expect(&line), named, "{line}");
            assert!(!line.contains("ffff8880") && !line.contains("18446612682070"), "{line}");
        }
    }
}
