//! The run's document while the run is on.

use super::integrity::entry;
use model::run::{Integrity, Run};
use model::text::several;
use model::vocabulary::{Ended, IntegrityKind};

/// Entries of integrity beyond this are counted, not kept.
const MAX_ENTRIES: usize = 100;

/// A run that is not complete.
pub struct OpenRun {
    pub run: Run,
    entries_dropped: u64,
}

impl OpenRun {
    pub fn new(run: Run) -> OpenRun {
        OpenRun { run, entries_dropped: 0 }
    }

    /// Adds an entry of integrity, or counts it where there are too many.
    pub fn note(&mut self, what: Integrity) {
        if self.run.integrity.len() < MAX_ENTRIES {
            self.run.integrity.push(what);
        } else {
            self.entries_dropped += 1;
        }
    }

    /// The first failure of its kind is stated; the others are counted in `blocks_unwritten`.
    pub fn note_storage(&mut self, what: String) {
        if !self.run.integrity.iter().any(|known| known.kind == IntegrityKind::Storage) {
            self.note(entry(IntegrityKind::Storage, None, false, what));
        }
    }

    pub fn close(mut self, ended: Ended) -> Run {
        if self.entries_dropped > 0 {
            let detail =
                format!("not listed: {}", several(self.entries_dropped, "further entry", "further entries"));
            self.run.integrity.push(entry(IntegrityKind::EntriesDropped, None, false, detail));
        }
        self.run.complete = true;
        self.run.ended = ended.into();
        self.run
    }
}
