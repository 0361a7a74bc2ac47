//! The record of a knob: a setting that can be judged, with all knowledge about it.

use serde::Serialize;

use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

/// A setting that can be judged.
pub struct Knob {
    /// Name of the setting in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// Title of a few words, lower case, no full stop: `real-time throttling`.
    pub title: &'static str,
    /// Description: one to four sentences.
    pub description: &'static str,
    /// Reason why it affects latency; failed findings contain it.
    pub rationale: &'static str,
    /// Method of detection, and its limits.
    pub detection: &'static str,
    /// Costs and risks of changing it.
    pub side_effects: &'static str,
    /// Expected value, unless the judgement is more specific.
    pub wanted: &'static str,
    /// Remedy, unless the judgement is more specific: changes as data ([`crate::change`]), or
    /// words.
    pub fix: fn() -> Remedy,
    /// The severity, unless the judgement sets another.
    pub severity: Severity,
    /// The evidence that it affects latency.
    pub evidence: EvidenceKind,
    /// Point that experts dispute, and the measurement that settles it; empty for none.
    pub disputed: &'static str,
    /// Lifetime of a change, as follows from the usual remedy unless that is only advice.
    pub persistence: Persistence,
    /// Reason why `onbeat tune` does not set it, without a full stop; empty if it does, on machines
    /// where it can be set.
    pub unsettable: &'static str,
    /// File to which `RULE=VALUE` writes a value, as a pattern of [`crate::controls`]; empty if the
    /// rule has none.
    pub sets: &'static str,
    /// Sources, most authoritative first.
    pub sources: &'static [Source],
    /// Kinds of slices of a spike that it causes; empty if none.
    pub cures: &'static [SliceKind],
    /// Knobs that have to be set before this one, and undone after it.
    pub after: &'static [&'static str],
    /// Knobs that it must not be combined with.
    pub conflicts: &'static [&'static str],
    /// Patterns of the files that it reads (see [`facts::texts`]).
    pub reads: &'static [&'static str],
    /// Other facts that it uses: the kernel's files that they come from, for the documentation.
    pub facts: &'static [&'static str],
    /// Programs that it looks for, by name as in the kernel.
    pub programs: &'static [&'static str],
    pub judge: fn(&MachineView) -> Judged,
    /// Machines that show its verdicts.
    pub examples: Examples,
}

impl Knob {
    /// Defaults of the fields that a record does not name: a new field is added here and in the
    /// records that use it.
    ///
    /// Severity and evidence claim the least; a record without words, sources or a judge fails the
    /// tests.
    pub const DEFAULT: Knob = Knob {
        id: "",
        title: "",
        description: "",
        rationale: "",
        detection: "",
        side_effects: "",
        wanted: "",
        fix: Remedy::default,
        severity: Severity::Info,
        evidence: EvidenceKind::Practice,
        disputed: "",
        persistence: Persistence::Runtime,
        unsettable: "",
        sets: "",
        sources: &[],
        cures: &[],
        after: &[],
        conflicts: &[],
        reads: &[],
        facts: &[],
        programs: &[],
        judge: |_| Err(Judgement::unknown("this rule has no judge")),
        examples: Examples { fires: "", silent: "", unknown: "" },
    };
}

/// Changes to a well-set machine (`crates/rules/src/base`) that show what a rule does.
///
/// A line is `/path: text`, `| more text`, `/path refused`, `/path absent` (with all below it),
/// `CONFIG_A=y`, `cmdline + word`, `cmdline - word`, `program + NAME` (it runs), `guest PID NAME
/// CPUS` with `vcpu TID CPUS other` or `vcpu TID CPUS fifo PRIORITY` behind it, `--profile NAME` or
/// `--cpus LIST`.
pub struct Examples {
    /// Edits after which it fails.
    pub fires: &'static str,
    /// Edits after which it passes; none if the unchanged machine passes.
    pub silent: &'static str,
    /// Edits after which the outcome is unknown.
    pub unknown: &'static str,
}

/// A place where something is documented.
pub struct Source {
    /// Title of the document, and the place in it.
    pub title: &'static str,
    /// Address of the document.
    pub url: &'static str,
}

/// The evidence that a setting affects latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceKind {
    /// Stated by the documentation of the kernel or of the program concerned.
    Documented,
    /// Read in the source.
    Source,
    /// Seen on a real kernel.
    Observed,
    /// Established practice: measure before relying on it.
    Practice,
}
