//! The audit of a machine and of its capture are the same bytes, for root and for a user.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, count, document, exit, require, text_is};
use super::super::machine::Machine;
use super::Check;

const VERDICTS: [&str; 4] = ["pass", "fail", "unknown", "not-applicable"];
/// Rules that scripts refer to by name.
const KNOWN: [&str; 3] = ["preemption-model", "rt-throttling", "fair-server"];

/// Root's, then a user's, each in a separate folder.
const SCRIPT: &str = "\
    run live onbeat audit --json a.json\n\
    run capture onbeat capture -o b\n\
    run again onbeat audit --bundle b --json c.json\n\
    send a a.json\nsend c c.json\n\
    mkdir user\nchown user user\n\
    run userlive su user -c 'cd /run/captured/user && onbeat audit --json a.json'\n\
    run usercapture su user -c 'cd /run/captured/user && onbeat capture -o b'\n\
    run useragain su user -c 'cd /run/captured/user && onbeat audit --bundle b --json c.json'\n\
    send usera user/a.json\nsend userc user/c.json\n";

pub fn checks() -> Vec<Check> {
    vec![Check::new("captured", SCRIPT, captured)]
}

fn captured(reply: &Reply, machine: &Machine) -> CheckResult {
    for label in ["live", "capture", "again", "userlive", "usercapture", "useragain"] {
        exit(reply, label, 0)?;
    }
    for (live, again) in [("a", "c"), ("usera", "userc")] {
        same(reply.file(live)?, reply.file(again)?).map_err(|why| format!("{again}: {why}"))?;
        whole(&document(reply, live)?).map_err(|why| format!("{live}: {why}"))?;
    }
    let audit = document(reply, "a")?;
    // The two kernels differ in this for certain, so an audit with the same result for both reads
    // nothing.
    let wanted = if machine.rt { "pass" } else { "fail" };
    let found = verdict(&audit, "preemption-model");
    require(found == Some(wanted), || format!("preemption-model is {found:?} instead of {wanted}"))
}

fn same(live: &str, again: &str) -> CheckResult {
    let mut lines = live.lines().zip(again.lines()).enumerate();
    let differs = lines.find(|(_, (live, again))| live != again);
    require(live == again, || match differs {
        Some((at, (live, again))) => {
            format!("line {}: live {:?}, captured {:?}", at + 1, live.trim(), again.trim())
        }
        None => format!("{} bytes live, {} captured", live.len(), again.len()),
    })
}

/// Checks an audit against the contract: every rule once, and a summary with their numbers.
fn whole(audit: &Value) -> CheckResult {
    text_is(audit, "/schema", "onbeat.audit/1")?;
    let findings = audit["findings"].as_array().ok_or("findings is not a list")?;
    let rules: BTreeSet<&str> = findings.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    require(rules.len() == findings.len(), || "a rule has no name, or two findings".to_string())?;
    for known in KNOWN {
        require(rules.contains(known), || format!("no finding of {known}"))?;
    }
    let mut counted = 0;
    for kind in VERDICTS {
        let held = findings.iter().filter(|finding| finding["verdict"] == kind).count();
        let said = count(&audit["summary"], kind)?;
        require(u64::try_from(held) == Ok(said), || format!("the summary says {said} {kind} of {held}"))?;
        counted += held;
    }
    require(counted == findings.len(), || format!("{} findings have no verdict", findings.len() - counted))
}

fn verdict<'a>(audit: &'a Value, rule: &str) -> Option<&'a str> {
    let mut findings = audit["findings"].as_array()?.iter();
    findings.find(|finding| finding["rule"] == rule)?["verdict"].as_str()
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::json;

    fn audit(preemption: &str) -> Value {
        let mut summary = json!({ "pass": 1, "fail": 0, "unknown": 1, "not-applicable": 0 });
        summary[preemption] = json!(summary[preemption].as_u64().unwrap_or(0) + 1);
        json!({ "schema": "onbeat.audit/1", "summary": summary, "findings": [
            { "rule": "preemption-model", "verdict": preemption },
            { "rule": "rt-throttling", "verdict": "pass" },
            { "rule": "fair-server", "verdict": "unknown" } ] })
    }

    fn reply(live: &str, again: &str) -> Reply {
        let mut reply = Reply::default();
        for label in ["live", "capture", "again", "userlive", "usercapture", "useragain"] {
            reply.values.insert(format!("{label}.exit"), "0".into());
        }
        for (label, text) in [("a", live), ("c", again), ("usera", live), ("userc", again)] {
            reply.files.insert(label.into(), Some(text.into()));
        }
        reply
    }

    #[test]
    fn the_script_works_in_the_checks_own_folder() {
        let checks = checks();
        assert!(checks.iter().all(|check| check.script.contains(&format!("/run/{}/user", check.name))));
        assert!((checks[0].judge)(&Reply::default(), &MACHINES[0]).is_err());
    }

    #[test]
    fn the_same_bytes_pass_and_a_changed_one_is_shown() {
        let text = serde_json::to_string_pretty(&audit("pass")).unwrap();
        assert_eq!(captured(&reply(&text, &text), &MACHINES[0]), Ok(()));
        let other = text.replace("unknown\"", "fail\"");
        assert!(captured(&reply(&text, &other), &MACHINES[0]).unwrap_err().contains("captured"));
        assert!(captured(&reply(&text, &format!("{text}\n")), &MACHINES[0]).unwrap_err().contains("bytes"));
        let mut refused = reply(&text, &text);
        refused.values.insert("usercapture.exit".into(), "4".into());
        assert!(captured(&refused, &MACHINES[0]).unwrap_err().contains("exit 4"));
    }

    #[test]
    fn both_wrong_in_the_same_way_is_wrong() {
        let stock = MACHINES.iter().find(|machine| !machine.rt).unwrap();
        let text = audit("pass").to_string();
        assert!(captured(&reply(&text, &text), stock).unwrap_err().contains("preemption-model"));
        assert_eq!(captured(&reply(&audit("fail").to_string(), &audit("fail").to_string()), stock), Ok(()));
        assert!(captured(&reply("{}", "{}"), stock).is_err() && captured(&reply("", ""), stock).is_err());
    }

    #[test]
    fn an_audit_that_does_not_add_up_is_refused() {
        assert_eq!(whole(&audit("pass")), Ok(()));
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut audit = audit("pass");
            change(&mut audit);
            whole(&audit).unwrap_err()
        };
        assert!(changed(&|audit| audit["summary"]["pass"] = json!(3)).contains("pass of"));
        assert!(
            changed(&|audit| audit["findings"][1]["rule"] = json!("fair-server")).contains("two findings")
        );
        assert!(changed(&|audit| audit["findings"][2]["rule"] = json!("other")).contains("fair-server"));
        assert!(changed(&|audit| audit["schema"] = json!("onbeat.audit/2")).contains("schema"));
        assert!(!changed(&|audit| audit["findings"][0]["verdict"] = json!("fine")).is_empty());
    }
}
