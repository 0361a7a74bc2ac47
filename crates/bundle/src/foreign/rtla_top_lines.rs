//! Lines of rtla's `top` displays, and the tables that they make.

use model::units::{Cpu, Nanos};

use super::rtla_shared::{TABLE_GAP, elapsed, is_loss, is_stop};
use super::source::{SourceText, TextLine};
use super::{THREAD_LIMIT, quoted, unit};

/// Display of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopKind {
    Timerlat,
    /// `rtla osnoise top` or `rtla hwnoise`.
    Osnoise,
}

/// Row of a CPU, or of all CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopRow {
    /// Number of the row's line in the file.
    pub line: usize,
    pub cpu: Cpu,
    pub count: u64,
    /// For timerlat `cur`, `min`, `avg`, `max` per group; for osnoise the numbers after the
    /// periods, the share of the CPU in 1e-5 percent. `None` for `-`.
    pub cells: Vec<Option<u64>>,
}

/// One update of the display.
#[derive(Clone, Debug, Default)]
pub(super) struct TopTable {
    /// Index of its first line.
    pub start: usize,
    /// Index after its last line.
    pub end: usize,
    /// Line of the columns' names, 0 before it.
    pub head: usize,
    pub elapsed: Option<Nanos>,
    pub unit: Option<Nanos>,
    /// Number of groups of latencies, or of numbers in a row of osnoise.
    pub width: usize,
    pub rows: Vec<TopRow>,
    /// Row of all CPUs, and the number of decimal digits that its count lacks.
    pub all: Option<(TopRow, u32)>,
    /// True if the rule above the row of all CPUs was present.
    pub ruled: bool,
    /// First damaged line.
    pub damage: Option<String>,
    pub loss: Option<String>,
}

/// Passes each table of the lines on, in order.
pub(super) fn scan(
    source: &SourceText,
    range: std::ops::Range<usize>,
    kind: TopKind,
    mut pass: impl FnMut(TopTable),
) {
    let mut open: Option<TopTable> = None;
    let mut emit = |table: Option<TopTable>| {
        if let Some(table) = table.filter(|table| table.head > 0) {
            pass(table);
        }
    };
    for (index, line) in (range.start..).zip(source.slice(range)) {
        let text = line.text.trim();
        if is_stop(text) || open.as_ref().is_some_and(|open| index - open.end > TABLE_GAP) {
            emit(open.take());
        }
        let begun = begun(text);
        if begun.is_some_and(|other| other != kind) {
            emit(open.take());
        }
        if begun == Some(kind) {
            emit(open.take_if(|open| open.head > 0));
            open.get_or_insert_with(|| TopTable { start: index, ..TopTable::default() });
        }
        if let Some(table) = &mut open
            && table.takes(kind, TextLine { text, ..line })
        {
            table.end = index + 1;
        }
    }
    emit(open);
}

/// Display whose head has this line.
fn begun(text: &str) -> Option<TopKind> {
    if text == "Timer Latency" || is_timerlat_time(text) || text.starts_with("CPU COUNT") {
        return Some(TopKind::Timerlat);
    }
    let is_heading = matches!(text, "Operating System Noise" | "Hardware-related Noise");
    (is_heading || is_osnoise_time(text) || text.starts_with("CPU Period")).then_some(TopKind::Osnoise)
}

fn is_timerlat_time(text: &str) -> bool {
    text.contains("|          IRQ Timer Latency (")
}

fn is_osnoise_time(text: &str) -> bool {
    text.starts_with("duration:") && text.contains("| time is in ")
}

impl TopTable {
    /// Adds the line, unless it does not belong to the table.
    fn takes(&mut self, kind: TopKind, line: TextLine) -> bool {
        let text = line.text;
        match kind {
            TopKind::Timerlat if is_timerlat_time(text) => self.take_time(line, text),
            TopKind::Osnoise if is_osnoise_time(text) => self.take_time(line, &text["duration:".len()..]),
            _ if self.head == 0 => return self.takes_head(kind, line),
            _ if is_loss(text) => self.loss = Some(text.to_owned()),
            TopKind::Timerlat if text.starts_with("---") && text.contains('|') => self.ruled = true,
            TopKind::Timerlat if text.starts_with("ALL #") => match all_row(line, self.width) {
                Some(all) => self.all = Some(all),
                None => self.damaged(line),
            },
            _ if is_row(text) && self.all.is_none() && self.rows.len() < THREAD_LIMIT => {
                match row(line, kind, self.width) {
                    Some(row) if self.rows.iter().all(|other| other.cpu != row.cpu) => self.rows.push(row),
                    _ => self.damaged(line),
                }
            }
            _ => return false,
        }
        true
    }

