//! Applied and undone; and commands that must change nothing at all.

use std::collections::BTreeSet;

use super::super::document::{all_are, changes, none_is_noise, rules_with_effect};
use super::super::scene::{Measured, UndoScene, compared, idle, none_left, state};
use crate::live::frames::Reply;
use crate::live::judge::{documents, exit, require};
use crate::live::machine::Machine;

/// Minimum number of rules that must have changed something.
const RULES: usize = 15;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene {
            first: true,
            ..UndoScene::new("tune-short", include_str!("../../guest/tune-short.sh"), short)
        },
        UndoScene::new("tune-undone", include_str!("../../guest/tune-undone.sh"), undone),
        UndoScene::new("tune-read-only", include_str!("../../guest/tune-read-only.sh"), read_only),
    ]
}

fn short(replies: &[Reply], machine: &Machine) -> Measured {
    const KEY: &str = "/proc/sys/vm/stat_interval";
    let reply = &replies[0];
    exit(reply, "apply", 0)?;
    exit(reply, "undo", 0)?;
    let [before, applied, after] = ["before", "applied", "after"].map(|label| state(reply, label, machine));
    let (before, applied, after) = (before?, applied?, after?);
    all_are(&changes(reply, "made")?, &["applied"], "apply")?;
    let values = [&before, &applied, &after].map(|state| state.text(KEY).unwrap_or_default().to_string());
    require(values[0] != values[1] && !values[0].is_empty(), || format!("{KEY} was {values:?}"))?;
    let (left, line) = compared(&before, &after, &idle(reply)?);
    none_left(&left, "after the undo")?;
    documents(reply, 6)?;
    Ok(vec![line, format!("{KEY}: {}", values.join(" ").replace("\\n", ""))])
}

fn undone(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    for label in ["apply", "status", "undo", "again"] {
        exit(reply, label, 0)?;
    }
    let [before, applied, after] = ["before", "applied", "after"].map(|label| state(reply, label, machine));
    let (before, applied, after) = (before?, applied?, after?);
    let made = changes(reply, "made")?;
    all_are(&made, &["applied", "pending", "void"], "apply")?;
    all_are(&changes(reply, "status")?, &["applied", "pending"], "status")?;
    all_are(&changes(reply, "undone")?, &["undone"], "undo")?;
    none_is_noise(&made)?;
    let rules = rules_with_effect(&made, &before, &applied);
    let (left, line) = compared(&before, &after, &idle(reply)?);
    let ms = |label: &str| reply.value(&format!("{label}.ms")).unwrap_or("?").to_string();
    let took = format!("{} changes; apply took {} ms, undo {} ms", made.len(), ms("apply"), ms("undo"));
    let told: Vec<&str> = rules.iter().map(String::as_str).collect();
    let seen = format!("{} rules changed something: {}", rules.len(), told.join(" "));
    none_left(&left, "after the undo").map_err(|why| format!("{why} ({line}; {seen})"))?;
    require(rules.len() >= RULES, || seen.clone())?;
    Ok(vec![line, took, seen])
}

fn read_only(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    for label in ["plan", "kept", "status", "export", "user"] {
        exit(reply, label, 0)?;
    }
    all_are(&changes(reply, "plan")?, &["planned"], "plan")?;
    require(!reply.file("exported")?.is_empty(), || "nothing was exported".to_string())?;
    let (before, after) = (state(reply, "before", machine)?, state(reply, "after", machine)?);
    let (left, line) = compared(&before, &after, &BTreeSet::new());
    none_left(&left, "after what only reads")?;
    // The file contains 1, and the timer of each CPU is armed.
    let wanted = format!("1.{}", reply.value("watchdog.cpus")?);
    let readers: Vec<_> =
        reply.values.iter().filter(|(label, _)| label.starts_with("watchdog.after.")).collect();
    require(readers.len() == 4, || format!("{} readers instead of four", readers.len()))?;
    for (reader, found) in readers {
        require(**found == wanted, || format!("{reader}: the watchdog is {found} instead of {wanted}"))?;
    }
    Ok(vec![line, format!("plan took {} ms", reply.value("plan.ms")?)])
}
