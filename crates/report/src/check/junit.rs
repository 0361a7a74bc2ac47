//! Check as JUnit XML: one test case per finding, as in an audit's.

use maud::html;

use crate::audit::junit::{case, suites};
use rules::checks::findings::ProgramCheck;
use rules::judgement::AuditVerdict;

pub fn render(check: &ProgramCheck) -> String {
    let count = |verdict| check.findings.iter().filter(|found| found.finding.verdict == verdict).count();
    suites(html! {
        testsuite name="onbeat check" tests=(check.findings.len()) failures=(count(AuditVerdict::Fail))
            errors=(count(AuditVerdict::Unknown)) skipped=(count(AuditVerdict::NotApplicable)) {
            @for found in &check.findings {
                @let thread = found.tid.map(|tid| format!("{} of thread {tid}", found.finding.rule));
                (case("check", thread.as_deref().unwrap_or(found.finding.rule), &found.finding))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::checks::fixture::ExampleProgram;

    #[test]
    fn each_finding_is_a_case() {
        let check = ExampleProgram::of("thread 101 prio=99\ntrace refused").check();
        let text = render(&check);
        assert_eq!(text.matches("<testcase").count(), check.findings.len());
        assert!(
            text.contains("name=\"highest-priority of thread 101\" classname=\"onbeat.check.high\""),
            "{text}"
        );
        assert!(
            text.contains("<failure type=\"high\"") && text.contains("<error type=\"unknown\""),
            "{text}"
        );
    }
}
