//! Cycles of synthetic threads: each kind of release and of sleep, unexplained sleeps, and
//! arbitrary events.

use proptest::prelude::*;

use super::place::{SleepKind, SleepPlace};
use super::*;
use crate::event::{Context, Event, Vector};

const ME: i32 = 7;

/// Contexts of a timer interrupt and of a softirq.
const HARD: u8 = 8;
const SOFT: u8 = 16;

fn task(pid: i32) -> Task {
    Task { comm: format!("t{pid}").as_str().into(), pid, prio: if pid == ME { 19 } else { 9 } }
}

fn at(time: i64, pid: i32, context: u8, what: What<Address>) -> Raw {
    Event { time: Nanos(time), cpu: Cpu(0), pid, context: Context(context), preempt: 0, what }
}

fn switch(time: i64, from: i32, state: i64, to: i32) -> Raw {
    at(time, from, 0, What::Switch { prev: task(from), state, next: task(to) })
}

fn waking(time: i64, by: i32, context: u8) -> Raw {
    at(time, by, context, What::Waking { task: task(ME), target: Cpu(0) })
}

/// Starts a timer of the thread.
fn arm(time: i64, expires: i64) -> Raw {
    at(time, ME, 0, What::TimerStart { timer: 5, function: 1, expires: Nanos(expires) })
}

fn fires(time: i64, pid: i32, context: u8) -> Vec<Raw> {
    let entry = What::TimerEntry { timer: 5, function: 1, now: Nanos(time) };
    vec![
        at(time, pid, context, entry),
        waking(time + 1, pid, context),
        at(time + 2, pid, context, What::TimerExit { timer: 5 }),
    ]
}

fn stack(time: i64, key: u64) -> Raw {
    at(time, ME, 0, What::Stack { frames: vec![key], enables: None })
}

/// Stack keys: 1 for a futex, 2 for a PI lock, 3 for a fault, 6 for a write, others elsewhere.
fn place(frames: &[Address]) -> SleepPlace {
    let key = frames.first().copied().unwrap_or(0);
    let kind = match key {
        1 => SleepKind::Futex,
        2 => SleepKind::Lock,
        3 => SleepKind::Page,
        6 => SleepKind::Output,
        _ => SleepKind::Other,
    };
    SleepPlace { kind, key }
}

fn follow(events: &[Raw], futex: Option<i64>) -> (Vec<Cycle>, CycleTracker) {
    let mut tracker = CycleTracker::new(futex);
    tracker.follow(ME);
    let mut cycles = Vec::new();
    for event in events {
        assert!(CycleTracker::wants(event));
        let cycle = tracker.observe(event, &mut place);
        cycles.extend(cycle);
    }
    (cycles, tracker)
}

/// Release, response, own, wait, preempted and blocked time.
fn parts(cycle: &Cycle) -> [i64; 6] {
    let Cycle { release, own, wait, preempted, blocked, .. } = cycle;
    [release.0, cycle.response().0, own.0, wait.0, preempted.0, blocked.0]
}

/// Cycle released at 100, with events between its first run at 110 and its end.
fn cycle(between: Vec<Raw>, end: i64) -> Vec<Raw> {
    let mut events = vec![switch(5, 3, 1, ME), arm(10, 100), switch(11, ME, 1, 3)];
    events.extend(fires(102, 3, HARD));
    events.push(switch(110, 3, 0, ME));
    events.extend(between);
    events.extend([arm(end - 1, end + 500), switch(end, ME, 1, 3)]);
    events.extend(fires(end + 500, 3, HARD));
    events
}

#[test]
fn a_cycle_goes_from_the_expiry_to_the_sleep_for_the_next_one() {
    let (cycles, _) = follow(&cycle(vec![], 150), None);
    assert_eq!(cycles.iter().map(parts).collect::<Vec<_>>(), [[100, 50, 40, 10, 0, 0]]);
    assert_eq!((cycles[0].by, cycles[0].began, cycles[0].end), (ReleaseKind::Timer, Nanos(110), Nanos(150)));
}

