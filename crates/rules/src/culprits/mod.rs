//! The culprits: one file per way in which time is lost, and the list of them all.
//!
//! A knob is a setting that can be judged; a culprit is a pattern of events. Its record holds the words (the page in
//! `docs/rules`, the culprit table of a hunt), the function that knows its slices, and one spike each in which it
//! fires and in which it stays silent. A wrong name is worse than none: a rule goes by the exact names of functions,
//! threads and interrupts that the kernel's source has, and what no rule knows is ranked by its own name.
//! `CONTRIBUTING.md` says in four steps how to add one.

#[cfg(test)]
pub(crate) mod fixture;
mod group;
mod held;
mod near;
mod numbers;
pub mod patterns;
pub mod sources;
pub mod stolen;
pub mod subsystems;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod who;
#[cfg(test)]
mod windows;

mod clock_set;
mod clocksource_check;
mod code_patching;
mod console_output;
mod contended_lock;
mod counter_access;
mod counter_interrupt;
mod cpu_stopper;
mod device_interrupt;
mod edac_poll;
mod expedited_grace_period;
mod fair_neighbour;
mod fair_server_turn;
mod firmware_interrupt;
mod frequency_change;
mod hypervisor_steal;
mod idle_exit;
mod inherited_priority;
mod injected_idle;
mod inverted_priority;
mod irq_thread;
mod irqs_off_section;
mod load_balancing;
mod machine_check_poll;
mod memory_barrier_call;
mod network_softirq;
mod own_work;
mod page_fault;
mod preempt_off_section;
mod rcu_softirq;
mod rcu_thread;
mod realtime_thread;
mod register_access;
mod remote_call;
mod rt_throttled;
mod slab_statistics;
mod softirq_thread;
mod softirq_work;
mod starved_timer_thread;
mod thermal_interrupt;
mod timer_function;
mod tlb_flush;
mod unpreempted_kernel;
mod vmstat_work;
mod work_item;

use super::{Evidence, Slice, Source};
use model::keyword::Word;
use model::run;
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use patterns::Patterns;

/// A way in which time is taken from a task, told by events.
pub struct Culprit {
    /// Names what is found, never the cure, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// A few words, lower case, no full stop: `a section with interrupts off`.
    pub title: &'static str,
    /// What it looks like in a timeline.
    pub looks: &'static str,
    /// How it is told apart from its neighbours, and what cannot be seen.
    pub tell: &'static str,
    /// What to do, without full stop.
    pub remedy: &'static str,
    /// The kinds of slices that it may know.
    pub kinds: &'static [Slice],
    /// Where it is written, most authoritative first.
    pub sources: &'static [Source],
    /// How it is known that it costs time.
    pub evidence: Evidence,
    /// Knobs that cure it; the knobs' pages link back.
    pub cured_by: &'static [&'static str],
    /// What provokes it, or why nothing can.
    pub provoke: &'static str,
    /// What makes two culprits of one rule.
    pub apart: Apart,
    /// Whether it goes by the kind of slice alone, and is asked only if no rule knows the slice by name.
    pub general: bool,
    /// What matched, for people, without times; nothing if it is not this.
    pub matches: fn(&Sight) -> Option<String>,
    /// Spikes that show what it does.
    pub examples: Examples,
}

impl Culprit {
    /// The fields that a record does not name; a record without words, sources or a match fails the tests.
    pub const DEFAULT: Culprit = Culprit {
        id: "",
        title: "",
        looks: "",
        tell: "",
        remedy: "",
        kinds: &[],
        sources: &[],
        evidence: Evidence::Practice,
        cured_by: &[],
        provoke: "",
        apart: Apart::Never,
        general: false,
        matches: |_| None,
        examples: Examples { fires: "", silent: "" },
    };

    /// Whether it may know slices of this kind.
    pub fn may_know(&self, kind: &Word<SliceKind>) -> bool {
        kind.known().is_some_and(|kind| self.kinds.contains(&kind))
    }
}

