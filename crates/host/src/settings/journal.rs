//! The journal: one file per entry (one `tune apply`), one line of JSON per fact, in their order.
//!
//! A line that was cut, by a crash while it was written, is the last one that counts: what it
//! would have said had not been acted upon.

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct StepOutcome {
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
pub enum Record {
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
        result: StepOutcome,
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
    },
}

/// A change and what became of it, from its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub number: u32,
    pub change: PlannedChange,
    pub old: Option<String>,
    pub others: Vec<OldValue>,
    /// None where the write was cut short.
    pub outcome: Option<StepOutcome>,
    /// What an undo decided to write.
    pub restoring: Option<Vec<OldValue>>,
    /// How the last undo of it ended.
    pub restored: Option<(model::plan::ChangeState, String)>,
}

/// An entry of the journal, as its records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecords {
    pub opened: Opened,
    pub steps: Vec<Step>,
    pub complete: bool,
    pub confirmed: bool,
    /// Whether a line was cut or not understood: nothing behind it is known.
    pub cut: bool,
}

impl Step {
    /// Whether something may be left to undo.
    pub fn is_live(&self) -> bool {
        let undone = matches!(self.restored, Some((model::plan::ChangeState::Undone, _)));
        !undone && !self.is_kept()
    }

    /// Whether it was left because another program changed it.
    pub fn is_kept(&self) -> bool {
        matches!(self.restored, Some((model::plan::ChangeState::Kept, _)))
    }
}

/// The records of a file, up to the first line that is cut or not understood; none where not even
/// the first is whole: then nothing was done.
pub fn entry_records(bytes: &[u8]) -> Option<EntryRecords> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut next = || {
        let line = lines.next()?;
        Some(line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice::<Record>(line).ok()))
    };
    let Some(Some(Record::Opened(opened))) = next() else { return None };
    let mut entry = EntryRecords { opened, steps: Vec::new(), complete: false, confirmed: false, cut: false };
    while let Some(record) = next() {
        // A cut line is followed by the records of the process that came after.
        match record {
            Some(record) => entry.take(record),
            None => entry.cut = true,
        }
    }
    Some(entry)
}

impl EntryRecords {
    fn take(&mut self, record: Record) {
        match record {
            Record::Opened(_) => self.cut = true,
            Record::Intent { step, change, old, others } => self.steps.push(Step {
                number: step,
                change: *change,
                old,
                others,
                outcome: None,
                restoring: None,
                restored: None,
            }),
            Record::Outcome { step, result } => {
                if let Some(step) = self.step(step) {
                    step.outcome = Some(result);
                }
            }
            Record::Complete => self.complete = true,
            Record::Confirmed => self.confirmed = true,
            Record::Restoring { step, writes } => {
                if let Some(step) = self.step(step) {
                    (step.restoring, step.restored) = (Some(writes), None);
                }
            }
            Record::Restored { step, state, why } => {
                if let Some(step) = self.step(step) {
                    (step.restoring, step.restored) = (None, Some((state, why)));
                }
            }
        }
    }

    fn step(&mut self, number: u32) -> Option<&mut Step> {
        self.steps.iter_mut().find(|step| step.number == number)
    }

    /// Whether something of it may be left to undo.
    pub fn is_live(&self) -> bool {
        self.steps.iter().any(Step::is_live)
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

/// An entry by its id; none where it says nothing.
pub fn read_entry(store: &dyn Store, id: &str) -> io::Result<Option<EntryRecords>> {
    let bytes = store.read(&format!("{id}.jsonl"))?;
    if bytes.len() > JOURNAL_LIMIT {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(entry_records(&bytes))
}

/// The writing end of one entry's file.
pub struct Journal<'a> {
    store: &'a mut dyn Store,
    name: String,
}

impl<'a> Journal<'a> {
    /// Begins an entry, under an id that no other has; its first record is flushed.
    pub fn begin(store: &'a mut dyn Store, mut opened: Opened) -> io::Result<(Journal<'a>, String)> {
        let last = store.names()?.iter().filter_map(|name| id_of(name)).max().unwrap_or(0);
        let id = last + 1;
        opened.id = id.to_string();
        let mut journal = Journal { store, name: file_name(&id) };
        journal.note(&Record::Opened(opened))?;
        Ok((journal, id.to_string()))
    }

    /// Goes on with an entry, behind a line that may have been cut.
    pub fn resume(store: &'a mut dyn Store, id: &str) -> io::Result<Journal<'a>> {
        let name = format!("{id}.jsonl");
        if store.read(&name)?.last().is_some_and(|byte| *byte != b'\n') {
            store.append(&name, b"\n")?;
        }
        Ok(Journal { store, name })
    }

    /// Adds a record; it is on the disk when this returns.
    pub fn note(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record).map_err(io::Error::other)?;
        line.push(b'\n');
        self.store.append(&self.name, &line)
    }
}
