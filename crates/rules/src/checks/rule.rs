//! A check's record: a mistake in how a program is written for real time, with everything that is
//! known of it.

use super::view::ProgramView;
use crate::judgement::{Judged, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;

/// A mistake in how a program is written for real time, seen from outside while it runs.
pub struct CheckRule {
    /// Names the mistake, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// A few words, lower case, no full stop: `memory that is not locked`.
    pub title: &'static str,
    /// What it is: one to four sentences.
    pub description: &'static str,
    /// Why it costs time; failed findings contain it.
    pub rationale: &'static str,
    /// How onbeat detects it, and what it cannot see.
    pub detection: &'static str,
    /// What should be found.
    pub wanted: &'static str,
    /// What to change in the program, without full stop.
    pub fix: &'static str,
    /// The severity, unless the judgement sets another.
    pub severity: Severity,
    /// The evidence that it costs time.
    pub evidence: EvidenceKind,
    /// Where it is written, most authoritative first.
    pub sources: &'static [Source],
    /// What it reads: files of `/proc` and `/sys`, and events as `system:event`.
    pub reads: &'static [&'static str],
    pub judge: CheckJudge,
    /// Programs that show what it does; the language is explained in `fixture.rs`.
    pub examples: Examples,
}

/// What is judged: the process, or each of its real-time threads.
#[derive(Clone, Copy)]
pub enum CheckJudge {
    Process(fn(&ProgramView) -> Judged),
    Thread(fn(&ProgramView, &ProgramThread) -> Judged),
}
