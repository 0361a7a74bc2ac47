//! A culprit's record: a way in which time is taken from a task, with everything that is known of
//! it.

use super::context::SliceContext;
use crate::knob::{EvidenceKind, Source};
use model::keyword::Word;
use model::slice::SliceKind;

/// A way in which time is taken from a task, detected from events.
pub struct CulpritRule {
    /// Names what is found, never the cure, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// A few words, lower case, no full stop: `a section with interrupts off`.
    pub title: &'static str,
    /// What it looks like in a timeline.
    pub signature: &'static str,
    /// How it is distinguished from its neighbours, and what cannot be seen.
    pub detection: &'static str,
    /// What to do, without full stop.
    pub remedy: &'static str,
    /// The kinds of slices that it may know.
    pub kinds: &'static [SliceKind],
    /// Where it is written, most authoritative first.
    pub sources: &'static [Source],
    /// How it is known that it costs time.
    pub evidence: EvidenceKind,
    /// Knobs that cure it; the knobs' pages link back.
    pub cured_by: &'static [&'static str],
    /// What provokes it, or why nothing can.
    pub provoke: &'static str,
    /// What makes two culprits of one rule.
    pub grouping: Grouping,
    /// Whether it matches the kind of slice alone, and is tried only if no rule matches the slice
    /// by name.
    pub fallback: bool,
    /// What matched, for people, without times; nothing if it is not this.
    pub matches: fn(&SliceContext) -> Option<String>,
    /// Spikes that show what it does.
    pub examples: SpikeExamples,
}

impl CulpritRule {
    /// The fields that a record does not name; a record without words, sources or a match fails the
    /// tests.
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

    /// Whether it may know slices of this kind.
    pub fn covers(&self, kind: &Word<SliceKind>) -> bool {
        kind.known().is_some_and(|kind| self.kinds.contains(&kind))
    }
}

/// What makes two culprits of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Nothing: all slices are one culprit.
    Single,
    Function,
    /// Another thread, by name.
    Thread,
    /// Another interrupt, softirq or idle state, by name, and the function that it called.
    Irq,
    /// The name that the slice has without a rule, which is the culprit's whole name.
    OwnName,
}

/// Spikes that show what a rule does, in lines of `word key=value ...`.
///
/// `victim comm= prio= cpu=`, `host virtual= preempt= machine=`, `integrity kind= cpu= detail=`,
/// `stolen cpu= ns=`, a slice by its kind with `ns= comm= pid= prio= function= module= irq= from=
/// asked= inherits= stack=inner<outer evidence=with_underscores`, `unexplained ns=`, and `again
/// times= every= cpus=` for the same spike over and over, on several CPUs.
pub struct SpikeExamples {
    /// In this one it fires.
    pub fires: &'static str,
    /// A similar example in which it must not match.
    pub silent: &'static str,
}
