//! Synthetic runs for tests: the same on every machine, with the shapes that occur in reports.

use std::sync::LazyLock;

use crate::plot::history::History;
use crate::{Input, words};
use model::histogram::{Bucket, Counts, bucket_of, buckets_of, edge_at_or_above};
use model::run::{Block, CpuRun, Host, Integrity, Overhead, Peak, Plan, Run, SCHEMA, Worst};
use model::units::{Cpu, Nanos};
use stats::bounds::Bounds;
use stats::series::{Collector, Series};

/// Synthetic run, ready to be shown.
pub struct MadeRun {
    pub run: Run,
    pub history: History,
    pub series: Series,
    pub bounds: Option<Bounds>,
    pub remarks: Vec<String>,
    pub title: String,
}

impl MadeRun {
    pub fn input(&self) -> Input<'_> {
        Input {
            run: &self.run,
            history: &self.history,
            series: &self.series,
            bounds: self.bounds.as_ref(),
            windows: None,
            remarks: &self.remarks,
            settings: None,
            title: &self.title,
            place: "/runs/x",
        }
    }

    fn new(run: Run, history: History, collector: Collector, title: &str) -> MadeRun {
        let series = collector.finish(Nanos(1), Nanos(1_000_000), run.elapsed_ns);
        MadeRun { run, history, series, bounds: None, remarks: Vec::new(), title: title.into() }
    }

    /// Adds the bounds for a limit and a day.
    pub fn ask(&mut self, limit: Option<Nanos>) {
        self.bounds = crate::bounds::fixture::bounds(&self.run, &self.series, limit);
    }
}

/// Pseudo-random numbers (Knuth's MMIX generator), the same on every machine.
struct Dice(u64);

impl Dice {
    /// Uniform between 0 and 1, never 0.
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// Exponential with this mean.
    fn tail(&mut self, mean: f64) -> f64 {
        -mean * self.even().ln()
    }
}

/// Block of these latencies, with the levels of a run.
pub fn block_of(cpu: Cpu, mono: Nanos, values: &[i64]) -> Block {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
    let levels = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
    let over = |us: i64| {
        let level = edge_at_or_above(Nanos(us * 1_000));
        (level, values.iter().filter(|&&ns| ns >= level.0).count() as u64)
    };
    Block {
        cpu,
        mono_ns: mono,
        span_ns: Some(Nanos::SECOND),
        n: values.len() as u64,
        max_ns: sorted.first().map(|&ns| Nanos(ns)),
        max_mono_ns: sorted.first().map(|_| Nanos(mono.0.saturating_add(500_000_000))),
        top_ns: sorted.iter().skip(1).take(7).map(|&ns| Nanos(ns)).collect(),
        over: levels.into_iter().map(over).collect(),
        ..Block::default()
    }
}

/// Parameters of a synthetic run.
struct Wanted {
    title: &'static str,
    cpus: u32,
    seconds: u64,
    per_second: u64,
}

const T0: i64 = 5_000_000_000;

fn make(wanted: &Wanted, latency: impl Fn(u32, u64, u64, &mut Dice) -> i64) -> MadeRun {
    let interval = Nanos(1_000_000_000 / wanted.per_second as i64);
    let mut run = Run {
        schema: SCHEMA.into(),
        id: wanted.title.into(),
        command: "measure".into(),
        complete: true,
        ended: "duration".into(),
        version: "0.1.0".into(),
        started: "2026-11-21T09:00:00.000000Z".into(),
        plan: plan(wanted, interval),
        host: host(),
        elapsed_ns: Some(Nanos(wanted.seconds as i64 * 1_000_000_000)),
        overhead: Overhead {
            clock_read_ns: Some(Nanos(21)),
            loop_ns: Some(Nanos(84)),
            housekeeping_wakeups_per_s: Some(3.1),
            max_rss_kib: Some(9_420),
            ..Overhead::default()
        },
        ..Run::default()
    };
    let (mut history, mut collector) = (History::for_run(&run, 240), Collector::new(None, Nanos::MILLI));
    for cpu in 0..wanted.cpus {
        let add = |block: Block| {
            collector.add(&Peak::of(&block));
            history.add(&block);
        };
        run.cpus.push(make_cpu(wanted, cpu, interval, &latency, add));
    }
    run.check().unwrap();
    MadeRun::new(run, history, collector, wanted.title)
}

