//! Explanation of a spike by slices that add up.
//!
//! They do so by construction: time is walked once from start to end, each piece is attributed to
//! one cause or to none, and the rest is unexplained.

use std::collections::BTreeMap;

use super::assemble::assemble;
use super::attribute::{Over, cause};
use super::case::{Case, Cause, Phase, Stop};
use super::classes::classes;
use super::own::{self, Cost};
use super::spans::Spans;
use super::state::{RunningContext, Stretch, stretches};
use super::tasks::who;
use super::why::{self, Known};
use super::{outside, ticks};
use crate::window::Window;
use model::run::{Host, Slice, Spike};
use model::text::several;
use model::units::{Cpu, Nanos};

/// Explains a late wake-up: a cause for each nanosecond of its latency, as far as events prove one.
pub fn explain(window: &Window, host: &Host, cost: Cost) -> Spike {
    explain_part(window, host, cost, None)
}

/// Explains a part of a cycle, with the stops of the machine found in the whole cycle.
pub(super) fn explain_part(window: &Window, host: &Host, cost: Cost, stops: Option<&Spans<Stop>>) -> Spike {
    let latency = window.actual_ns.0.saturating_sub(window.expected_ns.0);
    let to = window.actual_ns.0;
    // Equals the expected time unless the difference overflowed.
    let from = to.saturating_sub(latency.max(0));
    let case = assemble(window, host, cost, from..to, stops);
    let mut account = Account::default();
    walk(&case, &mut account);
    account.settle();
    let known = reasons(&case, &account);
    let explained: i64 = account.slices.iter().map(|slice| slice.ns.0).sum();
    let mut spike = Spike {
        cpu: window.cpu,
        cycle: window.cycle,
        expected_ns: window.expected_ns,
        actual_ns: window.actual_ns,
        latency_ns: Nanos(latency),
        events_lost: window.events_lost,
        unexplained_ns: Nanos(latency - explained),
        stopped_ns: outside::total(&account.slices),
        victim: who(window.victim),
        switched_ns: case.path.switch.map(Nanos),
        notes: notes(&case, &account),
        slices: account.slices,
        ..Spike::default()
    };
    spike.classes = classes(&spike);
    why::tell(host, known, &mut spike);
    spike
}

/// Possible reasons for unexplained time.
fn reasons(case: &Case<'_>, account: &Account) -> Known {
    let window = case.window;
    let path = &case.path;
    let begins = case.events(case.home()).first().is_some_and(|event| event.time.0 <= case.from);
    let torn = window.events_lost > 0 || path.waking.or(path.switch).or(path.due_at_start).is_none();
    // A timer of the thread wakes it from an interrupt.
    let by_itself = window.own || path.expiry.is_some();
    Known { lost: torn || account.contradictions_ns > 0 || !begins, waits: !by_itself }
}

/// Attribution of time so far.
#[derive(Default)]
struct Account {
    slices: Vec<Slice>,
    /// Time in which events contradict each other.
    contradictions_ns: i64,
    /// Time of stalls in paths of bounded work, by name of the kind.
    stalled: BTreeMap<&'static str, i64>,
    /// Time in which a CPU ran a thread without ticks.
    tickless: i64,
}

