//! What the public sees where it may read: latencies and times. Names of programs, machines,
//! kernels and people are taken out of the values, before anything is made of them.

use model::labels::Labels;

use super::visitor::Visitor;
use crate::changes::{ChangeKind, FarmChange};
use crate::pages::parts::escaped;
use crate::records::{FarmBoard, FarmRun, FarmSlot};

/// Boards without what they are.
pub fn boards(visitor: &Visitor, all: &mut [FarmBoard]) {
    if visitor.is_unnamed() {
        all.iter_mut().for_each(without_host);
    }
}

fn without_host(board: &mut FarmBoard) {
    for text in [&mut board.model, &mut board.release, &mut board.preempt, &mut board.environment] {
        text.clear();
    }
    board.settings.tags.clear();
    board.settings.lab.clear();
}

/// Runs without what they ran on.
pub fn runs(visitor: &Visitor, all: &mut [FarmRun]) {
    if visitor.is_unnamed() {
        for run in all {
            run.release.clear();
            run.environment.clear();
            run.labels = Labels::default();
        }
    }
}

/// Five minutes without who was late, and who took the time.
pub fn slots(visitor: &Visitor, all: &mut [FarmSlot]) {
    if visitor.is_unnamed() {
        for slot in all {
            slot.culprit.clear();
            slot.victim.clear();
        }
    }
}

/// Changes without what else changed, and who takes the time.
pub fn changes(visitor: &Visitor, all: &mut [FarmChange]) {
    if visitor.is_unnamed() {
        all.iter_mut().for_each(without_names);
    }
}

fn without_names(one: &mut FarmChange) {
    one.settings.clear();
    one.subject.clear();
    if let Some(by) = &mut one.acknowledged {
        (by.who, by.note) = (String::new(), String::new());
    }
    let says = match one.kind {
        ChangeKind::NewCulprit => "A culprit is new.",
        ChangeKind::Worse | ChangeKind::Better | ChangeKind::Environment => "Another environment.",
        ChangeKind::MoreOften | ChangeKind::LessOften | ChangeKind::Silent | ChangeKind::OverBudget => {
            return;
        }
    };
    says.clone_into(&mut one.says);
    one.address = format!("/b/{}", escaped(&one.board));
}
