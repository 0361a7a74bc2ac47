//! Changes of the journal that are in force.

use host::settings::{ENDED, EntryRecords, EntryStep, Kernel, Outcome};
use model::fact::Fact;
use model::plan::{ChangeState, PlanDocument, PlannedChange};
use model::setting::{Comparison, Key};

use crate::undo::not_understood;

/// Present state of these entries' changes: those in force, or all in the journal.
pub fn status(
    kernel: &dyn Kernel,
    entries: &[EntryRecords],
    boot: &str,
    boot_ns: i64,
    all: bool,
) -> PlanDocument {
    let open_entries = entries.iter().filter(|entry| all || is_open(entry, boot));
    let changes = open_entries.flat_map(|entry| {
        let steps = entry.steps.iter().filter(move |step| all || step.is_live() || step.is_kept());
        steps.map(move |step| changed(kernel, entry, step, boot, boot_ns))
    });
    let left_out = not_understood(entries.iter(), boot);
    PlanDocument::new(boot, changes.collect(), left_out)
}

/// True if a change of it is, or may be, in force or kept; entries of other boots are not open.
pub fn is_open(entry: &EntryRecords, boot: &str) -> bool {
    entry.opened.boot == boot && entry.steps.iter().any(|step| step.is_live() || step.is_kept())
}

/// True if its time has passed, and it was neither confirmed nor undone.
pub fn is_overdue(entry: &EntryRecords, boot_ns: i64) -> bool {
    let passed = entry.opened.undo_at_boot_ns.is_some_and(|at| at < boot_ns);
    passed && !entry.confirmed && entry.is_live()
}

/// Time in ns until it is undone automatically; none if it is not, or is overdue.
pub fn undone_in(entry: &EntryRecords, boot_ns: i64) -> Option<i64> {
    let left = entry.opened.undo_at_boot_ns?.saturating_sub(boot_ns);
    (left >= 0 && !entry.confirmed && entry.is_live()).then_some(left)
}

fn changed(
    kernel: &dyn Kernel,
    entry: &EntryRecords,
    step: &EntryStep,
    boot: &str,
    boot_ns: i64,
) -> PlannedChange {
    let overdue = is_overdue(entry, boot_ns);
    let undone_in_ns = undone_in(entry, boot_ns).filter(|_| entry.opened.boot == boot && step.is_live());
    let mut change = PlannedChange {
        entry: entry.opened.id.clone(),
        before: step.old.clone().unwrap_or_default().trim().to_owned(),
        undone_in_ns,
        confirmable: undone_in_ns.is_some() && entry.opened.confirmable,
        ..step.change.clone()
    };
    let applied = match step.outcome.as_ref().map(|outcome| outcome.outcome) {
        Some(Outcome::Applied) => (ChangeState::Applied, String::new()),
        Some(Outcome::Pending) => (ChangeState::Pending, String::new()),
        Some(Outcome::Refused) => {
            (ChangeState::Refused, step.outcome.as_ref().map_or(String::new(), |outcome| outcome.why.clone()))
        }
        None => {
            (ChangeState::Applied, "its write was interrupted: undo restores the previous state".to_owned())
        }
    };
    let (mut state, mut why) = match &step.restored {
        _ if entry.opened.boot != boot => {
            (ChangeState::Void, "with the boot in which it was applied".to_owned())
        }
        Some((state, why)) => (*state, why.clone()),
        None if overdue => (ChangeState::Overdue, "its time has expired: run `onbeat tune undo`".to_owned()),
        None => applied,
    };
    // Reading some files has an effect.
    if entry.opened.boot == boot && change.setting.readback != Comparison::Unread {
        match kernel.read(&change.setting.key) {
            Fact::Known(now) => now.trim().clone_into(&mut change.now),
            // The setting ended with its thread.
            Fact::Absent if matches!(change.setting.key, Key::Task { .. }) && step.is_live() => {
                change.now.clear();
                state = ChangeState::Void;
                why = ENDED.to_owned();
            }
            _ => {}
        }
    }
    (change.state, change.why) = (state, why);
    change
}