/// Since 7.2 a timer that is due when started is not queued: no expiry, and no sleep.
#[test]
fn a_release_that_was_due_before_it_was_asked_for_ends_a_cycle_without_a_sleep() {
    let over = |time: i64| at(time, ME, 0, What::TimerStartExpired { timer: 5 });
    let mut events = vec![switch(5, 3, 1, ME), arm(10, 100), switch(11, ME, 1, 3)];
    events.extend(fires(102, 3, HARD));
    // Released at 100, it works until 250, starts a timer for 200 and continues.
    events.extend([switch(110, 3, 0, ME), arm(249, 200), over(250), arm(279, 300), switch(280, ME, 1, 3)]);
    events.extend(fires(301, 3, HARD));
    let (cycles, tracker) = follow(&events, None);
    let all: Vec<_> = cycles.iter().map(parts).collect();
    assert_eq!(all, [[100, 149, 139, 10, 0, 0], [200, 80, 30, 50, 0, 0]]);
    assert_eq!((cycles[1].began, tracker.counters(ME)), (Nanos(250), CycleCounters::default()));
    // For a clock that no expiry has shown, the due time is unknown.
    let other = events.iter().map(|event| match &event.what {
        What::TimerStart { expires: Nanos(200), .. } => arm(event.time.0, 900_000_000_000),
        _ => event.clone(),
    });
    let (cycles, _) = follow(&other.collect::<Vec<_>>(), None);
    assert_eq!(cycles[1].release, Nanos(250));
}

#[test]
fn a_sleep_for_no_time_within_a_cycle_ends_none() {
    let mut events = vec![switch(5, 3, 1, ME), arm(10, 100), switch(11, ME, 1, 3)];
    for n in 0..20 {
        let due = 100 + 1_000 * n;
        events.extend(fires(due, 3, HARD));
        events.push(switch(due + 10, 3, 0, ME));
        let yields = at(due + 21, ME, 0, What::TimerStartExpired { timer: 6 });
        let asks = at(due + 20, ME, 0, What::TimerStart { timer: 6, function: 1, expires: Nanos(due + 20) });
        if n > 12 {
            events.extend([asks, yields]);
        }
        events.extend([arm(due + 50, due + 1_000), switch(due + 51, ME, 1, 3)]);
    }
    let (cycles, _) = follow(&events, None);
    assert_eq!(cycles.len(), 19);
    assert!(cycles.iter().all(|cycle| cycle.response() == Nanos(51)), "{cycles:?}");
}

#[test]
fn preemption_locks_and_pages_are_parts_of_it() {
    let between = vec![
        switch(120, ME, 0, 9),
        switch(140, 9, 1, ME),
        switch(150, ME, 2, 3), // uninterruptible
        waking(170, 3, 0),
        switch(175, 3, 0, ME),
        at(176, ME, 0, What::Fault { user: true }),
        switch(180, ME, 1, 3),
        stack(181, 2),
        waking(200, 4, 0),
        switch(203, 3, 0, ME),
    ];
    let (cycles, _) = follow(&cycle(between, 210), None);
    assert_eq!(parts(&cycles[0]), [100, 110, 10 + 10 + 5 + 7, 10 + 5 + 3, 20, 20 + 20]);
    let longest = cycles[0].longest.expect("a part");
    assert_eq!((longest.part, longest.length, longest.by.pid), (CyclePart::Preempted, Nanos(20), 9));
    assert_eq!((cycles.len(), cycles[0].faults), (1, 1));
}

