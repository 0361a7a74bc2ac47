//! Assembly of a case from a window: the parts that depend on each other, in their order.

use std::ops::Range;

use super::case::{Case, Stop};
use super::own::Cost;
use super::spans::Spans;
use super::tasks::Tasks;
use super::{hotplug, inherited, inversion, irqs_off, machine_stall, path};
use crate::event::{Named, What};
use crate::window::Window;
use model::run::Host;
use model::sort::CompactSort;

/// Determines what applies to a whole spike, before its stretches are judged individually. For a
/// part of a cycle the stops of the whole cycle are given, whose evidence lies outside of the part.
pub(super) fn assemble<'w>(
    window: &'w Window,
    host: &'w Host,
    cost: Cost,
    part: Range<i64>,
    stops: Option<&Spans<Stop>>,
) -> Case<'w> {
    let (mut case, ordered) = bare(window, host, cost, part);
    case.silent = stops.cloned().unwrap_or_else(|| machine_stall::find(&case));
    case.irqs_off = irqs_off::find(&case);
    case.inverted = inversion::find(&case, &ordered);
    case
}

/// Stops of the machine in a window.
pub(super) fn stops(window: &Window, host: &Host, cost: Cost, part: Range<i64>) -> Spans<Stop> {
    machine_stall::find(&bare(window, host, cost, part).0)
}

/// Case with only the events, and all events in order of time.
fn bare<'w>(window: &'w Window, host: &'w Host, cost: Cost, part: Range<i64>) -> (Case<'w>, Vec<&'w Named>) {
    let Range { start: from, end: to } = part;
    let own = cost.bound();
    let cpus = path::per_cpu(window);
    let mut ordered: Vec<&Named> = window.events.iter().collect();
    ordered.compact_sort_by_key(|event| event.time);
    let tasks = Tasks::new(ordered.iter().copied(), window.victim);
    let sends = |event: &&Named| matches!(event.what, What::CallQueue { .. } | What::IpiSend { .. });
    let handed_on = inherited::handed_on(&ordered);
    let sent = ordered.iter().copied().filter(sends).collect();
    let hotplug = hotplug::steps(&cpus, to);
    let path = path::find(window, &cpus, from, to);
    let (irqs_off, silent, inverted) = (Spans::new(vec![]), Spans::new(vec![]), Spans::new(vec![]));
    let last = cpus.get(&window.cpu).and_then(|events| events.last()).map(|event| event.time.0);
    let lost_from = last.filter(|_| window.events_lost > 0 && path.switch.is_none());
    let case = Case {
        window,
        host,
        own,
        cpus,
        sent,
        tasks,
        handed_on,
        path,
        from,
        to,
        hotplug,
        irqs_off,
        silent,
        inverted,
        lost_from,
    };
    (case, ordered)
}
