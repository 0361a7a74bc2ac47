//! Confirmation of changes that would be undone automatically.

use host::settings::{EntryRecords, Journal, JournalRecord, Kernel, Store};
use model::error::{Exit, Failure, Result};
use model::plan::PlanDocument;
use model::text::quoted_value;

use crate::status::status;
use crate::undo::entries;

/// Confirms an entry, by default the last unconfirmed one; returns its changes.
///
/// # Errors
/// Usage: there is no unconfirmed entry, or its time has passed.
pub fn confirm(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    id: Option<&str>,
    boot: &str,
    boot_ns: i64,
) -> Result<PlanDocument> {
    let all = entries(store)?;
    let waits = |entry: &&EntryRecords| {
        entry.opened.boot == boot
            && entry.opened.confirmable
            && !entry.confirmed
            && entry.is_live()
            && id.is_none_or(|id| entry.opened.id == id)
    };
    let Some(entry) = all.iter().rev().find(waits) else {
        return Err(Failure::usage(match id {
            Some(id) => format!(
                "entry {} does not wait for a confirmation: `onbeat tune status --all` shows its state",
                quoted_value(id)
            ),
            None => {
                "no entry waits for a confirmation: `onbeat tune status` lists the active changes".to_owned()
            }
        }));
    };
    if entry.opened.undo_at_boot_ns.is_some_and(|at| at <= boot_ns) {
        return Err(Failure::usage(format!(
            "the time of entry {} has expired and it is being undone: apply it again",
            entry.opened.id
        )));
    }
    let noted = Journal::resume(store, &entry.opened.id)
        .and_then(|mut journal| journal.note(&JournalRecord::Confirmed));
    noted.map_err(|error| {
        let what = "the confirmation cannot be written to the journal";
        Failure::of_call(what, &error, Exit::Internal, "free some space")
    })?;
    let mut document = status(kernel, std::slice::from_ref(entry), boot, boot_ns, false);
    document.id.clone_from(&entry.opened.id);
    Ok(document)
}
