//! A System V semaphore that does not outlast the process.
//!
//! Linux removes a semaphore set on request, at once, or with the last process of its namespace
//! (ipc_namespaces(7)); only shared memory can be marked for removal with its last user. So either
//! the process has a private namespace, or a child creates the set, waits for the end of its
//! parent, even by a kill, and removes it.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::descriptors::two;

/// Moves the calling thread, and threads that it starts later, to a new namespace for queues and
/// semaphores; needs CAP_SYS_ADMIN and CONFIG_IPC_NS. Call it once, before other threads are
/// started.
pub fn leave_ipc_namespace() -> bool {
    // SAFETY: the call takes flags, and changes where names of queues and semaphores are looked up.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
}

/// Set of one semaphore, initially 0.
pub struct Semaphore {
    id: libc::c_int,
    keeper: Option<Keeper>,
}

impl Semaphore {
    /// Creates the set; `private` if the process has a private namespace.
    pub fn new(private: bool) -> io::Result<Semaphore> {
        if private {
            return Ok(Semaphore { id: make()?, keeper: None });
        }
        let (keeper, id) = Keeper::start()?;
        Ok(Semaphore { id, keeper: Some(keeper) })
    }

    /// Adds one.
    #[inline(always)]
    pub fn post(&self) -> io::Result<()> {
        self.operate(1)
    }

    /// Waits until it can subtract one.
    #[inline(always)]
    pub fn take(&self) -> io::Result<()> {
        self.operate(-1)
    }

    #[inline(always)]
    fn operate(&self, change: libc::c_short) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: change, sem_flg: 0 };
        // SAFETY: the kernel reads one operation.
        let done = unsafe { libc::semop(self.id, &mut operation, 1) };
        if done != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        if self.keeper.is_none() {
            remove(self.id);
        }
    }
}

fn make() -> io::Result<libc::c_int> {
    // SAFETY: the call takes integers.
    let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
    if id < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

fn remove(id: libc::c_int) {
    // SAFETY: the call takes integers; the error of a missing set does not matter.
    unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
}

/// Child that removes the set when the process ends. It has closed all other descriptors.
struct Keeper {
    process: libc::pid_t,
    /// Open while this process lives.
    alive: Option<OwnedFd>,
}

impl Keeper {
    fn start() -> io::Result<(Keeper, libc::c_int)> {
        // SAFETY: the call writes two numbers to the array that it is given.
        let pipe = || two(|ends| unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) });
        let ((watched, alive), (told, tells)) = (pipe()?, pipe()?);
        // SAFETY: the child makes system calls only, and ends by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => keep(watched.as_raw_fd(), tells.as_raw_fd()),
            process => {
                drop(tells);
                let keeper = Keeper { process, alive: Some(alive) };
                let mut id = [0u8; 4];
                match rustix::io::read(&told, &mut id)? {
                    4 => match i32::from_ne_bytes(id) {
                        id if id < 0 => Err(io::Error::from_raw_os_error(-id)),
                        id => Ok((keeper, id)),
                    },
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.alive.take();
        // SAFETY: the child is this process's own, and no status is wanted.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

/// Main function of the child: system calls only, as its parent may have held locks at the fork.
fn keep(watched: libc::c_int, tells: libc::c_int) -> ! {
    // SAFETY: integers and locals; the descriptors it closes are this process's copies.
    unsafe {
        // Signals of the terminal to onbeat must not reach it.
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Neither of the two is 0, 1 or 2, which every program starts with.
        libc::dup2(watched, 0);
        libc::dup2(tells, 1);
        if libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9: up to the usual limit of open files.
            for open in 2..4096 {
                libc::close(open);
            }
        }
        let id = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let said = if id < 0 { -*libc::__errno_location() } else { id };
        let bytes = said.to_ne_bytes();
        let mut byte = 0u8;
        if libc::write(1, bytes.as_ptr().cast(), bytes.len()) == 4 && id >= 0 {
            // 0 means end of file: no process has the other end open any more.
            while libc::read(0, (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
        }
        if id >= 0 {
            libc::semctl(id, 0, libc::IPC_RMID);
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_goes_with_its_owner() {
        let semaphore = Semaphore::new(false).expect("a set");
        let id = semaphore.id;
        semaphore.post().and_then(|()| semaphore.take()).expect("one was there");
        drop(semaphore);
        // SAFETY: the call takes integers.
        assert_eq!(unsafe { libc::semctl(id, 0, libc::GETVAL) }, -1, "the keeper has removed it");
    }
}
