//! Property test of the recorder: on any sequence of events its programs count by the rules, by
//! types and by formats, and so does the ring.

#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod gaps;
mod machine;
mod ring;
mod rules;

use machine::{KERNEL, Kernel};
use proptest::prelude::*;
use recorder::assembler::Width;
use recorder::fields::{ByFormat, ByTypes, EventField, EventFields, ExitFields};
use recorder::layout::{LATE_PULSES, ROWS, SLOTS, config, cpu, histogram, late_pulse, maximum, record};
use recorder::layout::{release, saved, slot, switched};
use recorder::programs::counting::LEAST_FROM;
use recorder::programs::release::released;
use recorder::programs::{Maps, SwitchedMaps, TimerKind, exit, pulse, suspended, switch, timers, waking};
use rules::{Expected, Leaves, Rules, Task, WaitParties};

const MAPS: Maps = Maps { slots: 1, cpus: 2, records: 3, threads: 4, saved: 5, config: 6, switched: None };
const SWITCHED: SwitchedMaps = SwitchedMaps { records: 7, threads: 8 };
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
    Start {
        task: usize,
        kind: usize,
        timer: u64,
        in_ns: i64,
        wall: bool,
    },
    Fire {
        cpu: usize,
        kind: usize,
        timer: u64,
        pass: i64,
        wall: bool,
    },
    Wake {
        cpu: usize,
        task: usize,
    },
    Switch {
        cpu: usize,
        previous: usize,
        next: usize,
        leaves: Leaves,
    },
    /// A switch at which the kernel skipped the program.
    Skipped {
        cpu: usize,
        next: usize,
    },
    /// The end of `__schedule`, with or without a switch before it.
    GoneOn {
        cpu: usize,
        switched: bool,
    },
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
        8 => (cpu.clone(), task.clone(), task.clone(), leaves)
            .prop_map(|(cpu, previous, next, leaves)| Op::Switch { cpu, previous, next, leaves }),
        1 => (cpu.clone(), task).prop_map(|(cpu, next)| Op::Skipped { cpu, next }),
        5 => (cpu, proptest::bool::weighted(0.9)).prop_map(|(cpu, switched)| Op::GoneOn { cpu, switched }),
        1 => Just(Op::Suspend),
        1 => Just(Op::Flip),
    ]
}

fn field(offset: i16, width: Width) -> EventField {
    EventField { offset, width }
}

/// Fields of a kernel whose records are shifted, with names not aligned to 8 bytes.
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
        release: Some(7),
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
        exit: Ok(ExitFields { id: 6, is_switch: 0, slept: 32, preempted: 40 }),
    })
}

/// Addresses of tasks, timers and their bases in the simulated kernel.
fn task_at(task: usize) -> u64 {
    KERNEL + 64 * task as u64
}
const TIMER_AT: u64 = KERNEL + 1024;
const BASES_AT: u64 = KERNEL + 2048;

/// The machine, its programs, and the rules to compare with.
struct Bench {
    types: bool,
    /// Running tasks, by CPU.
    on: [Option<usize>; CPUS],
    kernel: Kernel,
    rules: Rules,
    started: Vec<u64>,
    fired: Vec<u64>,
    woken: Vec<u64>,
    switched: Vec<u64>,
    suspended: Vec<u64>,
    gone_on: Vec<u64>,
}

