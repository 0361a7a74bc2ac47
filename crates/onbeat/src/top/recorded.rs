//! A second of the recorder as rows, and all seconds since a reset as an interval of a record.

use std::collections::BTreeMap;

use bundle::record::merge::{add_row, largest};
use model::keyword::Word;
use model::rows::RowSums;
use model::units::Nanos;
use model::watch::{Holder, SeriesRows, WatchCoverage, WatchRow, WatchSeries, WorstWakeup};
use recorder::{DrainedEpoch, WorstFound};

use super::{LatencyTally, RowKey, RowTick, TopTick};

/// Largest wake-up of each row, if it is larger than all before. One of a thread is taken from its
/// CPU's, which has stacks, if it is the same.
pub fn new_worst(
    each: Vec<WorstFound>,
    max_of: impl Fn(RowKey) -> Option<Nanos>,
) -> Vec<(RowKey, WorstFound)> {
    let mut best: BTreeMap<RowKey, WorstFound> = BTreeMap::new();
    let is_larger = |known: Option<&WorstFound>, total: Nanos| {
        known.is_none_or(|known| {
            // With the same latency the one on a CPU.
            (known.wakeup.total(), known.wakeup.cpu.is_some()) < (total, true)
        })
    };
    for found in each {
        let total = found.wakeup.total();
        let tid = found.wakeup.victim.tid.and_then(|tid| u32::try_from(tid).ok());
        let keys = [found.wakeup.cpu.map(RowKey::Cpu), tid.map(RowKey::Thread)];
        for key in keys.into_iter().flatten() {
            let is_new = max_of(key).is_none_or(|max| total > max);
            if is_new && is_larger(best.get(&key), total) {
                best.insert(key, with_holder(found.clone()));
            }
        }
    }
    best.into_iter().collect()
}

/// The histograms of a thread do not tell holders apart: the priorities do.
fn with_holder(mut found: WorstFound) -> WorstFound {
    let wakeup = &mut found.wakeup;
    if let (true, Some(own), Some(other)) =
        (wakeup.holder == Word::default(), wakeup.victim.prio, wakeup.previous.prio)
    {
        wakeup.holder = match other.cmp(&own) {
            std::cmp::Ordering::Greater => Holder::Lower,
            std::cmp::Ordering::Equal => Holder::Equal,
            std::cmp::Ordering::Less => Holder::Higher,
        }
        .into();
    }
    found
}

/// Rows of a second; `worst` are the new largest wake-ups with their culprits.
pub fn tick_of(drained: &DrainedEpoch, worst: &[(RowKey, WorstWakeup)]) -> TopTick {
    let mut rows: BTreeMap<RowKey, RowTick> = BTreeMap::new();
    let mut scratch = RowSums::default();
    for covered in &drained.threads {
        let key = RowKey::Thread(covered.tid);
        let row = rows.entry(key).or_insert_with(|| RowTick::new(key));
        row.wakeups = covered.recorded;
        (row.priority, row.cpu) = (Some(covered.priority), Some(covered.cpu));
    }
    for SeriesRows { series, cpus, threads } in &drained.series {
        for counted in cpus.iter().chain(threads) {
            let Some(key) = key_of(counted) else { continue };
            let row = rows.entry(key).or_insert_with(|| RowTick::new(key));
            let tally = match series {
                WatchSeries::Wakeup => &mut row.wait,
                WatchSeries::TimerWakeup => &mut row.both,
                WatchSeries::Timer | WatchSeries::Switch | WatchSeries::TimerWakeupSwitch => continue,
            };
            tally.add(&tally_of(counted), &mut scratch);
            if let Some(thread) = &counted.thread {
                row.name = thread.tid.map(|tid| format!("{}:{tid}", thread.comm));
            }
        }
    }
    for row in rows.values_mut() {
        row.wakeups = row.wakeups.max(row.wait.n);
        row.worst = worst.iter().find(|(key, _)| *key == row.key).map(|(_, worst)| worst.clone());
    }
    let counts = &drained.counts;
    TopTick {
        span: drained.span_ns,
        rows: rows.into_values().collect(),
        lost: counts.lost_events + counts.lost_spans + drained.coverage.skipped.unwrap_or(0),
        ended: Vec::new(),
    }
}

