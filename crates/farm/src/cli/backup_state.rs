//! What the copy of a database says of a run, beside the bundle that a backup copied of it: other
//! commands go on meanwhile, and the database was copied before.

use std::path::Path;

use model::error::Result;

use crate::folders::lies_in;
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::intake::differs;
use crate::records::BundleRecord;
use crate::store::{BundleNotes, BundlePlace, CountedSeconds, FarmStore, PutOutcome, RunRemoval};

const REMOVED: &str = "it was removed from the farm meanwhile";

/// A run as the store has it when its bundle was copied.
pub struct LiveRun {
    place: BundlePlace,
    /// What it counted of its seconds; not looked at where that cannot have changed.
    counted: Option<CountedSeconds>,
    notes: BundleNotes,
    /// Whether the bundle is a copy of the store's own.
    pub is_own: bool,
    /// Whether runs were removed since the database was copied.
    removed_since: bool,
}

impl LiveRun {
    /// None where it is not there any more. Of a run that is over the same document comes with
    /// other seconds where it was removed before: after so many removals the database was copied.
    pub async fn of(
        from: &FarmStore,
        run: &BundlePlace,
        own: &Path,
        removals: i64,
    ) -> Result<Option<LiveRun>> {
        let Some(place) = from.place_of(&run.id).await? else { return Ok(None) };
        let removed_since = from.removals().await? != removals;
        let counted = match run.is_over && !removed_since {
            true => None,
            false => Some(from.counted_seconds_of(&run.id).await?),
        };
        let notes = from.notes_of(&run.id).await?;
        let is_own = lies_in(Path::new(&place.place), own);
        Ok(Some(LiveRun { place, counted, notes, is_own, removed_since }))
    }

    /// Whether it is not the state that it was before.
    pub fn is_other_than(&self, before: &BundlePlace) -> bool {
        (&self.place.place, &self.place.digest) != (&before.place, &before.digest)
    }
}

/// A run whose bundle was copied.
pub struct CopiedState<'a> {
    pub from: &'a FarmStore,
    /// The copy of the database,
    pub to: &'a FarmStore,
    /// and what it says of the run.
    pub run: &'a BundlePlace,
    pub live: LiveRun,
    pub copy: &'a Path,
    pub is_last: bool,
}

impl CopiedState<'_> {
    /// Brings what the copy of the database says of the run to what was copied; false where what it
    /// has of the run cannot be told from what others added, or why the bundle is to be copied
    /// again, in a line.
    pub async fn settle(&self) -> Result<std::result::Result<bool, String>> {
        let noted = if self.has_stayed().await? { Ok(true) } else { self.note().await? };
        if noted != Ok(true) {
            return Ok(noted);
        }
        take_over(&self.live.notes, self.to, &self.run.id).await?;
        Ok(noted)
    }

    /// Whether what the copy of the database has of it is what was copied. A run that is on changes
    /// where it is shown from, and a later state of it may have been taken in since: of one that
    /// was killed also with the same document, which nothing but its seconds tells. One that was
    /// removed may have come again as any state.
    async fn has_stayed(&self) -> Result<bool> {
        let (run, live) = (self.run, &self.live.place);
        if live.digest != run.digest || live.is_over != run.is_over {
            return Ok(false);
        }
        let is_as_counted = match &self.live.counted {
            Some(counted) => *counted == self.to.counted_seconds_of(&run.id).await?,
            None => true,
        };
        Ok(is_as_counted && (run.is_over || self.live.is_own && !live.has_seconds))
    }

    /// Notes a run as it was copied: what the copy of the database has of it is of an earlier
    /// moment.
    async fn note(&self) -> Result<std::result::Result<bool, String>> {
        let (run, to) = (self.run, self.to);
        let found = FoundBundle { place: self.copy.to_owned(), board: None };
        let mut record = match read(&found) {
            Ok((record, _)) => record,
            Err(why) => return Ok(Err(why)),
        };
        let Some(known) = to.run(&run.id).await? else { return Ok(Err(REMOVED.into())) };
        if record.run.id != run.id {
            return Ok(Err("another run lies in its place".into()));
        }
        if record.run.complete && !run.is_over && !self.is_last {
            return Ok(Err("it ended while it was copied".into()));
        }
        let now = self.from.run(&run.id).await?;
        record.run.board = now.map_or(known.board, |now| now.board);
        let counted = to.counted_seconds_of(&run.id).await?;
        let is_as_counted = || record.run.cycles == known.cycles && differs(&record, counted).is_none();
        if record.digest == run.digest && (!self.live.place.has_seconds || is_as_counted()) {
            return Ok(Ok(true));
        }
        let outcome = to.put_anew(&record).await?;
        Ok(match outcome {
            // It may have been copied while it was written.
            PutOutcome::Refused(why) if !self.is_last && !self.live.removed_since => Err(why),
            PutOutcome::Refused(why) => self.replace(record, why).await?,
            _ => Ok(true),
        })
    }

    /// Notes it in place of a state that it is no later one of, as where the run was removed and
    /// came again.
    async fn replace(
        &self,
        mut record: BundleRecord,
        why: String,
    ) -> Result<std::result::Result<bool, String>> {
        // Its board goes with its last run, and is made again.
        if let Some(board) = self.from.boards_of(Some(&record.run.board)).await?.pop() {
            record.board_name = board.name;
        }
        if !matches!(self.to.put_instead(&record).await?, RunRemoval::Removed(_) | RunRemoval::Unknown) {
            return Ok(if self.live.removed_since { Ok(false) } else { Err(why) });
        }
        // Who pinned the earlier state had that one in mind.
        if let Some(pin) = self.from.pins().await?.into_iter().find(|pin| pin.run == record.run.id) {
            self.to.pin(&pin.run, &pin.who, &pin.note, pin.t).await?;
        }
        Ok(Ok(true))
    }
}

/// Notes in the copy of a database what the farm has noted of a run's bundle: something of it may
/// have gone since, and one that was removed and came again may not be its board's.
pub async fn take_over(notes: &BundleNotes, to: &FarmStore, run: &str) -> Result<()> {
    match to.notes_of(run).await? == *notes {
        true => Ok(()),
        false => to.put_notes(run, notes).await,
    }
}

/// Takes a run out of the copy of a database that was removed from the farm, and notes there
/// whether it may come again; false where its samples cannot be told from others' without its
/// bundle.
pub async fn drop_run(from: &FarmStore, to: &FarmStore, id: &str) -> Result<bool> {
    let forgotten = from.forgotten().await?.into_iter().find(|(run, _)| run == id);
    // No pin kept it.
    to.unpin(id).await?;
    let removal = to.forget_run(id, None, forgotten.map(|(_, at)| at)).await?;
    Ok(matches!(removal, RunRemoval::Removed(_) | RunRemoval::Unknown))
}
