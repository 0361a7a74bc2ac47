//! The events around the late wake-ups of a trace, read part by part.

use std::ops::ControlFlow;

use super::whole_events::WholeEvents;
use bundle::foreign_trace::{ForeignTrace, TraceError, TracePart, TraceStep};
use model::units::Nanos;
use trace::event::{Raw, What};
use trace::names::Names;
use trace::recent_events::RecentEvents;
use trace::timer_clocks::TimerClocks;
use trace::wakeups::Wakeup;
use trace::window::Window;
use trace::window_events::{WindowEvents, WindowRequest, window_events};

/// Before a wake-up: the events of other CPUs that show that they run.
const LEAD_IN: Nanos = Nanos(25_000_000);

/// A stack is written right after the switch that it belongs to.
const AFTER: Nanos = Nanos(100_000);

/// Minimum gap between two wake-ups that is skipped in a seekable file.
const SKIPPED: Nanos = Nanos(200_000_000);

/// Reads the parts around the wake-ups, and shows each event, and each wake-up with the events
/// around it.
pub fn each_window(
    trace: &mut dyn ForeignTrace,
    found: &[Wakeup],
    observe: &mut dyn FnMut(&Raw),
    each: &mut dyn FnMut(&Wakeup, &mut RecentEvents),
) -> std::result::Result<(), TraceError> {
    // Events needed for this wake-up and all later ones: one may be due before its predecessor.
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
                        each(wakeup, &mut recent);
                        done += 1;
                        match needed.get(done) {
                            Some(&next) if next - event.time > skipped => stop = true,
                            Some(&next) => recent.need_from(next),
                            None => stop = true,
                        }
                    }
                    observe(event);
                    whole.each(event, &mut |event| recent.push(event));
                }
            }
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        // The trace ends with the rest.
        while let Some(wakeup) = found.get(done).filter(|_| !stop) {
            each(wakeup, &mut recent);
            done += 1;
        }
    }
    Ok(())
}

/// The window of a wake-up, with names instead of addresses and all times on the trace's clock.
pub fn window(wakeup: &Wakeup, recent: &mut RecentEvents, names: &mut Names) -> Window {
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
            // It is CLOCK_MONOTONIC's, which the offset may not be of.
            What::TimerRearm { deferred, .. } => *deferred = false,
            _ => {}
        }
    }
}
