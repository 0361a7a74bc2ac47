//! What `hunt` adds to `run.json`: spikes in slices, culprits, and the recorder's own account.

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
    /// The slot's number; null for another's task.
    pub cycle: Option<u64>,
    /// When it should have run.
    pub expected_ns: Nanos,
    pub actual_ns: Nanos,
    /// How late that is.
    pub latency_ns: Nanos,
    /// Of a followed thread's cycle that was later than its deadline: that deadline. `expected_ns`
    /// is then its release, `actual_ns` its end, `latency_ns` its response. Null for a wake-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// Events of this CPU that were overwritten before they could be read.
    pub events_lost: u64,
    /// In order of time, without overlap; with `unexplained_ns` they sum to `latency_ns` exactly.
    pub slices: Vec<Slice>,
    /// The part that no event accounts for, and nothing shows to be a stop from outside.
    pub unexplained_ns: Nanos,
    /// The reason why time is unexplained, as text; `""` where there is no remark.
    pub unexplained_why: String,
    /// The sum of the slices of the kind `stopped-from-outside`. Earlier versions had no such
    /// slices: theirs is a part of `unexplained_ns`.
    pub stopped_ns: Nanos,
    /// The part of `latency_ns` in which an earlier cycle of the thread was still on:
    /// its causes are this one's.
    #[serde(skip_serializing_if = "is_no_time")]
    pub inherited_ns: Nanos,
    /// The kinds with at least a tenth of the latency, largest first, `unexplained` among them.
    pub classes: Vec<Word<SliceKind>>,
    /// The thread that woke late.
    pub victim: Who,
    /// When the thread was switched to, by the trace; null where that was lost.
    pub switched_ns: Option<Nanos>,
    /// Remarks on the explanation, as text: its evidence and what it lacks.
    pub notes: Vec<String>,
}

fn is_no_time(time: &Nanos) -> bool {
    time.0 == 0
}

/// A stretch of a spike that is accounted for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// What kind of time it was.
    pub kind: Word<SliceKind>,
    pub start_ns: Nanos,
    pub ns: Nanos,
    /// Whose time it was.
    pub who: Who,
    /// The culprit rule that knows it.
    pub rule: Option<String>,
    /// What it rests on, for people.
    pub evidence: String,
    /// The functions the CPU was in, innermost first, where a stack was taken.
    pub stack: Vec<String>,
    /// Whether another CPU's timer was late meanwhile, so that all may have been stopped: settled
    /// when the run is over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
    /// True if its length is estimated and not counted: of a stop from outside that only the
    /// silence of all CPUs or a coarse counter shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The release of the earlier cycle that this time was taken from, where this cycle was due
    /// while that one was on; null where it was taken from this one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrun_of_ns: Option<Nanos>,
}

/// Who took the time; texts are `""` where they do not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Who {
    pub comm: String,
    /// Its id; 0 is the idle thread.
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
    /// The priority of a thread where nothing says it.
    pub const PRIO_UNKNOWN: i32 = i32::MAX;
}

/// A thread that took no time itself and is behind one that did; name and id are empty where no
/// event shows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Behind {
    pub comm: String,
    pub pid: i32,
}

/// What took time in one spike or in many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Culprit {
    /// The rule that knows it, if one does.
    pub rule: Option<String>,
    /// The rule's title, or the thread, function or interrupt by name.
    pub name: String,
    /// The kind of its slices.
    pub kind: Word<SliceKind>,
    /// Spikes that it has part in.
    pub spikes: u64,
    /// The lateness that it caused: what it took of each spike, added up. Time that made several
    /// spikes late counts in each of them.
    pub total_ns: Nanos,
    /// The time that it took: of a thread, a CPU or the machine, each nanosecond of it once. Null
    /// where it is not counted.
    pub cpu_time_ns: Option<Nanos>,
    /// The part of `total_ns` that is of cycles that were due while an earlier one was on.
    #[serde(skip_serializing_if = "is_no_time")]
    pub inherited_ns: Nanos,
    /// The part of `total_ns` whose length is estimated and not counted.
    #[serde(skip_serializing_if = "is_no_time")]
    pub estimated_ns: Nanos,
    /// `total_ns` as a share of the latency of all spikes.
    pub share: f64,
    /// Functions it was seen in, those that took most first.
    pub functions: Vec<String>,
    /// Slices of it in functions that are not among these.
    pub functions_unlisted: u64,
    /// What matched, for people.
    pub evidence: Vec<String>,
    /// Knob rules that cure it.
    pub knobs: Vec<String>,
    pub remedy: String,
    /// How to reproduce it.
    pub provoke: String,
    /// The threads that it was, those that took most first; empty where it is no thread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<CulpritThread>,
    /// How many threads it was in all.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub threads_seen: u64,
    /// How long they had the CPU each time, and how often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<CulpritTurns>,
}

