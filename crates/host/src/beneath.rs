//! Lookups that start at a directory and stay below it, regardless of symbolic links and races on
//! the way.
//!
//! openat2(2) does this in the kernel since Linux 5.6. Where it is missing (older kernels, gVisor,
//! filters of system calls), the path is walked component by component, always on descriptors, with
//! the same results.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Policy for symbolic links on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// No link is followed (ELOOP).
    Refused,
    /// Links that stay below the directory are followed; others, absolute ones included, are
    /// refused (EXDEV).
    Beneath,
    /// The directory acts as `/`, and `..` ends there, as after chroot(2).
    Rebased,
}

/// Limit of followed links, as in the kernel (MAXSYMLINKS, include/linux/namei.h).
const MAX_LINKS: usize = 40;

/// Attempts at a lookup with `..` when a concurrent rename disturbs it (openat2(2), EAGAIN).
const MAX_TRIES: usize = 8;

impl Links {
    fn flags(self) -> ResolveFlags {
        ResolveFlags::NO_MAGICLINKS
            | match self {
                Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
                Links::Beneath => ResolveFlags::BENEATH,
                Links::Rebased => ResolveFlags::IN_ROOT,
            }
    }
}

/// Opens the path below the directory; creates nothing.
pub fn open(dir: impl AsFd, path: &str, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    for _ in 0..MAX_TRIES {
        match rustix::fs::openat2(&dir, path, flags, Mode::empty(), links.flags()) {
            Err(Errno::AGAIN) => {}
            // Filters answer with either of the latter two for calls that they do not know.
            Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => break,
            answer => return answer,
        }
    }
    step_by_step(dir.as_fd(), path, flags, links)
}

