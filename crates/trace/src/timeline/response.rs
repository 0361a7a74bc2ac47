//! Explanation of the response of a thread's cycle by slices that add up: from its release to its
//! sleep for the next one.
//!
//! Waits for a CPU are explained like wake-ups; while the thread runs, contexts on top of it are
//! subtracted; a sleep within the cycle is named by its place and its waker. Time without proof
//! stays unexplained, so that slices and rest add up to the response.

use super::assemble::{assemble, stops};
use super::attribute::{Over, on_top};
use super::blocked::DividedSleep;
use super::calls::ThreadCalls;
use super::case::{Case, Cause, Stop};
use super::classes::classes;
use super::cycle_evidence::{CycleEvidence, Response, cut};
use super::earlier::tell_unknown;
use super::explain::{NO_SWITCH, append, slice};
use super::holders::Holders;
use super::last_cycle::asks_for_release;
use super::lent::LentPriority;
use super::locks::{kind_of, proof};
use super::outside;
use super::own::Cost;
use super::segments::{CycleSegment, Doing, segments};
use super::spans::Spans;
use super::spinning;
use super::state::{RunningContext, stretches};
use super::tasks::{Tasks, who};
use super::why::{self, Known};
use super::woken::{SleepEnd, due, stack_of};
use crate::cycles::place::SleepKind;
use crate::event::{Named, What};
use crate::kernel_functions::is_scheduler;
use crate::window::Window;
use model::run::{Host, Spike, Who};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::text::several;
use model::units::Nanos;

/// Limit of explained segments; later ones stay unexplained, with a note.
const MAX_SEGMENTS: usize = 512;

/// Limit of frames that may belong to the recording of a stack.
const MAX_TRACING_FRAMES: usize = 8;

/// Least wait for a lock, in nanoseconds; shorter ones count as the thread's own time.
const MIN_SPIN: i64 = 10_000;

/// Note if the thread ran without a recorded switch to it.
const UNSEEN: &str = "the kernel recorded no switch to the thread";

/// Explains a cycle that missed its deadline, as far as events prove it.
pub fn explain_response(window: &Window, host: &Host, cost: Cost) -> Spike {
    let latency = window.actual_ns.0.saturating_sub(window.expected_ns.0).max(0);
    let mut ordered: Vec<&Named> = window.events.iter().collect();
    ordered.compact_sort_by_key(|event| event.time);
    let calls = ThreadCalls::of(window, &ordered);
    let tasks = Tasks::new(ordered.iter().copied(), window.victim);
    let lent = LentPriority::of(&ordered, window.victim.pid);
    let holders = Holders::new(window, &ordered, &tasks);
    let stops = stops(window, host, cost, window.expected_ns.0..window.actual_ns.0);
    let tasks = &tasks;
    let cycle = CycleEvidence { window, ordered: &ordered, host, cost, calls, tasks, lent, holders, stops };
    let (mut response, mut unseen) = (Response::default(), 0);
    let all = segments(window);
    let own = |segment: &&CycleSegment<'_>| segment.doing == Doing::Running && !segment.last_cycle;
    let began = all.iter().find(own).map(|segment| segment.start);
    for segment in all.iter().take(MAX_SEGMENTS) {
        match segment.doing {
            Doing::Waiting | Doing::Preempted => response.waited(&cycle, segment),
            Doing::Running => response.ran(&cycle, segment),
            Doing::Sleeping => response.slept(&cycle, segment),
            Doing::Unseen => unseen += segment.end - segment.start,
        }
    }
    if unseen > 0 {
        let ns = Nanos(unseen).spaced();
        response.notes.push(format!("{UNSEEN}: {ns} of its own work or waiting are unexplained"));
    }
    if all.len() > MAX_SEGMENTS {
        let rest = several((all.len() - MAX_SEGMENTS) as u64, "part", "parts");
        response.notes.push(format!("the cycle has too many parts: the last {rest} are unexplained"));
    }
    let explained: i64 = response.slices.iter().map(|slice| slice.ns.0).sum();
    let mut spike = Spike {
        cpu: window.cpu,
        cycle: window.cycle,
        expected_ns: window.expected_ns,
        actual_ns: window.actual_ns,
        latency_ns: Nanos(latency),
        deadline_ns: window.deadline_ns,
        events_lost: window.events_lost,
        unexplained_ns: Nanos(latency - explained),
        stopped_ns: outside::total(&response.slices),
        inherited_ns: Nanos(response.inherited),
        victim: who(window.victim),
        switched_ns: began.map(Nanos),
        notes: response.notes,
        slices: response.slices,
        ..Spike::default()
    };
    spike.notes.extend(faults(window).into_iter().chain(cycle.calls.note()));
    if window.events_lost > 0 {
        let lost = several(window.events_lost, "event", "events");
        spike.notes.push(format!("{lost} of this CPU lost: overwritten before being read, or no space"));
    }
    spike.classes = classes(&spike);
    why::tell(host, Known { lost: window.events_lost > 0 || window.begins_late, waits: false }, &mut spike);
    tell_unknown(&mut spike, response.overran);
    spike
}

