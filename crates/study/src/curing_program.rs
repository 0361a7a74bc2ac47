//! Inputs of a cure for a program whose cycles are counted: the claims that a clean run of it
//! supports, and the findings of `onbeat check`.

use model::cure::{CureCleanRun, CureRemaining};
use model::text::excerpt;
use model::units::Nanos;
use rules::judgement::AuditVerdict;
use serde::Deserialize;

/// Claim supported by a long run of followed threads, by counting alone: of their cycles only the
/// longest of each second is kept. After ln 20 horizons without an event a rate of one a horizon is
/// refuted with 95 % (of a Poisson process, exp(-ln 20) = 1/20).
pub fn by_counting(run: &CureCleanRun, horizon: Nanos) -> (String, String) {
    let needed = 20f64.ln() * horizon.as_secs();
    match (run.late, run.observed_ns.as_secs() >= needed) {
        (0, true) => {
            let sentence = format!(
                "Supported by counting: a cycle is late at most once in {} on average (95 %).",
                horizon.spoken()
            );
            ("supported".into(), sentence)
        }
        (0, false) => {
            let sentence = format!(
                "No cycle was late in {}, and {} are needed for a horizon of {}.",
                run.observed_ns.spoken(),
                Nanos((needed * 1e9) as i64).spoken(),
                horizon.spoken()
            );
            ("inconclusive".into(), sentence)
        }
        _ => ("failed".into(), String::new()),
    }
}

/// Failed findings of `onbeat check` in a program, from its JSON, to be fixed by its developers.
///
/// # Errors
/// The fault of the document.
pub fn program_findings(bytes: &[u8]) -> std::result::Result<Vec<CureRemaining>, String> {
    let check: CheckDocument = serde_json::from_slice(bytes).map_err(|error| excerpt(&error.to_string()))?;
    let mut all: Vec<CureRemaining> = Vec::new();
    for found in check.findings.iter().filter(|found| found.verdict == AuditVerdict::Fail.name()) {
        // A rule is listed once for all threads that break it.
        let culprit = format!("{}, {}", check.process.comm, found.rule);
        if all.iter().any(|one| one.culprit == culprit) {
            continue;
        }
        let what = if found.fix.trim().is_empty() { &found.value } else { &found.fix };
        let what = format!("{} (`onbeat rules {}`)", what.trim().trim_end_matches('.'), found.rule);
        all.push(CureRemaining { culprit, needs: "decision".into(), what });
    }
    Ok(all)
}

/// The part of `onbeat.check/1` that is reported.
#[derive(Deserialize)]
struct CheckDocument {
    process: CheckedName,
    findings: Vec<CheckFound>,
}

#[derive(Deserialize)]
struct CheckedName {
    comm: String,
}

#[derive(Deserialize)]
struct CheckFound {
    rule: String,
    verdict: String,
    value: String,
    fix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(late: u64, seconds: i64) -> CureCleanRun {
        let observed_ns = Nanos(seconds * Nanos::SECOND.0);
        CureCleanRun { late, observed_ns, valid: true, long: true, ..CureCleanRun::default() }
    }

    fn finding(rule: &str, verdict: &str, fix: &str) -> serde_json::Value {
        serde_json::json!({ "rule": rule, "verdict": verdict, "value": "seen", "fix": fix })
    }

    #[test]
    fn three_clean_horizons_support_one() {
        let of = |late, seconds| by_counting(&run(late, seconds), Nanos(10 * Nanos::SECOND.0)).0;
        assert_eq!([of(0, 30), of(0, 29), of(1, 300)], ["supported", "inconclusive", "failed"]);
    }

    #[test]
    fn each_rule_that_fails_is_told_once() {
        let findings = [
            finding("memory-lock", "fail", "call mlockall."),
            finding("memory-lock", "fail", "call mlockall."),
            finding("swapped-out", "pass", ""),
            finding("busy-waiting", "fail", ""),
            finding("futex", "unknown", "x"),
        ];
        let check = serde_json::json!({ "process": { "comm": "robot" }, "findings": findings });
        let findings = program_findings(check.to_string().as_bytes()).unwrap();
        let pairs: Vec<(&str, &str)> =
            findings.iter().map(|one| (one.culprit.as_str(), one.what.as_str())).collect();
        let wanted = [
            ("robot, memory-lock", "call mlockall (`onbeat rules memory-lock`)"),
            ("robot, busy-waiting", "seen (`onbeat rules busy-waiting`)"),
        ];
        assert_eq!(pairs, wanted);
        assert!(program_findings(b"{}").is_err() && program_findings(b"").is_err());
    }
}