/// The flight recorder: what it saw, what it could not, what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorder {
    /// Threshold of a spike; null where the first wake-ups were too few to give one, and none was
    /// looked at.
    pub over_ns: Option<Nanos>,
    /// How the threshold came about.
    pub over_why: String,
    /// Events that were armed, `system:event`.
    pub events: Vec<String>,
    /// Events that the kernel does not offer.
    pub missing: Vec<String>,
    /// Whether stacks were taken, and where.
    pub stacks: Vec<String>,
    /// Size of the buffer per CPU.
    pub buffer_kib: u64,
    /// How far back it reached at the busiest.
    pub depth_ms: Option<f64>,
    /// Bytes per second and CPU, at the busiest.
    pub bytes_per_s: Option<u64>,
    /// The longest that housekeeping took to come for a spike.
    pub slowest_response_ms: Option<f64>,
    /// Spikes that came faster than could be looked at: they are counted, and neither explained nor
    /// in `latency_ns`.
    pub spikes_passed_over: u64,
    /// Explained spikes, in `latency_ns` and the ranking, that no list has: there was no space to
    /// write them.
    #[serde(skip_serializing_if = "crate::run::is_zero")]
    pub spikes_unwritten: u64,
    /// Spikes whose events were overwritten before they could be read, or that came too fast to be
    /// looked at.
    pub windows_lost: u64,
    /// Looks at the followed threads that found events missing: what they did meanwhile is not
    /// known.
    pub looks_lost: u64,
    /// Events overwritten in all, as the kernel counts them; only those within windows affect
    /// results.
    pub events_overwritten: u64,
    /// Median wake-up with nothing armed, with events, with events and stacks.
    pub median_ns: [Option<Nanos>; 3],
    /// What events add to each wake-up at the median.
    pub events_cost_ns: Option<Nanos>,
    /// What events and stacks add; null without stacks.
    pub stacks_cost_ns: Option<Nanos>,
    /// By how much chance alone may make the two costs differ from these (95 %).
    pub cost_noise_ns: Option<Nanos>,
    /// Wake-ups of the rounds before slot 0, in which events were switched: they do not count.
    pub discarded: u64,
    /// Latency of all spikes that were explained, those beyond the list among them.
    pub latency_ns: Nanos,
    /// What of it no event accounts for.
    pub unexplained_ns: Nanos,
    /// Slices whose culprit is `many others`: there were too many culprits.
    pub slices_pooled: u64,
    /// Spikes whose unexplained time no rule was asked about, because that of thousands of others
    /// was larger.
    pub spikes_unjudged: u64,
    /// Spikes in which the trace has the switch to the thread between expected and actual time.
    pub agreeing: u64,
    /// Spikes in which it has not.
    pub disagreeing: u64,
    /// From the switch to the thread's timestamp, at the median.
    pub switch_to_user_ns: Option<Nanos>,
    /// A timer interrupt without anything to do but tick, from entry to exit, at the median: the
    /// cost of one tick.
    pub tick_ns: Option<Nanos>,
    /// Ticks that this is of.
    pub ticks: u64,
    /// What kept something from being recorded, each with what is still possible.
    pub notes: Vec<String>,
}