#[test]
fn another_thread_an_interrupt_and_its_thread_release_as_well() {
    let by = |context: u8, pid: i32, key: u64, call: Option<i64>| {
        let sleep = |from: i64| vec![switch(from, ME, 1, pid), stack(from + 1, key)];
        let wake = |time: i64| vec![waking(time, pid, context), switch(time + 5, pid, 0, ME)];
        let call = call.map(|id| at(9, ME, 0, What::SyscallEntry { id, args: [7, 128, 7, 0] }));
        let begin = std::iter::once(switch(1, 3, 0, ME)).chain(call).collect();
        let events = [begin, sleep(10), wake(100), sleep(130), wake(200)].concat();
        let (cycles, tracker) = follow(&events, Some(202));
        let releases: Vec<_> = cycles.iter().map(|cycle| (cycle.by, parts(cycle))).collect();
        (releases, tracker.counters(ME).untold)
    };
    let one = [100, 30, 25, 5, 0, 0];
    assert_eq!(by(0, 3, 9, None), (vec![(ReleaseKind::Thread, one)], 0));
    assert_eq!(by(HARD, 3, 9, None), (vec![(ReleaseKind::Interrupt, one)], 0));
    assert_eq!(by(HARD, 3, 1, None), (vec![(ReleaseKind::Interrupt, one)], 0), "no interrupt gives a lock");
    // A mutex or a condition, which the call's arguments would distinguish; those of a new thread
    // are not recorded yet.
    assert_eq!(by(0, 3, 1, None), (vec![], 2));
    assert_eq!(by(0, 3, 1, Some(202)), (vec![(ReleaseKind::Thread, one)], 0));
    assert_eq!(by(0, 3, 2, None), (vec![], 0), "a lock releases nobody");
}

#[test]
fn calls_of_other_numbers_tell_nothing() {
    let sleep = |from: i64| vec![switch(from, ME, 1, 3), stack(from + 1, 1)];
    let call = at(9, ME, 0, What::SyscallEntry { id: 202, args: [2, 128, 2, 0] });
    let events = [vec![switch(1, 3, 0, ME), call], sleep(10), vec![waking(100, 3, 0)]].concat();
    let untold = |others: bool| {
        let mut tracker = CycleTracker::new(Some(202));
        tracker.follow(ME);
        if others {
            tracker.has_other_numbers(ME);
        }
        assert!(events.iter().all(|event| tracker.observe(event, &mut place).is_none()));
        tracker.counters(ME).untold
    };
    assert_eq!((untold(false), untold(true)), (0, 1));
}

#[test]
fn a_mutex_is_told_from_a_condition_by_the_call() {
    let call =
        |time: i64, value: u64| at(time, ME, 0, What::SyscallEntry { id: 202, args: [value, 128, value, 0] });
    let wait = |from: i64, value: u64| {
        let sleep = vec![call(from - 1, value), switch(from, ME, 1, 3), stack(from + 1, 1)];
        [sleep, vec![waking(from + 50, 3, 0), switch(from + 55, 3, 0, ME)]].concat()
    };
    let events = [vec![switch(1, 3, 0, ME)], wait(10, 7), wait(80, 2), wait(150, 7)].concat();
    let (cycles, _) = follow(&events, Some(202));
    assert_eq!(cycles.iter().map(parts).collect::<Vec<_>>(), [[60, 90, 15 + 15, 5 + 5, 0, 50]]);
}

/// Periods of 1000 from 1000 on, `count` of them, woken 10 after the expiry, running for 100.
fn periods(count: i64) -> Vec<Raw> {
    let mut events = vec![switch(5, 3, 1, ME)];
    for at in 1..=count {
        let from = (at - 1) * 1_000 + 110 + i64::from(at > 1) * 10;
        events.extend([arm(from - 1, at * 1_000), switch(from, ME, 1, 3), stack(from + 1, 4)]);
        events.extend(fires(at * 1_000 + 5, 3, SOFT));
        events.push(switch(at * 1_000 + 10, 3, 0, ME));
    }
    events
}

