//! Killed at every point at which something is flushed or written, on its way there and back.

use super::super::scene::{Measured, UndoScene, compared_as, idle, none_left, state};
use crate::live::frames::Reply;
use crate::live::judge::require;
use crate::live::machine::Machine;

/// Number of boots that share the points: one must not exceed the emulator's time limit.
const SHARES: usize = 8;
/// Number of kills after which everything is compared; the written settings and the threads are
/// compared after each.
const FULL: usize = 12;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene {
            boots: shares(include_str!("../../guest/tune-killed.sh")),
            ..UndoScene::new("tune-killed", "", |replies, machine| killed(replies, machine, "apply"))
        },
        UndoScene {
            boots: shares(include_str!("../../guest/tune-undo-killed.sh")),
            ..UndoScene::new("tune-undo-killed", "", |replies, machine| killed(replies, machine, "undo"))
        },
    ]
}

fn shares(script: &str) -> Vec<String> {
    (1..=SHARES).map(|first| format!("FIRST={first}\nSTEP={SHARES}\nFULL={FULL}\n{script}")).collect()
}

fn killed(replies: &[Reply], machine: &Machine, what: &str) -> Measured {
    let (mut kills, mut flushes, mut whole) = (0, 0, 0);
    let mut wrong = Vec::new();
    let mut points = 0;
    for reply in replies {
        let (before, idle) = (state(reply, "before", machine)?, idle(reply)?);
        require(reply.number("whole.exit")? == 0, || format!("{what} without a kill did not end with 0"))?;
        points = points.max(reply.number("points")?);
        for (label, said) in reply.values.iter().filter(|(label, _)| label.starts_with("killed.")) {
            let point = label.trim_start_matches("killed.");
            // Which files are created anew differs between runs: the last may end before its point.
            if !said.starts_with("137 ") {
                continue;
            }
            kills += 1;
            flushes += usize::from(said.contains("-flush"));
            let everything = reply.files.contains_key(&format!("whole.{point}"));
            whole += usize::from(everything);
            let label = if everything { format!("whole.{point}") } else { format!("after.{point}") };
            let (left, _) = compared_as(&before, &state(reply, &label, machine)?, &idle, everything);
            if let Err(why) = none_left(&left, &format!("{what} killed at {said}")) {
                wrong.push(why);
            }
            let undo = reply.value(&format!("undo.{point}"))?;
            if !undo.starts_with("0 ") && undo != "0" {
                wrong.push(format!("undo after a kill at {said} ended with {undo}"));
            }
        }
    }
    let line = format!(
        "{what}: {points} points, killed at {kills} ({flushes} at a flush), \
         everything compared after {whole} of them"
    );
    require(wrong.is_empty(), || format!("{line}; {} wrong: {}", wrong.len(), first_four(&wrong)))?;
    require(points >= 20 && kills * 10 >= usize::try_from(points).unwrap_or(0) * 9, || {
        format!("{line}: too few")
    })?;
    require(whole >= 10, || format!("{line}: too few looks at everything"))?;
    Ok(vec![line])
}

fn first_four(wrong: &[String]) -> String {
    wrong.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(" | ")
}
