//! A record of months as it is shown: folded into columns, totals and short lists.

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
    /// What a wait says about whom.
    pub enum WaitClass {
        /// threads of programs that waited for lower ones, for interrupts, or for an idle CPU
        System = "system",
        /// threads of programs that waited for threads of the same or a higher priority
        Priority = "priority",
        /// threads of the kernel
        KernelThreads = "kernel-threads",
    }
}

impl WaitClass {
    /// That of a row or a wake-up; who says nothing else waited for the system.
    pub fn of(holder: &Word<Holder>, victims: &Word<Victims>) -> WaitClass {
        match holder.known() {
            _ if *victims == Victims::Kernel => WaitClass::KernelThreads,
            Some(Holder::Equal | Holder::Higher) => WaitClass::Priority,
            _ => WaitClass::System,
        }
    }
}

/// All of one CPU or one thread in one series.
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

/// All of one series and class.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesTotals {
    pub series: Word<WatchSeries>,
    pub class: Word<WaitClass>,
    pub cpus: Vec<WaitTotals>,
    pub threads: Vec<WaitTotals>,
}

/// A wake-up at its place in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacedWorst {
    /// Of all that is known of it together.
    pub total_ns: Nanos,
    /// RFC 3339; `""` where the clock was not set.
    pub time: String,
    /// Where it is on the axis of time.
    #[serde(skip)]
    pub at: Nanos,
    #[serde(flatten)]
    pub wakeup: WorstWakeup,
}

/// A mark at its place in time.
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
    /// Whether onbeat itself was at work then.
    pub fn is_own(&self) -> bool {
        self.mark.kind == WatchMarkKind::Measure || self.mark.kind == WatchMarkKind::Load
    }
}

/// The largest T and W of one CPU in each column of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuColumns {
    pub cpu: Cpu,
    pub timer: Vec<Option<Nanos>>,
    pub wakeup: Vec<Option<Nanos>>,
}

/// The axis of time: all boots one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchAxis {
    pub from: Nanos,
    pub to: Nanos,
    /// Whether it is CLOCK_REALTIME; else time since the record began.
    pub wall: bool,
}

/// The whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WatchSummary {
    pub schema: &'static str,
    pub title: String,
    pub recording: String,
    /// RFC 3339; `""` where the clock was not set.
    pub from: String,
    pub to: String,
    /// How far ahead of UTC the machine's clock was when recording last began; null where unknown.
    pub utc_offset_s: Option<i32>,
    pub recorded_ns: Nanos,
    pub intervals: u64,
    pub boots: u64,
    pub coverage: WatchCoverage,
    pub coverage_share: Option<f64>,
    /// The worst of each class, largest first.
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

/// What the document of a report of a record says it is.
pub const REPORT_SCHEMA: &str = "onbeat.watch-report/1";

impl WatchSummary {
    /// Its times as the machine's clock showed them; with their dates, because a record has many.
    pub fn clock(&self) -> MachineClock {
        MachineClock::new("", self.utc_offset_s)
    }

    /// The series that says most: T and W together where timers were matched, else W alone.
    pub fn main(&self) -> Option<&SeriesTotals> {
        self.of_system(WatchSeries::TimerWakeup).or_else(|| self.of_system(WatchSeries::Wakeup))
    }

    /// The switch itself, where it was recorded.
    pub fn switch(&self) -> Option<&SeriesTotals> {
        self.of_system(WatchSeries::Switch)
    }

    fn of_system(&self, series: WatchSeries) -> Option<&SeriesTotals> {
        let mut all = self.series.iter();
        let found = all.find(|totals| totals.series == series && totals.class == WaitClass::System);
        found.filter(|totals| totals.cpus.iter().any(|cpu| cpu.n > 0))
    }
}
