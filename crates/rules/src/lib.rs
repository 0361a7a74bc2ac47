//! Rules about real-time behaviour: one file per rule, one list, one record that all outputs use.
//!
//! A knob is a setting that can be judged. Its record holds the texts (the page in `docs/rules`,
//! `onbeat rules`, the findings), the files it reads, the function that judges them, and one case
//! each in which it fails, passes, and is unknown. A culprit is a pattern of events that costs time
//! ([`culprits`]), a check a mistake in a program's code ([`checks`]). `CONTRIBUTING.md` lists the
//! four steps to add one of each.

pub mod audit;
pub mod audit_diff;
pub mod change;
pub mod checks;
pub mod competing_tuners;
#[cfg(test)]
mod contradictions;
pub mod controls;
#[cfg(test)]
mod corpus;
pub mod culprits;
#[cfg(test)]
mod damaged_texts;
#[cfg(test)]
mod documents;
mod edits;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod follow;
pub mod intent;
pub mod irq_kind;
pub mod isolation;
pub mod judgement;
#[cfg(test)]
mod kernel_series;
pub mod kernel_threads;
pub mod knob;
pub mod knobs;
pub mod load_balancing;
pub mod login_limits;
mod network_cards;
pub mod parameters;
pub mod partition;
mod releases;
pub mod remedy;
pub mod setting;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trees;
pub mod unknown;
pub mod view;
mod virtual_cpus;
#[cfg(test)]
mod without_running;
pub mod words;
pub mod workqueues;

use checks::rule::CheckRule;
use culprits::rule::CulpritRule;
use facts::survey::SurveyRequest;
use knob::Knob;

/// A rule of any kind.
#[derive(Clone, Copy)]
pub enum Rule {
    /// A setting that can be judged.
    Knob(&'static Knob),
    /// A cause of lost time.
    Culprit(&'static CulpritRule),
    /// A mistake in a program's code.
    Check(&'static CheckRule),
}

impl Rule {
    /// Every rule: knobs, culprits, checks, each kind in alphabetical order.
    pub fn all() -> Vec<Rule> {
        let knobs = knobs::ALL.iter().map(|knob| Rule::Knob(knob));
        let culprits = culprits::ALL.iter().map(|culprit| Rule::Culprit(culprit));
        knobs.chain(culprits).chain(checks::ALL.iter().map(|check| Rule::Check(check))).collect()
    }

    /// Rule by ID.
    pub fn find(id: &str) -> Option<Rule> {
        let other = || checks::find(id).map(Rule::Check);
        find(id).map(Rule::Knob).or_else(|| culprits::find(id).map(Rule::Culprit)).or_else(other)
    }

    /// ID, which is unique among the rules of all kinds.
    pub fn id(self) -> &'static str {
        match self {
            Rule::Knob(knob) => knob.id,
            Rule::Culprit(culprit) => culprit.id,
            Rule::Check(check) => check.id,
        }
    }
}

/// Knob by ID.
pub fn find(id: &str) -> Option<&'static Knob> {
    knobs::ALL.iter().copied().find(|knob| knob.id == id)
}

/// Files and programs that all rules together read.
pub fn survey_request() -> SurveyRequest {
    let knobs = || knobs::ALL.iter();
    SurveyRequest {
        texts: knobs().flat_map(|knob| knob.reads).copied().collect(),
        programs: knobs().flat_map(|knob| knob.programs).copied().collect(),
    }
}
