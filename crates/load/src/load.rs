//! Record of a load: its texts, its unit, its evidence, and the work of its processes.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use host::clock;
use host::work::{Counter, Figure, said_ready};
use model::units::{CpuSet, Nanos};

/// Kind of load. To add one, add a file to [`crate::loads`] with this record, and a line to its
/// list.
pub struct Load {
    /// Name in a SPEC: `mem`.
    pub name: &'static str,
    /// Description in one line.
    pub title: &'static str,
    /// Description: its effects, the meaning of its numbers, and comparable tools.
    pub doc: &'static str,
    /// Unit of COUNT in a SPEC: `processes`, `groups`; empty if there is only one.
    pub count: Count,
    /// Meaning of SIZE in a SPEC; `None` if it has none.
    pub size: Option<LoadSize>,
    /// Keys after a comma.
    pub keys: &'static [LoadKey],
    /// Unit that it counts: `bytes`.
    pub unit: &'static str,
    /// True if `@RATE` throttles it.
    pub paced: bool,
    /// Least amount done at once, in its own unit or in that of the kernel's statistic: a rate must
    /// allow two of them in each window.
    pub chunk: fn(&Wanted) -> u64,
    /// Length of a window of its proof.
    pub window: Nanos,
    /// Kernel statistic of its work.
    pub figure: Figure,
    /// Requirements of each process.
    pub needs: fn(&Wanted) -> Needs,
    /// Work of each process, until it is killed.
    pub run: fn(&mut LoadTask) -> io::Result<Infallible>,
}

/// Meaning of COUNT in a SPEC.
#[derive(Clone, Copy)]
pub struct Count {
    pub what: &'static str,
    /// Default; `None` for one per CPU of the load.
    pub default: Option<u32>,
}

/// Meaning of SIZE in a SPEC, in bytes.
#[derive(Clone, Copy)]
pub struct LoadSize {
    pub what: &'static str,
    pub default: u64,
    pub least: u64,
    pub most: u64,
}

/// Key that a SPEC may have after a comma: `through=pipes`.
pub struct LoadKey {
    pub name: &'static str,
    pub what: &'static str,
    /// Accepted values, the default first; empty for a path.
    pub values: &'static [&'static str],
}

/// Requested load with all of its parameters set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Number of processes or groups.
    pub count: u32,
    /// Size in bytes; 0 if it has none.
    pub size: u64,
    /// Units per second of all processes together.
    pub rate: Option<u64>,
    /// Values of the given keys.
    pub keys: Vec<(&'static str, String)>,
    /// Program and its arguments, for `cmd`.
    pub command: Vec<String>,
}

impl Wanted {
    /// Value of a key, if given.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

/// Requirements of one process of a load, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub memory: u64,
    pub disk: u64,
    /// Number of processes and threads.
    pub tasks: u32,
}

/// Process of a load at work.
pub struct LoadTask<'a> {
    pub wanted: &'a Wanted,
    /// Folder for unnamed files.
    pub folder: PathBuf,
    pub cpus: CpuSet,
    /// Counter in the load's unit, also for the tasks that the process creates.
    pub counter: Counter<'a>,
    pace: Option<Pace>,
}

impl<'a> LoadTask<'a> {
    pub fn new(wanted: &'a Wanted, folder: PathBuf, cpus: CpuSet, counter: Counter<'a>) -> LoadTask<'a> {
        // The rate is that of all processes.
        let pace = wanted.rate.map(|rate| Pace::new(rate as f64 / f64::from(wanted.count.max(1))));
        LoadTask { wanted, folder, cpus, counter, pace }
    }

    /// Size as a `usize`.
    pub fn size(&self) -> usize {
        usize::try_from(self.wanted.size).unwrap_or(usize::MAX)
    }

    /// Words of the program.
    pub fn command(&self) -> Vec<OsString> {
        self.wanted.command.iter().map(OsString::from).collect()
    }

    /// Notifies the starter that the process is ready, and waits until those of all loads are.
    pub fn begin(&mut self) -> io::Result<()> {
        said_ready()?;
        self.counter.wait_until_open();
        self.start_pace();
        Ok(())
    }

    /// Starts the time of the rate.
    pub fn start_pace(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.start = clock::monotonic();
        }
    }

    /// Amount to be done at once: at most a twentieth of a second's worth if a rate is set.
    pub fn portion(&self, most: usize) -> usize {
        match &self.pace {
            None => most,
            Some(pace) => most.min((pace.per_s / 20.0) as usize).max(1),
        }
    }

    /// Sets a rate for a load that never runs at full speed.
    pub fn pace_by_default(&mut self, per_s: u64) {
        self.pace.get_or_insert_with(|| Pace::new(per_s as f64));
    }

    /// Counts work, and waits to keep the rate.
    pub fn done(&mut self, n: usize) {
        self.counter.add(n as u64);
        self.hold_back(n);
    }

    /// Waits to keep the rate, for work that another task counts.
    pub fn hold_back(&mut self, n: usize) {
        if let Some(pace) = &mut self.pace {
            pace.wait(n);
        }
    }
}

/// Throttle of a process.
struct Pace {
    per_s: f64,
    start: Nanos,
    done: f64,
}

/// Longest delay that is caught up, in seconds.
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
        // With a larger delay, it continues from here.
        self.done = self.done.max((elapsed - MADE_UP_S) * self.per_s);
    }
}
