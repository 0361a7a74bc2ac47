//! Sentences on a record, the same for the terminal and the page.

use super::summary::{PlacedWorst, WatchSummary};
use crate::words::{clean, duration, percent, several, span};
use model::units::Nanos;
use model::watch::{WatchCulprit, WatchTask, WorstWakeup};

/// Thread with its known properties: `control (4711, fifo 80)`.
pub fn task(task: &WatchTask) -> String {
    let mut known: Vec<String> = Vec::new();
    known.extend(task.tid.or(task.pid).filter(|id| *id != 0).map(|id| id.to_string()));
    known.extend(priority(task));
    match (clean(&task.comm), known.is_empty()) {
        (name, true) if name.is_empty() => "not known".into(),
        (name, true) => name,
        (name, false) if name.is_empty() => known.join(", "),
        (name, false) => format!("{name} ({})", known.join(", ")),
    }
}

/// Priority as its user set it; none if it is not known.
pub fn priority(task: &WatchTask) -> Option<String> {
    if task.tid == Some(0) {
        return None; // the idle thread has none
    }
    let policy = if task.policy.is_empty() { "rt" } else { task.policy.as_str() };
    match (task.priority(), task.prio?) {
        (Some(priority), _) => Some(format!("{} {priority}", clean(policy))),
        (None, -1) => Some("deadline".into()),
        (None, prio @ 100..=139) => Some(format!("nice {}", prio - 120)),
        (None, _) => None,
    }
}

/// Culprit of a wake-up; `unknown` if nothing proves it.
pub fn culprit(culprit: &WatchCulprit) -> String {
    let name = clean(&culprit.name);
    // The idle thread, and one without a name or a number, say nothing more.
    let number = culprit.task.tid.or(culprit.task.pid).unwrap_or(0);
    let is_unnamed = culprit.task.comm.is_empty() && number == 0;
    match (name.is_empty(), is_unnamed) {
        (true, true) => "unknown".into(),
        (true, false) => task(&culprit.task),
        (false, true) => name,
        (false, false) if clean(&culprit.task.comm) == name => task(&culprit.task),
        (false, false) => format!("{name}, in {}", task(&culprit.task)),
    }
}

/// Parts of a wake-up: `T 4.1 us + W 308.3 us`.
pub fn parts(wakeup: &WorstWakeup) -> String {
    let parts = [("T", wakeup.timer_ns), ("W", wakeup.wakeup_ns), ("S", wakeup.switch_ns)];
    let known: Vec<String> =
        parts.iter().filter_map(|(name, ns)| Some(format!("{name} {}", span((*ns)?)))).collect();
    known.join(" + ")
}

