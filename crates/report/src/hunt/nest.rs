//! Events of a window as nested stretches per CPU, from entry to exit, for the landmarks and for
//! Perfetto. The lanes of the pictures are flat and come from the timeline.
//!
//! Entries without an exit end with the window, exits without an entry begin with it. On PREEMPT_RT
//! a softirq runs in a thread and is switched away with it: its stretch ends at the switch, and
//! resumes where the thread does.

use std::collections::BTreeMap;

use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use trace::event::{Named, Task, What};
use trace::timeline::softirq;
use trace::window::Window;

/// Limit of nested contexts: NMI, interrupt, softirq, work, each with functions in it.
const DEEPEST: usize = 16;

/// Contexts of a CPU, from the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NestContext {
    Idle,
    Thread,
    Softirq,
    Irq,
    Nmi,
    /// Function called in one of these: a timer's, a work item's, another CPU's.
    Function,
}

/// Stretch of one CPU's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub start: Nanos,
    pub end: Nanos,
    pub context: NestContext,
    pub label: String,
    /// Number of stretches around it.
    pub depth: usize,
    /// Thread that was current.
    pub pid: i32,
    /// Priority of the thread in the kernel's scale, if known.
    pub prio: Option<i32>,
}

/// Key by which an exit finds its entry.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Irq(i32),
    Softirq(u8),
    Vector(&'static str),
    Ipi(String),
    Call(String),
    Timer(u64),
    Wheel,
    Tasklet,
    Work,
    Idle,
}

struct Open {
    key: Key,
    since: Nanos,
    context: NestContext,
    label: String,
}

/// Stretches of every CPU that has events, each in order of its start, outer ones before those
/// within them.
pub fn nested(window: &Window) -> BTreeMap<Cpu, Vec<Span>> {
    let mut by_cpu: BTreeMap<Cpu, Vec<&Named>> = BTreeMap::new();
    for event in &window.events {
        by_cpu.entry(event.cpu).or_default().push(event);
    }
    let names = names(window);
    let (from, to) = reach(window);
    let of_one = |(cpu, mut events): (Cpu, Vec<&Named>)| {
        events.compact_sort_by_key(|event| event.time);
        (cpu, Walk::new(&events, &names, from).run(&events, to))
    };
    by_cpu.into_iter().map(of_one).collect()
}

/// Time from the first event, or the expected time if earlier, to the last event or the actual
/// time.
pub fn reach(window: &Window) -> (Nanos, Nanos) {
    let times = || window.events.iter().map(|event| event.time);
    let from = times().chain([window.expected_ns]).min().unwrap_or(window.expected_ns);
    (from, times().chain([window.actual_ns]).max().unwrap_or(window.actual_ns))
}

/// Threads that the events describe, by id.
fn names(window: &Window) -> BTreeMap<i32, Task> {
    let mut names = BTreeMap::from([(window.victim.pid, window.victim)]);
    for event in &window.events {
        match &event.what {
            What::Switch { prev, next, .. } => names.extend([(prev.pid, *prev), (next.pid, *next)]),
            What::Waking { task, .. } | What::Wakeup { task, .. } => names.extend([(task.pid, *task)]),
            _ => {}
        }
    }
    names
}

struct Walk<'a> {
    names: &'a BTreeMap<i32, Task>,
    from: Nanos,
    last: Nanos,
    pid: i32,
    since: Nanos,
    open: Vec<Open>,
    suspended: BTreeMap<i32, Vec<Open>>,
    done: Vec<Span>,
}

