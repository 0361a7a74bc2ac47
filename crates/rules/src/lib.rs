//! What is known about real time, as rules: one file per rule, one list, one record that everything reads.
//!
//! A knob is a setting that can be judged. Its record holds the words (the page in `docs/rules`, `onbeat rules`,
//! the findings), the files it reads, the function that judges them, and one case each in which it fires, stays
//! silent, and cannot tell. A culprit is a pattern of events that costs time ([`culprits`]). `CONTRIBUTING.md` says
//! in four steps each how to add one.

#[cfg(test)]
mod agreement;
pub mod audit;
pub mod balance;
pub mod case;
pub mod change;
#[cfg(test)]
mod compared;
#[cfg(test)]
mod corpus;
pub mod culprits;
#[cfg(test)]
mod doubtful;
mod edits;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod follow;
pub mod intent;
pub mod irq_kinds;
pub mod judgement;
pub mod knobs;
pub mod kthreads;
pub mod parameters;
pub mod remedy;
pub mod rivals;
#[cfg(test)]
mod tests;
pub mod users;
pub mod words;
pub mod workqueues;

use serde::Serialize;

use case::Case;
use judgement::{Judged, Judgement, Severity};
use remedy::Remedy;

use facts::survey::Wanted;

/// A setting that can be judged.
pub struct Knob {
    /// Names the setting, in kebab case; the file's name with `-` for `_`.
    pub id: &'static str,
    /// A few words, lower case, no full stop: `real-time throttling`.
    pub title: &'static str,
    /// What it is: one to four sentences.
    pub what: &'static str,
    /// Why it matters for latency; findings that fail carry it.
    pub why: &'static str,
    /// How onbeat tells, and what it cannot see.
    pub tell: &'static str,
    /// What changing it costs, and what can go wrong.
    pub cost: &'static str,
    /// What it should be, unless the judgement says it more exactly.
    pub wanted: &'static str,
    /// What to do, unless the judgement says it more exactly: changes as data ([`change`]), or words.
    pub fix: fn() -> Remedy,
    /// How bad it is, unless the judgement says otherwise.
    pub severity: Severity,
    /// How it is known that it matters.
    pub evidence: Evidence,
    /// What experts disagree about, and the measurement that settles it; empty if nothing.
    pub contested: &'static str,
    /// How long a change lasts, as follows from the usual remedy where that is no words alone.
    pub lasts: Lasts,
    /// Where it is written, most authoritative first.
    pub sources: &'static [Source],
    /// What it takes time from a task as, in the words of a spike's slices.
    pub cures: &'static [Slice],
    /// Knobs that have to be set before this one, and undone after it.
    pub after: &'static [&'static str],
    /// Knobs that it must not be combined with.
    pub conflicts: &'static [&'static str],
    /// Patterns of the texts that it reads (see [`facts::texts`]).
    pub reads: &'static [&'static str],
    /// Facts that it reads besides: the kernel's texts they come from, for the documentation.
    pub facts: &'static [&'static str],
    /// Programs that it looks for, by the names that the kernel gives them.
    pub programs: &'static [&'static str],
    /// Judges a machine.
    pub judge: fn(&Case) -> Judged,
    /// Machines that show what it does.
    pub examples: Examples,
}

impl Knob {
    /// The fields that a record does not name: a new field is edited in here and in the records that use it.
    ///
    /// Severity and evidence claim the least; a record without words, sources or a judge fails the tests.
    pub const DEFAULT: Knob = Knob {
        id: "",
        title: "",
        what: "",
        why: "",
        tell: "",
        cost: "",
        wanted: "",
        fix: Remedy::default,
        severity: Severity::Info,
        evidence: Evidence::Practice,
        contested: "",
        lasts: Lasts::Runtime,
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

/// Changes to a well-set machine (`src/rules/base`) that show what a rule does.
///
/// A line is `/path: text`, `| more text`, `/path refused`, `/path absent` (with all below it), `CONFIG_A=y`,
/// `cmdline + word`, `cmdline - word`, `program + NAME` (it runs), `--profile NAME` or `--cpus LIST`.
pub struct Examples {
    /// After these it fails.
    pub fires: &'static str,
    /// After these it passes; none where the machine is well set as it is.
    pub silent: &'static str,
    /// After these it cannot tell.
    pub unknown: &'static str,
}

/// Where something is written.
pub struct Source {
    /// The document, and the place in it.
    pub title: &'static str,
    /// Where it can be opened.
    pub url: &'static str,
}

/// How it is known that a setting matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// The kernel's own documentation, or that of the part concerned, says so.
    Documented,
    /// Read in the source.
    Source,
    /// Seen on a real kernel.
    Observed,
    /// What practitioners do: measure before relying on it.
    Practice,
}

/// How long a change lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lasts {
    /// Until the next boot.
    Runtime,
    /// From boot to boot: on the kernel's command line, or in a file that is read at each boot or login.
    Boot,
    /// Until another kernel is built.
    Build,
    /// For good: set in the firmware, or what the machine is.
    Firmware,
}

/// The ways in which time is taken from a task: the kinds of a spike's slices.
pub use model::slice::SliceKind as Slice;

/// A rule of either kind.
#[derive(Clone, Copy)]
pub enum Rule {
    /// A setting that can be judged.
    Knob(&'static Knob),
    /// A way in which time is lost.
    Culprit(&'static culprits::Culprit),
}

impl Rule {
    /// Every rule, the knobs first, each kind in the alphabet's order.
    pub fn all() -> Vec<Rule> {
        let knobs = knobs::ALL.iter().map(|knob| Rule::Knob(knob));
        knobs.chain(culprits::ALL.iter().map(|culprit| Rule::Culprit(culprit))).collect()
    }

    /// The rule of an id.
    pub fn find(id: &str) -> Option<Rule> {
        find(id).map(Rule::Knob).or_else(|| culprits::find(id).map(Rule::Culprit))
    }

    /// Its id, which no other rule of either kind has.
    pub fn id(self) -> &'static str {
        match self {
            Rule::Knob(knob) => knob.id,
            Rule::Culprit(culprit) => culprit.id,
        }
    }
}

/// The knob of an id.
pub fn find(id: &str) -> Option<&'static Knob> {
    knobs::ALL.iter().copied().find(|knob| knob.id == id)
}

/// What all rules together want to have read.
pub fn wanted() -> Wanted {
    let knobs = || knobs::ALL.iter();
    Wanted {
        texts: knobs().flat_map(|knob| knob.reads).copied().collect(),
        programs: knobs().flat_map(|knob| knob.programs).copied().collect(),
    }
}
