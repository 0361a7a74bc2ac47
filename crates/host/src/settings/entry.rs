//! Changes of settings, each in four steps; the first and the last are flushed to disk before
//! anything else happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use model::fact::{Fact, errno_name};
use model::plan::{ChangeState, PlannedChange};
use model::setting::{Comparison, Key, Setting, same};

use super::execute::refusal;
use super::journal::{
    ChangeOutcome, EntryRecords, EntryStep, Journal, JournalRecord, OldValue, Opened, Outcome,
};
use super::restore::restore_step;
use super::{Kernel, Store};

/// Result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The setting reads as wanted; if pending, it will after the next event.
    Done(ChangeState),
    /// The setting had the wanted value already; nothing was written.
    Already,
    /// The thread to change has ended.
    Gone,
    /// The kernel refused the change, or did something else, for this reason; its effects were
    /// reverted as far as possible.
    Refused(String),
}

/// The changes of one `tune apply`, in progress.
pub struct Entry<'a> {
    kernel: &'a mut dyn Kernel,
    journal: Journal<'a>,
    id: String,
    steps: u32,
    /// True after the journal could not be written: a change without a record must not be made.
    ended: bool,
}

impl<'a> Entry<'a> {
    /// Begins an entry; nothing is written to the machine before its record is on the disk.
    pub fn begin(
        kernel: &'a mut dyn Kernel,
        store: &'a mut dyn Store,
        opened: Opened,
    ) -> io::Result<Entry<'a>> {
        let (journal, id) = Journal::begin(store, opened)?;
        Ok(Entry { kernel, journal, id, steps: 0, ended: false })
    }

    /// Continues a completed entry: further changes are undone with it.
    pub fn resume(
        kernel: &'a mut dyn Kernel,
        store: &'a mut dyn Store,
        entry: &EntryRecords,
    ) -> io::Result<Entry<'a>> {
        let id = entry.opened.id.clone();
        let steps = entry.steps.iter().map(|step| step.number + 1).max().unwrap_or(0);
        Ok(Entry { journal: Journal::resume(store, &id)?, kernel, id, steps, ended: false })
    }

    /// ID by which it is undone.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Makes a change.
    ///
    /// # Errors
    /// The journal cannot be written: make no further changes, and undo those made.
    pub fn make(&mut self, change: &PlannedChange) -> io::Result<Applied> {
        if self.ended {
            return Err(io::Error::other("an earlier write to the journal failed"));
        }
        let made = self.attempt(change);
        self.ended = made.is_err();
        made
    }

    fn attempt(&mut self, change: &PlannedChange) -> io::Result<Applied> {
        let setting = &change.setting;
        let old = match self.kernel.read(&setting.key) {
            Fact::Known(now) if setting.is_met_by(&now) => return Ok(Applied::Already),
            Fact::Known(now) => Some(now),
            Fact::Absent if may_be_made(&setting.key) => None,
            Fact::Absent if matches!(setting.key, Key::Task { .. }) => return Ok(Applied::Gone),
            Fact::Absent => return Ok(Applied::Refused("it does not exist here".to_owned())),
            Fact::Refused(errno) => {
                return Ok(Applied::Refused(format!("it cannot be read: {}", errno_name(errno))));
            }
            Fact::Malformed(what) => return Ok(Applied::Refused(format!("it cannot be read: {what}"))),
            Fact::NotCaptured | Fact::NotRunning => {
                return Ok(Applied::Refused("it cannot be read".to_owned()));
            }
        };
        let others = self.others(setting, old.as_deref());
        let step = self.steps;
        self.steps += 1;
        self.journal.note(&JournalRecord::Intent {
            step,
            change: Box::new(change.clone()),
            old: old.clone(),
            others: others.clone(),
        })?;
        let written = self.kernel.write(&setting.key, Some(&setting.wanted));
        let ended = matches!((&setting.key, &written), (Key::Task { .. }, Err(error))
            if error.raw_os_error() == Some(libc::ESRCH));
        let (outcome, got, why) = self.judge(setting, written);
        let changed = self.changed(&others, setting);
        let result = ChangeOutcome { outcome, got, why, others: changed };
        self.journal.note(&JournalRecord::Outcome { step, result: result.clone() })?;
        match outcome {
            Outcome::Applied => Ok(Applied::Done(ChangeState::Applied)),
            Outcome::Pending => Ok(Applied::Done(ChangeState::Pending)),
            Outcome::Refused => {
                let refused = self.take_back(step, change, old, others, result)?;
                Ok(if ended { Applied::Gone } else { refused })
            }
        }
    }

    /// Reverts the effects of a change that was refused.
    fn take_back(
        &mut self,
        step: u32,
        change: &PlannedChange,
        old: Option<String>,
        others: Vec<OldValue>,
        result: ChangeOutcome,
    ) -> io::Result<Applied> {
        let why = result.why.clone();
        let step = EntryStep {
            number: step,
            change: change.clone(),
            old,
            others,
            outcome: Some(result),
            restoring: None,
            left: None,
            restored: None,
        };
        let mut noted = Ok(());
        let journal = &mut self.journal;
        let mut note = |record: JournalRecord| {
            noted = std::mem::replace(&mut noted, Ok(())).and(journal.note(&record));
        };
        let end = restore_step(self.kernel, &mut note, &step, &BTreeSet::new(), false);
        noted?;
        Ok(Applied::Refused(match end.state {
            ChangeState::Undone => why,
            _ => format!("{why}; not restored: {}", end.why),
        }))
    }

    /// Records that all changes were tried.
    pub fn complete(mut self) -> io::Result<()> {
        self.journal.note(&JournalRecord::Complete)
    }

    /// Values of the other keys that may change with this one.
    fn others(&self, setting: &Setting, now: Option<&str>) -> Vec<OldValue> {
        // Parts of a switch are read only while it is on: off, they read as off, and reading them
        // makes it so for `kernel.watchdog`.
        let is_off = setting.readback == Comparison::Number && now.is_some_and(|now| now.trim() == "0");
        let parts = setting.restored_first.iter().filter(|_| !is_off);
        let named = setting.partners.iter().chain(parts);
        let mut others: Vec<OldValue> = named
            .map(|key| OldValue { key: key.clone(), value: self.kernel.read(key).known().cloned() })
            .collect();
        if setting.moves_threads {
            let threads = self.kernel.affinities().into_iter();
            others.extend(threads.map(|(key, value)| OldValue { key, value: Some(value) }));
        }
        others
    }

    /// Those of the keys whose values have changed, with the new ones.
    fn changed(&self, before: &[OldValue], setting: &Setting) -> Vec<OldValue> {
        let threads = if setting.moves_threads {
            self.kernel.affinities().into_iter().collect()
        } else {
            BTreeMap::new()
        };
        let now = |key: &Key| match threads.get(key) {
            Some(value) => Some(value.clone()),
            None => self.kernel.read(key).known().cloned(),
        };
        let read = before.iter().filter(|other| !setting.restored_first.contains(&other.key));
        read.map(|other| (OldValue { key: other.key.clone(), value: now(&other.key) }, other))
            .filter(|(now, before)| now.value != before.value)
            .map(|(now, _)| now)
            .collect()
    }

    fn judge(&self, setting: &Setting, written: io::Result<()>) -> (Outcome, Option<String>, String) {
        let got = match setting.readback {
            Comparison::Unread => None,
            _ => self.kernel.read(&setting.key).known().cloned(),
        };
        match (written, &got) {
            (Err(error), _) => (Outcome::Refused, got, refusal(&error)),
            (Ok(()), _) if setting.readback == Comparison::Unread => (Outcome::Applied, got, String::new()),
            (Ok(()), Some(read)) if setting.is_met_by(read) => (self.effect(setting), got, String::new()),
            (Ok(()), Some(read)) => {
                let why = format!("the kernel accepted it, but shows {}", quoted(read));
                (Outcome::Refused, got, why)
            }
            (Ok(()), None) => (Outcome::Refused, None, "it cannot be read back".to_owned()),
        }
    }

    /// Outcome of a write that reads back: an interrupt moves only at its next occurrence.
    fn effect(&self, setting: &Setting) -> Outcome {
        let (Comparison::Pending, Key::Irq(number)) = (setting.readback, &setting.key) else {
            return Outcome::Applied;
        };
        match self.kernel.effective_affinity(*number).known() {
            Some(now)
                if !same(Comparison::List, now, &setting.wanted) && !is_within(now, &setting.wanted) =>
            {
                Outcome::Pending
            }
            _ => Outcome::Applied,
        }
    }
}

fn is_within(list: &str, wanted: &str) -> bool {
    use model::units::CpuSet;
    match (CpuSet::parse(list.trim()), CpuSet::parse(wanted.trim())) {
        (Ok(list), Ok(wanted)) => list.without(&wanted).is_empty(),
        _ => false,
    }
}

/// True for a key that a write creates.
fn may_be_made(key: &Key) -> bool {
    matches!(key, Key::Group(_) | Key::Hold(_))
}

fn quoted(text: &str) -> String {
    model::text::quoted_value(text.trim())
}