impl<'a> Walk<'a> {
    fn new(events: &[&Named], names: &'a BTreeMap<i32, Task>, from: Nanos) -> Walk<'a> {
        // The thread that is current at the first event was so before, as far as the window shows.
        let pid = events.first().map_or(0, |event| event.pid);
        let (open, suspended, done) = (Vec::new(), BTreeMap::new(), Vec::new());
        Walk { names, from, last: from, pid, since: from, open, suspended, done }
    }

    fn run(mut self, events: &[&Named], to: Nanos) -> Vec<Span> {
        for event in events {
            self.step(event);
            self.last = event.time;
        }
        self.close_all(to);
        self.thread(to);
        self.done.retain(|span| span.end > span.start);
        self.done.compact_sort_by_key(|span| (span.start, span.depth));
        self.done
    }

    fn step(&mut self, event: &Named) {
        let time = event.time;
        if let What::Switch { prev, next, .. } = &event.what {
            self.switch(time, prev, next);
        } else if let What::Nmi { handler, ns } = &event.what {
            let start = Nanos(time.0.saturating_sub(ns.0)).max(self.last);
            self.push_done(start, time, NestContext::Nmi, handler.clone(), self.open.len() + 1);
        } else if let Some((key, context, label)) = entry(&event.what) {
            // No kernel nests deeper; a damaged or forged file may.
            if self.open.len() >= DEEPEST {
                return;
            }
            self.open.push(Open { key, since: time, context, label });
        } else if let Some((key, context)) = exit(&event.what) {
            self.close(time, &key, context);
        }
    }

    fn switch(&mut self, time: Nanos, prev: &Task, next: &Task) {
        let stretches = self.close_all(time);
        self.pid = prev.pid;
        self.thread(time);
        self.suspended.insert(prev.pid, stretches);
        self.pid = next.pid;
        self.since = time;
        let back = self.suspended.remove(&next.pid).unwrap_or_default();
        self.open = back.into_iter().map(|open| Open { since: time, ..open }).collect();
    }

    /// Ends all open stretches of the thread; returns those that resume with it.
    fn close_all(&mut self, time: Nanos) -> Vec<Open> {
        let open = std::mem::take(&mut self.open);
        for (depth, one) in open.iter().enumerate() {
            self.push_done(one.since, time, one.context, one.label.clone(), depth + 1);
        }
        // An interrupt cannot resume after a switch: its exit was lost.
        open.into_iter()
            .filter(|one| matches!(one.context, NestContext::Softirq | NestContext::Function))
            .collect()
    }

    fn close(&mut self, time: Nanos, key: &Key, context: NestContext) {
        let Some(at) = self.open.iter().rposition(|open| open.key == *key) else {
            // It began before the window; nothing that began since can be around it.
            if self.open.is_empty() && self.since == self.from && self.done.iter().all(|span| span.depth != 1)
            {
                self.push_done(self.from, time, context, name(key), 1);
                self.deepen(time);
            }
            return;
        };
        for (depth, one) in self.open.split_off(at).into_iter().enumerate() {
            self.push_done(one.since, time, one.context, one.label, at + depth + 1);
        }
    }

    /// Moves the stretches within one that began before the window one level deeper.
    fn deepen(&mut self, until: Nanos) {
        let last = self.done.len().saturating_sub(1);
        self.done
            .iter_mut()
            .take(last)
            .filter(|span| span.end <= until && span.depth > 0)
            .for_each(|span| span.depth += 1);
    }

    fn thread(&mut self, until: Nanos) {
        let (context, label) = match (self.pid, self.names.get(&self.pid)) {
            (0, _) => (NestContext::Idle, "idle".to_owned()),
            (pid, Some(task)) => (NestContext::Thread, format!("{}:{pid}", task.comm)),
            (pid, None) => (NestContext::Thread, format!("thread {pid}")),
        };
        self.push_done(self.since, until, context, label, 0);
    }

    fn push_done(&mut self, start: Nanos, end: Nanos, context: NestContext, label: String, depth: usize) {
        let prio = self.names.get(&self.pid).map(|task| task.prio);
        self.done.push(Span { start, end, context, label, depth, pid: self.pid, prio });
    }
}

fn entry(what: &What<String>) -> Option<(Key, NestContext, String)> {
    let (key, context) = match what {
        What::IrqEntry { irq, name } => {
            return Some((Key::Irq(*irq), NestContext::Irq, format!("{name} ({irq})")));
        }
        What::SoftirqEntry { vec } => (Key::Softirq(*vec), NestContext::Softirq),
        What::VectorEntry { vector } => (Key::Vector(vector.name()), NestContext::Irq),
        What::IpiEntry { reason } => (Key::Ipi(reason.clone()), NestContext::Irq),
        What::CallEntry { function } => (Key::Call(function.clone()), NestContext::Function),
        What::TimerEntry { timer, function, .. } => {
            return Some((Key::Timer(*timer), NestContext::Function, function.clone()));
        }
        What::WheelEntry { function } => return Some((Key::Wheel, NestContext::Function, function.clone())),
        What::TaskletEntry { function } => {
            return Some((Key::Tasklet, NestContext::Function, function.clone()));
        }
        What::WorkEntry { function } => return Some((Key::Work, NestContext::Function, function.clone())),
        What::Idle { state: Some(state) } => {
            return Some((Key::Idle, NestContext::Function, format!("idle state {state}")));
        }
        _ => return None,
    };
    let label = name(&key);
    Some((key, context, label))
}

fn exit(what: &What<String>) -> Option<(Key, NestContext)> {
    Some(match what {
        What::IrqExit { irq } => (Key::Irq(*irq), NestContext::Irq),
        What::SoftirqExit { vec } => (Key::Softirq(*vec), NestContext::Softirq),
        What::VectorExit { vector } => (Key::Vector(vector.name()), NestContext::Irq),
        What::IpiExit { reason } => (Key::Ipi(reason.clone()), NestContext::Irq),
        What::CallExit { function } => (Key::Call(function.clone()), NestContext::Function),
        What::TimerExit { timer } => (Key::Timer(*timer), NestContext::Function),
        What::WheelExit => (Key::Wheel, NestContext::Function),
        What::TaskletExit => (Key::Tasklet, NestContext::Function),
        What::WorkExit { .. } => (Key::Work, NestContext::Function),
        What::Idle { state: None } => (Key::Idle, NestContext::Function),
        _ => return None,
    })
}

fn name(key: &Key) -> String {
    match key {
        Key::Irq(irq) => format!("irq {irq}"),
        Key::Softirq(vec) => softirq(*vec).to_owned(),
        Key::Vector(name) => (*name).to_owned(),
        Key::Ipi(text) | Key::Call(text) => text.clone(),
        Key::Timer(_) => "a timer".into(),
        Key::Wheel => "a timer of the wheel".into(),
        Key::Tasklet => "a tasklet".into(),
        Key::Work => "a work item".into(),
        Key::Idle => "an idle state".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use proptest::prelude::*;

    /// Checks that stretches either nest or are disjoint, as their depth shows.
    fn check(spans: &[Span]) {
        let mut stack: Vec<&Span> = Vec::new();
        for span in spans {
            while stack.last().is_some_and(|top| top.end <= span.start) {
                stack.pop();
            }
            if let Some(top) = stack.last() {
                assert!(span.end <= top.end && span.depth > top.depth, "{top:?} and {span:?}");
            }
            stack.push(span);
        }
    }

    #[test]
    fn the_timer_is_within_its_interrupt_within_the_thread() {
        let case = fixture::fifo();
        let all = nested(&case.window);
        let spans = &all[&Cpu(1)];
        let depth = |label: &str| spans.iter().find(|span| span.label == label).map(|span| span.depth);
        assert_eq!(
            [depth("busy-loop:812"), depth("local_timer"), depth("hrtimer_wakeup"), depth("onbeat:4100")],
            [Some(0), Some(1), Some(2), Some(0)],
            "{spans:#?}"
        );
        all.values().for_each(|spans| check(spans));
    }

    #[test]
    fn all_synthetic_events_nest() {
        fixture::cases()
            .iter()
            .flat_map(|case| nested(&case.window).into_values())
            .for_each(|spans| check(&spans));
    }

    #[test]
    fn a_softirq_resumes_with_its_thread() {
        let mut window = fixture::timer_softirq().window;
        let (expected, hog) = (window.expected_ns, window.victim);
        let at = |ns: i64| expected + Nanos(ns);
        let ktimers = Task { comm: "ktimers/1".into(), pid: 27, prio: 98 };
        let switch = |time, prev: Task, next| Named {
            time,
            cpu: Cpu(1),
            pid: prev.pid,
            context: Default::default(),
            preempt: 0,
            what: What::Switch { prev, state: 0, next },
        };
        window.events.extend([switch(at(177_500), ktimers, hog), switch(at(179_500), hog, ktimers)]);
        let all = nested(&window);
        let count = all[&Cpu(1)].iter().filter(|span| span.label == "HRTIMER").count();
        assert_eq!(count, 2);
        all.values().for_each(|spans| check(spans));
    }

    proptest! {
        #[test]
        fn whatever_the_order_it_nests(order in proptest::collection::vec((0usize..200, 0i64..400_000), 0..120)) {
            let all: Vec<Named> = fixture::cases().into_iter().flat_map(|case| case.window.events).collect();
            let base = fixture::fifo().window;
            let events = order.iter().map(|&(at, time)| {
                let event = all[at % all.len()].clone();
                Named { time: base.expected_ns + Nanos(time), ..event }
            });
            let window = Window { events: events.collect(), ..base.clone() };
            nested(&window).values().for_each(|spans| check(spans));
        }
    }
}
