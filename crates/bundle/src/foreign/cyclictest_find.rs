//! Blocks of cyclictest's output in a text: their begins and ends.

use super::cyclictest_line::{self as line, Line};
use super::format::{Confidence, ResultSpan};
use super::source::{DocumentShape, SourceText};
use super::thread_totals::ThreadTotals;
use super::{command_line, command_words};

/// Parts of a block that have been seen so far.
#[derive(Clone, Debug, Default)]
struct Open {
    start: usize,
    end: usize,
    rows: usize,
    footers: u32,
    /// Each thread's last `T:` line.
    threads: std::collections::BTreeMap<usize, ThreadTotals>,
    samples: usize,
    /// `Thread 0 Interval:` of `-v`.
    announced: bool,
    heading: bool,
    /// True if a `T:` line was cut or belongs to another tool.
    unread: bool,
    /// True if the cut line is cyclictest's: signaltest's has no `I:`, cyclicdeadline's no `P:`.
    cut: bool,
}

impl Open {
    fn has_result(&self) -> bool {
        self.rows > 0 || self.footers > 0 || !self.threads.is_empty() || self.samples > 0
    }

    /// True for a line that cannot belong to the block, but begins another.
    fn is_ended_by(&self, line: &Line) -> bool {
        let begins = matches!(line, Line::IdleHeld | Line::Heading | Line::Policy(..));
        if self.unread && !self.has_result() && begins {
            return true;
        }
        match line {
            Line::IdleHeld | Line::Heading | Line::ThreadInterval(..) | Line::ThreadCpu(..) => {
                self.rows > 0
                    || self.footers > 0
                    || self.samples > 0
                    || matches!(line, Line::IdleHeld) && self.has_result()
            }
            Line::Row(..) => self.footers > 0,
            Line::Total(_) => self.footers & 1 != 0,
            Line::Min(_) => self.footers & 2 != 0,
            Line::Max(_) => self.footers & 4 != 0,
            Line::Summary(thread, summary) => {
                self.threads.get(thread).is_some_and(|last| !last.goes_on_to(&summary.totals()))
                    || self.footers > 0 && self.rows > 0
            }
            _ => false,
        }
    }

    fn take(&mut self, index: usize, line: &Line) {
        match line {
            Line::Row(..) => self.rows += 1,
            Line::Total(_) => self.footers |= 1,
            Line::Min(_) => self.footers |= 2,
            Line::Max(_) => self.footers |= 4,
            Line::Avg(_) | Line::Overflows(_) | Line::Smis(_) | Line::OverflowCycles(..) => self.footers |= 8,
            Line::Summary(thread, summary) => {
                self.threads.insert(*thread, summary.totals());
            }
            Line::Sample(..) => self.samples += 1,
            Line::ThreadInterval(..) => self.announced = true,
            Line::Heading => self.heading = true,
            Line::IdleHeld
            | Line::Policy(..)
            | Line::ThreadCpu(..)
            | Line::Spike(..)
            | Line::Break
            | Line::Frame => {}
            Line::Comment | Line::Other => return,
        }
        self.end = index + 1;
    }

    fn finding(&self) -> Option<ResultSpan> {
        // Minima alone are not a result.
        let framed = self.footers & 4 != 0 || self.heading && self.rows > 0;
        let named = framed || self.cut || !self.threads.is_empty() || self.samples > 0 && self.announced;
        let confidence = if named { Confidence::Strong } else { Confidence::Weak };
        let alone = self.rows > 0 || self.samples > 0;
        (named || alone).then_some(ResultSpan { lines: self.start..self.end, confidence })
    }
}

/// The blocks of cyclictest's output in a text.
pub(super) fn find(source: &SourceText) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut open: Option<Open> = None;
    for (index, text) in source.lines().enumerate() {
        // A command that follows a result begins another.
        if let Some(ended) =
            open.take_if(|open| open.has_result() && command_line::within(text.text).is_some())
        {
            findings.extend(ended.finding());
        }
        let Some(line) = parsed(text.text) else {
            // A damaged line of the tool belongs to the result, which is refused for it.
            let is_line = text.text.starts_with("T:");
            let is_own = is_line && [" P:", " I:"].iter().all(|label| text.text.contains(label));
            if is_own {
                open.get_or_insert_with(|| Open { start: index, ..Open::default() });
            }
            if let Some(open) = open.as_mut().filter(|_| is_line) {
                open.unread = true;
                if open.has_result() || is_own {
                    (open.end, open.cut) = (index + 1, open.cut || is_own);
                }
            }
            continue;
        };
        if matches!(line, Line::Comment | Line::Other) {
            continue;
        }
        if let Some(ended) = open.take_if(|open| open.is_ended_by(&line)) {
            findings.extend(ended.finding());
        }
        open.get_or_insert_with(|| Open { start: index, ..Open::default() }).take(index, &line);
    }
    findings.extend(open.and_then(|open| open.finding()));
    findings
}

/// Content of a line; `None` for a damaged line of the tool, which is refused when read.
fn parsed(text: &str) -> Option<Line> {
    line::parse(within_prompt(text)).ok()
}

/// Part of a line that cyclictest printed, after a command typed into the same line.
pub(super) fn within_prompt(text: &str) -> &str {
    match text.find("# /dev/cpu_dma_latency").filter(|_| !text.starts_with("T:")) {
        Some(at) => &text[at..],
        None => text,
    }
}

/// Command line before a block or in its first line, from a shell or a script's trace.
pub(super) fn command_before(source: &SourceText, start: usize) -> Option<&str> {
    command_words::before(source, start + 1, command_line::within)
}
