//! Intervals added up to hours, hours to days: counts are added, extremes and their names kept.
//! One group of lines is in memory at a time.

use std::io;

use host::RecordDisk;
use model::keyword::Word;
use model::rows::RowSums;
use model::units::Nanos;
use model::watch::{TOP, WatchEnvironment, WatchRow, WatchRun, WatchSeries, WorstWakeup};

use super::lines::{EnvironmentLine, HeaderLine, RowsLine, WorstLine, add_worst};
use super::sections::{SectionLine, SectionReader, SectionWriter};
use model::record::RecordTier;

/// Maximum number of marks in a line.
const MARKS: usize = 64;

/// Outcome of merging a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Number of lines that were read.
    pub lines: u64,
    /// Number of lines that were written.
    pub output_lines: u64,
    /// Number of lines that could not be read.
    pub unread: u64,
    /// Number of sections with a wrong checksum or a cut.
    pub damaged: u64,
}

/// A line that others can be added to.
trait Summable: Sized + serde::Serialize + serde::de::DeserializeOwned {
    fn at(&self) -> &super::lines::LineSpan;
    fn add(&mut self, next: Self, sums: &mut RowSums);
}

impl Summable for RowsLine {
    fn at(&self) -> &super::lines::LineSpan {
        &self.at
    }

    fn add(&mut self, next: RowsLine, sums: &mut RowSums) {
        self.at.add(&next.at);
        next.cpus.into_iter().for_each(|row| add_row(&mut self.cpus, row, sums));
        next.threads.into_iter().for_each(|row| add_row(&mut self.threads, row, sums));
    }
}

impl Summable for WorstLine {
    fn at(&self) -> &super::lines::LineSpan {
        &self.at
    }

    fn add(&mut self, next: WorstLine, _: &mut RowSums) {
        self.at.add(&next.at);
        self.intervals += next.intervals;
        self.coverage.add(&next.coverage);
        self.worst.extend(next.worst);
        self.worst = largest(&self.worst);
        self.marks.extend(next.marks);
        self.marks_dropped += next.marks_dropped + self.marks.len().saturating_sub(MARKS) as u64;
        self.marks.truncate(MARKS);
    }
}

/// Adds a row to that of the same CPU or thread, holder and victims.
pub fn add_row(rows: &mut Vec<WatchRow>, next: WatchRow, sums: &mut RowSums) {
    let whose = |row: &WatchRow| {
        let thread = row.thread.as_ref().map(|thread| (thread.tid, thread.comm.clone()));
        (row.cpu, thread, row.holder.clone(), row.victims.clone(), row.layout.clone())
    };
    let key = whose(&next);
    let Some(row) = rows.iter_mut().find(|row| row.cpu == next.cpu && whose(row) == key) else {
        rows.push(next);
        return;
    };
    row.n = row.n.saturating_add(next.n);
    row.missed = row.missed.saturating_add(next.missed);
    row.early = row.early.saturating_add(next.early);
    row.sum_ns = Nanos(row.sum_ns.0.saturating_add(next.sum_ns.0));
    row.min_ns = [row.min_ns, next.min_ns].into_iter().flatten().min();
    let mut top: Vec<Nanos> =
        row.max_ns.iter().chain(&row.top_ns).chain(&next.max_ns).chain(&next.top_ns).copied().collect();
    top.sort_unstable_by(|a, b| b.cmp(a));
    row.top_ns = top.into_iter().skip(1).take(TOP).collect();
    if next.max_ns > row.max_ns {
        row.max_ns = next.max_ns;
        row.max_mono_ns = next.max_mono_ns;
        row.victim = next.victim;
        row.culprit = next.culprit;
    }
    sums.clear();
    sums.add_all(&row.hist);
    sums.add_all(&next.hist);
    row.hist = sums.counts();
}

/// Largest wake-ups of each series, holder and kind of victims.
pub fn largest(all: &[WorstWakeup]) -> Vec<WorstWakeup> {
    type Key<'a> = (&'a str, &'a str, &'a str);
    let mut best: Vec<(Key, Option<Nanos>, usize)> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        for series in &one.worst_of {
            // The thread that held the CPU before has no part in the switch.
            let holder = if *series == WatchSeries::Switch { "" } else { one.holder.as_str() };
            let key = (series.as_str(), holder, one.victims.as_str());
            let value = series.known().and_then(|series| one.value(series));
            match best.iter_mut().find(|known| known.0 == key) {
                Some(known) if known.1 >= value => {}
                Some(known) => *known = (key, value, at),
                None => best.push((key, value, at)),
            }
        }
    }
    let mut worst = Vec::new();
    for ((series, ..), _, at) in &best {
        add_worst(&mut worst, &WorstWakeup { worst_of: vec![Word::from(*series)], ..all[*at].clone() });
    }
    worst
}

