//! The intent: what the user asked for, before anything is known of the machine.

use model::error::{Failure, Result};
use model::units::{CpuSet, Nanos};
use model::vocabulary::{IdleStates, Policy, SchedulePhase, WakeMechanism};

/// Which CPUs to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// All that the machine offers.
    All,
    Only(CpuSet),
    /// All but these.
    AllBut(CpuSet),
}

/// What `measure` was asked for. `None` is "not given": defaults may be replaced where explicit
/// options are not.
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
    pub wake: WakeMechanism,
    /// How the schedules lie to each other.
    pub phase: SchedulePhase,
    /// Idle states, if given.
    pub idle: Option<IdleStates>,
    /// Length of the run; without it and `loops` a signal ends the run.
    pub duration: Option<Nanos>,
    pub loops: Option<u64>,
    /// Latency at which the run stops.
    pub limit: Option<Nanos>,
    /// CPUs of onbeat's own thread, if given.
    pub housekeeping: Option<CpuSet>,
    /// How many threads cyclictest's `-t` asks for, if it does: one per measured CPU is what there
    /// is.
    pub threads: Option<u32>,
}

/// Shorter intervals leave a real-time thread no time to sleep, and the rest of the CPU none to
/// run.
const MIN_INTERVAL: Nanos = Nanos(10_000);

/// Longer runs than this overflow no clock (100 years).
pub const MAX_SPAN: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

impl MeasureIntent {
    /// Refuses what makes no sense on any machine.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Failure::usage(message));
        if self.interval < MIN_INTERVAL {
            return refuse(format!(
                "an interval of {} is too short to sleep in: give at least {MIN_INTERVAL} with -i",
                self.interval
            ));
        }
        if self.interval > MAX_SPAN || self.distance.0 < 0 || self.distance > MAX_SPAN {
            return refuse("an interval or distance of more than 100 years cannot be measured".into());
        }
        if let Some(duration) = self.duration {
            if duration < self.interval {
                return refuse(format!(
                    "the duration of {duration} is shorter than the interval of {}: give a longer -D or a \
                    shorter -i",
                    self.interval
                ));
            }
            if duration > MAX_SPAN {
                return refuse(
                    "a duration of more than 100 years cannot be measured: leave -D out to run until Ctrl-C"
                        .into(),
                );
            }
        }
        if self.limit.is_some_and(|limit| limit.0 <= 0) {
            return refuse("a limit of 0 stops at the first wake-up: give -b a latency above 0".into());
        }
        self.check_policy()
    }

    fn check_policy(&self) -> Result<()> {
        match (self.policy, self.priority) {
            (_, Some(priority)) if priority > 99 => Err(Failure::usage(format!(
                "priority {priority} is out of range: real-time priorities are 1 to 99, and 0 is SCHED_OTHER"
            ))),
            (Some(Policy::Other), Some(1..)) => Err(Failure::usage(
                "--policy other has no priority: leave -p out, or choose --policy fifo or rr",
            )),
            (Some(Policy::Fifo | Policy::Rr), Some(0)) => {
                Err(Failure::usage("-p 0 is SCHED_OTHER: give --policy fifo or rr a priority of 1 to 99"))
            }
            _ => Ok(()),
        }
    }
}
