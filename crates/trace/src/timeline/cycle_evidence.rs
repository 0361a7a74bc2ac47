//! Evidence on a cycle, and the findings about it.

use super::calls::ThreadCalls;
use super::case::Stop;
use super::explain::explain_part;
use super::holders::Holders;
use super::lent::LentPriority;
use super::own::Cost;
use super::segments::CycleSegment;
use super::spans::Spans;
use super::tasks::Tasks;
use crate::event::{Named, What};
use crate::window::Window;
use crate::window_events::{LEAD_OUT_OF_OTHER_CPUS, shows_cpu_alive};
use model::run::{Host, Slice, Spike};
use model::units::Nanos;

/// Time before a segment in which all events may help to explain it, in ns.
const LEAD_IN: i64 = 1_000_000;

/// Evidence on a cycle.
pub(super) struct CycleEvidence<'w> {
    pub window: &'w Window,
    /// Events in order of time.
    pub ordered: &'w [&'w Named],
    pub host: &'w Host,
    pub cost: Cost,
    pub calls: ThreadCalls<'w>,
    pub tasks: &'w Tasks,
    pub lent: LentPriority,
    pub holders: Holders<'w, 'w>,
    /// Stops of the machine, from all events of the cycle.
    pub stops: Spans<Stop>,
}

impl CycleEvidence<'_> {
    /// Explains a part of the cycle in which the thread waited, like a wake-up.
    pub(super) fn explain(&self, segment: &CycleSegment<'_>) -> Spike {
        let part = cut(self.window, self.ordered, segment);
        explain_part(&part, self.host, self.cost, Some(&self.stops))
    }
}

#[derive(Default)]
pub(super) struct Response {
    pub slices: Vec<Slice>,
    /// Time during an earlier cycle whose timer was late, and its unexplained part.
    pub inherited: i64,
    pub overran: i64,
    pub notes: Vec<String>,
}

/// Window of a segment: its events, those right before it, and the last switch of each CPU before
/// that; for its own CPU also the events since that switch, because an interrupt may have begun
/// long before the segment; for other CPUs the timers right after it.
pub(super) fn cut(window: &Window, ordered: &[&Named], segment: &CycleSegment<'_>) -> Window {
    let end = ordered.partition_point(|event| event.time.0 <= segment.end);
    let begin = ordered.partition_point(|event| event.time.0 < segment.start.saturating_sub(LEAD_IN));
    let mut seen = std::collections::BTreeSet::new();
    let mut events: Vec<Named> = Vec::new();
    for event in ordered[..begin].iter().rev() {
        let wanted = match event.what {
            What::Switch { .. } => seen.insert(event.cpu),
            _ => event.cpu == segment.cpu && !seen.contains(&event.cpu),
        };
        if wanted {
            events.push((*event).clone());
        }
    }
    events.reverse();
    let soon = segment.end.saturating_add(LEAD_OUT_OF_OTHER_CPUS.0);
    let behind = ordered[end..].iter().take_while(|event| event.time.0 <= soon);
    let timers = behind.filter(|event| event.cpu != segment.cpu && shows_cpu_alive(event));
    events.extend(ordered[begin..end].iter().chain(timers).map(|event| (*event).clone()));
    Window {
        cpu: segment.cpu,
        cycle: window.cycle,
        expected_ns: Nanos(segment.start),
        actual_ns: Nanos(segment.end),
        victim: window.victim,
        own: false,
        deadline_ns: None,
        events_lost: window.events_lost,
        begins_late: window.begins_late,
        events,
        ..Window::default()
    }
}
