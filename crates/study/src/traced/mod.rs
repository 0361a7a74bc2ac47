//! A trace of another tool explained as a hunt is: its late wake-ups are found, then the events
//! around each are taken apart.

mod document;
#[cfg(test)]
mod tests;
mod whole_events;

use std::ops::ControlFlow;
use std::path::Path;

use self::document::TracedRun;
use self::whole_events::WholeEvents;
use crate::explain::ExplainedRun;
use crate::findings::Findings;
use bundle::foreign_trace::facts::{TraceClock, TraceFacts};
use bundle::foreign_trace::{self, ForeignTrace, TraceError, TracePart, TraceStep};
use bundle::room::Room;
use model::error::{Exit, Failure, Result};
use model::run::{Host, Spike};
use model::text::quoted;
use model::units::Nanos;
use trace::event::{Raw, What};
use trace::late_wakeups::{LateWakeups, WantedThreads, WantedWakeups};
use trace::names::Names;
use trace::recent_events::RecentEvents;
use trace::timeline::Cost;
use trace::timer_clocks::TimerClocks;
use trace::wakeups::Wakeup;
use trace::window::Window;
use trace::window_events::{WindowEvents, WindowRequest, window_events};

/// The number of wake-ups that are explained where nothing says what is late.
const LARGEST: usize = 10;

/// The most that are explained.
const MOST: usize = 2_000;

/// Before a wake-up: the events of other CPUs that show that they run.
const LEAD_IN: Nanos = Nanos(25_000_000);

/// A stack is written right after the switch that it belongs to.
const AFTER: Nanos = Nanos(100_000);

/// A gap between two wake-ups that is not read where the file can be read from any place on.
const SKIPPED: Nanos = Nanos(200_000_000);

/// The part of a trace that is to be explained.
#[derive(Clone, Debug)]
pub struct TraceQuestion {
    pub threads: WantedThreads,
    pub wakeups: WantedWakeups,
}

/// Explains a file that another tool recorded; each window is handed on.
pub fn explain_trace(
    path: &Path,
    question: &TraceQuestion,
    mut each: impl FnMut(Window),
) -> Result<ExplainedRun> {
    let failed = |error: TraceError| match error {
        TraceError::Content(message) => Failure::usage(format!("{}: {message}", quoted(path))),
        TraceError::File(error) => Failure::of_call(
            format!("cannot read {}", quoted(path)),
            &error,
            Exit::Usage,
            "give a bundle of `onbeat hunt`, or a trace of trace-cmd, perf or ftrace",
        ),
    };
    let mut trace = foreign_trace::open(path).map_err(failed)?;
    let first = FirstPass::of(&mut *trace, question).map_err(failed)?;
    let facts = trace.facts();
    let host = host_of(&facts);
    let found = first.late.found();
    let by_tool = if found.is_empty() { trace.explained() } else { Vec::new() };
    let took_apart = !by_tool.is_empty();
    if first.late.cpus().is_empty() && !took_apart {
        return Err(Failure::usage(format!("{}: {}", quoted(path), nothing(&facts, question))));
    }
    let (mut findings, mut room, mut dropped) = (Findings::default(), Room::default(), 0);
    let mut names = trace.names();
    let explained = each_window(&mut *trace, &found, &mut names, |window| {
        let mut spike = Findings::explain(&window, &host, Cost::default());
        findings.add(&mut spike, &host);
        dropped += room.put(spike, 0);
        each(window);
    });
    explained.map_err(failed)?;
    if took_apart {
        for mut spike in wanted(by_tool, &question.wakeups) {
            why_unexplained(&mut spike);
            findings.add(&mut spike, &host);
            dropped += room.put(spike, 0);
        }
    }
    let mut spikes = room.into_list();
    spikes.iter_mut().for_each(|spike| findings.settle(&host, spike));
    let traced = TracedRun { facts: &trace.facts(), first: &first, question, took_apart, spikes, dropped };
    let (mut run, remarks) = traced.document(host);
    findings.conclude(&mut run);
    Ok(ExplainedRun { run, remarks })
}

/// Of wake-ups that the tool itself took apart those that are asked for.
fn wanted(mut spikes: Vec<Spike>, wakeups: &WantedWakeups) -> Vec<Spike> {
    match wakeups {
        WantedWakeups::Over(over) => spikes.retain(|spike| spike.latency_ns > *over),
        _ => {
            spikes.sort_by_key(|spike| std::cmp::Reverse(spike.latency_ns));
            spikes.truncate(LARGEST);
        }
    }
    spikes
}

fn why_unexplained(spike: &mut Spike) {
    if spike.unexplained_ns.0 * 10 >= spike.latency_ns.0 {
        spike.unexplained_why = "it cannot be told: the tool that took it apart does not say".to_owned();
    }
    spike.classes = trace::timeline::classes(spike);
}

