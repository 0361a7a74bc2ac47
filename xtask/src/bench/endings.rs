//! Loads whose onbeat ends in every way: leftovers on the machine after two seconds.
//!
//! The processes of a run are identified by a word in their environment, which every process that
//! it starts inherits, even if its command line changes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stats::rng::Rng;

use super::{Folder, Row, Rows};
use crate::tools::{Result, target};

/// Loads of all kinds: processes, memory, files, sockets, and a program that starts another.
const LOAD: &str = "full messaging:1 net:1 fork:1";
const PROGRAM: &str = "cmd:sh -c 'sleep 1000 & wait'";

/// Time for leftovers to disappear.
const GRACE: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(60);

/// A way to end.
struct Ending {
    what: &'static str,
    times: u32,
    end: fn(&LoadedRun, &mut Rng) -> Result<()>,
    /// True if no process is left that could clean up: then the group stays until the next run,
    /// which removes it, with the descendants of the user's program in it, for the kernel ends the
    /// program alone.
    group_stays: bool,
}

const ENDINGS: [Ending; 5] = [
    Ending { what: "onbeat killed", times: 20, end: |run, _| run.settled()?.kill(), group_stays: false },
    Ending { what: "onbeat and keeper killed", times: 10, end: with_keeper, group_stays: true },
    Ending { what: "keeper killed, then onbeat", times: 10, end: after_keeper, group_stays: true },
    Ending { what: "killed while it starts", times: 10, end: while_it_starts, group_stays: false },
    Ending {
        what: "Ctrl-C",
        times: 10,
        end: |run, _| run.settled()?.signal(Signal::INT),
        group_stays: false,
    },
];

pub fn measure(binary: &Path, quick: bool) -> Rows {
    let folder = Folder(target("lab/bench")?.join("endings"));
    // Moments differ from run to run of the bench; each is printed.
    let mut rng = Rng::new(host::random_u64());
    let mut rows = Vec::new();
    for ending in &ENDINGS {
        for (kind, line) in lines(&folder.0) {
            let times = if quick { 2 } else { ending.times };
            let mut clean = 0;
            for time in 0..times {
                let left = one(ending, binary, &line, &folder.0, &mut rng)?;
                clean += u32::from(left.is_empty());
                left.iter()
                    .for_each(|what| println!("  {kind}, {}, {time}: remains of it: {what}", ending.what));
            }
            rows.push(Row {
                what: format!("{kind}, {}", ending.what),
                ours: format!("{clean} of {times} clean"),
                peer: String::new(),
                limit: times.to_string(),
                holds: Some(clean == times),
            });
        }
    }
    Ok(rows)
}

/// Command lines of loads alone, and together with a measurement.
fn lines(folder: &Path) -> [(&'static str, Vec<String>); 2] {
    let alone = ["load", "-q", "-D", "1000s"].iter().map(|word| (*word).to_string());
    let alone = alone.chain(LOAD.split(' ').map(str::to_string)).chain([PROGRAM.to_string()]);
    let run = folder.join("run").display().to_string();
    let beside = ["measure", "-q", "-D", "1000s", "-p", "0", "-a", "0", "--idle", "as-is", "-o", &run];
    let loads = ["--load", LOAD, "--load", PROGRAM, "--load-cpus", "0"];
    [
        ("load", alone.collect()),
        ("measure", beside.iter().chain(&loads).map(|word| (*word).to_string()).collect()),
    ]
}

/// Starts it, ends it, and returns the leftovers.
fn one(ending: &Ending, binary: &Path, line: &[String], folder: &Path, rng: &mut Rng) -> Result<Vec<String>> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let before = objects();
    let mut run = LoadedRun::start(binary, line, folder)?;
    let ended = (ending.end)(&run, rng);
    let sockets = run.sockets.take();
    let waited = run.child.wait().map_err(|error| error.to_string());
    thread::sleep(GRACE);
    let mut left = run.left(ending.group_stays);
    left.extend(objects().difference(&before).map(|object| format!("the System V object {object}")));
    let open = socket_inodes();
    left.extend(
        sockets.iter().filter(|inode| open.contains(*inode)).map(|inode| format!("the socket {inode}")),
    );
    if ending.group_stays && left.is_empty() {
        run.next_run(binary)?;
        left.extend(run.left(false).into_iter().map(|what| format!("{what}, also after the next run")));
    }
    run.remove_all();
    ended.and(waited).map(|_| left)
}

/// A run, and the word that identifies its processes.
struct LoadedRun {
    child: Child,
    mark: String,
    folder: PathBuf,
    /// Sockets that its processes had before it was ended.
    sockets: std::cell::Cell<BTreeSet<u64>>,
}

impl LoadedRun {
    fn start(binary: &Path, line: &[String], folder: &Path) -> Result<LoadedRun> {
        let mark = format!("ONBEAT_BENCH={:016x}", host::random_u64());
        let (name, value) = mark.split_once('=').expect("it has one");
        let quiet = Stdio::null;
        let child = Command::new(binary)
            .args(line)
            .env(name, value)
            .env("XDG_STATE_HOME", folder)
            .stdin(quiet())
            .stdout(quiet())
            .stderr(quiet())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        Ok(LoadedRun { child, mark, folder: folder.to_owned(), sockets: Default::default() })
    }

