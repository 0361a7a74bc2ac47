//! Control group of a load's processes, so that all of them can be counted and killed.
//!
//! It is created below the group of this process, with no controller enabled: so the limits of a
//! service manager or a container apply to it, and it changes nothing for others. For a process on
//! isolated CPUs, the group of a load on other CPUs is above the partition. Its name has the PID
//! and start time of this process. Source: Documentation/admin-guide/cgroup-v2.rst (cgroup.kill,
//! cpu.stat), Documentation/admin-guide/cgroup-v1/cpuacct.rst.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::units::{CpuSet, Nanos};
use rustix::process::{Pid, Signal, kill_process};

use super::beside::{group_beside, own_group};
use crate::clock;
use crate::process::{ProcessId, process_start};

const PREFIX: &str = "onbeat-load-";

/// CGROUP2_SUPER_MAGIC and CGROUP_SUPER_MAGIC of include/uapi/linux/magic.h.
const GROUPS: [u64; 2] = [0x6367_7270, 0x0027_e0eb];

/// Time limit of the removal, which waits for killed processes to disappear.
const PATIENCE: Nanos = Nanos(2_000_000_000);

const PAUSE: Nanos = Nanos(5_000_000);

/// Depth to which groups created by a user's program are searched.
const DEPTH: u32 = 8;

/// Control group with a group per load below it; none if the machine has no control groups, or this
/// user may not create any.
pub struct Cage {
    group: Option<PathBuf>,
}

/// Group of one load.
#[derive(Clone, Debug, Default)]
pub struct LoadGroup {
    /// Folder of the group; `None` without control groups.
    pub group: Option<PathBuf>,
}

impl Cage {
    /// Creates one for a load on these CPUs, named after this process.
    pub fn create(cpus: &CpuSet) -> Cage {
        let pid = std::process::id();
        let name = name_of(ProcessId { pid, start: process_start(pid).unwrap_or(0) });
        let places = group_beside(cpus).map_or_else(hierarchies, |beside| vec![beside]);
        let made = places.into_iter().map(|above| above.join(&name)).find(|group| create_group(group));
        Cage { group: made }
    }

    /// Cage in this folder, created by another process.
    fn at(group: &Path) -> Cage {
        Cage { group: Some(group.to_owned()) }
    }

    /// Cage of this process in this folder.
    ///
    /// # Errors
    /// `InvalidInput`: the folder is not one. All processes in a cage are killed, so a path alone
    /// is not enough.
    pub fn of(owner: ProcessId, group: &Path) -> io::Result<Cage> {
        let named = group.is_absolute() && group.file_name() == Some(OsStr::new(&name_of(owner)));
        let kind = match rustix::fs::statfs(group) {
            Ok(found) => GROUPS.contains(&(found.f_type as u64 & u64::from(u32::MAX))),
            // Its owner has removed it.
            Err(rustix::io::Errno::NOENT) => true,
            Err(error) => return Err(error.into()),
        };
        if named && kind {
            Ok(Cage::at(group))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a control group of that process"))
        }
    }

    pub fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// Creates a group for a load.
    pub fn room(&self, name: &str) -> io::Result<LoadGroup> {
        let Some(cage) = &self.group else { return Ok(LoadGroup::default()) };
        let group = cage.join(name);
        fs::create_dir(&group)?;
        Ok(LoadGroup { group: Some(group) })
    }

    /// Kills all processes in it, and removes it; fails if something remains after two seconds.
    pub fn clear(&self) -> io::Result<()> {
        let Some(cage) = &self.group else { return Ok(()) };
        let until = clock::monotonic() + PATIENCE;
        loop {
            kill(cage);
            match remove(cage, DEPTH) {
                Ok(()) => return Ok(()),
                Err(error) if clock::monotonic() > until => return Err(error),
                Err(_) => clock::sleep_for(PAUSE),
            }
        }
    }
}

impl LoadGroup {
    /// Moves this process into the group.
    pub fn enter(&self) -> io::Result<()> {
        // 0 stands for the writing process.
        self.group.as_ref().map_or(Ok(()), |group| fs::write(group.join("cgroup.procs"), "0"))
    }

    /// File with the processor time of the group: `usage_usec` in version 2, nanoseconds in version
    /// 1.
    pub(super) fn cpu_file(&self) -> Option<PathBuf> {
        let group = self.group.as_ref()?;
        ["cpu.stat", "cpuacct.usage"].map(|name| group.join(name)).into_iter().find(|file| file.exists())
    }
}

