//! `probe deadline`: jobs of SCHED_DEADLINE threads.
//!
//! Each thread has a runtime, a deadline and a period. In each period it wakes up and computes by
//! its CPU clock. A sample is the time from the start of the period to the first instruction of its
//! job. A pause in the job is one of three: the job has used up its runtime (the kernel throttles
//! it until the next period), it has not (another thread took the CPU: the stopper, or one with an
//! earlier deadline), or there was no switch (interrupts, firmware, a hypervisor).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

use super::computing::compute;
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::{clock, rt};
use model::reservation::Reservation;
use model::run::DeadlineJobs;
use model::units::Nanos;

/// Time between two clock reads from which it is a pause.
const PAUSE: Nanos = Nanos(20_000);

/// Work of a slot of the warm-up.
const WARMING: Nanos = Nanos(1_000);

/// Part of the runtime by which the CPU clock, read in the job, may differ from the kernel's
/// account, which includes the switches.
const TOLERANCE: i64 = 20;

/// Number of pauses and their time.
#[derive(Default)]
struct Pauses {
    number: AtomicU64,
    time: AtomicI64,
}

impl Pauses {
    fn add(&self, length: Nanos) {
        self.number.fetch_add(1, AcqRel);
        self.time.fetch_add(length.0, AcqRel);
    }

    fn read(&self) -> (u64, Nanos) {
        (self.number.load(Acquire), Nanos(self.time.load(Acquire)))
    }
}

/// Results of a thread.
#[derive(Default)]
struct Counts {
    jobs: AtomicU64,
    late: AtomicU64,
    overruns: AtomicU64,
    throttled: Pauses,
    preempted: Pauses,
    stopped: Pauses,
    longest_work: AtomicI64,
    longest_response: AtomicI64,
}

/// Threads of SCHED_DEADLINE, as planned.
pub struct Jobs {
    counts: Vec<Counts>,
    reservation: Reservation,
    /// CPU time of a job.
    work: Nanos,
    /// The kernel's reports before the run.
    reports_before: OnceLock<u64>,
}

impl Jobs {
    /// For that many threads.
    pub fn new(threads: usize, reservation: Reservation, work: Nanos) -> Jobs {
        Jobs {
            counts: (0..threads).map(|_| Counts::default()).collect(),
            reservation,
            work,
            reports_before: OnceLock::new(),
        }
    }

    /// The kernel's reports of overruns during the run.
    pub fn reports(&self) -> u64 {
        rt::overruns().saturating_sub(self.reports_before.get().copied().unwrap_or_default())
    }

    /// Results of a thread.
    pub fn jobs(&self, index: usize) -> DeadlineJobs {
        let Some(of) = self.counts.get(index) else { return DeadlineJobs::default() };
        let (throttled, throttled_ns) = of.throttled.read();
        let (preempted, preempted_ns) = of.preempted.read();
        let (stopped, stopped_ns) = of.stopped.read();
        DeadlineJobs {
            jobs: of.jobs.load(Acquire),
            late: of.late.load(Acquire),
            overruns: of.overruns.load(Acquire),
            throttled,
            throttled_ns,
            preempted,
            preempted_ns,
            stopped,
            stopped_ns,
            longest_work_ns: Nanos(of.longest_work.load(Acquire)),
            longest_response_ns: Nanos(of.longest_response.load(Acquire)),
        }
    }
}

impl ThreadBody for Jobs {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        task.run_with_schedule(JobThread {
            all: self,
            counts: &self.counts[task.index],
            warming: Counts::default(),
            shared: task.shared,
            budget_from: clock::thread_cpu().unwrap_or_default(),
            started: Nanos(0),
            ended: Nanos(0),
        })
    }
}

/// One of the threads.
struct JobThread<'a> {
    all: &'a Jobs,
    counts: &'a Counts,
    /// Counts of the warm-up, which are dropped.
    warming: Counts,
    shared: &'a Shared,
    /// CPU time of the thread when its present runtime began.
    budget_from: Nanos,
    started: Nanos,
    ended: Nanos,
}

