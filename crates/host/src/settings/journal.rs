//! Journal of changes: one file per entry (one `tune apply`), one line of JSON per fact, in order.
//!
//! A line that was truncated, by a crash or a full disk, counts as not written: its fact was not
//! acted upon yet. The next writer terminates that line first, so that it never becomes whole.

use std::io;

use model::plan::PlannedChange;
use model::setting::Key;
use serde::{Deserialize, Serialize};

use super::Store;

/// Size limit of an entry's file; a change of 10,000 threads takes about a megabyte.
pub(super) const JOURNAL_LIMIT: usize = 64 << 20;

/// Value before a change; none if the key did not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldValue {
    pub key: Key,
    pub value: Option<String>,
}

/// First record of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub id: String,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot: String,
    /// Process that makes the changes; `start` is field 22 of its `/proc/PID/stat`.
    pub pid: u32,
    pub start: u64,
    pub version: String,
    /// Time of the changes, in ns since 1970.
    pub real_ns: i64,
    /// Command that made them: `tune apply`, `isolate create`.
    pub command: String,
    /// Audited CPUs, as a list.
    pub cpus: String,
    /// Time of CLOCK_BOOTTIME in ns at which it is undone unless it is confirmed.
    #[serde(default)]
    pub undo_at_boot_ns: Option<i64>,
    /// True if it can be confirmed (`--confirm-within`), false if it always ends (`--for`).
    #[serde(default)]
    pub confirmable: bool,
    /// True if it is undone when the process that made it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_process: bool,
}

/// Outcome of a change that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Applied,
    Pending,
    Refused,
}

/// Outcome of a change, and its effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    pub outcome: Outcome,
    /// Value read afterwards.
    pub got: Option<String>,
    /// Reason of a refusal; `""` otherwise.
    pub why: String,
    /// Other keys whose values have changed.
    pub others: Vec<OldValue>,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum JournalRecord {
    Opened(Opened),
    /// A value is about to be written.
    Intent {
        step: u32,
        change: Box<PlannedChange>,
        /// Value read before it; none if the key did not exist.
        old: Option<String>,
        /// Other keys whose values may change with it, and their values.
        others: Vec<OldValue>,
    },
    /// The value was written, or refused.
    Outcome {
        step: u32,
        #[serde(flatten)]
        result: ChangeOutcome,
    },
    /// All changes of the entry were tried.
    Complete,
    /// The entry is no longer undone automatically.
    Confirmed,
    /// These values are about to be written, in this order, to undo the step.
    Restoring {
        step: u32,
        writes: Vec<OldValue>,
    },
    /// Result of an undo.
    Restored {
        step: u32,
        state: model::plan::ChangeState,
        why: String,
        /// Keys that could not be restored, with their values after the attempt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<OldValue>,
    },
}

/// A change and its history, from its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStep {
    pub number: u32,
    pub change: PlannedChange,
    pub old: Option<String>,
    pub others: Vec<OldValue>,
    /// None if the write was interrupted.
    pub outcome: Option<ChangeOutcome>,
    /// Values that an undo decided to write.
    pub restoring: Option<Vec<OldValue>>,
    /// Keys that this attempt did not restore; none if it was interrupted.
    pub left: Option<Vec<OldValue>>,
    /// Result of the last undo.
    pub restored: Option<(model::plan::ChangeState, String)>,
}

/// Entry of the journal, from its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecords {
    pub opened: Opened,
    pub steps: Vec<EntryStep>,
    pub complete: bool,
    pub confirmed: bool,
    /// True if a line was truncated.
    pub cut: bool,
    /// Number of complete lines that cannot be parsed, from a later version.
    pub unknown: u32,
}

impl EntryStep {
    /// True if there may be something left to undo.
    pub fn is_live(&self) -> bool {
        let undone = matches!(self.restored, Some((model::plan::ChangeState::Undone, _)));
        !undone && !self.is_kept()
    }

    /// Keys that it may have changed.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let setting = &self.change.setting;
        std::iter::once(&setting.key)
            .chain(&setting.partners)
            .chain(self.others.iter().map(|other| &other.key))
    }

    /// True if it was not undone because another program changed it.
    pub fn is_kept(&self) -> bool {
        matches!(self.restored, Some((model::plan::ChangeState::Kept, _)))
    }
}

