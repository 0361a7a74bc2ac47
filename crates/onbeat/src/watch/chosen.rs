//! Threads with separate histograms of a watch: chosen by number, or by a name, which stands for
//! every thread of that name, also after the program's restart.

use std::collections::BTreeMap;

use host::MachineFiles;
use host::threads::thread_facts;
use model::error::{Failure, Result};
use model::text::{clean, several};
use recorder::WakeupRecorder;

use crate::hunt::victims;

/// Maximum number of threads with separate histograms.
pub const THREADS: usize = 64;

/// Threads with separate histograms.
#[derive(Debug, Default)]
pub struct ChosenThreads {
    wanted: Vec<String>,
    /// Names and start times of the chosen threads that run, by ID.
    present: BTreeMap<u32, (String, u64)>,
    /// Counts since the last interval.
    changes: ThreadChanges,
    is_full: bool,
}

/// Numbers of chosen threads that ended and started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadChanges {
    ended: u64,
    started: u64,
    /// Threads of the names without separate histograms at the last look, as too many match.
    without: u64,
}

impl ChosenThreads {
    /// Chooses threads by number and by name; returns remarks on those not found.
    ///
    /// # Errors
    /// A thread given by number does not exist, or cannot be recorded.
    pub fn choose(recorder: &mut WakeupRecorder, wanted: &[String]) -> Result<(ChosenThreads, Vec<String>)> {
        let mut chosen = ChosenThreads { wanted: wanted.to_vec(), ..ChosenThreads::default() };
        let mut remarks = Vec::new();
        for word in wanted {
            let is_number = word.parse::<u32>().ok();
            let found = is_number.map_or_else(|| threads_named(word), |tid| vec![tid]);
            if found.is_empty() {
                remarks.push(format!(
                    "no thread is named {} yet; until one is found, its wake-ups are only in its CPU's \
                     histogram",
                    clean(word)
                ));
            }
            for tid in found {
                match chosen.add(recorder, tid) {
                    // A thread found by name may end at any moment.
                    Err(error) if is_number.is_some() => return Err(error),
                    _ => {}
                }
            }
        }
        remarks.extend(chosen.is_full.then(too_many));
        chosen.changes = ThreadChanges { without: chosen.changes.without, ..ThreadChanges::default() };
        Ok((chosen, remarks))
    }

    /// True if threads are chosen by name: their successors are looked for.
    pub fn has_names(&self) -> bool {
        self.names().next().is_some()
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.wanted.iter().filter(|word| word.parse::<u32>().is_err())
    }

    /// Chooses threads of the names that have started; returns remarks on these and those that
    /// ended.
    pub fn look(&mut self, recorder: &mut WakeupRecorder) -> Vec<String> {
        let ended = self.take_ended(|tid| thread_facts(tid).map(|facts| facts.start));
        let names: Vec<String> = self.names().cloned().collect();
        let (before, full) = (self.changes.started, self.is_full);
        self.changes.without = 0;
        for tid in names.iter().flat_map(|name| threads_named(name)) {
            if !self.present.contains_key(&tid) {
                let _ = self.add(recorder, tid);
            }
        }
        let started = self.changes.started - before;
        let mut remarks = Vec::new();
        remarks.extend(change_remark(&ended, started, !names.is_empty()));
        remarks.extend((self.is_full && !full).then(too_many));
        remarks
    }

