//! Records of the farm as plain values: between reading bundles, the store, pages and JSON.

use model::labels::Labels;
use model::rows::{RowCounts, RowSums};
use model::units::{Cpu, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::board_settings::BoardSettings;
pub use crate::culprit_records::{CulpritDay, FarmCulprit};
pub use crate::environments::{EnvironmentRecord, EnvironmentRuns};
use crate::sent_days::SentDays;
use crate::wall_clock::DAY;

/// The length of a slot in seconds.
pub const SLOT: i64 = 300;

/// Key of histograms that may be added up: measured quantity and conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize)]
pub struct SeriesKey {
    /// `measure`, `hunt`, `probe-ipc`.
    pub series: String,
    /// Digest of interval, policy, priority and loads.
    pub plan: String,
}

/// A series that a board has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeriesOfBoard {
    #[serde(flatten)]
    pub key: SeriesKey,
    /// The conditions, for people.
    pub words: String,
    /// Days that it has samples of.
    pub days: u64,
    /// First second of the last of these; of the last of all if none has samples.
    pub last: i64,
}

/// A series with the days of a board that have maxima of five minutes: their first seconds, oldest
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesDays {
    pub key: SeriesKey,
    /// The conditions, for people.
    pub words: String,
    pub days: Vec<i64>,
}

/// A run, as lists show it; times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FarmRun {
    pub id: String,
    pub board: String,
    pub command: String,
    #[serde(flatten)]
    pub key: SeriesKey,
    /// 0, in documents null, if its files state no time.
    #[serde(serialize_with = "crate::wall_clock::null_if_zero")]
    #[schemars(with = "Option<i64>")]
    pub started: i64,
    #[schemars(with = "Option<i64>")]
    pub length_ns: Option<Nanos>,
    pub complete: bool,
    pub cpus: u64,
    pub cycles: u64,
    pub missed: Option<u64>,
    #[schemars(with = "Option<i64>")]
    pub max_ns: Option<Nanos>,
    /// The largest of its CPUs', as `run.json` has it of each; of all CPUs together it is less. Of
    /// a CPU with fewer than 10,000 wake-ups it is the maximum.
    #[schemars(with = "Option<i64>")]
    pub p9999_ns: Option<Nanos>,
    /// Reasons for which it does not count.
    pub invalid: u64,
    pub spikes: u64,
    pub release: String,
    /// The digest of its environment.
    pub environment: String,
    /// Labels given by its user.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub labels: Labels,
    /// True if it is exempt from retention.
    pub pinned: bool,
    /// Removed parts of its bundle: `blocks`, `windows`, or both separated by a blank.
    pub thinned: String,
    /// The folder that it is in.
    #[serde(skip)]
    pub place: String,
}

/// Selection of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub board: Option<String>,
    /// Names and values; a run has all of them.
    pub labels: Vec<(String, String)>,
    /// Only runs that began before this time.
    pub before: Option<i64>,
    /// Or at the same time, with an id before this one: several may begin in a second.
    pub before_run: Option<String>,
}

/// Minimum number of days with samples for an estimate of their frequency.
pub const FEW_DAYS: usize = 3;

/// A board with its values on the first page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FarmBoard {
    /// Key in its address.
    pub board: String,
    /// Displayed name.
    pub name: String,
    pub runs: u64,
    /// Start of its last run, in seconds since 1970.
    pub last: i64,
    /// First second of the last day with samples.
    pub last_day: i64,
    /// First second of the last five minutes of that day's series; 0 if none are stored.
    pub last_slot: i64,
    /// True if it has a valid token, and is expected to send.
    pub sends: bool,
    /// Creation of the token, in seconds since 1970; 0 without one.
    pub enrolled: i64,
    pub model: String,
    pub release: String,
    pub preempt: String,
    pub environment: String,
    /// Largest latency of its last 30 days with samples, and of its runs without a date, of data
    /// that count.
    #[schemars(with = "Option<i64>")]
    pub max_ns: Option<Nanos>,
    /// Its daily maxima of these days.
    pub days: Vec<DayMaximum>,
    /// First seconds of those of these days that have samples of invalid runs alone.
    #[serde(skip)]
    pub uncounted: Vec<i64>,
    /// Frequency of its data within a year; empty if each of its last 30 days has samples.
    #[serde(skip)]
    pub sent: SentDays,
    /// Properties set by users.
    #[serde(flatten)]
    pub settings: BoardSettings,
}

impl FarmBoard {
    /// Time of its last data with a time of day, a run or five minutes; 0 without any.
    pub fn last_seen(&self) -> i64 {
        self.last.max(self.last_slot)
    }