/// Kills and removes the cages of processes that have ended; returns their names.
pub fn remove_abandoned() -> Vec<String> {
    let mut removed = Vec::new();
    // A cage of isolated CPUs is above them, and its owner may have been moved since.
    let places = hierarchies().into_iter().flat_map(|own| with_those_above(&own));
    for above in places {
        let Ok(entries) = fs::read_dir(above) else { continue };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_abandoned(&name) && Cage::at(&entry.path()).clear().is_ok() {
                removed.push(name);
            }
        }
    }
    removed
}

fn name_of(owner: ProcessId) -> String {
    format!("{PREFIX}{}-{}", owner.pid, owner.start)
}

/// True for a group with a cage's name whose process has ended.
fn is_abandoned(name: &str) -> bool {
    let owner = || {
        let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
        Some((pid.parse::<u32>().ok()?, start.parse::<u64>().ok()?))
    };
    owner().is_some_and(|(pid, start)| process_start(pid) != Some(start))
}

/// Groups of this process below which it may create others, version 2 first.
fn hierarchies() -> Vec<PathBuf> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    groups_of(&read("/proc/self/mounts"), &read("/proc/self/cgroup"))
}

/// Groups in the texts of /proc/self/mounts and /proc/self/cgroup (cgroups(7)).
fn groups_of(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let places = [("cgroup2", ""), ("cgroup", "cpuacct")];
    places.into_iter().filter_map(|(kind, controller)| own_group(mounts, groups, kind, controller)).collect()
}

/// A group and those above it, up to the mount.
fn with_those_above(own: &Path) -> Vec<PathBuf> {
    let is_group = |path: &&Path| path.join("cgroup.procs").exists();
    own.ancestors().take_while(is_group).map(Path::to_owned).collect()
}

/// Creates a group; false if it fails, or if processes cannot be moved into the group.
fn create_group(group: &Path) -> bool {
    if fs::create_dir(group).is_err() {
        return false;
    }
    let kind = fs::read_to_string(group.join("cgroup.type"));
    let takes = kind.map_or(true, |kind| kind.trim() == "domain");
    if !takes {
        let _ = fs::remove_dir(group);
    }
    takes
}

/// Kills the processes in a group and below: through cgroup.kill since Linux 5.14, else one by one.
fn kill(group: &Path) {
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in processes(group, DEPTH) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn processes(group: &Path, depth: u32) -> Vec<Pid> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 is a process invisible to this one.
    let mut found: Vec<Pid> = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect();
    if depth > 0 {
        found.extend(below(group).iter().flat_map(|group| processes(group, depth - 1)));
    }
    found
}

fn below(group: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(group).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let folders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(fs::DirEntry::path).collect()
}

fn remove(group: &Path, depth: u32) -> io::Result<()> {
    if depth > 0 {
        below(group).iter().try_for_each(|group| remove(group, depth - 1))?;
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_every_layout() {
        let unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let hybrid = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let paths = |mounts, groups| {
            groups_of(mounts, groups).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(paths(unified, "0::/user.slice/a\n"), ["/sys/fs/cgroup/user.slice/a"]);
        assert_eq!(
            paths(hybrid, "4:cpu,cpuacct:/b\n3:memory:/c\n0::/\n"),
            ["/sys/fs/cgroup/unified/", "/sys/fs/cgroup/cpu,cpuacct/b"]
        );
        assert!(paths(unified, "0::/../other\n").is_empty());
        assert!(paths("", "0::/\n").is_empty() && paths(unified, "").is_empty());
    }

    #[test]
    fn a_folder_is_no_cage_by_its_path_alone() {
        let place = tempfile::tempdir().unwrap();
        let owner = ProcessId { pid: 7, start: 8 };
        let named = place.path().join(name_of(owner));
        // Already removed by its owner.
        assert!(Cage::of(owner, &named).is_ok_and(|cage| cage.clear().is_ok()));
        fs::create_dir(&named).unwrap();
        for group in
            [named.as_path(), place.path(), Path::new("/sys/fs/cgroup"), Path::new("onbeat-load-7-8")]
        {
            let refused = Cage::of(owner, group).err().map(|error| error.kind());
            assert_eq!(refused, Some(io::ErrorKind::InvalidInput), "{}", group.display());
        }
        assert!(Cage::of(ProcessId { start: 9, ..owner }, &named).is_err());
    }

    #[test]
    fn only_a_cage_whose_process_has_ended_is_abandoned() {
        let own = std::process::id();
        let start = process_start(own).unwrap();
        assert!(!is_abandoned(&format!("{PREFIX}{own}-{start}")));
        assert!(is_abandoned(&format!("{PREFIX}{own}-{}", start + 1)));
        for name in ["onbeat", "onbeat-load-", "onbeat-load-1", "onbeat-load-x-y", "user.slice"] {
            assert!(!is_abandoned(name), "{name}");
        }
    }
}