#[test]
fn a_thread_that_its_timer_drives_is_not_released_by_what_it_waits_for() {
    let mut events = periods(12);
    // In its thirteenth cycle it waits for a futex, a mutex or a condition.
    events.extend([switch(12_050, ME, 1, 3), stack(12_051, 1), waking(12_400, 3, 0)]);
    events.extend([switch(12_405, 3, 0, ME), arm(12_499, 13_000), switch(12_500, ME, 1, 3)]);
    events.extend(fires(13_001, 3, SOFT));
    let (cycles, tracker) = follow(&events, None);
    let last = cycles.last().expect("a cycle");
    assert_eq!(parts(last), [12_000, 500, 40 + 95, 10 + 5, 0, 350]);
    assert_eq!((last.period, last.distance), (Some(Nanos(1_000)), Some(Nanos(1_000))));
    assert_eq!((cycles.len(), tracker.counters(ME)), (12, CycleCounters::default()));
    // At the place where it waits for its timer, another thread releases it as well.
    events.extend([switch(13_010, 3, 0, ME), switch(13_100, ME, 1, 3), stack(13_101, 4)]);
    events.extend([waking(13_300, 3, 0), switch(13_310, 3, 0, ME), switch(13_400, ME, 1, 3)]);
    events.extend([stack(13_401, 4), waking(13_600, 3, 0)]);
    let (cycles, _) = follow(&events, None);
    let last = cycles.last().expect("a cycle");
    assert_eq!((last.by, parts(last)), (ReleaseKind::Thread, [13_300, 100, 90, 10, 0, 0]));
}

#[test]
fn what_a_scheduled_thread_waited_for_before_its_schedule_was_known_is_no_release() {
    let wait = |from: i64| {
        let sleep = [switch(from, ME, 1, 3), stack(from + 1, 5), waking(from + 50, 3, 0)];
        [sleep.to_vec(), vec![switch(from + 60, 3, 0, ME)]].concat()
    };
    // Output to a slow terminal, in an unexplained first cycle, and in one of a schedule.
    let mut events = [vec![switch(1, 3, 0, ME)], wait(2), periods(12).split_off(1)].concat();
    events.extend(wait(12_050));
    events.extend([arm(12_199, 13_000), switch(12_200, ME, 1, 3)]);
    events.extend(fires(13_001, 3, SOFT));
    let (cycles, tracker) = follow(&events, None);
    let last = cycles.last().expect("a cycle");
    assert_eq!(parts(last), [12_000, 200, 40 + 90, 10 + 10, 0, 50]);
    assert_eq!(tracker.counters(ME), CycleCounters::default());
}

#[test]
fn a_time_out_within_a_scheduled_cycle_does_not_end_it() {
    let mut events = periods(12);
    // In its thirteenth cycle it waits elsewhere, without an answer.
    events.extend([arm(12_049, 12_600), switch(12_050, ME, 1, 3), stack(12_051, 5)]);
    events.extend(fires(12_601, 3, SOFT));
    events.extend([switch(12_610, 3, 0, ME), arm(12_699, 13_000), switch(12_700, ME, 1, 3)]);
    events.push(stack(12_701, 4));
    events.extend(fires(13_001, 3, SOFT));
    let (cycles, _) = follow(&events, None);
    let last = cycles.last().expect("a cycle");
    assert_eq!((last.release.0, last.response().0, last.own.0), (12_000, 700, 40 + 90));
    assert!(last.blocked.0 > 500, "{last:?}");
    assert_eq!((cycles.len(), last.period), (12, Some(Nanos(1_000))));
}

#[test]
fn nobody_waits_for_a_release_in_a_write_but_for_a_device() {
    let by = |context: u8| {
        let write = [switch(120, ME, 1, 3), stack(121, 6), waking(160, 3, context), switch(170, 3, 0, ME)];
        let (cycles, _) = follow(&cycle(write.to_vec(), 200), None);
        cycles.iter().map(|cycle| (cycle.by, cycle.blocked.0, cycle.response().0)).collect::<Vec<_>>()
    };
    // The very first cycle, without earlier observations of the thread.
    assert_eq!(by(0), [(ReleaseKind::Timer, 40, 100)]);
    assert_eq!(by(HARD), [(ReleaseKind::Timer, 0, 20), (ReleaseKind::Interrupt, 0, 40)]);
}

