//! Seconds for tests.

use model::rows::{RowCounts, row_of};
use model::units::{Cpu, Nanos};
use model::watch::{WatchCulprit, WatchTask, WorstWakeup};

use super::{LatencyTally, RowKey, RowTick, TopTick};

/// A thread with one wake-up of this many microseconds, four fifths of them T.
pub fn thread(tid: u32, name: &str, us: i64) -> RowTick {
    let wait = Nanos(us * 200);
    let worst = WorstWakeup {
        timer_ns: Some(Nanos(us * 800)),
        wakeup_ns: Some(wait),
        cpu: Some(Cpu(0)),
        victim: WatchTask { comm: name.into(), tid: i32::try_from(tid).ok(), ..WatchTask::default() },
        culprit: WatchCulprit { name: format!("hog{us}"), ..WatchCulprit::default() },
        ..WorstWakeup::default()
    };
    RowTick {
        name: Some(format!("{name}:{tid}")),
        priority: Some(50),
        cpu: Some(Cpu(0)),
        wakeups: 1,
        both: tally(&[us * 1_000]),
        wait: tally(&[wait.0]),
        worst: Some(worst),
        ..RowTick::new(RowKey::Thread(tid))
    }
}

pub fn tally(latencies: &[i64]) -> LatencyTally {
    LatencyTally {
        n: latencies.len() as u64,
        sum: latencies.iter().map(|ns| i128::from(*ns)).sum(),
        min: latencies.iter().min().map(|ns| Nanos(*ns)),
        max: latencies.iter().max().map(|ns| Nanos(*ns)),
        rows: RowCounts::of_rows(latencies.iter().map(|ns| (row_of(Nanos(*ns)), 1))),
    }
}

/// A second of these threads on CPU 0.
pub fn second(threads: Vec<RowTick>) -> TopTick {
    let worst = threads.iter().max_by_key(|thread| thread.both.max).cloned();
    let cpu = worst.map_or_else(
        || RowTick::new(RowKey::Cpu(Cpu(0))),
        |worst| RowTick { key: RowKey::Cpu(Cpu(0)), name: None, priority: None, cpu: None, ..worst },
    );
    let rows = std::iter::once(cpu).chain(threads).collect();
    TopTick { span: Nanos::SECOND, rows, ..TopTick::default() }
}