/// The reason for which there is nothing to explain.
fn nothing(facts: &TraceFacts, question: &TraceQuestion) -> String {
    let has = |event: &str| facts.events.iter().any(|own| own == event);
    if !has("sched:sched_switch") || !has("sched:sched_waking") && !has("sched:sched_wakeup") {
        return "invalid trace: expected the events sched_switch and sched_waking, by which wake-ups are \
                found; record with `-e sched`"
            .to_owned();
    }
    match &question.threads {
        WantedThreads::RealTime => {
            "no wake-up of a real-time thread is in it: name another thread by --victim NAME|TID".to_owned()
        }
        WantedThreads::Thread(tid) => {
            format!("no wake-up of the thread {tid} is in it: name one that was recorded")
        }
        WantedThreads::Named(name) => {
            format!("no wake-up of a thread '{name}' is in it: name one that was recorded")
        }
    }
}

fn host_of(facts: &TraceFacts) -> Host {
    let mut host = facts.host.clone();
    host.preempt = model::vocabulary::Preempt::Unknown.into();
    host
}

/// The result of one reading of the whole trace.
pub struct FirstPass {
    pub late: LateWakeups,
    pub began: Option<Nanos>,
    pub ended: Nanos,
    /// Events that were lost within it.
    pub lost: u64,
}

impl FirstPass {
    fn of(
        trace: &mut dyn ForeignTrace,
        question: &TraceQuestion,
    ) -> std::result::Result<FirstPass, TraceError> {
        let most = match question.wakeups {
            WantedWakeups::Largest => LARGEST,
            WantedWakeups::Over(_) | WantedWakeups::AtMark(_) => MOST,
        };
        let monotonic = trace.facts().clock == TraceClock::Monotonic;
        let mut first = FirstPass {
            late: LateWakeups::new(question.threads.clone(), question.wakeups.clone(), most, monotonic),
            began: None,
            ended: Nanos(0),
            lost: 0,
        };
        let mut whole = WholeEvents::unknown();
        trace.each(TracePart::Wakeups, &mut |step| {
            match step {
                TraceStep::Event(event) => {
                    first.began.get_or_insert(event.time);
                    first.ended = event.time;
                    whole.each(event, &mut |event| first.late.observe(event));
                }
                TraceStep::Lost(_, _, count) => {
                    first.late.forget();
                    first.lost = first.lost.saturating_add(count);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(first)
    }
}

/// Reads the parts around the wake-ups, and hands out a window of each.
fn each_window(
    trace: &mut dyn ForeignTrace,
    found: &[Wakeup],
    names: &mut Names,
    mut each: impl FnMut(Window),
) -> std::result::Result<(), TraceError> {
    // What is needed for a wake-up and all after it: one may have been due before its predecessor.
    let mut needed: Vec<Nanos> = found.iter().map(|wakeup| wakeup.expected - LEAD_IN).collect();
    for at in (1..needed.len()).rev() {
        needed[at - 1] = needed[at - 1].min(needed[at]);
    }
    let events = trace.facts().events;
    let mut done = 0;
    let skipped = if trace.has_index() { SKIPPED } else { Nanos(i64::MAX) };
    while let Some(&from) = needed.get(done) {
        let mut recent = RecentEvents::default();
        recent.need_from(from);
        let mut whole = WholeEvents::of(&events);
        let mut stop = false;
        trace.each(TracePart::From(from), &mut |step| {
            match step {
                TraceStep::Lost(cpu, time, count) => recent.lost(cpu, time, count),
                TraceStep::Event(event) => {
                    while let Some(wakeup) = found.get(done).filter(|one| event.time > one.actual + AFTER) {
                        each(window(wakeup, &mut recent, names));
                        done += 1;
                        match needed.get(done) {
                            Some(&next) if next - event.time > skipped => stop = true,
                            Some(&next) => recent.need_from(next),
                            None => stop = true,
                        }
                    }
                    whole.each(event, &mut |event| recent.push(event));
                }
            }
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        // The trace ends with the rest.
        while let Some(wakeup) = found.get(done).filter(|_| !stop) {
            each(window(wakeup, &mut recent, names));
            done += 1;
        }
    }
    Ok(())
}

/// The window of a wake-up, with names instead of addresses and all times on the trace's clock.
fn window(wakeup: &Wakeup, recent: &mut RecentEvents, names: &mut Names) -> Window {
    let Wakeup { task, cpu, expected, actual, timer_offset } = *wakeup;
    let request = WindowRequest { cpu, expected, actual, of_cycle: None };
    let WindowEvents { mut events, lost, begins_late, left_out } = window_events(&request, recent);
    put_on_trace_clock(&mut events, timer_offset);
    names.next_window();
    let events = events.into_iter().map(|event| event.named(names)).collect();
    Window {
        cpu,
        expected_ns: expected,
        actual_ns: actual,
        victim: task,
        events_lost: lost,
        begins_late,
        left_out,
        events,
        ..Window::default()
    }
}

/// Moves the times of timers to the trace's clock.
fn put_on_trace_clock(events: &mut [Raw], offset: Option<i64>) {
    let mut clocks = TimerClocks::of_any_trace();
    let seen = || {
        events.iter().find_map(|event| match event.what {
            What::TimerEntry { now, .. } => Some(clocks.offset(event.time, now)),
            _ => None,
        })
    };
    let Some(offset) = offset.or_else(seen).filter(|&offset| offset != 0) else { return };
    for event in events {
        match &mut event.what {
            What::TimerStart { expires: time, .. } | What::TimerEntry { now: time, .. } => {
                *time = Nanos(time.0.wrapping_add(offset));
            }
            _ => {}
        }
    }
}
