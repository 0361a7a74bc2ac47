//! A machine that is cured of a planted fault, killed while a change is tried and gone on with.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("cure", include_str!("../../guest/cure.sh"), cured)]
}

/// What undoes a killed command's changes has so long, in ms.
const PATIENCE: i64 = 10_000;

fn cured(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let is = |label: &str, wanted: &str| -> Result<(), String> {
        let found = reply.value(label)?;
        require(found.trim() == wanted, || format!("{label}: {found} instead of {wanted}"))
    };
    exit(reply, "plan", 0)?;
    let (plan, cautious) = (reply.file("plan.out")?, reply.file("cautious.out")?);
    require(plan.contains("irq-affinity (medium risk)\n"), || format!("the plan offers no change: {plan}"))?;
    require(cautious.contains("irq-affinity (medium risk, not without --yes)"), || {
        format!("what costs others something is tried without --yes: {cautious}")
    })?;
    exit(reply, "short", 2)?;
    is("found", "0-3")?;
    let set = reply.value("set")?.trim().to_owned();
    require(set != "0-3" && !set.is_empty(), || "no change was tried".to_string())?;
    exit(reply, "other", 4)?;
    is("given-back", "0-3")?;
    let given_back = reply.number("given-back.ms")?;
    require(given_back < PATIENCE, || format!("given back only after {given_back} ms"))?;
    let cure = document(reply, "cure")?;
    text_is(&cure, "/schema", "onbeat.cure/1")?;
    text_is(&cure, "/steps/0/change", "irq-affinity")?;
    text_is(&cure, "/steps/0/verdict", "better")?;
    require(cure["steps"][0]["kept"] == true, || format!("it was not kept: {}", cure["steps"][0]["why"]))?;
    is("after", &set)?;
    let status = reply.file("status.out")?;
    require(status.contains("irq-affinity"), || format!("what was kept is not in the status: {status}"))?;
    exit(reply, "undo", 0)?;
    is("undone", "0-3")?;
    is("left", "")?;
    let markdown = reply.file("markdown")?;
    require(markdown.contains("irq-affinity, against") && markdown.contains(": kept"), || {
        format!("the story lacks its step: {markdown}")
    })?;
    // An emulator that stops for longer than the limit is late too.
    let step = &cure["steps"][0];
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
