//! A machine that is cured of a planted fault, killed during the trial of a change, and continued.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene { faults: true, ..UndoScene::new("cure", include_str!("../../guest/cure.sh"), cured) }]
}

/// Time limit for undoing a killed command's changes, in ms.
const PATIENCE: i64 = 10_000;

fn cured(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let is = |label: &str, wanted: &str| -> Result<(), String> {
        let found = reply.value(label)?;
        require(found.trim() == wanted, || format!("{label}: {found} instead of {wanted}"))
    };
    exit(reply, "plan", 0)?;
    let (plan, cautious) = (reply.file("plan.out")?, reply.file("cautious.out")?);
    require(plan.contains("40, 120, 240") && plan.contains("(medium risk)"), || {
        format!("the plan offers no change: {plan}")
    })?;
    require(cautious.contains("(medium risk, needs --yes)"), || {
        format!("what costs others something is tried without --yes: {cautious}")
    })?;
    exit(reply, "short", 2)?;
    is("found", "2")?;
    let set = reply.value("set")?.trim().to_owned();
    require(set != "2" && !set.is_empty(), || "no change was tried".to_string())?;
    exit(reply, "other", 4)?;
    is("given-back", "2")?;
    let given_back = reply.number("given-back.ms")?;
    require(given_back < PATIENCE, || format!("given back only after {given_back} ms"))?;
    let cure = document(reply, "cure")?;
    text_is(&cure, "/schema", "onbeat.cure/1")?;
    let step = &cure["steps"][0];
    let moved = step["change"].as_str().is_some_and(|change| change.starts_with("user_spin ("));
    require(moved, || format!("what was tried is {}", step["change"]))?;
    text_is(&cure, "/steps/0/verdict", "better")?;
    require(step["kept"] == true, || format!("it was not kept: {}", step["why"]))?;
    is("after", &set)?;
    let status = reply.file("status.out")?;
    require(status.contains("task:"), || format!("what was kept is not in the status: {status}"))?;
    exit(reply, "undo", 0)?;
    is("undone", "2")?;
    is("left", "")?;
    let markdown = reply.file("markdown")?;
    require(markdown.contains("user\\_spin (") && markdown.contains(": kept"), || {
        format!("the story lacks its step: {markdown}")
    })?;
    // An emulator that stops for longer than the limit is late too.
    Ok(vec![format!(
        "{} ({}) after {} s; late {} without, {} with it, {} of {} pairs; given back {given_back} ms after \
         kill -9; ended with {}",
        cure["ended"].as_str().unwrap_or_default(),
        cure["why"].as_str().unwrap_or_default(),
        cure["spent_ns"].as_i64().unwrap_or(0) / 1_000_000_000,
        step["late"][0],
        step["late"][1],
        step["wins"],
        step["pairs"],
        reply.number("resumed.exit")?,
    )])
}
