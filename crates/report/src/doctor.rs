//! Commands of a machine as a table of one screen, the missing needs, and the answer.

use crate::folded::{FoldedColumn, write_columns};
use crate::last_lines::LastLines;
use crate::palette::{BOLD, PLAIN, Palette};
use crate::words::{clean, filled, several};
use model::doctor::{CommandAbility, CommandState, DoctorDocument};

/// Columns before a need's reason.
const NAME: usize = 16;

/// Document as text.
pub fn render(document: &DoctorDocument, columns: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    let rows = joined(&document.commands);
    let cells = |cell: &dyn Fn(&[&CommandAbility]) -> String| rows.iter().map(|row| cell(row)).collect();
    let names = |row: &[&CommandAbility]| {
        let names: Vec<&str> = row.iter().map(|found| found.command).collect();
        names.join(", ")
    };
    let table = vec![
        FoldedColumn { head: "commands", least: 12, cells: cells(&names) },
        FoldedColumn {
            head: "here",
            least: usize::MAX,
            cells: cells(&|row| row[0].state.name().replace('-', " ")),
        },
        FoldedColumn { head: "missing", least: 16, cells: cells(&|row| row[0].missing.join(", ")) },
    ];
    write_columns(&mut page, table, columns, &|_| PLAIN, palette);
    let missing: Vec<_> = document.needs.iter().filter(|need| !need.found).collect();
    if !missing.is_empty() {
        page.push('\n');
    }
    for need in missing {
        let first = palette.paint(BOLD, &format!("{:<NAME$}", need.need));
        filled(&mut page, &first, &clean(&need.why), NAME, columns);
    }
    page + &answer(document).render(columns, palette)
}

/// Commands of one state that lack the same needs, in the order of the first.
fn joined(commands: &[CommandAbility]) -> Vec<Vec<&CommandAbility>> {
    let mut rows: Vec<Vec<&CommandAbility>> = Vec::new();
    for found in commands {
        let is_alike = |row: &&mut Vec<&CommandAbility>| {
            (row[0].state, &row[0].missing) == (found.state, &found.missing)
        };
        match rows.iter_mut().find(is_alike) {
            Some(row) => row.push(found),
            None => rows.push(vec![found]),
        }
    }
    rows
}

fn answer(document: &DoctorDocument) -> LastLines {
    let of = |wanted: &[CommandState]| -> Vec<&str> {
        let commands = document.commands.iter().filter(|found| wanted.contains(&found.state));
        commands.map(|found| found.command).collect()
    };
    let works = of(&[CommandState::Works]);
    let partly = of(&[CommandState::Partly]);
    let not = of(&[CommandState::NotPermitted, CommandState::NotSupported]);
    let host = &document.host;
    let user = if host.root { "as root" } else { "as an ordinary user" };
    let machine = if host.virtualization == "none" || host.virtualization.is_empty() {
        String::new()
    } else {
        format!(" under {}", clean(&host.virtualization))
    };
    let mut lines = LastLines::default();
    lines.row(
        "here",
        format!(
            "onbeat {} on Linux {} ({}, preemption {}){machine}, {user}",
            document.version,
            clean(&host.release),
            clean(&host.machine),
            clean(&host.preempt)
        ),
    );
    let all = several(document.commands.len() as u64, "command", "commands");
    let mut text = format!("{} of {all}", works.len());
    if !partly.is_empty() {
        text += &format!(", {} in part", partly.len());
    }
    lines.styled("works", text, BOLD);
    lines.row("not", not.join(", "));
    let is_permitted = document.commands.iter().all(|found| found.state != CommandState::NotPermitted);
    let next = match (host.root, is_permitted) {
        (false, _) => "sudo onbeat doctor: what root may do",
        (true, _) if works.len() == document.commands.len() => "onbeat measure -D 10s",
        _ => "",
    };
    lines.row("next", next);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::doctor::{DOCTOR_SCHEMA, ExaminedHost, NeedState};

    fn document() -> DoctorDocument {
        let found = |command, state, missing: &[&'static str]| CommandAbility {
            command,
            state,
            requires: Vec::new(),
            uses: Vec::new(),
            missing: missing.to_vec(),
        };
        let need = |need, why: &str| NeedState { need, found: why.is_empty(), why: why.to_owned() };
        DoctorDocument {
            schema: DOCTOR_SCHEMA,
            version: "0.1.0",
            host: ExaminedHost {
                release: "6.12.41-rt".into(),
                machine: "x86_64".into(),
                preempt: "rt".into(),
                virtualization: "none".into(),
                root: false,
            },
            commands: vec![
                found("measure", CommandState::Partly, &["rt-policy"]),
                found("hunt", CommandState::NotPermitted, &["tracing", "rt-policy"]),
                found("explain", CommandState::Works, &[]),
                found("probe spin", CommandState::Partly, &["rt-policy"]),
            ],
            needs: vec![
                need("tracing", "tracefs is not permitted here\u{1b}[2J: run as root"),
                need("rt-policy", "SCHED_FIFO with priority 80 is refused: run as root, or raise the limit"),
                need("timers", ""),
            ],
        }
    }

    #[test]
    fn alike_commands_share_a_row_and_each_missing_need_has_its_remedy() {
        let text = render(&document(), 80, false);
        let expected = "\
commands             here           missing
measure, probe spin  partly         rt-policy
hunt                 not permitted  tracing, rt-policy
explain              works

tracing         tracefs is not permitted here\u{fffd}[2J: run as root
rt-policy       SCHED_FIFO with priority 80 is refused: run as root, or raise
                the limit

here    onbeat 0.1.0 on Linux 6.12.41-rt (x86_64, preemption rt), as an ordinary
        user
works   1 of 4 commands, 2 in part
not     hunt
next    sudo onbeat doctor: what root may do
";
        assert_eq!(text, expected);
        for columns in [40, 60, 120] {
            assert!(render(&document(), columns, false).lines().all(|line| line.chars().count() <= columns));
        }
    }

    #[test]
    fn a_machine_that_lacks_nothing_has_the_next_command() {
        let mut all = document();
        all.host.root = true;
        all.commands.iter_mut().for_each(|found| {
            found.state = CommandState::Works;
            found.missing.clear();
        });
        all.needs.iter_mut().for_each(|need| (need.found, need.why) = (true, String::new()));
        let text = render(&all, 80, false);
        assert!(text.contains("works   4 of 4 commands\nnext    onbeat measure -D 10s\n"), "{text}");
        assert!(!text.contains("not  "), "{text}");
    }
}
