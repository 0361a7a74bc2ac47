//! Simultaneous actions of others: a second apply, other values, a power failure, no confirmation.

use std::collections::{BTreeMap, BTreeSet};

use super::super::document::{ListedChange, all_are, changes};
use super::super::scene::{Measured, POWER_LOSS, UndoScene, compared, idle, none_left, state};
use super::super::state::MachineState;
use crate::live::frames::Reply;
use crate::live::judge::{exit, require};
use crate::live::machine::Machine;

/// `--confirm-within 5s` is over by then.
const UNDONE_WITHIN_MS: i64 = 10_000;

pub fn scenes() -> Vec<UndoScene> {
    let applied = include_str!("../../guest/tune-applied.sh").to_string();
    debug_assert!(applied.ends_with(POWER_LOSS));
    vec![
        UndoScene::new("tune-two", include_str!("../../guest/tune-two.sh"), two),
        UndoScene::new("tune-rivals", include_str!("../../guest/tune-rivals.sh"), rivals),
        UndoScene {
            boots: vec![applied, include_str!("../../guest/tune-rebooted.sh").to_string()],
            ..UndoScene::new("tune-rebooted", "", rebooted)
        },
        UndoScene::new("tune-confirm", include_str!("../../guest/tune-confirm.sh"), confirm),
    ]
}

fn both_outputs(reply: &Reply, label: &str) -> String {
    let part = |end: &str| reply.file(&format!("{label}.{end}")).unwrap_or_default().to_string();
    part("out") + &part("err")
}

fn states<const N: usize>(
    reply: &Reply,
    labels: [&str; N],
    machine: &Machine,
) -> Result<[MachineState; N], String> {
    let states: Vec<MachineState> =
        labels.iter().map(|label| state(reply, label, machine)).collect::<Result<_, String>>()?;
    states.try_into().map_err(|_| "not as many states as asked for".to_string())
}

fn two(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    let holder = reply.value("holder")?.trim();
    require(!holder.is_empty(), || "the first apply did not run".to_string())?;
    for refused in ["second", "undo-early"] {
        exit(reply, refused, 4)?;
        require(
            both_outputs(reply, refused).split(|c: char| !c.is_ascii_digit()).any(|word| word == holder),
            || format!("{refused} does not name process {holder}: {}", both_outputs(reply, refused).trim()),
        )?;
    }
    exit(reply, "status", 0)?;
    require(reply.number("first.exit")? == 0, || {
        format!("the first: {}", both_outputs(reply, "first").trim())
    })?;
    exit(reply, "undo", 0)?;
    all_are(&changes(reply, "made")?, &["applied", "pending"], "apply")?;
    let [before, applied, after] = states(reply, ["before", "applied", "after"], machine)?;
    let (changed, _) = compared(&before, &applied, &BTreeSet::new());
    require(!changed.is_empty(), || "the first apply changed nothing".to_string())?;
    let (left, line) = compared(&before, &after, &idle(reply)?);
    none_left(&left, "after the undo")?;
    Ok(vec![line, format!("refused: {}", both_outputs(reply, "second").trim())])
}

fn rivals(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    let pairs = reply.file("rivals")?.lines().filter_map(|line| line.split_once(' '));
    let theirs: BTreeMap<&str, &str> = pairs.collect();
    require(theirs.len() == 3, || format!("{} values were changed instead of three", theirs.len()))?;
    exit(reply, "apply", 0)?;
    exit(reply, "undo", 3)?;
    let [before, after, forced] = states(reply, ["before", "after", "forced"], machine)?;
    let undone = changes(reply, "undone")?;
    for (path, value) in &theirs {
        let change = undone.iter().find(|change| change.path == *path);
        let change = change.ok_or_else(|| format!("the undo's document lacks {path}"))?;
        require(change.state == "kept", || format!("{path} is {} instead of kept", change.state))?;
        require(both_outputs(reply, "undo").contains(change.key.trim_start_matches("sysctl:")), || {
            format!("the undo does not name {path}: {}", both_outputs(reply, "undo").trim())
        })?;
        require(after.text(path) == Some(&format!("{value}\\n")), || {
            format!("{path} is {:?} instead of {value}", after.text(path))
        })?;
    }
    let (mut left, line) = compared(&before, &after, &idle(reply)?);
    left.retain(|difference| !theirs.contains_key(difference.key.as_str()));
    none_left(&left, "after the undo, except for changes by others")?;
    exit(reply, "force", 0)?;
    let (left, _) = compared(&before, &forced, &idle(reply)?);
    none_left(&left, "after the undo with --force")?;
    Ok(vec![line, format!("kept: {}", theirs.into_keys().collect::<Vec<_>>().join(" "))])
}

