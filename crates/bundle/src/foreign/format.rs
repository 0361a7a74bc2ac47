//! The record of a format: its recogniser, its reader, and its row in docs/formats.md.

use std::ops::Range;

use model::run::{Block, Run};
use model::units::Nanos;

use super::error::ImportError;
use super::source::SourceText;

/// Strength of the evidence that a text is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The rows look right, and nothing says what they are: refused without `--as`.
    Weak,
    /// The tool's own frame is there: heading, footer, command line, or names of columns.
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

/// Facts that a file need not carry, as the user gives them.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Id of the only format to be tried; rows without a frame are accepted then.
    pub format: Option<String>,
    /// The period of the measurement.
    pub interval: Option<Nanos>,
    /// Numbers without a stated unit are nanoseconds, not microseconds.
    pub nanoseconds: bool,
}

/// One result as a run.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub run: Run,
    /// Records of a second or more, where the file states times.
    pub blocks: Vec<Block>,
    /// Parts of the text that carry no number of the run, for people.
    pub remarks: Vec<String>,
}

impl From<Run> for Imported {
    fn from(run: Run) -> Imported {
        Imported { run, ..Imported::default() }
    }
}

/// Makes a run of the lines of a finding.
pub(super) type ReadFinding = fn(&SourceText, &ResultSpan, &ImportOptions) -> Result<Imported, ImportError>;

pub enum Reader {
    Run(ReadFinding),
    /// The format is recognised and not read: what serves instead.
    Refused(&'static str),
}

/// A format of another tool.
pub struct ForeignFormat {
    /// Name for `--as`.
    pub id: &'static str,
    /// The tool, and the part of it, as people call it.
    pub tool: &'static str,
    /// Versions whose output was read.
    pub versions: &'static str,
    /// The origin of that output: `run here`, or a public result.
    pub origin: &'static str,
    /// The content of a run made of it.
    pub carries: &'static str,
    /// Facts that the format does not state, though one might expect them.
    pub hides: &'static str,
    pub(super) find: fn(&SourceText) -> Vec<ResultSpan>,
    pub reader: Reader,
}