    /// First second of the last day with any data: five minutes without samples, of a recorder
    /// without wake-ups, are a sign of life.
    pub fn last_heard(&self) -> i64 {
        self.last_day.max(Tier::Day.begin(self.last_slot))
    }

    /// All days of these that have samples, oldest first.
    pub fn days_with_samples(&self) -> Vec<i64> {
        let mut all: Vec<i64> =
            self.days.iter().map(|day| day.t).chain(self.uncounted.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// Day of that largest latency, the last one of several equal ones; `None` if a run without a
    /// date has it.
    pub fn worst_day(&self) -> Option<DayMaximum> {
        let worst = self.days.iter().copied().max_by_key(|day| (day.max_ns, day.t));
        worst.filter(|day| self.max_ns.is_none_or(|max_ns| max_ns <= day.max_ns))
    }
}

/// The largest latency of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DayMaximum {
    /// Its first second.
    pub t: i64,
    #[schemars(with = "i64")]
    pub max_ns: Nanos,
}

/// Five minutes of a board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FarmSlot {
    /// Their first second.
    pub t: i64,
    pub n: u64,
    pub missed: u64,
    #[schemars(with = "Option<i64>")]
    pub max_ns: Option<Nanos>,
    #[schemars(with = "Option<u32>")]
    pub max_cpu: Option<Cpu>,
    /// Time of the largest latency, in ns since 1970.
    pub max_at: Option<i64>,
    pub culprit: String,
    pub victim: String,
    pub run: String,
    /// True if that run is invalid; set by the store for its own data.
    pub invalid: bool,
    pub cpus: Vec<SlotPeak>,
}

/// Five minutes of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotPeak {
    #[schemars(with = "u32")]
    pub cpu: Cpu,
    pub n: u64,
    pub missed: u64,
    #[schemars(with = "Option<i64>")]
    pub max_ns: Option<Nanos>,
    /// Time of the largest latency, in ns since 1970.
    pub max_at: Option<i64>,
}

/// Length of a histogram's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Slot,
    Hour,
    #[default]
    Day,
}

impl Tier {
    pub const ALL: [Tier; 3] = [Tier::Slot, Tier::Hour, Tier::Day];

    /// Its number in the store.
    pub fn number(self) -> i64 {
        match self {
            Tier::Slot => 0,
            Tier::Hour => 1,
            Tier::Day => 2,
        }
    }

    /// Parses the name in addresses.
    pub fn of_name(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().zip(["5m", "1h", "1d"]).find(|(_, known)| *known == name).map(|(tier, _)| tier)
    }

    pub fn seconds(self) -> i64 {
        match self {
            Tier::Slot => SLOT,
            Tier::Hour => 3_600,
            Tier::Day => DAY,
        }
    }

    /// The first second of the stretch that a time is in.
    pub fn begin(self, t: i64) -> i64 {
        t - t.rem_euclid(self.seconds())
    }
}

/// The histogram of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuRows {
    pub cpu: Cpu,
    pub rows: RowCounts,
}

/// The histograms of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TierRow {
    /// Its first second.
    pub t: i64,
    pub n: u64,
    pub missed: u64,
    pub max_ns: Option<Nanos>,
    pub cpus: Vec<CpuRows>,
}

impl TierRow {
    /// Adds another row, CPU by CPU.
    pub fn add(&mut self, other: &TierRow) {
        self.n = self.n.saturating_add(other.n);
        self.missed = self.missed.saturating_add(other.missed);
        self.max_ns = self.max_ns.max(other.max_ns);
        for one in &other.cpus {
            match self.cpus.iter_mut().find(|known| known.cpu == one.cpu) {
                Some(known) => {
                    let mut sums = RowSums::default();
                    sums.add_all(&known.rows);
                    sums.add_all(&one.rows);
                    known.rows = sums.counts();
                }
                None => self.cpus.push(one.clone()),
            }
        }
        self.cpus.sort_by_key(|known| known.cpu);
    }

    /// Subtracts a row that was added before, and drops CPUs without samples; the maximum stays.
    pub fn take_out(&mut self, other: &TierRow) {
        self.n = self.n.saturating_sub(other.n);
        self.missed = self.missed.saturating_sub(other.missed);
        for one in &other.cpus {
            let Some(known) = self.cpus.iter_mut().find(|known| known.cpu == one.cpu) else { continue };
            let gone: std::collections::BTreeMap<usize, u64> = one.rows.iter().collect();
            let left = |(row, count): (usize, u64)| {
                (row, count.saturating_sub(gone.get(&row).copied().unwrap_or_default()))
            };
            known.rows = RowCounts::of_rows(known.rows.iter().map(left));
        }
        self.cpus.retain(|known| !known.rows.is_empty());
    }
}