/// Parts of a wake-up without the letters.
fn spoken_parts(wakeup: &WorstWakeup) -> String {
    let parts = [
        wakeup.timer_ns.map(|ns| format!("its timer was {} late", span(ns))),
        wakeup.wakeup_ns.map(|ns| format!("it waited {} for its CPU", span(ns))),
        wakeup.switch_ns.map(|ns| format!("the switch to it took {}", span(ns))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Time of a wake-up in the zone of the record's clock, or since the record began.
pub fn when(worst: &PlacedWorst, of: &WatchSummary) -> String {
    if worst.time.is_empty() {
        duration(Nanos(worst.at.0 - of.axis.from.0))
    } else {
        of.clock().second(&worst.time)
    }
}

/// Start and end of the record to the minute, with the zone; empty if the clock was not set.
pub fn times(of: &WatchSummary) -> String {
    let clock = of.clock();
    if of.from.is_empty() {
        String::new()
    } else {
        format!("{} to {} {}", clock.minute(&of.from), clock.minute(&of.to), clock.zone())
    }
}

/// Answer, in the order of importance.
pub fn answer(of: &WatchSummary) -> Vec<String> {
    let mut lines = Vec::new();
    let time = |worst: &PlacedWorst| {
        if worst.time.is_empty() {
            format!("{} after the record began", when(worst, of))
        } else {
            format!("{} {}", when(worst, of), of.clock().zone())
        }
    };
    let one = |worst: &PlacedWorst| {
        let cpu = worst.wakeup.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
        format!("{}{cpu} ({}), {}", span(worst.total_ns), spoken_parts(&worst.wakeup), time(worst))
    };
    lines.push(match of.worst.first() {
        Some(worst) => format!(
            "The longest wake-up in {}: {}. {} waited; the culprit is {}.",
            duration(of.recorded_ns),
            one(worst),
            task(&worst.wakeup.victim),
            culprit(&worst.wakeup.culprit)
        ),
        None => format!("No wake-up of a program's real-time thread in {}.", duration(of.recorded_ns)),
    });
    if let Some(worst) = of.worst_by_priority.first() {
        lines.push(format!(
            "Behind a thread of the same or a higher priority, which is caused by the application: {}. {} \
             waited; {}.",
            one(worst),
            task(&worst.wakeup.victim),
            behind(&worst.wakeup)
        ));
    }
    lines.push(coverage(of));
    lines
}

/// Thread that had the CPU for most of the time, else the thread that had it at the end.
fn behind(wakeup: &WorstWakeup) -> String {
    if !wakeup.culprit.name.is_empty() || !wakeup.culprit.task.is_unknown() {
        return format!("{} had the CPU", culprit(&wakeup.culprit));
    }
    let previous = task(&wakeup.previous);
    match wakeup.held_ns {
        // The time before, of its timer, does not count.
        Some(held) if wakeup.wakeup_ns.is_some_and(|wait| held >= wait) => {
            format!("{previous} had the CPU for all of W")
        }
        Some(held) => {
            format!("{previous} had the CPU at the end and for {} of W, the rest is unknown", span(held))
        }
        None => format!("{previous} had the CPU at the end, for an unknown time"),
    }
}

/// Recorded share of all switches. The kernel's counts are read slightly earlier, so that more may
/// be recorded than counted: the number is limited to the count.
pub fn coverage(of: &WatchSummary) -> String {
    let counts = &of.coverage;
    let mut line = match of.coverage_share {
        Some(share) => format!(
            "Of the switches to real-time threads {} were recorded ({} of {}, without threads that began \
             or ended within an interval)",
            percent(share),
            counts.recorded.min(counts.voluntary.unwrap_or_default()),
            counts.voluntary.unwrap_or_default()
        ),
        None => format!(
            "{} to real-time threads recorded; the total is unknown",
            several(counts.recorded, "switch", "switches")
        ),
    };
    let others = [
        (
            counts.collisions,
            "thread was not recorded because of a hash collision",
            "threads were not recorded because of hash collisions",
        ),
        (
            counts.skipped.unwrap_or(0),
            "event was skipped or lost by the kernel",
            "events were skipped or lost by the kernel",
        ),
        (counts.timers_unmatched, "timer had no wake-up", "timers had no wake-up"),
        (
            counts.woken_before_sleep,
            "wake-up came before the thread slept",
            "wake-ups came before the thread slept",
        ),
        (counts.ended, "thread ended", "threads ended"),
        (counts.unwritten, "interval could not be written", "intervals could not be written"),
    ];
    for (n, one, more) in others.into_iter().filter(|(n, ..)| *n > 0) {
        line += &format!("; {}", several(n, one, more));
    }
    line + "."
}

/// Sentences on data that the record no longer holds.
pub fn losses(of: &WatchSummary) -> Vec<String> {
    let losses = &of.losses;
    let intervals = |n| several(n, "interval", "intervals");
    let mut lines = Vec::new();
    let to = |n: u64, what: &str| (n > 0).then(|| format!("{} {what}", intervals(n)));
    let merged: Vec<String> = [
        to(losses.rows_to_hours, "to hourly histograms"),
        to(losses.rows_to_days, "of these to days"),
        to(losses.worst_to_hours, "to the worst of each hour"),
        to(losses.worst_to_days, "of these to the worst of each day"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !merged.is_empty() {
        lines.push(format!("Merged: {}. No count was lost.", merged.join(", ")));
    }
    for (n, ns, until, what) in [
        (losses.rows_dropped, losses.rows_dropped_ns, &losses.rows_dropped_until, "histograms"),
        (losses.worst_dropped, losses.worst_dropped_ns, &losses.worst_dropped_until, "worst wake-ups"),
    ] {
        if n > 0 {
            let time = model::wall_time::wall_time(until.wall_ns);
            let day = time.split('T').next().unwrap_or_default();
            lines.push(format!(
                "Dropped to stay below the size: the {what} of the first {} ({}), up to {day}.",
                duration(ns),
                intervals(n)
            ));
        }
    }
    let damage = [
        (losses.cut_bytes > 0).then(|| format!("{} bytes cut from an incomplete interval", losses.cut_bytes)),
        (losses.damaged_intervals > 0).then(|| format!("{} damaged", intervals(losses.damaged_intervals))),
        (losses.damaged_sections > 0)
            .then(|| format!("{} damaged", several(losses.damaged_sections, "section", "sections"))),
        (losses.unread_lines > 0)
            .then(|| format!("{} not readable", several(losses.unread_lines, "line", "lines"))),
    ];
    let damage: Vec<String> = damage.into_iter().flatten().collect();
    if !damage.is_empty() {
        lines.push(format!("Repaired: {}.", damage.join(", ")));
    }
    lines
}