fn key_of(row: &WatchRow) -> Option<RowKey> {
    let tid = row.thread.as_ref().and_then(|thread| thread.tid).and_then(|tid| u32::try_from(tid).ok());
    row.cpu.map(RowKey::Cpu).or(tid.map(RowKey::Thread))
}

fn tally_of(row: &WatchRow) -> LatencyTally {
    LatencyTally {
        n: row.n,
        sum: i128::from(row.sum_ns.0),
        min: row.min_ns,
        max: row.max_ns,
        rows: row.hist.clone(),
    }
}

/// Sums of a record since the last reset.
#[derive(Clone, Debug, Default)]
pub struct RecordedSums {
    begun: Option<Nanos>,
    pub until: Nanos,
    pub wall_offset: Nanos,
    series: Vec<SeriesRows>,
    coverage: WatchCoverage,
    scratch: RowSums,
}

impl RecordedSums {
    /// Adds a second.
    pub fn add(&mut self, drained: DrainedEpoch) {
        self.begun.get_or_insert(drained.mono_ns);
        self.until = drained.mono_ns + drained.span_ns;
        self.wall_offset = drained.wall_offset;
        self.coverage.add(&drained.coverage);
        for next in drained.series {
            if !self.series.iter().any(|known| known.series == next.series) {
                let (cpus, threads) = (Vec::new(), Vec::new());
                self.series.push(SeriesRows { series: next.series, cpus, threads });
            }
            let Some(sum) = self.series.iter_mut().find(|known| known.series == next.series) else {
                continue;
            };
            next.cpus.into_iter().for_each(|row| add_row(&mut sum.cpus, row, &mut self.scratch));
            next.threads.into_iter().for_each(|row| add_row(&mut sum.threads, row, &mut self.scratch));
        }
    }

    /// Forgets the rows of an ended thread, so that memory does not grow with those that come and
    /// go.
    pub fn forget(&mut self, tid: u32) {
        let is_other = |row: &WatchRow| key_of(row) != Some(RowKey::Thread(tid));
        self.series.iter_mut().for_each(|series| series.threads.retain(is_other));
    }

