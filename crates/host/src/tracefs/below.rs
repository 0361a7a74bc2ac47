//! Lookups that start at a directory of tracefs and stay below it; no link is followed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::super::beneath::{self, Links};
use super::super::machine::{NAMES_LIMIT, READ_LIMIT};

/// Opens a file below the directory without blocking.
pub fn open(dir: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if !is_plain(path) {
        return Err(Errno::INVAL);
    }
    beneath::open(dir, path, flags | OFlags::NONBLOCK, Links::Refused)
}

/// True for a relative path without empty, `.` or `..` components.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// Opens a directory below the directory.
pub fn open_dir(dir: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    open(dir, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// True if the path exists below the directory.
pub fn exists(dir: impl AsFd, path: &str) -> bool {
    is_plain(path) && beneath::open(dir, path, OFlags::PATH | OFlags::NOFOLLOW, Links::Refused).is_ok()
}

/// Size of a read in bytes: `header_page` returns everything to the first read and nothing to a
/// second (show_header), so it must be large enough.
const AT_ONCE: usize = 64 << 10;

/// Reads a text of at most [`READ_LIMIT`] bytes: some files of tracefs are endless.
pub fn read(dir: impl AsFd, path: &str) -> io::Result<String> {
    let file = open(dir, path, OFlags::RDONLY)?;
    let (mut bytes, mut filled) = (vec![0; AT_ONCE], 0);
    loop {
        match rustix::io::read(&file, &mut bytes[filled..]) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if filled as u64 > READ_LIMIT {
            return Err(Errno::FBIG.into());
        }
        if bytes.len() - filled < AT_ONCE {
            bytes.resize(bytes.len() + AT_ONCE, 0);
        }
    }
    bytes.truncate(filled);
    String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Writes a text; the kernel adds it to the content of some files (events, triggers).
pub fn write(dir: impl AsFd, path: &str, text: &str) -> io::Result<()> {
    File::from(open(dir, path, OFlags::WRONLY)?).write_all(text.as_bytes())
}

/// Names in a directory, sorted.
pub fn list(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
        if names.len() > NAMES_LIMIT {
            return Err(Errno::FBIG.into());
        }
    }
    names.sort();
    Ok(names)
}

/// Removes a subdirectory.
pub fn remove_dir(dir: &OwnedFd, name: &str) -> Result<(), Errno> {
    if !is_plain(name) {
        return Err(Errno::INVAL);
    }
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_leads_out() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/x"), "in").unwrap();
        std::fs::write(top.path().join("secret"), "out").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        std::os::unix::fs::symlink("a", root.join("dirlink")).unwrap();
        let dir = OwnedFd::from(File::open(&root).unwrap());
        assert_eq!(read(&dir, "a/x").unwrap(), "in");
        for path in ["../secret", "a/../../secret", "link", "dirlink/x", "/etc/passwd", "", ".", "a//x"] {
            assert!(read(&dir, path).is_err(), "{path}");
        }
        assert!(exists(&dir, "a/x") && exists(&dir, "a") && !exists(&dir, "b") && !exists(&dir, "../secret"));
        assert_eq!(list(&dir).unwrap(), ["a", "dirlink", "link"]);
        assert!(remove_dir(&dir, "../root").is_err());
    }
}
