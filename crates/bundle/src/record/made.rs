//! Synthetic record for tests and pictures: an application of four threads, a nightly backup with
//! disturbing interrupts, a load and a measurement of onbeat, a reboot.

use model::keyword::Word;
use model::rows::{RowCounts, RowSums, row_of};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;
use model::watch::{
    Holder, SeriesRows, TOP, Victims, WatchCoverage, WatchCulprit, WatchEnvironment, WatchInterval,
    WatchMark, WatchMarkKind, WatchRow, WatchRun, WatchSeries, WatchTask, WorstWakeup,
};

const SECOND: i64 = Nanos::SECOND.0;
const HOUR: i64 = 3_600 * SECOND;

/// Parameters of the synthetic record.
#[derive(Clone, Copy, Debug)]
pub struct MadeRecord {
    pub cpus: u32,
    pub span: Nanos,
    /// Number of intervals before the reboot of the machine.
    pub reboot: u64,
    /// Wake-ups of each CPU in an interval.
    pub wakeups: u64,
}

/// Pseudo-random number that is the same in each run (splitmix64).
fn draw(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number from 0 to 1.
fn unit(seed: u64) -> f64 {
    (draw(seed) >> 11) as f64 / (1u64 << 53) as f64
}

fn task(comm: &str, tid: i32, prio: i32, policy: Option<Policy>, cpu: u32) -> WatchTask {
    WatchTask {
        comm: comm.into(),
        pid: Some(tid),
        tid: Some(tid),
        prio: Some(prio),
        policy: policy.map(Word::Known).unwrap_or_default(),
        cpu: Some(Cpu(cpu)),
    }
}

impl MadeRecord {
    /// Recording of that interval.
    pub fn run(&self, n: u64) -> WatchRun {
        let boot = if n < self.reboot { "5b1f3c9e-0001" } else { "5b1f3c9e-0002" };
        WatchRun { boot: boot.into(), plan: "all".into(), interval_ns: self.span, ..WatchRun::default() }
    }

    /// Interval of that number.
    pub fn interval(&self, n: u64) -> WatchInterval {
        let since_boot = n - if n < self.reboot { 0 } else { self.reboot };
        let mono = 40 * SECOND + since_boot as i64 * self.span.0;
        // 2026-03-02, a Monday, 06:00 UTC; the reboot took 20 minutes.
        let off = if n < self.reboot { 0 } else { 1_200 * SECOND };
        let wall = 1_772_431_200 * SECOND + n as i64 * self.span.0 + off;
        let kernel = if n < self.reboot { "6.12.90-rt" } else { "6.12.94-rt" };
        let environment = WatchEnvironment {
            env: format!("digest of {kernel}"),
            release: kernel.into(),
            machine: "x86_64".into(),
            settings: [("kernel.sched_rt_runtime_us".to_owned(), "-1".to_owned())].into(),
        };
        let (mut series, mut worst) = (Vec::new(), Vec::new());
        for (at, of) in
            [WatchSeries::Timer, WatchSeries::Wakeup, WatchSeries::TimerWakeup].into_iter().enumerate()
        {
            let rows: Vec<WatchRow> = (0..self.cpus).map(|cpu| self.row(n, cpu, of, mono, wall)).collect();
            let largest = (0..self.cpus).max_by_key(|&cpu| rows[cpu as usize].max_ns).unwrap_or(0);
            worst.push(self.worst(n, largest, of, mono, wall));
            series.push(SeriesRows { series: of, cpus: rows, threads: Vec::new() });
            if at == 1 && n % 7 == 3 {
                worst.push(self.behind_equal(n, mono, wall));
                worst.push(self.kernel_thread(n, mono, wall));
            }
        }
        let total = self.wakeups * u64::from(self.cpus);
        WatchInterval {
            seq: 0,
            mono_ns: Nanos(mono),
            span_ns: self.span,
            wall_ns: Nanos(wall),
            env: environment.env.clone(),
            environment: Some(environment),
            integrity: Vec::new(),
            series,
            worst,
            coverage: WatchCoverage {
                recorded: total,
                voluntary: Some(total + u64::from(n % 5 == 0)),
                woken_before_sleep: draw(n) % 3,
                ..WatchCoverage::default()
            },
            marks: self.marks(n, mono, wall),
        }
    }

    /// True while the backup runs: at two in the night.
    fn is_backup(wall: i64) -> bool {
        wall.rem_euclid(24 * HOUR) / HOUR == 2
    }

    /// T and W of the largest wake-up of a CPU.
    fn largest(n: u64, cpu: u32, wall: i64) -> (i64, i64) {
        let seed = n * 131 + u64::from(cpu);
        let timer = 6_000.0 * (1.0 + 1.6 * unit(seed) * unit(seed + 7_000));
        let mut wakeup = 9_000.0 * (1.0 + 2.2 * unit(seed + 1_000).powi(3));
        if MadeRecord::is_backup(wall) && cpu == 1 {
            wakeup *= 6.0 + 9.0 * unit(seed + 2_000);
        }
        let timer = if draw(seed) % 97 == 0 { timer * 9.0 } else { timer };
        (timer as i64, wakeup as i64)
    }

    fn row(&self, n: u64, cpu: u32, series: WatchSeries, mono: i64, wall: i64) -> WatchRow {
        let seed = n * 977 + u64::from(cpu) * 31 + series as u64;
        let (timer, wakeup) = MadeRecord::largest(n, cpu, wall);
        let (low, middle, max) = match series {
            WatchSeries::Timer => (900.0, 2_100.0, timer),
            WatchSeries::Wakeup => (1_100.0, 2_900.0, wakeup),
            _ => (2_200.0, 5_100.0, timer + wakeup),
        };
        let mut sums = RowSums::default();
        let mut left = self.wakeups;
        let mut sum = max as i128;
        let mut top = Vec::new();
        sums.add(row_of(Nanos(max)), 1);
        left -= 1;
        // A bell over the logarithm, its tail down to single wake-ups.
        for step in 0..60u64 {
            let at = low * (max as f64 * 0.98 / low).powf(step as f64 / 60.0);
            let bell = ((at / middle).ln() / 0.21).powi(2) / -2.0;
            let share = bell.exp() * 0.09 + 3e-6 * (1.0 - step as f64 / 60.0);
            let count = ((self.wakeups as f64 * share * (0.9 + 0.2 * unit(seed + step))) as u64).min(left);
            sums.add(row_of(Nanos(at as i64)), count);
            sum += i128::from(count) * at as i128;
            left -= count;
            if count > 0 {
                top.insert(0, Nanos(at as i64));
            }
        }
        sums.add(row_of(Nanos(middle as i64)), left);
        sum += i128::from(left) * middle as i128;
        top.truncate(TOP);
        let hist: RowCounts = sums.counts();
        WatchRow {
            cpu: Some(Cpu(cpu)),
            holder: Holder::Lower.into(),
            victims: Victims::User.into(),
            n: hist.total(),
            min_ns: Some(Nanos(low as i64)),
            sum_ns: Nanos(i64::try_from(sum).unwrap_or(i64::MAX)),
            max_ns: Some(Nanos(max)),
            max_mono_ns: Some(Nanos(mono + self.span.0 / 2)),
            top_ns: top,
            hist,
            victim: MadeRecord::victim(cpu),
            ..WatchRow::default()
        }
    }

    fn victim(cpu: u32) -> WatchTask {
        task(&format!("control/{cpu}"), 2_210 + cpu as i32, 19, Some(Policy::Fifo), cpu)
    }

    fn worst(&self, n: u64, cpu: u32, of: WatchSeries, mono: i64, wall: i64) -> WorstWakeup {
        let (timer, wakeup) = MadeRecord::largest(n, cpu, wall);
        let backup = MadeRecord::is_backup(wall) && cpu == 1;
        let stack: &[&str] = if backup {
            &["nvme_irq", "__handle_irq_event_percpu", "handle_edge_irq", "asm_common_interrupt"]
        } else {
            &["cpuidle_enter_state", "cpuidle_enter", "do_idle", "cpu_startup_entry"]
        };
        let kworker = task("kworker/1:2", 512, 120, None, cpu);
        WorstWakeup {
            worst_of: vec![Word::Known(of)],
            holder: Holder::Lower.into(),
            victims: Victims::User.into(),
            timer_ns: Some(Nanos(timer)),
            wakeup_ns: Some(Nanos(wakeup)),
            held_ns: None,
            switch_ns: None,
            mono_ns: Nanos(mono + self.span.0 / 2 + i64::from(cpu)),
            wall_ns: Nanos(wall + self.span.0 / 2),
            cpu: Some(Cpu(cpu)),
            victim: MadeRecord::victim(cpu),
            culprit: if backup {
                WatchCulprit {
                    rule: Some("device-interrupt".into()),
                    name: "nvme0q1".into(),
                    kind: SliceKind::Irq.into(),
                    share: Some(0.93),
                    estimated: false,
                    task: kworker.clone(),
                }
            } else {
                WatchCulprit::default()
            },
            previous: if backup { kworker } else { task("swapper", 0, 120, None, cpu) },
            interrupted: task("swapper", 0, 120, None, cpu),
            stack: stack.iter().map(|name| (*name).to_owned()).collect(),
            sleeps_in: "clock_nanosleep".into(),
        }
    }

    fn behind_equal(&self, n: u64, mono: i64, wall: i64) -> WorstWakeup {
        let wakeup = 80_000 + (draw(n) % 900_000) as i64;
        let logger = task("logger", 2_290, 19, Some(Policy::Fifo), 0);
        WorstWakeup {
            worst_of: vec![Word::Known(WatchSeries::Wakeup)],
            holder: Holder::Equal.into(),
            timer_ns: None,
            wakeup_ns: Some(Nanos(wakeup)),
            culprit: WatchCulprit {
                name: "logger".into(),
                share: Some(1.0),
                task: logger.clone(),
                ..WatchCulprit::default()
            },
            previous: logger,
            sleeps_in: "futex_wait".into(),
            ..self.worst(n, 0, WatchSeries::Wakeup, mono - 77, wall)
        }
    }

    fn kernel_thread(&self, n: u64, mono: i64, wall: i64) -> WorstWakeup {
        WorstWakeup {
            worst_of: vec![Word::Known(WatchSeries::Wakeup)],
            victims: Victims::Kernel.into(),
            timer_ns: None,
            wakeup_ns: Some(Nanos(1_000_000 + (draw(n + 5) % 3_000_000) as i64)),
            victim: task("ktimers/0", 17, 98, Some(Policy::Fifo), 0),
            culprit: WatchCulprit::default(),
            sleeps_in: "smpboot_thread_fn".into(),
            ..self.worst(n, 0, WatchSeries::Wakeup, mono - 99, wall)
        }
    }

    fn marks(&self, n: u64, mono: i64, wall: i64) -> Vec<WatchMark> {
        let mark = |kind: WatchMarkKind, detail: &str| WatchMark {
            kind: kind.into(),
            from_mono_ns: Nanos(mono),
            to_mono_ns: Nanos(mono + self.span.0),
            cpu: None,
            detail: detail.into(),
        };
        let hour = wall.rem_euclid(24 * HOUR) / HOUR;
        let mut marks = Vec::new();
        if (13..16).contains(&hour) {
            marks.push(mark(WatchMarkKind::Measure, "run 20260302-1300"));
        }
        if hour == 14 {
            marks.push(mark(WatchMarkKind::Load, "mem:2x64M"));
        }
        if n.checked_sub(2) == Some(self.reboot) {
            let step = WatchMark { to_mono_ns: Nanos(mono), ..mark(WatchMarkKind::ClockStep, "+2.1 s") };
            marks.push(step);
        }
        marks
    }
}
