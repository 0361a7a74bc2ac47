//! Record of one interval of `onbeat watch`: histograms per CPU and thread, the worst wake-ups with
//! names, gaps of the record, and events on the machine in that time.
//!
//! The parts of a wake-up: T is the lateness of its timer, W the wait for its CPU, S the time of
//! the switch to it. `WatchRow` holds the field names of `onbeat.rows/1` (docs/bundle.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keyword::Word;
use crate::keywords;
use crate::labels::Labels;
use crate::rows::RowCounts;
use crate::slice::SliceKind;
use crate::units::{Cpu, Nanos};
use crate::vocabulary::Policy;

keywords! {
    /// Part of a wake-up that a histogram holds.
    pub enum WatchSeries {
        /// T: from the timer's expiry to the waking
        Timer = "timer",
        /// W: from the waking to the switch to the thread
        Wakeup = "wakeup",
        /// T and W of wake-ups that have both
        TimerWakeup = "timer+wakeup",
        /// S: the switch itself
        Switch = "switch",
        /// T, W and S of wake-ups that have all three
        TimerWakeupSwitch = "timer+wakeup+switch",
    }
}

keywords! {
    /// Priority of the thread that held the CPU, relative to that of the thread that waited for it.
    pub enum Holder {
        /// lower, or idle: the wait is the kernel's or the hardware's fault
        Lower = "lower",
        /// the same priority
        Equal = "equal",
        /// a higher one
        Higher = "higher",
    }
}

keywords! {
    /// Kind of the threads that woke up.
    pub enum Victims {
        /// threads of programs
        User = "user",
        /// kernel threads
        Kernel = "kernel",
    }
}

keywords! {
    /// Kind of event on a watched machine.
    pub enum WatchMarkKind {
        /// the machine was started
        Boot = "boot",
        /// a CPU came online
        CpuOnline = "cpu-online",
        /// a CPU went offline
        CpuOffline = "cpu-offline",
        /// the machine was suspended
        Suspend = "suspend",
        /// the wall clock was set
        ClockStep = "clock-step",
        /// onbeat measured or hunted
        Measure = "measure",
        /// onbeat loaded the machine
        Load = "load",
    }
}

/// Identity of a recording: the same for all intervals of one run of `onbeat watch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchRun {
    /// The kernel's boot id.
    pub boot: String,
    /// Id of the recording: that of its folder.
    pub recording: String,
    /// Digest of what the histograms depend on: they are merged only if it is the same.
    pub plan: String,
    /// Planned length of an interval.
    pub interval_ns: Nanos,
    /// Seconds by which its clock was ahead of UTC when recording began; null if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utc_offset_s: Option<i32>,
    /// Labels set by the user.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// One interval, as it was read from the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchInterval {
    /// Number of the interval, ascending within a boot.
    pub seq: u64,
    /// Start of the interval.
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    /// CLOCK_REALTIME at the start.
    pub wall_ns: Nanos,
    /// Digest of the kernel and its settings.
    pub env: String,
    /// The environment in full, if it is new.
    pub environment: Option<WatchEnvironment>,
    /// Obstacles to a fair record, as in `integrity` of a run.
    pub integrity: Vec<String>,
    pub series: Vec<SeriesRows>,
    /// The worst wake-ups of each series, holder and kind of victims.
    pub worst: Vec<WorstWakeup>,
    pub coverage: WatchCoverage,
    pub marks: Vec<WatchMark>,
}

/// The histograms of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRows {
    pub series: WatchSeries,
    /// Rows of every wake-up, by its CPU.
    pub cpus: Vec<WatchRow>,
    /// Rows of chosen threads once more, by thread.
    pub threads: Vec<WatchRow>,
}

/// A histogram with its exact values: of one CPU, or of one chosen thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchRow {
    /// Null for a thread.
    pub cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<WatchTask>,
    pub holder: Word<Holder>,
    pub victims: Word<Victims>,
    pub n: u64,
    /// Wake-ups that were seen and have no latency.
    pub missed: u64,
    /// Wake-ups before their time.
    pub early: u64,
    pub min_ns: Option<Nanos>,
    pub sum_ns: Nanos,
    pub max_ns: Option<Nanos>,
    /// Time of the largest wake-up.
    pub max_mono_ns: Option<Nanos>,
    /// The largest latencies after the maximum, at most seven.
    pub top_ns: Vec<Nanos>,
    /// Numbering of the rows; `""` if the histogram was dropped.
    pub layout: RowLayout,
    pub hist: RowCounts,
    /// Thread of the largest wake-up.
    pub victim: WatchTask,
    pub culprit: WatchCulprit,
    /// Always null: a watch has no windows of events.
    pub spike: Option<String>,
}

