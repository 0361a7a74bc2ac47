//! Programs started as their caller would start them: the same environment, terminal, limits,
//! policy, CPUs and signal mask, and no shell.
//!
//! The process is created before anything of this one changes, and held until its start: it
//! inherits the caller's settings, and a recorder armed in between records all of it.

#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::fs::Access;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::user::ProgramUser;

/// Exit code of a shell for a program that could not be executed.
const NOT_EXECUTED: i32 = 126;

/// Permission bits that run a program as another user or group (execve(2)).
const SET_IDS: u32 = 0o6000;

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Code(i32),
    /// Number of the signal that ended it.
    Signal(i32),
}

/// Program that is held, runs, or has ended.
pub struct HeldProgram {
    pid: i32,
    /// Pipe to the process: a byte starts the program; closed without one, the process ends.
    go: Option<File>,
    /// Pipe from the process: the error number if it could not be executed.
    outcome: File,
    end: Option<ProgramEnd>,
}

/// Path of a program: the name if it contains a slash, else its first executable match in `$PATH`,
/// as for execvp(3).
///
/// # Errors
/// No match, or none that may be executed.
pub fn find_program(name: &OsStr) -> io::Result<PathBuf> {
    let executable = |path: &Path| -> io::Result<()> {
        let found = std::fs::metadata(path)?;
        if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        Ok(rustix::fs::access(path, Access::EXEC_OK)?)
    };
    let absent = || io::Error::from_raw_os_error(libc::ENOENT);
    if name.is_empty() {
        return Err(absent());
    }
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let places = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for place in std::env::split_paths(&places) {
        let path = if place.as_os_str().is_empty() { Path::new(".").join(name) } else { place.join(name) };
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(absent))
}

/// True if a file is executable and only root can have installed it: it and its folder belong to
/// root, and no other user may write to them.
pub fn owned_by_root(path: &Path) -> bool {
    let roots = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
    };
    path.parent().is_some_and(roots) && roots(path) && find_program(path.as_os_str()).is_ok()
}

/// True if a program's file has a set-user-ID or set-group-ID bit.
pub fn sets_ids(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & SET_IDS != 0)
}

