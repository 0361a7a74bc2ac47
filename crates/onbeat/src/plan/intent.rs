//! Intent: the user's request, before anything is known of the machine.

use model::error::{Failure, Result};
use model::reservation::Reservation;
use model::units::{CpuSet, Nanos};
use model::vocabulary::{IdleStates, Policy, SchedulePhase, WakeMechanism};

/// CPUs to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// All CPUs that the machine offers.
    All,
    Only(CpuSet),
    /// All CPUs but these.
    AllBut(CpuSet),
}

/// Request for a measurement. `None` means that the option was not given: a default may be
/// replaced, an explicit option may not.
#[derive(Clone, Debug)]
pub struct MeasureIntent {
    pub cpus: CpuChoice,
    /// Period of the first CPU.
    pub interval: Nanos,
    /// Added to the period once per further CPU.
    pub distance: Nanos,
    /// Policy, if given.
    pub policy: Option<Policy>,
    /// Priority, if given.
    pub priority: Option<u32>,
    /// Parameters of SCHED_DEADLINE, if given.
    pub reservation: Option<Reservation>,
    pub wake: WakeMechanism,
    /// Phase of the CPUs' schedules relative to each other.
    pub phase: SchedulePhase,
    /// Idle states, if given.
    pub idle: Option<IdleStates>,
    /// Length of the run; without it and `loops` a signal ends the run.
    pub duration: Option<Nanos>,
    pub loops: Option<u64>,
    /// Latency at which the run stops.
    pub limit: Option<Nanos>,
    /// CPUs of onbeat's housekeeping thread, if given.
    pub housekeeping: Option<CpuSet>,
    /// Number of threads that cyclictest's `-t` requests, if given: only one per measured CPU is
    /// accepted.
    pub threads: Option<u32>,
}

/// Minimum interval: a shorter one leaves a real-time thread no time to sleep, and other threads
/// none to run.
const MIN_INTERVAL: Nanos = Nanos(10_000);

/// Maximum length of a run (100 years), at which no clock overflows.
pub const MAX_SPAN: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

impl MeasureIntent {
    /// Refuses options that are invalid on any machine.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Failure::usage(message));
        if self.interval < MIN_INTERVAL {
            return refuse(format!(
                "invalid interval {}: expected at least {MIN_INTERVAL} with -i",
                self.interval
            ));
        }
        if self.interval > MAX_SPAN || self.distance.0 < 0 || self.distance > MAX_SPAN {
            return refuse("invalid interval or distance: expected at most 100 years".into());
        }
        if let Some(duration) = self.duration {
            if duration < self.interval {
                return refuse(format!(
                    "the duration of {duration} is shorter than the interval of {}: increase -D or reduce -i",
                    self.interval
                ));
            }
            if duration > MAX_SPAN {
                return refuse(
                    "invalid duration: expected at most 100 years; omit -D to run until Ctrl-C".into(),
                );
            }
        }
        if self.limit.is_some_and(|limit| limit.0 <= 0) {
            return refuse("invalid -b: expected a latency above 0".into());
        }
        self.check_policy()
    }

    fn check_policy(&self) -> Result<()> {
        if self.policy == Some(Policy::Deadline) && self.reservation.is_none() {
            return Err(Failure::usage(
                "--policy deadline needs a runtime and a period: give -P d:RUNTIME:PERIOD, as -P d:1ms:10ms",
            ));
        }
        match (self.policy, self.priority) {
            (_, Some(priority)) if priority > 99 => Err(Failure::usage(format!(
                "invalid priority {priority}: expected 1 to 99, or 0 for SCHED_OTHER"
            ))),
            (Some(Policy::Other), Some(1..)) => {
                Err(Failure::usage("--policy other has no priority: omit -p, or choose --policy fifo or rr"))
            }
            (Some(Policy::Fifo | Policy::Rr), Some(0)) => Err(Failure::usage(
                "-p 0 is SCHED_OTHER: with --policy fifo or rr give a priority of 1 to 99",
            )),
            _ => Ok(()),
        }
    }
}