/// True if a change of `apply` is not in the journal.
fn is_unwritten(change: &ListedChange) -> bool {
    matches!(change.why.as_str(), "it was so already" | "the thread has ended")
}

fn rebooted(replies: &[Reply], machine: &Machine) -> Measured {
    let [first, second] = replies else { return Err("not two boots".to_string()) };
    exit(first, "apply", 0)?;
    let [before, applied] = states(first, ["before", "applied"], machine)?;
    require(!compared(&before, &applied, &BTreeSet::new()).0.is_empty(), || {
        "nothing was changed".to_string()
    })?;
    let made = changes(first, "made")?;
    let void = changes(second, "status")?;
    all_are(&void, &["void"], "status after the reboot")?;
    // Settings already in force, as masks of threads that the partition moved, are not written.
    let (unwritten, written): (Vec<_>, Vec<_>) = made.iter().partition(|change| is_unwritten(change));
    require(void.len() == written.len(), || {
        let (void, written, unwritten) = (void.len(), written.len(), unwritten.len());
        format!("{void} of {written} changes are listed, {unwritten} were so already")
    })?;
    exit(second, "told", 0)?;
    require(both_outputs(second, "told").contains("boot"), || {
        format!("status does not say that the machine was booted: {}", both_outputs(second, "told").trim())
    })?;
    exit(second, "undo", 0)?;
    let [before, after, again] = states(second, ["before", "after", "again"], machine)?;
    let (left, line) = compared(&before, &after, &BTreeSet::new());
    none_left(&left, "after an undo of what is void")?;
    exit(second, "apply", 0)?;
    exit(second, "undo-again", 0)?;
    let (left, _) = compared(&before, &again, &idle(second)?);
    none_left(&left, "applied and undone in the second boot")?;
    Ok(vec![line, format!("{} changes void after the power failed", void.len())])
}

fn confirm(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    let waited_for = reply.number("waited-for")?;
    require(waited_for > 20, || format!("only {waited_for} settings and threads are waited for"))?;
    let mut lines = vec![format!("{waited_for} settings and threads are waited for")];
    for (label, changed) in [("closed", "applied.changed"), ("killed", "killed.changed")] {
        let changed = reply.number(changed)?;
        require(changed >= 5, || format!("{label}: only {changed} of them were changed"))?;
        let ms = reply.number(&format!("{label}.ms"))?;
        let left = reply.file(&format!("{label}.left"))?.trim();
        require(left.is_empty(), || format!("{label}: not undone after {ms} ms: {left}"))?;
        require(ms <= UNDONE_WITHIN_MS, || format!("{label}: not undone within {ms} ms"))?;
        lines.push(format!("{label}: {changed} of them changed, undone after {ms} ms"));
    }
    require(reply.number("killed.exit")? == 137, || "the applier was not killed in between".to_string())?;
    let [before, after, killed, kept] =
        states(reply, ["before", "after", "after-killed", "after-kept"], machine)?;
    let idle = idle(reply)?;
    let (left, line) = compared(&before, &after, &idle);
    none_left(&left, "undone by itself")?;
    none_left(&compared(&before, &killed, &idle).0, "undone by itself after a kill in between")?;
    for label in ["status", "kept", "confirm", "status-kept", "between", "undo"] {
        exit(reply, label, 0)?;
    }
    all_are(&changes(reply, "kept")?, &["applied", "pending"], "after the confirmation")?;
    none_left(&compared(&before, &kept, &idle).0, "after confirming and undoing")?;
    lines.push(line);
    lines.push(format!("the terminal's program had {}", reply.file("terminal")?.trim()));
    Ok(lines)
}
