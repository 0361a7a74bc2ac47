//! Record of a format: its recogniser, its reader, and its row in docs/formats.md.

use std::ops::Range;

use model::run::{Block, Run};
use model::units::Nanos;

use super::error::ImportError;
use super::source::SourceText;

/// Strength of the evidence that a text is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The rows look right, and no heading identifies them: refused without `--as`.
    Weak,
    /// The tool's frame is present: heading, footer, command line, or names of columns.
    Strong,
}

/// A result that a format finds in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSpan {
    /// Indices of its lines in [`SourceText::lines`]; all of a JSON or XML document.
    pub lines: Range<usize>,
    pub confidence: Confidence,
}

impl ResultSpan {
    pub(super) fn strong(lines: Range<usize>) -> ResultSpan {
        ResultSpan { lines, confidence: Confidence::Strong }
    }
}

/// Facts that a file need not contain, as the user gives them.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Id of the only format to try; rows without a frame are accepted then.
    pub format: Option<String>,
    /// Period of the measurement.
    pub interval: Option<Nanos>,
    /// True if numbers without a stated unit are nanoseconds, not microseconds.
    pub nanoseconds: bool,
}

/// One result as a run.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub run: Run,
    /// Records of a second or more, if the file states times.
    pub blocks: Vec<Block>,
    /// Remarks on parts of the text without a number of the run.
    pub remarks: Vec<String>,
}

impl From<Run> for Imported {
    fn from(run: Run) -> Imported {
        Imported { run, ..Imported::default() }
    }
}

/// Makes a run from the lines of a finding.
pub(super) type ReadFinding = fn(&SourceText, &ResultSpan, &ImportOptions) -> Result<Imported, ImportError>;

pub enum Reader {
    Run(ReadFinding),
    /// Recognised and not read, with an alternative.
    Refused(&'static str),
}

/// A format of another tool.
pub struct ForeignFormat {
    /// Name for `--as`.
    pub id: &'static str,
    /// Tool, and the part of it, by their usual names.
    pub tool: &'static str,
    /// Versions whose output was read.
    pub versions: &'static str,
    /// Origin of that output: `run here`, or a public result.
    pub origin: &'static str,
    /// Content of a run from it.
    pub carries: &'static str,
    /// Facts that the format does not state, contrary to expectation.
    pub hides: &'static str,
    pub(super) find: fn(&SourceText) -> Vec<ResultSpan>,
    pub reader: Reader,
}
