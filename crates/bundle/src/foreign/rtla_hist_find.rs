//! Lines of rtla's histograms, and the blocks of them in a text.

use model::units::Cpu;
use model::vocabulary::Quantity;

use super::THREAD_LIMIT;
use super::format::ResultSpan;
use super::rtla_shared::{TABLE_GAP, is_loss, is_stop};
use super::source::{DocumentShape, SourceText};

/// Table of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RtlaTable {
    Timerlat,
    Osnoise,
    /// A table without names of columns, or without an index.
    Bare,
}

/// A column of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RtlaColumn {
    pub quantity: Quantity,
    pub cpu: Cpu,
}

/// Names of the summary's lines, in order.
pub(super) const LABELS: [&str; 4] = ["count", "min", "avg", "max"];

/// A line of a histogram.
#[derive(Debug, PartialEq)]
pub(super) enum HistLine<'a> {
    Heading(RtlaTable),
    Unit(&'a str),
    Elapsed(&'a str),
    /// The columns, and true if the rows have an index.
    Columns(Vec<RtlaColumn>, bool),
    /// Name and numbers of `over:`, `count:` to `max:`, or `ALL:`.
    Labelled(&'a str, &'a str),
    Loss(&'a str),
    Stop,
    /// A line that begins with a digit.
    Row(&'a str),
    Other(&'a str),
}

/// The content of a line.
pub(super) fn parse(line: &str) -> HistLine<'_> {
    let text = line.trim();
    if is_loss(text) {
        return HistLine::Loss(text);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return HistLine::Row(text);
    }
    if let Some(comment) = text.strip_prefix("# ") {
        return match comment.trim() {
            "RTLA timerlat histogram" => HistLine::Heading(RtlaTable::Timerlat),
            "RTLA osnoise histogram" => HistLine::Heading(RtlaTable::Osnoise),
            comment if comment.starts_with("Time unit is ") => HistLine::Unit(comment),
            comment => match comment.strip_prefix("Duration:") {
                Some(time) => HistLine::Elapsed(time),
                None => HistLine::Other(text),
            },
        };
    }
    if let Some((name, numbers)) = text.split_once(':')
        && (name == "over" || name == "ALL" || LABELS.contains(&name))
    {
        return HistLine::Labelled(name, numbers);
    }
    if is_stop(text) {
        return HistLine::Stop;
    }
    columns(text).unwrap_or(HistLine::Other(text))
}

/// Names of the columns: `Index   IRQ-000   Thr-000`, without the first word with `--no-index`.
fn columns(text: &str) -> Option<HistLine<'_>> {
    let named = text.strip_prefix("Index").filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let words = named.unwrap_or(text).split_ascii_whitespace();
    let mut columns = Vec::new();
    for word in words {
        if columns.len() >= 3 * THREAD_LIMIT {
            return None;
        }
        columns.push(column(word)?);
    }
    (named.is_some() || !columns.is_empty()).then_some(HistLine::Columns(columns, named.is_some()))
}

fn column(word: &str) -> Option<RtlaColumn> {
    let (kind, number) = word.split_once('-')?;
    let quantity = match kind {
        "IRQ" => Quantity::Irq,
        "Thr" => Quantity::Wakeup,
        "Usr" => Quantity::User,
        "CPU" => Quantity::Gap,
        _ => return None,
    };
    let is_number = number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    let cpu = number.parse::<u32>().ok().filter(|_| is_number)?;
    Cpu::try_from(cpu).ok().map(|cpu| RtlaColumn { quantity, cpu })
}

/// Place of a labelled line in a block that has reached `step`: 1 `over:`, 2 to 5 the summary, 6
/// `ALL:`, 7 to 10 its summary. `None` if it does not belong there.
pub(super) fn next_step(step: u8, name: &str) -> Option<u8> {
    let next = match name {
        "over" => 1,
        "ALL" => 6,
        name => {
            let label = LABELS.iter().position(|label| *label == name)? as u8;
            if step >= 6 { 7 + label } else { 2 + label }
        }
    };
    (next > step && (step > 0 || next == 1)).then_some(next)
}

/// Number of words of a text.
fn words(text: &str) -> usize {
    text.split_ascii_whitespace().count()
}

/// A block that is being read.
#[derive(Debug, Default)]
struct OpenHist {
    start: usize,
    end: usize,
    heading: Option<RtlaTable>,
    /// Number of columns, their table, and true if the rows have an index.
    columns: Option<(usize, RtlaTable)>,
    /// Number of different quantities.
    kinds: usize,
    step: u8,
}

impl OpenHist {
    fn at(index: usize) -> OpenHist {
        OpenHist { start: index, end: index + 1, ..OpenHist::default() }
    }

    /// Table, once it is identified as one of rtla's.
    fn table(&self) -> Option<RtlaTable> {
        self.columns.map(|columns| columns.1).or(self.heading)
    }

    /// Adds the line, if it is the block's next one.
    fn takes(&mut self, index: usize, line: &HistLine) -> bool {
        let Some((count, table)) = self.columns else {
            return matches!(line, HistLine::Unit(_) | HistLine::Elapsed(_));
        };
        match line {
            HistLine::Row(text) => {
                self.step == 0 && words(text) == count + usize::from(table != RtlaTable::Bare)
            }
            HistLine::Labelled(name, numbers) => {
                let found = words(numbers);
                // Without any sample osnoise prints single zeros.
                let fits = match *name {
                    "ALL" => found == self.kinds || table == RtlaTable::Bare,
                    _ if self.step >= 6 => found == self.kinds || table == RtlaTable::Bare,
                    _ => found == count || found == 1 && table == RtlaTable::Osnoise,
                };
                // A directly following one belongs to the block, and is refused if it is damaged.
                let next = next_step(self.step, name).filter(|_| fits || index == self.end);
                self.step = next.unwrap_or(self.step);
                next.is_some()
            }
            HistLine::Loss(_) => self.step > 0,
            _ => false,
        }
    }

    fn set_columns(&mut self, index: usize, columns: &[RtlaColumn], indexed: bool) {
        let is_osnoise = columns
            .first()
            .map_or(self.heading == Some(RtlaTable::Osnoise), |column| column.quantity == Quantity::Gap);
        let table = match (indexed, is_osnoise) {
            (false, _) => RtlaTable::Bare,
            (true, true) => RtlaTable::Osnoise,
            (true, false) => RtlaTable::Timerlat,
        };
        self.columns = Some((columns.len(), table));
        let has = |quantity| columns.iter().any(|column| column.quantity == quantity);
        self.kinds =
            [Quantity::Irq, Quantity::Wakeup, Quantity::User].into_iter().filter(|&kind| has(kind)).count();
        self.end = index + 1;
    }
}

/// Start and number of words of the last rows.
#[derive(Debug, Default)]
struct Rows {
    start: usize,
    words: usize,
}

impl Rows {
    fn pass(&mut self, index: usize, line: &HistLine) {
        let count = match line {
            HistLine::Row(text) if text.split_ascii_whitespace().all(|word| word.parse::<u64>().is_ok()) => {
                words(text)
            }
            _ => 0,
        };
        if count != self.words {
            *self = Rows { start: index, words: count };
        }
    }
}

/// Finds the blocks of this table in a text.
pub(super) fn find(source: &SourceText, wanted: RtlaTable) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut blocks: Vec<OpenHist> = Vec::new();
    let mut open: Option<OpenHist> = None;
    let mut rows = Rows::default();
    for (index, line) in source.lines().enumerate() {
        let line = parse(line.text);
        if open.as_ref().is_some_and(|open| index - open.end > TABLE_GAP) {
            blocks.extend(open.take());
        }
        match &line {
            HistLine::Heading(table) => {
                blocks.extend(open.replace(OpenHist { heading: Some(*table), ..OpenHist::at(index) }));
            }
            HistLine::Columns(columns, indexed) => {
                blocks.extend(open.take_if(|open| open.columns.is_some()));
                // A single word is not a frame.
                if open.is_some() || !columns.is_empty() {
                    open.get_or_insert_with(|| OpenHist::at(index)).set_columns(index, columns, *indexed);
                }
            }
            HistLine::Stop => blocks.extend(open.take()),
            line if open.as_mut().is_some_and(|open| open.takes(index, line)) => {
                open.iter_mut().for_each(|open| open.end = index + 1);
            }
            HistLine::Unit(_) | HistLine::Elapsed(_) => {
                blocks.extend(open.replace(OpenHist::at(index)));
            }
            HistLine::Labelled("over", numbers) if rows.words > 1 && words(numbers) + 1 == rows.words => {
                blocks.extend(open.take());
                let columns = Some((rows.words - 1, RtlaTable::Bare));
                open = Some(OpenHist { columns, step: 1, end: index + 1, ..OpenHist::at(rows.start) });
            }
            _ => {}
        }
        rows.pass(index, &line);
    }
    blocks.extend(open);
    let own = blocks.iter().filter(|block| block.table() == Some(wanted));
    own.map(|block| ResultSpan::strong(block.start..block.end)).collect()
}