#[test]
fn a_release_that_is_due_before_the_cycle_ends_begins_the_next_one_without_a_sleep() {
    let mut events = cycle(vec![], 150);
    // The next timer is due at 650, and it runs until 800: no sleep is left before the next one.
    events.extend([switch(655, 3, 0, ME), arm(800, 700)]);
    events.extend(fires(803, ME, HARD));
    events.extend([arm(849, 1_000), switch(850, ME, 1, 3)]);
    events.extend(fires(1_000, 3, HARD));
    let (cycles, _) = follow(&events, None);
    let all: Vec<_> = cycles.iter().map(parts).collect();
    assert_eq!(all[1..], [[650, 150, 145, 5, 0, 0], [700, 150, 46, 104, 0, 0]]);
    // A timer armed for a time before the last release is due when it is armed.
    let mut events = cycle(vec![], 150);
    events.extend([switch(655, 3, 0, ME), arm(800, 3)]);
    events.extend(fires(803, ME, HARD));
    events.extend([arm(849, 1_000), switch(850, ME, 1, 3)]);
    events.extend(fires(1_000, 3, HARD));
    assert_eq!(parts(&follow(&events, None).0[2]), [800, 50, 46, 4, 0, 0]);
}

#[test]
fn an_expiry_during_a_cycle_that_wakes_nobody_is_an_overrun() {
    let mut events = cycle(vec![], 150);
    let entry = What::TimerEntry { timer: 5, function: 1, now: Nanos(700) };
    events.extend([switch(655, 3, 0, ME), at(700, ME, HARD, entry)]);
    events.push(at(701, ME, HARD, What::TimerExit { timer: 5 }));
    let (_, tracker) = follow(&events, None);
    assert_eq!(tracker.counters(ME), CycleCounters { overrun: 1, ..CycleCounters::default() });
    assert_eq!(tracker.open_since(ME), Some(Nanos(650)));
}

#[test]
fn after_lost_events_a_cycle_is_cut_and_counted() {
    let events = cycle(vec![], 150);
    let mut tracker = CycleTracker::new(None);
    tracker.follow(ME);
    for event in &events[..8] {
        assert_eq!(tracker.observe(event, &mut place), None);
    }
    tracker.forget();
    assert!(events[8..].iter().all(|event| tracker.observe(event, &mut place).is_none()));
    assert_eq!(tracker.counters(ME).untold, 1);
}

#[test]
fn a_switch_that_was_not_recorded_is_after_what_ran_before_it() {
    // The last event of another thread on its CPU is in the timer's function, at 104.
    let mut events = cycle(vec![], 150);
    events.remove(6);
    let (cycles, tracker) = follow(&events, None);
    assert_eq!(cycles.iter().map(parts).collect::<Vec<_>>(), [[100, 50, 46, 4, 0, 0]]);
    let counters = CycleCounters { unseen_switches: 1, ..CycleCounters::default() };
    assert_eq!((cycles[0].began, tracker.counters(ME)), (Nanos(104), counters));
    // An interrupt on top of it does not count as another thread.
    events.insert(6, at(120, ME, HARD, What::VectorExit { vector: Vector::LocalTimer }));
    assert_eq!(follow(&events, None).0, cycles);
}

#[test]
fn a_timer_of_another_clock_is_due_on_the_trace_s() {
    let hour = 3_600_000_000_000;
    let start = What::TimerStart { timer: 5, function: 1, expires: Nanos(100 + hour) };
    let entry = What::TimerEntry { timer: 5, function: 1, now: Nanos(130 + hour) };
    let mut events = vec![switch(5, 3, 1, ME), at(10, ME, 0, start), switch(11, ME, 1, 3)];
    events.extend([at(130, 3, HARD, entry), waking(131, 3, HARD), switch(140, 3, 0, ME)]);
    events.extend([arm(149, 300), switch(150, ME, 1, 3)]);
    events.extend(fires(300, 3, HARD));
    assert_eq!(parts(&follow(&events, None).0[0]), [100, 50, 10, 40, 0, 0]);
}

