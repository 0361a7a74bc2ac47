//! Gaps by a tracer of the kernel: a thread per CPU that reads the tracer's records about it.
//!
//! The threads sleep on onbeat's own CPUs, so that only the tracer takes time of the measured
//! ones. A gap counts in the second in which its record is read.

use std::io;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::gaps::ClockGap;
use super::spin::note;
use crate::measure::block::{BLOCK_LENGTH, CpuBuffers};
use crate::measure::cycle::{EndReason, LoopEnd, LoopParams, end_block};
use crate::measure::prepare::{ThreadInfo, make_buffers};
use crate::measure::starvation::StarvationGuard;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;

/// Interval at which a thread reads its records.
const POLL: Nanos = Nanos(100_000_000);

/// Reader of a tracer's gaps.
pub trait GapReader: Send + Sync + 'static {
    /// Turns the armed tracer on.
    fn start(&self) -> io::Result<()>;

    /// Gaps of a CPU since the last read.
    fn read(&self, cpu: Cpu) -> io::Result<Vec<ClockGap>>;
}

/// Reads the gaps of a tracer; those of at least `over` are samples.
pub struct TracedGaps<R> {
    pub reader: R,
    over: Nanos,
    /// The first thread turns the tracer on.
    started: Once,
    /// True if the kernel refused that, or the gaps could not be read.
    failed: AtomicBool,
}

impl<R: GapReader> TracedGaps<R> {
    /// A body for a tracer that does not record yet.
    pub fn new(reader: R, over: Nanos) -> TracedGaps<R> {
        TracedGaps { reader, over, started: Once::new(), failed: AtomicBool::new(false) }
    }

    /// True if the tracer could not be started or read: its gaps are incomplete.
    pub fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    fn start(&self) {
        self.started.call_once(|| self.failed.store(self.reader.start().is_err(), Relaxed));
    }

    fn read(&self, cpu: Cpu) -> Vec<ClockGap> {
        let gaps = self.reader.read(cpu).unwrap_or_else(|_| {
            self.failed.store(true, Relaxed);
            Vec::new()
        });
        gaps.into_iter().filter(|gap| gap.length() >= self.over).collect()
    }

    fn follow(&self, params: &LoopParams, buffers: &CpuBuffers, stop: &AtomicBool) -> LoopEnd {
        self.start();
        let began = clock::thread_cpu().unwrap_or_default();
        let used = || clock::thread_cpu().unwrap_or_default();
        let mut starvation = StarvationGuard::new(clock::monotonic(), began);
        let mut end = LoopEnd { ended: EndReason::Stopped, ..LoopEnd::at(params.start) };
        let mut block_end = params.block_end;
        loop {
            let next = clock::monotonic() + POLL;
            clock::nanosleep_until(next.min(block_end).min(params.end));
            let now = clock::monotonic();
            (end.last, end.used) = (now, used() - began);
            for gap in self.read(params.cpu) {
                end.scheduled += 1;
                if note(gap, end.scheduled, params, buffers) {
                    end.ended = EndReason::Limit;
                    return end;
                }
            }
            if now >= params.end {
                end.ended = EndReason::Duration;
                return end;
            }
            if now >= block_end {
                let boundary = Nanos(now.0 - (now.0 - block_end.0) % BLOCK_LENGTH.0);
                if end_block(buffers, boundary, used(), began, &mut starvation).starving {
                    end.ended = EndReason::Starving;
                    return end;
                }
                block_end = boundary + BLOCK_LENGTH;
            }
            if stop.load(Relaxed) {
                return end;
            }
        }
    }
}

/// Prepares a thread that sleeps on onbeat's own CPUs and reads events.
pub(super) fn prepare_reader(task: MeasuringTask) -> Result<(ThreadInfo, Arc<CpuBuffers>)> {
    let failed = |what: &'static str| {
        move |error| {
            let remedy = "run without a system call filter";
            Failure::of_call(what, &error, Exit::NotSupported, remedy)
        }
    };
    rt::pin(&task.plan.housekeeping).map_err(failed("cannot move a thread to onbeat's own CPUs"))?;
    rt::set_policy(Policy::Other, 0).map_err(failed("cannot set SCHED_OTHER"))?;
    let (buffers, lock_refused) = make_buffers(task.shared.late_capacity);
    let clock_read = clock::clock_read_cost();
    let info = ThreadInfo {
        thread: rt::thread_id(),
        policy_refused: None,
        lock_refused,
        clock_read,
        loop_cost: clock_read,
        // It sleeps between its reads, on other CPUs.
        cycle: Nanos(0),
        warmup: 0,
    };
    Ok((info, buffers))
}

impl<R: GapReader> ThreadBody for TracedGaps<R> {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let found = prepare_reader(task);
        task.count(found, |turn, buffers| self.follow(&turn.params, buffers, &task.shared.stop))
    }
}
