//! Access to the kernel's tracing: tracefs, found or mounted detached (invisible to other
//! processes), and an instance for onbeat in it.
//!
//! The top level and other instances are read and never written: another program may be tracing.
//! The exception is a threshold that the kernel itself restores, see [`Tracing::set_threshold`].
//! Source: Documentation/trace/ftrace.rst ("Instances"), fs/tracefs/inode.c.

mod below;
mod instance;
mod keeper;
mod names;

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsmount, fsopen, open_tree,
};

use crate::process::ProcessId;

pub use instance::{Instance, RawPipe};
pub use keeper::{remove_after, start_keeper};
pub use names::Stats;

/// Usual mount points of tracefs; the second is that of older systems.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// TRACEFS_MAGIC of include/uapi/linux/magic.h.
const TRACEFS: u64 = 0x7472_6163;

/// Reason for which tracing is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHere {
    /// The kernel was built without tracefs.
    NoTracefs,
    /// It is not mounted, and this kernel (before 5.2) has no detached mounts.
    NotMounted,
    /// It exists but this user may not use it; the error number.
    NotPermitted(i32),
    /// Any other failure, with its error number.
    Failed(i32),
}

impl From<Errno> for NotHere {
    fn from(errno: Errno) -> NotHere {
        match errno {
            Errno::PERM | Errno::ACCESS | Errno::ROFS => NotHere::NotPermitted(errno.raw_os_error()),
            other => NotHere::Failed(other.raw_os_error()),
        }
    }
}

/// Open tracefs; closing it unmounts a mount made for it.
pub struct Tracing {
    /// Root directory of tracefs.
    root: OwnedFd,
    /// Its directory of instances.
    instances: OwnedFd,
}

/// Other tracing on the machine, to be noted because it costs time as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Names of all instances, onbeat's included, sorted.
    pub instances: Vec<String>,
    /// The top level's tracer: `nop` means no tracer, `""` unknown.
    pub tracer: String,
    /// True if events are enabled at the top level, if known.
    pub events: Option<bool>,
    /// True if the top level writes to its buffer, if known.
    pub on: Option<bool>,
}

impl Others {
    /// True if no other program can have events enabled, while onbeat has an instance.
    pub fn are_none(&self) -> bool {
        self.events == Some(false) && self.instances.len() == 1
    }
}

impl Tracing {
    /// Finds tracefs, or mounts it detached; nothing appears in the tree that other processes see.
    pub fn open() -> Result<Tracing, NotHere> {
        // An existing mount is preferred: mounting the single tracefs again resets the options
        // shown for all its mounts, and before Linux 5.17 also its owner and mode
        // (tracefs_get_tree).
        let mut refused = None;
        for place in PLACES {
            match visible(place) {
                Ok(Some(root)) => return Tracing::at(root),
                Ok(None) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(errno) => refused = refused.or(Some(errno)),
            }
        }
        match unseen() {
            Ok(root) => Tracing::at(root),
            Err(Errno::NODEV) => Err(NotHere::NoTracefs),
            Err(Errno::NOSYS) => Err(refused.map_or(NotHere::NotMounted, NotHere::from)),
            Err(errno) => Err(refused.unwrap_or(errno).into()),
        }
    }

    fn at(root: OwnedFd) -> Result<Tracing, NotHere> {
        let instances = below::open_dir(&root, "instances")?;
        // Under lockdown the tree exists but its files cannot be opened
        // (security_locked_down(LOCKDOWN_TRACEFS)).
        below::open(&root, "events/header_page", OFlags::RDONLY)?;
        Ok(Tracing { root, instances })
    }

    /// Reads a top-level file as text, such as `events/header_page` or `printk_formats`.
    pub fn read(&self, path: &str) -> io::Result<String> {
        below::read(&self.root, path)
    }

    /// Sets the threshold of tracers, in us, for a hwlat tracer in onbeat's instance, and returns
    /// the one before. The kernel restores the machine's with the end of that tracer, also with the
    /// removal of the instance (hwlat_tracer_reset); the one before remains the tracer's own for
    /// its next start if it is written again.
    pub fn set_threshold(&self, us: i64) -> io::Result<i64> {
        let before = self.read("tracing_thresh")?;
        let before = before.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        below::write(&self.root, "tracing_thresh", &us.to_string())?;
        Ok(before)
    }

