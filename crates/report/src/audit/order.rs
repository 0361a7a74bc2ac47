//! Order of the findings.

use model::sort::CompactSort;
use rules::audit::{Audit, Finding};
use rules::judgement::AuditVerdict;

/// Findings of a verdict, worst first, else in the order of the rules.
pub fn worst_first(audit: &Audit, verdict: AuditVerdict) -> Vec<&Finding> {
    let mut found: Vec<&Finding> = audit.findings.iter().filter(|found| found.verdict == verdict).collect();
    found.compact_sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}
