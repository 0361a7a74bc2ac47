//! What a hunt that follows another program adds to `run.json`: its threads, and how it ended.

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
    /// The median distance of its timers' expiries; null where they show no period.
    pub period_ns: Option<Nanos>,
    /// What the responses were compared with: what was asked for, else the period.
    pub deadline_ns: Option<Nanos>,
    /// Complete cycles.
    pub cycles: u64,
    /// Of these, how many responded later than the deadline; null where none was known.
    pub late: Option<u64>,
    /// Of these, how many were compared with a deadline.
    pub judged: u64,
    /// Expiries of its timer while the last cycle was on, for which there is no cycle of their own.
    pub overrun: u64,
    /// Sleeps of which no event tells whether they end a cycle, and cycles cut by lost events.
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
    /// The worst observed response, and the longest part of it that was not its own running.
    pub worst_ns: Option<Nanos>,
    pub worst_culprit: String,
    /// From the release to the end; counts sum to `cycles`.
    pub response: Vec<Bucket>,
    /// Time on the CPU, interrupts on top of it included; counts sum to `cycles`.
    pub execution: Vec<Bucket>,
    /// From one expiry of its timers to the next.
    pub period: Vec<Bucket>,
}

/// The program that a hunt started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramRun {
    pub pid: i32,
    /// The name of its file, without arguments.
    pub name: String,
    /// As whom it ran, where `--user` was given.
    pub user: String,
    /// Its exit code; null while it runs, and where a signal ended it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub elapsed_ns: Option<Nanos>,
    /// Whether it was still running when the hunt was over.
    pub left_running: bool,
    /// Processes that it had started and that outlived it.
    pub outlived_by: u64,
    /// Threads of it that were under a real-time policy and of which no switch was recorded.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub unseen_threads: u64,
}
