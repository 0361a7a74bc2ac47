//! A stored histogram as lines of the pictures of runs: one per CPU.

use std::borrow::Cow;

use model::histogram::{Bucket, quantile};
use model::rows::{EARLY_ROW, row_edges};
use model::units::{Cpu, Nanos};
use report::plot::line::PlotLine;

use crate::records::{CpuRows, TierRow};

/// A CPU's samples, with its exact largest latency if known.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuLine {
    pub cpu: Cpu,
    pub n: u64,
    pub early: u64,
    pub max_ns: Option<Nanos>,
    pub rows: Vec<Bucket>,
}

impl CpuLine {
    /// Lines of a histogram; `max` returns a CPU's largest latency.
    pub fn all(of: &TierRow, max: impl Fn(Cpu) -> Option<Nanos>) -> Vec<CpuLine> {
        let line = |one: &CpuRows| CpuLine {
            cpu: one.cpu,
            n: one.rows.total(),
            early: one.rows.iter().filter(|(row, _)| *row == EARLY_ROW).map(|(_, count)| count).sum(),
            max_ns: max(one.cpu),
            rows: one.rows.iter().map(|(row, count)| bucket(row, count)).collect(),
        };
        of.cpus.iter().map(line).collect()
    }

    /// Line for a picture.
    pub fn plot(&self) -> PlotLine<'_> {
        PlotLine {
            name: format!("CPU {}", self.cpu),
            detail: String::new(),
            rows: Cow::Borrowed(&self.rows),
            deadline: None,
            min: None,
            max: self.max_ns,
            overflows: 0,
            beyond_from: None,
            early: self.early,
            counted: "wake-ups",
        }
    }

    /// A quantile of its wake-ups, given in millionths, at most a row's width too large.
    pub fn quantile(&self, per_million: u64) -> Option<Nanos> {
        quantile(&self.rows, self.max_ns, per_million)
    }
}

fn bucket(row: usize, count: u64) -> Bucket {
    let (lower, upper) = row_edges(row);
    Bucket { lower, upper, count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::rows::{RowCounts, row_of};
    use report::plot::latency;
    use report::plot::svg::Size;
    use report::plot::theme::PAPER;

    #[test]
    fn each_cpu_is_a_line_with_its_exact_maximum() {
        let rows =
            RowCounts::of_rows([(EARLY_ROW, 2), (row_of(Nanos(8_000)), 997), (row_of(Nanos(90_123)), 1)]);
        let cpus = vec![
            CpuRows { cpu: Cpu(0), rows },
            CpuRows { cpu: Cpu(3), rows: RowCounts::of_rows([(row_of(Nanos(5_000)), 9)]) },
        ];
        let of = TierRow { t: 300, n: 1_009, cpus, ..TierRow::default() };
        let lines = CpuLine::all(&of, |cpu| (cpu == Cpu(0)).then_some(Nanos(90_123)));
        assert_eq!((lines[0].n, lines[0].early, lines[1].max_ns), (1_000, 2, None));
        assert_eq!(lines[0].quantile(1_000_000), Some(Nanos(90_123)));
        let median = lines[0].quantile(500_000).unwrap().0;
        assert!((8_000..8_300).contains(&median), "{median}");
        let plots: Vec<PlotLine> = lines.iter().map(CpuLine::plot).collect();
        let text = latency::draw(&plots, None, &[], Size::Wide, &PAPER).body.into_string();
        assert!(text.contains("CPU 0: 90.1 us") && text.contains("CPU 3") && !text.contains("NaN"), "{text}");
    }
}
