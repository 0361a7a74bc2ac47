//! The ring's machine, which is given the same events as the programs are.

use std::collections::BTreeMap;

use model::units::{Cpu, Nanos};
use proptest::prelude::*;
use recorder::programs::TimerKind;
use recorder::ring::machine::WakeupMachine;
use recorder::ring::tally::RingTally;
use trace::event::{Context, Event, Raw, Task as EventTask, What};

use crate::rules::{Expected, Key, Rules, Task, WaitParties};
use crate::{FUNCTIONS, Op, TASKS, TIMER_AT, WALL};

/// The machine, and the rules to compare with.
pub struct RingBench {
    now: i64,
    machine: WakeupMachine,
    rules: Rules,
    records: BTreeMap<Key, Expected>,
    chosen: BTreeMap<(u32, usize), Expected>,
    counts: [u64; 8],
}

pub fn event(now: i64, cpu: usize, pid: u32, what: What<u64>) -> Raw {
    let (time, cpu, pid) = (Nanos(now), Cpu(cpu as u32), pid as i32);
    Event { time, cpu, pid, context: Context(0), preempt: 0, what }
}

pub fn task(of: Task) -> EventTask {
    EventTask { comm: "c".into(), pid: of.tid as i32, prio: of.prio }
}

fn is_kernel(tid: u32) -> Option<bool> {
    TASKS.iter().find(|task| task.tid == tid).map(|task| task.kernel)
}

impl RingBench {
    pub fn new() -> RingBench {
        let functions = vec![(FUNCTIONS[0], TimerKind::Sleep), (FUNCTIONS[1], TimerKind::Standing)];
        let mut machine = WakeupMachine::new(functions, true, is_kernel);
        machine.clocks_apart = true;
        let mut rules = Rules::of_ring();
        rules.choose(TASKS[2]);
        machine.add(TASKS[2].tid, TASKS[2].kernel, false);
        machine.choose(TASKS[2].tid);
        let (records, chosen) = Default::default();
        RingBench { now: 1_000_000, machine, rules, records, chosen, counts: [0; 8] }
    }

    pub fn do_one(&mut self, op: &Op) {
        let now = self.now;
        match *op {
            Op::Pass(span) => self.now += span as i64,
            Op::Start { task, kind, timer, in_ns, wall } => {
                let expiry = now + in_ns + if wall { WALL } else { 0 };
                let (timer, function) = (TIMER_AT + 64 * timer, FUNCTIONS[kind]);
                let what = What::TimerStart { timer, function, expires: Nanos(expiry) };
                self.machine.take(&event(now, 0, TASKS[task].tid, what));
                self.rules.start(TASKS[task], kind, timer, expiry);
            }
            Op::Fire { cpu, kind, timer, pass, wall } => {
                let shift = if wall { WALL } else { 0 };
                let (timer, function) = (TIMER_AT + 64 * timer, FUNCTIONS[kind]);
                let what = What::TimerEntry { timer, function, now: Nanos(now - pass + shift) };
                self.machine.take(&event(now, cpu, 0, what));
                // As of a record that a program reads.
                let reading = if wall { shift - pass } else { shift };
                self.rules.fire(cpu, kind, timer, now as u64, reading);
            }
            Op::Wake { cpu, task: woken } => {
                let what = What::Waking { task: task(TASKS[woken]), target: Cpu(0) };
                self.machine.take(&event(now, cpu, 0, what));
                self.rules.wake(cpu, TASKS[woken], now as u64);
            }
            Op::Switch { previous, next, .. } if previous == next => {}
            Op::Switch { cpu, previous, next, leaves } => {
                let state = [1, 0x100, 0x10][leaves as usize];
                let (prev, to) = (TASKS[previous], TASKS[next]);
                let what = What::Switch { prev: task(prev), state, next: task(to) };
                self.machine.take(&event(now, cpu, prev.tid, what));
                self.rules.switch(cpu, prev, to, leaves, now as u64);
            }
            // A ring has no program that could be skipped, and no S.
            Op::Skipped { .. } | Op::GoneOn { .. } => {}
            Op::Suspend => {
                self.machine.take(&event(now, 0, 0, What::Suspend));
                self.rules.suspend(now as u64);
            }
            Op::Flip => {
                self.take();
                self.rules.epoch += 1;
            }
        }
    }

    /// Takes the counts, as those of the rules' epoch.
    fn take(&mut self) {
        let half = self.rules.epoch & 1;
        let (counts, spanning, tallies) = self.machine.take_counted();
        assert_eq!(spanning, 0, "there are no gaps");
        self.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        for ((cpu, holder, victims), series) in &tallies.cpus {
            for (nth, tally) in series.iter().enumerate().filter(|(_, tally)| !tally.rows.is_empty()) {
                let key = (cpu.0 as usize, half, *holder, *victims == 1, nth);
                add(self.records.entry(key).or_default(), tally);
            }
        }
        for (tid, series) in &tallies.threads {
            assert_eq!(*tid, TASKS[2].tid);
            for (nth, tally) in series.iter().enumerate().filter(|(_, tally)| !tally.rows.is_empty()) {
                add(self.chosen.entry((half, nth)).or_default(), tally);
            }
        }
    }

    pub fn compare(&mut self) -> Result<(), TestCaseError> {
        self.take();
        prop_assert_eq!(&self.records, &self.rules.records);
        prop_assert_eq!(&self.chosen, &self.rules.chosen);
        prop_assert_eq!(self.counts, self.rules.counts);
        Ok(())
    }
}

fn add(to: &mut Expected, tally: &RingTally) {
    for (row, count) in &tally.rows {
        *to.rows.entry(*row).or_default() += *count as u32;
    }
    to.sum += tally.sum;
    to.least = to.least.into_iter().chain(tally.least.map(|least| least.0)).min();
    if let Some((most, sample)) = tally.worst.filter(|(most, _)| most.0 > to.most) {
        to.most = most.0;
        to.held = sample.held.map(|held| held.0);
        to.parties = WaitParties {
            victim: sample.victim.pid as u32,
            previous: sample.previous.pid as u32,
            time: sample.at.0 as u64,
        };
    }
}