/// Line of a journal.
enum Line {
    Record(JournalRecord),
    /// A line not written to its end, without any meaning.
    Cut,
    Unknown,
}

/// Records of a file, without truncated and unknown lines; none if not even the first line is
/// complete: then no change was made.
pub fn entry_records(bytes: &[u8]) -> Option<EntryRecords> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (opened, unknown) = head(lines.next()?)?;
    let mut entry =
        EntryRecords { opened, steps: Vec::new(), complete: false, confirmed: false, cut: false, unknown };
    for line in lines {
        // A truncated line is followed by the records of a later process.
        match read_line(line) {
            Line::Record(record) => entry.take(record),
            Line::Cut => entry.cut = true,
            Line::Unknown => entry.unknown = entry.unknown.saturating_add(1),
        }
    }
    Some(entry)
}

fn read_line(line: &[u8]) -> Line {
    let Some(whole) = line.strip_suffix(b"\n").filter(|_| !line.ends_with(CUT)) else { return Line::Cut };
    serde_json::from_slice(whole).map_or(Line::Unknown, Line::Record)
}

/// First record of an entry, and the number of unknown lines so far. If a later version has written
/// another first record, its boot ID still shows if the entry can be in force.
fn head(line: &[u8]) -> Option<(Opened, u32)> {
    #[derive(Deserialize)]
    struct Begun {
        fact: String,
        id: String,
        boot: String,
        #[serde(default)]
        version: String,
    }
    match read_line(line) {
        Line::Record(JournalRecord::Opened(opened)) => Some((opened, 0)),
        Line::Unknown => {
            let begun: Begun = serde_json::from_slice(line).ok()?;
            let Begun { id, boot, version, .. } = (begun.fact == "opened").then_some(begun)?;
            let opened = Opened { id, boot, version, ..Opened::default() };
            Some((opened, 1))
        }
        _ => None,
    }
}

impl EntryRecords {
    /// Its ID as a number, larger for a later entry.
    pub fn number(&self) -> u64 {
        self.opened.id.parse().unwrap_or(0)
    }

    fn take(&mut self, record: JournalRecord) {
        match record {
            JournalRecord::Opened(_) => self.unknown = self.unknown.saturating_add(1),
            JournalRecord::Intent { step, change, old, others } => self.steps.push(EntryStep {
                number: step,
                change: *change,
                old,
                others,
                outcome: None,
                restoring: None,
                left: None,
                restored: None,
            }),
            JournalRecord::Outcome { step, result } => {
                if let Some(step) = self.step(step) {
                    step.outcome = Some(result);
                }
            }
            JournalRecord::Complete => self.complete = true,
            JournalRecord::Confirmed => self.confirmed = true,
            JournalRecord::Restoring { step, writes } => {
                if let Some(step) = self.step(step) {
                    (step.restoring, step.left, step.restored) = (Some(writes), None, None);
                }
            }
            JournalRecord::Restored { step, state, why, left } => {
                if let Some(step) = self.step(step) {
                    match state {
                        model::plan::ChangeState::Refused => step.left = Some(left),
                        _ => (step.restoring, step.left) = (None, None),
                    }
                    step.restored = Some((state, why));
                }
            }
        }
    }

    fn step(&mut self, number: u32) -> Option<&mut EntryStep> {
        self.steps.iter_mut().find(|step| step.number == number)
    }

    /// True if there may be something left to undo.
    pub fn is_live(&self) -> bool {
        self.steps.iter().any(EntryStep::is_live)
    }
}

/// IDs of the entries in a journal, the oldest first.
pub fn entry_ids(store: &dyn Store) -> io::Result<Vec<String>> {
    let mut ids: Vec<u64> = store.names()?.iter().filter_map(|name| id_of(name)).collect();
    ids.sort_unstable();
    Ok(ids.iter().map(ToString::to_string).collect())
}

fn id_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl")?;
    let id = digits.parse().ok()?;
    (file_name(&id) == name).then_some(id)
}

