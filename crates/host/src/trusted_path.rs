//! Resolution of paths for writing, without following any link that another user may have planted.
//!
//! In a folder that several users may write to, any of them can plant a link, or swap one in
//! between two system calls, and so redirect the write of a root process. So the path is walked
//! step by step on descriptors, and a link is followed only if this user or root owns it, in a
//! folder that no other user may write to. That is stricter than the kernel's protected_symlinks
//! (Documentation/admin-guide/sysctl/fs.rst), which covers only sticky folders and can be off.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Limit of followed links, as in the kernel.
const MAX_LINKS: usize = 40;

/// PROC_SUPER_MAGIC of include/uapi/linux/magic.h: links there lead to open files, regardless of
/// their text.
const PROC: u64 = 0x9fa0;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Target of a path.
pub enum Target {
    /// A name in a directory, and its metadata if it exists; never a link that may be followed.
    Name(OwnedFd, OsString, Option<Stat>),
    /// An open file of a process: the link in its directory below /proc.
    OpenFile(OwnedFd, OsString),
    /// A directory: the path ends with `/`, `.` or `..`.
    Directory,
}

/// Directories created during a walk, in order, so that they can be removed again.
#[derive(Default)]
pub struct CreatedDirs(Vec<(OwnedFd, OsString)>);

impl CreatedDirs {
    /// Creates a directory and notes it.
    pub fn make(&mut self, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))?;
        let noted = dir.try_clone().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR);
        })?;
        self.0.push((noted, name.to_owned()));
        Ok(())
    }

    /// Removes them, the deepest first, unless they are not empty.
    pub fn undo(&mut self) {
        while let Some((dir, name)) = self.0.pop() {
            let _ = rustix::fs::unlinkat(&dir, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// True if a path names a descriptor of this process, such as the shell's for `<(...)` and
/// `>(...)`.
pub fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || ["/dev/fd", "/proc/self/fd"].iter().any(|dir| path.starts_with(dir))
}

/// Walks to the last component of a path, which is followed as well with `follow`, and creates
/// missing parents if `make` can note them.
pub fn resolve(path: &Path, follow: bool, mut make: Option<&mut CreatedDirs>) -> io::Result<Target> {
    // By convention the link /dev/fd is the kernel's, whichever user owns /dev in this container.
    let path = path
        .strip_prefix("/dev/fd")
        .map_or_else(|_| path.to_owned(), |fd| Path::new("/proc/self/fd").join(fd));
    let start =
        |absolute: bool| rustix::fs::open(if absolute { c"/" } else { c"." }, DIRECTORY, Mode::empty());
    let bytes = path.as_os_str().as_bytes();
    let mut here = start(bytes.starts_with(b"/"))?;
    // Directories below the start, so that `..` returns on the same path.
    let mut above: Vec<OwnedFd> = Vec::new();
    let mut rest = parts(bytes);
    let mut followed = 0;
    while let Some(name) = rest.pop() {
        match name.as_bytes() {
            b"" | b"." => continue,
            b".." => {
                let back = above
                    .pop()
                    .map_or_else(|| rustix::fs::openat(&here, c"..", DIRECTORY, Mode::empty()), Ok);
                here = back?;
                continue;
            }
            _ => {}
        }
        let last = rest.is_empty();
        let there = match rustix::fs::statat(&here, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        if there.as_ref().is_some_and(is_link) && (follow || !last) {
            check_link(&here, there.as_ref())?;
            if is_proc(&here) {
                if last {
                    return Ok(Target::OpenFile(here, name));
                }
                let next = rustix::fs::openat(&here, &name, DIRECTORY, Mode::empty())?;
                above.push(std::mem::replace(&mut here, next));
                continue;
            }
            followed += 1;
            if followed > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = rustix::fs::readlinkat(&here, &name, Vec::new())?;
            if target.as_bytes().starts_with(b"/") {
                here = start(true)?;
                above.clear();
            }
            rest.extend(parts(target.as_bytes()));
            continue;
        }
        if last {
            return Ok(Target::Name(here, name, there));
        }
        if let (None, Some(made)) = (&there, make.as_deref_mut()) {
            // A directory that another process has created in between is used as is.
            made.make(&here, &name).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
        }
        // O_NOFOLLOW refuses a name that has become a link since the check.
        let next = rustix::fs::openat(&here, &name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        above.push(std::mem::replace(&mut here, next));
    }
    Ok(Target::Directory)
}

/// Parts of a path, the first one last.
fn parts(path: &[u8]) -> Vec<OsString> {
    path.split(|&byte| byte == b'/').rev().map(|part| OsString::from_vec(part.to_vec())).collect()
}

/// Refuses a link that another user may have planted.
fn check_link(dir: &OwnedFd, link: Option<&Stat>) -> io::Result<()> {
    let folder = rustix::fs::fstat(dir)?;
    if is_ours(&folder) && folder.st_mode & 0o022 == 0 && link.is_some_and(is_ours) {
        return Ok(());
    }
    Err(io::Error::other("a link of another user, or in a folder that others may write to, is not followed"))
}

/// True if this user or root owns the file.
pub fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw()
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_symlink()
}

/// True for a descriptor of a file below /proc.
pub fn is_proc(dir: impl AsFd) -> bool {
    // The field's width differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::fstatfs(dir).is_ok_and(|found| found.f_type as u64 == PROC)
}
