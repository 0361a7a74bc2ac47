//! Event source for tests, with events in memory: hunts run from it without tracefs.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Collected, EventSource, RecordingLevel, WantedSpan};
use crate::hunt::explainer::Explainer;
use crate::hunt::scope::Scope;
use bundle::write::BundleWriter;
use model::error::Result;
use model::run;
use model::units::{Cpu, Nanos};
use trace::event::{Address, Context, Event, Raw, Task, What};
use trace::held::{EventCoverage, HeldEvents};
use trace::names::Names;
use trace::timeline::fixture;

/// An event outside interrupts.
pub fn event(at: i64, cpu: u32, pid: i32, what: What<Address>) -> Raw {
    Event { time: Nanos(at), cpu: Cpu(cpu), pid, context: Context(0), preempt: 0, what }
}

/// A thread with this ID, real-time unless it is the idle thread.
pub fn task(pid: i32) -> Task {
    Task { pid, prio: if pid == 0 { 120 } else { 19 }, ..Task::default() }
}

/// A thread goes to sleep, and another runs.
pub fn switch(at: i64, cpu: u32, from: i32, to: i32) -> Raw {
    event(at, cpu, from, What::Switch { prev: task(from), state: 1, next: task(to) })
}

/// A thread is woken.
pub fn waking(at: i64, cpu: u32, by: i32, woken: i32) -> Raw {
    event(at, cpu, by, What::Waking { task: task(woken), target: Cpu(cpu) })
}

/// An empty source, an explainer that owns it, and the run that they belong to.
pub fn explainer(cpus: &[u32], bundle: &std::path::Path) -> (Rc<RefCell<Script>>, Explainer, run::Run) {
    let script = Rc::new(RefCell::new(Script::default()));
    let run = run::Run { command: "hunt".into(), host: fixture::host(), ..run::Run::default() };
    let mut writer = BundleWriter::create(bundle, cpus.len()).expect("a bundle");
    let events = writer.events().expect("a place for windows");
    let names = Names::new(None, "", "x86_64", None);
    let explainer = Explainer::new(Box::new(Memory::new(&script, cpus)), names, &run, events, 1 << 20);
    (script, explainer, run)
}

/// Access of a test to the source while a hunt owns it.
#[derive(Default)]
pub struct Script {
    /// In order of time.
    pub events: Vec<Raw>,
    /// Time before which events were lost.
    pub lost_before: Option<Nanos>,
    /// Levels that were armed, in order.
    pub levels: Vec<RecordingLevel>,
    pub stacks_added: u64,
    pub syscalls_ended: bool,
    /// Threads that it was to record for, in order.
    pub threads: Vec<String>,
    pub buffer_kib: u64,
}

/// Source with events of these CPUs in memory.
pub struct Memory {
    pub script: Rc<RefCell<Script>>,
    pub cpus: Vec<Cpu>,
    shown: usize,
}

impl Memory {
    pub fn new(script: &Rc<RefCell<Script>>, cpus: &[u32]) -> Memory {
        Memory { script: script.clone(), cpus: cpus.iter().map(|&cpu| Cpu(cpu)).collect(), shown: 0 }
    }
}

impl HeldEvents for Memory {
    fn cpus(&self) -> Vec<Cpu> {
        self.cpus.clone()
    }

    fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage {
        let script = self.script.borrow();
        let own: Vec<&Raw> = script.events.iter().filter(|event| event.cpu == cpu).collect();
        let switch = |event: &&Raw| event.time < from && matches!(event.what, What::Switch { .. });
        let first = own.iter().rposition(switch).unwrap_or(0);
        own[first..].iter().filter(|event| event.time <= to).for_each(|&event| each(event.clone()));
        EventCoverage::default()
    }

    fn oldest(&self, cpu: Cpu) -> Option<Nanos> {
        self.script.borrow().events.iter().find(|event| event.cpu == cpu).map(|event| event.time)
    }

    fn lacks_older(&self, _cpu: Cpu) -> bool {
        self.script.borrow().lost_before.is_some()
    }
}

impl EventSource for Memory {
    fn arm(&mut self, level: RecordingLevel, _scope: &Scope) -> Result<()> {
        self.script.borrow_mut().levels.push(level);
        self.script.borrow_mut().events.clear();
        self.shown = 0;
        Ok(())
    }

    fn set_threads(&mut self, scope: &Scope) {
        self.script.borrow_mut().threads.extend(scope.threads("pid"));
    }

    fn end_syscalls(&mut self) {
        self.script.borrow_mut().syscalls_ended = true;
    }

    fn add_stacks(&mut self, _scope: &Scope) {
        self.script.borrow_mut().stacks_added += 1;
    }

    fn resize(&mut self, kib: u64) {
        self.script.borrow_mut().buffer_kib = kib;
    }

    fn set_read_limit(&mut self, _until: Nanos) {}

    fn collect(&mut self, _span: WantedSpan) {}

    fn collect_each(&mut self, each: &mut dyn FnMut(Raw)) -> Collected {
        let script = self.script.borrow();
        script.events[self.shown..].iter().cloned().for_each(each);
        self.shown = script.events.len();
        Collected { lost_before: script.lost_before, complete_until: Nanos(i64::MAX) }
    }

    fn each_held(&self, each: &mut dyn FnMut(Raw)) {
        self.script.borrow().events.iter().cloned().for_each(each);
    }

    fn busiest_rate(&self, _elapsed: Nanos) -> u64 {
        1 << 20
    }

    fn overwritten(&self) -> u64 {
        u64::from(self.script.borrow().lost_before.is_some())
    }

    fn account(&mut self, into: &mut run::Recorder) {
        into.events = vec!["sched:sched_switch".to_owned()];
        into.buffer_kib = self.script.borrow().buffer_kib;
        into.notes.clear();
    }
}
