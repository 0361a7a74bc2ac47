//! The journal: one file per entry (one `tune apply`), one line of JSON per fact, in their order.
//!
//! A line that was cut, by a crash or a full disk while it was written, counts as not written: what
//! it would have said had not been acted upon. What goes on with the file ends that line first,
//! so that it never becomes whole.

use std::io;

use model::plan::PlannedChange;
use model::setting::Key;
use serde::{Deserialize, Serialize};

use super::Store;

/// No journal of an entry is longer; a change of 10,000 threads takes about a megabyte.
pub(super) const JOURNAL_LIMIT: usize = 64 << 20;

/// A value before a change; none where there was nothing of that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldValue {
    pub key: Key,
    pub value: Option<String>,
}

/// How an entry begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub id: String,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot: String,
    /// The process that makes the changes, and field 22 of its `/proc/PID/stat`.
    pub pid: u32,
    pub start: u64,
    pub version: String,
    /// When, in ns since 1970.
    pub real_ns: i64,
    /// What asked for it: `tune apply`, `isolate create`.
    pub command: String,
    /// The CPUs that matter, as a list.
    pub cpus: String,
    /// When it is to be undone unless it was confirmed, in ns of CLOCK_BOOTTIME.
    #[serde(default)]
    pub undo_at_boot_ns: Option<i64>,
    /// Whether confirming keeps it (`--confirm-within`), or nothing does (`--for`).
    #[serde(default)]
    pub confirmable: bool,
    /// Whether it is to be undone when the process that made it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_process: bool,
}

/// What became of a change that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Applied,
    Pending,
    Refused,
}

/// What became of a change, and what it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    pub outcome: Outcome,
    /// What was read afterwards.
    pub got: Option<String>,
    /// Why it was refused; `""` otherwise.
    pub why: String,
    /// The other keys whose values are different since.
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
        /// What was read before it; none where there was nothing of that name.
        old: Option<String>,
        /// Other keys whose values may change with it.
        others: Vec<OldValue>,
    },
    /// It was written, or refused.
    Outcome {
        step: u32,
        #[serde(flatten)]
        result: ChangeOutcome,
    },
    /// All changes of the entry were tried.
    Complete,
    /// It is not undone by itself.
    Confirmed,
    /// These values are about to be written, in this order, to undo the step.
    Restoring {
        step: u32,
        writes: Vec<OldValue>,
    },
    /// What came of it.
    Restored {
        step: u32,
        state: model::plan::ChangeState,
        why: String,
        /// What could not be restored, as it reads after the attempt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<OldValue>,
    },
}

/// A change and what became of it, from its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStep {
    pub number: u32,
    pub change: PlannedChange,
    pub old: Option<String>,
    pub others: Vec<OldValue>,
    /// None where the write was cut short.
    pub outcome: Option<ChangeOutcome>,
    /// What an undo decided to write.
    pub restoring: Option<Vec<OldValue>>,
    /// What that attempt left; none where it was cut short.
    pub left: Option<Vec<OldValue>>,
    /// How the last undo of it ended.
    pub restored: Option<(model::plan::ChangeState, String)>,
}

/// An entry of the journal, as its records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecords {
    pub opened: Opened,
    pub steps: Vec<EntryStep>,
    pub complete: bool,
    pub confirmed: bool,
    /// Whether a line was cut.
    pub cut: bool,
    /// How many whole lines are not understood: those of a later version.
    pub unknown: u32,
}

impl EntryStep {
    /// Whether something may be left to undo.
    pub fn is_live(&self) -> bool {
        let undone = matches!(self.restored, Some((model::plan::ChangeState::Undone, _)));
        !undone && !self.is_kept()
    }

    /// The keys that it may have changed.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let setting = &self.change.setting;
        std::iter::once(&setting.key)
            .chain(&setting.partners)
            .chain(self.others.iter().map(|other| &other.key))
    }

    /// Whether it was left because another program changed it.
    pub fn is_kept(&self) -> bool {
        matches!(self.restored, Some((model::plan::ChangeState::Kept, _)))
    }
}

/// A line of a journal.
enum Line {
    Record(JournalRecord),
    /// It was not written to its end, and says nothing.
    Cut,
    Unknown,
}