impl JobThread<'_> {
    /// True if the thread has used up its runtime.
    fn is_used_up(&self, cpu: Nanos) -> bool {
        let runtime = self.all.reservation.runtime.0;
        (cpu - self.budget_from).0 >= runtime - runtime / TOLERANCE
    }

    /// Part of the next runtime that the thread has used up beforehand: the kernel enforces the
    /// runtime at ticks, and takes what was beyond it from the following periods
    /// (`replenish_dl_entity()` in kernel/sched/deadline.c).
    fn debt(&self, cpu: Nanos) -> Nanos {
        let runtime = self.all.reservation.runtime.0;
        Nanos(((cpu - self.budget_from).0 - runtime).max(0) % runtime)
    }

    /// Computes for `work`; pauses are counted by their cause.
    fn compute(&mut self, counts: bool, work: Nanos) {
        compute(work, PAUSE, |_, pause| {
            let Some(pause) = pause else { return };
            let cpu = clock::thread_cpu().unwrap_or_default();
            let of = if counts { self.counts } else { &self.warming };
            if !pause.switched {
                of.stopped.add(pause.length);
            } else if self.is_used_up(cpu) {
                of.throttled.add(pause.length);
                self.budget_from = cpu - self.debt(cpu);
            } else {
                of.preempted.add(pause.length);
            }
        });
    }

    /// Counts a job that took this CPU time.
    fn count(&self, of: &Counts, released: Nanos, work: Nanos) {
        let response = self.ended - released;
        of.jobs.fetch_add(1, AcqRel);
        of.late.fetch_add(u64::from(response > self.all.reservation.deadline), AcqRel);
        of.overruns.fetch_add(u64::from(work > self.all.reservation.runtime), AcqRel);
        of.longest_work.fetch_max(work.0, AcqRel);
        of.longest_response.fetch_max(response.0, AcqRel);
    }
}

impl Wake for JobThread<'_> {
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        let before = clock::thread_cpu().unwrap_or_default();
        if !clock::nanosleep_until(instant) {
            return Sleep::Interrupted;
        }
        self.started = clock::monotonic();
        let counts = self.shared.start_at.load(Relaxed) != 0;
        if counts {
            self.all.reports_before.get_or_init(rt::overruns);
        }
        self.budget_from = before - self.debt(before);
        self.compute(counts, if counts { self.all.work } else { WARMING });
        let work = clock::thread_cpu().unwrap_or_default() - before;
        self.ended = clock::monotonic();
        self.count(if counts { self.counts } else { &self.warming }, instant, work);
        Sleep::Full
    }

    /// Start of the job: a job that starts late has its lateness as a sample, and the periods that
    /// passed before it are missed.
    fn now(&self, _expected: Nanos) -> Nanos {
        self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_counted_by_its_work_and_its_end() {
        let reservation = Reservation::parse("1ms:4ms:10ms").unwrap();
        let all = Jobs::new(2, reservation, Nanos(500_000));
        let shared = Shared::new(&crate::plan::tests::any_plan(), 0, 0);
        let mut thread = JobThread {
            all: &all,
            counts: &all.counts[0],
            warming: Counts::default(),
            shared: &shared,
            budget_from: Nanos(100),
            started: Nanos(0),
            ended: Nanos(5_000_000),
        };
        thread.count(thread.counts, Nanos(1_000_000), Nanos(1_000_000));
        thread.count(thread.counts, Nanos(900_000), Nanos(1_000_001));
        let of = all.jobs(0);
        assert_eq!((of.jobs, of.late, of.overruns), (2, 1, 1));
        assert_eq!((of.longest_work_ns, of.longest_response_ns), (Nanos(1_000_001), Nanos(4_100_000)));
        assert_eq!(all.jobs(1), DeadlineJobs::default());
        assert!(!thread.is_used_up(Nanos(900_100)) && thread.is_used_up(Nanos(950_100)));
        assert_eq!(thread.debt(Nanos(900_100)), Nanos(0));
        assert_eq!(
            (thread.debt(Nanos(1_000_103)), thread.debt(Nanos(3_500_100))),
            (Nanos(3), Nanos(500_000))
        );
        thread.counts.preempted.add(Nanos(30_000));
        thread.compute(true, all.work);
        let of = all.jobs(0);
        assert!(of.preempted >= 1 && of.preempted_ns >= Nanos(30_000));
    }
}
