//! A record of `onbeat watch` as its report shows it: its boots on one time axis, its lines folded
//! into columns, totals and lists of the worst.

mod boots;

use std::path::Path;

use boots::{PlacedBoot, place};
use bundle::record::lines::{RowsLine, WorstLine};
use bundle::record::read::{RecordItem, RecordReader};
use host::RecordFolder;
use model::error::{Exit, Failure, Result};
use model::histogram::{Bucket, mean};
use model::rows::{EARLY_ROW, RowSums, row_edges};
use model::sort::CompactSort;
use model::text::{quoted, several};
use model::units::{Cpu, Nanos};
use model::wall_time::wall_time;
use model::watch::{
    WatchEnvironment, WatchMark, WatchMarkKind, WatchRow, WatchSeries, WatchTask, WorstWakeup,
};
use report::watch::summary::{
    CpuColumns, PlacedMark, PlacedWorst, REPORT_SCHEMA, SeriesTotals, WaitClass, WaitTotals, WatchAxis,
    WatchSummary,
};

/// Columns of the picture over time: two pixels each.
const COLUMNS: usize = 412;
/// Number of the worst wake-ups of each class in a report.
const WORST: usize = 200;
/// Number of marks in a report.
const MARKS: usize = 2_000;
/// Number of CPUs and threads in a report.
const ROWS_KEPT: usize = 1_024;
/// Number of the latest marks among which a run's mark is continued.
const RECENT: usize = 64;
/// The start of a run has a resolution of 10 ms.
const SAME_BEGIN: Nanos = Nanos(20_000_000);
/// Reads a record; unreadable parts become remarks.
pub fn record(path: &Path) -> Result<WatchSummary> {
    let mut reader = RecordReader::open_folder(path)?;
    let failed = |error: &std::io::Error| {
        Failure::of_call(
            format!("cannot read {}", quoted(path)),
            error,
            Exit::Usage,
            "expected a record of `onbeat watch`",
        )
    };
    let mut fold = Fold::new(&mut reader).map_err(|error| failed(&error))?;
    reader.each_item(|item| fold.item(item)).map_err(|error| failed(&error))?;
    for series in WatchSeries::ALL {
        let read = reader.each_row(*series, |_, run, line| fold.rows(*series, &run.boot, line));
        read.map_err(|error| failed(&error))?;
    }
    let mut summary = fold.finish();
    if let Some(manifest) = reader.manifest() {
        summary.losses = manifest.losses.clone();
        summary.recording.clone_from(&manifest.recording);
    }
    let name = path
        .file_name()
        .map_or_else(|| summary.recording.clone(), |name| name.to_string_lossy().into_owned());
    summary.title = name;
    summary.remarks.append(&mut reader.remarks);
    Ok(summary)
}

/// Sums while a record is read.
struct Fold {
    boots: Vec<PlacedBoot>,
    summary: WatchSummary,
    totals: Vec<(WatchSeries, WaitClass, Vec<TotalsBeingMade>)>,
    columns: usize,
    rows_dropped: u64,
}

/// Totals of one CPU or thread, in progress.
struct TotalsBeingMade {
    totals: WaitTotals,
    sum: i128,
    rows: RowSums,
}

impl Fold {
    /// Reads once which boots there are.
    fn new(reader: &mut RecordReader<RecordFolder>) -> std::io::Result<Fold> {
        let mut boots: Vec<PlacedBoot> = Vec::new();
        let mut summary = WatchSummary { schema: REPORT_SCHEMA, ..WatchSummary::default() };
        reader.each_item(|item| {
            let RecordItem::Worst(_, run, line) = item else { return };
            summary.intervals += line.intervals;
            summary.utc_offset_s = run.utc_offset_s.or(summary.utc_offset_s);
            summary.recorded_ns = Nanos(summary.recorded_ns.0.saturating_add(line.at.span_ns.0));
            summary.coverage.add(&line.coverage);
            summary.marks_dropped += line.marks_dropped;
            let offset = line.at.wall_ns.0.saturating_sub(line.at.mono_ns.0);
            match boots.iter_mut().find(|boot| boot.id == run.boot) {
                Some(boot) => {
                    boot.end = boot.end.max(line.at.end());
                    boot.first = boot.first.min(line.at.mono_ns);
                    boot.offset = offset;
                }
                None => boots.push(PlacedBoot {
                    id: run.boot,
                    first: line.at.mono_ns,
                    end: line.at.end(),
                    offset,
                    shift: 0,
                }),
            }
        })?;
        summary.boots = boots.len() as u64;
        summary.coverage_share = summary.coverage.share();
        summary.axis = place(&mut boots, &mut summary.remarks);
        if summary.axis.wall {
            summary.from = wall_time(summary.axis.from);
            summary.to = wall_time(summary.axis.to);
        }
        let columns = COLUMNS.min(summary.intervals.max(1) as usize);
        Ok(Fold { boots, summary, totals: Vec::new(), columns, rows_dropped: 0 })
    }

