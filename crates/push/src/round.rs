//! One round: the newest row of each series first, so that the farm is up to date at once, then
//! older rows, the oldest first, then runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::runs::{known, removed};
use super::session::{PushRound, RoundEnd, RoundOutcome};
use super::{rows, runs};

/// Folders to send from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushSources {
    /// Folders of runs.
    pub runs: Vec<PathBuf>,
    /// Records of `onbeat watch`.
    pub records: Vec<PathBuf>,
}

/// Sends everything that is due; the round's outcome counts it, also if the round ends early.
pub fn run_round(round: &mut PushRound<'_>, sources: &PushSources) -> Result<(), RoundEnd> {
    round.outcome = RoundOutcome::default();
    round.link.say_dropped(round.log.dropped_runs, round.log.dropped_rows);
    round.link.say_left_out(round.log.refused.len() as u64);
    known::compare_rows(round)?;
    for record in &sources.records {
        rows::send_newest(round, record)?;
    }
    let mut recordings = Some(BTreeSet::<String>::new());
    for record in &sources.records {
        let read = rows::send_backlog(round, record)?;
        recordings = recordings.zip(read).map(|(all, some)| &all | &some);
    }
    // A record that cannot be read now may be readable later.
    if recordings.is_some_and(|all| round.log.forget_recordings_but(&all)) {
        round.keep()?;
    }
    runs::compare_runs(round)?;
    removed::ask_again(round)?;
    for folder in &sources.runs {
        runs::send_runs(round, folder)?;
    }
    Ok(())
}

#[cfg(test)]
pub mod fake_farm;
#[cfg(test)]
mod tests;