/// Note on the number of page faults: the kernel records the start of a fault, not its end.
fn faults(window: &Window) -> Option<String> {
    let within = window.expected_ns..=window.actual_ns;
    let fault = |event: &&Named| {
        event.pid == window.victim.pid
            && matches!(event.what, What::Fault { .. })
            && within.contains(&event.time)
    };
    let count = window.events.iter().filter(fault).count() as u64;
    let faults = several(count, "page fault", "page faults");
    (count > 0).then(|| format!("{faults} within its own time: lock and touch its memory beforehand"))
}

impl Response {
    /// Adds a segment in which the thread was runnable: a wake-up, or the end of a preemption.
    fn waited(&mut self, cycle: &CycleEvidence<'_>, segment: &CycleSegment<'_>) {
        let part = cycle.explain(segment);
        for mut slice in part.slices {
            // A thread before the victim's first run delays it; later, it preempts it.
            if segment.doing == Doing::Preempted && slice.kind == SliceKind::Thread {
                slice.kind = SliceKind::Preempted.into();
            }
            asks_for_release(&mut slice, cycle.window.victim.pid);
            append(&mut self.slices, slice);
        }
        for note in part.notes {
            // A thread still in its last cycle when it was released was not switched to.
            let of_switch = note == NO_SWITCH;
            if !of_switch && !self.notes.contains(&note) && self.notes.len() < 8 {
                self.notes.push(note);
            }
        }
    }

    /// Adds a segment in which the thread had its CPU.
    fn ran(&mut self, cycle: &CycleEvidence<'_>, segment: &CycleSegment<'_>) {
        let part = cut(cycle.window, cycle.ordered, segment);
        let span = segment.start..segment.end;
        let case = assemble(&part, cycle.host, cycle.cost, span, Some(&cycle.stops));
        let over = Over::new(&case, segment.cpu);
        let edges = over.nmi.edges().chain(over.spins.edges());
        let edges = edges.chain(case.silent.edges()).chain(cycle.calls.edges());
        let edges = edges.chain(cycle.lent.edges());
        let mut cuts: Vec<i64> = edges.collect();
        cuts.sort_unstable();
        for stretch in stretches(case.events(segment.cpu), segment.end) {
            let mut start = stretch.start.max(segment.start);
            let first = cuts.partition_point(|&cut| cut <= start);
            for &end in cuts[first..].iter().take_while(|&&cut| cut < stretch.end).chain([&stretch.end]) {
                let end = end.min(segment.end);
                if start >= end {
                    continue;
                }
                let piece = super::state::Stretch { start, end, ..stretch.clone() };
                self.give(&case, &over, cycle, segment, &piece);
                start = end;
            }
        }
    }

