//! Synthetic record.

use super::summary::{CpuColumns, PlacedWorst, SeriesTotals, WaitClass, WaitTotals, WatchAxis, WatchSummary};
use model::histogram::Bucket;
use model::units::{Cpu, Nanos};
use model::watch::{WatchSeries, WatchTask, WorstWakeup};

/// Wake-up of a thread of the application.
pub fn worst(at: i64, cpu: u32, timer: i64, wakeup: i64) -> PlacedWorst {
    let victim = WatchTask {
        comm: "control".into(),
        pid: Some(700),
        tid: Some(701),
        prio: Some(19),
        ..WatchTask::default()
    };
    let wakeup = WorstWakeup {
        timer_ns: Some(Nanos(timer)),
        wakeup_ns: Some(Nanos(wakeup)),
        cpu: Some(Cpu(cpu)),
        victim,
        sleeps_in: "clock_nanosleep".into(),
        stack: vec!["do_idle".into()],
        ..WorstWakeup::default()
    };
    PlacedWorst {
        total_ns: wakeup.total(),
        time: "2026-03-03T02:12:30.000000Z".into(),
        at: Nanos(at),
        wakeup,
    }
}

/// Record with this number of CPUs, the worst on the last.
pub fn summary(cpus: u32) -> WatchSummary {
    let column = |cpu: u32, base: i64| (0..40).map(|i| Some(Nanos(base + i * 10 + i64::from(cpu)))).collect();
    let totals = |cpu: u32| WaitTotals {
        cpu: Some(Cpu(cpu)),
        n: 3,
        min_ns: Some(Nanos(100)),
        mean_ns: Some(Nanos(200)),
        max_ns: Some(Nanos(310)),
        histogram: vec![Bucket::new(Nanos(100), Nanos(104), 2), Bucket::new(Nanos(304), Nanos(312), 1)],
        ..WaitTotals::default()
    };
    WatchSummary {
        title: "lathe".into(),
        from: "2026-03-02T06:00:00.000000Z".into(),
        to: "2026-03-05T01:00:00.000000Z".into(),
        recorded_ns: Nanos(86_400 * Nanos::SECOND.0),
        intervals: 288,
        boots: 1,
        worst: vec![worst(90, cpus - 1, 40, 300), worst(10, 0, 50, 200)],
        series: vec![SeriesTotals {
            series: WatchSeries::TimerWakeup.into(),
            class: WaitClass::System.into(),
            cpus: (0..cpus).map(totals).collect(),
            threads: Vec::new(),
        }],
        axis: WatchAxis { from: Nanos(0), to: Nanos(100), wall: true },
        columns: (0..cpus)
            .map(|cpu| CpuColumns { cpu: Cpu(cpu), timer: column(cpu, 50), wakeup: column(cpu, 500) })
            .collect(),
        ..WatchSummary::default()
    }
}
