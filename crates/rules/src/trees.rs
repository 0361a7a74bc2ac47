//! Machines with verdicts that were derived by hand from the kernel's documents: the files of
//! `tests/trees`.
//!
//! A line `= RULE VERDICT [SEVERITY [VALUE]]` is such a verdict; the rest are edits to a machine
//! without any other file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::find;
use crate::fixture::Machine;
use model::keyword::Keyword;

/// Verdicts that differ from the derived ones.
fn wrong(name: &str, text: &str) -> Vec<String> {
    let mut machine = Machine::of(BTreeMap::new());
    let is_verdict = |line: &&str| line.starts_with("= ");
    machine.edit(&text.lines().filter(|line| !is_verdict(line)).collect::<Vec<_>>().join("\n"));
    let differing = |line: &str| {
        let (rule, expected) = line.strip_prefix("= ")?.split_once(' ')?;
        let found = machine.finding(find(rule).unwrap_or_else(|| panic!("{name}: there is no rule {rule}")));
        let (verdict, severity) = (found.verdict.name(), found.severity.name());
        let verdict_text = match verdict {
            "fail" => format!("fail {severity} {}", found.value),
            _ if found.value.is_empty() => format!("{verdict} {}", found.reason),
            _ => format!("{verdict} {}", found.value),
        };
        let is_same = verdict_text == expected || verdict_text.starts_with(&format!("{expected} "));
        (!is_same).then(|| format!("{name}: {rule}: {verdict_text}; expected {expected}"))
    };
    text.lines().filter(is_verdict).filter_map(differing).collect()
}

#[test]
fn verdicts_are_those_worked_out_by_hand() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/trees");
    let trees = host::MachineFiles::folder(&dir);
    let names = trees.list("/.").known().cloned().unwrap();
    assert!(!names.is_empty());
    let judged = |name: &String| wrong(name, trees.read_text(&format!("/{name}")).known().unwrap());
    let found: Vec<String> = names.iter().flat_map(judged).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
