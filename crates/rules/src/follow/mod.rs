//! Follows the advice of rules on synthetic machines, and judges again: the advice has to make them
//! pass, must not be so already, and must not make another rule fail.

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

/// Each complaint about the advice of the rules on a machine, with what was tried.
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

/// Each way of each part, with the first of the others.
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
    // As after the next boot: what keeps it is there as well.
    for change in ways.iter().flat_map(|way| &way.persist) {
        found.extend(make(&mut changed, change).err());
    }
    if found.is_empty() {
        found.extend(asked_again(&changed, intent, before, failing, "kept"));
    }
    found
}

/// Each rule that turned, and the one that was followed if it does not pass.
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
            // What a synthetic machine lacks may be requested after a change.
            AuditVerdict::Unknown => !own,
        };
        if !fine {
            let said = if is.value.is_empty() { &is.reason } else { &is.value };
            found.push(format!(
                "{when}, {} turns from {} to {}: {said}",
                knob.id,
                was.verdict.name(),
                is.verdict.name()
            ));
        }
    }
    found
}