/// Like [`open`], but without openat2(2).
pub fn step_by_step(dir: BorrowedFd<'_>, path: &str, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
    // Directories entered so far: `..` pops one of them and is never looked up, so that a directory
    // moved during the lookup leads nowhere else.
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut rest: Vec<Vec<u8>> = Vec::new();
    let mut followed = 0;
    enter(path.as_bytes(), links, &mut way, &mut rest)?;
    while let Some(part) = rest.pop() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." if way.pop().is_none() && links != Links::Rebased => return Err(Errno::XDEV),
            b".." => continue,
            _ => {}
        }
        let here = way.last().map_or(dir, AsFd::as_fd);
        let last = rest.is_empty();
        let how = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC };
        // O_PATH with O_NOFOLLOW opens a link itself, which only a caller that passes both flags
        // wants.
        let itself = last && flags.contains(OFlags::NOFOLLOW);
        let opened = match rustix::fs::openat(here, &*part, how | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(opened) if itself || !how.contains(OFlags::PATH) || !is_link(&opened) => Ok(opened),
            Ok(_) => Err(Errno::LOOP),
            Err(errno) => Err(errno),
        };
        match opened {
            Ok(opened) if last => return Ok(opened),
            Ok(opened) => way.push(opened),
            Err(errno @ (Errno::LOOP | Errno::NOTDIR)) if !itself => {
                let Ok(target) = rustix::fs::readlinkat(here, &*part, Vec::new()) else { return Err(errno) };
                followed += 1;
                if links == Links::Refused || followed > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                enter(target.as_bytes(), links, &mut way, &mut rest)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::openat(way.last().map_or(dir, AsFd::as_fd), c".", flags, Mode::empty())
}

/// Pushes the parts of a path on the stack of parts to walk, the first one on top.
fn enter(path: &[u8], links: Links, way: &mut Vec<OwnedFd>, rest: &mut Vec<Vec<u8>>) -> Result<(), Errno> {
    match path.first() {
        None => return Err(Errno::NOENT),
        Some(b'/') if links == Links::Rebased => way.clear(),
        Some(b'/') => return Err(Errno::XDEV),
        Some(_) => {}
    }
    rest.extend(path.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
    Ok(())
}

fn is_link(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    const READ: OFlags = OFlags::RDONLY;
    const PLACES: [Links; 3] = [Links::Refused, Links::Beneath, Links::Rebased];

    fn sample_tree() -> (tempfile::TempDir, OwnedFd) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("a/b/x"), "in").unwrap();
        fs::write(root.join("etc/passwd"), "of the tree").unwrap();
        fs::write(top.path().join("secret"), "out").unwrap();
        let outside = top.path().join("secret").display().to_string();
        for (name, target) in [
            ("rel", "a/b/x"),
            ("up", "a/../a/b/x"),
            ("out", "../secret"),
            ("far", "../../../../../../etc/passwd"),
            ("abs", "/etc/passwd"),
            ("outside", outside.as_str()),
            ("dir", "a/b"),
            ("dirs", "/a/"),
            ("loop", "loop"),
            ("ping", "pong"),
            ("pong", "ping"),
            ("file", "a/b/x/"),
            ("gone", "nowhere"),
            ("self", "."),
            ("root", "/"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        symlink("l0", root.join("l1")).unwrap();
        symlink("a/b/x", root.join("l0")).unwrap();
        for n in 2..45 {
            symlink(format!("l{}", n - 1), root.join(format!("l{n}"))).unwrap();
        }
        let fd = OwnedFd::from(fs::File::open(&root).unwrap());
        (top, fd)
    }

    fn text(opened: Result<OwnedFd, Errno>) -> Result<String, Errno> {
        let mut text = String::new();
        let mut file = fs::File::from(opened?);
        if file.metadata().unwrap().is_dir() {
            return Ok("a directory".to_owned());
        }
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn both_ways_give_the_same_answers() {
        let (_top, root) = sample_tree();
        let paths = [
            "a/b/x",
            "./a/./b//x",
            "a/b/../b/x",
            "rel",
            "up",
            "out",
            "far",
            "abs",
            "outside",
            "dir/x",
            "dirs/b/x",
            "loop",
            "ping",
            "file",
            "gone",
            "self/a/b/x",
            "root/etc/passwd",
            "a/b/x/",
            "a/b/x/y",
            "a/b",
            "a/b/",
            "a/b/.",
            "rel/.",
            "dir/.",
            "..",
            "../secret",
            "a/../../secret",
            "none",
            "none/x",
            "",
            ".",
            "dir",
            "l39",
            "l40",
            "l41",
            "/etc/passwd",
            "/../etc/passwd",
            "dir/../b/x",
            "dir/../../etc/passwd",
        ];
        for links in PLACES {
            for path in paths {
                let slow = text(step_by_step(root.as_fd(), path, READ | OFlags::CLOEXEC, links));
                assert_ne!(slow.as_deref(), Ok("out"), "{path} {links:?}");
                // Where the kernel has no openat2, the second is the first again.
                assert_eq!(text(open(&root, path, READ, links)), slow, "{path} {links:?}");
            }
        }
        for path in ["rel", "dir/x", "a/b/x", "gone", "dir"] {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let kind = |opened: Result<OwnedFd, Errno>| opened.map(|fd| is_link(&fd));
            assert_eq!(
                kind(open(&root, path, flags, Links::Beneath)),
                kind(step_by_step(root.as_fd(), path, flags, Links::Beneath)),
                "{path}"
            );
        }
    }

    #[test]
    fn links_lead_where_each_kind_of_tree_lets_them() {
        let (_top, root) = sample_tree();
        let at = |path: &str, links| text(step_by_step(root.as_fd(), path, READ, links));
        assert_eq!(at("abs", Links::Rebased).as_deref(), Ok("of the tree"));
        assert_eq!(at("far", Links::Rebased).as_deref(), Ok("of the tree"));
        assert_eq!(at("outside", Links::Rebased), Err(Errno::NOENT));
        assert_eq!(at("abs", Links::Beneath), Err(Errno::XDEV));
        assert_eq!(at("out", Links::Beneath), Err(Errno::XDEV));
        assert_eq!(at("up", Links::Beneath).as_deref(), Ok("in"));
        assert_eq!(at("rel", Links::Refused), Err(Errno::LOOP));
        assert_eq!(at("loop", Links::Rebased), Err(Errno::LOOP));
    }

    #[test]
    fn a_directory_that_is_moved_meanwhile_leads_nowhere_else() {
        let (top, root) = sample_tree();
        let (inside, outside) = (top.path().join("root/a/b"), top.path().join("b"));
        fs::write(top.path().join("x"), "out").unwrap();
        fs::write(top.path().join("root/a/x"), "in").unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::rename(&inside, &outside);
                    let _ = fs::rename(&outside, &inside);
                }
            });
            for _ in 0..2_000 {
                let found = text(step_by_step(root.as_fd(), "a/b/../x", READ, Links::Rebased));
                assert!(found.as_deref() == Ok("in") || found == Err(Errno::NOENT), "{found:?}");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
