//! Records on fake disks.

mod damage;
mod law;
mod round;

use model::rows::{RowCounts, row_of};
use model::units::{Cpu, Nanos};
use model::watch::{
    Holder, SeriesRows, Victims, WatchCoverage, WatchEnvironment, WatchInterval, WatchMark, WatchMarkKind,
    WatchRow, WatchRun, WatchSeries, WatchTask, WorstWakeup,
};

use super::fake::MemoryDisk;
use super::read::{RecordItem, RecordReader};

const SPAN: Nanos = Nanos(300 * Nanos::SECOND.0);

fn run(boot: &str) -> WatchRun {
    WatchRun { boot: boot.into(), plan: "p".into(), interval_ns: SPAN, ..WatchRun::default() }
}

/// Pseudo-random numbers that are the same in each run.
fn draw(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

fn row(cpu: u32, seed: u64, rows: u64) -> WatchRow {
    let at = |i: u64| Nanos((2_000 + i * 97 + draw(seed * 991 + i) % 40) as i64);
    let hist = RowCounts::of_rows((0..rows).map(|i| (row_of(at(i)), 1 + draw(seed + i) % 900)));
    WatchRow {
        cpu: Some(Cpu(cpu)),
        holder: Holder::Lower.into(),
        victims: Victims::User.into(),
        n: hist.total(),
        min_ns: Some(Nanos(2_000)),
        sum_ns: Nanos(hist.total() as i64 * 3_000),
        max_ns: Some(Nanos(9_000 + (draw(seed) % 90_000) as i64)),
        max_mono_ns: Some(Nanos(seed as i64 * SPAN.0 + 5)),
        hist,
        ..WatchRow::default()
    }
}

fn task(comm: &str, tid: i32, prio: i32) -> WatchTask {
    WatchTask { comm: comm.into(), pid: Some(tid), tid: Some(tid), prio: Some(prio), ..WatchTask::default() }
}

/// Interval of that number since a boot.
fn interval(n: u64, cpus: u32, rows: u64) -> WatchInterval {
    let mono_ns = Nanos(n as i64 * SPAN.0);
    let series = |series, shift: u64| SeriesRows {
        series,
        cpus: (0..cpus).map(|cpu| row(cpu, n * 64 + u64::from(cpu) + shift, rows)).collect(),
        threads: Vec::new(),
    };
    let worst = |of, timer, wakeup| WorstWakeup {
        worst_of: vec![model::keyword::Word::Known(of)],
        holder: Holder::Lower.into(),
        victims: Victims::User.into(),
        timer_ns: Some(Nanos(timer)),
        wakeup_ns: Some(Nanos(wakeup)),
        mono_ns: Nanos(mono_ns.0 + wakeup),
        cpu: Some(Cpu(0)),
        victim: task("control", 4711, 19),
        previous: task("ksoftirqd/0", 16, 120),
        stack: vec!["finish_task_switch".into(), "__schedule".into(), "smpboot_thread_fn".into()],
        sleeps_in: "clock_nanosleep".into(),
        ..WorstWakeup::default()
    };
    let drawn = (draw(n) % 50_000) as i64;
    WatchInterval {
        seq: 0,
        mono_ns,
        span_ns: SPAN,
        wall_ns: Nanos(1_700_000_000 * Nanos::SECOND.0 + mono_ns.0),
        env: "e1".into(),
        environment: Some(WatchEnvironment {
            env: "e1".into(),
            release: "6.12.0-rt".into(),
            ..WatchEnvironment::default()
        }),
        series: vec![series(WatchSeries::Timer, 0), series(WatchSeries::Wakeup, 7)],
        worst: vec![
            worst(WatchSeries::Timer, 4_000 + drawn, 3_000),
            worst(WatchSeries::TimerWakeup, 4_000 + drawn, 3_000),
            worst(WatchSeries::Wakeup, 2_000, 5_000 + drawn),
        ],
        coverage: WatchCoverage { recorded: 100, voluntary: Some(101), ..WatchCoverage::default() },
        marks: match n % 50 {
            7 => vec![WatchMark {
                kind: WatchMarkKind::Measure.into(),
                from_mono_ns: mono_ns,
                to_mono_ns: Nanos(mono_ns.0 + 9),
                ..WatchMark::default()
            }],
            _ => Vec::new(),
        },
        ..WatchInterval::default()
    }
}

/// Numbers that have to stay in any merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    intervals: u64,
    span: i64,
    recorded: u64,
    marks: u64,
    /// Number of wake-ups in the histograms, per series.
    rows: [u64; 2],
    named: Vec<u64>,
    largest: i64,
    remarks: Vec<String>,
}

fn sums(disk: &MemoryDisk) -> Sums {
    let mut reader = RecordReader::open(disk).expect("a record");
    let mut sums = Sums::default();
    reader
        .each_item(|item| {
            if let RecordItem::Worst(_, _, line) = item {
                sums.intervals += line.intervals;
                sums.span += line.at.span_ns.0;
                sums.recorded += line.coverage.recorded;
                sums.marks += line.marks.len() as u64 + line.marks_dropped;
                sums.named.push(line.at.seq);
                let values = line.worst.iter().filter_map(|worst| worst.wakeup_ns);
                sums.largest = sums.largest.max(values.max().unwrap_or_default().0);
            }
        })
        .expect("read");
    for (at, series) in [WatchSeries::Timer, WatchSeries::Wakeup].into_iter().enumerate() {
        reader
            .each_row(series, |_, _, line| {
                assert!(line.cpus.iter().all(|row| row.hist.total() == row.n));
                sums.rows[at] += line.cpus.iter().map(|row| row.n).sum::<u64>();
            })
            .expect("read");
    }
    sums.remarks = reader.remarks;
    sums
}

/// Sums of the intervals themselves.
fn wanted(intervals: impl IntoIterator<Item = WatchInterval>) -> Sums {
    let mut sums = Sums::default();
    for interval in intervals {
        sums.intervals += 1;
        sums.span += interval.span_ns.0;
        sums.recorded += interval.coverage.recorded;
        sums.marks += interval.marks.len() as u64;
        for (at, series) in interval.series.iter().enumerate() {
            sums.rows[at] += series.cpus.iter().map(|row| row.n).sum::<u64>();
        }
        let values = interval.worst.iter().filter_map(|worst| worst.wakeup_ns);
        sums.largest = sums.largest.max(values.max().unwrap_or_default().0);
    }
    sums
}
