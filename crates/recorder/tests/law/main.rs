//! The law of the recorder: on any sequence of events its programs count what the rules say, by
//! types and by formats.

#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod machine;
mod rules;

use machine::{KERNEL, Kernel};
use proptest::prelude::*;
use recorder::assembler::Width;
use recorder::fields::{ByFormat, ByTypes, EventField, EventFields};
use recorder::layout::{ROWS, SLOTS, config, cpu, histogram, maximum, record, saved, slot};
use recorder::programs::counting::LEAST_FROM;
use recorder::programs::{Maps, TimerKind, suspended, switch, timers, waking};
use rules::{Expected, Leaves, Rules, Task};

const MAPS: Maps = Maps { slots: 1, cpus: 2, records: 3, threads: 4, saved: 5, config: 6 };
const CPUS: usize = 2;
const TASKS: [Task; 6] = [
    Task { tid: 0, prio: 120, kernel: true },
    Task { tid: 100, prio: 19, kernel: false },
    Task { tid: 101, prio: 19, kernel: false },
    Task { tid: 102, prio: -1, kernel: true },
    Task { tid: 103, prio: 120, kernel: false },
    // In the place of the second.
    Task { tid: 100 + SLOTS as u32, prio: 50, kernel: false },
];
const FUNCTIONS: [u64; 2] = [0xffff_8000_0000_1000, 0xffff_8000_0000_2000];
/// The wall clock's distance from CLOCK_MONOTONIC.
const WALL: i64 = 1_700_000_000_000_000_000;

#[derive(Clone, Debug)]
enum Op {
    Pass(u64),
    Start { task: usize, kind: usize, timer: u64, in_ns: i64, wall: bool },
    Fire { cpu: usize, kind: usize, timer: u64, pass: i64, wall: bool },
    Wake { cpu: usize, task: usize },
    Switch { cpu: usize, previous: usize, next: usize, leaves: Leaves },
    Suspend,
    Flip,
}

fn op() -> impl Strategy<Value = Op> {
    let (cpu, task, kind, timer) = (0..CPUS, 0..TASKS.len(), 0..2usize, 1u64..3);
    let leaves =
        prop_oneof![4 => Just(Leaves::Sleeps), 2 => Just(Leaves::Preempted), 1 => Just(Leaves::Ends)];
    let spans = prop_oneof![0u64..100, 0u64..1_000_000, 0u64..(1 << 37)];
    prop_oneof![
        4 => spans.prop_map(Op::Pass),
        3 => (task.clone(), kind.clone(), timer.clone(), -50i64..500_000, any::<bool>())
            .prop_map(|(task, kind, timer, in_ns, wall)| Op::Start { task, kind, timer, in_ns, wall }),
        4 => (cpu.clone(), kind, timer, 0i64..9_000, any::<bool>())
            .prop_map(|(cpu, kind, timer, pass, wall)| Op::Fire { cpu, kind, timer, pass, wall }),
        5 => (cpu.clone(), task.clone()).prop_map(|(cpu, task)| Op::Wake { cpu, task }),
        8 => (cpu, task.clone(), task, leaves)
            .prop_map(|(cpu, previous, next, leaves)| Op::Switch { cpu, previous, next, leaves }),
        1 => Just(Op::Suspend),
        1 => Just(Op::Flip),
    ]
}

fn field(offset: i16, width: Width) -> EventField {
    EventField { offset, width }
}

/// As on a kernel whose records are shifted, and names not aligned to 8 bytes.
fn by_format() -> EventFields {
    EventFields::Format(ByFormat {
        ids: [1, 2, 3, 4],
        suspend: Some(5),
        start_timer: field(8, Width::B8),
        start_function: field(16, Width::B8),
        start_expiry: field(24, Width::B8),
        expire_timer: field(8, Width::B8),
        expire_now: field(16, Width::B8),
        expire_function: field(24, Width::B8),
        waking_tid: field(12, Width::B4),
        waking_prio: field(16, Width::B4),
        previous_comm: 12,
        previous_tid: field(28, Width::B4),
        previous_prio: field(32, Width::B4),
        previous_state: field(40, Width::B8),
        next_comm: 48,
        next_tid: field(64, Width::B4),
        next_prio: field(68, Width::B4),
    })
}

fn by_types() -> EventFields {
    EventFields::Types(ByTypes {
        ids: [1, 2, 3, 4],
        suspend: Some(5),
        tid: 0,
        process: 4,
        prio: 8,
        flags: 12,
        comm: 16,
        function: 0,
        expiry: 8,
        base: 16,
        clock_offset: 0,
        preempted: 0,
        previous: 8,
        next: 16,
        state: Some(24),
        task_state: None,
    })
}

