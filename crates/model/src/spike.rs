//! Additions of `hunt` to `run.json`: spikes in slices, culprits, and the recorder's account.

use serde::{Deserialize, Serialize};

use crate::culprit_thread::{CulpritThread, CulpritTurns};
use crate::keyword::Word;
use crate::slice::SliceKind;
use crate::units::{Cpu, Nanos};

/// A wake-up over the threshold, split into slices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spike {
    /// The CPU of the thread that woke late.
    pub cpu: Cpu,
    /// Number of the slot; null for threads of other programs.
    pub cycle: Option<u64>,
    /// Time at which it should have run.
    pub expected_ns: Nanos,
    pub actual_ns: Nanos,
    /// Lateness: `actual_ns` - `expected_ns`.
    pub latency_ns: Nanos,
    /// Deadline of a followed thread's cycle that responded later. `expected_ns` is then its
    /// release, `actual_ns` its end, `latency_ns` its response. Null for a wake-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// Events of this CPU that were overwritten before they could be read.
    pub events_lost: u64,
    /// Slices in order of time, without overlap; with `unexplained_ns` they sum to `latency_ns`.
    pub slices: Vec<Slice>,
    /// Part that no event accounts for, and that nothing shows to be a stop from outside.
    pub unexplained_ns: Nanos,
    /// Reason why time is unexplained, in words; `""` where there is no remark.
    pub unexplained_why: String,
    /// The sum of the slices of the kind `stopped-from-outside`. Earlier versions had no such
    /// slices: theirs is a part of `unexplained_ns`.
    pub stopped_ns: Nanos,
    /// Part of `latency_ns` in which an earlier cycle of the thread was still running: its causes
    /// are those of this cycle.
    #[serde(skip_serializing_if = "is_no_time")]
    pub inherited_ns: Nanos,
    /// The kinds with at least a tenth of the latency, largest first, `unexplained` among them.
    pub classes: Vec<Word<SliceKind>>,
    /// The thread that woke late.
    pub victim: Who,
    /// Time of the switch to the thread, by the trace; null if that event was lost.
    pub switched_ns: Option<Nanos>,
    /// Remarks on the explanation: its evidence and gaps.
    pub notes: Vec<String>,
}

fn is_no_time(time: &Nanos) -> bool {
    time.0 == 0
}

/// A stretch of a spike that is accounted for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// Kind of time.
    pub kind: Word<SliceKind>,
    pub start_ns: Nanos,
    pub ns: Nanos,
    /// Thread, interrupt or function that the time belongs to.
    pub who: Who,
    /// The culprit rule that knows it.
    pub rule: Option<String>,
    /// Evidence, in words.
    pub evidence: String,
    /// The functions the CPU was in, innermost first, where a stack was taken.
    pub stack: Vec<String>,
    /// True if another CPU's timer was late at the same time, so that all may have been stopped;
    /// settled at the end of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// True if its length is estimated and not counted: a stop from outside that only the silence
    /// of all CPUs or a coarse counter shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Release of the earlier cycle that this time was taken from, if this cycle was due while that
    /// one was running; null if it was taken from this cycle itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrun_of_ns: Option<Nanos>,
}

/// Owner of the time; texts are `""` where they do not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Who {
    pub comm: String,
    /// Thread id; 0 is the idle thread.
    pub pid: i32,
    /// The kernel's priority: -1 deadline, 0 to 98 real-time (99 less the priority), 100 to 139
    /// fair.
    pub prio: i32,
    pub function: String,
    /// The interrupt or softirq by name.
    pub irq: String,
    /// The CPU that sent an interrupt here.
    pub from_cpu: Option<Cpu>,
    /// The kernel module that the function is in.
    pub module: String,
    /// The thread that requested what ran, where an event shows it: `stop_machine`, a migration, a
    /// queued work item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<Behind>,
    /// The thread whose priority this one had inherited when it was switched to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherited_from: Option<Behind>,
}

impl Who {
    /// Priority of a thread of which none is recorded.
    pub const PRIO_UNKNOWN: i32 = i32::MAX;
}

/// A thread behind one that took time; name and id are empty if no event shows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Behind {
    pub comm: String,
    pub pid: i32,
}

