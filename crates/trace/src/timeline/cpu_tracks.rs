//! Tracks of CPUs in a window, for pictures: one track per CPU, one span per context.

use super::path::per_cpu;
use super::spans::Spans;
use super::state::{Hard, RunningContext, stretches};
use super::tasks::Tasks;
use crate::event::{Named, Vector, What};
use crate::kernel_functions::softirq;
use crate::window::Window;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Context of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackContext {
    Idle,
    Thread,
    Softirq,
    Irq,
    Nmi,
}

/// Time of one CPU in one context.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackSpan {
    /// Start, on the window's clock.
    pub start: Nanos,
    /// Length in nanoseconds, above 0.
    pub ns: Nanos,
    pub context: TrackContext,
    /// Name of the thread, softirq, interrupt or function; `""` if no event names it.
    pub label: String,
    /// Thread, if it runs itself without an interrupt; `None` if no event shows it.
    pub pid: Option<i32>,
    /// Kernel priority of the thread, also under an interrupt of it; none if no event shows it.
    pub prio: Option<i32>,
}

/// Track of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTrack {
    pub cpu: Cpu,
    /// Spans in order of time, without overlap; gaps are times without events.
    pub spans: Vec<TrackSpan>,
}

/// Tracks of all CPUs in ascending order, from their first events to the window's actual time.
pub fn cpu_tracks(window: &Window) -> Vec<CpuTrack> {
    let cpus = per_cpu(window);
    let mut ordered: Vec<&Named> = window.events.iter().collect();
    ordered.compact_sort_by_key(|event| event.time);
    let tasks = Tasks::new(ordered.into_iter(), window.victim);
    cpus.iter()
        .map(|(&cpu, events)| CpuTrack { cpu, spans: spans_of(events, &tasks, window.actual_ns.0) })
        .collect()
}

fn spans_of(events: &[&Named], tasks: &Tasks, until: i64) -> Vec<TrackSpan> {
    let nmi = events.iter().filter_map(|event| match &event.what {
        What::Nmi { handler, ns } => Some((event.time.0.saturating_sub(ns.0.max(0)), event.time.0, handler)),
        _ => None,
    });
    let nmi = Spans::new(nmi.collect());
    let cuts: Vec<i64> = nmi.edges().collect();
    let mut spans: Vec<TrackSpan> = Vec::new();
    for stretch in stretches(events, until) {
        let mut start = stretch.start;
        let first = cuts.partition_point(|&cut| cut <= start);
        for &end in cuts[first..].iter().take_while(|&&cut| cut < stretch.end).chain([&stretch.end]) {
            let task = stretch.pid.and_then(|pid| tasks.at(pid, start));
            let prio = task.map(|task| task.prio);
            let over = nmi.at(start).map(|found| (TrackContext::Nmi, found.2.clone()));
            let comm = || task.map(|task| task.comm.text().into_owned()).unwrap_or_default();
            if let Some((context, label)) = over.or_else(|| context_label(&stretch.top, stretch.pid, comm)) {
                push(
                    &mut spans,
                    TrackSpan {
                        start: Nanos(start),
                        ns: Nanos(end.saturating_sub(start)),
                        context,
                        label,
                        pid: stretch.pid.filter(|_| context == TrackContext::Thread),
                        prio,
                    },
                );
            }
            start = end;
        }
    }
    spans
}

fn context_label(
    top: &RunningContext<'_>,
    pid: Option<i32>,
    comm: impl Fn() -> String,
) -> Option<(TrackContext, String)> {
    match top {
        RunningContext::Unknown => None,
        RunningContext::Hard(hard) => Some((TrackContext::Irq, interrupt(hard))),
        RunningContext::Soft { vec, .. } => Some((TrackContext::Softirq, softirq(*vec).to_owned())),
        RunningContext::Call { function, .. } => Some((TrackContext::Irq, (*function).to_owned())),
        RunningContext::Work(function) => Some((TrackContext::Thread, format!("{}: {function}", comm()))),
        RunningContext::Thread if pid == Some(0) => Some((TrackContext::Idle, String::new())),
        RunningContext::Thread => Some((TrackContext::Thread, comm())),
    }
}

fn interrupt(hard: &Hard<'_>) -> String {
    let handler = hard.handler.map(|name| name.text().into_owned());
    let call = hard.call.map(|(function, _)| function.to_owned());
    let vector = hard.vector.map(|vector: Vector| vector.name().to_owned());
    let rest = || hard.reason.or(hard.timer).unwrap_or_default().to_owned();
    call.or(handler).or(vector).unwrap_or_else(rest)
}

fn push(spans: &mut Vec<TrackSpan>, next: TrackSpan) {
    if let Some(last) = spans.last_mut() {
        let adjoins = last.start.0.saturating_add(last.ns.0) == next.start.0;
        let same = |a: &TrackSpan, b: &TrackSpan| {
            (a.context, &a.label, a.pid, a.prio) == (b.context, &b.label, b.pid, b.prio)
        };
        if adjoins && same(last, &next) {
            last.ns = Nanos(last.ns.0.saturating_add(next.ns.0));
            return;
        }
    }
    spans.push(next);
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
        let lines_of = |track: &CpuTrack| {
            let one = |s: &TrackSpan| format!("{:?} {} {}", s.context, s.label, s.ns.0 / 1_000);
            track.spans.iter().map(one).collect::<Vec<_>>()
        };
        let tracks = cpu_tracks(&window(20.0, events));
        assert_eq!(tracks.iter().map(|track| track.cpu.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(lines_of(&tracks[0]), ["Idle  10", "Irq eth0 2", "Idle  8"]);
        assert_eq!(
            lines_of(&tracks[1]),
            ["Thread rt 5", "Softirq NET_RX 4", "Thread rt 3", "Nmi watchdog 4", "Thread rt 4"]
        );
        assert_eq!(tracks[1].spans[0].prio, Some(19));
    }
}