/// Where the made-up kernel has tasks, timers and their bases.
fn task_at(task: usize) -> u64 {
    KERNEL + 64 * task as u64
}
const TIMER_AT: u64 = KERNEL + 1024;
const BASES_AT: u64 = KERNEL + 2048;

/// The machine, its programs, and the rules beside them.
struct Bench {
    types: bool,
    kernel: Kernel,
    rules: Rules,
    started: Vec<u64>,
    fired: Vec<u64>,
    woken: Vec<u64>,
    switched: Vec<u64>,
    suspended: Vec<u64>,
}

impl Bench {
    fn new(types: bool) -> Bench {
        let fields = if types { by_types() } else { by_format() };
        let functions = vec![(FUNCTIONS[0], TimerKind::Sleep), (FUNCTIONS[1], TimerKind::Standing)];
        let map = |size: usize, entries: usize| (size, vec![0; size * entries]);
        let mut kernel = Kernel {
            now: 1_000_000,
            cpu: 0,
            current: 0,
            kernel_thread: false,
            task: task_at(0),
            maps: vec![
                map(slot::SIZE, SLOTS),
                map(cpu::SIZE, CPUS),
                map(record::SIZE, CPUS * 2 * record::CLASSES),
                map(record::THREAD_SIZE, 2),
                map(saved::SIZE, CPUS * saved::PER_CPU),
                map(config::SIZE, 1),
            ],
            memory: vec![0; 4096],
        };
        for (nth, task) in TASKS.iter().enumerate() {
            let words = [task.tid, task.tid, task.prio as u32, if task.kernel { 0x0020_0000 } else { 0 }];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            kernel.memory[64 * nth..64 * nth + 16].copy_from_slice(&bytes);
        }
        kernel.memory[2056..2064].copy_from_slice(&WALL.to_le_bytes());
        kernel.set_short(6, 0, config::CLAIM, 1);
        kernel.set_short(6, 0, config::CLOCKS_APART, 1);
        let mut rules = Rules::new(types);
        rules.choose(TASKS[2]);
        let chosen = TASKS[2].tid as usize;
        kernel.set_short(1, chosen, slot::TID, TASKS[2].tid);
        kernel.set_short(1, chosen, slot::THREAD, 1);
        kernel.value(1, chosen)[slot::LATE as usize..][..8].fill(0xff);
        Bench {
            types,
            kernel,
            rules,
            started: timers::started(&fields, &MAPS, &functions).unwrap(),
            fired: timers::fired(&fields, &MAPS, &functions).unwrap(),
            woken: waking::woken(&fields, &MAPS).unwrap(),
            switched: switch::switched(&fields, &MAPS).unwrap(),
            suspended: suspended(&fields, &MAPS).unwrap(),
        }
    }

    fn runs(&mut self, cpu: usize, task: usize) {
        let of = TASKS[task];
        self.kernel.cpu = cpu as u64;
        self.kernel.current = u64::from(of.tid) << 32 | u64::from(of.tid);
        self.kernel.kernel_thread = of.kernel;
        self.kernel.task = task_at(task);
    }

    /// A timer's event: its record, or its argument with what it points to.
    fn timer(&mut self, timer: u64, function: u64, second: (i64, i64), expiry: bool, wall: bool) -> Vec<u8> {
        // Timers are told apart by their address alone.
        let at = TIMER_AT + 64 * timer;
        if !self.types {
            let (a, b) = if expiry { (function, second.0 as u64) } else { (second.0 as u64, function) };
            return longs(&[0, at, a, b]);
        }
        let base = BASES_AT + 8 * u64::from(wall);
        let from = (at - KERNEL) as usize;
        self.kernel.memory[from..from + 24].copy_from_slice(&longs(&[function, second.1 as u64, base]));
        longs(&[at, 0])
    }

