//! A measured CPU that goes offline during the trial of a change: it ends in one line with the code
//! for inconclusive results, and leaves nothing.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("cpu-offline", include_str!("../../guest/offline.sh"), ended)]
}

/// Time limit for the guardian of a change to end, in ms.
const PATIENCE: i64 = 10_000;

fn ended(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let found = reply.value("found")?.trim();
    let mut lines = Vec::new();
    for way in ["prove", "cure"] {
        lines.push(struck(reply, way, found)?);
    }
    exit(reply, "resumed", 7)?;
    let record = document(reply, "record")?;
    let segments = record["segments"].as_array().ok_or("the record has no segments")?;
    // It went offline in the first run with the change, or before that had begun.
    let counts = segments.iter().any(|segment| segment["arm"] == "b" && segment["valid"] == true);
    require(!counts, || format!("a run with the CPU gone counts: {record}"))?;
    let story = document(reply, "story")?;
    let open = story["steps"][0]["verdict"] == "" && story["steps"][0]["kept"] == false;
    require(open, || format!("the step is decided: {}", story["steps"]))?;
    require(reply.value("after")?.trim() == found, || "the change is still in force".to_string())?;
    Ok(lines)
}

/// One of the commands: its output, and its remains.
fn struck(reply: &Reply, way: &str, found: &str) -> Result<String, String> {
    let set = reply.value(&format!("{way}.set"))?.trim();
    require(set != found, || format!("{way}: no change was made before the CPU went"))?;
    require(reply.value(&format!("{way}.offline"))?.trim() == "0", || format!("{way}: the CPU did not go"))?;
    let said = reply.file(&format!("{way}.err"))?;
    exit(reply, way, 7).map_err(|why| format!("{why}: {said}"))?;
    let is_one = said.trim_end().lines().count() == 1 && said.contains("CPU 2 went offline");
    require(is_one, || format!("{way} said: {said}"))?;
    let after = reply.value(&format!("{way}.after"))?.trim();
    require(after == found, || format!("{way}: {after} instead of {found} is left in force"))?;
    let over = reply.number(&format!("{way}.over"))?;
    require(over < PATIENCE, || format!("{way}: something of onbeat's ran for {over} ms more"))?;
    require(reply.value(&format!("{way}.left"))?.trim().is_empty(), || {
        format!("{way}: something of onbeat's is left running")
    })?;
    let status = document(reply, &format!("{way}.status.out"))?;
    let changes = status["changes"].as_array().ok_or("tune status has no changes")?;
    require(changes.is_empty(), || format!("{way}: tune status still has {changes:?}"))?;
    Ok(format!("{way}: set to {set}, ended with 7 and back at {found}: {}", said.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: &str, said: &str, after: &str) -> Reply {
        let mut reply = Reply::default();
        let fixed = [("set", "120"), ("offline", "0"), ("over", "150"), ("left", "")];
        let values = fixed.into_iter().chain([("exit", code), ("after", after)]);
        for (label, value) in values {
            reply.values.insert(format!("prove.{label}"), value.into());
        }
        reply.files.insert("prove.err".into(), Some(said.into()));
        reply.files.insert("prove.status.out".into(), Some("{ \"changes\": [] }".into()));
        reply
    }

    #[test]
    fn one_line_the_code_and_the_old_value_are_asked_for() {
        let line = "onbeat: CPU 2 went offline during the run: bring it online\n";
        let fits =
            |code: &str, said: &str, after: &str| struck(&reply(code, said, after), "prove", "1").is_ok();
        assert!(fits("7", line, "1"));
        assert!(!fits("2", line, "1") && !fits("7", line, "120") && !fits("7", "", "1"));
        assert!(!fits("7", &line.repeat(2), "1") && !fits("7", "onbeat: something else\n", "1"));
    }
}
