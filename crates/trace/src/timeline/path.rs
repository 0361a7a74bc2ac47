//! Landmarks of one wake-up: the timer's interrupt, its expiry, the waking and the switch, with
//! their CPUs.
//!
//! Sources: kernel/time/hrtimer.c (`__run_hrtimer` calls the timer's function between its two
//! events), kernel/sched/core.c (`try_to_wake_up`, `__schedule`).

use std::collections::BTreeMap;

use crate::event::{Named, What};
use crate::window::Window;
use model::sort::CompactSort;
use model::units::Cpu;

/// Limit of migrations that are followed; a thread's path has fewer.
const MAX_MIGRATIONS: usize = 64;

/// Events of a window by CPU, in order of time.
pub(super) type PerCpu<'w> = BTreeMap<Cpu, Vec<&'w Named>>;

/// Groups the events of a window by CPU.
pub(super) fn per_cpu(window: &Window) -> PerCpu<'_> {
    let mut all = PerCpu::new();
    for event in &window.events {
        all.entry(event.cpu).or_default().push(event);
    }
    for events in all.values_mut() {
        events.compact_sort_by_key(|event| event.time);
    }
    all
}

/// Expiry of the timer that woke the thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpiryEvent {
    /// Time at which its function was called.
    pub time: i64,
    /// Time of the entry of its interrupt, or of the interrupt that raised its softirq; that of the
    /// expiry if unknown.
    pub interrupt: i64,
    /// True if it expired in a softirq.
    pub soft: bool,
    /// Depth of disabled preemption in the interrupted code.
    pub preempt: u8,
    /// Thread that was current.
    pub pid: i32,
    /// Index of the expiry among the events of its CPU.
    pub index: usize,
}

/// Landmarks, each `None` if no event shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    /// Expiry of the timer.
    pub expiry: Option<ExpiryEvent>,
    /// Time at which the thread started the timer, if that was after the expected time: until then
    /// it was in its last cycle.
    pub asleep: Option<i64>,
    /// Time at which the kernel found that timer due, and the thread continued without a sleep.
    pub due_at_start: Option<i64>,
    /// Time of the waking.
    pub waking: Option<i64>,
    /// Thread that was current at the waking, and true if it did the waking (no interrupt did).
    pub waker: Option<(i32, bool)>,
    /// Time since which it was in a run queue: woken, or preempted earlier.
    pub queued: Option<i64>,
    /// Times at which it entered a run queue, ascending: woken, or right before it was preempted.
    pub runnable: Vec<i64>,
    /// Time of the switch to it.
    pub switch: Option<i64>,
    /// Index of the switch among the events of its CPU.
    pub switch_index: Option<usize>,
    /// CPUs of the wake-up, each with its start; the first from the beginning.
    pub cpu_intervals: Vec<(i64, Cpu)>,
}

/// Finds the landmarks between the two times.
pub(super) fn find(window: &Window, cpus: &PerCpu<'_>, from: i64, to: i64) -> Path {
    let victim = window.victim.pid;
    let mut path = Path { asleep: asleep(window, cpus, from, to), ..Path::default() };
    path.due_at_start = path.asleep.and_then(|asleep| due_at_start(window, cpus, asleep, to));
    let waking = first(
        cpus,
        window.cpu,
        path.asleep.unwrap_or(from),
        to,
        |event| matches!(&event.what, What::Waking { task, .. } if task.pid == victim),
    );
    let mut home = window.cpu;
    if let Some((cpu, index, event)) = waking {
        path.waking = Some(event.time.0);
        path.expiry = expiry(&cpus[&cpu], index, from);
        path.waker = Some((event.pid, !event.context.hard_irq() && !event.context.soft_irq()));
        if path.expiry.is_some() {
            home = cpu;
        }
    }
    path.runnable = runnable(cpus, victim);
    // Woken or preempted before the window, it was in a run queue from its start.
    let before = (window.events_lost == 0).then(|| waits_from_before(cpus, victim)).flatten();
    if let Some(first) = before {
        path.runnable.insert(0, first);
    }
    path.queued = queued(cpus, victim, path.waking, from, to).or(before.map(|_| from));
    let since = path.waking.or(path.due_at_start).unwrap_or(from);
    let switch = first(
        cpus,
        window.cpu,
        since,
        to,
        |event| matches!(&event.what, What::Switch { next, .. } if next.pid == victim),
    );
    path.switch = switch.map(|(.., event)| event.time.0);
    path.queued = path.queued.map(|queued| match (path.switch, path.waking) {
        (Some(switch), Some(waking)) if queued > switch => waking,
        _ => queued,
    });
    path.switch_index = switch.map(|(_, index, _)| index);
    path.cpu_intervals =
        cpu_intervals(window, waking.map(|found| found.2), switch.map(|found| found.2), home, to);
    path
}

