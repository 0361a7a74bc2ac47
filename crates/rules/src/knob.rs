//! A knob's record: a setting that can be judged, with everything that is known of it.

use serde::Serialize;

use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

/// A setting that can be judged.
pub struct Knob {
    /// Names the setting, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// A few words, lower case, no full stop: `real-time throttling`.
    pub title: &'static str,
    /// What it is: one to four sentences.
    pub description: &'static str,
    /// Why it affects latency; failed findings contain it.
    pub rationale: &'static str,
    /// How onbeat detects it, and what it cannot see.
    pub detection: &'static str,
    /// What changing it costs, and what can go wrong.
    pub side_effects: &'static str,
    /// What it should be, unless the judgement is more specific.
    pub wanted: &'static str,
    /// What to do, unless the judgement is more specific: changes as data ([`crate::change`]), or
    /// words.
    pub fix: fn() -> Remedy,
    /// The severity, unless the judgement sets another.
    pub severity: Severity,
    /// The evidence that it affects latency.
    pub evidence: EvidenceKind,
    /// What experts disagree about, and the measurement that settles it; empty if nothing.
    pub disputed: &'static str,
    /// How long a change lasts, as follows from the usual remedy where that is no words alone.
    pub persistence: Persistence,
    /// Why `onbeat tune` leaves it as it is, without a full stop; empty where it sets it, on
    /// machines that can be set.
    pub unsettable: &'static str,
    /// The file, as a pattern of [`crate::controls`], that `RULE=VALUE` gives a value; empty where
    /// the rule has none of its own to give.
    pub sets: &'static str,
    /// Where it is written, most authoritative first.
    pub sources: &'static [Source],
    /// The kinds of slices of a spike as which it takes time; empty where none is its.
    pub cures: &'static [SliceKind],
    /// Knobs that have to be set before this one, and undone after it.
    pub after: &'static [&'static str],
    /// Knobs that it must not be combined with.
    pub conflicts: &'static [&'static str],
    /// Patterns of the texts that it reads (see [`facts::texts`]).
    pub reads: &'static [&'static str],
    /// Other facts that it reads: the kernel's texts they come from, for the documentation.
    pub facts: &'static [&'static str],
    /// Programs that it looks for, by the names that the kernel gives them.
    pub programs: &'static [&'static str],
    pub judge: fn(&MachineView) -> Judged,
    /// Machines that show what it does.
    pub examples: Examples,
}

impl Knob {
    /// The fields that a record does not name: a new field is edited in here and in the records
    /// that use it.
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
    /// After these it fails.
    pub fires: &'static str,
    /// After these it passes; none where the machine is well set as it is.
    pub silent: &'static str,
    /// Edits after which the outcome is unknown.
    pub unknown: &'static str,
}

/// Where something is written.
pub struct Source {
    /// The document, and the place in it.
    pub title: &'static str,
    /// Where it can be opened.
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
    /// What practitioners do: measure before relying on it.
    Practice,
}
