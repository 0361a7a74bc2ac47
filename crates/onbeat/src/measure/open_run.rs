//! Document of a run in progress.

use super::integrity::entry;
use model::run::{Integrity, Run};
use model::text::several;
use model::vocabulary::{Ended, IntegrityKind};

/// Maximum number of integrity entries; further ones are counted.
const MAX_ENTRIES: usize = 100;

/// Run that is not complete.
pub struct OpenRun {
    pub run: Run,
    entries_dropped: u64,
}

impl OpenRun {
    pub fn new(run: Run) -> OpenRun {
        OpenRun { run, entries_dropped: 0 }
    }

    /// Adds an integrity entry, or counts it if there are too many.
    pub fn note(&mut self, what: Integrity) {
        if self.run.integrity.len() < MAX_ENTRIES {
            self.run.integrity.push(what);
        } else {
            self.entries_dropped += 1;
        }
    }

    /// Adds an entry for the first write failure; `blocks_unwritten` counts all of them.
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