/// Numbering of the rows of a histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowLayout(pub String);

impl Default for RowLayout {
    fn default() -> RowLayout {
        RowLayout(crate::rows::LAYOUT.to_owned())
    }
}

impl RowLayout {
    /// True if its rows can be read: an unknown name stands for another numbering.
    pub fn is_known(&self) -> bool {
        matches!(self.0.as_str(), "" | crate::rows::LAYOUT)
    }
}

/// Number of latencies that a row keeps after the maximum.
pub const TOP: usize = 7;

/// A thread; numbers are null and texts `""` where unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchTask {
    pub comm: String,
    /// The process.
    pub pid: Option<i32>,
    /// The thread; 0 is the idle thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// The kernel's priority: -1 deadline, 0 to 98 real-time (99 less the priority), 100 to 139
    /// fair.
    pub prio: Option<i32>,
    #[serde(skip_serializing_if = "Word::is_empty")]
    pub policy: Word<Policy>,
    /// CPU of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
}

impl WatchTask {
    /// The priority of a real-time thread as users set it, 1 to 99.
    pub fn priority(&self) -> Option<i32> {
        self.prio.filter(|prio| (0..99).contains(prio)).map(|prio| 99 - prio)
    }

    /// True if nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == WatchTask::default()
    }
}

/// Cause of the time, by the rules of a hunt; the name is empty if it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchCulprit {
    /// The rule that knows it.
    pub rule: Option<String>,
    /// The rule's title, or the thread, function or interrupt by name.
    pub name: String,
    pub kind: Word<SliceKind>,
    /// Share of the latency; null if it cannot be determined.
    pub share: Option<f64>,
    /// True if that share is estimated and not counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Thread of the culprit, or the one in which it ran.
    #[serde(skip_serializing_if = "WatchTask::is_unknown")]
    pub task: WatchTask,
}

/// One of the largest wake-ups of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorstWakeup {
    /// Series in which it is among the largest.
    pub worst_of: Vec<Word<WatchSeries>>,
    pub holder: Word<Holder>,
    pub victims: Word<Victims>,
    /// T; null for a wake-up without a timer.
    pub timer_ns: Option<Nanos>,
    /// W; null where no switch was seen.
    pub wakeup_ns: Option<Nanos>,
    /// CPU time of the previous thread within W, in one piece or more; null if no event shows it.
    pub held_ns: Option<Nanos>,
    /// S; null where the kernel does not show it.
    pub switch_ns: Option<Nanos>,
    /// Time of the switch to the thread.
    pub mono_ns: Nanos,
    /// CLOCK_REALTIME at that time.
    pub wall_ns: Nanos,
    /// CPU of the switch.
    pub cpu: Option<Cpu>,
    pub victim: WatchTask,
    pub culprit: WatchCulprit,
    /// The thread that ran on the CPU before: observed, not accused.
    pub previous: WatchTask,
    /// The thread that the timer interrupted: observed, not accused.
    pub interrupted: WatchTask,
    /// Functions that the CPU was in, innermost first.
    pub stack: Vec<String>,
    /// The system call in which the victim slept next; `""` where unknown.
    pub sleeps_in: String,
}

impl WorstWakeup {
    /// Its latency in a series; `None` if a part of it is unknown.
    pub fn value(&self, series: WatchSeries) -> Option<Nanos> {
        let sum = |parts: &[Option<Nanos>]| parts.iter().try_fold(Nanos(0), |sum, part| Some(sum + (*part)?));
        match series {
            WatchSeries::Timer => self.timer_ns,
            WatchSeries::Wakeup => self.wakeup_ns,
            WatchSeries::TimerWakeup => sum(&[self.timer_ns, self.wakeup_ns]),
            WatchSeries::Switch => self.switch_ns,
            WatchSeries::TimerWakeupSwitch => sum(&[self.timer_ns, self.wakeup_ns, self.switch_ns]),
        }
    }

    /// Sum of its known parts.
    pub fn total(&self) -> Nanos {
        self.until_switch() + self.switch_ns.unwrap_or_default()
    }

    /// Sum of its known parts before `mono_ns`.
    pub fn until_switch(&self) -> Nanos {
        self.timer_ns.unwrap_or_default() + self.wakeup_ns.unwrap_or_default()
    }

    /// True if both describe the same wake-up.
    pub fn is_same(&self, other: &WorstWakeup) -> bool {
        (self.mono_ns, self.cpu, self.victim.tid) == (other.mono_ns, other.cpu, other.victim.tid)
    }
}

