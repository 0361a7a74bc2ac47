//! The input of a culprit rule: a slice of a spike, and its run.

use super::names;
use model::run;
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use trace::event::is_cpu_timer;

/// The machine and the run that spikes belong to.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    pub host: &'a run::Host,
    /// Integrity entries of the run.
    pub integrity: &'a [run::Integrity],
    pub cpus: &'a [Cpu],
    /// Period of the measuring threads.
    pub interval: Option<Nanos>,
    /// Seconds in which the hypervisor took time, by its own count; empty if not known.
    pub steal: &'a [StealInterval],
}

impl<'a> RunContext<'a> {
    /// Context of a run in progress: the machine alone.
    pub fn of_machine(host: &'a run::Host) -> RunContext<'a> {
        RunContext { host, integrity: &[], cpus: &[], interval: None, steal: &[] }
    }

    /// Context of a finished run, or of its last checkpoint, without the hypervisor's count.
    pub fn of_run(run: &'a run::Run) -> RunContext<'a> {
        let interval = run.plan.interval_ns;
        RunContext { host: &run.host, integrity: &run.integrity, cpus: &run.plan.cpus, interval, steal: &[] }
    }
}

/// A stretch, usually of a second, in which the hypervisor took time from a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StealInterval {
    pub cpu: Cpu,
    pub from: Nanos,
    pub to: Nanos,
    /// Stolen time, a multiple of 10 ms.
    pub ns: Nanos,
}

impl StealInterval {
    /// Steal of a second's record; `None` if no time was stolen, or steal is not counted.
    pub fn of(block: &run::Block) -> Option<StealInterval> {
        let ns = block.steal_ns.filter(|ns| ns.0 > 0)?;
        let length = block.span_ns.unwrap_or(Nanos::SECOND).0.max(0);
        let to = Nanos(block.mono_ns.0.saturating_add(length));
        Some(StealInterval { cpu: block.cpu, from: block.mono_ns, to, ns })
    }
}

/// A slice as a rule sees it, while the run is in progress.
pub struct SliceContext<'a> {
    pub spike: &'a run::Spike,
    pub slice: &'a run::Slice,
    /// The machine; a run in progress provides nothing else.
    pub run: &'a RunContext<'a>,
}

impl SliceContext<'_> {
    /// The function, if it is one of these.
    pub fn function_in(&self, names: &[&str]) -> Option<&str> {
        let function = self.slice.who.function.as_str();
        names.contains(&function).then_some(function)
    }

    /// True if the slice belongs to the thread that woke late.
    pub fn is_victim(&self) -> bool {
        self.slice.who.pid != 0 && self.slice.who.pid == self.spike.victim.pid
    }

    /// Words for a slice of another thread of higher or equal priority; none for other slices.
    pub fn higher_priority_thread(&self) -> Option<String> {
        let (who, victim) = (&self.slice.who, &self.spike.victim);
        let first = !who.comm.is_empty() && !self.is_victim() && who.prio <= victim.prio;
        first.then(|| {
            format!("{} ran before {}", names::thread_with_priority(who), names::thread_with_priority(victim))
        })
    }

    /// Function of a timer that expired, if the slice is its time.
    pub fn timer_function(&self) -> Option<&str> {
        let who = &self.slice.who;
        let of_timers = matches!(&*who.irq, "HRTIMER" | "TIMER" | "local_timer") || is_cpu_timer(&who.irq);
        Some(who.function.as_str()).filter(|function| of_timers && !function.is_empty())
    }

    /// Work item that a kernel worker was running, if it is one of these: by the stack if it was
    /// not preempted.
    pub fn work_item_in(&self, names: &[&str]) -> Option<&str> {
        let worker = self.slice.who.comm.starts_with("kworker/");
        let unpreempted = worker && self.slice.kind == SliceKind::PreemptOff;
        if unpreempted { self.stack_function_in(names) } else { self.function_in(names) }
    }

    /// First of these functions that the CPU was in, by the slice's function and stack.
    pub fn stack_function_in(&self, names: &[&str]) -> Option<&str> {
        let frames = std::iter::once(&self.slice.who.function).chain(&self.slice.stack);
        frames.map(|frame| names::bare_function(frame)).find(|frame| names.contains(frame))
    }
}