type Found<'w> = (Cpu, usize, &'w Named);

/// Time from which a waking may be the expected one: a thread still in its last cycle starts its
/// timer after the expected time, and an earlier waking has another reason.
fn asleep(window: &Window, cpus: &PerCpu<'_>, from: i64, to: i64) -> Option<i64> {
    let starts = |event: &Named| {
        let own = event.pid == window.victim.pid && !event.context.hard_irq() && !event.context.soft_irq();
        own && matches!(event.what, What::TimerStart { expires, .. } if expires == window.expected_ns)
    };
    first(cpus, window.cpu, from, to, starts).map(|(.., event)| event.time.0)
}

/// Time at which the thread's timer was started and found due, so that it was not queued.
fn due_at_start(window: &Window, cpus: &PerCpu<'_>, asleep: i64, to: i64) -> Option<i64> {
    let own = |event: &Named| event.pid == window.victim.pid && !event.context.hard_irq();
    let started = |event: &Named| match event.what {
        What::TimerStart { timer, expires, .. } if expires == window.expected_ns && own(event) => Some(timer),
        _ => None,
    };
    let its = first(cpus, window.cpu, asleep, to, |event| started(event).is_some());
    let its = its.and_then(|(.., event)| started(event))?;
    let is =
        |event: &Named| own(event) && matches!(event.what, What::TimerStartExpired { timer } if timer == its);
    let sleeps =
        |event: &Named| matches!(&event.what, What::Switch { prev, .. } if prev.pid == window.victim.pid);
    let next = first(cpus, window.cpu, asleep, to, |event| is(event) || sleeps(event));
    next.filter(|(.., event)| is(event)).map(|(.., event)| event.time.0)
}

/// First such event between the two times, inclusive; among simultaneous ones that of `home`.
fn first<'w>(
    cpus: &PerCpu<'w>,
    home: Cpu,
    from: i64,
    to: i64,
    is: impl Fn(&Named) -> bool,
) -> Option<Found<'w>> {
    let of = |(&cpu, events): (&Cpu, &Vec<&'w Named>)| {
        let begin = events.partition_point(|event| event.time.0 < from);
        let inside = events.iter().enumerate().skip(begin).take_while(|(_, event)| event.time.0 <= to);
        let mut hits = inside.filter(|(_, event)| is(event)).map(|(index, &event)| (cpu, index, event));
        hits.next()
    };
    cpus.iter().filter_map(of).min_by_key(|&(cpu, _, event)| (event.time, cpu != home))
}

/// Timer expiry that contains the event at `index`.
fn expiry(events: &[&Named], index: usize, from: i64) -> Option<ExpiryEvent> {
    let waking = events.get(index)?;
    let mut closed = 0usize;
    for (at, event) in events[..index].iter().enumerate().rev().take(256) {
        match &event.what {
            What::TimerExit { .. } | What::WheelExit => closed += 1,
            What::TimerEntry { .. } | What::WheelEntry { .. } if closed > 0 => closed -= 1,
            What::TimerEntry { .. } | What::WheelEntry { .. } => {
                let (same, hard) = (event.context == waking.context, event.context.hard_irq());
                let context = same || hard == waking.context.hard_irq();
                return (event.pid == waking.pid && context).then(|| of_timer(events, at, from));
            }
            What::Switch { .. } => break,
            _ => {}
        }
    }
    hardware(events, index)
}

fn of_timer(events: &[&Named], index: usize, from: i64) -> ExpiryEvent {
    let event = events[index];
    let soft = !event.context.hard_irq();
    let vec = if matches!(event.what, What::WheelEntry { .. }) { 1 } else { 8 };
    let raised = || {
        let raises =
            |event: &&Named| matches!(event.what, What::SoftirqRaise { vec: raised } if raised == vec);
        let after = events.partition_point(|event| event.time.0 < from).min(index);
        let pending = || events[..after].iter().rposition(raises);
        events[after..index].iter().position(raises).map(|at| after + at).or_else(pending)
    };
    let cause = if soft { raised() } else { Some(index) };
    // The timer's function is called without any kernel lock held.
    let own = |at: usize| (events[at].time.0, events[at].preempt);
    let entry = cause.map(|at| entry_of(events, at).unwrap_or_else(|| own(at)));
    let time = event.time.0;
    ExpiryEvent {
        time,
        interrupt: entry.map_or(time, |(interrupt, _)| interrupt).min(time),
        soft,
        preempt: entry.map_or(event.preempt, |(_, preempt)| preempt),
        pid: event.pid,
        index,
    }
}