    fn boot(&self, id: &str) -> Option<&PlacedBoot> {
        self.boots.iter().find(|boot| boot.id == id)
    }

    /// Position on the axis, and time by RFC 3339 if known.
    fn place(&self, boot: &str, mono: Nanos) -> (Nanos, String) {
        let Some(boot) = self.boot(boot) else { return (self.summary.axis.from, String::new()) };
        (Nanos(mono.0.saturating_add(boot.shift)), boot.time(mono))
    }

    fn item(&mut self, item: RecordItem) {
        match item {
            RecordItem::Environment(environment) => self.environment(*environment),
            RecordItem::Worst(_, run, line) => {
                let WorstLine { worst, marks, .. } = *line;
                worst.into_iter().for_each(|worst| self.worst(&run.boot, worst));
                marks.into_iter().for_each(|mark| self.mark(&run.boot, mark));
            }
        }
    }

    fn environment(&mut self, environment: WatchEnvironment) {
        let known = &mut self.summary.environments;
        if !known.contains(&environment) && known.len() < MARKS {
            known.push(environment);
        }
    }

    fn worst(&mut self, boot: &str, wakeup: WorstWakeup) {
        let class = WaitClass::of(&wakeup.holder, &wakeup.victims);
        let (at, time) = self.place(boot, wakeup.mono_ns);
        if let (WaitClass::System, Some(cpu)) = (class, wakeup.cpu) {
            let column = self.column(at);
            self.raise(cpu, WatchSeries::Timer, column, column, wakeup.timer_ns);
            self.raise(cpu, WatchSeries::Wakeup, column, column, wakeup.wakeup_ns);
        }
        let list = match class {
            WaitClass::System => &mut self.summary.worst,
            WaitClass::Priority => &mut self.summary.worst_by_priority,
            WaitClass::KernelThreads => &mut self.summary.worst_of_kernel_threads,
        };
        list.push(PlacedWorst { total_ns: wakeup.total(), time, at, wakeup });
        if list.len() > 2 * WORST {
            cut(list);
        }
    }

    fn mark(&mut self, boot: &str, mark: WatchMark) {
        let ((from, time), (to, _)) =
            (self.place(boot, mark.from_mono_ns), self.place(boot, mark.to_mono_ns));
        // A run is marked in each interval up to that; if the watch was restarted since, its start
        // is read anew.
        let goes_on = |known: &&mut PlacedMark| {
            let apart = known.from.0.saturating_sub(from.0).saturating_abs();
            let same =
                |a: &WatchMark, b: &WatchMark| (&a.kind, &a.detail, a.cpu) == (&b.kind, &b.detail, b.cpu);
            apart < SAME_BEGIN.0 && known.is_own() && same(&known.mark, &mark)
        };
        if let Some(known) = self.summary.marks.iter_mut().rev().take(RECENT).find(goes_on) {
            known.to = known.to.max(to);
            known.mark.to_mono_ns = known.mark.to_mono_ns.max(mark.to_mono_ns);
        } else if self.summary.marks.len() < MARKS {
            self.summary.marks.push(PlacedMark { from, to, time, mark });
        } else {
            self.summary.marks_dropped += 1;
        }
    }

    fn rows(&mut self, series: WatchSeries, boot: &str, line: RowsLine) {
        let (from, _) = self.place(boot, line.at.mono_ns);
        let (to, _) = self.place(boot, Nanos(line.at.end().0.saturating_sub(1)));
        let (first, last) = (self.column(from), self.column(to));
        for row in line.cpus.iter().chain(&line.threads) {
            let class = WaitClass::of(&row.holder, &row.victims);
            if let (WaitClass::System, Some(cpu), None) = (class, row.cpu, &row.thread) {
                self.raise(cpu, series, first, last, row.max_ns);
            }
            self.total(series, class, row);
        }
    }

