//! Takes in what lies below folders, and goes on doing so while new runs come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::error::Result;

use crate::ingest::bundle::read;
use crate::ingest::find::{FoundBundle, bundles};
use crate::pages::fleet::RefusedBundle;
use crate::records::BundleRecord;
use crate::store::{FarmStore, PutOutcome};

/// What a scan did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOutcome {
    pub stored: u64,
    pub had: u64,
    pub refused: Vec<RefusedBundle>,
    /// What is to be known of runs that were taken in, with their place.
    pub remarks: Vec<String>,
}

/// Which runs have been looked at and do not change any more: by the file that `run.json` is, which
/// is another one whenever it is replaced.
#[derive(Default)]
pub struct SeenRuns {
    over: BTreeMap<PathBuf, (u64, u64)>,
    refused: BTreeMap<PathBuf, ((u64, u64), String)>,
}

/// Looks through a folder once.
pub async fn scan(store: &FarmStore, root: &Path, seen: &mut SeenRuns) -> Result<ScanOutcome> {
    let folder = root.to_owned();
    let found = tokio::task::spawn_blocking(move || bundles(&folder)).await;
    let (found, cut) = found.unwrap_or_default();
    let mut outcome = ScanOutcome::default();
    if cut {
        let reason = "more files than are looked at: give a folder that holds runs alone".to_owned();
        outcome.refused.push(RefusedBundle { place: root.display().to_string(), reason });
    }
    for one in found {
        take_in(store, one, seen, &mut outcome).await?;
    }
    Ok(outcome)
}

async fn take_in(
    store: &FarmStore,
    one: FoundBundle,
    seen: &mut SeenRuns,
    outcome: &mut ScanOutcome,
) -> Result<()> {
    let place = one.place.clone();
    let Some(identity) = host::identity(&place.join("run.json")) else { return Ok(()) };
    if seen.over.get(&place) == Some(&identity) {
        outcome.had += 1;
        return Ok(());
    }
    let again = seen.refused.get(&place).filter(|(known, _)| *known == identity);
    let reason = match again {
        Some((_, reason)) => reason.clone(),
        None => match put(store, one).await? {
            Ok((complete, outcome_of_put, remarks)) => {
                match outcome_of_put {
                    PutOutcome::Had => outcome.had += 1,
                    _ => outcome.stored += 1,
                }
                if complete {
                    // A run that is on is read again and again, and is incomplete each time.
                    let named =
                        remarks.into_iter().map(|remark| format!("{}: {remark}", model::text::quoted(&place)));
                    outcome.remarks.extend(named);
                    seen.over.insert(place, identity);
                }
                return Ok(());
            }
            Err(reason) => {
                seen.refused.insert(place.clone(), (identity, reason.clone()));
                reason
            }
        },
    };
    outcome.refused.push(RefusedBundle { place: model::text::clean(&place.to_string_lossy()), reason });
    Ok(())
}

type Taken = (bool, PutOutcome, Vec<String>);

/// Reads and stores a bundle; the inner refusal is the bundle's, the outer failure the store's.
async fn put(store: &FarmStore, one: FoundBundle) -> Result<Result<Taken, String>> {
    let Ok(outcome) = tokio::task::spawn_blocking(move || read(&one)).await else {
        return Ok(Err("its parser failed: report this, with the bundle".to_owned()));
    };
    let (record, remarks): (BundleRecord, Vec<String>) = match outcome {
        Ok(read) => read,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match store.put(&record).await? {
        PutOutcome::Refused(reason) => Err(reason),
        stored => Ok((record.run.complete, stored, remarks)),
    })
}