    /// The sums as one interval; `None` before the first second.
    pub fn interval(&self, worst: Vec<WorstWakeup>) -> Option<model::watch::WatchInterval> {
        let mono_ns = self.begun?;
        let of = |mut worst: WorstWakeup| {
            let series =
                if worst.timer_ns.is_some() { WatchSeries::TimerWakeup } else { WatchSeries::Wakeup };
            worst.worst_of = vec![series.into()];
            worst.wall_ns = worst.mono_ns + self.wall_offset;
            worst
        };
        let worst: Vec<WorstWakeup> = worst.into_iter().map(of).collect();
        Some(model::watch::WatchInterval {
            mono_ns,
            span_ns: self.until - mono_ns,
            wall_ns: mono_ns + self.wall_offset,
            series: self.series.clone(),
            worst: largest(&worst),
            coverage: self.coverage,
            ..model::watch::WatchInterval::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::rows::{RowCounts, row_of};
    use model::units::Cpu;
    use model::watch::{Victims, WatchTask};

    fn counted(cpu: Option<u32>, tid: Option<i32>, holder: Holder, ns: i64) -> WatchRow {
        WatchRow {
            cpu: cpu.map(Cpu),
            thread: tid.map(|tid| WatchTask {
                comm: "control".into(),
                tid: Some(tid),
                ..WatchTask::default()
            }),
            holder: holder.into(),
            victims: Victims::User.into(),
            n: 1,
            sum_ns: Nanos(ns),
            min_ns: Some(Nanos(ns)),
            max_ns: Some(Nanos(ns)),
            hist: RowCounts::of_rows([(row_of(Nanos(ns)), 1)]),
            ..WatchRow::default()
        }
    }

    fn second(ns: i64) -> DrainedEpoch {
        let rows = |series| SeriesRows {
            series,
            cpus: vec![
                counted(Some(1), None, Holder::Lower, ns),
                counted(Some(1), None, Holder::Higher, 2 * ns),
            ],
            threads: vec![counted(None, Some(7), Holder::Lower, 2 * ns)],
        };
        DrainedEpoch {
            span_ns: Nanos::SECOND,
            series: vec![rows(WatchSeries::Wakeup), rows(WatchSeries::TimerWakeup)],
            threads: vec![recorder::Covered { tid: 9, recorded: 4, ..recorder::Covered::default() }],
            ..DrainedEpoch::default()
        }
    }

    #[test]
    fn classes_of_a_cpu_are_one_row_and_unchosen_threads_have_their_rate() {
        let tick = tick_of(&second(500), &[]);
        let of = |key| tick.rows.iter().find(|row| row.key == key).expect("a row");
        let cpu = of(RowKey::Cpu(Cpu(1)));
        assert_eq!((cpu.both.n, cpu.wait.n, cpu.wakeups), (2, 2, 2));
        assert_eq!((cpu.both.min, cpu.both.max, cpu.missed), (Some(Nanos(500)), Some(Nanos(1_000)), None));
        let thread = of(RowKey::Thread(7));
        assert_eq!((thread.name.as_deref(), thread.wakeups), (Some("control:7"), 1));
        let other = of(RowKey::Thread(9));
        assert_eq!((other.wakeups, other.both.n, other.wait.n), (4, 0, 0));
    }

    #[test]
    fn only_a_new_largest_is_named_and_that_of_the_cpu_is_preferred() {
        let found = |cpu: Option<u32>, wait: i64| WorstFound {
            wakeup: WorstWakeup {
                cpu: cpu.map(Cpu),
                wakeup_ns: Some(Nanos(wait)),
                victim: WatchTask { tid: Some(7), prio: Some(49), ..WatchTask::default() },
                previous: WatchTask { tid: Some(3), prio: Some(9), ..WatchTask::default() },
                ..WorstWakeup::default()
            },
            ..WorstFound::default()
        };
        let each = vec![found(None, 50), found(Some(1), 50), found(Some(0), 20)];
        let worst = new_worst(each.clone(), |_| None);
        let keys: Vec<_> = worst.iter().map(|(key, found)| (*key, found.wakeup.cpu)).collect();
        let [zero, one] = [Cpu(0), Cpu(1)];
        assert_eq!(
            keys,
            [(RowKey::Cpu(zero), Some(zero)), (RowKey::Cpu(one), Some(one)), (RowKey::Thread(7), Some(one)),]
        );
        assert_eq!(worst[2].1.wakeup.holder, Holder::Higher);
        assert!(new_worst(each, |_| Some(Nanos(50))).is_empty());
    }

    #[test]
    fn seconds_add_up_to_an_interval() {
        let mut sums = RecordedSums::default();
        assert_eq!(sums.interval(Vec::new()), None);
        for nth in 0..3 {
            sums.add(DrainedEpoch { mono_ns: Nanos(nth * Nanos::SECOND.0), ..second(500) });
        }
        let worst = WorstWakeup { wakeup_ns: Some(Nanos(9)), ..WorstWakeup::default() };
        let interval = sums.interval(vec![worst.clone(), worst]).expect("three seconds");
        assert_eq!(interval.span_ns, Nanos(3 * Nanos::SECOND.0));
        assert_eq!(interval.series[0].cpus.iter().map(|row| row.n).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(interval.worst.len(), 1);
        sums.forget(7);
        assert!(sums.interval(Vec::new()).expect("still").series[0].threads.is_empty());
    }
}
