//! Threads of onbeat's own: the housekeeping thread hands over the blocks of each second, the
//! thread of the screen takes them.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};

use host::WakeFile;
use host::rt::{self, OwnUse};
use model::error::Result;
use model::rows::RowCounts;
use model::run::Run;
use model::units::Nanos;
use model::watch::{WatchTask, WorstWakeup};

use super::{LatencyTally, RowKey, RowTick, TopTick};
use crate::measure::sink::{ClosedBlock, Progress, Sink};

/// Limit of seconds that wait for a slow screen.
const WAITING: usize = 60;

/// Values that both threads share.
pub struct OwnInbox {
    seconds: Mutex<Vec<TopTick>>,
    /// Copy of the run at its last checkpoint.
    run: Mutex<Option<Run>>,
    /// Use of the housekeeping thread.
    spent: Mutex<OwnUse>,
    over: AtomicBool,
    housekeeper: AtomicI32,
    pub wake: WakeFile,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl OwnInbox {
    pub fn new(wake: WakeFile) -> OwnInbox {
        OwnInbox {
            seconds: Mutex::default(),
            run: Mutex::default(),
            spent: Mutex::default(),
            over: AtomicBool::new(false),
            housekeeper: AtomicI32::new(0),
            wake,
        }
    }

    /// Takes the seconds that have come.
    pub fn take(&self) -> Vec<TopTick> {
        self.wake.clear();
        std::mem::take(&mut locked(&self.seconds))
    }

    /// The run at its last checkpoint, at most ten seconds ago.
    pub fn checkpoint(&self) -> Option<Run> {
        locked(&self.run).clone()
    }

    /// Use of the housekeeping thread so far.
    pub fn spent(&self) -> OwnUse {
        *locked(&self.spent)
    }

    /// Ends the measurement.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        rt::notify_housekeeper(self.housekeeper.load(Ordering::Acquire));
    }
}

impl Sink for &OwnInbox {
    fn second(&mut self, progress: &Progress) -> Result<()> {
        self.housekeeper.store(rt::thread_id(), Ordering::Release);
        let mut seconds = locked(&self.seconds);
        if seconds.len() < WAITING {
            seconds.push(tick_of(progress.closed));
        } else if let Some(last) = seconds.last_mut() {
            last.lost += progress.closed.len() as u64;
        }
        *locked(&self.spent) = rt::thread_use();
        self.wake.wake();
        Ok(())
    }

    fn checkpoint(&mut self, run: &Run) -> Result<()> {
        locked(&self.run).get_or_insert_default().clone_from(run);
        Ok(())
    }

    fn ended_by_user(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// Rows of a second, one per measured CPU.
fn tick_of(blocks: &[ClosedBlock]) -> TopTick {
    let span = blocks.iter().map(|closed| closed.block.end - closed.block.start).max().unwrap_or_default();
    TopTick { span, rows: blocks.iter().map(row_of_block).collect(), ..TopTick::default() }
}

fn row_of_block(closed: &ClosedBlock) -> RowTick {
    let block = &closed.block;
    let latency = block.top.first();
    // T and W are one value to a thread that measures itself.
    let worst = latency.map(|sample| WorstWakeup {
        mono_ns: sample.time,
        cpu: Some(closed.cpu),
        victim: WatchTask::default(),
        ..WorstWakeup::default()
    });
    RowTick {
        cpu: Some(closed.cpu),
        wakeups: block.cycles,
        missed: Some(block.missed),
        both: LatencyTally {
            n: block.cycles,
            sum: i128::from(block.sum),
            min: (block.cycles > 0).then_some(block.min),
            max: latency.map(|sample| sample.latency),
            rows: RowCounts::of_buckets(block.rows.iter().copied()),
        },
        worst,
        ..RowTick::new(RowKey::Cpu(closed.cpu))
    }
}

/// Time of the screen's thread and of the housekeeping thread.
pub fn sum_of_use(a: OwnUse, b: OwnUse) -> OwnUse {
    OwnUse { cpu: Nanos(a.cpu.0 + b.cpu.0), sleeps: a.sleeps + b.sleeps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::block::{DrainedBlock, LatencySample};
    use model::units::Cpu;

    #[test]
    fn a_block_is_a_row_with_its_missed_slots() {
        let mut block =
            DrainedBlock { missed: 2, start: Nanos(0), end: Nanos::SECOND, ..DrainedBlock::default() };
        for (cycle, ns) in [(0, 4_000), (1, 9_000)] {
            block.add(LatencySample { latency: Nanos(ns), cycle, time: Nanos(ns) });
        }
        let tick = tick_of(&[ClosedBlock { cpu: Cpu(3), wall_offset: Nanos(0), block }]);
        let row = &tick.rows[0];
        assert_eq!(
            (tick.span, row.key, row.missed, row.wakeups),
            (Nanos::SECOND, RowKey::Cpu(Cpu(3)), Some(2), 2)
        );
        assert_eq!(
            (row.both.min, row.both.max, row.both.mean()),
            (Some(Nanos(4_000)), Some(Nanos(9_000)), Some(Nanos(6_500)))
        );
        let worst = row.worst.as_ref().expect("the largest");
        assert_eq!((worst.timer_ns, worst.wakeup_ns, worst.culprit.name.as_str()), (None, None, ""));
    }
}
