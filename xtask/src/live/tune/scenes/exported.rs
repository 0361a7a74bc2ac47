//! An export, booted: the same rules pass.

use std::collections::BTreeSet;

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require};
use crate::live::machine::Machine;

const FILES: [&str; 3] = ["exported.sysctl.d", "exported.tmpfiles.d", "exported.cmdline"];

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene {
        systemd: true,
        boots: vec![
            include_str!("../../guest/tune-export.sh").to_string(),
            include_str!("../../guest/tune-exported.sh").to_string(),
        ],
        words,
        ..UndoScene::new("tune-exported", "", exported)
    }]
}

/// What the next boot's command line gets: the lines with a plus.
fn words(before: &[Reply]) -> String {
    let Some(Ok(text)) = before.last().map(|reply| reply.file("exported.cmdline")) else {
        return String::new();
    };
    text.lines().filter_map(|line| line.strip_prefix("+ ")).collect::<Vec<_>>().join(" ")
}

/// The rules above the lines of a file.
fn rules_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("# ")?.split([':', ' ']).next())
}

fn with_verdict(reply: &Reply, verdict: &str) -> Result<BTreeSet<String>, String> {
    let audit = document(reply, "audit")?;
    let findings = audit["findings"].as_array().ok_or("the audit has no findings")?;
    let of_verdict = findings.iter().filter(|finding| finding["verdict"] == verdict);
    Ok(of_verdict.filter_map(|finding| finding["rule"].as_str().map(str::to_string)).collect())
}

fn exported(replies: &[Reply], _: &Machine) -> Measured {
    let [first, second] = replies else { return Err("not two boots".to_string()) };
    exit(first, "export", 0)?;
    let (failed, passes) = (with_verdict(first, "fail")?, with_verdict(second, "pass")?);
    let mut kept = BTreeSet::new();
    for file in FILES {
        let rules = rules_of(first.file(file)?).filter(|rule| failed.contains(*rule));
        kept.extend(rules.map(str::to_string));
    }
    for word in words(std::slice::from_ref(first)).split(' ') {
        require(second.value("cmdline")?.contains(word), || format!("{word} was not booted with"))?;
    }
    require(kept.len() >= 10, || format!("only {} failing rules are exported", kept.len()))?;
    let fail: Vec<&str> = kept.iter().filter(|rule| !passes.contains(*rule)).map(String::as_str).collect();
    require(fail.is_empty(), || {
        format!("of {} exported rules do not pass after the boot: {}", kept.len(), fail.join(" "))
    })?;
    for label in ["sysctl", "tmpfiles"] {
        exit(second, label, 0)?;
    }
    Ok(vec![format!("{} rules of {} that failed pass after the boot", kept.len(), failed.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CMDLINE: &str = "# Words for the kernel's command line\n\n\
        # skew-tick: ticks come together\n+ skew_tick=1\n\n# psi\n- psi=1\n";

    #[test]
    fn rules_and_words_are_read_from_an_export() {
        assert!(
            rules_of(CMDLINE).any(|rule| rule == "skew-tick") && rules_of(CMDLINE).any(|rule| rule == "psi")
        );
        let mut reply = Reply::default();
        reply.files.insert("exported.cmdline".into(), Some(CMDLINE.into()));
        assert_eq!(words(&[reply]), "skew_tick=1");
        assert_eq!(words(&[]), "");
    }
}
