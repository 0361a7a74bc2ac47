//! The changes of `onbeat tune` for a rule make it pass, without changing the verdict of another;
//! its changes for all of them together, in order, make all of them pass.

use super::{asked_again, kernel};
use crate::audit::{Finding, finding};
use crate::change::Change;
use crate::fixture::Machine;
use crate::judgement::AuditVerdict;
use crate::knob::Knob;
use crate::knobs::ALL;
use crate::setting::{changes, of_change};
use facts::survey::Survey;
use std::collections::BTreeSet;

/// IDs of the rules that were set on a machine, and the complaints.
pub fn complaints(machine: &Machine) -> (Vec<&'static str>, Vec<String>) {
    let (survey, intent) = machine.survey();
    let before: Vec<Finding> = ALL.iter().map(|knob| finding(knob, &survey, &intent)).collect();
    let (mut set, mut found) = (Vec::new(), Vec::new());
    for failing in before.iter().filter(|finding| finding.verdict == AuditVerdict::Fail) {
        let Some(chosen) = chosen(failing) else { continue };
        let mut changed = machine.clone();
        let mut wrong = make(&mut changed, &chosen, &survey);
        wrong.extend(asked_again(&changed, &intent, &before, failing, "set"));
        found.extend(wrong.into_iter().map(|what| format!("{}: {what}\n    {}", failing.rule, failing.fix)));
        set.push(failing.rule);
    }
    found.extend(all_together(machine, &survey, &before));
    (set, found)
}

/// Changes that are set for a finding; none if nothing is.
fn chosen(failing: &Finding) -> Option<Vec<&Change>> {
    let settable = crate::find(failing.rule).is_some_and(|knob| knob.unsettable.is_empty());
    changes(&failing.remedy).ok().filter(|_| settable)
}

/// Makes changes as settings; complains about refusals by the kernel, and if nothing changes.
fn make(machine: &mut Machine, changes: &[&Change], survey: &Survey) -> Vec<String> {
    let (mut found, mut idle) = (Vec::new(), true);
    for change in changes {
        if let Change::Partition { cpus, root, .. } = change {
            kernel::partition(machine, root, cpus);
            idle = false;
        }
        for setting in of_change(change, survey) {
            match kernel::set(machine, &setting) {
                Ok(already) => idle &= already,
                Err(why) => found.push(why),
            }
        }
    }
    if idle && found.is_empty() {
        found.push("all of it is so already".to_owned());
    }
    found
}

/// The findings in the order that `after` of their rules requires.
pub fn in_order<'a>(findings: &[&'a Finding]) -> Vec<&'a Finding> {
    let (mut left, mut ordered) = (findings.to_vec(), Vec::new());
    while !left.is_empty() {
        let ready = |finding: &&Finding| {
            let first = all_before(finding.rule);
            !left.iter().any(|other| first.contains(other.rule))
        };
        let at = left.iter().position(ready).expect("the order has no circles");
        ordered.push(left.remove(at));
    }
    ordered
}

/// Rules that are set before one, directly or indirectly.
fn all_before(rule: &str) -> BTreeSet<&'static str> {
    let of = |id: &str| crate::find(id).map_or(&[][..], |knob: &Knob| knob.after);
    let (mut all, mut next) = (BTreeSet::new(), of(rule).to_vec());
    while let Some(id) = next.pop() {
        if all.insert(id) {
            next.extend(of(id));
        }
    }
    all
}

/// Sets everything at once, by a plan made before the first write; returns the complaints.
fn all_together(machine: &Machine, survey: &Survey, before: &[Finding]) -> Vec<String> {
    let mut changed = machine.clone();
    let failing: Vec<&Finding> = before.iter().filter(|finding| chosen(finding).is_some()).collect();
    let mut found = Vec::new();
    for failing in in_order(&failing) {
        for change in chosen(failing).unwrap_or_default() {
            if let Change::Partition { cpus, root, .. } = change {
                kernel::partition(&mut changed, root, cpus);
            }
            for setting in of_change(change, survey) {
                found.extend(kernel::set(&mut changed, &setting).err());
            }
        }
    }
    let (_, intent) = machine.survey();
    let survey = changed.read();
    let online = survey.facts.online.known().cloned().unwrap_or_default();
    let intent = crate::intent::Intent { cpus: intent.cpus.and(&online), ..intent };
    for (knob, was) in ALL.iter().zip(before) {
        let is = finding(knob, &survey, &intent);
        let set = failing.iter().any(|failing| failing.rule == knob.id);
        let fine = match is.verdict {
            AuditVerdict::Pass | AuditVerdict::NotApplicable => true,
            AuditVerdict::Fail => was.verdict == AuditVerdict::Fail && !set,
            AuditVerdict::Unknown => !set,
        };
        if !fine {
            found.push(format!("{} turns from {} to {}", knob.id, was.verdict.name(), is.verdict.name()));
        }
    }
    found.into_iter().map(|what| format!("all together: {what}")).collect()
}
