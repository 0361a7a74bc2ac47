//! Intake of one bundle.

use std::path::Path;
use std::sync::Arc;

use bundle::manifest::BundleManifest;
use model::error::Result;
use tokio::task::spawn_blocking;

use super::copies::BundleCopies;
use crate::ingest::board_key::NO_BOARD;
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::objects::ObjectBucket;
use crate::records::BundleRecord;
use crate::store::{FarmStore, PutOutcome, SentBundle};

/// Outcome of the intake of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub enum IntakeOutcome {
    Stored(IntakeRun),
    Duplicate(IntakeRun),
    Rejected(Rejection),
}

/// A run that is in the store.
#[derive(Debug, PartialEq, Eq)]
pub struct IntakeRun {
    pub id: String,
    pub is_over: bool,
    /// True if it replaced an earlier state.
    pub is_replaced: bool,
    /// Sentences on skipped parts.
    pub remarks: Vec<String>,
}

/// Reason for which a bundle is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is not a bundle written by onbeat.
    Unreadable(String),
    /// It contradicts the store, or could not be copied.
    Refused(String),
}

impl Rejection {
    pub fn words(&self) -> &str {
        match self {
            Rejection::Unreadable(why) | Rejection::Refused(why) => why,
        }
    }
}

/// Place of a bundle that is stored.
pub enum Keeping<'a> {
    /// In its original place.
    InPlace,
    Copied(&'a BundleCopies),
    /// In the place where it was assembled from the pieces of its board.
    Sent(SentRun<'a>),
}

/// A run as its board sent it.
pub struct SentRun<'a> {
    pub id: &'a str,
    pub board: &'a str,
    pub sent: &'a SentBundle,
    /// The bucket in which it has to be first, with its name there and its files.
    pub bucket: Option<(&'a Arc<ObjectBucket>, &'a str, &'a BundleManifest)>,
    /// Notes the outcome of the write to the store.
    pub noted: &'a (dyn Fn(&Result<PutOutcome>) + Sync),
}

/// Reads, checks, keeps and stores a bundle; fails if the store or the bucket does.
pub async fn take(store: &FarmStore, one: &FoundBundle, keeping: &Keeping<'_>) -> Result<IntakeOutcome> {
    let of = one.clone();
    // Untrusted data must not end the server: a parser that panics ends its task only.
    let found = spawn_blocking(move || read(&of)).await;
    let (mut record, mut remarks) = match found.unwrap_or_else(|_| Err(PARSER_FAILED.to_owned())) {
        Ok(found) => found,
        Err(why) => return Ok(IntakeOutcome::Rejected(Rejection::Unreadable(why))),
    };
    if one.board.is_none() && record.environment.model.trim().is_empty() {
        return Ok(IntakeOutcome::Rejected(Rejection::Refused(NO_BOARD.to_owned())));
    }
    let outcome = match keeping {
        Keeping::InPlace => store.put(&record).await?,
        Keeping::Copied(copies) => copies.put(store, &one.place, &mut record, &mut remarks).await?,
        Keeping::Sent(of) if of.id != record.run.id => {
            let why = "the id in run.json differs from the address: send it to the address of its id";
            return Ok(IntakeOutcome::Rejected(Rejection::Unreadable(why.to_owned())));
        }
        Keeping::Sent(of) => of.put(store, &one.place, &mut record).await?,
    };
    let (id, is_over) = (record.run.id, record.run.complete);
    let run = IntakeRun { id, is_over, is_replaced: outcome == PutOutcome::Replaced, remarks };
    Ok(match outcome {
        PutOutcome::Stored | PutOutcome::Replaced => IntakeOutcome::Stored(run),
        PutOutcome::Had => IntakeOutcome::Duplicate(run),
        PutOutcome::Refused(why) => IntakeOutcome::Rejected(Rejection::Refused(why)),
    })
}

/// Words for a parser that panicked.
pub const PARSER_FAILED: &str = "its parser failed: report this, with the bundle";

impl SentRun<'_> {
    async fn put(&self, store: &FarmStore, place: &Path, record: &mut BundleRecord) -> Result<PutOutcome> {
        record.run.board = self.board.to_owned();
        // Before it is acknowledged.
        if let Some((bucket, name, manifest)) = self.bucket {
            bucket.put(name, manifest, place, &std::collections::BTreeSet::new()).await?;
        }
        let outcome = store.put_sent(record, self.sent).await;
        (self.noted)(&outcome);
        outcome
    }
}