/// A cause of lost time in one spike or in many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Culprit {
    /// The rule that knows it, if one does.
    pub rule: Option<String>,
    /// The rule's title, or the thread, function or interrupt by name.
    pub name: String,
    /// The kind of its slices.
    pub kind: Word<SliceKind>,
    /// Number of spikes in which it has a part.
    pub spikes: u64,
    /// Lateness that it caused: its time in each spike, added up. Time that made several spikes
    /// late counts in each of them.
    pub total_ns: Nanos,
    /// Time that it took of a thread, a CPU or the machine, each nanosecond counted once. Null if
    /// it is not counted.
    pub cpu_time_ns: Option<Nanos>,
    /// Part of `total_ns` in cycles that were due while an earlier one was running.
    #[serde(skip_serializing_if = "is_no_time")]
    pub inherited_ns: Nanos,
    /// Part of `total_ns` whose length is estimated and not counted.
    #[serde(skip_serializing_if = "is_no_time")]
    pub estimated_ns: Nanos,
    /// `total_ns` as a share of the latency of all spikes.
    pub share: f64,
    /// Functions in which it was seen, those that took most first.
    pub functions: Vec<String>,
    /// Number of its slices in functions beyond these.
    pub functions_unlisted: u64,
    /// Matched evidence, in words.
    pub evidence: Vec<String>,
    /// Knob rules that cure it.
    pub knobs: Vec<String>,
    pub remedy: String,
    /// Steps to reproduce it.
    pub provoke: String,
    /// Its threads, those that took most first; empty if it is not a thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<CulpritThread>,
    /// Number of its threads in all.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub threads_seen: u64,
    /// Number and length of its threads' turns on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<CulpritTurns>,
}

/// Origin of a threshold set by the user.
pub const OVER_ASKED: &str = "as asked";

/// The flight recorder: what it saw, what it could not, what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorder {
    /// Threshold of a spike; null if the first wake-ups were too few to give one, so that none was
    /// looked at.
    pub over_ns: Option<Nanos>,
    /// Origin of the threshold, in words.
    pub over_why: String,
    /// Events that were armed, `system:event`.
    pub events: Vec<String>,
    /// Events that the kernel does not offer.
    pub missing: Vec<String>,
    /// Events at which stacks were taken; empty if none were.
    pub stacks: Vec<String>,
    /// Size of the buffer per CPU.
    pub buffer_kib: u64,
    /// Time that the buffer covered at the busiest.
    pub depth_ms: Option<f64>,
    /// Bytes per second and CPU, at the busiest.
    pub bytes_per_s: Option<u64>,
    /// Longest time until housekeeping attended to a spike.
    pub slowest_response_ms: Option<f64>,
    /// Spikes that came faster than they could be looked at: they are counted, and neither
    /// explained nor in `latency_ns`.
    pub spikes_passed_over: u64,
    /// Explained spikes, in `latency_ns` and the ranking, that are not in the list, because there
    /// was no space to write them.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub spikes_unwritten: u64,
    /// Spikes whose events were overwritten before they could be read, or that came too fast to be
    /// looked at.
    pub windows_lost: u64,
    /// Reads of the followed threads' events that found some missing: the threads' activity in that
    /// time is unknown.
    pub looks_lost: u64,
    /// Events overwritten in all, as the kernel counts them; only those within windows affect
    /// results.
    pub events_overwritten: u64,
    /// Median wake-up with nothing armed, with events, with events and stacks.
    pub median_ns: [Option<Nanos>; 3],
    /// Cost of events per wake-up, at the median.
    pub events_cost_ns: Option<Nanos>,
    /// Cost of events and stacks per wake-up, at the median; null without stacks.
    pub stacks_cost_ns: Option<Nanos>,
    /// Error of these two costs by chance (95 %).
    pub cost_noise_ns: Option<Nanos>,
    /// Wake-ups of the rounds before slot 0, in which events were switched: they do not count.
    pub discarded: u64,
    /// Latency of all spikes that were explained, those beyond the list among them.
    pub latency_ns: Nanos,
    /// Part of that latency that no event accounts for.
    pub unexplained_ns: Nanos,
    /// Slices under the culprit `many others`: there were too many culprits.
    pub slices_pooled: u64,
    /// Spikes whose unexplained time was not put to the rules, because that of thousands of others
    /// was larger.
    pub spikes_unjudged: u64,
    /// Spikes in which the trace has the switch to the thread between expected and actual time.
    pub agreeing: u64,
    /// Spikes in which it does not.
    pub disagreeing: u64,
    /// Time from the switch to the thread's timestamp, at the median.
    pub switch_to_user_ns: Option<Nanos>,
    /// Length of a timer interrupt that only ticks, from entry to exit, at the median: the cost of
    /// one tick.
    pub tick_ns: Option<Nanos>,
    /// Number of ticks in `tick_ns`.
    pub ticks: u64,
    /// Obstacles to recording, each with what is still possible.
    pub notes: Vec<String>,
}