impl Bench {
    fn new(types: bool, with_switch: bool) -> Bench {
        let fields = if types { by_types() } else { by_format() };
        let maps = Maps { switched: (types && with_switch).then_some(SWITCHED), ..MAPS };
        let functions = vec![(FUNCTIONS[0], TimerKind::Sleep), (FUNCTIONS[1], TimerKind::Standing)];
        let map = |size: usize, entries: usize| (size, vec![0; size * entries]);
        let mut kernel = Kernel {
            now: 1_000_000,
            cpu: 0,
            current: 0,
            kernel_thread: false,
            in_program: false,
            task: task_at(0),
            maps: vec![
                map(slot::SIZE, SLOTS),
                map(cpu::SIZE, CPUS),
                map(record::SIZE, CPUS * 2 * record::CLASSES),
                map(record::THREAD_SIZE, 2),
                map(saved::SIZE, CPUS * saved::PER_CPU),
                map(config::SIZE, 1),
                map(switched::SIZE, CPUS * switched::PER_CPU),
                map(switched::SIZE, 2),
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
        let mut rules = Rules::new(types, maps.switched.is_some());
        rules.choose(TASKS[2]);
        let chosen = TASKS[2].tid as usize;
        kernel.set_short(1, chosen, slot::TID, TASKS[2].tid);
        kernel.set_short(1, chosen, slot::THREAD, 1);
        kernel.value(1, chosen)[slot::LATE as usize..][..8].fill(0xff);
        Bench {
            types,
            on: [None; CPUS],
            kernel,
            rules,
            started: timers::started(&fields, &maps, &functions).unwrap(),
            fired: timers::fired(&fields, &maps, &functions).unwrap(),
            woken: waking::woken(&fields, &maps).unwrap(),
            switched: switch::switched(&fields, &maps).unwrap(),
            suspended: suspended(&fields, &maps).unwrap(),
            gone_on: exit::gone_on(&fields, &maps).unwrap(),
        }
    }

    /// Switches a CPU of the kernel. A thread runs on one CPU at a time, and counts each time it
    /// leaves one, voluntarily or not.
    fn gets(&mut self, cpu: usize, next: usize) {
        for place in 0..CPUS {
            if let Some(task) = self.on[place].filter(|task| place == cpu || *task == next) {
                let at = 64 * task + 32 + 8 * (self.kernel.now as usize & 1);
                self.kernel.memory[at] = self.kernel.memory[at].wrapping_add(1);
                self.on[place] = None;
                self.rules.leaves_cpu(place);
            }
        }
        self.on[cpu] = Some(next);
        self.rules.gets_cpu(cpu, TASKS[next]);
    }

    fn runs(&mut self, cpu: usize, task: usize) {
        let of = TASKS[task];
        self.kernel.cpu = cpu as u64;
        self.kernel.current = u64::from(of.tid) << 32 | u64::from(of.tid);
        self.kernel.kernel_thread = of.kernel;
        self.kernel.task = task_at(task);
    }

    /// A timer's event: its record, or its argument with the target of that.
    fn timer(
        &mut self,
        timer: u64,
        function: u64,
        in_record: i64,
        in_memory: i64,
        expiry: bool,
        wall: bool,
    ) -> Vec<u8> {
        // Timers differ in their addresses alone.
        let at = TIMER_AT + 64 * timer;
        if !self.types {
            let (a, b) = if expiry { (function, in_record as u64) } else { (in_record as u64, function) };
            return longs(&[0, at, a, b]);
        }
        let base = BASES_AT + 8 * u64::from(wall);
        let from = (at - KERNEL) as usize;
        self.kernel.memory[from..from + 24].copy_from_slice(&longs(&[function, in_memory as u64, base]));
        longs(&[at, 0])
    }

    fn do_one(&mut self, op: &Op) {
        let now = self.kernel.now;
        match *op {
            Op::Pass(span) => self.kernel.now += span,
            Op::Start { task, kind, timer, in_ns, wall } => {
                self.runs(0, task);
                let expiry = now as i64 + in_ns + if wall { WALL } else { 0 };
                let context = self.timer(timer, FUNCTIONS[kind], expiry, expiry, true, wall);
                self.kernel.run(&self.started, &context);
                self.rules.start(TASKS[task], kind, TIMER_AT + 64 * timer, expiry);
            }
            Op::Fire { cpu, kind, timer, pass, wall } => {
                self.runs(cpu, 0);
                let shift = if wall { WALL } else { 0 };
                let context = self.timer(timer, FUNCTIONS[kind], now as i64 - pass + shift, 0, false, wall);
                self.kernel.run(&self.fired, &context);
                // A record does not show the distance of the wall clock: the pass is lost.
                let reading = if wall && !self.types { shift - pass } else { shift };
                self.rules.fire(cpu, kind, TIMER_AT + 64 * timer, now, reading);
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
                self.gets(cpu, next);
                self.runs(cpu, previous);
                let context = self.switch(previous, next, leaves);
                self.kernel.run(&self.switched, &context);
                self.rules.switch(cpu, TASKS[previous], TASKS[next], leaves, now);
            }
            Op::Skipped { cpu, next } => self.gets(cpu, next),
            Op::GoneOn { cpu, switched } => {
                let Some(task) = self.on[cpu] else { return };
                self.runs(cpu, task);
                self.kernel.run(&self.gone_on, &longs(&[switched.into()]));
                self.rules.gone_on(cpu, switched, now);
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

    /// Contents of a record in a series.
    fn found(&mut self, map: usize, entry: usize, series: usize, size: usize) -> Expected {
        let at = (series * histogram::SIZE) as i16;
        let rows = (0..=ROWS).filter_map(|row| {
            let count = self.kernel.short(map, entry, at + histogram::ROWS + 4 * row as i16);
            (count > 0).then_some((row, count))
        });
        let rows = rows.collect();
        let least = self.kernel.long(map, entry, at + histogram::LEAST);
        let mut found = Expected {
            rows,
            sum: self.kernel.long(map, entry, at + histogram::SUM) as i64,
            least: (least != 0).then(|| (LEAST_FROM - least) as i64),
            ..Expected::default()
        };
        let top = match size {
            switched::LARGEST => (switched::MAXIMA + series * size) as i16,
            _ => (record::MAXIMA + series * size) as i16,
        };
        let mut long = |at: i16| self.kernel.long(map, entry, top + at);
        if size == switched::LARGEST {
            found.most = long(switched::VALUE) as i64;
            found.switch = Some(long(switched::SWITCH) as i64).filter(|_| found.most > 0);
            found.parties = WaitParties {
                victim: long(switched::VICTIM) as u32,
                previous: long(switched::HOLDER) as u32,
                time: long(switched::TIME),
            };
        } else {
            found.most = long(maximum::VALUE) as i64;
            found.switch = long(maximum::SWITCH_TIME).checked_sub(1).map(|span| span as i64);
            found.parties = WaitParties {
                victim: long(maximum::VICTIM) as u32,
                previous: long(maximum::PREVIOUS) as u32,
                time: long(maximum::TIME),
            };
            found.held = long(maximum::HELD).checked_sub(1).map(|held| held as i64);
        }
        found
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
        for (cpu, half, kind, series) in
            (0..CPUS * 8).map(|nth| (nth / 8, (nth / 4 % 2) as u32, nth / 2 % 2, nth % 2))
        {
            let found = self.found(7, switched::of_cpu(cpu, half, kind), series, switched::LARGEST);
            let key = (cpu, half, kind == 1, series);
            let expected = self.rules.switched.get(&key).cloned().unwrap_or_default();
            prop_assert_eq!(found, expected, "switched {:?}", key);
        }
        for (half, series) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let found = self.found(8, switched::of_thread(0, half), series, switched::LARGEST);
            let expected = self.rules.chosen_switched.get(&(half, series)).cloned().unwrap_or_default();
            prop_assert_eq!(found, expected, "chosen, switched {} {}", half, series);
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
    fn programs_count_what_the_rules_say(
        ops in proptest::collection::vec(op(), 1..120),
        types: bool,
        switch: bool,
    ) {
        let mut bench = Bench::new(types, switch);
        for op in &ops {
            bench.do_one(op);
        }
        bench.compare()?;
    }

    #[test]
    fn the_ring_counts_what_the_rules_say(ops in proptest::collection::vec(op(), 1..120)) {
        let mut bench = ring::RingBench::new();
        for op in &ops {
            bench.do_one(op);
        }
        bench.compare()?;
    }
}

/// A wake-up of the chosen thread, and then.
fn after_its_switch(then: &[Op]) -> Bench {
    let (cpu, sleeps) = (0, Leaves::Sleeps);
    let mut bench = Bench::new(true, true);
    let before = [
        Op::Switch { cpu, previous: 2, next: 0, leaves: sleeps },
        Op::Wake { cpu, task: 2 },
        Op::Pass(5_000),
        Op::Switch { cpu, previous: 0, next: 2, leaves: Leaves::Preempted },
        Op::Pass(700),
    ];
    before.iter().chain(then).for_each(|op| bench.do_one(op));
    bench.compare().unwrap();
    bench
}

#[test]
fn a_switch_has_a_length_where_both_ends_of_it_were_seen() {
    let (cpu, gone_on) = (0, Op::GoneOn { cpu: 0, switched: true });
    let counted = |then: &[Op]| {
        let bench = after_its_switch(then);
        let of: Vec<i64> = bench.rules.switched.values().map(|found| found.sum).collect();
        let switches = bench.rules.records.values().filter(|found| found.switch.is_some()).count();
        assert_eq!(of.len(), switches);
        of
    };
    assert_eq!(counted(std::slice::from_ref(&gone_on)), [700]);
    assert_eq!(counted(&[gone_on.clone(), Op::Pass(90), gone_on.clone()]), [700], "once");
    assert_eq!(counted(&[Op::GoneOn { cpu, switched: false }]), [0; 0]);
    // It resumed, left its CPU and came back, which no program saw.
    let away = [Op::Skipped { cpu, next: 0 }, Op::Pass(9_000), Op::Skipped { cpu, next: 2 }];
    assert_eq!(counted(&[&away[..], &[gone_on.clone()][..]].concat()), [0; 0]);
    assert_eq!(counted(&[Op::Skipped { cpu, next: 3 }, gone_on.clone()]), [0; 0], "another thread");
    assert_eq!(counted(&[Op::Suspend, gone_on]), [0; 0], "over a suspend");
}

/// A wait of the chosen thread behind a thread that a short loop cuts into pieces.
fn cut_into_pieces(nth: u64) -> Vec<Op> {
    let (cpu, preempted) = (0, Leaves::Preempted);
    let mut ops = vec![
        Op::Switch { cpu, previous: 2, next: 1, leaves: Leaves::Sleeps },
        Op::Pass(100_000),
        Op::Wake { cpu, task: 2 },
    ];
    for _ in 0..nth {
        ops.extend([
            Op::Pass(900_000),
            Op::Switch { cpu, previous: 1, next: 3, leaves: preempted },
            Op::Pass(50_000),
            Op::Switch { cpu, previous: 3, next: 1, leaves: Leaves::Sleeps },
        ]);
    }
    ops.extend([Op::Pass(500_000), Op::Switch { cpu, previous: 1, next: 2, leaves: Leaves::Sleeps }]);
    ops
}

#[test]
fn a_holder_that_is_cut_into_pieces_has_all_of_them() {
    for (nth, expected) in [(0, 500_000), (4, 4_100_000), (40, 14_000_000)] {
        let (mut bench, mut ring) = (Bench::new(true, false), ring::RingBench::new());
        for op in cut_into_pieces(nth) {
            bench.do_one(&op);
            ring.do_one(&op);
        }
        bench.compare().unwrap();
        ring.compare().unwrap();
        let held: Vec<Option<i64>> = bench.rules.chosen.values().map(|found| found.held).collect();
        assert_eq!(held, [Some(expected)], "{nth}");
    }
}

/// A wake-up of the chosen thread on CPU 0 that is 20 ms late, with releases by tasks on CPUs, each
/// after a time.
/// The release kept with its maximum: its time before the switch, that of the one before it by
/// another thread, and the thread; in ms.
fn release_kept(releases: &[(u64, usize, usize)]) -> Option<(u64, Option<u64>, u32)> {
    const MS: u64 = 1_000_000;
    let (cpu, mut bench) = (0, Bench::new(true, false));
    let code = released(&by_types(), &MAPS).unwrap();
    let (kind, timer, wall) = (0, 1, false);
    let in_ns = 2000 * MS as i64 - bench.kernel.now as i64;
    bench.do_one(&Op::Start { task: 2, kind, timer, in_ns, wall });
    bench.do_one(&Op::Switch { cpu, previous: 2, next: 0, leaves: Leaves::Sleeps });
    let mut go_on = |to: u64, done: &dyn Fn(&mut Bench)| {
        bench.kernel.now = to * MS;
        done(&mut bench);
    };
    for &(at, cpu, task) in releases {
        go_on(at, &|bench| {
            bench.runs(cpu, task);
            bench.kernel.run(&code, &[0; 8]);
        });
    }
    go_on(2018, &|bench| {
        bench.do_one(&Op::Fire { cpu, kind, timer, pass: 0, wall });
        bench.do_one(&Op::Wake { cpu, task: 2 });
    });
    go_on(2020, &|bench| {
        bench.do_one(&Op::Switch { cpu, previous: 0, next: 2, leaves: Leaves::Preempted });
    });
    bench.compare().unwrap();
    let mut long = |at: i16| bench.kernel.long(2, 0, at);
    if long(cpu::FREED) == 0 {
        return None;
    }
    assert_eq!(long(cpu::FREED), 2020 * MS);
    let before = long(cpu::FREED_OTHER);
    let ms = |ns: u64| (2020 * MS - ns).div_ceil(MS);
    let time = ms(long(cpu::FREED_RELEASE + release::TIME));
    let tid = long(cpu::FREED_RELEASE + release::TID) as u32;
    Some((time, (before > 0).then(|| ms(before) - 1), tid))
}

#[test]
fn a_maximum_keeps_the_release_that_it_followed() {
    let (a, b) = (TASKS[1].tid, TASKS[4].tid);
    assert_eq!(release_kept(&[]), None);
    assert_eq!(release_kept(&[(2015, 1, 1)]), Some((5, None, a)));
    assert_eq!(release_kept(&[(1990, 1, 1)]), None, "before the wait");
    assert_eq!(release_kept(&[(2015, 0, 1)]), None, "on its own CPU");
    assert_eq!(release_kept(&[(2010, 1, 1), (2015, 1, 1)]), Some((5, None, a)), "twice the same");
    assert_eq!(release_kept(&[(2010, 1, 1), (2015, 1, 4)]), Some((5, Some(10), b)), "by two threads");
    assert_eq!(release_kept(&[(2010, 0, 1), (2015, 1, 4)]), Some((5, Some(10), b)), "on two CPUs");
}

#[test]
fn the_latest_pulses_are_kept_with_what_they_found() {
    const MS: u64 = 1_000_000;
    let mut bench = Bench::new(true, false);
    let code = pulse::pulsed(&by_types(), &MAPS).unwrap();
    let mut pulse = |late: u64, task: usize, in_program: bool| {
        bench.runs(0, task);
        bench.kernel.in_program = in_program;
        bench.kernel.now += pulse::PERIOD + late;
        bench.kernel.run(&code, &[0; 16]);
        let pulses = (0..LATE_PULSES as i16).map(|nth| {
            let at = config::LATE_PULSES + nth * late_pulse::SIZE as i16;
            let [late, came] =
                [late_pulse::LATE, late_pulse::CAME].map(|of| bench.kernel.long(6, 0, at + of));
            assert!(late == 0 || came <= bench.kernel.now && came > 0);
            (late / MS, bench.kernel.long(6, 0, at + late_pulse::IN_KERNEL))
        });
        let mut pulses: Vec<(u64, u64)> = pulses.filter(|(late, _)| *late > 0).collect();
        pulses.sort_unstable();
        pulses
    };
    assert_eq!(pulse(500 * MS, 0, false), [], "the first has none before it");
    assert_eq!(pulse(MS, 0, false), [], "too short");
    assert_eq!(pulse(20 * MS, 0, false), [(20, 0)], "in the idle thread");
    assert_eq!(pulse(30 * MS, 1, false), [(20, 0), (30, 1)], "in a function of the kernel");
    assert_eq!(pulse(40 * MS, 1, true), [(20, 0), (30, 1), (40, 0)], "in a program");
    (50..60).for_each(|late| drop(pulse(late * MS, 0, false)));
    let latest: Vec<(u64, u64)> = (52..60).map(|late| (late, 0)).collect();
    assert_eq!(pulse(30 * MS, 0, false), latest);
}
