//! Task of one measuring thread, from its start to the end of the run.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::block::{BLOCK_LENGTH, CpuBuffers};
use super::cycle::{self, EndReason, LoopEnd, LoopParams};
use super::hunter::MAX_ROUND_INTERVAL;
use super::prepare::{ThreadInfo, prepare};
use super::schedule::Schedule;
use super::shared::{Shared, agree_on_start};
use super::wake::{self, Wake};
use crate::plan::{CpuPlan, MeasurePlan};
use host::clock;
use host::rt::{self, CpuReader, Usage};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;
use model::vocabulary::{SchedulePhase, WakeMechanism};

/// Result of the preparation, set once before the first barrier: findings and buffers, or an error.
pub type Prepared = OnceLock<Result<(ThreadInfo, Arc<CpuBuffers>), Failure>>;

/// State of the loop and the thread at their end; none if the loop never ran.
pub type ThreadEnd = Option<(LoopEnd, Usage)>;

/// Body of the measuring threads of a run.
pub trait ThreadBody: Send + Sync {
    /// Runs one thread: prepares it and calls [`MeasuringTask::count`].
    fn run(&self, task: MeasuringTask) -> ThreadEnd;
}

/// Periodic wake-ups by the plan's mechanism, for `measure` and `hunt`.
pub struct WakeUps;

impl ThreadBody for WakeUps {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        match task.plan.wake {
            WakeMechanism::Nanosleep => task.run_with_schedule(wake::Nanosleep),
            WakeMechanism::Futex => task.run_with_schedule(wake::Futex::new()),
            WakeMechanism::Timerfd => task.run_with_timer(clock::TimerFd::new()),
            WakeMechanism::Signal => task.run_with_timer(rt::SignalTimer::new()),
        }
    }
}

/// One run of a loop: its bounds and its schedule.
pub struct Turn {
    pub params: LoopParams,
    pub interval: Nanos,
    /// Seed of a schedule with dither.
    pub seed: u64,
}

/// Task of one measuring thread.
#[derive(Clone, Copy)]
pub struct MeasuringTask<'a> {
    pub plan: &'a MeasurePlan,
    /// Index of its CPU in the plan.
    pub index: usize,
    pub shared: &'a Shared,
    pub prepared: &'a Prepared,
}

impl MeasuringTask<'_> {
    /// Its part of the plan.
    pub fn own(&self) -> &CpuPlan {
        &self.plan.cpus[self.index]
    }

    /// Ends a thread that cannot measure: the run is cancelled.
    pub fn refuse(self, failure: Failure) -> ThreadEnd {
        self.count(Err(failure), |turn, _| LoopEnd::at(turn.params.start))
    }

    fn run_with_timer<W: Wake>(self, timer: io::Result<W>) -> ThreadEnd {
        match timer {
            Ok(wake) => self.run_with_schedule(wake),
            Err(error) => {
                let what = format!("cannot create a timer for --wake {}", self.plan.wake.name());
                self.refuse(Failure::of_call(what, &error, Exit::NotSupported, "try another --wake"))
            }
        }
    }

    /// Wakes up for each slot of the plan's schedule.
    pub fn run_with_schedule<W: Wake>(self, wake: W) -> ThreadEnd {
        if self.plan.phase == SchedulePhase::Dither {
            self.measure::<W, true>(wake)
        } else {
            self.measure::<W, false>(wake)
        }
    }

    fn measure<W: Wake, const DITHER: bool>(self, mut wake: W) -> ThreadEnd {
        let cpu_reader = CpuReader::new();
        let found = {
            let (capacity, stop) = (self.shared.late_capacity, &self.shared.stop);
            prepare::<W, DITHER>(&mut wake, self.plan, self.own(), &cpu_reader, capacity, stop)
        };
        self.count(found, |turn, buffers| {
            let schedule = Schedule::<DITHER>::new(turn.params.start, turn.interval, turn.seed);
            cycle::run(&mut wake, schedule, &turn.params, buffers, &cpu_reader, &self.shared.stop)
        })
    }

    /// Runs a prepared thread, or ends one that failed: waits for the others, runs the rounds and
    /// then the run itself, and waits again.
    pub fn count(
        self,
        found: Result<(ThreadInfo, Arc<CpuBuffers>)>,
        mut run: impl FnMut(&Turn, &CpuBuffers) -> LoopEnd,
    ) -> ThreadEnd {
        let MeasuringTask { plan, index, shared, prepared } = self;
        let buffers = found.as_ref().ok().map(|(_, buffers)| buffers.clone());
        let _ = prepared.set(found);
        let planned = |_: &&Arc<CpuBuffers>| !shared.cancelled.load(Ordering::Acquire);
        shared.barrier.wait();
        for _ in 0..shared.rounds {
            shared.barrier.wait();
            let buffers = buffers.as_ref().filter(planned)?;
            let turn = self.calibration_round();
            buffers.begin(turn.params.start);
            run(&turn, buffers);
            shared.ended.fetch_add(1, Ordering::Release);
            shared.barrier.wait();
        }
        shared.barrier.wait();
        let buffers = buffers.as_ref().filter(planned)?;
        let params = self.params();
        let turn = Turn { params, interval: self.own().interval, seed: plan.seed ^ index as u64 };
        buffers.begin(params.start);
        let before = rt::thread_usage();
        let end = run(&turn, buffers);
        let usage = used_since(&before);
        if matches!(end.ended, EndReason::Limit | EndReason::Starving) {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.ended.fetch_add(1, Ordering::Release);
        rt::notify_housekeeper(shared.housekeeper);
        // An ending thread unmaps its stack, which may interrupt those that still measure.
        shared.barrier.wait();
        Some((end, usage))
    }

    /// Parameters of a round, whose samples do not count in the run.
    fn calibration_round(self) -> Turn {
        let own = self.own();
        let start = agree_on_start(self.shared) + own.offset;
        let loops = self.shared.round_loops.load(Ordering::Acquire);
        let params = LoopParams { loops, ..LoopParams::unbounded(own.cpu, start) };
        Turn { params, interval: own.interval.min(MAX_ROUND_INTERVAL), seed: 1 }
    }

    /// Parameters of the loop, from a start that all threads agree on.
    fn params(self) -> LoopParams {
        let MeasuringTask { plan, index, shared, .. } = self;
        let start = agree_on_start(shared) + plan.cpus[index].offset;
        let unbounded = LoopParams::unbounded(plan.cpus[index].cpu, start);
        LoopParams {
            block_end: start + BLOCK_LENGTH,
            end: plan.duration.map_or(unbounded.end, |duration| start + duration),
            loops: plan.loops.unwrap_or(unbounded.loops),
            limit: plan.limit.unwrap_or(unbounded.limit),
            threshold: Nanos(shared.threshold.load(Ordering::Acquire)),
            ..unbounded
        }
    }
}

