//! Log of what the farm has acknowledged. A board that loses it sends all again, which counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use serde::{Deserialize, Serialize};

use super::enrolment::PushFolder;
use super::seq_ranges::SeqRanges;

const FILE: &str = "sent.json";
const LIMIT: u64 = 8 << 20;

/// Files of a run that grow while its document does not change.
const GROWING: [&str; 4] = ["blocks.jsonl", "rows.jsonl", "tail", "events/spikes.jsonl"];

/// Latest change of the files of a run that grow without its document (`host::file_version`).
pub fn last_change(run: &Path) -> u64 {
    let changed = |name: &&str| host::file_version(&run.join(name)).map(|(_, changed)| changed);
    GROWING.iter().filter_map(changed).max().unwrap_or_default()
}

/// Items that were acknowledged, or that will not be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentLog {
    /// Address of the farm that acknowledged; `board` is this board's name there.
    pub farm: String,
    pub board: String,
    pub rows: Vec<SentRows>,
    /// Folders of runs, with the version of their `run.json` (`host::file_version`).
    pub runs: BTreeMap<String, (u64, u64)>,
    /// Latest change of the other files of runs that are not over: the document of a run that was
    /// killed is that of its last checkpoint.
    pub unended: BTreeMap<String, u64>,
    /// Runs in `runs` that the farm refused, and therefore does not have.
    pub refused: BTreeSet<String>,
    /// Runs in `refused` that were removed on the farm, with their ids.
    pub removed: BTreeMap<String, String>,
    /// Time of the last question whether these may come again, in seconds since 1970.
    pub removed_asked_s: i64,
    /// Environments, by the names that rows use, that the farm has or refused, or that no record
    /// has.
    pub environments: BTreeSet<String>,
    /// Ids of runs that were compared with what the farm has, and the digests of their documents,
    /// or of their manifests if they are not over.
    pub documents: BTreeMap<String, (String, String)>,
    /// Folders of runs whose removal has begun, and whether the farm has the run: an interrupted
    /// removal is finished.
    pub removing: BTreeMap<String, bool>,
    /// Total of runs removed before they were sent; `dropped_rows` counts rows merged before that.
    pub dropped_runs: u64,
    pub dropped_rows: u64,
    /// Permanent results that were not reported yet: a kill must not suppress their report.
    pub untold: UntoldWords,
}

/// Results of a round that are to be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UntoldWords {
    pub refused: u64,
    pub lost: u64,
    pub dropped: u64,
    pub remarks: Vec<String>,
}

/// Rows of one series of a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentRows {
    pub recording: String,
    pub boot: String,
    pub series: String,
    pub done: SeqRanges,
    /// Numbers in `done` that the farm never gets: it refused them, or they were merged before.
    pub left_out: SeqRanges,
}

impl SentLog {
    /// Reads the log; returns an empty one if it is missing, damaged, or another farm's or board's.
    pub fn read(folder: &PushFolder, farm: &str, board: &str) -> SentLog {
        let log = SentLog::noted(folder).unwrap_or_default();
        if log.farm == farm && log.board == board {
            log
        } else {
            SentLog { farm: farm.to_owned(), board: board.to_owned(), ..SentLog::default() }
        }
    }

    /// Reason, in a line, that the log cannot be read; none if it can be, or does not exist.
    pub fn trouble(folder: &PushFolder) -> Option<String> {
        let why = SentLog::noted(folder).err()?;
        let file = model::text::quoted(folder.0.join(FILE));
        Some(format!("{file} cannot be read ({why}): everything here is sent again, and counts once"))
    }

    fn noted(folder: &PushFolder) -> std::result::Result<SentLog, String> {
        let bytes = match host::read_user_file(&folder.0.join(FILE), LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(SentLog::default()),
            Err(error) => return Err(error.to_string()),
        };
        let damaged = || "it is damaged".to_owned();
        let log: SentLog = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        let is_ordered = |rows: &SentRows| rows.done.is_ordered() && rows.left_out.is_ordered();
        if log.rows.iter().all(is_ordered) { Ok(log) } else { Err(damaged()) }
    }

    /// Writes the log, whole or not at all.
    pub fn write(&self, folder: &PushFolder) -> Result<()> {
        let text = model::error::json(self)?;
        let dir = Dir::existing(&folder.0);
        let written = dir.and_then(|dir| dir.write_alone(OsStr::new(FILE), text.as_bytes(), Some(0o600)));
        written.map_err(|error| {
            let what = format!("cannot write {}", model::text::quoted(folder.0.join(FILE)));
            Failure::of_call(what, &error, Exit::Internal, "check the free space there; nothing is lost")
        })
    }

    /// True if the present state of a run is noted, by its folder and the version of its document.
    pub fn has_run(&self, key: &str, run: &Path, inode: u64, changed: u64) -> bool {
        self.runs.get(key) == Some(&(inode, changed))
            && self.unended.get(key).is_none_or(|changed| *changed == last_change(run))
    }

