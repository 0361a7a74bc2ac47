//! Measurement by the kernel's timerlat tracer: a thread per CPU reads its samples, in place of
//! the wake-ups of onbeat's threads.
//!
//! The tracer does not count the slots that it skips after a late wake-up: here they follow from
//! the times at which its timers were due.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::timerlat_sums::{TimerlatSlots, TimerlatSums};
use crate::measure::block::{BLOCK_LENGTH, CpuBuffers};
use crate::measure::cycle::{EndReason, LoopEnd, LoopParams, end_block};
use crate::measure::integrity::entry;
use crate::measure::prepare::{ThreadInfo, make_buffers};
use crate::measure::starvation::StarvationGuard;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::probe::timerlat::{INSTEAD, TimerlatContext, TimerlatSample, TimerlatTracer};
use host::{clock, rt};
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::{IntegrityKind, Policy, Quantity};

/// Priority of the tracer's threads, under SCHED_FIFO (DEFAULT_TIMERLAT_PRIO).
pub const PRIORITY: u32 = 95;

/// Interval at which the samples are read, as that of a hunt's polls.
const POLL: Nanos = Nanos(10_000_000);

/// Time in which the tracer's thread has to have its first sample.
const FIRST: Nanos = Nanos(3_000_000_000);

/// Time after the end in which a late sample may still come.
const GRACE: Nanos = Nanos(500_000_000);

/// Samples of the tracer as those of measuring threads.
pub struct TimerlatThreads {
    tracer: Arc<TimerlatTracer>,
    interval: Nanos,
    /// Latencies of the timer's interrupt.
    irqs: BTreeMap<Cpu, Mutex<TimerlatSums>>,
    /// True if the records could not be read.
    failed: AtomicBool,
}

impl TimerlatThreads {
    /// A body that reads the running tracer, whose timers have that interval.
    pub fn new(
        tracer: Arc<TimerlatTracer>,
        cpus: impl Iterator<Item = Cpu>,
        interval: Nanos,
    ) -> TimerlatThreads {
        let none = |cpu| (cpu, Mutex::new(TimerlatSums::new(interval)));
        TimerlatThreads { tracer, interval, irqs: cpus.map(none).collect(), failed: AtomicBool::new(false) }
    }

    /// Adds the latencies of the interrupt, and what is wrong with the samples.
    pub fn fill(&self, run: &mut Run) {
        for own in &mut run.cpus {
            // They are those of the threads that read, on other CPUs.
            (own.cpu_share, own.voluntary_switches, own.involuntary_switches) = (None, None, None);
        }
        for (&cpu, irq) in &self.irqs {
            let irq = irq.lock().unwrap_or_else(PoisonError::into_inner);
            run.cpus.push(irq.document(cpu, Quantity::Irq, false));
            let lost = self.tracer.lost(cpu);
            if lost > 0 {
                let lost = several(lost, "record", "records");
                let detail = format!("{lost} of the tracer were lost, and count as missed slots");
                run.integrity.push(entry(IntegrityKind::Tracing, Some(cpu), true, detail));
            }
        }
        if self.failed.load(Relaxed) {
            let detail = "the tracer could not be read: samples are missing".to_owned();
            run.integrity.push(entry(IntegrityKind::Tracing, None, true, detail));
        }
    }

    fn read(&self, cpu: Cpu, samples: &mut Vec<TimerlatSample>) {
        samples.clear();
        if self.tracer.read(cpu, samples).is_err() {
            self.failed.store(true, Relaxed);
        }
    }