    /// Lines for the record about the interval.
    pub fn take_changes(&mut self) -> Vec<String> {
        let changes = std::mem::take(&mut self.changes);
        let line = |count: u64, what: &str| (count > 0).then(|| format!("{what}: {count}"));
        [
            line(changes.ended, "threads of --threads that ended"),
            line(
                changes.started,
                "threads of --threads that started, at first only in their CPUs' histograms",
            ),
            line(changes.without, "threads of --threads without separate histograms, as too many match"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Removes the threads that do not run any more, by their start times; returns their names.
    fn take_ended(&mut self, start_of: impl Fn(u32) -> Option<u64>) -> Vec<String> {
        let mut ended = Vec::new();
        self.present.retain(|tid, (comm, start)| {
            let runs = start_of(*tid) == Some(*start);
            if !runs {
                ended.push(format!("{} ({tid})", clean(comm)));
            }
            runs
        });
        self.changes.ended += ended.len() as u64;
        if !ended.is_empty() {
            self.is_full = false;
        }
        ended
    }

    fn add(&mut self, recorder: &mut WakeupRecorder, tid: u32) -> Result<()> {
        let facts = thread_facts(tid).ok_or_else(|| {
            Failure::usage(format!(
                "invalid --threads {tid}: no such thread is running; `ps -eLo tid,comm` lists numbers and names"
            ))
        })?;
        if self.present.len() >= THREADS {
            self.is_full = true;
            self.changes.without += 1;
            return Ok(());
        }
        recorder.choose(tid)?;
        self.present.insert(tid, (facts.comm, facts.start));
        self.changes.started += 1;
        Ok(())
    }
}

/// Real-time threads of that name, or of the process of that name.
fn threads_named(name: &str) -> Vec<u32> {
    let found = victims::find(&MachineFiles::live(), name).map(|(_, found)| found).unwrap_or_default();
    found.iter().filter_map(|victim| victim.thread.try_into().ok()).collect()
}

fn too_many() -> String {
    format!("more than {THREADS} threads match: the others are only in their CPUs' histograms")
}

/// Remark on threads that ended and started.
fn change_remark(ended: &[String], started: u64, by_name: bool) -> Option<String> {
    let ends = match ended {
        [] => String::new(),
        [one] => format!("the thread {one} of --threads has ended"),
        [one, ..] => format!("{} threads of --threads have ended, as {one}", ended.len()),
    };
    let starts = match started {
        0 => String::new(),
        _ => {
            let threads = several(started, "thread", "threads");
            format!("{threads} of --threads started: wake-ups until now are only in the CPUs' histograms")
        }
    };
    match (ends.is_empty(), starts.is_empty()) {
        (true, true) => None,
        (false, true) if by_name => Some(format!("{ends}; one that starts is looked for every 10 s")),
        (false, true) => Some(format!("{ends}; choose it by name to record its successor as well")),
        (false, false) => Some(format!("{ends}; {starts}")),
        (true, false) => Some(starts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wanted: &[&str], present: &[(u32, u64)]) -> ChosenThreads {
        ChosenThreads {
            wanted: wanted.iter().map(|&word| word.to_owned()).collect(),
            present: present.iter().map(|&(tid, start)| (tid, ("control".to_owned(), start))).collect(),
            ..ChosenThreads::default()
        }
    }

    #[test]
    fn a_restart_is_counted_in_the_record() {
        let mut chosen = chosen(&["control"], &[(7, 100), (8, 100), (9, 100)]);
        // Thread 8 has ended, and 9 is another thread now.
        let ended = chosen
            .take_ended(|tid| [(7, 100), (9, 200)].into_iter().find(|one| one.0 == tid).map(|one| one.1));
        assert_eq!(ended, ["control (8)", "control (9)"]);
        assert_eq!(chosen.present.keys().copied().collect::<Vec<_>>(), [7]);
        chosen.changes.started = 1;
        let lines = chosen.take_changes();
        assert_eq!(lines[0], "threads of --threads that ended: 2");
        assert!(lines[1].ends_with("histograms: 1") && lines.len() == 2, "{lines:?}");
        assert_eq!(chosen.take_changes(), [""; 0]);
        let said = change_remark(&ended, 1, true).unwrap();
        assert!(
            said.contains("2 threads") && said.contains("control (8)") && said.contains("1 thread of"),
            "{said}"
        );
        assert_eq!(change_remark(&[], 0, true), None);
    }

    #[test]
    fn names_alone_have_successors() {
        assert!(chosen(&["7", "control"], &[]).has_names());
        assert!(!chosen(&["7"], &[]).has_names());
        let ended = ["control (7)".to_owned()];
        assert!(change_remark(&ended, 0, false).unwrap().contains("by name"));
        assert!(change_remark(&ended, 0, true).unwrap().contains("every 10 s"));
    }
}
