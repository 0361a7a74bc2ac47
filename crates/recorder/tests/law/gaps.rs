//! A ring loses events: the remaining counts are those that would have been made without the loss,
//! and no latency spans a gap.

use std::collections::{BTreeMap, BTreeSet};

use model::units::{Cpu, Nanos};
use proptest::prelude::*;
use recorder::programs::TimerKind;
use recorder::ring::machine::WakeupMachine;
use trace::event::{Raw, What};

use crate::ring::{event, task};
use crate::rules::Task;
use crate::{CPUS, FUNCTIONS, TIMER_AT};

const IDLE: Task = Task { tid: 0, prio: 120, kernel: true };
const THREADS: usize = 3;

fn thread(nth: usize) -> Task {
    Task { tid: 200 + nth as u32, prio: 19, kernel: false }
}

#[derive(Clone, Copy, Debug)]
enum Does {
    SetsTimerAndSleeps,
    Sleeps,
    TimerFires,
    IsWoken,
    Runs,
    IsPreempted,
}

fn choice() -> impl Strategy<Value = (Does, usize, usize, i64)> {
    let does = prop_oneof![
        3 => Just(Does::SetsTimerAndSleeps),
        1 => Just(Does::Sleeps),
        4 => Just(Does::TimerFires),
        1 => Just(Does::IsWoken),
        6 => Just(Does::Runs),
        1 => Just(Does::IsPreempted),
    ];
    (does, 0..CPUS, 0..THREADS, 1i64..1_000)
}

/// The events of a machine on which these things happen, as far as they can.
fn events(choices: &[(Does, usize, usize, i64)]) -> Vec<Raw> {
    let (mut now, mut found) = (1_000_000, Vec::new());
    let mut runs: [Option<usize>; CPUS] = [None; CPUS];
    let mut asleep: BTreeSet<usize> = (0..THREADS).collect();
    let mut waiting = BTreeSet::new();
    for (does, cpu, nth, span) in choices {
        now += span;
        let (own, timer) = (thread(*nth), TIMER_AT + 64 * *nth as u64);
        let switch = |previous: Task, state: i64, next: Task| {
            event(now, *cpu, previous.tid, What::Switch { prev: task(previous), state, next: task(next) })
        };
        let waking = || event(now, *cpu, 0, What::Waking { task: task(own), target: Cpu(0) });
        match does {
            Does::SetsTimerAndSleeps | Does::Sleeps if runs[*cpu] == Some(*nth) => {
                if matches!(does, Does::SetsTimerAndSleeps) {
                    let expires = Nanos(now + span);
                    let what = What::TimerStart { timer, function: FUNCTIONS[0], expires };
                    found.push(event(now, *cpu, own.tid, what));
                }
                found.push(switch(own, 1, IDLE));
                runs[*cpu] = None;
                asleep.insert(*nth);
            }
            Does::TimerFires if asleep.remove(nth) => {
                let what = What::TimerEntry { timer, function: FUNCTIONS[0], now: Nanos(now) };
                found.extend([event(now, *cpu, 0, what), waking()]);
                waiting.insert(*nth);
            }
            Does::IsWoken if asleep.remove(nth) => {
                found.push(waking());
                waiting.insert(*nth);
            }
            Does::Runs if runs[*cpu].is_none() && waiting.remove(nth) => {
                found.push(switch(IDLE, 0, own));
                runs[*cpu] = Some(*nth);
            }
            Does::IsPreempted if runs[*cpu] == Some(*nth) => {
                found.push(switch(own, 0x100, IDLE));
                runs[*cpu] = None;
                waiting.insert(*nth);
            }
            _ => {}
        }
    }
    found
}

/// A counted wake-up: W, and T if there was one.
type Seen = (i64, Option<i64>);

fn machine() -> WakeupMachine {
    let mut machine = WakeupMachine::new(vec![(FUNCTIONS[0], TimerKind::Sleep)], true, |_| Some(false));
    machine.clocks_apart = true;
    machine
}

/// The wake-up that the machine counts at an event.
fn count(machine: &mut WakeupMachine, event: &Raw) -> Option<Seen> {
    machine.take(event);
    let (_, _, tallies) = machine.take_counted();
    let [timer, wakeup, _] = tallies.cpus.into_values().next()?;
    Some((wakeup.sum, timer.least.map(|late| late.0)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_latency_spans_what_was_lost(
        choices in proptest::collection::vec(choice(), 10..150), cpu in 0..CPUS, from in 0usize..100,
        length in 1usize..30,
    ) {
        let events = events(&choices);
        prop_assume!(events.len() > 2);
        let from = from % (events.len() - 1);
        let to = (from + length).min(events.len() - 1);
        let (begin, end) = (events[from].time, events[to].time);
        let (mut whole, mut holed) = (machine(), machine());
        let mut all = BTreeMap::new();
        for (nth, event) in events.iter().enumerate() {
            all.extend(count(&mut whole, event).map(|seen| (nth, seen)));
            if nth == from {
                holed.gap_begins();
            }
            if nth == to {
                holed.gap_ends(Cpu(cpu as u32), end);
            }
            if (from..to).contains(&nth) && event.cpu.0 as usize == cpu {
                continue;
            }
            let Some((wait, late)) = count(&mut holed, event) else { continue };
            let Some((true_wait, true_late)) = all.get(&nth) else {
                return Err(TestCaseError::fail(format!("there was no wake-up at {nth}: {wait}")));
            };
            prop_assert_eq!(wait, *true_wait);
            prop_assert!(late.is_none() || late == *true_late, "{:?} {:?}", late, true_late);
            let since = event.time.0 - wait - late.unwrap_or(0);
            prop_assert!(event.time < begin || since >= end.0, "{} {} {} {}", since, event.time, begin, end);
        }
    }
}
