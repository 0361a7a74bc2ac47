//! Follows the advice of rules on synthetic machines, and judges again: the advice has to make them
//! pass, must not be in effect already, and must not make another rule fail.

mod fixture;
mod kernel;
pub mod law;

use fixture::make;

use super::audit::{Finding, finding};
use super::change::Change;
use super::fixture::Machine;
use super::intent::Intent;
use super::judgement::AuditVerdict;
use super::knobs::ALL;
use super::remedy::{Alternative, Remedy};

/// Number of combinations that were tried on a machine, and the complaints about the advice.
pub fn complaints(machine: &Machine) -> (usize, Vec<String>) {
    let (survey, intent) = machine.survey();
    let before: Vec<Finding> = ALL.iter().map(|knob| finding(knob, &survey, &intent)).collect();
    let (mut tried, mut found) = (0, Vec::new());
    for failing in before.iter().filter(|finding| finding.verdict == AuditVerdict::Fail) {
        for ways in combinations(&failing.remedy) {
            if ways.iter().flat_map(|way| &way.changes).any(|change| matches!(change, Change::Advice { .. }))
            {
                continue;
            }
            tried += 1;
            let complain = |what: String| format!("{}: {what}\n    {}", failing.rule, failing.fix);
            found.extend(follow_all(machine, &intent, &before, failing, &ways).into_iter().map(complain));
        }
    }
    (tried, found)
}

/// Combinations that cover each alternative of each part, with the first of the other parts.
fn combinations(remedy: &Remedy) -> Vec<Vec<Alternative>> {
    let first = || remedy.parts.iter().map(|part| part.alternatives[0].clone()).collect::<Vec<Alternative>>();
    let mut all = vec![first()];
    for (at, part) in remedy.parts.iter().enumerate() {
        for way in &part.alternatives[1..] {
            let mut other = first();
            other[at] = way.clone();
            all.push(other);
        }
    }
    all
}

fn follow_all(
    machine: &Machine,
    intent: &Intent,
    before: &[Finding],
    failing: &Finding,
    ways: &[Alternative],
) -> Vec<String> {
    let (mut changed, mut found) = (machine.clone(), Vec::new());
    let now = ways.iter().flat_map(|way| &way.changes);
    for change in now {
        found.extend(make(&mut changed, change).err());
    }
    found.extend(asked_again(&changed, intent, before, failing, "done"));
    // State after the next boot: the changes that keep it are in effect as well.
    for change in ways.iter().flat_map(|way| &way.persist) {
        found.extend(make(&mut changed, change).err());
    }
    if found.is_empty() {
        found.extend(asked_again(&changed, intent, before, failing, "kept"));
    }
    found
}

/// Complaints about each rule that changed, and about the followed one if it does not pass.
fn asked_again(
    machine: &Machine,
    intent: &Intent,
    before: &[Finding],
    failing: &Finding,
    when: &str,
) -> Vec<String> {
    let survey = machine.read();
    // An offline CPU is no longer audited.
    let online = survey.facts.online.known().cloned().unwrap_or_default();
    let intent = &Intent { cpus: intent.cpus.and(&online), ..intent.clone() };
    let mut found = Vec::new();
    for (knob, was) in ALL.iter().zip(before) {
        let is = finding(knob, &survey, intent);
        let own = knob.id == failing.rule;
        let fine = match is.verdict {
            AuditVerdict::Pass | AuditVerdict::NotApplicable => true,
            AuditVerdict::Fail => !own && was.verdict != AuditVerdict::Pass,
            // A fact that a synthetic machine lacks may be needed after a change.
            AuditVerdict::Unknown => !own,
        };
        if !fine {
            let words = if is.value.is_empty() { &is.reason } else { &is.value };
            found.push(format!(
                "{when}, {} turns from {} to {}: {words}",
                knob.id,
                was.verdict.name(),
                is.verdict.name()
            ));
        }
    }
    found
}
