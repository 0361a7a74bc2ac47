//! `probe hw` by a tracer of the kernel: a thread per CPU that reads the tracer's lines about it.
//!
//! The threads sleep on onbeat's own CPUs, so that only the tracer takes time of the measured
//! ones. A gap counts in the second in which its line is read.

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
use host::tracefs::Instance;
use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;

/// Interval at which a thread reads its lines.
const POLL: Nanos = Nanos(100_000_000);

/// Parser of a tracer's lines: gaps, in the text of a buffer that was read at `now`.
pub type GapLines = fn(text: &str, wall_offset: Nanos) -> Vec<ClockGap>;

/// Gaps of windows of the hwlat tracer, each as long as the longest of its window.
pub fn hwlat_gaps(text: &str, wall_offset: Nanos) -> Vec<ClockGap> {
    let gap = |window: facts::hwlat::HwlatWindow| {
        let after = window.wall - wall_offset;
        ClockGap { before: after - window.longest(), after }
    };
    facts::hwlat::windows(text).map(gap).collect()
}

/// Reads the lines of a tracer; gaps of at least `over` are samples.
pub struct TracedGaps {
    instance: Arc<Instance>,
    lines: GapLines,
    over: Nanos,
    /// The first thread turns the tracer on.
    started: Once,
    /// True if the kernel refused that, or the lines could not be read.
    failed: AtomicBool,
}

impl TracedGaps {
    /// A body for an armed instance that does not record yet.
    pub fn new(instance: Arc<Instance>, lines: GapLines, over: Nanos) -> TracedGaps {
        TracedGaps { instance, lines, over, started: Once::new(), failed: AtomicBool::new(false) }
    }

    /// True if the tracer could not be started or read: its gaps are incomplete.
    pub fn failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Turns the tracer off, and gives its instance back: the kernel then has removed its thread.
    pub fn stop(&self) {
        let _ = self.instance.write("tracing_on", "0");
        let _ = self.instance.write("current_tracer", "nop");
    }

    fn start(&self) {
        self.started.call_once(|| self.check(self.instance.write("tracing_on", "1")));
    }

    fn check<T>(&self, outcome: std::io::Result<T>) {
        if outcome.is_err() {
            self.failed.store(true, Relaxed);
        }
    }

    /// Gaps of a CPU since the last read.
    fn read(&self, cpu: Cpu) -> Vec<ClockGap> {
        let text = self.instance.read(&format!("per_cpu/cpu{cpu}/trace_pipe"));
        let gaps = text.as_ref().map_or(Vec::new(), |text| (self.lines)(text, clock::wall_offset()));
        self.check(text);
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

impl ThreadBody for TracedGaps {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let found = prepare_reader(task);
        task.count(found, |turn, buffers| self.follow(&turn.params, buffers, &task.shared.stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_hwlat_is_a_gap_that_ends_at_its_time() {
        let text = "hwlatd-9 [000] d..1 1.5: #1 inner/outer(us): 12/31000 ts:100.000000500 count:1\n";
        let gaps = hwlat_gaps(text, Nanos(60_000_000_000));
        assert_eq!(gaps, [ClockGap { before: Nanos(39_969_000_500), after: Nanos(40_000_000_500) }]);
    }
}