    fn takes_head(&mut self, kind: TopKind, line: TextLine) -> bool {
        match kind {
            TopKind::Timerlat if line.text.starts_with("CPU COUNT") => {
                let groups = line.text.split('|').skip(1);
                self.width = groups.clone().count();
                let latencies = |group: &str| group.split_ascii_whitespace().eq(["cur", "min", "avg", "max"]);
                if !(2..=3).contains(&self.width) || !groups.into_iter().all(latencies) {
                    self.damaged(line);
                }
                self.head = line.number;
            }
            TopKind::Osnoise if line.text.starts_with("CPU Period") => {
                let names = line.text.split_ascii_whitespace();
                let is_whole = names.clone().last() == Some("Thread");
                self.width = if is_whole { 10 } else { 7 };
                if !is_whole && names.last() != Some("NMI") {
                    self.damaged(line);
                }
                self.head = line.number;
            }
            _ => {
                return matches!(
                    line.text,
                    "Timer Latency" | "Operating System Noise" | "Hardware-related Noise"
                );
            }
        }
        true
    }

    fn take_time(&mut self, line: TextLine, text: &str) {
        self.elapsed = elapsed(text);
        self.unit = unit::stated(line.text).filter(|unit| [Nanos(1), Nanos::MICRO].contains(unit));
        if self.unit.is_none() {
            self.damaged(line);
        }
    }

    fn damaged(&mut self, line: TextLine) {
        self.damage.get_or_insert_with(|| {
            format!(
                "line {}: invalid {}: expected the table as rtla prints it",
                line.number,
                quoted(line.text)
            )
        });
    }
}

/// True for a line that begins as a CPU's row: its number and a count.
fn is_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let is_number = words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    is_number && (words.next().is_some_and(|word| word.starts_with('#')) || text.contains('|'))
}

fn row(line: TextLine, kind: TopKind, width: usize) -> Option<TopRow> {
    let (head, groups) = match kind {
        TopKind::Timerlat => line.text.split_once('|')?,
        TopKind::Osnoise => (line.text, ""),
    };
    let mut words = head.split_ascii_whitespace();
    let cpu = words.next()?.parse::<u32>().ok().and_then(|number| Cpu::try_from(number).ok())?;
    let count = words.next()?.strip_prefix('#')?.parse().ok()?;
    let cells = match kind {
        TopKind::Timerlat if words.next().is_some() => return None,
        TopKind::Timerlat => cells(groups, width, 4)?,
        TopKind::Osnoise => {
            words.enumerate().map(|(at, word)| noise(at, word)).collect::<Option<Vec<_>>>()?
        }
    };
    let expected = if kind == TopKind::Timerlat { 4 * width } else { width };
    (cells.len() == expected).then_some(TopRow { line: line.number, cpu, count, cells })
}

/// Number in osnoise's row; the third is a share with five digits after the point.
fn noise(at: usize, word: &str) -> Option<Option<u64>> {
    if at != 2 {
        return word.parse().ok().map(Some);
    }
    let (whole, fraction) = word.split_once('.').filter(|(_, fraction)| fraction.len() == 5)?;
    let (whole, fraction): (u64, u64) = (whole.parse().ok()?, fraction.parse().ok()?);
    whole.checked_mul(100_000)?.checked_add(fraction).map(Some)
}

/// Numbers of groups that `|` separates, `each` of a group; an empty last one is skipped.
fn cells(text: &str, groups: usize, each: usize) -> Option<Vec<Option<u64>>> {
    let mut cells = Vec::new();
    let parts: Vec<&str> = text.split('|').collect();
    let end = parts.iter().rposition(|part| !part.trim().is_empty())? + 1;
    for part in &parts[..end] {
        let words: Vec<&str> = part.split_ascii_whitespace().collect();
        if words.iter().all(|word| *word == "-") && words.len() >= each {
            cells.extend(std::iter::repeat_n(None, each));
            continue;
        }
        if words.len() != each {
            return None;
        }
        for word in words {
            cells.push(Some(word.parse().ok()?));
        }
    }
    (end == groups).then_some(cells)
}

/// Row of all CPUs: `ALL #36     e0 |`, a count without its last digits, and their number.
fn all_row(line: TextLine, groups: usize) -> Option<(TopRow, u32)> {
    let (head, rest) = line.text.split_once('|')?;
    let mut words = head.split_ascii_whitespace().skip(1);
    let count = words.next()?.strip_prefix('#')?.parse().ok()?;
    let digits = words.next()?.strip_prefix('e')?.parse().ok()?;
    let cells = cells(rest, groups, 3).filter(|_| words.next().is_none())?;
    Some((TopRow { line: line.number, cpu: Cpu(0), count, cells }, digits))
}