fn used_since(before: &Usage) -> Usage {
    let after = rt::thread_usage();
    Usage {
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepare::WARMUP_LOOPS;
    use super::super::shared::LeaveOnPanic;
    use super::super::wake::Sleep;
    use super::super::worker::{Worker, start_all};
    use super::*;
    use crate::plan::{self, CpuChoice, MachineCpus, MeasureIntent};
    use model::units::CpuSet;
    use model::vocabulary::Policy;
    use model::vocabulary::{IdleStates, SchedulePhase};
    use std::thread;

    /// Two threads on the first CPU that this process may use, under SCHED_OTHER, without an end.
    fn two_threads() -> (Arc<MeasurePlan>, Arc<Shared>) {
        // A dying thread notifies the housekeeper, here the thread that runs the test.
        rt::block_signals().expect("signals can be blocked");
        let here = rt::affinity().expect("an affinity");
        let first: CpuSet = here.iter().take(1).collect();
        let intent = MeasureIntent {
            cpus: CpuChoice::Only(first.clone()),
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: Some(Policy::Other),
            priority: None,
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Aligned,
            idle: Some(IdleStates::AsIs),
            duration: None,
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        };
        let machine = MachineCpus {
            online: here.clone(),
            inherited: here.clone(),
            permitted: here,
            ..MachineCpus::default()
        };
        let mut plan = plan::plan(&intent, &machine, 1).expect("a plan");
        plan.cpus.push(plan.cpus[0].clone());
        let shared = Shared::new(&plan, 0, 0);
        (Arc::new(plan), Arc::new(shared))
    }

    /// Sleeps that many times, enough for the preparation and the start, and then dies.
    struct Dying(u32);

    impl Wake for Dying {
        fn sleep_until(&mut self, instant: Nanos) -> Sleep {
            self.0 -= 1;
            assert!(self.0 > 0, "dies, as is wanted here");
            wake::Nanosleep.sleep_until(instant)
        }
    }

    #[test]
    fn a_thread_that_dies_in_the_loop_ends_the_run_and_blocks_no_other() {
        let (plan, shared) = two_threads();
        let prepared = [Prepared::new(), Prepared::new()];
        let task =
            |index: usize| MeasuringTask { plan: &plan, index, shared: &shared, prepared: &prepared[index] };
        let ends = thread::scope(|scope| {
            let living = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                task(0).run_with_schedule(wake::Nanosleep)
            });
            let dying = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                task(1).run_with_schedule(Dying(WARMUP_LOOPS as u32 + 20))
            });
            shared.barrier.wait();
            shared.barrier.wait();
            while !shared.all_have_ended(2) {
                clock::sleep_for(Nanos::MILLI);
            }
            shared.barrier.wait();
            [living.join(), dying.join()]
        });
        let living = ends[0].as_ref().expect("alive").as_ref().expect("measured").0;
        assert_eq!(living.ended, EndReason::Stopped);
        assert!(ends[1].is_err());
    }

    #[test]
    fn a_thread_that_fails_to_start_leaves_none_of_the_others_behind() {
        let (plan, shared) = two_threads();
        let refused = start_all(2, &shared, |index| match index {
            0 => Worker::start(&plan, 0, &shared, &(Arc::new(WakeUps) as Arc<dyn ThreadBody>)),
            _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        });
        let failure = refused.err().expect("refused");
        assert!(failure.message.contains("ulimit -u"), "{}", failure.message);
        // The thread that had been started has passed the barrier and ended.
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