fn walk(case: &Case<'_>, account: &mut Account) {
    let mut known: BTreeMap<Cpu, (Vec<Stretch<'_>>, Over, Vec<i64>)> = BTreeMap::new();
    let legs = &case.path.cpu_intervals;
    for (at, &(since, cpu)) in legs.iter().enumerate() {
        let until = legs.get(at + 1).map_or(case.to, |next| next.0).min(case.to);
        let since = since.max(case.from);
        if since >= until {
            continue;
        }
        let (stretches, over, cuts) = known.entry(cpu).or_insert_with(|| {
            let over = Over::new(case, cpu);
            let cuts = cuts(case, &over);
            (stretches(case.events(cpu), case.to), over, cuts)
        });
        let begin = stretches.partition_point(|stretch| stretch.end <= since);
        for stretch in stretches[begin..].iter().take_while(|stretch| stretch.start < until) {
            let mut start = stretch.start.max(since);
            let end = stretch.end.min(until);
            let first = cuts.partition_point(|&cut| cut <= start);
            for &cut in cuts[first..].iter().take_while(|&&cut| cut < end).chain([&end]) {
                let piece = Stretch { start, end: cut, ..stretch.clone() };
                account.give(case, over, cpu, piece);
                start = cut;
            }
        }
    }
}

/// Times between events at which a cause can change.
fn cuts(case: &Case<'_>, over: &Over) -> Vec<i64> {
    let path = &case.path;
    let mut cuts: Vec<i64> = over.edges().collect();
    cuts.extend(case.irqs_off.edges().chain(case.silent.edges()).chain(case.inverted.edges()));
    cuts.extend(&path.runnable);
    cuts.extend([path.asleep, path.waking, path.queued, path.switch].into_iter().flatten());
    cuts.extend(path.expiry.iter().flat_map(|expiry| [expiry.time, expiry.interrupt]));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

impl Account {
    fn give(&mut self, case: &Case<'_>, over: &Over, cpu: Cpu, piece: Stretch<'_>) {
        let ns = piece.end - piece.start;
        match cause(case, over, cpu, &piece) {
            Some(cause) if own::stood_still(case, &piece, &cause) => {
                if own::is_stop(&piece, &cause) {
                    self.add(&piece, outside::in_path(cause.kind));
                } else {
                    *self.stalled.entry(cause.kind.name()).or_default() += ns;
                }
            }
            Some(cause) if ticks::are_missing(case, cpu, &piece, &cause) => self.tickless += ns,
            Some(cause) => self.add(&piece, cause),
            None if piece.top == RunningContext::Unknown => self.contradictions_ns += ns,
            None => {}
        }
    }

    fn add(&mut self, piece: &Stretch<'_>, cause: Cause) {
        append(&mut self.slices, slice(cause, piece.start, piece.end));
    }

    /// Makes the slices of a culprit contested or not as a whole, by most of their time.
    fn settle(&mut self) {
        let slices = &self.slices;
        let sum = |slice: &Slice, all: bool| {
            let same = |other: &&Slice| other.kind == slice.kind && other.who == slice.who;
            slices
                .iter()
                .filter(same)
                .filter(|other| all || other.contested)
                .map(|other| other.ns.0)
                .sum::<i64>()
        };
        if slices.iter().any(|slice| slice.contested) {
            let mostly: Vec<bool> =
                slices.iter().map(|slice| sum(slice, false) > sum(slice, true) / 2).collect();
            self.slices.iter_mut().zip(mostly).for_each(|(slice, mostly)| slice.contested = mostly);
        }
    }
}

/// Note if there is no switch to the thread.
pub(super) const NO_SWITCH: &str = "no event shows the switch to the thread";

/// Note if the thread did not sleep.
const NO_SLEEP: &str = "its timer was due before it was started: the thread did not sleep, and was already \
                        late";

/// Slice of a stretch of time with its cause.
pub(super) fn slice(cause: Cause, start: i64, end: i64) -> Slice {
    Slice {
        kind: cause.kind.into(),
        start_ns: Nanos(start),
        ns: Nanos(end - start),
        who: cause.who,
        rule: None,
        evidence: cause.evidence,
        stack: cause.stack,
        contested: cause.contested,
        estimated: cause.estimated,
        overrun_of_ns: None,
    }
}

/// Adds a slice; extends the last one if that is adjacent and equal.
pub(super) fn append(slices: &mut Vec<Slice>, slice: Slice) {
    if let Some(last) = slices.last_mut() {
        let alike = last.contested == slice.contested && last.estimated == slice.estimated;
        let adjoins = last.start_ns.0 + last.ns.0 == slice.start_ns.0 && alike;
        if adjoins
            && last.overrun_of_ns == slice.overrun_of_ns
            && last.kind == slice.kind
            && last.who == slice.who
        {
            last.ns = Nanos(last.ns.0 + slice.ns.0);
            return;
        }
    }
    slices.push(slice);
}

/// Notes in addition to the slices.
fn notes(case: &Case<'_>, account: &Account) -> Vec<String> {
    let mut notes = Vec::new();
    let window = case.window;
    if window.events_lost > 0 {
        notes.push(format!(
            "{} of this CPU lost: overwritten before being read, or no space",
            several(window.events_lost, "event", "events")
        ));
    }
    if window.left_out > 0 {
        notes.push(format!(
            "{} of other CPUs omitted for lack of space",
            several(window.left_out, "event", "events")
        ));
    }
    if account.contradictions_ns > 0 {
        let ns = Nanos(account.contradictions_ns).spaced();
        notes.push(format!("events contradict each other: some are missing, in a gap of {ns}"));
    }
    if account.tickless > 0 {
        let ns = Nanos(account.tickless).spaced();
        notes.push(format!(
            "no tick came in {ns} while a thread was runnable: interrupts were off or the virtual CPU did not run"
        ));
    }
    for (kind, &ns) in &account.stalled {
        let ns = Nanos(ns).spaced();
        notes.push(format!("{ns} passed without an event in {kind}, longer than its usual work"));
    }
    let home = case.events(case.home());
    if home.first().is_none_or(|event| event.time.0 > case.from) {
        notes.push("the trace begins after the expected time".to_owned());
    }
    if case.path.due_at_start.is_some() {
        notes.push(NO_SLEEP.to_owned());
        return notes;
    }
    if case.path.waking.is_none() && case.phase(case.from) == Phase::Unknown {
        notes.push("no event shows the thread's waking".to_owned());
    }
    if case.path.switch.is_none() && case.phase(case.from) != Phase::Runnable {
        notes.push(NO_SWITCH.to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cpu_tracks;
    use super::super::fixture::{adds_up, host};
    use super::*;
    use crate::event::{Context, Event, Named, Task, Vector, What};
    use model::run::{Recorder, Run};
    use model::slice::SliceKind;

    fn task() -> impl Strategy<Value = Task> {
        let names =
            ["rt", "hog", "swapper", "ktimers/1", "ksoftirqd/1", "kworker/1:0", "migration/1", "sugov:0"];
        (0..8i32, -1..130i32).prop_map(move |(pid, prio)| Task {
            comm: names[pid as usize].into(),
            pid,
            prio,
        })
    }

    fn function() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "",
            "hrtimer_wakeup",
            "tick_nohz_handler",
            "hold [m]",
            "_raw_spin_unlock",
            "__schedule",
        ])
        .prop_map(str::to_owned)
    }

    fn what() -> impl Strategy<Value = What<String>> {
        let cpu = || (0..3u32).prop_map(Cpu);
        let scheduling = prop_oneof![
            (task(), prop::sample::select(vec![0i64, 1, 256]), task())
                .prop_map(|(prev, state, next)| What::Switch { prev, state, next }),
            (task(), cpu()).prop_map(|(task, target)| What::Waking { task, target }),
            (task(), cpu()).prop_map(|(task, target)| What::Wakeup { task, target }),
            (0..8i32, cpu(), cpu()).prop_map(|(pid, from, to)| What::Migrate { pid, from, to }),
            (0..8i32, 0..130i32, 0..130i32).prop_map(|(pid, old, new)| What::Inherit { pid, old, new }),
            prop::option::of(0..4u32).prop_map(|state| What::Idle { state }),
            Just(What::Fault { user: true }),
        ];
        let vector = || prop::sample::select(vec![Vector::LocalTimer, Vector::Reschedule, Vector::IrqWork]);
        let interrupts = prop_oneof![
            vector().prop_map(|vector| What::VectorEntry { vector }),
            vector().prop_map(|vector| What::VectorExit { vector }),
            (0..2i32).prop_map(|irq| What::IrqEntry { irq, name: "eth0".into() }),
            (0..2i32).prop_map(|irq| What::IrqExit { irq }),
            function().prop_map(|reason| What::IpiEntry { reason }),
            function().prop_map(|reason| What::IpiExit { reason }),
            (function(), any::<i64>()).prop_map(|(handler, ns)| What::Nmi { handler, ns: Nanos(ns) }),
            (function(), 0..90_000i64).prop_map(|(handler, ns)| What::Nmi { handler, ns: Nanos(ns) }),
            (cpu(), function()).prop_map(|(target, function)| What::CallQueue {
                target,
                callsite: String::new(),
                function
            }),
            function().prop_map(|function| What::CallEntry { function }),
            function().prop_map(|function| What::CallExit { function }),
        ];
        let soft = prop_oneof![
            (0..10u8).prop_map(|vec| What::SoftirqRaise { vec }),
            (0..10u8).prop_map(|vec| What::SoftirqEntry { vec }),
            (0..10u8).prop_map(|vec| What::SoftirqExit { vec }),
            (0..2u64, function()).prop_map(|(timer, function)| What::TimerEntry {
                timer,
                function,
                now: Nanos(0)
            }),
            (0..2u64).prop_map(|timer| What::TimerExit { timer }),
            any::<bool>().prop_map(|deferred| What::TimerRearm { next: Nanos(0), deferred }),
            function().prop_map(|function| What::WheelEntry { function }),
            Just(What::WheelExit),
            function().prop_map(|function| What::TaskletEntry { function }),
            Just(What::TaskletExit),
            function().prop_map(|function| What::WorkEntry { function }),
            function().prop_map(|function| What::WorkExit { function }),
            (0..3u32, any::<bool>(), function()).prop_map(|(of, offline, function)| {
                What::HotplugEntry { of: Cpu(of), offline, function }
            }),
            (0..3u32).prop_map(|of| What::HotplugExit { of: Cpu(of) }),
            (0..2u64, 0..4u32).prop_map(|(lock, flags)| What::ContentionBegin { lock, flags }),
            (0..2u64).prop_map(|lock| What::ContentionEnd { lock }),
            (any::<bool>(), any::<bool>(), function()).prop_map(|(irqs, off, caller)| What::Toggle {
                irqs,
                off,
                caller
            }),
            (prop::collection::vec(function(), 0..4), prop::option::of(0..5usize))
                .prop_map(|(frames, enables)| What::Stack { frames, enables }),
        ];
        prop_oneof![scheduling, interrupts, soft]
    }

    fn event() -> impl Strategy<Value = Named> {
        let time = prop_oneof![20 => 0..100_000i64, 1 => any::<i64>()];
        let cpu = prop_oneof![4 => Just(1u32), 1 => 0..3u32];
        (time, cpu, 0..8i32, any::<u8>(), 0..3u8, what()).prop_map(
            |(time, cpu, pid, flags, preempt, what)| Event {
                time: Nanos(time),
                cpu: Cpu(cpu),
                pid,
                context: Context(flags & 0x1d),
                preempt,
                what,
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_the_events_it_adds_up(
            events in prop::collection::vec(event(), 0..200),
            expected in prop_oneof![9 => 0..60_000i64, 1 => any::<i64>()],
            actual in prop_oneof![9 => 40_000..100_000i64, 1 => any::<i64>()],
            own in any::<bool>(),
            victim in task(),
            sorted in any::<bool>(),
            preempt in prop::sample::select(vec!["rt", "none"]),
            virtualization in prop::sample::select(vec!["kvm", "none", ""]),
            measured in prop::option::of(any::<i64>()),
        ) {
            let mut window = Window {
                cpu: Cpu(1),
                expected_ns: Nanos(expected),
                actual_ns: Nanos(actual),
                own,
                victim,
                events,
                ..Window::default()
            };
            if sorted {
                window.events.sort_by_key(|event| event.time);
            }
            // A short tick, so that gaps count.
            let declares = vec![0, 500, 20_000];
            let (preempt, virtualization) = (preempt.to_owned(), virtualization.to_owned());
            let host = Host { hz: Some(100_000), idle_exit_ns: declares, preempt: preempt.into(), virtualization, ..host() };
            let cost = Cost::of(&Run { recorder: measured.map(|ns| Recorder { median_ns: [Some(Nanos(ns)); 3], ..Recorder::default() }), ..Run::default() });
            let spike = explain(&window, &host, cost);
            adds_up(&spike);
            prop_assert!(spike.stopped_ns.0 >= 0 && spike.stopped_ns <= spike.latency_ns.max(Nanos(0)));
            let own = |slice: &&Slice| own && slice.kind == SliceKind::Thread && slice.who.pid == spike.victim.pid;
            prop_assert!(spike.slices.iter().filter(own).all(|slice| slice.ns.0 <= 1_000_000));
            prop_assert!(spike.classes.len() <= 10);
            for track in cpu_tracks(&window) {
                let mut cursor = i64::MIN;
                for stretch in &track.spans {
                    prop_assert!(stretch.start.0 >= cursor && stretch.ns.0 > 0);
                    cursor = stretch.start.0.saturating_add(stretch.ns.0);
                }
            }
        }
    }
}
