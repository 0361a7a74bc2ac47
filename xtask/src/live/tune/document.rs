//! `onbeat.plan/1` and `onbeat.isolation/1` by the contract, read without onbeat's own code.

use std::collections::BTreeSet;

use serde_json::Value;

use super::noise::Noise;
use super::state::{ChangedKey, MachineState, differences};
use crate::live::frames::Reply;
use crate::live::judge::{document, require, text_is};

/// A change of a plan.
#[derive(Debug, PartialEq)]
pub struct ListedChange {
    pub key: String,
    pub path: String,
    pub rule: String,
    pub state: String,
    pub why: String,
}

/// The changes of a plan, an application, a status, an undo.
pub fn changes(reply: &Reply, label: &str) -> Result<Vec<ListedChange>, String> {
    let document = document(reply, label)?;
    text_is(&document, "/schema", "onbeat.plan/1")?;
    let changes = document["changes"].as_array().ok_or_else(|| format!("{label} has no changes"))?;
    changes.iter().map(change).collect()
}

fn change(value: &Value) -> Result<ListedChange, String> {
    let field = |name: &str| {
        let text = value[name].as_str().map(str::to_string);
        text.ok_or_else(|| format!("a change has no {name}: {value}"))
    };
    for named in ["wanted", "risk", "lasts"] {
        field(named)?;
    }
    Ok(ListedChange {
        key: field("key")?,
        path: field("path")?,
        rule: field("rule")?,
        state: field("state")?,
        why: field("why")?,
    })
}

/// The rules of which the witness sees that they changed something.
pub fn rules_with_effect(
    changes: &[ListedChange],
    before: &MachineState,
    applied: &MachineState,
) -> BTreeSet<String> {
    let seen = differences(before, applied, &BTreeSet::new());
    let has_effect = |change: &&ListedChange| seen.iter().any(|difference| is_of(difference, change));
    changes.iter().filter(has_effect).map(|change| change.rule.clone()).collect()
}

/// Interrupts, threads and control groups are named by their key, files by their path.
fn is_of(difference: &ChangedKey, change: &ListedChange) -> bool {
    let key = difference.key.as_str();
    let task = || key.strip_suffix("/mask").unwrap_or(key) == change.key;
    key == change.path.trim_end_matches('/') || key == change.key || task()
}

/// Checks that no pattern of noise hides a written setting.
pub fn none_is_noise(changes: &[ListedChange]) -> Result<(), String> {
    let noise = Noise::read();
    let hidden = changes.iter().find(|change| noise.pattern_of(&change.path).is_some());
    hidden.map_or(Ok(()), |change| Err(format!("{} is written and listed as noise", change.path)))
}

/// Checks that all changes are in one of these states.
pub fn all_are(changes: &[ListedChange], states: &[&str], what: &str) -> Result<(), String> {
    require(!changes.is_empty(), || format!("{what}: no changes"))?;
    let other: Vec<String> = changes
        .iter()
        .filter(|change| !states.contains(&change.state.as_str()))
        .map(|change| format!("{} is {}", change.key, change.state))
        .collect();
    require(other.is_empty(), || format!("{what}: {}", other.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{ "schema": "onbeat.plan/1", "id": "1", "boot": "b", "changes": [
        { "key": "sysctl:vm.stat_interval", "path": "/proc/sys/vm/stat_interval", "rule": "vmstat-interval",
          "now": "1", "wanted": "120", "risk": "low", "lasts": "runtime", "state": "applied", "why": "" },
        { "key": "task:12/345", "path": "/proc/12", "rule": "kthreads",
          "now": "0-3",
          "wanted": "0-1", "risk": "low", "lasts": "runtime", "state": "planned", "why": "" } ] }"#;

    fn plan() -> Vec<ListedChange> {
        let mut reply = Reply::default();
        reply.files.insert("plan".into(), Some(PLAN.into()));
        changes(&reply, "plan").unwrap()
    }

    #[test]
    fn rules_are_counted_by_what_is_seen() {
        let state = |interval: &str, mask: &str| {
            MachineState::parse(&format!(
                "/proc/sys/vm/stat_interval\t={interval}\\n\ntask:12/345/name\t=a\n\
                 task:12/345/mask\t={mask}\n"
            ))
            .unwrap()
        };
        let seen = |interval, mask| rules_with_effect(&plan(), &state("1", "f"), &state(interval, mask));
        assert!(seen("1", "f").is_empty());
        assert_eq!(seen("120", "f"), BTreeSet::from(["vmstat-interval".to_string()]));
        assert_eq!(seen("120", "3").len(), 2);
    }

    #[test]
    fn states_and_shapes_are_exact() {
        assert!(all_are(&plan(), &["applied", "planned"], "x").is_ok());
        assert!(all_are(&plan(), &["applied"], "x").unwrap_err().contains("task:12/345 is planned"));
        assert!(all_are(&[], &["applied"], "x").is_err());
        let mut reply = Reply::default();
        for broken in ["{}", r#"{"schema":"onbeat.plan/1"}"#, &PLAN.replace("\"why\"", "\"reason\"")] {
            reply.files.insert("plan".into(), Some(broken.to_string()));
            assert!(changes(&reply, "plan").is_err(), "{broken}");
        }
        assert!(none_is_noise(&plan()).is_ok());
        let hidden = ListedChange { path: "/proc/sys/fs/file-nr".into(), ..plan().remove(0) };
        assert!(none_is_noise(&[hidden]).is_err());
    }
}