fn make_cpu(
    wanted: &Wanted,
    cpu: u32,
    interval: Nanos,
    latency: &impl Fn(u32, u64, u64, &mut Dice) -> i64,
    mut add: impl FnMut(Block),
) -> CpuRun {
    let mut dice = Dice(u64::from(cpu) * 7_919 + 1);
    let (mut counts, mut slots) = (Counts::default(), Counts::default());
    let (mut all, mut missed, mut slot) = (Vec::new(), 0, 0u64);
    for second in 0..wanted.seconds {
        let (mut values, mut missed_here) = (Vec::new(), 0);
        while slot < (second + 1) * wanted.per_second {
            let ns = latency(cpu, second, slot % wanted.per_second, &mut dice);
            values.push(ns);
            all.push((ns, slot));
            counts.add(bucket_of(Nanos(ns)), 1);
            slots.add(bucket_of(Nanos(ns)), 1);
            for late in 1..=(ns / interval.0).max(0) {
                slots.add(bucket_of(Nanos(ns - late * interval.0)), 1);
                missed_here += 1;
                slot += 1;
            }
            slot += 1;
        }
        missed += missed_here;
        let mono = Nanos(T0 + second as i64 * 1_000_000_000);
        add(Block { missed: Some(missed_here), ..block_of(Cpu(cpu), mono, &values) });
    }
    all.sort_unstable_by_key(|&(ns, _)| std::cmp::Reverse(ns));
    let min = all.last().map(|worst| Nanos(worst.0));
    let mut run = CpuRun {
        cpu: Some(Cpu(cpu)),
        t0_mono_ns: Some(Nanos(T0)),
        interval_ns: Some(interval),
        scheduled: Some(all.len() as u64 + missed),
        cycles: Some(all.len() as u64),
        missed: Some(missed),
        early: Some(counts.get(0)),
        warmup: Some(20),
        min_ns: min,
        mean_ns: Some(Nanos(all.iter().map(|sample| sample.0).sum::<i64>() / all.len().max(1) as i64)),
        max_ns: all.first().map(|worst| Nanos(worst.0)),
        histogram: buckets_of(&counts, min.unwrap_or_default()),
        deadline_histogram: Some(buckets_of(&slots, min.unwrap_or_default())),
        worst: all.iter().take(8).map(|&(ns, slot)| worst_at(ns, slot, interval)).collect(),
        ..CpuRun::default()
    };
    run.fill_quantiles();
    run
}