    fn prepare(&self, task: MeasuringTask) -> Result<(ThreadInfo, Arc<CpuBuffers>)> {
        let failed = |what: &'static str| {
            move |error| {
                Failure::of_call(what, &error, Exit::NotSupported, "run without a system call filter")
            }
        };
        rt::pin(&task.plan.housekeeping).map_err(failed("cannot move a thread to onbeat's own CPUs"))?;
        rt::set_policy(Policy::Other, 0).map_err(failed("cannot set SCHED_OTHER"))?;
        let (buffers, lock_refused) = make_buffers(task.shared.late_capacity);
        let clock_read = clock::clock_read_cost();
        Ok((
            ThreadInfo {
                thread: self.thread_of(task.own().cpu)?,
                policy_refused: None,
                lock_refused,
                clock_read,
                loop_cost: clock_read,
                // The tracer's threads are the kernel's.
                cycle: Nanos(0),
                warmup: 0,
            },
            buffers,
        ))
    }

    /// Number of the tracer's thread on a CPU, from its first sample.
    fn thread_of(&self, cpu: Cpu) -> Result<i32> {
        let (until, mut samples) = (clock::monotonic() + FIRST + self.interval, Vec::new());
        while clock::monotonic() < until {
            self.read(cpu, &mut samples);
            if let Some(sample) = samples.iter().find(|sample| sample.context == TimerlatContext::Thread) {
                return Ok(sample.thread);
            }
            clock::sleep_for(POLL);
        }
        Err(Failure::not_supported(format!(
            "the kernel's timerlat tracer has no samples of CPU {cpu}: choose others with -a, or {INSTEAD}"
        )))
    }

    fn follow(&self, params: &LoopParams, buffers: &CpuBuffers, stop: &AtomicBool) -> LoopEnd {
        let used = || clock::thread_cpu().unwrap_or_default();
        let began = used();
        let mut starvation = StarvationGuard::new(clock::monotonic(), began);
        let mut irqs =
            self.irqs.get(&params.cpu).map(|irqs| irqs.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(irqs) = &mut irqs {
            irqs.begin(params.start);
        }
        let (mut samples, mut slots) = (Vec::new(), TimerlatSlots::new(self.interval));
        let mut end = LoopEnd { ended: EndReason::Stopped, ..LoopEnd::at(params.start) };
        let mut block_end = params.block_end;
        let last = Nanos(params.end.0.saturating_add(GRACE.0));
        loop {
            clock::nanosleep_until(clock::monotonic() + POLL);
            let now = clock::monotonic();
            let stopped = stop.load(Relaxed);
            self.read(params.cpu, &mut samples);
            for &sample in samples.iter().filter(|sample| sample.expected() >= params.start) {
                if sample.expected() >= params.end {
                    end.ended = EndReason::Duration;
                    return LoopEnd { used: used() - began, ..end };
                }
                if sample.context != TimerlatContext::Thread {
                    if let Some(irqs) = irqs.as_mut().filter(|_| sample.context == TimerlatContext::Irq) {
                        irqs.take(sample);
                    }
                    continue;
                }
                block_end = roll(sample.time, block_end, buffers, used(), began, &mut starvation);
                end.scheduled = slots.count(sample, buffers);
                if sample.latency >= params.threshold {
                    buffers.late.push(end.scheduled, sample.expected(), sample.time);
                }
                end.last = sample.time;
                let ended = (sample.latency >= params.limit)
                    .then_some(EndReason::Limit)
                    .or((slots.cycles >= params.loops).then_some(EndReason::Loops));
                if let Some(ended) = ended {
                    return LoopEnd { ended, used: used() - began, ..end };
                }
            }
            block_end = roll(now, block_end, buffers, used(), began, &mut starvation);
            if stopped || now >= last {
                end.ended = if stopped { EndReason::Stopped } else { EndReason::Duration };
                return LoopEnd { used: used() - began, ..end };
            }
        }
    }
}

/// Ends the blocks up to a time; returns the end of the block in use.
fn roll(
    time: Nanos,
    mut block_end: Nanos,
    buffers: &CpuBuffers,
    used: Nanos,
    began: Nanos,
    starvation: &mut StarvationGuard,
) -> Nanos {
    while time >= block_end {
        let boundary = Nanos(time.0 - (time.0 - block_end.0) % BLOCK_LENGTH.0);
        end_block(buffers, boundary, used, began, starvation);
        block_end = boundary + BLOCK_LENGTH;
    }
    block_end
}

impl ThreadBody for TimerlatThreads {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let found = self.prepare(task);
        task.count(found, |turn, buffers| self.follow(&turn.params, buffers, &task.shared.stop))
    }
}