    /// True if the top level has such a file or directory.
    pub fn exists(&self, path: &str) -> bool {
        below::exists(&self.root, path)
    }

    /// Names in a top-level directory, such as `events/sched`, sorted.
    pub fn list(&self, path: &str) -> io::Result<Vec<String>> {
        below::list(&below::open_dir(&self.root, path)?)
    }

    /// Other tracing on this machine.
    pub fn others(&self) -> Others {
        let first = |path: &str| self.read(path).ok().and_then(|text| text.trim().chars().next());
        Others {
            instances: below::list(&self.instances).unwrap_or_default(),
            tracer: self.read("current_tracer").unwrap_or_default().trim().to_owned(),
            // 0 none, 1 all, X some (event_enable_read, kernel/trace/trace_events.c).
            events: first("events/enable").map(|c| matches!(c, '1' | 'X')),
            on: first("tracing_on").map(|c| c == '1'),
        }
    }

    /// Creates an instance for this process, which can have only one.
    pub fn instance(&self) -> io::Result<Instance> {
        self.named(names::name_of)
    }

    /// Creates a second instance for this process, in which a tracer runs.
    pub fn tracer_instance(&self) -> io::Result<Instance> {
        self.named(names::tracer_name_of)
    }

    fn named(&self, name: impl Fn(ProcessId) -> String) -> io::Result<Instance> {
        let own = life_of("self")
            .ok_or_else(|| io::Error::other("/proc/self/stat does not identify this process"))?;
        Instance::make(self.instances.try_clone()?, name(own))
    }

    /// True if an instance of a process exists.
    pub fn has_instance_of(&self, owner: ProcessId) -> bool {
        [names::name_of(owner), names::tracer_name_of(owner)]
            .iter()
            .any(|name| below::exists(&self.instances, name))
    }

    /// Removes the instances of runs that were killed, and returns their names.
    ///
    /// Two conditions must hold. No process with that number and start time is alive (a zombie is
    /// not). And no process has a file of the instance open, or the kernel refuses with EBUSY: a
    /// living onbeat always has one open, so that one in another PID namespace, whose number means
    /// another process here, loses nothing. Removing an instance disables its events and clears its
    /// triggers (event_trace_del_tracer), so there is no need to write to one whose owner may be
    /// alive.
    pub fn remove_dead(&self) -> Vec<String> {
        let mut names = below::list(&self.instances).unwrap_or_default();
        names.retain(|name| names::owner_of(name).is_some_and(|owner| !lives(owner)));
        names.retain(|name| below::remove_dir(&self.instances, name).is_ok());
        names
    }
}

/// True if the process that created an instance still exists, or if that is unknown.
fn lives(owner: ProcessId) -> bool {
    // If the entry of this process is missing, /proc does not show others either (hidepid, or no
    // /proc).
    life_of("self").is_none()
        || life_of(&owner.pid.to_string()).is_some_and(|found| found.start == owner.start)
}

/// A process that has not ended.
fn life_of(process: &str) -> Option<ProcessId> {
    let bytes = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    names::life_in(&String::from_utf8_lossy(&bytes))
}

/// Mounted tracefs, as a private clone of the mount if permitted, so that unmounting it elsewhere
/// does not interfere.
fn visible(place: &str) -> Result<Option<OwnedFd>, Errno> {
    // O_PATH alone does not trigger the automount below debugfs (follow_automount, fs/namei.c).
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::open(place, flags, Mode::empty())?;
    if !is_tracefs(&found) {
        return Ok(None);
    }
    let how =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let own = open_tree(&found, "", how).ok().filter(is_tracefs);
    // Without the privilege to mount, or before Linux 5.2, the visible mount serves as well.
    Ok(Some(own.unwrap_or(found)))
}

/// Mounts tracefs only on a file descriptor (Linux 5.2 or later); closing it unmounts.
fn unseen() -> Result<OwnedFd, Errno> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn is_tracefs(at: &OwnedFd) -> bool {
    // The field's width differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::fstatfs(at).is_ok_and(|found| found.f_type as u64 == TRACEFS)
}
