//! Comparison of two audits: rules with different judgements, and the direction of the change.

use model::sort::CompactSort;
use serde::Serialize;

use crate::audit::{Audit, Finding};
use crate::judgement::{AuditVerdict, Severity};

/// Name and version of the JSON.
pub const DIFF_SCHEMA: &str = "onbeat.audit-diff/1";

/// Change of a rule's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffVerdict {
    /// It fails and did not before, or is more severe.
    Worse,
    /// One side could not be judged.
    Unknown,
    /// It no longer fails, or is less severe.
    Better,
    /// The same verdict with another value.
    Same,
}

/// A rule that two audits judge differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleDiff {
    pub rule: &'static str,
    /// The verdict in the first audit.
    pub before: AuditVerdict,
    /// The verdict in the second.
    pub after: AuditVerdict,
    pub change: DiffVerdict,
    /// Severity if it fails, or failed.
    pub severity: Severity,
    /// Value found first; `""` if none was.
    pub before_value: String,
    pub after_value: String,
}

/// The difference of two audits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditDiff {
    pub schema: &'static str,
    pub profile: &'static str,
    /// Worse if any rule is.
    pub verdict: DiffVerdict,
    /// Differences, worst first, otherwise in the rules' order.
    pub findings: Vec<RuleDiff>,
}

/// Compares two audits by rule.
pub fn diff(before: &Audit, after: &Audit) -> AuditDiff {
    let pairs = after.findings.iter().filter_map(|new| {
        let old = before.findings.iter().find(|old| old.rule == new.rule)?;
        of_rule(old, new)
    });
    let mut findings: Vec<RuleDiff> = pairs.collect();
    findings.compact_sort_by_key(|found| (found.change, std::cmp::Reverse(found.severity)));
    let has = |change| findings.iter().any(|found| found.change == change);
    let verdict = [DiffVerdict::Worse, DiffVerdict::Better].into_iter().find(|change| has(*change));
    AuditDiff {
        schema: DIFF_SCHEMA,
        profile: after.profile,
        verdict: verdict.unwrap_or(DiffVerdict::Same),
        findings,
    }
}

fn of_rule(old: &Finding, new: &Finding) -> Option<RuleDiff> {
    use AuditVerdict::{Fail, Unknown};
    if (old.verdict, &old.value) == (new.verdict, &new.value) {
        return None;
    }
    let change = match (old.verdict, new.verdict) {
        (Fail, Fail) if new.severity > old.severity => DiffVerdict::Worse,
        (Fail, Fail) if new.severity < old.severity => DiffVerdict::Better,
        (Unknown, Unknown) => return None,
        (Unknown, _) | (_, Unknown) => DiffVerdict::Unknown,
        (Fail, Fail) => DiffVerdict::Same,
        (_, Fail) => DiffVerdict::Worse,
        (Fail, _) => DiffVerdict::Better,
        _ => DiffVerdict::Same,
    };
    Some(RuleDiff {
        rule: new.rule,
        before: old.verdict,
        after: new.verdict,
        change,
        severity: if new.verdict == Fail { new.severity } else { old.severity },
        before_value: old.value.clone(),
        after_value: new.value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit;
    use crate::fixture::Machine;
    use crate::knobs::ALL;

    fn of(edits: &str) -> Audit {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (survey, intent) = machine.survey();
        audit(&survey, &intent)
    }

    #[test]
    fn one_rule_that_fails_makes_it_worse_and_back_better() {
        let good = of("");
        for knob in ALL {
            let (bad, unknown) = (of(knob.examples.fires), of(knob.examples.unknown));
            let finding =
                |audit: &Audit| audit.findings.iter().find(|found| found.rule == knob.id).unwrap().verdict;
            if finding(&good) == AuditVerdict::Fail {
                continue;
            }
            let worse = diff(&good, &bad);
            assert_eq!(worse.verdict, DiffVerdict::Worse, "{}", knob.id);
            assert!(worse.findings.iter().any(|found| found.rule == knob.id), "{}", knob.id);
            let back = diff(&bad, &good);
            let own = back.findings.iter().find(|found| found.rule == knob.id).unwrap();
            assert_eq!(own.change, DiffVerdict::Better, "{}", knob.id);
            if finding(&unknown) == AuditVerdict::Unknown && finding(&good) != AuditVerdict::Unknown {
                let own = diff(&good, &unknown).findings.into_iter().find(|found| found.rule == knob.id);
                assert_eq!(own.map(|found| found.change), Some(DiffVerdict::Unknown), "{}", knob.id);
            }
        }
    }

    #[test]
    fn an_audit_differs_in_nothing_from_itself() {
        let same = diff(&of(""), &of(""));
        assert_eq!((same.verdict, same.findings.len()), (DiffVerdict::Same, 0));
    }
}