    fn give(
        &mut self,
        case: &Case<'_>,
        over: &Over,
        cycle: &CycleEvidence<'_>,
        segment: &CycleSegment<'_>,
        piece: &super::state::Stretch<'_>,
    ) {
        let victim = case.window.victim;
        let itself = matches!(piece.top, RunningContext::Thread | RunningContext::Work(_))
            && piece.pid == Some(victim.pid);
        let still = "the thread itself ran and did not sleep";
        let calls = &cycle.calls;
        let own = || match calls.name_at(piece.start).zip(calls.words_at(piece.start)) {
            _ if segment.last_cycle => Cause::new(SliceKind::Thread, who(victim), still),
            Some((function, words)) => {
                let evidence = format!("it ran in the call {words}, from its entry to its exit");
                Cause::new(SliceKind::Syscall, Who { function, ..who(victim) }, evidence)
            }
            None => Cause::new(SliceKind::Own, who(victim), "it ran itself, from switch to switch"),
        };
        let lent = || cycle.lent.at(cycle.tasks, piece.start);
        let spins = |&&(start, end, (pid, _)): &&(i64, i64, (i32, bool))| {
            pid == victim.pid && end.saturating_sub(start) >= MIN_SPIN
        };
        let spun = || {
            let &(start, end, _) = over.spins.at(piece.start).filter(spins)?;
            let how = "the kernel's events of contention enclose it";
            Some(spinning::cause(case, &who(victim), how, &[], start, end))
        };
        let itself = || itself.then(|| spun().or_else(lent).unwrap_or_else(own));
        // The thread itself silences no other CPU.
        let stopped = || case.silent.at(piece.start).map(|found| outside::silence(found.2));
        let cause = match on_top(case, over, segment.cpu, piece) {
            Some(cause) => outside::instead_of(case, piece, Some(cause)),
            None => stopped().or_else(itself),
        };
        if let Some(cause) = cause {
            append(&mut self.slices, slice(cause, piece.start, piece.end));
        }
    }

    /// Adds the time of a cause without the stops of the machine.
    fn give_unstopped(&mut self, stops: Option<&Spans<Stop>>, cause: &Cause, start: i64, end: i64) {
        let mut cuts: Vec<i64> = stops.iter().flat_map(|stops| stops.edges()).collect();
        cuts.retain(|&cut| start < cut && cut < end);
        cuts.sort_unstable();
        let mut from = start;
        for to in cuts.into_iter().chain([end]).filter(|&to| start < to) {
            let stop = stops.and_then(|stops| stops.at(from)).map(|found| outside::silence(found.2));
            append(&mut self.slices, slice(stop.unwrap_or_else(|| cause.clone()), from, to));
            from = to;
        }
    }

    /// Adds a sleep of the thread that was not for its next release.
    fn slept(&mut self, cycle: &CycleEvidence<'_>, segment: &CycleSegment<'_>) {
        if segment.last_cycle && self.overdue(cycle, segment) {
            return;
        }
        let stack = segment.slept.map(|switch| stack_of(cycle.ordered, switch)).unwrap_or_default();
        let kind = kind_of(stack);
        let proof = proof(cycle.window, cycle.ordered, segment.slept, stack);
        let place = place_of(stack, kind);
        let end = SleepEnd::of(cycle.window, cycle.ordered, cycle.tasks, kind, segment.slept, segment.woken);
        let timed = segment.slept.filter(|_| end == SleepEnd::TimeOut);
        let due = timed.and_then(|slept| due(cycle.ordered, slept, segment.end));
        let until = due.map_or(segment.end, |due| due.clamp(segment.start, segment.end));
        let function = place.unwrap_or_default();
        let evidence = end.words(kind, function, proof);
        let call = cycle.calls.words_at(segment.start);
        let evidence = call.map_or(evidence.clone(), |call| format!("{evidence}; in the call {call}"));
        let evidence = if segment.last_cycle { format!("{evidence}, in its last cycle") } else { evidence };
        let who = end.who(kind, function);
        let slices = if kind == SleepKind::Page { SliceKind::PageFault } else { SliceKind::Blocked };
        let cause = Cause { stack: stack.to_vec(), ..Cause::new(slices, who, evidence) };
        let holder = end.holder(proof);
        let sleep = DividedSleep { start: segment.start, end: until, holder, proof, cause };
        // No thread could wake it while the machine was stopped; a time-out keeps running.
        let by_thread = matches!(end, SleepEnd::Released(_) | SleepEnd::Woken(_));
        let stops = by_thread.then_some(&cycle.stops);
        for (cause, start, end) in sleep.causes(&cycle.holders, cycle.window.victim) {
            self.give_unstopped(stops, &cause, start, end);
        }
        if until < segment.end {
            // From there its timer was late, as before a wake-up.
            let late = CycleSegment { start: until, doing: Doing::Waiting, slept: None, ..segment.clone() };
            self.waited(cycle, &late);
        }
    }
}