fn worst_at(ns: i64, slot: u64, interval: Nanos) -> Worst {
    let since = slot as i64 * interval.0 + ns;
    let (seconds, micros) = (since / 1_000_000_000, since % 1_000_000_000 / 1_000);
    let (h, m, s) = (9 + seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Worst {
        latency_ns: Some(Nanos(ns)),
        cycle: Some(slot),
        mono_ns: Some(Nanos(T0 + since)),
        time: format!("2026-11-21T{h:02}:{m:02}:{s:02}.{micros:06}Z"),
    }
}

fn plan(wanted: &Wanted, interval: Nanos) -> Plan {
    Plan {
        cpus: (0..wanted.cpus).map(Cpu).collect(),
        interval_ns: Some(interval),
        distance_ns: Some(Nanos(0)),
        policy: "fifo".into(),
        priority: Some(80),
        wake: "nanosleep".into(),
        expiry: "hard-irq".into(),
        phase: "staggered".into(),
        idle: "held".into(),
        duration_ns: Some(Nanos(wanted.seconds as i64 * 1_000_000_000)),
        housekeeping: vec![Cpu(wanted.cpus)],
        ..Plan::default()
    }
}

fn host() -> Host {
    Host {
        release: "6.12.48-rt".into(),
        kernel: "#1 SMP PREEMPT_RT Debian 6.12.48-1".into(),
        machine: "x86_64".into(),
        preempt: "rt".into(),
        clocksource: "tsc".into(),
        virtualization: "none".into(),
        model: "Example CPU @ 3.00GHz".into(),
        cmdline: "isolcpus=2,3 nohz_full=2,3 quiet".into(),
        online: "0-3".into(),
        rt_runtime_us: Some(950_000),
        rt_period_us: Some(1_000_000),
        idle_states: vec!["POLL".into(), "C1".into(), "C6".into()],
        ..Host::default()
    }
}

fn bulk(dice: &mut Dice, base: f64, spread: f64) -> i64 {
    let rare = if dice.even() < 0.002 { dice.tail(spread * 6.0) } else { 0.0 };
    (base + dice.tail(spread) * dice.even() + rare) as i64
}

/// Two CPUs of a tuned PREEMPT_RT machine.
pub fn quiet() -> MadeRun {
    let wanted = Wanted { title: "quiet", cpus: 2, seconds: 60, per_second: 1_000 };
    make(&wanted, |cpu, _, _, dice| bulk(dice, 1_900.0 + f64::from(cpu) * 700.0, 900.0))
}

/// Two CPUs of a virtual machine that its host stops for up to 7 ms now and then.
pub fn noisy() -> MadeRun {
    let wanted = Wanted { title: "noisy", cpus: 2, seconds: 120, per_second: 1_000 };
    let mut sample = make(&wanted, |cpu, second, slot, dice| match (second % 17, slot) {
        (7, 300) if second > 40 => 2_000_000 + (second * 45_000) as i64 + i64::from(cpu) * 311_000,
        _ => bulk(dice, 24_000.0, 30_000.0),
    });
    let run = &mut sample.run;
    run.plan.policy = "other".into();
    run.plan.priority = Some(0);
    run.plan.expiry = "softirq-thread".into();
    run.plan.idle = "as-is".into();
    run.host.virtualization = "kvm".into();
    run.host.clocksource = "kvm-clock".into();
    run.integrity = vec![
        entry("steal", Some(1), "the hypervisor took 1.21 s in 120 s", true),
        entry("privilege", None, "SCHED_FIFO was not permitted; measured with SCHED_OTHER", false),
    ];
    run.complete = false;
    run.ended = Default::default();
    sample.remarks = vec!["the last line of blocks.jsonl was cut short and left out".into()];
    sample
}

fn entry(kind: &str, cpu: Option<u32>, detail: &str, invalidates: bool) -> Integrity {
    Integrity { kind: kind.into(), cpu: cpu.map(Cpu), detail: detail.into(), invalidates }
}

/// Eight CPUs of two kinds, with a limit.
pub fn eight() -> MadeRun {
    let wanted = Wanted { title: "eight", cpus: 8, seconds: 100, per_second: 200 };
    let mut sample = make(&wanted, |cpu, _, _, dice| {
        bulk(dice, 2_000.0 + 350.0 * f64::from(cpu), 900.0 + 160.0 * f64::from(cpu))
    });
    sample.run.plan.limit_ns = Some(Nanos(60_000));
    for cpu in &mut sample.run.cpus {
        cpu.core_type = if cpu.cpu < Some(Cpu(4)) { "performance" } else { "efficiency" }.into();
    }
    sample
}

/// 64 CPUs.
pub fn many() -> MadeRun {
    let wanted = Wanted { title: "many", cpus: 64, seconds: 60, per_second: 20 };
    make(&wanted, |cpu, _, _, dice| {
        bulk(dice, 2_000.0 + 20.0 * f64::from(cpu), 700.0 + 25.0 * f64::from(cpu * 7 % 23))
    })
}

/// An hour with a single spike.
pub fn spike() -> MadeRun {
    let wanted = Wanted { title: "spike", cpus: 2, seconds: 3_600, per_second: 12 };
    make(&wanted, |cpu, second, slot, dice| match (cpu, second, slot) {
        (1, 1_850, 7) => 3_120_000,
        _ => bulk(dice, 2_400.0, 1_100.0),
    })
}

/// Ten minutes with a spike every 17 s.
pub fn comb() -> MadeRun {
    let wanted = Wanted { title: "comb", cpus: 2, seconds: 600, per_second: 100 };
    make(&wanted, |cpu, second, slot, dice| match (cpu, second % 17, slot) {
        (0, 5, 40) => 60_000 + dice.tail(1_000.0) as i64,
        _ => bulk(dice, 2_400.0, 1_100.0),
    })
}

pub fn one() -> MadeRun {
    make(&Wanted { title: "one", cpus: 1, seconds: 1, per_second: 1 }, |_, _, _, _| 4_321)
}

/// Wake-ups before their time, among others.
pub fn early() -> MadeRun {
    let wanted = Wanted { title: "early", cpus: 2, seconds: 5, per_second: 1_000 };
    make(&wanted, |cpu, _, slot, dice| match slot {
        17 => -1_500 - i64::from(cpu) * 100,
        _ => bulk(dice, 3_000.0, 2_000.0),
    })
}

pub fn alike() -> MadeRun {
    make(&Wanted { title: "alike", cpus: 2, seconds: 3, per_second: 100 }, |_, _, _, _| 5_000)
}

/// Largest possible latencies.
pub fn huge() -> MadeRun {
    let wanted = Wanted { title: "huge", cpus: 1, seconds: 2, per_second: 10 };
    let mut sample = make(&wanted, |_, _, slot, _| 1 << (slot * 3));
    let cpu = &mut sample.run.cpus[0];
    cpu.histogram.push(Bucket::new(Nanos(i64::MAX - 1), Nanos(i64::MAX), 1));
    cpu.cycles = cpu.cycles.map(|cycles| cycles + 1);
    cpu.max_ns = Some(Nanos(i64::MAX));
    cpu.deadline_histogram = None;
    sample
}

/// Run without any measurement.
pub fn empty() -> MadeRun {
    let run = Run::default();
    MadeRun::new(run.clone(), History::for_run(&run, 240), Collector::new(None, Nanos::MILLI), "empty")
}

/// Import of cyclictest's histogram of two threads.
pub fn import() -> MadeRun {
    let mut run = quiet().run;
    run.command = "import".into();
    run.plan = Plan::default();
    run.host = Host::default();
    run.elapsed_ns = None;
    run.started = String::new();
    run.overhead = Overhead::default();
    for cpu in &mut run.cpus {
        let mut rows: Vec<Bucket> = Vec::new();
        for &Bucket { lower, count: n, .. } in cpu.histogram.iter() {
            let us = lower.0 / 1_000 * 1_000;
            match rows.last_mut() {
                Some(row) if row.lower.0 == us => row.count += n,
                _ => rows.push(Bucket::new(Nanos(us), Nanos(us + 1_000), n)),
            }
        }
        let of = cpu.cpu;
        *cpu =
            CpuRun { cpu: of, histogram: rows, cycles: cpu.cycles, max_ns: cpu.max_ns, ..CpuRun::default() };
    }
    run.cpus[0].overflows = Some(3);
    run.cpus[0].cycles = run.cpus[0].cycles.map(|cycles| cycles + 3);
    run.cpus[0].max_ns = Some(Nanos(61_000));
    run.check().unwrap();
    MadeRun::new(run.clone(), History::for_run(&run, 240), Collector::new(None, Nanos::MILLI), "import")
}

/// Name that tries to break out of a page, a line, the terminal's screen, and the text direction.
pub const ATTACK: &str = "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">\u{1b}[2J\r\n#\u{0}\u{9b}2J\u{85}\u{202e}\u{2066}\u{61c}\u{2028}";

/// Run whose every string is an attack.
pub fn hostile() -> MadeRun {
    let mut sample = early();
    let text = serde_json::to_string(&sample.run).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    poison(&mut value, ATTACK);
    sample.run = serde_json::from_value(value).unwrap();
    sample.run.integrity = vec![entry(ATTACK, Some(0), ATTACK, true)];
    sample.remarks = vec![ATTACK.into()];
    sample.title = ATTACK.into();
    sample
}

/// Replaces every string of a document by the attack.
pub fn poison(value: &mut serde_json::Value, attack: &str) {
    match value {
        serde_json::Value::String(text) => *text = attack.into(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| poison(value, attack)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|value| poison(value, attack)),
        _ => {}
    }
}

/// All synthetic runs, created once: that takes a second or two.
pub fn all() -> &'static [MadeRun] {
    static ALL: LazyLock<Vec<MadeRun>> = LazyLock::new(|| {
        let ordinary = [quiet(), noisy(), eight(), many(), spike(), comb()];
        let odd = [one(), early(), alike(), huge(), empty(), import(), hostile()];
        let mut all: Vec<MadeRun> = ordinary.into_iter().chain(odd).collect();
        all.iter_mut().for_each(|sample| sample.ask(None));
        all
    });
    &ALL
}

#[test]
fn attacks_do_not_survive_cleaning() {
    assert!(words::clean(&hostile().title).chars().all(|c| !c.is_control()));
}
