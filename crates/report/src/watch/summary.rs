//! Summary of a record of months: columns, totals and short lists.

use serde::Serialize;

use crate::words::MachineClock;
use model::histogram::Bucket;
use model::keyword::Word;
use model::keywords;
use model::record::RecordLosses;
use model::units::{Cpu, Nanos};
use model::watch::{
    Holder, Victims, WatchCoverage, WatchEnvironment, WatchMark, WatchMarkKind, WatchSeries, WatchTask,
    WorstWakeup,
};

keywords! {
    /// Class of a wait, by the waiting thread and the holder of the CPU.
    pub enum WaitClass {
        /// threads of programs that waited for lower ones, for interrupts, or for an idle CPU
        System = "system",
        /// threads of programs that waited for threads of the same or a higher priority
        Priority = "priority",
        /// kernel threads
        KernelThreads = "kernel-threads",
    }
}

impl WaitClass {
    /// Class of a row or a wake-up; an unknown holder counts as the system.
    pub fn of(holder: &Word<Holder>, victims: &Word<Victims>) -> WaitClass {
        match holder.known() {
            _ if *victims == Victims::Kernel => WaitClass::KernelThreads,
            Some(Holder::Equal | Holder::Higher) => WaitClass::Priority,
            _ => WaitClass::System,
        }
    }
}

/// Totals of one CPU or one thread in one series.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitTotals {
    pub cpu: Option<Cpu>,
    pub thread: Option<WatchTask>,
    pub n: u64,
    pub missed: u64,
    pub early: u64,
    pub min_ns: Option<Nanos>,
    pub mean_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// `[lower, upper, count]`, 32 rows per octave.
    pub histogram: Vec<Bucket>,
}

/// Totals of one series and class.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesTotals {
    pub series: Word<WatchSeries>,
    pub class: Word<WaitClass>,
    pub cpus: Vec<WaitTotals>,
    pub threads: Vec<WaitTotals>,
}

/// Wake-up at its place in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacedWorst {
    /// Sum of all known parts.
    pub total_ns: Nanos,
    /// RFC 3339; `""` if the clock was not set.
    pub time: String,
    /// Place on the axis of time.
    #[serde(skip)]
    pub at: Nanos,
    #[serde(flatten)]
    pub wakeup: WorstWakeup,
}

/// Mark at its place in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedMark {
    #[serde(skip)]
    pub from: Nanos,
    #[serde(skip)]
    pub to: Nanos,
    pub time: String,
    #[serde(flatten)]
    pub mark: WatchMark,
}

impl PlacedMark {
    /// True if onbeat itself measured or loaded then.
    pub fn is_own(&self) -> bool {
        self.mark.kind == WatchMarkKind::Measure || self.mark.kind == WatchMarkKind::Load
    }
}

/// Largest T and W of one CPU in each column of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuColumns {
    pub cpu: Cpu,
    pub timer: Vec<Option<Nanos>>,
    pub wakeup: Vec<Option<Nanos>>,
}

/// Axis of time: all boots one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchAxis {
    pub from: Nanos,
    pub to: Nanos,
    /// True for CLOCK_REALTIME; false for time since the record began.
    pub wall: bool,
}

/// Summary of a record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WatchSummary {
    pub schema: &'static str,
    pub title: String,
    pub recording: String,
    /// RFC 3339; `""` if the clock was not set.
    pub from: String,
    pub to: String,
    /// Offset of the machine's clock from UTC when recording last began; null if unknown.
    pub utc_offset_s: Option<i32>,
    pub recorded_ns: Nanos,
    pub intervals: u64,
    pub boots: u64,
    pub coverage: WatchCoverage,
    pub coverage_share: Option<f64>,
    /// Worst wake-ups of the class `system`, largest first; those of the others follow.
    pub worst: Vec<PlacedWorst>,
    pub worst_by_priority: Vec<PlacedWorst>,
    pub worst_of_kernel_threads: Vec<PlacedWorst>,
    pub series: Vec<SeriesTotals>,
    pub marks: Vec<PlacedMark>,
    pub marks_dropped: u64,
    pub environments: Vec<WatchEnvironment>,
    pub losses: RecordLosses,
    pub remarks: Vec<String>,
    #[serde(skip)]
    pub axis: WatchAxis,
    #[serde(skip)]
    pub columns: Vec<CpuColumns>,
}

/// Schema of the document of a report of a record.
pub const REPORT_SCHEMA: &str = "onbeat.watch-report/1";

impl WatchSummary {
    /// Clock of the machine, with dates in all times, because a record has many days.
    pub fn clock(&self) -> MachineClock {
        MachineClock::new("", self.utc_offset_s)
    }

    /// Main series: T and W together if timers were matched, else W alone.
    pub fn main(&self) -> Option<&SeriesTotals> {
        self.of_system(WatchSeries::TimerWakeup).or_else(|| self.of_system(WatchSeries::Wakeup))
    }

    /// Series of the switch, if it was recorded.
    pub fn switch(&self) -> Option<&SeriesTotals> {
        self.of_system(WatchSeries::Switch)
    }

    fn of_system(&self, series: WatchSeries) -> Option<&SeriesTotals> {
        let mut all = self.series.iter();
        let found = all.find(|totals| totals.series == series && totals.class == WaitClass::System);
        found.filter(|totals| totals.cpus.iter().any(|cpu| cpu.n > 0))
    }
}