/// What makes two culprits of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Nothing: there is one.
    Never,
    /// Another function.
    Function,
    /// Another thread, by name.
    Thread,
    /// Another interrupt, softirq or idle state, by name.
    Irq,
}

/// Spikes that show what a rule does, in lines of `word key=value ...`.
///
/// `victim comm= prio= cpu=`, `host virtual= preempt= machine=`, `integrity kind= cpu= detail=`, `stolen cpu= ns=`, a slice by its kind with
/// `ns= comm= pid= prio= function= module= irq= from= asked= inherits= stack=inner<outer`, `unexplained ns=`, and
/// `again times= every= cpus=` for the same spike over and over, on several CPUs.
pub struct Examples {
    /// In this one it fires.
    pub fires: &'static str,
    /// In this one it is silent, though it looks alike.
    pub silent: &'static str,
}

/// The machine and the run that spikes are of.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The machine.
    pub host: &'a run::Host,
    /// What stood in the way of a fair measurement.
    pub integrity: &'a [run::Integrity],
    /// The measured CPUs.
    pub cpus: &'a [Cpu],
    /// The period of the measuring threads.
    pub interval: Option<Nanos>,
    /// Seconds in which the hypervisor took time, as it counts that itself; empty where it is not known.
    pub stolen: &'a [Stolen],
}

impl<'a> About<'a> {
    /// Of a run that goes on: the machine alone.
    pub fn machine(host: &'a run::Host) -> About<'a> {
        About { host, integrity: &[], cpus: &[], interval: None, stolen: &[] }
    }

    /// Of a run that is over, or of its last checkpoint, without the hypervisor's own account.
    pub fn run(run: &'a run::Run) -> About<'a> {
        let interval = run.plan.interval_ns;
        About { host: &run.host, integrity: &run.integrity, cpus: &run.plan.cpus, interval, stolen: &[] }
    }
}

/// A stretch, usually of a second, in which the hypervisor took time from a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stolen {
    /// Which CPU.
    pub cpu: Cpu,
    /// Its begin.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// How much, in ticks of 10 ms.
    pub ns: Nanos,
}

impl Stolen {
    /// What a second's record says; nothing where no time was taken, or that is not counted.
    pub fn of(block: &run::Block) -> Option<Stolen> {
        let ns = block.steal_ns.filter(|ns| ns.0 > 0)?;
        let length = block.span_ns.unwrap_or(Nanos::SECOND).0.max(0);
        let to = Nanos(block.mono_ns.0.saturating_add(length));
        Some(Stolen { cpu: block.cpu, from: block.mono_ns, to, ns })
    }
}

/// A slice as a rule sees it. Unexplained time is seen as a slice of the kind `unexplained`.
pub struct Sight<'a> {
    /// The spike; of unexplained time only its times and its CPU.
    pub spike: &'a run::Spike,
    /// The slice.
    pub slice: &'a run::Slice,
    /// The machine and the run; of the run nothing is known while it goes on, all when unexplained time is judged.
    pub about: &'a About<'a>,
    /// What is seen over many spikes; empty while the run goes on, known when unexplained time is judged.
    pub all: &'a Patterns,
}

