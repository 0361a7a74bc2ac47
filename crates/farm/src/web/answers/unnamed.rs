//! Values for public readers: latencies and times. Names of programs, machines, kernels and users
//! are removed before pages or data are generated.

use std::collections::BTreeSet;

use model::labels::Labels;

use crate::changes::{ChangeKind, FarmChange, without_tag};
use crate::ingest::board_key::may_be_key_of;
use crate::pages::parts::escaped;
use crate::records::{FarmBoard, FarmRun, FarmSlot, SeriesOfBoard};
use crate::web::edge::visitor::Visitor;

/// Boards without machine and kernel. A board that is named after its machine is hidden, because
/// each of its addresses has that name.
pub fn boards(visitor: &Visitor, all: &mut Vec<FarmBoard>) {
    if visitor.is_unnamed() {
        all.retain(|board| !is_called_after_machine(board));
        all.iter_mut().for_each(without_host);
    }
}

fn is_called_after_machine(board: &FarmBoard) -> bool {
    !board.model.trim().is_empty() && may_be_key_of(&board.board, &board.model)
}

fn without_host(board: &mut FarmBoard) {
    for text in [&mut board.model, &mut board.release, &mut board.preempt, &mut board.environment] {
        text.clear();
    }
    board.settings.tags.clear();
    board.settings.lab.clear();
    if board.settings.budget_of.starts_with("tag ") {
        "tag".clone_into(&mut board.settings.budget_of);
    }
}

/// Series without the commands and paths of their loads; the kind of load stays.
pub fn series(visitor: &Visitor, all: &mut [SeriesOfBoard]) {
    if visitor.is_unnamed() {
        all.iter_mut().for_each(|one| one.words = without_commands(&one.words));
    }
}

fn without_commands(words: &str) -> String {
    let mut kept = Vec::new();
    for part in words.split(", ") {
        let Some(load) = part.strip_prefix("load ") else {
            kept.push(part.to_owned());
            continue;
        };
        // A command extends to the end of its load, whatever it contains.
        if load == "cmd" || load.starts_with("cmd:") {
            kept.push("load cmd".to_owned());
            break;
        }
        kept.push(format!("load {}", load.split(',').next().unwrap_or_default()));
    }
    kept.join(", ")
}

/// Runs without kernel, environment and labels.
pub fn runs(visitor: &Visitor, all: &mut [FarmRun]) {
    if visitor.is_unnamed() {
        for run in all {
            run.release.clear();
            run.environment.clear();
            run.labels = Labels::default();
        }
    }
}

/// Slots without victim and culprit.
pub fn slots(visitor: &Visitor, all: &mut [FarmSlot]) {
    if visitor.is_unnamed() {
        for slot in all {
            slot.culprit.clear();
            slot.victim.clear();
        }
    }
}

/// Changes of the shown boards without settings, culprits, and commands and paths of loads.
pub fn changes(visitor: &Visitor, shown: &[FarmBoard], all: &mut Vec<FarmChange>) {
    if visitor.is_unnamed() {
        let shown: BTreeSet<&str> = shown.iter().map(|board| board.board.as_str()).collect();
        all.retain(|one| shown.contains(one.board.as_str()));
        all.iter_mut().for_each(without_names);
    }
}

fn without_names(one: &mut FarmChange) {
    one.settings.clear();
    one.subject.clear();
    // Pages of runs are not for the public.
    if one.address.starts_with("/runs/") {
        one.address = format!("/b/{}", escaped(&one.board));
    }
    without_tag(&mut one.evidence);
    without_commands_in_texts(one);
    if let Some(by) = &mut one.acknowledged {
        (by.who, by.note) = (String::new(), String::new());
    }
    let says = match one.kind {
        ChangeKind::NewCulprit => {
            "a new culprit".clone_into(&mut one.claim);
            "A new culprit."
        }
        ChangeKind::Worse | ChangeKind::Better | ChangeKind::Environment => "A new environment.",
        ChangeKind::MoreOften | ChangeKind::LessOften | ChangeKind::Silent | ChangeKind::OverBudget => {
            return;
        }
    };
    says.clone_into(&mut one.says);
    one.address = format!("/b/{}", escaped(&one.board));
}

/// Removes commands of loads from sentences, which name a series by its conditions. The conditions
/// of one series may begin with those of another.
fn without_commands_in_texts(one: &mut FarmChange) {
    one.conditions.sort_unstable_by_key(|words| std::cmp::Reverse(words.len()));
    for words in std::mem::take(&mut one.conditions) {
        let shown = without_commands(&words);
        if shown == words {
            continue;
        }
        for text in std::iter::once(&mut one.says).chain(&mut one.evidence) {
            *text = text.replace(&words, &shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::made::made_change;
    use crate::ingest::board_key::board_of;

    #[test]
    fn of_a_load_its_kind_and_amount_stay() {
        for (words, wanted) in [
            ("every 1 ms, fifo 80", "every 1 ms, fifo 80"),
            ("every 1 ms, load cmd:md5sum /dev/zero", "every 1 ms, load cmd"),
            ("load cpu:2x1M, load cmd:sh -c 'a, load b, c', load net", "load cpu:2x1M, load cmd"),
            ("load cmd", "load cmd"),
            ("load disk:2@5,path=/srv/secret, load net", "load disk:2@5, load net"),
            ("load cmdline:3", "load cmdline:3"),
            ("", ""),
        ] {
            assert_eq!(without_commands(words), wanted);
        }
    }

    #[test]
    fn what_a_change_says_of_a_series_has_no_command() {
        let words = ["every 1 ms", "every 1 ms, load cmd:sh", "every 1 ms, load cmd:sh -c secret"];
        let (says, evidence) = (
            |words: &str| format!("Latencies of hunt ({words}) come more often."),
            |words: &str| format!("Hunt ({words}): 7 days before against 7 days after 2026-11-02: higher."),
        );
        let mut one = FarmChange {
            says: says(words[2]),
            evidence: words.map(evidence).to_vec(),
            conditions: words.map(str::to_owned).to_vec(),
            ..made_change("a", ChangeKind::MoreOften, 1)
        };
        without_names(&mut one);
        assert_eq!(one.says, says("every 1 ms, load cmd"));
        assert_eq!(
            one.evidence,
            ["every 1 ms", "every 1 ms, load cmd", "every 1 ms, load cmd"].map(evidence)
        );
    }

    #[test]
    fn a_change_that_a_run_shows_leads_to_its_board() {
        for (address, wanted) in [("/runs/r1", "/b/a%20b"), ("/b/a%20b/at/9", "/b/a%20b/at/9")] {
            let one = made_change("a b", ChangeKind::OverBudget, 1);
            let mut one = FarmChange { address: address.to_owned(), ..one };
            without_names(&mut one);
            assert_eq!(one.address, wanted);
        }
    }

    #[test]
    fn a_board_that_is_called_after_its_machine_is_known_by_its_address() {
        let board = |key: &str, model: &str| FarmBoard {
            board: key.to_owned(),
            model: model.to_owned(),
            ..FarmBoard::default()
        };
        let long = "An M".repeat(40);
        for (board, is) in [
            (board("QEMU-TCG-CPU-version-2.5", "QEMU TCG CPU version 2.5+"), true),
            (board(&board_of(&long).0, &long), true),
            (board("press-3", "QEMU TCG CPU version 2.5+"), false),
            // What an empty name becomes.
            (board("board", ""), false),
            (board("board", " "), false),
        ] {
            assert_eq!(is_called_after_machine(&board), is, "{}", board.board);
        }
    }
}
