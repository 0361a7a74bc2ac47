//! The commands of the tutorial and the README that need root and a real machine, run in their
//! order: each ends as a reader expects.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{exit, require};
use crate::live::machine::Machine;

const TUTORIAL: &str = include_str!("../../../../../docs/tutorial.md");
const README: &str = include_str!("../../../../../README.md");
const TYPED: &str = include_str!("../../guest/documented.sh");

/// Beginnings of commands in the README that change settings.
const SETTING: [&str; 2] = ["sudo onbeat tune ", "sudo onbeat isolate "];

pub fn scenes() -> Vec<UndoScene> {
    let commands = documented().into_iter().map(|(label, command)| format!("typed {label} '{command}'\n"));
    let script = format!("{TYPED}\n{}", commands.collect::<String>());
    vec![UndoScene { robots: true, ..UndoScene::new("documented", &script, judged) }]
}

/// All commands by label, as they are typed.
fn documented() -> Vec<(String, String)> {
    let tutorial = in_blocks(TUTORIAL).into_iter().filter(|line| line.contains("sudo "));
    let readme =
        indented(README).into_iter().filter(|line| SETTING.iter().any(|command| line.starts_with(command)));
    let all = tutorial.map(|line| ("tutorial", line)).chain(readme.map(|line| ("readme", line)));
    let typed = |line: &str| line.replace("PROGRAM", "true").replace("-D 60s", "-D 3s");
    all.enumerate().map(|(at, (of, line))| (format!("{of}-{}", at + 1), typed(line))).collect()
}

/// The commands of its blocks of console.
fn in_blocks(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(kind) => inside = kind.starts_with("console"),
            None if inside => found.extend(line.strip_prefix("$ ")),
            None => {}
        }
    }
    found
}

/// Lines of its indented blocks, without their comments.
fn indented(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines.map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim_end()).collect()
}

fn judged(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let mut told = Vec::new();
    for (label, command) in documented() {
        exit(reply, &label, 0).map_err(|why| format!("{command}: {why}"))?;
        let out = reply.file(&format!("{label}.out")).unwrap_or_default();
        let answer = out.lines().find(|line| ["late ", "answer "].iter().any(|of| line.starts_with(of)));
        told.extend(answer.map(|answer| format!("{command}: {answer}")));
        // Result that the tutorial promises.
        if command.ends_with("hunt --deadline 2ms -D 10s -- ./robot-careless") {
            let who = out.lines().find(|line| line.starts_with("who ")).unwrap_or_default();
            require(who.contains("logger"), || format!("{command} names {who:?} in the place of logger"))?;
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_documents_have_commands_that_are_tried() {
        let all = documented();
        let of = |start: &str| all.iter().filter(|(label, _)| label.starts_with(start)).count();
        assert!(of("tutorial-") >= 4 && of("readme-") >= 6, "{all:?}");
        // They are enclosed in apostrophes in the script.
        assert!(all.iter().all(|(_, command)| !command.contains('\'')), "{all:?}");
        assert_eq!(indented("a\n    b c   # d\n    e\n"), ["b c", "e"]);
        assert_eq!(in_blocks("$ a\n```console\n$ b\nc\n```\n```text\n$ d\n```"), ["b"]);
    }
}