impl Sight<'_> {
    /// The function, if it is one of these.
    pub fn function_in(&self, names: &[&str]) -> Option<&str> {
        let function = self.slice.who.function.as_str();
        names.contains(&function).then_some(function)
    }

    /// Whether the slice is of the thread that came late.
    pub fn of_victim(&self) -> bool {
        self.slice.who.pid != 0 && self.slice.who.pid == self.spike.victim.pid
    }

    /// That another thread of higher or equal priority ran, in words.
    pub fn goes_first(&self) -> Option<String> {
        let (who, victim) = (&self.slice.who, &self.spike.victim);
        let first = !who.comm.is_empty() && !self.of_victim() && who.prio <= victim.prio;
        first.then(|| format!("{} ran before {}", who::described(who), who::described(victim)))
    }

    /// The function of a timer that expired, if it is one's time.
    pub fn timer_function(&self) -> Option<&str> {
        let who = &self.slice.who;
        let of_timers = ["HRTIMER", "TIMER", "arch_timer", "local_timer"].contains(&who.irq.as_str());
        Some(who.function.as_str()).filter(|function| of_timers && !function.is_empty())
    }

    /// The work item that a kernel worker was at, if it is one of these: by the stack where it was not preempted.
    pub fn work_in(&self, names: &[&str]) -> Option<&str> {
        let worker = self.slice.who.comm.starts_with("kworker/");
        let unpreempted = worker && self.slice.kind == Slice::PreemptOff;
        if unpreempted { self.in_stack(names) } else { self.function_in(names) }
    }

    /// The first of these functions that the CPU was in, by the slice's function and stack.
    pub fn in_stack(&self, names: &[&str]) -> Option<&str> {
        let frames = std::iter::once(&self.slice.who.function).chain(&self.slice.stack);
        frames.map(|frame| who::bare(frame)).find(|frame| names.contains(frame))
    }
}

/// Every culprit, in the alphabet's order; the first exact one that knows a slice has it, then the first general one.
pub static ALL: &[&Culprit] = &[
    &clock_set::CULPRIT,
    &clocksource_check::CULPRIT,
    &code_patching::CULPRIT,
    &console_output::CULPRIT,
    &contended_lock::CULPRIT,
    &counter_access::CULPRIT,
    &counter_interrupt::CULPRIT,
    &cpu_stopper::CULPRIT,
    &device_interrupt::CULPRIT,
    &edac_poll::CULPRIT,
    &expedited_grace_period::CULPRIT,
    &fair_neighbour::CULPRIT,
    &fair_server_turn::CULPRIT,
    &firmware_interrupt::CULPRIT,
    &frequency_change::CULPRIT,
    &hypervisor_steal::CULPRIT,
    &idle_exit::CULPRIT,
    &inherited_priority::CULPRIT,
    &injected_idle::CULPRIT,
    &inverted_priority::CULPRIT,
    &irq_thread::CULPRIT,
    &irqs_off_section::CULPRIT,
    &load_balancing::CULPRIT,
    &machine_check_poll::CULPRIT,
    &memory_barrier_call::CULPRIT,
    &network_softirq::CULPRIT,
    &own_work::CULPRIT,
    &page_fault::CULPRIT,
    &preempt_off_section::CULPRIT,
    &rcu_softirq::CULPRIT,
    &rcu_thread::CULPRIT,
    &realtime_thread::CULPRIT,
    &register_access::CULPRIT,
    &remote_call::CULPRIT,
    &rt_throttled::CULPRIT,
    &slab_statistics::CULPRIT,
    &softirq_thread::CULPRIT,
    &softirq_work::CULPRIT,
    &starved_timer_thread::CULPRIT,
    &thermal_interrupt::CULPRIT,
    &timer_function::CULPRIT,
    &tlb_flush::CULPRIT,
    &unpreempted_kernel::CULPRIT,
    &vmstat_work::CULPRIT,
    &work_item::CULPRIT,
];

/// The culprit of an id.
pub fn find(id: &str) -> Option<&'static Culprit> {
    ALL.iter().copied().find(|culprit| culprit.id == id)
}

/// The culprits that a knob cures.
pub fn cured_by(knob: &str) -> Vec<&'static Culprit> {
    ALL.iter().copied().filter(|culprit| culprit.cured_by.contains(&knob)).collect()
}

/// The rule that knows a slice, and what matched.
pub fn known(sight: &Sight) -> Option<(&'static Culprit, String)> {
    let ask = |general: bool| {
        let asked = ALL.iter().filter(|rule| rule.general == general && rule.may_know(&sight.slice.kind));
        asked.copied().find_map(|rule| (rule.matches)(sight).map(|evidence| (rule, evidence)))
    };
    ask(false).or_else(|| ask(true))
}
