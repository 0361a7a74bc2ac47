//! The record of a check: a mistake in a program's real-time code, with all knowledge about it.

use super::view::ProgramView;
use crate::judgement::{Judged, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;

/// A mistake in a program's real-time code, detected from outside while the program runs.
pub struct CheckRule {
    /// Name of the mistake in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// Title of a few words, lower case, no full stop: `memory that is not locked`.
    pub title: &'static str,
    /// Description: one to four sentences.
    pub description: &'static str,
    /// Reason why it costs time; failed findings contain it.
    pub rationale: &'static str,
    /// Method of detection, and its limits.
    pub detection: &'static str,
    /// Expected finding.
    pub wanted: &'static str,
    /// Change to make in the program, without full stop.
    pub fix: &'static str,
    /// The severity, unless the judgement sets another.
    pub severity: Severity,
    /// The evidence that it costs time.
    pub evidence: EvidenceKind,
    /// Sources, most authoritative first.
    pub sources: &'static [Source],
    /// Files of `/proc` and `/sys` that it reads, and events as `system:event`.
    pub reads: &'static [&'static str],
    pub judge: CheckJudge,
    /// Programs that show its verdicts, in the language of `fixture.rs`.
    pub examples: Examples,
}

/// Judge of the whole process, or of each of its real-time threads.
#[derive(Clone, Copy)]
pub enum CheckJudge {
    Process(fn(&ProgramView) -> Judged),
    Thread(fn(&ProgramView, &ProgramThread) -> Judged),
}
