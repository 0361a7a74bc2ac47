//! Cuts the window of one spike out of the pages.

use super::pages::{CpuTracePages, TracePages};
use model::units::{Cpu, Nanos};
use trace::decode::Decoder;
use trace::event::{Raw, Task, Vector, What};
use trace::page::Lost;

/// From here on before the spike everything is kept: what was going on when the thread should have run.
const LEAD_IN: Nanos = Nanos(1_000_000);

/// Of other CPUs what tells that they go on: their ticks, and onbeat's own timers, of which one starts every 10 ms.
const LEAD_IN_OF_OTHER_CPUS: Nanos = Nanos(25_000_000);

/// How many pages further back the thread that was running is looked for; where none has it, who ran is not known, and
/// not said.
const MAX_PAGES_BACK: usize = 64;

/// Of the events before the lead only the last switch and what came after it matter, and of those the last; the others
/// are counted as left out.
const MAX_EVENTS_BEFORE: usize = 256;

/// Events in one window: of the late thread's CPU, and of all others together, of each at least some.
const MAX_EVENTS: usize = 20_000;
const MAX_EVENTS_OF_OTHER_CPUS: usize = 40_000;
const MIN_EVENTS_PER_CPU: usize = 500;

/// What is to be cut.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest {
    /// The late thread's CPU.
    pub cpu: Cpu,
    /// When it was to run.
    pub expected: Nanos,
    /// When it ran.
    pub actual: Nanos,
    /// Who it is.
    pub victim: Task,
}

/// A window with addresses.
#[derive(Debug, Default)]
pub struct WindowEvents {
    /// In order of time, of all CPUs.
    pub events: Vec<Raw>,
    /// Events of the late thread's CPU that were overwritten within the window.
    pub lost: u64,
    /// Whether the buffer did not reach back to where the spike began.
    pub too_late: bool,
    /// Events of other CPUs that found no room or were overwritten.
    pub left_out: u64,
    /// Events from before the lead that found no room.
    pub before_left_out: u64,
    /// Records that could not be understood, and pages that ended within one.
    pub unread: u64,
}

/// Cuts; `pages` hold what was taken after the spike.
pub fn window_events(request: &WindowRequest, pages: &TracePages, decoder: &Decoder) -> WindowEvents {
    let mut cut = WindowEvents::default();
    for cpu_pages in &pages.cpus {
        let own = cpu_pages.cpu == request.cpu;
        let others =
            (MAX_EVENTS_OF_OTHER_CPUS / pages.cpus.len().max(1)).clamp(MIN_EVENTS_PER_CPU, MAX_EVENTS);
        let found = of_cpu(cpu_pages, request, decoder, if own { MAX_EVENTS } else { others });
        if own {
            // What found no room of the late thread's own CPU is missing like what was overwritten.
            (cut.lost, cut.too_late) = (found.lost + found.left_out, found.too_late);
        } else {
            cut.left_out += found.left_out + found.lost;
        }
        cut.left_out += found.before_left_out;
        cut.unread += found.unread;
        cut.events.extend(found.events);
    }
    // Stable: what one CPU did at the same nanosecond stays in its order.
    cut.events.sort_by_key(|event| event.time);
    cut
}

fn of_cpu(
    cpu_pages: &CpuTracePages,
    request: &WindowRequest,
    decoder: &Decoder,
    most: usize,
) -> WindowEvents {
    let lead = request.expected - LEAD_IN;
    let own = cpu_pages.cpu == request.cpu;
    let from = if own { lead } else { request.expected - LEAD_IN_OF_OTHER_CPUS };
    let mut cut = WindowEvents::default();
    let Some(oldest) = cpu_pages.pages.front() else {
        return cut;
    };
    // A page begins with its first event: what was silent before has lost nothing.
    cut.too_late = oldest.start > request.expected && cpu_pages.lacks_older(decoder);
    let at = cpu_pages.holding(from);
    let (mut before, mut dropped) = switch_before(cpu_pages, at, from, decoder);
    let mut ticks = Vec::new();
    // A stack belongs to the event before it, which may be the last of the window.
    let mut within = false;
    for (number, page) in cpu_pages.pages.iter().enumerate().skip(at) {
        if page.start > request.actual {
            break;
        }
        let notes = decoder.page(cpu_pages.cpu, &page.bytes, &mut |event: Raw| {
            within = event.time <= request.actual || (within && matches!(event.what, What::Stack { .. }));
            if !within {
            } else if event.time < lead {
                if !own && event.time >= from && shows_cpu_alive(&event) {
                    if ticks.len() < most {
                        ticks.push(event.clone());
                    } else {
                        cut.left_out += 1;
                    }
                }
                before.push(event);
            } else if cut.events.len() < most {
                cut.events.push(event);
            } else {
                cut.left_out += 1;
            }
        });
        cut.unread += notes.malformed + u64::from(notes.cut);
        if number > at || page.start > lead {
            cut.lost += count(notes.lost);
        }
    }
    let mut events = since_last_switch(before, &mut dropped);
    // What is both a tick and after the last switch is there once.
    let first = events.first().map(|event| event.time);
    ticks.retain(|tick| first.is_none_or(|first| tick.time < first));
    ticks.append(&mut events);
    ticks.append(&mut cut.events);
    cut.events = ticks;
    cut.before_left_out = dropped;
    cut
}

/// Whether an event shows that a CPU takes its timer's interrupts.
fn shows_cpu_alive(event: &Raw) -> bool {
    matches!(event.what, What::TimerStart { .. } | What::TimerEntry { .. } | What::TimerExit { .. })
        || matches!(event.what, What::VectorEntry { vector: Vector::LocalTimer })
        || matches!(event.what, What::VectorExit { vector: Vector::LocalTimer })
}

fn count(lost: Lost) -> u64 {
    match lost {
        Lost::Nothing => 0,
        Lost::Records(n) => n.max(1),
        Lost::Some => 1,
    }
}

/// Events from pages before number `at`, back to the last one with a switch; none if that page has one before `lead`.
fn switch_before(cpu_pages: &CpuTracePages, at: usize, lead: Nanos, decoder: &Decoder) -> (Vec<Raw>, u64) {
    let (mut found, mut dropped): (Vec<Raw>, u64) = (Vec::new(), 0);
    for page in cpu_pages.pages.iter().take(at + 1).rev().take(MAX_PAGES_BACK) {
        let mut events = Vec::new();
        let mut switched = false;
        decoder.page(cpu_pages.cpu, &page.bytes, &mut |event: Raw| {
            if event.time < lead {
                switched |= matches!(event.what, What::Switch { .. });
                events.push(event);
            }
        });
        // The page of the lead itself is read again by the caller.
        if !std::ptr::eq(page, &cpu_pages.pages[at]) {
            events = since_last_switch(events, &mut dropped);
            events.append(&mut found);
            found = events;
        }
        if switched {
            break;
        }
    }
    (found, dropped)
}

/// The last switch and what came after it, the last of that if it is much; the rest of that is counted.
fn since_last_switch(mut events: Vec<Raw>, dropped: &mut u64) -> Vec<Raw> {
    let switch = events.iter().rposition(|event| matches!(event.what, What::Switch { .. })).unwrap_or(0);
    let mut after = events.split_off(switch);
    if after.len() > MAX_EVENTS_BEFORE {
        *dropped += (after.len() - MAX_EVENTS_BEFORE) as u64;
        after.drain(1..after.len() - MAX_EVENTS_BEFORE + 1);
    }
    after
}
