//! Rules as JSON.

use serde::Serialize;

use super::markdown::page;
use super::sheet::reads;
use model::error::{Result, json_pretty};
use model::keyword::Keyword;
use rules::Rule;
use rules::change::Persistence;
use rules::checks::rule::CheckRule;
use rules::culprits;
use rules::culprits::rule::CulpritRule;
use rules::knob::{EvidenceKind, Knob};

/// Name and version of the JSON.
pub const SCHEMA: &str = "onbeat.rules/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    rules: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    kind: &'a str,
    title: &'a str,
    doc: String,
    sources: Vec<&'a str>,
    /// Effects of the setting: kinds of slices, and the culprits that it cures.
    cures: Vec<String>,
    /// Knobs that cure the culprit.
    cured_by: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'a str>,
    evidence: EvidenceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    lasts: Option<Persistence>,
    /// True if `onbeat tune` sets it, on machines that allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    settable: Option<bool>,
    /// Reason that it does not, `""` if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsettable_why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a [&'a str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<&'a [&'a str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Vec<&'a str>>,
    /// Kinds of slices that the culprit's may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provoke: Option<&'a str>,
}

/// Rules as JSON, one document with a newline at its end.
pub fn json(rules: &[Rule]) -> Result<String> {
    let entry = |rule: &Rule| match rule {
        Rule::Knob(knob) => of_knob(knob),
        Rule::Culprit(culprit) => of_culprit(culprit),
        Rule::Check(check) => of_check(check),
    };
    let document = Document { schema: SCHEMA, rules: rules.iter().map(entry).collect() };
    json_pretty(&document)
}

fn of_knob(knob: &'static Knob) -> Entry<'static> {
    let culprits = culprits::cured_by(knob.id).into_iter().map(|culprit| culprit.id.to_owned());
    Entry {
        id: knob.id,
        kind: "knob",
        title: knob.title,
        doc: page(Rule::Knob(knob)),
        sources: knob.sources.iter().map(|source| source.url).collect(),
        cures: knob.cures.iter().map(|slice| slice.name().to_owned()).chain(culprits).collect(),
        cured_by: Vec::new(),
        severity: Some(knob.severity.name()),
        evidence: knob.evidence,
        lasts: Some(knob.persistence),
        settable: Some(knob.unsettable.is_empty()),
        unsettable_why: Some(knob.unsettable),
        after: Some(knob.after),
        conflicts: Some(knob.conflicts),
        reads: Some(reads(knob)),
        kinds: None,
        remedy: None,
        provoke: None,
    }
}

fn of_culprit(culprit: &'static CulpritRule) -> Entry<'static> {
    Entry {
        id: culprit.id,
        kind: "culprit",
        title: culprit.title,
        doc: page(Rule::Culprit(culprit)),
        sources: culprit.sources.iter().map(|source| source.url).collect(),
        cures: Vec::new(),
        cured_by: culprit.cured_by.to_vec(),
        severity: None,
        evidence: culprit.evidence,
        lasts: None,
        settable: None,
        unsettable_why: None,
        after: None,
        conflicts: None,
        reads: None,
        kinds: Some(culprit.kinds.iter().map(|slice| slice.name().to_owned()).collect()),
        remedy: Some(culprit.remedy),
        provoke: Some(culprit.provoke),
    }
}

fn of_check(check: &'static CheckRule) -> Entry<'static> {
    Entry {
        id: check.id,
        kind: "check",
        title: check.title,
        doc: page(Rule::Check(check)),
        sources: check.sources.iter().map(|source| source.url).collect(),
        cures: Vec::new(),
        cured_by: Vec::new(),
        severity: Some(check.severity.name()),
        evidence: check.evidence,
        lasts: None,
        settable: None,
        unsettable_why: None,
        after: None,
        conflicts: None,
        reads: Some(check.reads.to_vec()),
        kinds: None,
        remedy: Some(check.fix),
        provoke: None,
    }
}