    fn total(&mut self, series: WatchSeries, class: WaitClass, row: &WatchRow) {
        let at = self.totals.iter().position(|known| (known.0, known.1) == (series, class));
        let at = at.unwrap_or_else(|| {
            self.totals.push((series, class, Vec::new()));
            self.totals.len() - 1
        });
        let all = &mut self.totals[at].2;
        let name = |thread: &Option<WatchTask>| thread.as_ref().map(|task| (task.tid, task.comm.clone()));
        let same = |known: &TotalsBeingMade| {
            known.totals.cpu == row.cpu && name(&known.totals.thread) == name(&row.thread)
        };
        let place = match all.iter().position(same) {
            Some(place) => place,
            None if all.len() >= ROWS_KEPT => {
                self.rows_dropped += 1;
                return;
            }
            None => {
                let totals = WaitTotals { cpu: row.cpu, thread: row.thread.clone(), ..WaitTotals::default() };
                all.push(TotalsBeingMade { totals, sum: 0, rows: RowSums::default() });
                all.len() - 1
            }
        };
        let sums = &mut all[place];
        sums.totals.n = sums.totals.n.saturating_add(row.n);
        sums.totals.missed = sums.totals.missed.saturating_add(row.missed);
        sums.totals.early = sums.totals.early.saturating_add(row.early);
        sums.totals.min_ns = [sums.totals.min_ns, row.min_ns].into_iter().flatten().min();
        sums.totals.max_ns = sums.totals.max_ns.max(row.max_ns);
        sums.sum += i128::from(row.sum_ns.0);
        sums.rows.add_all(&row.hist);
    }

    fn column(&self, at: Nanos) -> usize {
        let WatchAxis { from, to, .. } = self.summary.axis;
        let (since, length) = (i128::from(at.0) - i128::from(from.0), i128::from(to.0) - i128::from(from.0));
        let column = since.max(0) * self.columns as i128 / length.max(1);
        (column as usize).min(self.columns - 1)
    }

    /// Raises the largest of a CPU in some columns.
    fn raise(&mut self, cpu: Cpu, series: WatchSeries, first: usize, last: usize, max: Option<Nanos>) {
        let Some(max) = max else { return };
        let known = &mut self.summary.columns;
        let at = match known.binary_search_by_key(&cpu, |columns| columns.cpu) {
            Ok(at) => at,
            Err(_) if known.len() >= ROWS_KEPT => return,
            Err(at) => {
                let none = vec![None; self.columns];
                known.insert(at, CpuColumns { cpu, timer: none.clone(), wakeup: none });
                at
            }
        };
        let columns = match series {
            WatchSeries::Timer => &mut known[at].timer,
            WatchSeries::Wakeup => &mut known[at].wakeup,
            _ => return,
        };
        columns[first..=last.max(first)].iter_mut().for_each(|column| *column = (*column).max(Some(max)));
    }

    fn finish(mut self) -> WatchSummary {
        let mut summary = self.summary;
        for boot in self.boots.iter().skip(1) {
            let at = Nanos(boot.first.0.saturating_add(boot.shift));
            let mark = WatchMark { kind: WatchMarkKind::Boot.into(), ..WatchMark::default() };
            summary.marks.push(PlacedMark { from: at, to: at, time: boot.time(boot.first), mark });
        }
        cut(&mut summary.worst);
        cut(&mut summary.worst_by_priority);
        cut(&mut summary.worst_of_kernel_threads);
        summary.marks.compact_sort_by_key(|mark| mark.from);
        self.totals.compact_sort_by_key(|(series, class, _)| (*class, *series));
        for (series, class, sums) in self.totals {
            let mut all: Vec<WaitTotals> = sums.into_iter().map(TotalsBeingMade::finish).collect();
            all.compact_sort_by_key(|totals| {
                (totals.cpu, totals.thread.as_ref().and_then(|thread| thread.tid))
            });
            let (threads, cpus) = all.into_iter().partition(|totals| totals.thread.is_some());
            summary.series.push(SeriesTotals { series: series.into(), class: class.into(), cpus, threads });
        }
        if self.rows_dropped > 0 {
            summary.remarks.push(format!(
                "{} of more than {ROWS_KEPT} CPUs and threads are not included in any total",
                several(self.rows_dropped, "histogram", "histograms")
            ));
        }
        summary
    }
}

impl TotalsBeingMade {
    fn finish(self) -> WaitTotals {
        let min = self.totals.min_ns.unwrap_or_default();
        let bucket = |(row, count): (usize, u64)| {
            let (lower, upper) = row_edges(row);
            Bucket::new(if row == EARLY_ROW { min } else { lower }, upper, count)
        };
        let n = self.totals.n;
        WaitTotals {
            mean_ns: (n > 0).then(|| mean(self.sum, n)),
            histogram: self.rows.iter().map(bucket).collect(),
            ..self.totals
        }
    }
}

/// The largest first, and not too many.
fn cut(list: &mut Vec<PlacedWorst>) {
    list.compact_sort_by(|a, b| (b.total_ns, a.at).cmp(&(a.total_ns, b.at)));
    list.truncate(WORST);
}
