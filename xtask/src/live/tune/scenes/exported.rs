//! An export, and a boot with it: the rules whose lines are in it pass.

use std::collections::BTreeSet;

use super::super::document::changes;
use super::super::scene::{Judged, Scene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require};
use crate::live::machine::Machine;

/// So many rules must pass that did not.
const RULES: usize = 10;

pub fn scenes() -> Vec<Scene> {
    let boots =
        [include_str!("../../guest/tune-exported.sh"), include_str!("../../guest/tune-exported-booted.sh")];
    vec![Scene { boots: boots.map(str::to_string).to_vec(), ..Scene::new("tune-exported", "", exported) }]
}

fn exported(replies: &[Reply], _: &Machine) -> Judged {
    let [before, after] = replies else { return Err("it takes two boots".to_string()) };
    exit(before, "export", 0)?;
    for what in ["refused", "absent"] {
        let lines = after.file(what)?;
        require(lines.is_empty(), || format!("{what}: {}", lines.replace('\n', ", ")))?;
    }
    let words = before.value("next.words")?;
    let booted = after.value("words")?;
    require(words.split_whitespace().all(|word| booted.split_whitespace().any(|own| own == word)), || {
        format!("booted with {booted} instead of {words}")
    })?;
    // Unapplied it is a plan of what the files hold; applied nothing is left to do.
    let imported = keys(before, "import")?;
    let planned = keys(before, "plan")?;
    require(!imported.is_empty() && imported.is_subset(&planned), || {
        let more: Vec<_> = imported.difference(&planned).collect();
        format!("imported and not planned: {more:?} of {}", imported.len())
    })?;
    let left = keys(after, "import")?;
    require(left.is_empty(), || format!("imported again: {left:?}"))?;
    let kept = rules_in(before)?;
    let (failed, now) = (failing(before)?, failing(after)?);
    require(kept.is_subset(&failed), || format!("exported without need: {:?}", kept.difference(&failed)))?;
    let unhelped: Vec<_> = kept.intersection(&now).collect();
    require(unhelped.is_empty(), || format!("failing all the same: {unhelped:?}"))?;
    require(kept.len() >= RULES, || format!("only {kept:?}"))?;
    let told: Vec<&str> = kept.iter().map(String::as_str).collect();
    Ok(vec![
        format!("{} rules pass after a boot with their lines: {}", kept.len(), told.join(" ")),
        format!("{} settings imported, words: {words}", imported.len()),
    ])
}

fn keys(reply: &Reply, label: &str) -> Result<BTreeSet<String>, String> {
    Ok(changes(reply, label)?.into_iter().map(|change| change.key).collect())
}

/// The rules named above the lines of the files, but for those that the README says are kept in
/// part only.
fn rules_in(reply: &Reply) -> Result<BTreeSet<String>, String> {
    let readme = reply.file("README")?;
    let mut rules = BTreeSet::new();
    for file in ["sysctl.d/90-onbeat.conf", "tmpfiles.d/onbeat.conf", "cmdline"] {
        let heads = reply.file(file)?.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
        // A comment of another kind has blanks before its colon.
        let named = heads.flat_map(|(rules, _)| rules.split(", ")).filter(|rule| !rule.contains(' '));
        rules.extend(named.map(str::to_string));
    }
    rules.retain(|rule| !readme.contains(&format!("\n- {rule}: ")));
    Ok(rules)
}

fn failing(reply: &Reply) -> Result<BTreeSet<String>, String> {
    let audit = document(reply, "audit")?;
    let findings = audit["findings"].as_array().ok_or("the audit has no findings")?;
    let failing = findings.iter().filter(|finding| finding["verdict"] == "fail");
    Ok(failing.filter_map(|finding| finding["rule"].as_str()).map(str::to_string).collect())
}
