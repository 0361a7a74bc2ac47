//! A suite that switches preemption models, run to its end and killed in the middle.

use std::collections::BTreeSet;

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("suite-models", include_str!("../../guest/suite-models.sh"), models)]
}

fn models(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let offered = reply.value("offered")?.trim().to_string();
    let suite = document(reply, "suite")?;
    text_is(&suite, "/schema", "onbeat.suite/1")?;
    let phases = suite["phases"].as_array().ok_or("the suite has no phases")?;
    let models = offered.split_whitespace().count().max(1);
    require(phases.len() == 6 * models, || format!("{} phases of {models} models", phases.len()))?;
    // A load may be too slow under the emulator to be judged in two seconds: that is a hole with a
    // reason, and the others are there.
    let told = |phase: &&serde_json::Value| phase["valid"] == true || phase["why"] != "";
    require(phases.iter().all(|phase| told(&phase)), || "a hole has no reason".to_string())?;
    let valid = phases.iter().filter(|phase| phase["valid"] == true).count();
    require(valid * 2 > phases.len(), || format!("{valid} of {} phases are valid", phases.len()))?;
    let seen: BTreeSet<&str> = phases.iter().filter_map(|phase| phase["model"].as_str()).collect();
    require(reply.value("after")?.trim() == offered, || {
        format!("{offered} became {}", reply.value("after").unwrap_or_default())
    })?;
    require(reply.value("groups")?.trim() == "0", || "control groups of loads are left".to_string())?;
    if offered.is_empty() {
        return Ok(vec![format!("{valid} phases, one model: the kernel cannot switch")]);
    }
    require(seen.len() == models, || format!("models {seen:?} instead of {offered}"))?;
    require(reply.value("switched")?.trim() != offered, || "nothing was switched".to_string())?;
    require(reply.value("given-back")?.trim() == offered, || {
        format!("killed, {offered} stayed {}", reply.value("given-back").unwrap_or_default())
    })?;
    Ok(vec![format!("{valid} of {} phases valid; {offered} came back, also after kill -9", phases.len())])
}