/// Step in the life of a thread, as a kernel could record it.
#[derive(Clone, Debug)]
enum Step {
    Run(i64),
    Preempt(i64),
    /// Sleeps uninterruptibly.
    Disk(i64),
    Lock(i64),
    /// Sleeps for a span on its timer; woken this long after its expiry.
    Timer(i64, i64),
    /// Sleeps for a span until a thread, or an interrupt if true, wakes it.
    Event(i64, bool),
    /// Any wait before it runs.
    Lose,
}

fn step() -> impl Strategy<Value = Step> {
    let span = || 1..40i64;
    prop_oneof![
        4 => span().prop_map(Step::Run),
        2 => span().prop_map(Step::Preempt),
        1 => span().prop_map(Step::Disk),
        1 => span().prop_map(Step::Lock),
        3 => (span(), 0..9i64).prop_map(|(span, late)| Step::Timer(span, late)),
        1 => (span(), any::<bool>()).prop_map(|(span, by)| Step::Event(span, by)),
        1 => Just(Step::Lose),
    ]
}

/// Events of a life, in order of time, all on one CPU.
fn lived(steps: &[Step], wait: i64) -> Vec<Raw> {
    let (mut now, mut events) = (10, vec![switch(10, 3, 1, ME)]);
    for step in steps {
        now += 1;
        let sleep = |now: i64, state: i64, key: u64| vec![switch(now, ME, state, 3), stack(now, key)];
        match *step {
            Step::Run(span) => now += span,
            Step::Preempt(span) => {
                events.push(switch(now, ME, 0, 9));
                now += span;
                events.push(switch(now, 9, 1, ME));
                continue;
            }
            Step::Disk(span) | Step::Lock(span) => {
                let (state, key) = if matches!(step, Step::Disk(_)) { (2, 8) } else { (1, 2) };
                events.extend(sleep(now, state, key));
                now += span;
                events.push(waking(now, 3, 0));
            }
            Step::Timer(span, late) => {
                events.push(arm(now, now + 1 + span));
                events.extend(sleep(now + 1, 1, 4));
                now += 1 + span + late;
                events.extend(fires(now, 3, HARD));
                now += 2;
            }
            Step::Event(span, interrupt) => {
                events.extend(sleep(now, 1, 5));
                now += span;
                events.push(waking(now, 3, if interrupt { HARD } else { 0 }));
            }
            Step::Lose => {}
        }
        if matches!(step, Step::Run(_) | Step::Lose) {
            continue;
        }
        now += wait;
        events.push(switch(now, 3, 0, ME));
    }
    events
}