    /// Numbers of the rows of a series that are done.
    pub fn done(&self, recording: &str, boot: &str, series: &str) -> Option<&SeqRanges> {
        let is_it = |rows: &&SentRows| rows.is(recording, boot, series);
        self.rows.iter().find(is_it).map(|rows| &rows.done)
    }

    /// Notes rows as done.
    pub fn insert(&mut self, recording: &str, boot: &str, series: &str, from: u64, to: u64) {
        self.of(recording, boot, series).done.insert(from, to);
    }

    /// Notes rows as done that the farm never gets.
    pub fn leave_out(&mut self, recording: &str, boot: &str, series: &str, from: u64, to: u64) {
        let rows = self.of(recording, boot, series);
        rows.done.insert(from, to);
        rows.left_out.insert(from, to);
    }

    /// Notes the rows of a stretch that are not done as never to be sent; returns their number.
    pub fn leave_out_rest(&mut self, recording: &str, boot: &str, series: &str, from: u64, to: u64) -> u64 {
        let gaps = self.done(recording, boot, series).cloned().unwrap_or_default().gaps(from, to);
        if gaps.count() > 0 {
            let rows = self.of(recording, boot, series);
            rows.done.add(&gaps);
            rows.left_out.add(&gaps);
        }
        gaps.count()
    }

    /// Forgets rows that the farm does not have, except those it never gets; returns their number.
    pub fn forget_but(&mut self, there: &[SentRows]) -> u64 {
        let mut forgotten = 0u64;
        for rows in &mut self.rows {
            let known = there.iter().find(|one| one.is(&rows.recording, &rows.boot, &rows.series));
            let mut kept = known.map(|known| known.done.common(&rows.done)).unwrap_or_default();
            kept.add(&rows.left_out);
            forgotten = forgotten.saturating_add(rows.done.count().saturating_sub(kept.count()));
            rows.done = kept;
        }
        forgotten
    }

    /// Forgets the boots of a recording of which a series no longer has rows: nothing of them could
    /// be sent again. Returns true if there were any.
    pub fn forget_boots_but(
        &mut self,
        recording: &str,
        series: &str,
        there: &BTreeMap<String, BTreeSet<String>>,
    ) -> bool {
        let (before, boots) = (self.rows.len(), there.get(recording));
        self.rows.retain(|rows| {
            let is_of_it = rows.series == series && rows.recording == recording;
            !is_of_it || boots.is_some_and(|boots| boots.contains(&rows.boot))
        });
        self.rows.len() < before
    }

    /// Forgets recordings without a record, unless `there` is empty: a board without records names
    /// none. Returns true if there were any.
    pub fn forget_recordings_but(&mut self, there: &BTreeSet<String>) -> bool {
        let before = self.rows.len();
        if !there.is_empty() {
            self.rows.retain(|rows| there.contains(&rows.recording));
        }
        self.rows.len() < before
    }

    fn of(&mut self, recording: &str, boot: &str, series: &str) -> &mut SentRows {
        let at = self.rows.iter().position(|rows| rows.is(recording, boot, series)).unwrap_or_else(|| {
            let (recording, boot, series) = (recording.to_owned(), boot.to_owned(), series.to_owned());
            self.rows.push(SentRows { recording, boot, series, ..SentRows::default() });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}

impl SentRows {
    /// True if the rows are of this boot, recording and series.
    pub fn is(&self, recording: &str, boot: &str, series: &str) -> bool {
        self.boot == boot && self.recording == recording && self.series == series
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests damage what was written.
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_for_its_own_farm_and_forgotten_where_damaged() {
        let place = tempfile::tempdir().unwrap();
        let folder = PushFolder(place.path().to_owned());
        let mut log = SentLog::read(&folder, "f", "b");
        assert_eq!(SentLog::trouble(&folder), None, "nothing was noted");
        log.insert("r", "boot", "timer", 3, 7);
        log.insert("r", "boot", "timer", 8, 9);
        log.runs.insert("/runs/x".into(), (1, 2));
        log.write(&folder).unwrap();
        assert_eq!((SentLog::read(&folder, "f", "b"), SentLog::trouble(&folder)), (log.clone(), None));
        assert!(log.done("r", "boot", "timer").unwrap().contains(9) && log.done("r", "boot", "x").is_none());
        assert!(SentLog::read(&folder, "other", "b").rows.is_empty());
        let whole = std::fs::read(place.path().join(FILE)).unwrap();
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(place.path().join(FILE), &whole[..cut]).unwrap();
            assert!(SentLog::read(&folder, "f", "b").rows.is_empty());
            assert!(SentLog::trouble(&folder).is_some_and(|why| why.contains("damaged")), "{cut}");
        }
        let crossed = String::from_utf8(whole).unwrap().replace("[3,9]", "[9,3]");
        std::fs::write(place.path().join(FILE), crossed).unwrap();
        assert!(SentLog::read(&folder, "f", "b").rows.is_empty());
        // As on a board with more runs than the limit provides for.
        std::fs::File::create(place.path().join(FILE)).unwrap().set_len(LIMIT + 1).unwrap();
        assert!(SentLog::trouble(&folder).is_some_and(|why| why.contains("larger than")));
    }
}
