//! Sentences on a run as a whole: its verdict, its limits, the reasons that invalidate it.

use super::probes;
use crate::totals::largest;
use crate::words::{MachineClock, beyond, clean, duration, or_dash, several, span};
use model::run::{Integrity, Run};
use model::units::Nanos;
use model::vocabulary::Command;

/// Limits of a test of this length.
pub fn limits(run: &Run) -> Option<String> {
    let length = run.elapsed_ns.filter(|length| length.0 > 0)?;
    Some(format!(
        "Not covered: a mechanism rarer than about once per {} (a third of the test) may not have occurred in the {} measured.",
        duration(Nanos(length.0 / 3)),
        duration(length)
    ))
}

/// Sentence on a run that has not ended: the record does not show whether it is still running or
/// was killed.
pub fn incomplete(run: &Run) -> Option<String> {
    if run.complete {
        return None;
    }
    let reach = run.elapsed_ns.map_or_else(String::new, |length| format!(" after {}", duration(length)));
    Some(format!("INCOMPLETE: the run is still in progress or was killed; the numbers end{reach}."))
}

/// Integrity entry as a sentence.
pub fn integrity(entry: &Integrity) -> String {
    let place = entry.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let detail = if entry.detail.is_empty() { String::new() } else { format!(": {}", clean(&entry.detail)) };
    format!("{}{place}{detail}", clean(entry.kind.as_str()))
}

/// Sentences on samples without a value in an import, and on early wake-ups.
pub fn oddities(run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    for cpu in &run.cpus {
        if cpu.is_summary() {
            let n = cpu.cycles.map_or("samples".into(), |n| several(n, "sample", "samples"));
            let name = cpu.name();
            notes.push(format!("{name}: {n} without a histogram: only the values in the table are known."));
        }
        if let Some(n) = cpu.overflows.filter(|&n| n > 0) {
            let what = several(n, "sample", "samples");
            notes.push(format!("{}: {what} {}.", cpu.name(), beyond(cpu.beyond_from())));
        }
        if let Some(n) = cpu.early.filter(|&n| n > 0) {
            let down = cpu
                .min_ns
                .filter(|min| min.0 < 0)
                .map(|min| format!(", by up to {}", span(Nanos(min.0.saturating_neg()))));
            let what = several(n, "wake-up", "wake-ups");
            notes.push(format!(
                "{}: {what} before the planned time{}.",
                cpu.name(),
                down.unwrap_or_default()
            ));
        }
    }
    notes
}

/// Result of a run without samples, which for a probe of gaps is the best one.
fn none_measured(run: &Run) -> String {
    match run.plan.over_ns.filter(|_| probes::sample(run).0 == "gap") {
        Some(over) => format!("No gap of {} or more was found.", span(over)),
        None => format!("No {} was measured.", probes::sample(run).0),
    }
}

/// Main result of the run in a sentence.
pub fn verdict(run: &Run) -> String {
    let cpus = &run.cpus;
    let cycles = run.samples();
    let (one, more) = probes::sample(run);
    let counted = cycles.map_or_else(|| more.to_owned(), |n| several(n, one, more));
    let Some(worst) = run.primary().filter(|cpu| cpu.max_ns.is_some()).max_by_key(|cpu| cpu.max_ns) else {
        return match cycles {
            Some(0) => none_measured(run),
            _ => format!("Of {counted} the largest latency is not known."),
        };
    };
    if largest(run).is_none() {
        return format!(
            "The largest latency is not known for all CPUs; of the known ones, {} has {}.",
            worst.name(),
            worst.max_ns.map_or_else(|| or_dash::<u64>(None), span)
        );
    }
    let max = worst.max_ns.map_or_else(|| or_dash::<u64>(None), span);
    let when = worst.worst.first().filter(|w| w.latency_ns == worst.max_ns && !w.time.is_empty());
    let when = when.map_or_else(String::new, |w| format!(" at {}", MachineClock::of(run).moment(&w.time)));
    let missed: u64 = cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.missed.unwrap_or(0)));
    let missed =
        if missed > 0 { format!("; {} missed", several(missed, "slot", "slots")) } else { String::new() };
    let is_bound = cpus.iter().any(|cpu| cpu.cpu.is_some());
    let (one, more) = if is_bound { ("CPU", "CPUs") } else { ("thread", "threads") };
    let on = several(cpus.len() as u64, one, more);
    // Armed events add to every wake-up: such a maximum is not the machine's alone.
    let armed = if run.command == Command::Hunt { ", with tracing," } else { "" };
    format!("The largest latency of {counted} on {on}{armed} was {max}, on {}{when}{missed}.", worst.name())
}
