//! Sources of accesses: the files of a machine, or answers noted before.
//!
//! Files are looked up by their names on the machine, answers by masked names, because notes are
//! masked when they are taken.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::PathBuf;

use model::fact::Fact;
use rustix::fs::{Mode, OFlags};

use super::super::access::Access;
use super::super::beneath::{self, Links};
use super::super::kernel_answer;
use super::super::trusted_path;
use super::{Accesses, NAMES_LIMIT};

pub enum AccessSource {
    /// The machine that this process runs on.
    Live,
    /// A directory tree of a machine, and the policy for links in it.
    Tree(PathBuf, Links),
    /// The files of a capture, and its notes of refusals, absences, lists and links; anything in
    /// neither was not captured.
    Captured(PathBuf, Accesses),
    /// Fixed answers; a path without one is absent.
    Memory(Accesses),
    /// Root file system of a machine that does not run; none if only single texts of it are known.
    Stopped(Option<PathBuf>),
}

/// Folders filled by the kernel, or by programs, while they run.
const OF_RUNNING: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/var/run", kernel_answer::ROOT];

fn is_of_running(path: &str) -> bool {
    let below =
        |top: &&str| path.strip_prefix(*top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    OF_RUNNING.iter().any(below)
}

impl AccessSource {
    /// Answer that needs no access to a file.
    pub fn answer(&self, path: &str) -> Option<&Access> {
        match self {
            AccessSource::Captured(_, answers) => answers.get(path),
            // Nothing can be read below a path that is refused.
            AccessSource::Memory(answers) => answers.get(path).or_else(|| {
                let above = path.match_indices('/').skip(1).map(|(end, _)| answers.get(&path[..end]));
                above.flatten().find(|seen| matches!(seen, Access::Refused(_)))
            }),
            AccessSource::Stopped(root) if root.is_none() || is_of_running(path) => Some(&Access::NotRunning),
            AccessSource::Live | AccessSource::Tree(..) | AccessSource::Stopped(_) => None,
        }
    }

    /// True if a file is one of a mounted `/proc`.
    pub fn is_proc(&self, path: &str) -> bool {
        self.open(path, OFlags::PATH).is_ok_and(trusted_path::is_proc)
    }

    /// Bytes of a file, one more than the limit if it is longer.
    pub fn read(&self, path: &str, limit: u64) -> Fact<Vec<u8>> {
        self.fact(self.read_bytes(path, limit))
    }

    pub fn read_part(&self, path: &str, from: u64, length: usize) -> Fact<Vec<u8>> {
        let part = || -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; length];
            let read = self.open_file(path)?.read_at(&mut bytes, from)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        self.fact(part())
    }

    /// Length of a plain file in bytes.
    pub fn size(&self, path: &str) -> Fact<u64> {
        let size = || -> io::Result<u64> {
            let found = self.open_file(path)?.metadata()?;
            if found.is_file() { Ok(found.len()) } else { Err(io::Error::from_raw_os_error(libc::ENXIO)) }
        };
        self.fact(size())
    }

    pub fn list(&self, path: &str) -> Fact<Vec<String>> {
        self.fact(self.list_names(path))
    }

    /// Target of a symbolic link.
    pub fn link_target(&self, path: &str) -> Fact<String> {
        let target = || -> io::Result<String> {
            let link = self.open(path, OFlags::PATH | OFlags::NOFOLLOW)?;
            Ok(rustix::fs::readlinkat(&link, "", Vec::new())?.to_string_lossy().into_owned())
        };
        self.fact(target())
    }

    /// Open file, to be read piece by piece.
    pub fn plain_file(&self, path: &str) -> Fact<File> {
        self.fact(self.open_plain(path))
    }

    fn read_bytes(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        if let Some(answer) = self.of_kernel(path, kernel_answer::text) {
            return answer;
        }
        let mut bytes = Vec::new();
        self.open_plain(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open_plain(&self, path: &str) -> io::Result<File> {
        let file = self.open_file(path)?;
        let kind = file.metadata()?.file_type();
        let is_live = matches!(self, AccessSource::Live);
        if kind.is_fifo() || kind.is_socket() || (!is_live && !kind.is_file()) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        Ok(file)
    }

    /// Answer of the running kernel to a system call.
    fn of_kernel<T>(&self, path: &str, ask: fn(&str) -> Option<T>) -> Option<T> {
        matches!(self, AccessSource::Live).then(|| ask(path)).flatten()
    }

    fn list_names(&self, path: &str) -> io::Result<Vec<String>> {
        if let Some(answer) = self.of_kernel(path, kernel_answer::names) {
            return answer;
        }
        let dir = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
            if names.len() > NAMES_LIMIT {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a file without blocking, because a directory tree may contain a fifo.
    fn open_file(&self, path: &str) -> io::Result<File> {
        self.open(path, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let (root, links) = match self {
            AccessSource::Live => {
                return Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?);
            }
            AccessSource::Tree(root, links) => (root, *links),
            AccessSource::Captured(root, _) => (root, Links::Beneath),
            AccessSource::Stopped(Some(root)) => (root, Links::Rebased),
            AccessSource::Memory(_) | AccessSource::Stopped(None) => {
                return Err(io::Error::from_raw_os_error(libc::ENOENT));
            }
        };
        // For a tree of another machine, neither `..` nor a link may lead out of it.
        let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // The `host` of a capture may itself be a link: it is looked up beneath the bundle like the
        // rest.
        let relative = match self {
            AccessSource::Captured(..) => format!("host{path}"),
            _ => format!("./{}", path.trim_start_matches('/')),
        };
        Ok(beneath::open(root, &relative, flags, links)?)
    }

    fn fact<T>(&self, outcome: io::Result<T>) -> Fact<T> {
        outcome.map_or_else(|error| self.fact_of(&error), Fact::Known)
    }

    /// Fact for an error; a file missing from a capture need not have been absent on its machine.
    pub fn fact_of<T>(&self, error: &io::Error) -> Fact<T> {
        let is_capture = matches!(self, AccessSource::Captured(..));
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) if is_capture => Fact::NotCaptured,
            // A capture contains only plain files: a device in place of one is refused.
            Some(errno @ (libc::ENXIO | libc::ENODEV)) if is_capture => Fact::Refused(errno),
            // In a folder of documents, an object of another kind does not count as absent.
            Some(errno @ (libc::ENOTDIR | libc::ENXIO | libc::ENODEV))
                if matches!(self, AccessSource::Tree(_, Links::Beneath)) =>
            {
                Fact::Refused(errno)
            }
            Some(libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ENODEV) => Fact::Absent,
            errno => Fact::Refused(errno.unwrap_or(libc::EIO)),
        }
    }
}

/// Names in a directory, from the paths of answers, if no answer lists it.
pub fn names_below(answers: &Accesses, dir: &str) -> Fact<Vec<String>> {
    let prefix = format!("{}/", dir.trim_end_matches('/'));
    let below = answers.range(prefix.clone()..).map(|(path, seen)| (path.strip_prefix(&prefix), seen));
    let there = below.take_while(|(rest, _)| rest.is_some()).filter(|(_, seen)| **seen != Access::Absent);
    let mut names: Vec<String> =
        there.filter_map(|(rest, _)| Some(rest?.split('/').next()?.to_owned())).collect();
    names.sort();
    names.dedup();
    if names.is_empty() { Fact::Absent } else { Fact::Known(names) }
}
