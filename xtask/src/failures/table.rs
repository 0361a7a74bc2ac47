//! Errors for each system call, and the calls that are not tested, each with its reason.

use super::calls::{Calls, FailingCall};

/// Calls that are not made to fail.
const NOT_TRIED: &[(&str, &str)] = &[
    ("execve", "the program would not start"),
    ("exit", "does not return"),
    ("exit_group", "does not return"),
    ("rt_sigreturn", "does not return"),
    ("restart_syscall", "is the kernel's own"),
    ("futex", "waking does not fail; a wake-up that is swallowed leaves any program waiting"),
    ("sigaltstack", "the runtime's start of a thread, which ends the program itself"),
    ("mprotect", "the runtime's start of a thread, which ends the program itself"),
    (
        "mmap",
        "the allocator's and the runtime's, which end the program themselves; limits of memory are tried by hand",
    ),
    ("brk", "the allocator's"),
    ("munmap", "does not fail for what was mapped"),
    ("set_robust_list", "the C library's"),
    ("set_tid_address", "the C library's"),
    ("rseq", "the C library's: a second registration is what onbeat's own does without"),
    ("arch_prctl", "the C library's"),
    ("uname", "does not fail, and the library relies on that"),
    ("getpid", "does not fail"),
    ("gettid", "does not fail"),
    ("getuid", "does not fail"),
    ("geteuid", "does not fail"),
    ("getpgrp", "does not fail"),
    ("rt_sigprocmask", "does not fail for signals that exist; the C library's threads rely on that"),
];

/// Calls that older kernels lack, with the version that introduced them: without any of them every
/// command behaves the same. Except fsopen (5.2): if tracefs is not mounted, a hunt needs it, and
/// explains the mount.
const NEWER: &[(&str, &str)] = &[
    ("getrandom", "3.17"),
    ("execveat", "3.19"),
    ("userfaultfd", "4.3"),
    ("statx", "4.11"),
    ("rseq", "4.18"),
    ("open_tree", "5.2"),
    ("clone3", "5.3"),
    ("openat2", "5.6"),
    ("faccessat2", "5.8"),
    ("close_range", "5.9"),
];

/// Errors that the kernel can return for a call: for lack of resources, of permissions, or of the
/// call.
fn errors_of(call: &str) -> &'static [&'static str] {
    match call {
        "open" | "openat" | "openat2" => &["EMFILE", "EACCES", "EIO", "ENOSYS"],
        "read" | "pread64" | "readlink" | "readlinkat" | "getdents64" | "lseek" => &["EIO", "ENOMEM"],
        "stat" | "fstat" | "lstat" | "statx" | "newfstatat" | "statfs" | "fstatfs" | "access"
        | "faccessat" | "faccessat2" => &["EIO", "ENOMEM", "EACCES"],
        "write" | "pwrite64" | "writev" => &["ENOSPC", "EIO", "EFBIG"],
        "ftruncate" | "fallocate" | "fsync" | "fdatasync" => &["EIO", "ENOSPC"],
        "mkdirat" | "mkdir" | "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat" | "fchmod" => {
            &["EIO", "ENOSPC", "EROFS", "EACCES"]
        }
        "clone" | "clone3" => &["EAGAIN", "ENOMEM"],
        "close" => &["EIO", "EINTR"],
        "fcntl" | "poll" | "ppoll" => &["ENOMEM"],
        "clock_nanosleep" | "rt_sigtimedwait" => &["EINTR"],
        _ => &["EPERM", "ENOSYS", "ENOMEM"],
    }
}

/// Each newer call that a command makes, missing from the start: as on an old kernel, and as under
/// a filter.
pub fn missing(calls: &Calls) -> Vec<FailingCall> {
    let made = calls.each().filter_map(|(call, ..)| NEWER.iter().find(|(name, _)| *name == call));
    let fault = |call: &str, errno| FailingCall { call: call.to_owned(), nth: 0, errno };
    // Filters return EPERM too, but the C library continues only after ENOSYS.
    let own = |call: &str| ["openat2", "open_tree"].contains(&call);
    let errors =
        |call: &'static str| [Some("ENOSYS"), own(call).then_some("EPERM")].map(|errno| (call, errno));
    let faults = made.flat_map(|(call, _)| errors(call));
    faults.filter_map(|(call, errno)| Some(fault(call, errno?))).collect()
}

/// Every call that a command makes, failing with each of its errors.
pub fn faults(calls: &Calls) -> Vec<FailingCall> {
    let mut faults = Vec::new();
    for (call, before, most) in calls.each() {
        if NOT_TRIED.iter().any(|(name, _)| *name == call) {
            continue;
        }
        for &errno in errors_of(call) {
            faults.extend((before + 1..=most).map(|nth| FailingCall { call: call.to_owned(), nth, errno }));
        }
    }
    faults
}
