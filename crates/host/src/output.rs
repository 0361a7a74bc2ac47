//! Output files that the user named: never partially written, never through a link of another user,
//! never blocking forever.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::dir::Dir;
use super::rt::StopsBlocked;
use super::trusted_path::{self, Target};

/// Longest wait for the reader of a named pipe.
const MAX_WAIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Writes a file that the user named. A new or plain file is written to a temporary file in the
/// same directory and renamed, so that it is never incomplete; a link to it remains. A device, a
/// pipe, or an open file of a process (such as /dev/stdout) is written to directly.
pub fn write_user_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match trusted_path::resolve(path, true, None)? {
        Target::Directory => Err(Errno::ISDIR.into()),
        Target::OpenFile(dir, name) => {
            // Appends, because a shell may have opened it to append (`>>`).
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let open = rustix::fs::openat(&dir, &name, flags, Mode::empty())?;
            write_to(open, bytes, true)
        }
        Target::Name(dir, name, None) => replace(dir, &name, bytes, None),
        Target::Name(dir, name, Some(there)) => match FileType::from_raw_mode(there.st_mode) {
            // Keeps the mode, unless another user chose it.
            FileType::RegularFile => {
                let mode = trusted_path::is_ours(&there).then_some(there.st_mode & 0o777);
                replace(dir, &name, bytes, mode)
            }
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => write_to(open_special(&dir, &name, &there)?, bytes, false),
        },
    }
}

/// True if an output is standard output: `-`, or one of its names. It is not reopened by name,
/// because it may be a socket or a file opened to append.
pub fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Writes a document to the path of a flag. A closed reader of standard output is not an error.
pub fn write_document(path: &Path, text: &str) -> io::Result<()> {
    if !is_standard_output(path) {
        return write_user_file(path, text.as_bytes());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Replaces a file with stop signals blocked until it is renamed, so that no temporary file stays.
fn replace(dir: OwnedFd, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let _held = StopsBlocked::begin();
    Dir::of(dir).write_atomically(name, bytes, mode)
}

/// Checks that a file can be created or replaced, as far as possible without doing it.
pub fn check_writable(path: &Path) -> io::Result<()> {
    match trusted_path::resolve(path, true, None)? {
        Target::Directory => Err(Errno::ISDIR.into()),
        Target::OpenFile(dir, name) => may_write(&dir, &name),
        Target::Name(dir, _, None) => may_write(&dir, ".".as_ref()),
        Target::Name(dir, name, Some(there)) => match FileType::from_raw_mode(there.st_mode) {
            FileType::RegularFile => may_write(&dir, ".".as_ref()),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => own_pipe(&there).and_then(|()| may_write(&dir, &name)),
        },
    }
}

/// Creates an empty file with mode 0600; an existing file is left unchanged.
pub fn make_private_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::from_raw_mode(0o600)) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Checks that this user may read and write a path, as far as possible without opening it.
pub fn check_access(path: &Path) -> io::Result<()> {
    let access = Access::READ_OK | Access::WRITE_OK;
    Ok(rustix::fs::accessat(rustix::fs::CWD, path, access, AtFlags::empty())?)
}

/// Checks that this user may execute a file, as far as possible without doing it.
pub fn check_executable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(rustix::fs::CWD, path, Access::EXEC_OK, AtFlags::empty())?)
}

fn may_write(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::accessat(dir, name, Access::WRITE_OK, AtFlags::empty())?)
}

/// Opens a device or a pipe without waiting for its reader, and verifies its identity.
fn open_special(dir: &OwnedFd, name: &OsStr, seen: &Stat) -> io::Result<OwnedFd> {
    own_pipe(seen)?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NXIO => io::Error::other("a pipe that no process reads, or a missing device"),
        Errno::LOOP => io::Error::other("it was replaced by a link"),
        errno => errno.into(),
    })?;
    let found = rustix::fs::fstat(&opened)?;
    if (found.st_dev, found.st_ino) != (seen.st_dev, seen.st_ino) {
        return Err(io::Error::other("it was replaced by another file"));
    }
    Ok(opened)
}

/// Refuses a pipe of another user, whose reader could block this process or get private data.
fn own_pipe(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo if !trusted_path::is_ours(stat) => Err(io::Error::other("a pipe of another user")),
        _ => Ok(()),
    }
}

