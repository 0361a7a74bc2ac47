//! A System V semaphore that does not outlast the process.
//!
//! Linux removes a set of semaphores when it is told to, at once, or with the last process of its
//! namespace (ipc_namespaces(7)); shared memory alone can be marked to go with its last user. So
//! either the process has a namespace of its own, or a child makes the set, waits for the end of
//! its parent however that comes, and removes it.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::descriptors::two;

/// Gives the calling thread, and those that it starts later, a namespace of their own for queues
/// and semaphores; takes CAP_SYS_ADMIN, and a kernel with CONFIG_IPC_NS. Call it once, before there
/// are other threads.
pub fn leave_ipc_namespace() -> bool {
    // SAFETY: the call takes flags, and changes where names of queues and semaphores are looked up.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
}

/// A set of one semaphore, at 0.
pub struct Semaphore {
    id: libc::c_int,
    keeper: Option<Keeper>,
}

impl Semaphore {
    /// Makes the set; `private` where the process has a namespace of its own.
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

    /// Waits until one can be taken.
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
    // SAFETY: the call takes integers; a set that is gone is an error of no interest.
    unsafe { libc::semctl(id, 0, libc::IPC_RMID) };
}

/// A child that removes the set when the process ends. It has closed everything else.
struct Keeper {
    process: libc::pid_t,
    /// Open as long as this process is there.
    alive: Option<OwnedFd>,
}

impl Keeper {
    fn start() -> io::Result<(Keeper, libc::c_int)> {
        // SAFETY: the call writes two numbers where it is told.
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

/// The child's life, in system calls alone: the process it was forked from may have held locks.
fn keep(watched: libc::c_int, tells: libc::c_int) -> ! {
    // SAFETY: integers and locals; what is closed are this process's own copies.
    unsafe {
        // Out of reach of what the terminal sends to onbeat.
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Neither of the two is 0, 1 or 2, which every program begins with.
        libc::dup2(watched, 0);
        libc::dup2(tells, 1);
        if libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9: what a limit of open files commonly allows.
            for open in 2..4096 {
                libc::close(open);
            }
        }
        let id = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let said = if id < 0 { -*libc::__errno_location() } else { id };
        let bytes = said.to_ne_bytes();
        let mut byte = 0u8;
        if libc::write(1, bytes.as_ptr().cast(), bytes.len()) == 4 && id >= 0 {
            // 0 is the end: no process has the other end open any more.
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
