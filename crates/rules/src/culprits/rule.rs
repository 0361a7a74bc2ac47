//! The record of a culprit: a cause of lost time of a task, with all knowledge about it.

use super::context::SliceContext;
use crate::knob::{EvidenceKind, Source};
use model::keyword::Word;
use model::slice::SliceKind;

/// A cause of lost time of a task, detected from events.
pub struct CulpritRule {
    /// Name of the cause, never of the cure, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// Title of a few words, lower case, no full stop: `a section with interrupts off`.
    pub title: &'static str,
    /// Appearance in a timeline.
    pub signature: &'static str,
    /// Distinction from similar culprits, and the limits of detection.
    pub detection: &'static str,
    /// Remedy, without full stop.
    pub remedy: &'static str,
    /// Kinds of slices that it may match.
    pub kinds: &'static [SliceKind],
    /// Sources, most authoritative first.
    pub sources: &'static [Source],
    /// Evidence that it costs time.
    pub evidence: EvidenceKind,
    /// Knobs that cure it; the knobs' pages link back.
    pub cured_by: &'static [&'static str],
    /// Way to provoke it, or the reason why there is no way.
    pub provoke: &'static str,
    /// Distinction of several culprits of this rule.
    pub grouping: Grouping,
    /// True if it matches any slice of its kinds, and is tried only if no other rule matches the
    /// slice.
    pub fallback: bool,
    /// Description of the match, without times; none if the slice does not match.
    pub matches: fn(&SliceContext) -> Option<String>,
    /// Spikes that match, and that do not.
    pub examples: SpikeExamples,
}

impl CulpritRule {
    /// Defaults of the fields that a record does not name; a record without words, sources or a
    /// match fails the tests.
    pub const DEFAULT: CulpritRule = CulpritRule {
        id: "",
        title: "",
        signature: "",
        detection: "",
        remedy: "",
        kinds: &[],
        sources: &[],
        evidence: EvidenceKind::Practice,
        cured_by: &[],
        provoke: "",
        grouping: Grouping::Single,
        fallback: false,
        matches: |_| None,
        examples: SpikeExamples { fires: "", silent: "" },
    };

    /// True if it may match slices of this kind.
    pub fn covers(&self, kind: &Word<SliceKind>) -> bool {
        kind.known().is_some_and(|kind| self.kinds.contains(&kind))
    }
}

/// Distinction of several culprits of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// No distinction: all slices are one culprit.
    Single,
    Function,
    /// Thread, by name.
    Thread,
    /// Interrupt, softirq or idle state, by name, and the function that it called.
    Irq,
    /// The slice's name without a rule, as the whole name of the culprit.
    OwnName,
}

/// Spikes that a rule matches or not, in lines of `word key=value ...`.
///
/// `victim comm= prio= cpu=`, `host virtual= preempt= machine=`, `integrity kind= cpu= detail=`,
/// `stolen cpu= ns=`, a slice by its kind with `ns= comm= pid= prio= function= module= irq= from=
/// asked= inherits= stack=inner<outer evidence=with_underscores`, `unexplained ns=`, and `again
/// times= every= cpus=` for repetitions of the same spike on several CPUs.
pub struct SpikeExamples {
    /// Spike that the rule must match.
    pub fires: &'static str,
    /// A similar spike that it must not match.
    pub silent: &'static str,
}
