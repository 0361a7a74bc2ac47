//! What each CPU did in a window, for pictures: one lane per CPU, one stretch per context.

use super::frames::softirq;
use super::path::per_cpu;
use super::spans::Spans;
use super::state::{Hard, Top, stretches};
use super::tasks::Tasks;
use crate::event::{Named, Vector, What};
use crate::window::Window;
use model::units::{Cpu, Nanos};

/// What a CPU was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Its idle thread.
    Idle,
    /// A thread.
    Thread,
    /// A softirq.
    Softirq,
    /// A hard interrupt.
    Irq,
    /// A non-maskable interrupt.
    Nmi,
}

/// Time of one CPU in one context.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// When it began, on the window's clock.
    pub start: Nanos,
    /// Its length in nanoseconds, above 0.
    pub ns: Nanos,
    /// What ran.
    pub context: Context,
    /// The thread, softirq, interrupt or function by name; `""` where no event names it.
    pub label: String,
    /// The thread, where it runs itself and not an interrupt of it; none where no event tells.
    pub pid: Option<i32>,
    /// The thread's priority as the kernel counts it, also under an interrupt of it; none where no event tells.
    pub prio: Option<i32>,
}

/// What one CPU did.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Which.
    pub cpu: Cpu,
    /// In order of time, without overlap; gaps are what no event tells.
    pub stretches: Vec<Stretch>,
}

/// What each CPU did, ascending by CPU, from its first event to the window's actual time.
pub fn lanes(window: &Window) -> Vec<Lane> {
    let cpus = per_cpu(window);
    let mut ordered: Vec<&Named> = window.events.iter().collect();
    ordered.sort_by_key(|event| event.time);
    let tasks = Tasks::new(ordered.into_iter(), window.victim);
    cpus.iter()
        .map(|(&cpu, events)| Lane { cpu, stretches: lane(events, &tasks, window.actual_ns.0) })
        .collect()
}

fn lane(events: &[&Named], tasks: &Tasks, until: i64) -> Vec<Stretch> {
    let nmi = events.iter().filter_map(|event| match &event.what {
        What::Nmi { handler, ns } => Some((event.time.0.saturating_sub(ns.0.max(0)), event.time.0, handler)),
        _ => None,
    });
    let nmi = Spans::new(nmi.collect());
    let cuts: Vec<i64> = nmi.edges().collect();
    let mut made: Vec<Stretch> = Vec::new();
    for stretch in stretches(events, until) {
        let mut start = stretch.start;
        let first = cuts.partition_point(|&cut| cut <= start);
        for &end in cuts[first..].iter().take_while(|&&cut| cut < stretch.end).chain([&stretch.end]) {
            let task = stretch.pid.and_then(|pid| tasks.at(pid, start));
            let prio = task.map(|task| task.prio);
            let over = nmi.at(start).map(|found| (Context::Nmi, found.2.clone()));
            let comm = || task.map(|task| task.comm.text().into_owned()).unwrap_or_default();
            if let Some((context, label)) = over.or_else(|| shown(&stretch.top, stretch.pid, comm)) {
                push(
                    &mut made,
                    Stretch {
                        start: Nanos(start),
                        ns: Nanos(end.saturating_sub(start)),
                        context,
                        label,
                        pid: stretch.pid.filter(|_| context == Context::Thread),
                        prio,
                    },
                );
            }
            start = end;
        }
    }
    made
}

fn shown(top: &Top<'_>, pid: Option<i32>, comm: impl Fn() -> String) -> Option<(Context, String)> {
    match top {
        Top::Unknown => None,
        Top::Hard(hard) => Some((Context::Irq, interrupt(hard))),
        Top::Soft { vec, .. } => Some((Context::Softirq, softirq(*vec).to_owned())),
        Top::Call { function, .. } => Some((Context::Irq, (*function).to_owned())),
        Top::Work(function) => Some((Context::Thread, format!("{}: {function}", comm()))),
        Top::Thread if pid == Some(0) => Some((Context::Idle, String::new())),
        Top::Thread => Some((Context::Thread, comm())),
    }
}

fn interrupt(hard: &Hard<'_>) -> String {
    let handler = hard.handler.map(|name| name.text().into_owned());
    let call = hard.call.map(|(function, _)| function.to_owned());
    let vector = hard.vector.map(|vector: Vector| vector.name().to_owned());
    let rest = || hard.reason.or(hard.timer).unwrap_or_default().to_owned();
    call.or(handler).or(vector).unwrap_or_else(rest)
}

fn push(made: &mut Vec<Stretch>, next: Stretch) {
    if let Some(last) = made.last_mut() {
        let adjoins = last.start.0.saturating_add(last.ns.0) == next.start.0;
        let same = |a: &Stretch, b: &Stretch| {
            (a.context, &a.label, a.pid, a.prio) == (b.context, &b.label, b.pid, b.prio)
        };
        if adjoins && same(last, &next) {
            last.ns = Nanos(last.ns.0.saturating_add(next.ns.0));
            return;
        }
    }
    made.push(next);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::window;
    use super::*;

    #[test]
    fn each_cpu_has_its_contexts() {
        let events = "
            0  0 7  d  switch a/7/120 S swapper/0/120
            10 0 0  dh irq+ 24 eth0
            12 0 0  dh irq- 24
            0  1 60 d  switch b/60/120 S rt/50/19
            5  1 50 s  soft+ 3
            9  1 50 s  soft- 3
            16 1 50 .  nmi watchdog 4";
        let shown = |lane: &Lane| {
            let one = |s: &Stretch| format!("{:?} {} {}", s.context, s.label, s.ns.0 / 1_000);
            lane.stretches.iter().map(one).collect::<Vec<_>>()
        };
        let lanes = lanes(&window(20.0, events));
        assert_eq!(lanes.iter().map(|lane| lane.cpu.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(shown(&lanes[0]), ["Idle  10", "Irq eth0 2", "Idle  8"]);
        assert_eq!(
            shown(&lanes[1]),
            ["Thread rt 5", "Softirq NET_RX 4", "Thread rt 3", "Nmi watchdog 4", "Thread rt 4"]
        );
        assert_eq!(lanes[1].stretches[0].prio, Some(19));
    }
}