/// Writes to a descriptor opened as non-blocking. A pipe `given` by the shell may take any time,
/// like standard output; the reader of a named pipe may never read.
fn write_to(open: OwnedFd, bytes: &[u8], given: bool) -> io::Result<()> {
    let named = FileType::from_raw_mode(rustix::fs::fstat(&open)?.st_mode).is_fifo() && !given;
    let mut file = File::from(open);
    if !named {
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        return file.write_all(bytes);
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&MAX_WAIT))? == 0 {
                    return Err(Errno::TIMEDOUT.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::input::open_input;
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn shared(path: &Path, mode: u32) {
        fs::create_dir_all(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn fifo(path: &Path) {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::from_raw_mode(0o666)).unwrap();
    }

    #[test]
    fn a_link_of_this_user_is_followed_and_stays() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir(at("there")).unwrap();
        symlink("there", at("dir")).unwrap();
        symlink("dir/file", at("link")).unwrap();
        for path in [at("link"), at("dir/other"), at("dir/../dir/third")] {
            check_writable(&path).unwrap();
            write_user_file(&path, b"x").unwrap();
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        for name in ["there/file", "there/other", "there/third"] {
            assert_eq!(fs::read(at(name)).unwrap(), b"x", "{name}");
        }
        assert_eq!(fs::read_dir(at("there")).unwrap().count(), 3, "nothing is left beside them");
        for (path, errno) in
            [(at("there"), libc::EISDIR), (at("link/x"), libc::ENOTDIR), (at("no/x"), libc::ENOENT)]
        {
            assert_eq!(check_writable(&path).unwrap_err().raw_os_error(), Some(errno), "{path:?}");
            assert_eq!(write_user_file(&path, b"x").unwrap_err().raw_os_error(), Some(errno), "{path:?}");
        }
    }

    #[test]
    fn a_file_that_was_there_keeps_its_mode() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("file");
        fs::write(&path, "").unwrap();
        for mode in [0o600, 0o640, 0o644, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write_user_file(&path, b"x").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
        }
    }

    #[test]
    fn no_link_is_followed_where_others_may_write() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir(at("mine")).unwrap();
        for mode in [0o777, 0o1777, 0o775] {
            let folder = at(&format!("shared{mode:o}"));
            shared(&folder, mode);
            symlink(at("mine/victim"), folder.join("file")).unwrap();
            symlink(at("mine"), folder.join("dir")).unwrap();
            for path in [folder.join("file"), folder.join("dir/victim"), folder.join("dir/deeper/victim")] {
                assert!(check_writable(&path).is_err(), "{path:?}");
                assert!(write_user_file(&path, b"x").is_err(), "{path:?}");
                assert!(super::super::dir::Dir::create(&path).is_err(), "{path:?}");
            }
            write_user_file(&folder.join("new"), b"x").unwrap();
        }
        assert_eq!(fs::read_dir(at("mine")).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_of_another_user_and_his_files_are_not_trusted() {
        if !rustix::process::geteuid().is_root() {
            return; // Only root can make what belongs to another.
        }
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        shared(&at("his"), 0o755);
        symlink(at("victim"), at("his/link")).unwrap();
        fifo(&at("his/pipe"));
        fs::write(at("his/file"), "old").unwrap();
        fs::set_permissions(at("his/file"), fs::Permissions::from_mode(0o666)).unwrap();
        for name in ["his", "his/pipe", "his/file"] {
            std::os::unix::fs::chown(at(name), Some(65_534), Some(65_534)).unwrap();
        }
        assert!(write_user_file(&at("his/link"), b"x").is_err());
        assert!(check_writable(&at("his/pipe")).is_err() && write_user_file(&at("his/pipe"), b"x").is_err());
        write_user_file(&at("his/file"), b"new").unwrap();
        let now = fs::metadata(at("his/file")).unwrap();
        assert_eq!((now.mode() & 0o777, now.uid()), (0o644, 0));
        assert!(!at("victim").exists());
    }

    #[test]
    fn a_link_swapped_in_is_never_written_through() {
        let top = tempfile::tempdir().unwrap();
        let (folder, victim) = (top.path().join("shared"), top.path().join("victim"));
        shared(&folder, 0o777);
        fs::write(&victim, "untouched").unwrap();
        let (name, pipe, link) = (folder.join("out"), folder.join("pipe"), folder.join("link"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    fifo(&pipe);
                    let _ = fs::rename(&pipe, &name);
                    let _ = symlink(&victim, &link);
                    let _ = fs::rename(&link, &name);
                    let _ = fs::remove_file(&name);
                }
            });
            for _ in 0..3_000 {
                let _ = write_user_file(&name, b"written");
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    }

    #[test]
    fn pipes_are_not_waited_for() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("pipe");
        fifo(&path);
        let refused = write_user_file(&path, b"x").unwrap_err();
        assert!(refused.to_string().contains("no process reads"), "{refused}");
        assert!(open_input(&path).unwrap_err().to_string().contains("a named pipe"));
        let reader =
            File::from(rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
        write_user_file(&path, b"x").unwrap();
        let mut read = [0; 4];
        assert_eq!(rustix::io::read(&reader, &mut read).unwrap(), 1);
        write_user_file(Path::new("/dev/null"), b"x").unwrap();
        let full = write_user_file(Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn what_the_shell_has_opened_is_read_and_written() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (from, to) = rustix::pipe::pipe().unwrap();
        for dir in ["/dev/fd", "/proc/self/fd"] {
            write_user_file(&Path::new(dir).join(to.as_raw_fd().to_string()), b"1\n").unwrap();
        }
        drop(to);
        let mut text = String::new();
        let path = Path::new("/dev/fd").join(from.as_raw_fd().to_string());
        open_input(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1\n1\n");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before\n").unwrap();
        write_user_file(&Path::new("/dev/fd").join(file.as_raw_fd().to_string()), b"after\n").unwrap();
        assert_eq!(file.metadata().unwrap().size(), 13);
    }
}
