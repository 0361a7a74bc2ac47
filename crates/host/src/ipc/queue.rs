//! POSIX message queue of one message (mq_overview(7)).

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::random::random_u64;

/// Length of a message in bytes, as in pmqtest.
const LENGTH: usize = 8;

/// `struct mq_attr` of the kernel (include/uapi/linux/mqueue.h).
#[repr(C)]
#[derive(Default)]
struct QueueAttributes {
    flags: libc::c_long,
    max_messages: libc::c_long,
    message_size: libc::c_long,
    rest: [libc::c_long; 5],
}

/// Queue without a name, which lives as long as its descriptor.
pub struct MessageQueue(OwnedFd);

impl MessageQueue {
    /// Creates a queue and unlinks its name.
    ///
    /// Uses raw calls: the C library's functions partly run in threads that it creates.
    pub fn new() -> io::Result<MessageQueue> {
        let name = CString::new(format!("onbeat-{:016x}", random_u64())).map_err(io::Error::other)?;
        let attributes =
            QueueAttributes { max_messages: 1, message_size: LENGTH as _, ..QueueAttributes::default() };
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the kernel reads a name that ends with 0, and one structure.
        let made = unsafe {
            libc::syscall(libc::SYS_mq_open, name.as_ptr(), flags, 0o600, ptr::from_ref(&attributes))
        };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created it, and this is its only owner.
        let queue = unsafe { OwnedFd::from_raw_fd(made as RawFd) };
        // SAFETY: the kernel reads the same name.
        let unlinked = unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) };
        if unlinked < 0 { Err(io::Error::last_os_error()) } else { Ok(MessageQueue(queue)) }
    }

    /// Sends a message.
    #[inline(always)]
    pub fn send(&self) -> io::Result<()> {
        let message = [0u8; LENGTH];
        let (data, until) = (message.as_ptr(), ptr::null::<libc::timespec>());
        // SAFETY: the kernel reads as many bytes as the message has; a null time-out is allowed.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_mq_timedsend,
                self.0.as_raw_fd(),
                data,
                mem::size_of_val(&message),
                0,
                until,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for a message.
    #[inline(always)]
    pub fn receive(&self) -> io::Result<()> {
        let mut message = [0u8; LENGTH];
        let (data, until) = (message.as_mut_ptr(), ptr::null::<libc::timespec>());
        let priority = ptr::null_mut::<libc::c_uint>();
        // SAFETY: the kernel writes at most as many bytes as the message has; null pointers for the
        // priority and the time-out are allowed.
        let received = unsafe {
            libc::syscall(libc::SYS_mq_timedreceive, self.0.as_raw_fd(), data, LENGTH, priority, until)
        };
        if received < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
