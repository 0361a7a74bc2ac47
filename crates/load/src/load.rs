//! What a load is: a record with its words, its unit, its evidence, and what its processes do.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use host::clock;
use host::work::{Counter, Figure, said_ready};
use model::units::{CpuSet, Nanos};

/// A kind of load. Adding one is a file in [`crate::loads`] with this record, and a line in its
/// list.
pub struct Load {
    /// As in a SPEC: `mem`.
    pub name: &'static str,
    /// What it does, in one line.
    pub title: &'static str,
    /// What it provokes, what its numbers mean, and what it is like.
    pub doc: &'static str,
    /// What the COUNT of a SPEC counts: `processes`, `groups`; empty where there is one.
    pub count: Count,
    /// What the SIZE of a SPEC measures; `None` where there is none.
    pub size: Option<LoadSize>,
    /// What follows a comma.
    pub keys: &'static [LoadKey],
    /// What it counts: `bytes`.
    pub unit: &'static str,
    /// Whether `@RATE` holds it back.
    pub paced: bool,
    /// The least that it does at once, in its own unit or in that of the kernel's count: a rate has
    /// to leave two of them to each window.
    pub chunk: fn(&Wanted) -> u64,
    /// How long one window of its proof is.
    pub window: Nanos,
    /// What the kernel counts of it.
    pub figure: Figure,
    /// What each process takes of the machine.
    pub needs: fn(&Wanted) -> Needs,
    /// What each process does, until it is killed.
    pub run: fn(&mut LoadTask) -> io::Result<Infallible>,
}

/// What the COUNT of a SPEC counts.
#[derive(Clone, Copy)]
pub struct Count {
    pub what: &'static str,
    /// `None`: one for each CPU of the load.
    pub default: Option<u32>,
}

/// What the SIZE of a SPEC measures, in bytes.
#[derive(Clone, Copy)]
pub struct LoadSize {
    pub what: &'static str,
    pub default: u64,
    pub least: u64,
    pub most: u64,
}

/// A word that a SPEC may have behind a comma: `through=pipes`.
pub struct LoadKey {
    pub name: &'static str,
    pub what: &'static str,
    /// The words that it takes, the default first; empty for a path.
    pub values: &'static [&'static str],
}

/// One load as it is wanted, with nothing left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How many processes, groups.
    pub count: u32,
    /// In bytes; 0 where it has none.
    pub size: u64,
    /// Units per second of all processes together.
    pub rate: Option<u64>,
    /// Values of its keys, as far as they were given.
    pub keys: Vec<(&'static str, String)>,
    /// The program and its arguments, for `cmd`.
    pub command: Vec<String>,
}

impl Wanted {
    /// The value of a key, if it was given.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

/// What one process of a load takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub memory: u64,
    pub disk: u64,
    /// Processes and threads.
    pub tasks: u32,
}

/// One process of a load at work.
pub struct LoadTask<'a> {
    pub wanted: &'a Wanted,
    /// Where it may make files without names.
    pub folder: PathBuf,
    pub cpus: CpuSet,
    /// Counts in the load's unit, also in the tasks that the process makes.
    pub counter: Counter<'a>,
    pace: Option<Pace>,
}

impl<'a> LoadTask<'a> {
    pub fn new(wanted: &'a Wanted, folder: PathBuf, cpus: CpuSet, counter: Counter<'a>) -> LoadTask<'a> {
        // The rate is that of all processes.
        let pace = wanted.rate.map(|rate| Pace::new(rate as f64 / f64::from(wanted.count.max(1))));
        LoadTask { wanted, folder, cpus, counter, pace }
    }

    /// The size as what memory is addressed with.
    pub fn size(&self) -> usize {
        usize::try_from(self.wanted.size).unwrap_or(usize::MAX)
    }

    /// The program's words.
    pub fn command(&self) -> Vec<OsString> {
        self.wanted.command.iter().map(OsString::from).collect()
    }

    /// All is there: the starter learns it, and the work begins when it is there of all loads.
    pub fn begin(&mut self) -> io::Result<()> {
        said_ready()?;
        self.counter.wait_until_open();
        self.start_pace();
        Ok(())
    }

    /// A rate counts from here on.
    pub fn start_pace(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.start = clock::monotonic();
        }
    }

    /// How much is to be done at once: a twentieth of a second's worth where a rate holds it back.
    pub fn portion(&self, most: usize) -> usize {
        match &self.pace {
            None => most,
            Some(pace) => most.min((pace.per_s / 20.0) as usize).max(1),
        }
    }

    /// A rate for a load that is never done as fast as possible.
    pub fn pace_by_default(&mut self, per_s: u64) {
        self.pace.get_or_insert_with(|| Pace::new(per_s as f64));
    }

    /// Counts what was done, and waits where a rate holds it back.
    pub fn done(&mut self, n: usize) {
        self.counter.add(n as u64);
        self.hold_back(n);
    }

    /// Waits where a rate holds it back, for what another task counts.
    pub fn hold_back(&mut self, n: usize) {
        if let Some(pace) = &mut self.pace {
            pace.wait(n);
        }
    }
}

/// Holds a process back to a rate.
struct Pace {
    per_s: f64,
    start: Nanos,
    done: f64,
}

/// What a process could not do in time is not made up for beyond this.
const MADE_UP_S: f64 = 0.5;

impl Pace {
    fn new(per_s: f64) -> Pace {
        Pace { per_s, start: Nanos(0), done: 0.0 }
    }

    fn wait(&mut self, n: usize) {
        self.done += n as f64;
        let elapsed = (clock::monotonic() - self.start).as_secs();
        let due = self.done / self.per_s;
        if due > elapsed {
            clock::sleep_for(Nanos(((due - elapsed) * 1e9) as i64));
        }
        // Behind by more than that, it goes on from here.
        self.done = self.done.max((elapsed - MADE_UP_S) * self.per_s);
    }
}