    fn do_one(&mut self, op: &Op) {
        let now = self.kernel.now;
        match *op {
            Op::Pass(span) => self.kernel.now += span,
            Op::Start { task, kind, timer, in_ns, wall } => {
                self.runs(0, task);
                let expiry = now as i64 + in_ns + if wall { WALL } else { 0 };
                let context = self.timer(timer, FUNCTIONS[kind], (expiry, expiry), true, wall);
                self.kernel.run(&self.started, &context);
                self.rules.start(TASKS[task], kind, TIMER_AT + 64 * timer, expiry);
            }
            Op::Fire { cpu, kind, timer, pass, wall } => {
                self.runs(cpu, 0);
                let shift = if wall { WALL } else { 0 };
                let context = self.timer(timer, FUNCTIONS[kind], (now as i64 - pass + shift, 0), false, wall);
                self.kernel.run(&self.fired, &context);
                // A record does not show the distance of the wall clock: the pass is lost.
                let shown = if wall && !self.types { shift - pass } else { shift };
                self.rules.fire(cpu, kind, TIMER_AT + 64 * timer, now, shown);
            }
            Op::Wake { cpu, task } => {
                self.runs(cpu, 0);
                let of = TASKS[task];
                let context = if self.types {
                    longs(&[task_at(task)])
                } else {
                    shorts(&[0, 0, 0, of.tid, of.prio as u32, 0])
                };
                self.kernel.run(&self.woken, &context);
                self.rules.wake(cpu, of, now);
            }
            Op::Switch { previous, next, .. } if previous == next => {}
            Op::Switch { cpu, previous, next, leaves } => {
                self.runs(cpu, previous);
                let context = self.switch(previous, next, leaves);
                self.kernel.run(&self.switched, &context);
                self.rules.switch(cpu, TASKS[previous], TASKS[next], leaves, now);
            }
            Op::Suspend => {
                self.kernel.run(&self.suspended, &[0; 64]);
                self.rules.suspend(now);
            }
            Op::Flip => {
                self.rules.epoch += 1;
                self.kernel.set_short(6, 0, config::EPOCH, self.rules.epoch);
            }
        }
    }

    fn switch(&self, previous: usize, next: usize, leaves: Leaves) -> Vec<u8> {
        let preempted = leaves == Leaves::Preempted;
        if self.types {
            let state = [1, 0, 0x80][leaves as usize];
            return longs(&[u64::from(preempted), task_at(previous), task_at(next), state]);
        }
        let state = [1, 0x100, 0x10][leaves as usize];
        let (a, b) = (TASKS[previous], TASKS[next]);
        shorts(&[0, 0, 0, 0, 0, 0, 0, a.tid, a.prio as u32, 0, state, 0, 0, 0, 0, 0, b.tid, b.prio as u32])
    }

    /// What a record holds in a series.
    fn found(&mut self, map: usize, entry: usize, series: usize, size: usize) -> Expected {
        let at = (series * histogram::SIZE) as i16;
        let rows = (0..=ROWS).filter_map(|row| {
            let count = self.kernel.short(map, entry, at + histogram::ROWS + 4 * row as i16);
            (count > 0).then_some((row, count))
        });
        let rows = rows.collect();
        let top = (record::MAXIMA + series * size) as i16;
        let least = self.kernel.long(map, entry, at + histogram::LEAST);
        Expected {
            rows,
            sum: self.kernel.long(map, entry, at + histogram::SUM) as i64,
            least: (least != 0).then(|| (LEAST_FROM - least) as i64),
            most: self.kernel.long(map, entry, top + maximum::VALUE) as i64,
            who: (
                self.kernel.short(map, entry, top + maximum::VICTIM),
                self.kernel.long(map, entry, top + maximum::PREVIOUS) as u32,
                self.kernel.long(map, entry, top + maximum::TIME),
            ),
        }
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        for (cpu, half, class, series) in (0..CPUS * 2 * record::CLASSES * 3)
            .map(|nth| (nth / 36, (nth / 18 % 2) as u32, nth / 3 % 6, nth % 3))
        {
            let entry = record::of_cpu(cpu, half, class / 2, class % 2);
            let found = self.found(3, entry, series, maximum::SIZE);
            let key = (cpu, half, class / 2, class % 2 == 1, series);
            let expected = self.rules.records.get(&key).cloned().unwrap_or_default();
            prop_assert_eq!(found, expected, "{:?}", key);
        }
        for (half, series) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            let found = self.found(4, record::of_thread(0, half), series, maximum::SHORT);
            let expected = self.rules.chosen.get(&(half, series)).cloned().unwrap_or_default();
            prop_assert_eq!(found, expected, "chosen {} {}", half, series);
        }
        let mut counts = [0; 8];
        for (nth, count) in counts.iter_mut().enumerate() {
            *count = (0..CPUS).map(|cpu| self.kernel.long(2, cpu, cpu::COUNTS + 8 * nth as i16)).sum();
        }
        prop_assert_eq!(counts, self.rules.counts);
        for cpu in 0..CPUS {
            prop_assert_eq!(self.kernel.short(2, cpu, cpu::BUSY), 0);
        }
        Ok(())
    }
}

fn longs(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn shorts(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn programs_count_what_the_rules_say(ops in proptest::collection::vec(op(), 1..120), types: bool) {
        let mut bench = Bench::new(types);
        for op in &ops {
            bench.do_one(op);
        }
        bench.compare()?;
    }
}
