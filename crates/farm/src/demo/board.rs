//! A board of the demo: its late wake-ups, and the kernel that they came with.

use model::error::Result;
use model::rows::{RowCounts, row_edges};
use model::slice::SliceKind;
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;
use model::watch::{
    Holder, SeriesRows, Victims, WatchCoverage, WatchCulprit, WatchEnvironment, WatchInterval, WatchRow,
    WatchRun, WatchSeries, WatchTask,
};
use stats::rng::{Rng, SEED};

use super::KERNELS;
use super::shape::{LatencyShape, poisson};
use crate::records::{SLOT, Tier};
use crate::wall_clock::DAY;

/// Days with data, up to today.
const DAYS: i64 = 365;
/// Distance of two intervals: more of them would take longer to read than a first look waits.
const EVERY: i64 = 8 * 3_600;
/// The isolated CPUs of each board.
const CPUS: [Cpu; 2] = [Cpu(2), Cpu(3)];
/// Wake-ups of a CPU in an interval, every millisecond.
const WAKEUPS: u64 = 300_000;
/// Factor by which late wake-ups come more often on a board that got worse.
const WORSE: f64 = 20.0;

/// A board of the demo.
pub struct DemoBoard {
    pub name: &'static str,
    pub typical_us: i64,
    /// Late wake-ups a day.
    pub late: f64,
    /// Days before today at which it got the newer kernel.
    pub updated: Option<i64>,
    /// True if it lost its command line with that, and got worse.
    pub is_worse: bool,
    /// Number of last days without data.
    pub silent: i64,
}

/// State of a board during an interval.
#[derive(Clone, Copy)]
struct DemoState {
    is_updated: bool,
    is_worse: bool,
    /// First second of its boot.
    booted: i64,
}

impl DemoBoard {
    pub const DEFAULT: DemoBoard =
        DemoBoard { name: "", typical_us: 0, late: 0.0, updated: None, is_worse: false, silent: 0 };

    /// Passes on each of its intervals, oldest first; the numbers are the same for each day of the
    /// year.
    pub fn each_interval(
        &self,
        number: usize,
        now: i64,
        mut take: impl FnMut(&WatchRun, &WatchInterval) -> Result<()>,
    ) -> Result<()> {
        let mut rng = Rng::new(SEED ^ (number as u64 + 1));
        let typical = Nanos(self.typical_us * 1_000);
        let shape = LatencyShape::new(typical, Nanos(typical.0 * 6), WAKEUPS as f64, &mut rng);
        let today = Tier::Day.begin(now);
        let begin = today - (DAYS - 1) * DAY;
        let updated = self.updated.map_or(i64::MAX, |days| today - days * DAY);
        for day in (begin..=today - self.silent * DAY).step_by(DAY as usize) {
            let is_updated = day >= updated;
            let booted = if is_updated { updated } else { begin } - 60;
            let of = DemoState { is_updated, is_worse: is_updated && self.is_worse, booted };
            let rate = self.late * if of.is_worse { WORSE } else { 1.0 };
            // With more spread than chance: some days are bad.
            let late = rate * (0.85 + 0.15 * rng.exponential()) * EVERY as f64 / DAY as f64;
            for t in (day..(day + DAY).min(now - SLOT)).step_by(EVERY as usize) {
                let rows = CPUS.map(|cpu| {
                    let count = poisson(late / CPUS.len() as f64, &mut rng);
                    let scale = if of.is_worse { 120_000.0 } else { 30_000.0 };
                    let spikes: Vec<Nanos> =
                        (0..count).map(|_| Nanos(60_000 + (scale * rng.exponential()) as i64)).collect();
                    let hist = shape.with(spikes.iter().copied(), &mut rng);
                    let after = Nanos(rng.below(299_000) as i64 * 1_000_000);
                    row(of, cpu, hist, spikes.into_iter().max(), mono(of, t) + after)
                });
                take(&self.run(of), &self.interval(of, t, rows.to_vec()))?;
            }
        }
        Ok(())
    }

    fn run(&self, of: DemoState) -> WatchRun {
        let boot = format!("{}-{}", self.name, u8::from(of.is_updated));
        let interval_ns = Nanos(SLOT * Nanos::SECOND.0);
        WatchRun { boot, plan: "all".to_owned(), interval_ns, ..WatchRun::default() }
    }

    fn interval(&self, of: DemoState, t: i64, cpus: Vec<WatchRow>) -> WatchInterval {
        let environment = self.environment(of);
        let recorded = cpus.iter().map(|row| row.n).sum();
        WatchInterval {
            mono_ns: mono(of, t),
            span_ns: Nanos(SLOT * Nanos::SECOND.0),
            wall_ns: Nanos(t * Nanos::SECOND.0),
            env: environment.env.clone(),
            environment: Some(environment),
            series: vec![SeriesRows { series: WatchSeries::TimerWakeup, cpus, threads: Vec::new() }],
            coverage: WatchCoverage { recorded, voluntary: Some(recorded), ..WatchCoverage::default() },
            ..WatchInterval::default()
        }
    }

    fn environment(&self, of: DemoState) -> WatchEnvironment {
        let release = KERNELS[usize::from(of.is_updated)];
        let nohz = if of.is_worse { "" } else { "2-3" };
        let cmdline = if of.is_worse { "quiet isolcpus=2-3" } else { "quiet isolcpus=2-3 nohz_full=2-3" };
        let settings = [
            ("model", "Synthetic board, 4 CPUs"),
            ("preempt", "rt"),
            ("clocksource", "tsc"),
            ("governor", "performance"),
            ("cmdline", cmdline),
            ("isolated", "2-3"),
            ("nohz_full", nohz),
        ];
        WatchEnvironment {
            env: format!("{}-{}", self.name, u8::from(of.is_updated)),
            release: release.to_owned(),
            machine: "x86_64".to_owned(),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }
}

/// CLOCK_MONOTONIC of a board at a second since 1970.
fn mono(of: DemoState, t: i64) -> Nanos {
    Nanos((t - of.booted) * Nanos::SECOND.0)
}

/// The row of a CPU, with its largest late wake-up if it had any.
fn row(of: DemoState, cpu: Cpu, hist: RowCounts, late: Option<Nanos>, at: Nanos) -> WatchRow {
    let lower = |row: Option<(usize, u64)>| row.map(|(row, _)| row_edges(row).0);
    let (smallest, largest) = (lower(hist.iter().next()), lower(hist.iter().last()));
    WatchRow {
        cpu: Some(cpu),
        holder: Holder::Lower.into(),
        victims: Victims::User.into(),
        n: hist.total(),
        min_ns: smallest,
        max_ns: late.or(largest),
        max_mono_ns: Some(at),
        hist,
        victim: WatchTask {
            comm: format!("control/{}", cpu.0),
            prio: Some(19),
            policy: Policy::Fifo.into(),
            cpu: Some(cpu),
            ..WatchTask::default()
        },
        culprit: late.map_or_else(WatchCulprit::default, |_| culprit(of)),
        ..WatchRow::default()
    }
}

/// Without `nohz_full`, the isolated CPUs do the kernel's own work too.
fn culprit(of: DemoState) -> WatchCulprit {
    let (rule, name, kind) = if of.is_worse {
        ("vmstat-work", "update of memory statistics", SliceKind::Workqueue)
    } else {
        ("device-interrupt", "eth0", SliceKind::Irq)
    };
    WatchCulprit {
        rule: Some(rule.to_owned()),
        name: name.to_owned(),
        kind: kind.into(),
        share: Some(0.8),
        ..WatchCulprit::default()
    }
}