proptest! {
    /// For any life that a kernel could record, each cycle's sums match the thread's states at all
    /// instants, and every timer sleep but the first and the last bounds a cycle.
    #[test]
    fn sums_are_what_the_thread_did(steps in prop::collection::vec(step(), 0..60), wait in 1..20i64) {
        let events = lived(&steps, wait);
        let (cycles, tracker) = follow(&events, None);
        for cycle in &cycles {
            let own = [cycle.own.0, cycle.wait.0, cycle.preempted.0, cycle.blocked.0];
            prop_assert_eq!(own, oracle::sums(&events, cycle), "{:?}", cycle);
        }
        let timers = steps.iter().filter(|step| matches!(step, Step::Timer(..))).count();
        prop_assert!(cycles.len() + 1 >= timers, "{} of {timers}", cycles.len());
        prop_assert_eq!(tracker.counters(ME), CycleCounters::default());
    }

    /// Without the record of some switches to it, as when a virtual CPU leaves its idle state, the
    /// cycles stay the same, with own time as an upper bound.
    #[test]
    fn cycles_are_the_same_where_switches_are_not_recorded(
        steps in prop::collection::vec(step(), 0..60),
        wait in 1..20i64,
        unseen in prop::collection::vec(any::<bool>(), 60),
    ) {
        let events = lived(&steps, wait);
        let mut unseen = unseen.into_iter().cycle();
        let mut recorded = |event: &Raw| match &event.what {
            What::Switch { prev, next, .. } if next.pid == ME && prev.pid == 3 => {
                event.time == Nanos(10) || unseen.next() != Some(true)
            }
            _ => true,
        };
        let fewer: Vec<Raw> = events.iter().filter(|event| recorded(event)).cloned().collect();
        let ((all, _), (found, tracker)) = (follow(&events, None), follow(&fewer, None));
        prop_assert_eq!(all.len(), found.len());
        for (one, other) in all.iter().zip(&found) {
            prop_assert_eq!((one.release, one.end, one.by), (other.release, other.end, other.by));
            prop_assert_eq!((one.preempted, one.blocked), (other.preempted, other.blocked));
            prop_assert!(other.own >= one.own && other.began <= one.began, "{:?} {:?}", one, other);
        }
        let counters = tracker.counters(ME);
        prop_assert_eq!((counters.untold, counters.overrun), (0, 0));
        prop_assert!(counters.unseen_switches <= (events.len() - fewer.len()) as u64);
    }

    /// For arbitrary events, sums equal the response, times ascend, and nothing panics.
    #[test]
    fn sums_are_the_response_whatever_comes(
        mut events in prop::collection::vec(any_event(), 0..200),
        sorted in any::<bool>(),
        futex in prop::option::of(0..3i64),
    ) {
        if sorted {
            events.sort_by_key(|event| event.time);
        }
        let (cycles, _) = follow(&events, futex);
        for cycle in cycles.iter().filter(|_| sorted) {
            let sum = cycle.own.0 + cycle.wait.0 + cycle.preempted.0 + cycle.blocked.0;
            prop_assert_eq!(sum, cycle.response().0, "{:?}", cycle);
            prop_assert!(cycle.release <= cycle.began && cycle.began <= cycle.end, "{:?}", cycle);
            let parts = [cycle.own, cycle.wait, cycle.preempted, cycle.blocked];
            prop_assert!(parts.iter().all(|part| part.0 >= 0), "{:?}", cycle);
        }
    }
}

fn any_event() -> impl Strategy<Value = Raw> {
    let pid = || prop::sample::select(vec![0, 3, ME, ME, 9]);
    let state = prop::sample::select(vec![0i64, 256, 1, 1, 1, 2, 16]);
    let what = prop_oneof![
        4 => (pid(), state, pid()).prop_map(|(prev, state, next)| What::Switch {
            prev: task(prev),
            state,
            next: task(next)
        }),
        3 => pid().prop_map(|pid| What::Waking { task: task(pid), target: Cpu(0) }),
        2 => (0..2u64, 0..2_000i64).prop_map(|(timer, at)| What::TimerStart {
            timer,
            function: 1,
            expires: Nanos(at)
        }),
        2 => (0..2u64, 0..2_000i64).prop_map(|(timer, at)| What::TimerEntry {
            timer,
            function: 1,
            now: Nanos(at)
        }),
        1 => (0..2u64).prop_map(|timer| What::TimerExit { timer }),
        1 => (0..6u64).prop_map(|key| What::Stack { frames: vec![key], enables: None }),
        1 => (0..3i64, 0..4u64).prop_map(|(id, value)| What::SyscallEntry { id, args: [0, 0, value, 0] }),
        1 => Just(What::Fault { user: true }),
    ];
    (0..2_000i64, 0..2u32, pid(), prop::sample::select(vec![0, HARD, SOFT]), what)
        .prop_map(|(time, cpu, pid, context, what)| Event { cpu: Cpu(cpu), ..at(time, pid, context, what) })
}