/// Completeness of a record; numbers are null if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchCoverage {
    /// Recorded switches to real-time threads.
    pub recorded: u64,
    /// Sleeps of these threads by their counts in the kernel.
    pub voluntary: Option<u64>,
    /// Threads that found their place taken by another.
    pub collisions: u64,
    /// Runs of a BPF program that the kernel skipped; through a ring, events that were lost.
    pub skipped: Option<u64>,
    /// Threads that ended before their counts were read.
    pub ended: u64,
    /// Timers without the wake-up that they belong to.
    pub timers_unmatched: u64,
    /// Wake-ups of threads that had not yet slept.
    pub woken_before_sleep: u64,
    /// Intervals before this one that could not be written.
    pub unwritten: u64,
}

impl WatchCoverage {
    /// Adds another interval's.
    pub fn add(&mut self, other: &WatchCoverage) {
        let both = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (known, None) | (None, known) => known,
        };
        self.recorded = self.recorded.saturating_add(other.recorded);
        self.voluntary = both(self.voluntary, other.voluntary);
        self.collisions = self.collisions.saturating_add(other.collisions);
        self.skipped = both(self.skipped, other.skipped);
        self.ended = self.ended.saturating_add(other.ended);
        self.timers_unmatched = self.timers_unmatched.saturating_add(other.timers_unmatched);
        self.woken_before_sleep = self.woken_before_sleep.saturating_add(other.woken_before_sleep);
        self.unwritten = self.unwritten.saturating_add(other.unwritten);
    }

    /// The recorded share of all switches, where the threads' counts are known; more than was
    /// counted is all.
    pub fn share(&self) -> Option<f64> {
        let voluntary = self.voluntary.filter(|&counted| counted > 0)?;
        Some((self.recorded as f64 / voluntary as f64).min(1.0))
    }
}

/// An event on the machine, with its start and end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchMark {
    pub kind: Word<WatchMarkKind>,
    pub from_mono_ns: Nanos,
    pub to_mono_ns: Nanos,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Description: a run's id, the size of a step.
    pub detail: String,
}

/// Kernel and settings that latencies depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchEnvironment {
    /// Digest by which intervals name it.
    pub env: String,
    pub release: String,
    pub machine: String,
    /// Settings that were read, by name.
    pub settings: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_a_value_where_all_its_parts_are_known() {
        let worst =
            WorstWakeup { timer_ns: Some(Nanos(3)), wakeup_ns: Some(Nanos(40)), ..WorstWakeup::default() };
        let values: Vec<_> = WatchSeries::ALL.iter().map(|series| worst.value(*series)).collect();
        assert_eq!(values, [Some(Nanos(3)), Some(Nanos(40)), Some(Nanos(43)), None, None]);
        assert_eq!(worst.total(), Nanos(43));
        let worst = WorstWakeup { switch_ns: Some(Nanos(2)), ..worst };
        assert_eq!(worst.value(WatchSeries::TimerWakeupSwitch), Some(Nanos(45)));
        assert_eq!((worst.total(), worst.until_switch()), (Nanos(45), Nanos(43)));
    }

    #[test]
    fn coverage_is_unknown_where_switches_are_not_counted() {
        let mut coverage = WatchCoverage { recorded: 5, ..WatchCoverage::default() };
        assert_eq!(coverage.share(), None);
        coverage.add(&WatchCoverage { recorded: 4, voluntary: Some(10), ..WatchCoverage::default() });
        assert_eq!((coverage.recorded, coverage.share()), (9, Some(0.9)));
    }

    #[test]
    fn names_are_those_of_the_rows() {
        let row = WatchRow { cpu: Some(Cpu(1)), n: 2, holder: Holder::Lower.into(), ..WatchRow::default() };
        let json = serde_json::to_value(&row).unwrap();
        let names = "cpu holder victims n missed early min_ns sum_ns max_ns max_mono_ns top_ns layout hist \
            victim culprit spike";
        for name in names.split(' ') {
            assert!(json.get(name).is_some(), "{name} of {json}");
        }
        assert_eq!(
            (&json["layout"], &json["holder"], &json["hist"]),
            (&"log32".into(), &"lower".into(), &"".into())
        );
        assert_eq!(serde_json::from_value::<WatchRow>(json).unwrap(), row);
    }

    #[test]
    fn priorities_are_those_that_users_set() {
        let of = |prio| WatchTask { prio, ..WatchTask::default() }.priority();
        assert_eq!(
            [of(Some(19)), of(Some(98)), of(Some(0)), of(Some(120)), of(Some(-1)), of(None)],
            [Some(80), Some(1), Some(99), None, None, None]
        );
    }
}