    /// Waits until all of it works, and a little longer.
    fn settled(&self) -> Result<&LoadedRun> {
        let until = Instant::now() + PATIENCE;
        // The descendant of the user's program starts last.
        while !self.processes().iter().any(|pid| command_line(*pid).starts_with("sleep\0")) {
            if Instant::now() > until {
                return Err("the loads did not begin".to_string());
            }
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(500));
        self.sockets.set(self.processes().iter().flat_map(|pid| sockets_of(*pid)).collect());
        Ok(self)
    }

    fn processes(&self) -> Vec<u32> {
        let marked = |pid: &u32| {
            let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            text.split(|byte| *byte == 0).any(|word| word == self.mark.as_bytes())
        };
        numbers("/proc").into_iter().filter(marked).collect()
    }

    fn keeper(&self) -> Result<u32> {
        let own = format!("--keep\0{}/", self.child.id());
        let found = self.processes().into_iter().find(|pid| command_line(*pid).contains(&own));
        found.ok_or_else(|| "it has no keeper".to_string())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        send(self.child.id(), signal)
    }

    fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// Leftovers, in words.
    fn left(&self, group_stays: bool) -> Vec<String> {
        let process = |pid: &u32| format!("the process {pid}: {}", command_line(*pid).replace('\0', " "));
        let mut processes = self.processes();
        processes.retain(|pid| !(group_stays && command_line(*pid).starts_with("sleep\0")));
        let mut left: Vec<String> = processes.iter().map(process).collect();
        if !group_stays {
            left.extend(self.groups().iter().map(|group| format!("the group {}", group.display())));
        }
        let mut files = Vec::new();
        files_below(&self.folder, &mut files);
        // The run of a measurement stays.
        files.retain(|file| !file.starts_with(self.folder.join("run")));
        left.extend(files.iter().map(|file| format!("the file {}", file.display())));
        left
    }

    fn groups(&self) -> Vec<PathBuf> {
        let prefix = format!("onbeat-load-{}-", self.child.id());
        let mut found = Vec::new();
        groups_below(Path::new("/sys/fs/cgroup"), &prefix, 6, &mut found);
        found
    }

    /// Checks that the next run of a load removes the leftovers of a killed one.
    fn next_run(&self, binary: &Path) -> Result<()> {
        let line = ["load", "cpu:1", "-q", "-D", "100ms"];
        let ended = Command::new(binary).args(line).stdout(Stdio::null()).status();
        ended.map(drop).map_err(|error| error.to_string())
    }

    /// Cleans up the leftovers after the benchmark.
    fn remove_all(&self) {
        self.processes().into_iter().for_each(|pid| drop(send(pid, Signal::KILL)));
        for group in self.groups() {
            for inner in fs::read_dir(&group).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(inner.path());
            }
            let _ = fs::remove_dir(group);
        }
    }
}

fn with_keeper(run: &LoadedRun, _: &mut Rng) -> Result<()> {
    let keeper = run.settled()?.keeper()?;
    // Stopped, neither sees the other's end.
    send(keeper, Signal::STOP)?;
    run.kill()?;
    send(keeper, Signal::KILL)
}

fn after_keeper(run: &LoadedRun, _: &mut Rng) -> Result<()> {
    send(run.settled()?.keeper()?, Signal::KILL)?;
    thread::sleep(Duration::from_millis(100));
    run.kill()
}

fn while_it_starts(run: &LoadedRun, rng: &mut Rng) -> Result<()> {
    let moment = Duration::from_micros(rng.next_u64() % 300_000);
    thread::sleep(moment);
    println!("  killed {} us after its start", moment.as_micros());
    run.kill()
}

fn send(pid: u32, signal: Signal) -> Result<()> {
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let sent = known.map(|pid| kill_process(pid, signal));
    sent.unwrap_or(Ok(())).map_err(|error| format!("process {pid}: {error}"))
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// The entries of a folder that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Inodes of the sockets that a process has open.
fn sockets_of(pid: u32) -> Vec<u64> {
    let folder = format!("/proc/{pid}/fd");
    let inode = |fd: u32| {
        let target = fs::read_link(format!("{folder}/{fd}")).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    numbers(&folder).into_iter().filter_map(inode).collect()
}

/// Inodes of all sockets: field 7 of /proc/net/unix, field 10 of the others.
fn socket_inodes() -> BTreeSet<u64> {
    let tables = [("unix", 6), ("udp", 9), ("udp6", 9), ("tcp", 9), ("tcp6", 9)];
    let of = |(name, field): (&str, usize)| {
        let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        let inode = |line: &str| line.split_whitespace().nth(field)?.parse().ok();
        text.lines().skip(1).filter_map(inode).collect::<Vec<u64>>()
    };
    tables.into_iter().flat_map(of).collect()
}

/// The System V objects of the machine: the first two fields, key and id.
fn objects() -> BTreeSet<String> {
    let of = |kind: &str| {
        let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let named = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().take(2).collect();
            format!("{kind} {}", words.join(" "))
        };
        text.lines().skip(1).map(named).collect::<Vec<String>>()
    };
    ["shm", "sem", "msg"].into_iter().flat_map(of).collect()
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

fn groups_below(folder: &Path, prefix: &str, depth: u32, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        } else if depth > 0 {
            groups_below(&entry.path(), prefix, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_sockets_and_objects_are_found() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let own: BTreeSet<u64> = sockets_of(std::process::id()).into_iter().collect();
        assert!(!own.is_empty() && own.is_subset(&socket_inodes()));
        drop(one);
        assert!(!objects().contains(""));
    }
}