impl HeldProgram {
    /// Creates its process, which waits, from the file, the arguments (the first is its name), and
    /// the user to run as if it is not the caller.
    ///
    /// # Errors
    /// An argument contains a zero byte, or no process can be created.
    pub fn hold(file: &Path, words: &[OsString], user: Option<&ProgramUser>) -> io::Result<HeldProgram> {
        let file = CString::new(file.as_os_str().as_bytes())?;
        let words: Vec<CString> = words.iter().map(|word| c_string(word)).collect::<io::Result<_>>()?;
        let variables: Vec<CString> = environment(user).collect::<io::Result<_>>()?;
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (words_at, variables_at) = (pointers(&words), pointers(&variables));
        let (held, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (outcome, told) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the child makes only system calls, which no lock of another thread can block, and
        // allocates nothing.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((go, outcome));
                let errno = execute(&held, user, &file, &words_at, &variables_at);
                let _ = rustix::io::write(&told, &errno.to_ne_bytes());
                // SAFETY: it ends the process at once, without the exit handlers of the caller.
                unsafe { libc::_exit(NOT_EXECUTED) }
            }
            pid => Ok(HeldProgram { pid, go: Some(File::from(go)), outcome: File::from(outcome), end: None }),
        }
    }

    /// PID of its process, which the executed program keeps.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Starts the program.
    ///
    /// # Errors
    /// It could not be executed, or its process ended before.
    pub fn go(&mut self) -> io::Result<()> {
        // Closes the pipe after the write, so the program can be started only once.
        self.go.take().map_or(Ok(()), |mut go| go.write_all(&[1]))?;
        let mut errno = [0; 4];
        match self.outcome.read(&mut errno)? {
            4 => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno))),
            // Executing the program closed the other end.
            _ => Ok(()),
        }
    }

    /// End of the program, if it has ended.
    pub fn ended(&mut self) -> Option<ProgramEnd> {
        if self.end.is_none() {
            let waited = waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG);
            self.end = waited.ok().flatten().and_then(|(_, status)| end_of(status));
        }
        self.end
    }

    /// Sends it a signal, unless it was waited for already.
    pub fn send(&self, signal: i32) {
        let signal = Signal::from_named_raw(signal);
        if let (None, Some(pid), Some(signal)) = (self.end, Pid::from_raw(self.pid), signal) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for HeldProgram {
    /// A program that was never started ends; a running one continues.
    fn drop(&mut self) {
        if self.go.take().is_some() {
            let _ = waitpid(Pid::from_raw(self.pid), WaitOptions::empty());
        }
    }
}

fn end_of(status: WaitStatus) -> Option<ProgramEnd> {
    let code = status.exit_status().map(ProgramEnd::Code);
    code.or_else(|| status.terminating_signal().map(ProgramEnd::Signal))
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Environment of the caller; for another user, HOME, SHELL, USER and LOGNAME are set as by
/// runuser(1).
fn environment(user: Option<&ProgramUser>) -> impl Iterator<Item = io::Result<CString>> {
    let own: Vec<(&str, OsString)> = user.map(ProgramUser::variables).unwrap_or_default();
    let names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
    let kept = std::env::vars_os().filter(move |(name, _)| !names.iter().any(|own| name == own));
    let own = own.into_iter().map(|(name, value)| (OsString::from(name), value));
    kept.chain(own).map(|(name, value)| {
        let mut text = name.into_vec();
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        Ok(CString::new(text)?)
    })
}

/// Waits for the start, then executes the program; returns the error number on failure.
fn execute(
    held: &OwnedFd,
    user: Option<&ProgramUser>,
    file: &CString,
    words: &[*const libc::c_char],
    variables: &[*const libc::c_char],
) -> i32 {
    let mut byte = [0u8];
    loop {
        match rustix::io::read(held, &mut byte) {
            Ok(1) => break,
            Err(rustix::io::Errno::INTR) => {}
            // The process that was to start it has ended.
            _ => return libc::ECANCELED,
        }
    }
    // The Rust runtime ignores SIGPIPE, and onbeat SIGXFSZ; ignored signals stay ignored in an
    // executed program (execve(2)).
    for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
        // SAFETY: the default action takes no code of this process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    if let Some(user) = user {
        // Groups first: without root's user ID they can no longer be changed.
        let taken = set_thread_groups(&user.groups)
            .and_then(|()| set_thread_res_gid(user.gid, user.gid, user.gid))
            .and_then(|()| set_thread_res_uid(user.uid, user.uid, user.uid));
        if let Err(error) = taken {
            return error.raw_os_error();
        }
    }
    // SAFETY: all pointers are to texts that end with a zero, the lists end with a null, and they
    // outlive the call.
    unsafe { libc::execve(file.as_ptr(), words.as_ptr(), variables.as_ptr()) };
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(words: &[&str]) -> HeldProgram {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        HeldProgram::hold(&find_program(&words[0]).unwrap(), &words, None).unwrap()
    }

    fn end(program: &mut HeldProgram) -> ProgramEnd {
        loop {
            if let Some(end) = program.ended() {
                return end;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_runs_when_it_is_let_and_its_end_is_told() {
        let mut program = held(&["sh", "-c", "exit 7"]);
        assert_eq!(program.ended(), None, "it waits");
        program.go().unwrap();
        assert_eq!(end(&mut program), ProgramEnd::Code(7));
        let mut program = held(&["sh", "-c", "kill -TERM $$"]);
        program.go().unwrap();
        assert_eq!(end(&mut program), ProgramEnd::Signal(libc::SIGTERM));
        let mut program = held(&["sleep", "1000"]);
        program.go().unwrap();
        program.send(libc::SIGKILL);
        assert_eq!(end(&mut program), ProgramEnd::Signal(libc::SIGKILL));
    }

    #[test]
    fn one_that_is_never_let_run_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        let words = ["sh", "-c", "touch \"$1\"", "sh", made.to_str().unwrap()];
        drop(held(&words));
        assert!(!made.exists());
        let mut program = held(&words);
        program.go().unwrap();
        end(&mut program);
        assert!(made.exists());
    }

    #[test]
    fn what_cannot_be_executed_tells_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-program");
        std::fs::write(&file, "no program\n").unwrap();
        let kind = |name: &OsStr| find_program(name).unwrap_err().kind();
        assert_eq!(kind(file.as_os_str()), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(OsStr::new("no-such-program-here")), io::ErrorKind::NotFound);
        assert_eq!(kind(OsStr::new("")), io::ErrorKind::NotFound);
        assert_eq!(kind(folder.path().as_os_str()), io::ErrorKind::PermissionDenied, "a folder");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = find_program(file.as_os_str()).unwrap();
        let mut program = HeldProgram::hold(&found, &[file.clone().into()], None).unwrap();
        assert_eq!(program.go().unwrap_err().raw_os_error(), Some(libc::ENOEXEC));
        assert_eq!(end(&mut program), ProgramEnd::Code(NOT_EXECUTED));
        assert!(!sets_ids(&file));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(sets_ids(&file));
    }

    #[test]
    fn another_user_has_an_environment_of_its_own() {
        let user = ProgramUser {
            name: "a".into(),
            home: "/h".into(),
            shell: "/s".into(),
            uid: rustix::process::getuid(),
            gid: rustix::process::getgid(),
            groups: Vec::new(),
        };
        let texts: Vec<String> =
            environment(Some(&user)).map(|text| text.unwrap().into_string().unwrap_or_default()).collect();
        for wanted in ["HOME=/h", "SHELL=/s", "USER=a", "LOGNAME=a"] {
            let name = &wanted[..=wanted.find('=').unwrap()];
            let found: Vec<&String> = texts.iter().filter(|text| text.starts_with(name)).collect();
            assert_eq!(found, [wanted]);
        }
        assert_eq!(environment(None).count(), std::env::vars_os().count());
    }
}
