//! Additions to `run.json` of a hunt that follows another program: its threads, and its end.

use serde::{Deserialize, Serialize};

use crate::histogram::Bucket;
use crate::units::Nanos;

/// The cycles of a followed thread, each from its release to the thread's next sleep for its next
/// release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadRun {
    pub tid: i32,
    pub comm: String,
    /// `deadline`, `fifo`, `rr` or `other`.
    pub policy: String,
    pub priority: u32,
    /// Median time between its timers' expiries; null if they show no period.
    pub period_ns: Option<Nanos>,
    /// Limit of the responses: the given deadline, else the period.
    pub deadline_ns: Option<Nanos>,
    /// Complete cycles.
    pub cycles: u64,
    /// Cycles that responded later than the deadline; null if none was known.
    pub late: Option<u64>,
    /// Cycles that were compared with a deadline.
    pub judged: u64,
    /// Expiries of its timer while the last cycle was running, which started no cycle.
    pub overrun: u64,
    /// Sleeps of unknown purpose, which may have ended a cycle, and cycles cut by lost events.
    pub untold: u64,
    /// Switches to it that the kernel did not record: `execution` of these cycles is at most that.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub unseen_switches: u64,
    /// Cycles that a timer released.
    pub by_timer: u64,
    /// Cycles that an interrupt or its thread released.
    pub by_interrupt: u64,
    /// Cycles that another thread released.
    pub by_thread: u64,
    /// Worst observed response.
    pub worst_ns: Option<Nanos>,
    /// Longest part of the worst response that was not the thread running.
    pub worst_culprit: String,
    /// Time from the release to the end; counts sum to `cycles`.
    pub response: Vec<Bucket>,
    /// Time on the CPU, interrupts on top of it included; counts sum to `cycles`.
    pub execution: Vec<Bucket>,
    /// Time from one expiry of its timers to the next.
    pub period: Vec<Bucket>,
}

/// The program that a hunt started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramRun {
    pub pid: i32,
    /// File name of the program, without arguments.
    pub name: String,
    /// User that it ran as, if `--user` was given.
    pub user: String,
    /// Exit code; null while it runs, and if a signal ended it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// Time from its start to its end.
    pub elapsed_ns: Option<Nanos>,
    /// True if it was still running at the end of the hunt.
    pub left_running: bool,
    /// Number of processes that it had started and that outlived it.
    pub outlived_by: u64,
    /// Number of its threads under a real-time policy without a recorded switch.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub unseen_threads: u64,
}
