//! Data of one line of a picture: a CPU of a run, or a whole run among others.

use std::borrow::Cow;

use super::theme::LINES;
use crate::run::probes;
use crate::totals::{largest, sum_rows};
use crate::words::{clean, span};
use model::histogram::Bucket;
use model::run::{CpuRun, Run};
use model::sort::CompactSort;
use model::units::Nanos;

/// Number of lines drawn separately when there are many; the rest are a band.
pub const WORST: usize = 4;

pub struct PlotLine<'a> {
    /// `CPU 3`, or the run's title.
    pub name: String,
    /// Core type of a CPU, kernel of a run; may be empty.
    pub detail: String,
    pub rows: Cow<'a, [Bucket]>,
    /// Histogram as a periodic task would see it, if it differs.
    pub deadline: Option<&'a [Bucket]>,
    pub min: Option<Nanos>,
    pub max: Option<Nanos>,
    /// Number of samples beyond the rows, whose values are not known.
    pub overflows: u64,
    /// Lower bound of the latency of each of these.
    pub beyond_from: Option<Nanos>,
    /// Number of samples before their time.
    pub early: u64,
    /// Noun for its samples, in the plural.
    pub counted: &'static str,
}

impl PlotLine<'_> {
    /// Name of the line with its detail and its largest value, for a legend.
    pub fn words(&self) -> String {
        let detail = if self.detail.is_empty() { String::new() } else { format!(" ({})", self.detail) };
        let held = !self.rows.is_empty() || self.overflows > 0;
        let unknown = if held { "max not known" } else { "no samples" };
        let max = self.max.map_or_else(|| unknown.into(), |max| format!("max {}", span(max)));
        format!("{}{detail}: {max}", self.name)
    }
}

/// Lines of the CPUs that have a histogram.
pub fn of_run(run: &Run) -> Vec<PlotLine<'_>> {
    let counted = probes::sample(run).1;
    run.cpus.iter().filter(|cpu| !cpu.is_summary()).map(|cpu| of_cpu(cpu, counted)).collect()
}

fn of_cpu<'a>(cpu: &'a CpuRun, counted: &'static str) -> PlotLine<'a> {
    PlotLine {
        name: cpu.name(),
        detail: clean(&cpu.core_type),
        rows: Cow::Borrowed(&cpu.histogram),
        deadline: cpu.deadline_histogram.as_deref().filter(|rows| *rows != cpu.histogram),
        min: cpu.min_ns,
        max: cpu.max_ns,
        overflows: cpu.overflows.unwrap_or(0),
        beyond_from: cpu.beyond_from().filter(|from| from.0 >= 0),
        early: early_of(&cpu.histogram),
        counted,
    }
}

/// Line per run whose CPUs all have a histogram, summed; each run comes with its title.
pub fn of_runs<'a>(runs: impl IntoIterator<Item = (&'a str, &'a Run)>) -> Vec<PlotLine<'a>> {
    let line = |(title, run): (&str, &'a Run)| {
        let cpus = &run.cpus;
        let rows = sum_rows(cpus.iter().map(|cpu| cpu.histogram.as_slice()));
        PlotLine {
            name: clean(title),
            detail: clean(&run.host.release),
            deadline: None,
            min: cpus.iter().filter_map(|cpu| cpu.min_ns).min(),
            max: largest(run),
            beyond_from: cpus.iter().filter_map(CpuRun::beyond_from).min(),
            overflows: cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.overflows.unwrap_or(0))),
            early: early_of(&rows),
            counted: probes::sample(run).1,
            rows: Cow::Owned(rows),
        }
    };
    runs.into_iter().filter(|(_, run)| run.require_histogram().is_ok()).map(line).collect()
}

/// Noun for the samples of all lines.
pub fn counted(lines: &[PlotLine]) -> &'static str {
    let first = lines.first().map_or("samples", |line| line.counted);
    if lines.iter().all(|line| line.counted == first) { first } else { "samples" }
}

fn early_of(rows: &[Bucket]) -> u64 {
    rows.iter().take_while(|row| row.upper.0 <= 0).fold(0, |sum, row| sum.saturating_add(row.count))
}

/// Indices of the lines drawn separately: all of few, the worst of many, in their order.
pub fn alone(lines: &[PlotLine]) -> Vec<usize> {
    if lines.len() <= LINES {
        return (0..lines.len()).collect();
    }
    let mut worst: Vec<usize> = (0..lines.len()).collect();
    worst.compact_sort_by_key(|&i| std::cmp::Reverse(lines[i].max));
    worst.truncate(WORST);
    worst.sort_unstable();
    worst
}

/// Least and largest value of all lines, row edges if the exact ones are not known; the least is at
/// least 1 ns, because early samples have a separate column.
pub fn extent(lines: &[PlotLine]) -> Option<(i64, i64)> {
    let end = |line: &PlotLine| line.beyond_from.max(line.rows.last().map(|row| row.upper));
    let tops = lines.iter().filter_map(|line| line.max.or_else(|| end(line)));
    let top = tops.max()?.0.max(1);
    let lows = lines.iter().flat_map(|line| {
        let exact = line.min.filter(|min| min.0 > 0);
        exact.or_else(|| line.rows.iter().find(|row| row.upper.0 > 0).map(|row| row.lower))
    });
    Some((lows.min().map_or(1, |low| low.0.clamp(1, top)), top))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn sums_keep_every_sample_and_their_order() {
        let run = fixture::early().run;
        let rows = sum_rows(run.cpus.iter().map(|cpu| cpu.histogram.as_slice()));
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), run.samples().unwrap());
        assert!(rows.windows(2).all(|pair| pair[0].upper <= pair[1].lower), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row.lower.0 < 0).count(), 1);
    }

    #[test]
    fn few_cpus_are_all_shown_and_of_many_the_worst() {
        assert_eq!(alone(&of_run(&fixture::eight().run)).len(), 8);
        let many = fixture::many().run;
        let lines = of_run(&many);
        let singles = alone(&lines);
        assert_eq!(singles.len(), WORST);
        let worst = (0..lines.len()).max_by_key(|&i| lines[i].max).unwrap();
        assert!(singles.contains(&worst));
    }
}
