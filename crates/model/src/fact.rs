//! The outcome of reading something.

/// The outcome of reading something: each is a different statement about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// Read and understood.
    Known(T),
    /// Nonexistent on this machine.
    Absent,
    /// Present, but not readable; the error number.
    Refused(i32),
    /// Read and not understood; the fault.
    Malformed(String),
    /// Not in the capture: the machine may have it.
    NotCaptured,
    /// Only present in a running kernel, which the source is not.
    NotRunning,
}

impl<T> Fact<T> {
    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            _ => None,
        }
    }

    /// Continues with a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        self.then(|value| Fact::Known(f(value)))
    }

    /// Continues with a known value where the next step yields a `Fact` too.
    pub fn then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => f(value),
            Fact::Absent => Fact::Absent,
            Fact::Refused(errno) => Fact::Refused(errno),
            Fact::Malformed(what) => Fact::Malformed(what),
            Fact::NotCaptured => Fact::NotCaptured,
            Fact::NotRunning => Fact::NotRunning,
        }
    }

    /// Continues with a known value where the next step can find it malformed.
    pub fn parse<U>(self, f: impl FnOnce(T) -> Result<U, String>) -> Fact<U> {
        self.then(|value| f(value).map_or_else(Fact::Malformed, Fact::Known))
    }
}

/// True if the error number means that a file of another kind exists, such as a folder, a pipe or a
/// link that leads elsewhere; this differs from a file that cannot be read.
pub fn is_of_other_kind(errno: i32) -> bool {
    matches!(
        errno,
        libc::EISDIR | libc::ENOTDIR | libc::ELOOP | libc::EXDEV | libc::ENXIO | libc::ENODEV | libc::ESPIPE
    )
}

/// The error's name where it is a common one, always with the number.
pub fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EACCES => "EACCES, permission denied",
        libc::EPERM => "EPERM, not permitted",
        libc::EIO => "EIO, input/output error",
        libc::EMFILE => "EMFILE, too many open files",
        libc::ENFILE => "ENFILE, too many open files on this machine",
        libc::ENOMEM => "ENOMEM, out of memory",
        libc::EINVAL => "EINVAL, invalid argument",
        libc::ENOTDIR => "ENOTDIR, not a directory",
        libc::EISDIR => "EISDIR, is a directory",
        libc::ELOOP => "ELOOP, too many links",
        libc::EXDEV => "EXDEV, leads out of the tree",
        libc::ENOSYS => "ENOSYS, no such system call",
        libc::EFBIG => "EFBIG, larger than any text of the kernel",
        libc::ENODEV => "ENODEV, not a plain file",
        other => return format!("errno {other}"),
    };
    name.to_owned()
}
