//! Runs within a text of Xenomai's `latency` and EVL's `latmus`, which print the same table.

use super::cobalt_line::{CobaltLine, parse};
use super::format::{Confidence, ResultSpan};
use super::source::{DocumentShape, SourceText};

/// Tool that printed a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TableMaker {
    #[default]
    Xenomai,
    Evl,
}

/// Lines of a run that have been seen so far.
#[derive(Default)]
struct Open {
    start: usize,
    end: usize,
    maker: TableMaker,
    framed: bool,
    rows: bool,
    total: bool,
    /// The header and the cells of `latmus -g`.
    extremes: u32,
    header: bool,
    last_time: u64,
}

impl Open {
    fn has_result(&self) -> bool {
        self.rows || self.total || self.extremes > 0
    }

    /// True if the line cannot belong to it, but begins another.
    fn is_ended_by(&self, line: &CobaltLine) -> bool {
        match line {
            CobaltLine::Period(_) | CobaltLine::WarmUp(_) | CobaltLine::Mode | CobaltLine::Unit => {
                self.has_result()
            }
            CobaltLine::Time(time, _) => self.total || self.extremes > 0 || *time < self.last_time,
            CobaltLine::Columns | CobaltLine::Row { .. } | CobaltLine::Total(..) | CobaltLine::Bucket(..) => {
                self.total || self.extremes > 0
            }
            CobaltLine::Header(name, _) => self.total || *name == "test started on" && self.header,
            _ => false,
        }
    }

    fn take(&mut self, index: usize, line: &CobaltLine) {
        match line {
            CobaltLine::Period(_) | CobaltLine::Columns => self.framed = true,
            CobaltLine::WarmUp(cpu) if cpu.is_some() => self.maker = TableMaker::Evl,
            CobaltLine::Time(time, context) => {
                (self.framed, self.last_time) = (true, *time);
                if context.contains("CPU") {
                    self.maker = TableMaker::Evl;
                }
            }
            CobaltLine::Row { .. } => self.rows = true,
            CobaltLine::Total(..) => self.total = true,
            CobaltLine::Header(name, _) => {
                self.header = true;
                let extreme = ["min latency", "max latency"].iter().position(|extreme| extreme == name);
                self.extremes |= extreme.map_or(0, |at| 1 << at);
                if *name == "libevl version" {
                    (self.framed, self.maker) = (true, TableMaker::Evl);
                }
            }
            CobaltLine::Cell(..) if self.extremes == 0 => return,
            CobaltLine::Other => return,
            _ => {}
        }
        self.end = index + 1;
    }

    fn finding(self, maker: TableMaker) -> Option<ResultSpan> {
        let confidence = if self.framed { Confidence::Strong } else { Confidence::Weak };
        let is_wanted = self.maker == maker && self.has_result();
        is_wanted.then_some(ResultSpan { lines: self.start..self.end, confidence })
    }
}

/// Finds the runs of a text that this maker printed.
pub(super) fn find(source: &SourceText, maker: TableMaker) -> Vec<ResultSpan> {
    let mut findings = Vec::new();
    let mut open: Option<Open> = None;
    for (index, text) in source.lines().enumerate().filter(|_| source.shape == DocumentShape::Text) {
        // A damaged line belongs to the tool: it is refused when it is read.
        let Ok(line) = parse(text.text) else {
            open.iter_mut().for_each(|open| open.end = index + 1);
            continue;
        };
        if matches!(line, CobaltLine::Other) || open.is_none() && matches!(line, CobaltLine::Cell(..)) {
            continue;
        }
        if let Some(ended) = open.take_if(|open| open.is_ended_by(&line)) {
            findings.extend(ended.finding(maker));
        }
        open.get_or_insert_with(|| Open { start: index, end: index, ..Open::default() }).take(index, &line);
    }
    findings.extend(open.and_then(|open| open.finding(maker)));
    findings
}