fn file_name(id: &u64) -> String {
    format!("{id}.jsonl")
}

/// Entry by its ID; none if it is empty because no change was made.
///
/// # Errors
/// It cannot be read; or its first line is complete and lacks the boot ID.
pub fn read_entry(store: &dyn Store, id: &str) -> io::Result<Option<EntryRecords>> {
    let name = format!("{id}.jsonl");
    if id_of(&name).is_none() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let bytes = store.read(&name)?;
    if bytes.len() > JOURNAL_LIMIT {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let begun = bytes.split_inclusive(|byte| *byte == b'\n').next().is_some_and(|line| line.ends_with(b"\n"));
    match entry_records(&bytes) {
        Some(entry) if entry.opened.id == id => Ok(Some(entry)),
        None if !begun => Ok(None),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("journal entry {id} does not begin in the format of this version"),
        )),
    }
}

/// Number of spent entries that are kept, as a history.
const SPENT_LIMIT: usize = 100;

/// Removes the oldest spent entries, which are undone or of another boot, and returns their number.
/// Entries that are in force, left to another program or not understood stay; so does the last
/// entry, so that its ID is not reused.
///
/// # Errors
/// The journal cannot be read.
pub fn remove_spent(store: &mut dyn Store, boot: &str) -> io::Result<usize> {
    let mut spent = Vec::new();
    for id in entry_ids(store)? {
        let is_spent = |entry: EntryRecords| {
            entry.opened.boot != boot
                || (entry.unknown == 0 && !entry.steps.iter().any(|step| step.is_live() || step.is_kept()))
        };
        // An entry that cannot be read may not be spent.
        if read_entry(store, &id).is_ok_and(|entry| entry.is_none_or(is_spent)) {
            spent.push(id);
        }
    }
    let more = spent.len().saturating_sub(SPENT_LIMIT);
    // An entry that cannot be removed does no harm.
    let removed = spent.iter().take(more).filter(|id| store.remove(&format!("{id}.jsonl")).is_ok());
    Ok(removed.count())
}

/// End of a truncated line, which makes it invalid even if only its newline is missing.
const CUT: &[u8] = b" cut\n";

/// Writer of one entry's file.
pub struct Journal<'a> {
    store: &'a mut dyn Store,
    name: String,
    length: usize,
    /// True if the last line may be truncated.
    torn: bool,
}

impl<'a> Journal<'a> {
    /// Begins an entry with a new ID; its first record is flushed.
    pub fn begin(store: &'a mut dyn Store, mut opened: Opened) -> io::Result<(Journal<'a>, String)> {
        let last = store.names()?.iter().filter_map(|name| id_of(name)).max().unwrap_or(0);
        let id = last.checked_add(1).ok_or_else(|| io::Error::other("the journal's ids are used up"))?;
        opened.id = id.to_string();
        let mut journal = Journal { store, name: file_name(&id), length: 0, torn: false };
        journal.note(&JournalRecord::Opened(opened))?;
        Ok((journal, id.to_string()))
    }

    /// Continues an entry, whose last line may be truncated.
    pub fn resume(store: &'a mut dyn Store, id: &str) -> io::Result<Journal<'a>> {
        let name = format!("{id}.jsonl");
        if id_of(&name).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let bytes = store.read(&name)?;
        let torn = bytes.last().is_some_and(|byte| *byte != b'\n');
        Ok(Journal { store, name, length: bytes.len(), torn })
    }

    /// Adds a record and flushes it to disk.
    pub fn note(&mut self, record: &JournalRecord) -> io::Result<()> {
        let mut line = if self.torn { CUT.to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut line, record).map_err(io::Error::other)?;
        line.push(b'\n');
        // Undoing a change takes as much space again, and may be repeated.
        let room = match record {
            JournalRecord::Intent { .. } => JOURNAL_LIMIT / 4,
            _ => JOURNAL_LIMIT,
        };
        if self.length + line.len() > room {
            return Err(io::Error::other(
                "the journal of this entry is full: split the changes into several \
                                         entries",
            ));
        }
        self.length += line.len();
        self.torn = true;
        self.store.append(&self.name, &line)?;
        self.torn = false;
        Ok(())
    }
}