/// Sum of lines in progress.
struct Sum<'a, 'b, D, L> {
    tier: RecordTier,
    to: &'b mut SectionWriter<'a, D>,
    header: HeaderLine,
    written: Option<HeaderLine>,
    /// Environments that are in this section.
    stated: Vec<WatchEnvironment>,
    group: Option<L>,
    sums: RowSums,
    counts: MergeCounts,
}

impl<D: RecordDisk, L: Summable> Sum<'_, '_, D, L> {
    fn flush(&mut self) -> io::Result<()> {
        let Some(line) = self.group.take() else { return Ok(()) };
        let header =
            HeaderLine { span_ns: self.tier.span(), env: line.at().env.clone(), ..self.header.clone() };
        if self.written.as_ref() != Some(&header) {
            self.to.json(&header)?;
            self.written = Some(header);
        }
        self.counts.output_lines += 1;
        self.to.json(&line)
    }

    fn line(&mut self, line: L) -> io::Result<()> {
        self.counts.lines += 1;
        let period = |line: &L| line.at().mono_ns.0.div_euclid(self.tier.span().0.max(1));
        let with = self
            .group
            .as_ref()
            .is_some_and(|group| period(group) == period(&line) && group.at().env == line.at().env);
        match &mut self.group {
            Some(group) if with => group.add(line, &mut self.sums),
            _ => {
                self.flush()?;
                self.group = Some(line);
            }
        }
        Ok(())
    }

    /// Adds a line of any kind.
    fn take(&mut self, line: &[u8]) -> io::Result<()> {
        let parsed = if line.starts_with(b"{\"schema\"") {
            serde_json::from_slice(line).map(|header| self.header(header))
        } else if line.starts_with(b"{\"environment\"") {
            serde_json::from_slice(line).map(|environment| self.environment(environment))
        } else {
            serde_json::from_slice(line).map(|line| self.line(line))
        };
        match parsed {
            Ok(outcome) => outcome,
            Err(_) => {
                self.counts.unread += 1;
                // The following lines are of an unknown boot, and not of the one before.
                let lost = HeaderLine { run: WatchRun::default(), ..self.header.clone() };
                if line.starts_with(b"{\"schema\"") { self.header(lost) } else { Ok(()) }
            }
        }
    }

    fn header(&mut self, header: HeaderLine) -> io::Result<()> {
        if (&header.run, &header.series) != (&self.header.run, &self.header.series) {
            self.flush()?;
        }
        self.header = header;
        Ok(())
    }

    fn environment(&mut self, line: EnvironmentLine) -> io::Result<()> {
        if !self.stated.contains(&line.environment) {
            self.to.json(&line)?;
            self.stated.push(line.environment);
        }
        Ok(())
    }
}

fn merge<'r, D: RecordDisk, L: Summable>(
    from: impl Iterator<Item = SectionReader<'r>>,
    tier: RecordTier,
    to: &mut SectionWriter<'_, D>,
) -> io::Result<MergeCounts> {
    let mut sum: Sum<D, L> = Sum {
        tier,
        to,
        header: HeaderLine::default(),
        written: None,
        stated: Vec::new(),
        group: None,
        sums: RowSums::default(),
        counts: MergeCounts::default(),
    };
    for mut sections in from {
        while let Some(next) = sections.next_line()? {
            match next {
                SectionLine::Line(line) => sum.take(line)?,
                SectionLine::Intact => {}
                SectionLine::Changed | SectionLine::Cut => sum.counts.damaged += 1,
            }
        }
    }
    sum.flush()?;
    Ok(sum.counts)
}

/// Adds up the rows of one series.
pub fn merge_rows<'r, D: RecordDisk>(
    from: impl Iterator<Item = SectionReader<'r>>,
    tier: RecordTier,
    to: &mut SectionWriter<'_, D>,
) -> io::Result<MergeCounts> {
    merge::<D, RowsLine>(from, tier, to)
}

/// Adds up the other lines.
pub fn merge_worst<'r, D: RecordDisk>(
    from: impl Iterator<Item = SectionReader<'r>>,
    tier: RecordTier,
    to: &mut SectionWriter<'_, D>,
) -> io::Result<MergeCounts> {
    merge::<D, WorstLine>(from, tier, to)
}
