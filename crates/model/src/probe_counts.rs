//! Counts of the probes, one entry per measured thread of `run.json`.

use serde::{Deserialize, Serialize};

use crate::keyword::Word;
use crate::units::{Cpu, Nanos};
use crate::vocabulary::{GapOrigin, ResponsePart};

/// Priority inversions that `probe pi` made on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    pub made: u64,
    /// Those in which the high thread got the lock before the medium one had computed.
    pub resolved: u64,
    /// Longest time for which the low thread held the lock.
    pub longest_hold_ns: Nanos,
}

/// Rounds of one thread of `probe migrate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    pub priority: u32,
    /// Rounds in which it waited for `plan.over_ns` or more while a thread with a lower priority
    /// ran.
    pub violations: u64,
    /// Rounds with such a wait in which it was not waiting for a CPU by the kernel's count: its CPU
    /// did not run.
    pub held: u64,
    /// Mean and maximum time from its wake-up to its first instruction.
    pub mean_start_ns: Option<Nanos>,
    pub max_start_ns: Option<Nanos>,
}

/// Jobs of one thread of `probe deadline`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlineJobs {
    pub jobs: u64,
    /// Jobs that ended after their deadline.
    pub late: u64,
    /// Jobs that took more CPU time than the runtime.
    pub overruns: u64,
    /// Pauses in a job that had used up its runtime: the kernel throttled it.
    pub throttled: u64,
    pub throttled_ns: Nanos,
    /// Pauses in a job that had runtime left, and lost its CPU to another thread.
    pub preempted: u64,
    pub preempted_ns: Nanos,
    /// Pauses without a context switch: interrupts, firmware or a hypervisor.
    pub stopped: u64,
    pub stopped_ns: Nanos,
    /// Longest CPU time of a job.
    pub longest_work_ns: Nanos,
    /// Longest time from the start of a job's period to its end.
    pub longest_response_ns: Nanos,
}

/// Packets of one thread of `probe net`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    pub sent: u64,
    /// Packets whose answer came in time.
    pub answered: u64,
    /// Packets without an answer.
    pub lost: u64,
    /// Answers that came after their time limit.
    pub late: u64,
    /// Answers that came after the answer to a later packet.
    pub reordered: u64,
    /// Answers that came more than once.
    pub duplicates: u64,
    /// Packets on this port that are not answers.
    pub foreign: u64,
    /// Answers without a software time stamp of the kernel.
    pub unstamped: u64,
    /// Mean and maximum of the parts of a round trip by the kernel's time stamps: from the call to
    /// the driver, from there to the receiving stack, from there to the thread.
    pub send_mean_ns: Option<Nanos>,
    pub send_max_ns: Option<Nanos>,
    pub path_mean_ns: Option<Nanos>,
    pub path_max_ns: Option<Nanos>,
    pub receive_mean_ns: Option<Nanos>,
    pub receive_max_ns: Option<Nanos>,
}

/// Responses of one thread of `probe irq` to hardware events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Responses {
    /// Number of the interrupt, or `timer`; `""` if it is known by its handler alone.
    pub irq: String,
    /// Name of its handler.
    pub handler: String,
    pub events: u64,
    /// Events whose response the kernel's events divide.
    pub split: u64,
    /// Events that came before the thread slept, so that nothing woke it.
    pub not_slept: u64,
    /// Events whose response is not divided, because events of the kernel are missing.
    pub not_split: u64,
    /// Events that woke no thread: those from outside.
    pub no_thread: u64,
    /// Requests without an event within the time limit.
    pub unanswered: u64,
    /// Events of the kernel that its buffers lost.
    pub events_lost: u64,
    /// Sum of the divided responses: that of the parts is the same.
    pub response_sum_ns: Nanos,
    /// Parts in order of time; without those that the source does not have.
    pub parts: Vec<PartTime>,
    /// Longest divided responses, the longest first.
    pub longest: Vec<SplitResponse>,
}

/// A part of all divided responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTime {
    pub part: Word<ResponsePart>,
    pub sum_ns: Nanos,
    pub max_ns: Nanos,
}

/// A divided response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitResponse {
    /// CLOCK_MONOTONIC of the event, as well as it is known.
    pub mono_ns: Nanos,
    pub response_ns: Nanos,
    pub entry_ns: Nanos,
    pub handler_ns: Nanos,
    pub deferred_ns: Nanos,
    pub wakeup_ns: Nanos,
    pub switch_ns: Nanos,
}

/// Interruptions of one kind that the kernel's osnoise tracer counted on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoisePart {
    pub count: u64,
    pub total_ns: Nanos,
    pub longest_ns: Nanos,
}

/// Noise of one CPU in the complete sampling periods of the osnoise tracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuNoise {
    /// Time in which the tracer read the clock, with the noise.
    pub runtime_ns: Nanos,
    /// Sum of its gaps.
    pub noise_ns: Nanos,
    /// Longest single gap.
    pub longest_ns: Nanos,
    /// Gaps without an interruption that the kernel knows.
    pub hardware: NoisePart,
    /// Interruptions, each without those within it; also those in gaps that are too short to count.
    pub nmi: NoisePart,
    pub irq: NoisePart,
    pub softirq: NoisePart,
    pub thread: NoisePart,
    /// Records that were overwritten before they were read.
    pub lost: u64,
}

impl CpuNoise {
    /// Share of the time that was available, 0 to 1; none without a complete period.
    pub fn available(&self) -> Option<f64> {
        (self.runtime_ns.0 > 0).then(|| 1.0 - self.noise_ns.0 as f64 / self.runtime_ns.0 as f64)
    }
}

/// A span in which a thread that reads the clock without a pause could not read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpinGap {
    pub cpu: Cpu,
    /// CLOCK_MONOTONIC of the last read before the gap.
    pub mono_ns: Nanos,
    /// Length up to the first read after it.
    pub ns: Nanos,
    /// Cause outside of the kernel; empty for a probe that does not look for it.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    pub origin: Word<GapOrigin>,
}