/// The records of a file, without the lines that are cut or not understood; none where not even the
/// first is whole: then nothing was done.
pub fn entry_records(bytes: &[u8]) -> Option<EntryRecords> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (opened, unknown) = head(lines.next()?)?;
    let mut entry =
        EntryRecords { opened, steps: Vec::new(), complete: false, confirmed: false, cut: false, unknown };
    for line in lines {
        // A cut line is followed by the records of the process that came after.
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

/// How the entry begins, and how many records of its beginning are not understood. Of one that a
/// later version has begun otherwise, its boot says whether anything of it is in force.
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
    /// Its id as a number: that of a later one is larger.
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

    /// Whether something of it may be left to undo.
    pub fn is_live(&self) -> bool {
        self.steps.iter().any(EntryStep::is_live)
    }
}

/// The ids of the entries in a journal, the oldest first.
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

/// An entry by its id; none where it says nothing, because nothing was done.
///
/// # Errors
/// It cannot be read; or its first line is whole, and does not say in which boot it was made.
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
            format!("journal entry {id} does not begin as this version writes it"),
        )),
    }
}

/// How many entries of which nothing is left are kept, for who asks what was done.
const SPENT_LIMIT: usize = 100;

/// Removes the oldest of those entries of which nothing is left: undone, or of another boot than
/// this. What is in force, was kept for another program or is not understood stays; so does the
/// last entry, whose id is not given again. How many were removed.
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
        // One that cannot be read is not known to be.
        if read_entry(store, &id).is_ok_and(|entry| entry.is_none_or(is_spent)) {
            spent.push(id);
        }
    }
    let more = spent.len().saturating_sub(SPENT_LIMIT);
    // One that cannot be removed is as harmless as before.
    let removed = spent.iter().take(more).filter(|id| store.remove(&format!("{id}.jsonl")).is_ok());
    Ok(removed.count())
}

/// What ends a line that was cut, so that it says nothing even where only its newline is missing.
const CUT: &[u8] = b" cut\n";

/// The writing end of one entry's file.
pub struct Journal<'a> {
    store: &'a mut dyn Store,
    name: String,
    length: usize,
    /// Whether the last line may have been cut.
    torn: bool,
}

impl<'a> Journal<'a> {
    /// Begins an entry, under an id that no other has; its first record is flushed.
    pub fn begin(store: &'a mut dyn Store, mut opened: Opened) -> io::Result<(Journal<'a>, String)> {
        let last = store.names()?.iter().filter_map(|name| id_of(name)).max().unwrap_or(0);
        let id = last.checked_add(1).ok_or_else(|| io::Error::other("the journal's ids are used up"))?;
        opened.id = id.to_string();
        let mut journal = Journal { store, name: file_name(&id), length: 0, torn: false };
        journal.note(&JournalRecord::Opened(opened))?;
        Ok((journal, id.to_string()))
    }

    /// Goes on with an entry, behind a line that may have been cut.
    pub fn resume(store: &'a mut dyn Store, id: &str) -> io::Result<Journal<'a>> {
        let name = format!("{id}.jsonl");
        if id_of(&name).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let bytes = store.read(&name)?;
        let torn = bytes.last().is_some_and(|byte| *byte != b'\n');
        Ok(Journal { store, name, length: bytes.len(), torn })
    }

    /// Adds a record; it is on the disk when this returns.
    pub fn note(&mut self, record: &JournalRecord) -> io::Result<()> {
        let mut line = if self.torn { CUT.to_vec() } else { Vec::new() };
        serde_json::to_writer(&mut line, record).map_err(io::Error::other)?;
        line.push(b'\n');
        // What a change takes, its undoing takes again, and more than once.
        let room = match record {
            JournalRecord::Intent { .. } => JOURNAL_LIMIT / 4,
            _ => JOURNAL_LIMIT,
        };
        if self.length + line.len() > room {
            return Err(io::Error::other("the journal of this entry is full: make the changes in several"));
        }
        self.length += line.len();
        self.torn = true;
        self.store.append(&self.name, &line)?;
        self.torn = false;
        Ok(())
    }
}