/// A culprit in the record of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CulpritOfRun {
    pub fingerprint: String,
    pub rule: String,
    pub name: String,
    pub kind: String,
    pub spikes: u64,
    pub total_ns: Nanos,
    pub remedy: String,
}

/// Runs of a kind of machine with a kernel, or days on which recorders were on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelRecord {
    pub model: String,
    pub release: String,
    pub preempt: String,
    pub series: String,
    pub boards: u64,
    pub runs: u64,
    /// Total length of the runs.
    pub length_ns: u64,
    /// p99.99 of each run that has one.
    pub p9999_ns: Vec<Nanos>,
    pub max_ns: Option<Nanos>,
    /// The run with the largest latency, and its board.
    pub worst_run: String,
    pub worst_board: String,
    /// The latest runs, for a comparison.
    pub latest: Vec<String>,
    /// Plan of each, with the number of its CPUs.
    pub latest_plans: Vec<String>,
    /// For recorders: their days, and the one with the largest latency and its plan, in seconds
    /// since 1970.
    pub days: u64,
    pub worst_day: i64,
    pub worst_plan: String,
}

impl KernelRecord {
    /// Runs of a side of a comparison.
    pub const LATEST: usize = 10;

    /// True for recordings without runs.
    pub fn is_recorded(&self) -> bool {
        self.runs == 0
    }

    /// True if its latest runs were measured under several conditions.
    pub fn is_mixed(&self) -> bool {
        self.latest_plans.iter().any(|plan| Some(plan) != self.latest_plans.first())
    }

    /// Median of the runs' p99.99.
    pub fn median_p9999(&self) -> Option<Nanos> {
        let mut all = self.p9999_ns.clone();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

/// A refused request of a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardRefusal {
    pub board: String,
    /// The last time, in seconds since 1970.
    pub t: i64,
    /// The last request.
    pub request: String,
    pub detail: String,
    /// Number of times that it was refused for this reason.
    pub count: u64,
}

/// All data that the farm extracts from a bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BundleRecord {
    pub run: FarmRun,
    /// Displayed name of the board.
    pub board_name: String,
    pub plan_words: String,
    pub environment: EnvironmentRecord,
    pub slots: Vec<FarmSlot>,
    /// All of the run.
    pub whole: TierRow,
    /// Histograms by slots; empty if the run lacks them.
    pub rows: Vec<TierRow>,
    pub culprits: Vec<CulpritOfRun>,
    /// SHA-256 of its `run.json`.
    pub digest: Vec<u8>,
}

impl BundleRecord {
    /// Its histograms and the tiers that they count for: a run without rows of five minutes has one
    /// histogram, which counts for the day on which it began.
    pub fn counted(&self) -> (&'static [Tier], &[TierRow]) {
        match self.rows.as_slice() {
            [] => (&[Tier::Day], std::slice::from_ref(&self.whole)),
            rows => (&Tier::ALL, rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(counts: &[(u16, usize, u64)]) -> TierRow {
        let mut row = TierRow::default();
        for &(cpu, at, count) in counts {
            let rows = RowCounts::of_rows([(at, count)]);
            let one = CpuRows { cpu: Cpu(cpu.into()), rows };
            row.add(&TierRow {
                n: count,
                max_ns: Some(Nanos(at as i64)),
                cpus: vec![one],
                ..TierRow::default()
            });
        }
        row
    }

    proptest! {
        #[test]
        fn what_is_taken_out_is_what_was_added(
            a in prop::collection::vec((0u16..4, 0usize..900, 1u64..1000), 0..40),
            b in prop::collection::vec((0u16..4, 0usize..900, 1u64..1000), 0..40),
        ) {
            let (one, other) = (row(&a), row(&b));
            let mut both = one.clone();
            both.add(&other);
            prop_assert_eq!(both.n, one.n + other.n);
            let total: u64 = both.cpus.iter().map(|cpu| cpu.rows.total()).sum();
            prop_assert_eq!(total, both.n);
            both.take_out(&other);
            prop_assert_eq!(&both.cpus, &one.cpus);
            prop_assert_eq!(both.n, one.n);
        }
    }

    #[test]
    fn a_run_without_a_date_has_none_in_documents() {
        let started = |started| serde_json::to_value(FarmRun { started, ..FarmRun::default() }).unwrap();
        assert!(started(0)["started"].is_null() && started(7)["started"] == 7);
    }

    #[test]
    fn a_stretch_begins_at_its_multiple_before_1970_too() {
        assert_eq!((Tier::Slot.begin(601), Tier::Day.begin(-1)), (600, -86_400));
        assert_eq!((Tier::of_name("1h"), Tier::of_name("1w")), (Some(Tier::Hour), None));
    }
}