/// Time of the entry of the hard interrupt around an event, and the depth of disabled preemption in
/// the interrupted code; none if no event shows them.
fn entry_of(events: &[&Named], index: usize) -> Option<(i64, u8)> {
    if !events[index].context.hard_irq() {
        return None;
    }
    for event in events[..index].iter().rev().take(256) {
        if matches!(event.what, What::VectorEntry { .. } | What::IrqEntry { .. } | What::IpiEntry { .. }) {
            return Some((event.time.0, event.preempt));
        }
        let left =
            matches!(event.what, What::VectorExit { .. } | What::IrqExit { .. } | What::IpiExit { .. });
        if left || !event.context.hard_irq() {
            return None;
        }
    }
    None
}

/// Waking by an interrupt without a timer's expiry around it.
fn hardware(events: &[&Named], index: usize) -> Option<ExpiryEvent> {
    let event = events[index];
    if !event.context.hard_irq() {
        return None;
    }
    // The waking itself holds locks, so its depth is not that of the interrupted code.
    let (interrupt, preempt) = entry_of(events, index).unwrap_or((event.time.0, 0));
    Some(ExpiryEvent { time: event.time.0, interrupt, soft: false, preempt, pid: event.pid, index })
}

/// Time since which the thread was in a run queue.
fn queued(cpus: &PerCpu<'_>, victim: i32, waking: Option<i64>, from: i64, to: i64) -> Option<i64> {
    if let Some(waking) = waking {
        // Woken from another CPU, it is in the queue only after its own CPU has processed that.
        let wakeup = first(
            cpus,
            Cpu::default(),
            waking,
            to,
            |event| matches!(&event.what, What::Wakeup { task, .. } if task.pid == victim),
        );
        return Some(wakeup.map_or(waking, |(.., event)| event.time.0));
    }
    // Otherwise it may have been preempted, or woken, before the window began.
    let mut last: Option<(i64, bool)> = None;
    for event in cpus.values().flatten().filter(|event| event.time.0 <= from) {
        let runnable = match &event.what {
            What::Switch { prev, state, .. } if prev.pid == victim => matches!(state, 0 | 256),
            What::Switch { next, .. } if next.pid == victim => true,
            What::Waking { task, .. } if task.pid == victim => true,
            _ => continue,
        };
        if last.is_none_or(|(time, _)| time <= event.time.0) {
            last = Some((event.time.0, runnable));
        }
    }
    last.filter(|&(_, runnable)| runnable).map(|_| from)
}

/// Time of the window's first event, if the thread's first event is the switch to it, which only a
/// runnable thread gets.
fn waits_from_before(cpus: &PerCpu<'_>, victim: i32) -> Option<i64> {
    let of_it = |event: &&&Named| match &event.what {
        What::Switch { prev, next, .. } => prev.pid == victim || next.pid == victim,
        What::Waking { task, .. } | What::Wakeup { task, .. } => task.pid == victim,
        _ => false,
    };
    let earliest = cpus.values().flatten().filter(of_it).min_by_key(|event| event.time)?;
    let switched = matches!(&earliest.what, What::Switch { next, .. } if next.pid == victim);
    let first = cpus.values().filter_map(|events| events.first()).map(|event| event.time.0).min();
    first.filter(|_| switched)
}

fn runnable(cpus: &PerCpu<'_>, victim: i32) -> Vec<i64> {
    let all = cpus.values().flatten().filter_map(|event| match &event.what {
        What::Waking { task, .. } | What::Wakeup { task, .. } if task.pid == victim => Some(event.time.0),
        // The next thread runs although the victim is runnable.
        What::Switch { prev, state: 0 | 256, .. } if prev.pid == victim => {
            Some(event.time.0.saturating_sub(1))
        }
        _ => None,
    });
    let mut all: Vec<i64> = all.collect();
    all.sort_unstable();
    all
}

/// CPUs of the wake-up over time.
fn cpu_intervals(
    window: &Window,
    waking: Option<&Named>,
    switch: Option<&Named>,
    home: Cpu,
    to: i64,
) -> Vec<(i64, Cpu)> {
    let mut intervals = vec![(i64::MIN, home)];
    if let Some(Named { time, what: What::Waking { target, .. }, .. }) = waking {
        intervals.push((time.0, *target));
        let end = switch.map_or(to, |event| event.time.0);
        let moved = window.events.iter().filter(|event| (time.0..=end).contains(&event.time.0));
        let moves = moved.filter_map(|event| match event.what {
            What::Migrate { pid, to, .. } if pid == window.victim.pid => Some((event.time.0, to)),
            _ => None,
        });
        intervals.extend(moves.take(MAX_MIGRATIONS));
    }
    if let Some(event) = switch {
        intervals.push((event.time.0, event.cpu));
    }
    intervals.compact_sort_by_key(|leg| leg.0);
    intervals
}