/// Innermost function outside of the scheduler and of the recording, which some kernels leave on
/// the stack; for a lock with priority inheritance the call for it.
fn place_of(stack: &[String], kind: SleepKind) -> Option<&str> {
    let bare = |frame: &&String| frame.split(' ').next().unwrap_or_default().to_owned();
    let traced = stack.iter().take(MAX_TRACING_FRAMES).rposition(|frame| frame.contains("traceiter_"));
    let own = &stack[traced.map_or(0, |at| at + 1)..];
    let call = own.iter().find(|frame| kind == SleepKind::Lock && bare(frame) == "futex_lock_pi");
    let not_scheduler = || own.iter().filter(|frame| !is_scheduler(&bare(frame)));
    let place = || not_scheduler().find(|frame| !waits_for_caller(&bare(frame)));
    call.or_else(place).or_else(|| not_scheduler().next()).map(String::as_str)
}

/// True for functions that sleep on behalf of their caller (kernel/sched/wait.c, wait_bit.c,
/// completion.c, mm/filemap.c).
fn waits_for_caller(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    [
        "wait_woken",
        "wait_for_common",
        "do_wait_for_common",
        "wait_for_completion",
        "wait_on_bit",
        "out_of_line_wait_on_bit",
        "bit_wait",
        "folio_wait_bit",
        "wait_on_page_bit",
    ]
    .iter()
    .any(|start| bare.starts_with(start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixture::{E, adds_up, host, slice_lines, window};
    use super::*;
    use model::run::Slice;
    use model::units::Cpu;

    fn explained(end: f64, events: &str) -> Spike {
        let window = Window { own: false, deadline_ns: Some(Nanos(50_000)), ..window(end, events) };
        let spike = explain_response(&window, &host(), Cost::default());
        adds_up(&spike);
        assert_eq!(spike.deadline_ns, window.deadline_ns);
        spike
    }

    #[test]
    fn a_lock_that_the_thread_spins_for_is_not_its_own_time() {
        let of = |release: &str| {
            let events = format!(
                "{RELEASE}-400 0 60 d switch swapper/0/0/120 R keeper/60/120
                 20 1 50 d  spin+ 5
                 {release}
                 90 1 50 d  spin- 5
                 95 1 50 d  spin+ 6
                 97 1 50 d  spin- 6"
            );
            slice_lines(&explained(120.0, &events))
        };
        let named = of("88 0 60 d release 5");
        assert_eq!(named[2..5], ["own rt 12", "lock-contention keeper 70", "own rt 30"], "{named:?}");
        let unnamed = of("88 0 60 d release 7");
        assert_eq!(unnamed[3], "lock-contention 70", "{unnamed:?}");
    }

    const RELEASE: &str = "
        -500 1 50 d  switch rt/50/19 S swapper/1/0/120
        1    1 0  dh vector+ local_timer
        2    1 0  dh timer+ 1 hrtimer_wakeup
        3    1 0  dh waking rt/50/19
        4    1 0  dh timer- 1
        5    1 0  dh vector- local_timer
        8    1 0  d  switch swapper/1/0/120 R rt/50/19\n";

    #[test]
    fn every_part_of_a_response_has_its_name() {
        let events = RELEASE.to_owned()
            + "20 1 50 dh vector+ local_timer
               24 1 50 dh vector- local_timer
               30 1 50 d  switch rt/50/19 P hog/60/9
               70 1 60 d  switch hog/60/9 S rt/50/19
               80 1 50 d  switch rt/50/19 S low/61/120
               80 1 50 d  stack schedule,futex_do_wait,futex_wait,do_futex
               95 1 61 .  waking rt/50/19
               97 1 61 d  switch low/61/120 R rt/50/19";
        let spike = explained(120.0, &events);
        let lines = slice_lines(&spike);
        for line in [
            "own rt 12",
            "timer-irq local_timer 4",
            "own rt 6",
            "preempted hog 40",
            "own rt 10",
            "blocked futex_do_wait/low 15",
            "own rt 23",
        ] {
            assert!(lines.iter().any(|slice| slice == line), "{line}: {lines:#?}");
        }
        let blocked = spike.slices.iter().find(|slice| slice.kind == SliceKind::Blocked).unwrap();
        assert_eq!(blocked.evidence, "futex, woken by low:61");
        assert_eq!((blocked.who.pid, spike.switched_ns), (61, Some(Nanos(E + 8_000))));
    }

    #[test]
    fn an_interrupt_that_began_long_before_the_release_has_its_time() {
        let events = "
            -9000 1 50 d  switch rt/50/19 S swapper/1/0/120
            -3000 1 0  dh irq+ 17 nvme0q1
            60    1 0  dh irq- 17
            61    1 0  dh vector+ local_timer
            62    1 0  dh timer+ 1 hrtimer_wakeup
            63    1 0  dh waking rt/50/19
            64    1 0  dh timer- 1
            65    1 0  dh vector- local_timer
            68    1 0  d  switch swapper/1/0/120 R rt/50/19";
        let lines = slice_lines(&explained(100.0, events));
        assert!(lines.iter().any(|slice| slice == "irq nvme0q1 60"), "{lines:#?}");
    }

    #[test]
    fn a_page_s_arrival_is_a_page_fault_and_a_pi_lock_has_its_holder() {
        let page = "trace_event_raw_event_sched_switch,__traceiter_sched_switch,__schedule,io_schedule,\
                    folio_wait_bit_common,filemap_fault,handle_mm_fault";
        let lock = "rt_mutex_schedule,rt_mutex_slowlock,futex_lock_pi,do_futex";
        for (stack, kind, evidence) in [
            (page, SliceKind::PageFault, "it slept in a page fault until low:61 woke it"),
            (lock, SliceKind::Blocked, "a lock with priority inheritance, released by low:61"),
            ("schedule,pipe_read,vfs_read", SliceKind::Blocked, "it slept in pipe_read until low:61 woke it"),
            (
                "__schedule,schedule_timeout,wait_woken,n_tty_write,tty_write",
                SliceKind::Blocked,
                "it slept in n_tty_write until low:61 woke it",
            ),
        ] {
            let sleep = format!(
                "30 1 50 . fault
                 31 1 50 d switch rt/50/19 S low/61/120
                 31 1 50 d stack {stack}
                 59 1 61 d inherit 61 19 120
                 60 1 61 . waking rt/50/19
                 61 1 61 d switch low/61/120 R rt/50/19"
            );
            let spike = explained(80.0, &(RELEASE.to_owned() + &sleep));
            let slept = spike.slices.iter().find(|slice| slice.start_ns == Nanos(E + 31_000)).unwrap();
            assert_eq!((slice_kind(slept), slept.evidence.as_str()), (Some(kind), evidence));
            assert!(spike.notes.iter().any(|note| note.starts_with("1 page fault ")), "{:?}", spike.notes);
        }
        let spike = explained(
            80.0,
            &(RELEASE.to_owned() + "31 1 50 d switch rt/50/19 D swapper/1/0/120\n60 0 9 h waking rt/50/19"),
        );
        assert!(spike.slices.iter().any(|slice| slice.evidence.contains("without a stack")));
    }

    #[test]
    fn a_lock_is_released_by_whom_gave_its_priority_back_and_else_by_nobody() {
        let lock = "rt_mutex_schedule,rt_mutex_slowlock,futex_lock_pi,do_futex";
        let futex = "futex_do_wait,futex_wait,do_futex";
        let time_out = "59 1 61 dh timer+ 2 hrtimer_wakeup
                        60 1 61 dh waking rt/50/19
                        60 1 61 dh timer- 2";
        let low = "60 1 61 . waking rt/50/19";
        let lock_words = |rest: &str| format!("a lock with priority inheritance, {rest}");
        let woken = lock_words("until low:61 woke it");
        for (stack, end, evidence, pid) in [
            (lock, format!("59 1 61 d inherit 61 19 120\n{low}"), lock_words("released by low:61"), 61),
            // Higher than the sleeper's: another thread waits as well.
            (lock, format!("59 1 61 d inherit 61 9 120\n{low}"), lock_words("released by low:61"), 61),
            (lock, time_out.to_owned(), lock_words("until its time-out"), 0),
            // A signal: the waker holds no lock, or another one, or still this one.
            (lock, low.to_owned(), woken.clone(), 0),
            (lock, format!("59 1 61 d inherit 61 100 120\n{low}"), woken.clone(), 0),
            (lock, format!("59 1 61 d inherit 61 9 19\n{low}"), woken.clone(), 0),
            (lock, format!("59 1 61 d inherit 70 19 120\n{low}"), woken.clone(), 0),
            // It passed the lock to another thread, or had slept in between.
            (lock, format!("57 1 61 d inherit 61 19 120\n58 1 61 . waking x/71/19\n{low}"), woken.clone(), 0),
            (
                lock,
                format!(
                    "50 1 61 d inherit 61 19 120\n51 1 61 d switch low/61/120 S x/71/19
                     52 1 71 d switch x/71/19 S low/61/120\n{low}"
                ),
                woken,
                0,
            ),
            (lock, "60 1 61 dh waking rt/50/19".to_owned(), lock_words("until an interrupt woke it"), 0),
            (futex, time_out.to_owned(), "futex, until its time-out".to_owned(), 0),
            (
                futex,
                time_out.replace("hrtimer_wakeup", "posix_timer_fn"),
                "futex, until an interrupt woke it".to_owned(),
                0,
            ),
            (futex, low.to_owned(), "futex, woken by low:61".to_owned(), 61),
        ] {
            let events = format!(
                "{RELEASE}
                 31 1 50 d switch rt/50/19 S low/61/120
                 31 1 50 d stack {stack}
                 {end}
                 61 1 61 d switch low/61/120 R rt/50/19"
            );
            let spike = explained(80.0, &events);
            let slept = spike.slices.iter().find(|slice| slice.start_ns == Nanos(E + 31_000)).unwrap();
            assert_eq!((&slept.evidence, slept.who.pid), (&evidence, pid), "{end}");
        }
    }

    #[test]
    fn what_the_last_cycle_waited_for_has_the_time_of_the_overdue_one() {
        let events = "
            -9000 1 50 d  switch rt/50/19 S swapper/1/0/120
            -9000 1 50 d  stack rt_mutex_schedule,rt_mutex_slowlock,futex_lock_pi,do_futex
            9000  0 0  d  switch swapper/0/0/120 R low/61/19
            9990  0 61 d  inherit 61 19 120
            10000 0 61 d  waking rt/50/19
            10010 1 0  d  switch swapper/1/0/120 R rt/50/19
            10030 1 50 .  start 1 hrtimer_wakeup 0
            10032 1 50 dh vector+ local_timer
            10033 1 50 dh timer+ 1 hrtimer_wakeup
            10034 1 50 dh waking rt/50/19
            10035 1 50 dh timer- 1
            10036 1 50 dh vector- local_timer";
        let spike = explained(10_100.0, events);
        let lines = slice_lines(&spike);
        for line in ["blocked futex_lock_pi/low 10000", "thread rt 22", "own rt 64"] {
            assert!(lines.iter().any(|slice| slice == line), "{line}: {lines:#?}");
        }
        let words = "a lock with priority inheritance, released by low:61, in its last cycle; in that time \
                     low ran for 1 ms, was in an unknown state for 9 ms";
        assert_eq!(spike.slices[0].evidence, words);
        assert_eq!((spike.unexplained_why.as_str(), spike.switched_ns), ("", Some(Nanos(E + 10_034_000))));
        // No event shows the start and the place of its sleep.
        let later = events.lines().skip(3).collect::<Vec<_>>().join("\n");
        let spike = explained(10_100.0, &later);
        let words = "it slept, without a stack, until low:61 woke it, in its last cycle";
        assert_eq!((spike.slices[0].evidence.as_str(), spike.unexplained_why.as_str()), (words, ""));
    }

    /// Call numbers of x86-64.
    const CALLS: [(i64, &str); 3] = [(1, "write"), (202, "futex"), (230, "clock_nanosleep")];

    fn with_calls(end: f64, events: &str) -> Spike {
        let window = Window {
            own: false,
            deadline_ns: Some(Nanos(50_000)),
            calls: CALLS.map(|(id, name)| (id, name.to_owned())).into(),
            locks: [(5, "robot+0x4040".to_owned())].into(),
            ..window(end, events)
        };
        let spike = explain_response(&window, &host(), Cost::default());
        adds_up(&spike);
        spike
    }

    #[test]
    fn time_in_calls_is_apart_from_the_thread_s_own_and_a_sleep_names_the_call_and_its_lock() {
        let events = RELEASE.to_owned()
            + "10 1 50 .  leave 230
               20 1 50 .  enter 1 3
               25 1 50 dh vector+ local_timer
               27 1 50 dh vector- local_timer
               30 1 50 .  leave 1
               40 1 50 .  enter 202 5
               42 1 50 d  switch rt/50/19 S low/61/120
               42 1 50 d  stack schedule,futex_do_wait,futex_wait,do_futex
               60 1 61 .  waking rt/50/19
               61 1 61 d  switch low/61/120 R rt/50/19
               63 1 50 .  leave 202
               70 1 50 .  enter 39
               74 1 50 .  leave 39
               80 1 50 .  enter 230";
        let lines = slice_lines(&with_calls(84.0, &events));
        let own = lines.iter().filter(|line| !line.starts_with("switch") && !line.starts_with("timer"));
        let expected = [
            "syscall clock_nanosleep/rt 2",
            "own rt 10",
            "syscall write/rt 5",
            "syscall write/rt 3",
            "own rt 10",
            "syscall futex/rt 2",
            "blocked futex_do_wait/low 18",
            "syscall futex/rt 2",
            "own rt 7",
            "syscall system call 39/rt 4",
            "own rt 6",
            "syscall clock_nanosleep/rt 4",
        ];
        let own: Vec<&str> = own.map(String::as_str).collect();
        for line in expected {
            assert!(own.contains(&line), "{line}: {own:#?}");
        }
        let spike = with_calls(84.0, &events);
        let blocked = spike.slices.iter().find(|slice| slice.kind == SliceKind::Blocked).unwrap();
        assert_eq!(blocked.evidence, "futex, woken by low:61; in the call futex at robot+0x4040");
    }

    /// Signals wake by the same event.
    #[test]
    fn a_futex_is_released_by_who_was_in_a_call_that_wakes() {
        let slept = |stack: &str, waker: &str, lost: u64| {
            let events = format!(
                "{RELEASE}
                 40 1 50 .  enter 202 5
                 42 1 50 d  switch rt/50/19 S low/61/120
                 42 1 50 d  stack {stack}
                 {waker}
                 60 1 61 .  waking rt/50/19
                 61 1 61 d  switch low/61/120 R rt/50/19"
            );
            let calls = CALLS.map(|(id, name)| (id, name.to_owned())).into();
            let window = Window { own: false, calls, events_lost: lost, ..window(84.0, &events) };
            let spike = explain_response(&window, &host(), Cost::default());
            let blocked = spike.slices.iter().find(|slice| slice.kind == SliceKind::Blocked).unwrap();
            blocked.evidence.split(';').next().unwrap().to_owned()
        };
        let futex = |waker: &str, lost| slept("futex_do_wait,futex_wait,do_futex", waker, lost);
        // FUTEX_WAKE and FUTEX_WAKE_BITSET, private.
        for wake in ["59 1 61 . enter 202 5 129", "50 0 61 . enter 202 5 138\n55 1 61 . fault"] {
            assert_eq!(futex(wake, 0), "futex, released by low:61", "{wake}");
        }
        for (other, lost) in [
            ("", 0),
            ("59 1 61 . enter 202 5 129", 1),
            ("58 1 61 . enter 202 5 129\n59 1 61 . leave 202", 0),
            ("58 1 61 . enter 202 5 129\n59 1 61 . enter 1 3", 0),
            ("59 1 61 . enter 202 5 128", 0),
            ("59 1 61 . enter 1 5 129", 0),
            ("59 0 62 . enter 202 5 129", 0),
        ] {
            assert_eq!(futex(other, lost), "futex, woken by low:61", "{other}");
        }
        let lock = |waker: &str| slept("rt_mutex_schedule,futex_lock_pi,do_futex", waker, 0);
        let place = "a lock with priority inheritance,";
        assert_eq!(lock("59 1 61 . enter 202 5 135"), format!("{place} released by low:61"));
        assert_eq!(lock("59 1 61 . enter 202 5 129"), format!("{place} until low:61 woke it"));
    }

    #[test]
    fn what_no_event_tells_of_a_call_stays_the_thread_s_own_time() {
        let of = |events: &str| {
            let all = slice_lines(&with_calls(50.0, &(RELEASE.to_owned() + events)));
            all.into_iter().filter(|line| line.starts_with("syscall")).collect::<Vec<_>>()
        };
        assert_eq!(of("20 1 50 . enter 1 3\n30 1 50 . leave 202"), [""; 0], "another call's exit");
        assert_eq!(
            of("20 1 50 . enter 1 3\n30 1 50 . enter 202\n35 1 50 . leave 202"),
            ["syscall futex/rt 5"]
        );
        assert_eq!(of("20 1 50 dh enter 1 3\n30 1 60 . leave 1"), [""; 0], "another's");
        let many: Vec<String> = (0..300)
            .map(|n| format!("{} 1 50 . enter 1\n{} 1 50 . leave 1", 10 + 2 * n, 11 + 2 * n))
            .collect();
        let spike = with_calls(700.0, &(RELEASE.to_owned() + &many.join("\n")));
        assert!(
            spike.notes.iter().any(|note| note.starts_with("44 shorter system calls")),
            "{:?}",
            spike.notes
        );
        let lost = Window { events_lost: 1, ..window(50.0, &(RELEASE.to_owned() + "20 1 50 . leave 1")) };
        let spike = explain_response(&lost, &host(), Cost::default());
        assert!(spike.slices.iter().all(|slice| slice.kind != SliceKind::Syscall), "{:?}", spike.slices);
    }

    fn slice_kind(slice: &Slice) -> Option<SliceKind> {
        slice.kind.known()
    }

    /// Lines of events that may follow a release, in any order and number.
    const LINES: [&str; 16] = [
        "1 50 . enter 1 5",
        "1 50 . leave 1",
        "1 50 . enter 202 5",
        "1 50 . leave 202",
        "1 50 d switch rt/50/19 P hog/60/9",
        "1 60 d switch hog/60/9 S rt/50/19",
        "1 50 d switch rt/50/19 S low/61/120",
        "1 50 d stack schedule,futex_wait",
        "1 61 . waking rt/50/19",
        "1 61 d switch low/61/120 R rt/50/19",
        "1 50 dh vector+ local_timer",
        "1 50 dh vector- local_timer",
        "1 50 s soft+ 3",
        "1 50 s soft- 3",
        "0 62 d switch x/62/120 R rt/50/19",
        "1 50 . fault",
    ];

    proptest! {
        #[test]
        fn slices_and_rest_are_the_response(
            steps in prop::collection::vec((0..30u32, 0..LINES.len()), 0..60),
            end in 1..900u32,
            shuffled in any::<bool>(),
        ) {
            let (mut at, mut text) = (9, RELEASE.to_owned());
            for (step, line) in steps {
                at += step;
                text += &format!("{at} {}\n", LINES[line]);
            }
            let mut window = window(f64::from(end), &text);
            if shuffled {
                window.events.reverse();
            }
            let spike = explain_response(&window, &host(), Cost::default());
            adds_up(&spike);
            prop_assert!(spike.stopped_ns.0 >= 0 && spike.stopped_ns <= spike.latency_ns);
            prop_assert_eq!(spike.cpu, Cpu(1));
        }
    }
}
