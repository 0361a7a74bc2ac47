//! The failures of commands, as the exit codes that scripts rely on (`onbeat --help` lists them).

use std::fmt;
use std::io;

use serde::Serialize;

/// Outcome of a command, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command did what was asked.
    Ok = 0,
    /// Failure that is neither the user's nor the machine's refusal.
    Internal = 1,
    /// Wrong usage, or input of another form than expected.
    Usage = 2,
    /// A requested limit or gate failed.
    Limit = 3,
    /// The machine does not permit it to this user.
    NotPermitted = 4,
    /// This kernel or machine cannot do it.
    NotSupported = 5,
    /// Interrupted by a signal; the measurements so far are kept.
    Interrupted = 6,
    /// The data support no verdict.
    Inconclusive = 7,
}

/// A refusal or failure: one line for the user, in lower case, with the remedy.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Exit code of the process.
    pub exit: Exit,
    /// One line: the fault and the remedy.
    pub message: String,
}

/// Result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Failure of one item of several, such as a run or a step.
#[derive(Debug)]
pub enum ItemFailure {
    /// Reason for which the item is refused; the other items continue.
    Refused(String),
    /// The command ends.
    Fatal(Failure),
}

impl ItemFailure {
    /// The reason of a refusal; a fatal failure is returned as the error.
    pub fn reason(self) -> Result<String> {
        match self {
            ItemFailure::Refused(reason) => Ok(reason),
            ItemFailure::Fatal(failure) => Err(failure),
        }
    }
}

impl From<Failure> for ItemFailure {
    fn from(failure: Failure) -> ItemFailure {
        ItemFailure::Fatal(failure)
    }
}

impl Failure {
    /// Wrong usage or malformed input.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Internal, message: message.into() }
    }

    /// Failure for lack of this user's permission.
    pub fn not_permitted(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::NotPermitted, message: message.into() }
    }

    /// Failure for lack of support by this kernel or machine.
    pub fn not_supported(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::NotSupported, message: message.into() }
    }

    /// A failed system call `what`, by the one table of error numbers: `otherwise` is the code if
    /// the table lacks the number, `remedy` the remedy if the table has none.
    pub fn of_call(what: impl fmt::Display, error: &io::Error, otherwise: Exit, remedy: &str) -> Failure {
        let (exit, known) = meaning_of(error).unwrap_or((otherwise, ""));
        let remedy = if known.is_empty() { remedy } else { known };
        Failure { exit, message: format!("{what} ({}): {remedy}", reason(error)) }
    }
}

/// Text of an error without the number that the standard library appends to the words.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// Meaning of an error number for the user, for any system call: the exit code, and the remedy if
/// it does not depend on the call. `None` for numbers about the names and values that were given.
///
/// A read-only file system counts as not permitted: what is missing is the permission to write, and
/// another place has it.
pub fn meaning_of(error: &io::Error) -> Option<(Exit, &'static str)> {
    Some(match error.raw_os_error()? {
        libc::EACCES | libc::EPERM | libc::EROFS => (Exit::NotPermitted, ""),
        libc::EMFILE => (Exit::Internal, "raise the limit of open files (ulimit -n)"),
        libc::ENFILE => {
            (Exit::Internal, "the machine has no free file handle: end processes with many open files")
        }
        libc::ENOMEM => (Exit::Internal, "free some memory, or raise its limit (ulimit -v)"),
        libc::EAGAIN => (Exit::Internal, "try again, or raise the limit of processes (ulimit -u)"),
        libc::EIO => (Exit::Internal, "look for a failing disk in the kernel's log (dmesg)"),
        libc::ENOSPC | libc::EDQUOT => (Exit::Internal, "free some space, or choose another folder"),
        libc::EFBIG => (Exit::Internal, "raise the limit of file sizes (ulimit -f)"),
        libc::EINTR | libc::EBUSY | libc::ESTALE | libc::ETIMEDOUT | libc::ENOBUFS | libc::ENOLCK => {
            (Exit::Internal, "try again")
        }
        libc::ENOSYS | libc::EOPNOTSUPP => {
            (Exit::NotSupported, "this kernel, or a system call filter, does not support it")
        }
        _ => return None,
    })
}

/// Serializes a value as one line of JSON, everywhere, so that no error becomes an empty file.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| unserialized(&error))
}

/// Converts a value to JSON that is changed before it is written.
pub fn json_value<T: Serialize + ?Sized>(value: &T) -> Result<serde_json::Value> {
    serde_json::to_value(value).map_err(|error| unserialized(&error))
}

/// Like [`json`], on many lines, with a newline at the end.
pub fn json_pretty<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| unserialized(&error))
}

fn unserialized(error: &serde_json::Error) -> Failure {
    Failure::internal(format!("the result cannot be written as JSON ({error}): report this, with the bundle"))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Remedy for a missing capability: root has it, unless a container or a service withholds it.
pub fn run_with(capability: &str) -> String {
    format!("run with {capability}, which root has outside of a container")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_failed_call_has_the_same_code_wherever_it_failed() {
        let code = |errno| {
            let error = io::Error::from_raw_os_error(errno);
            let failure = Failure::of_call("cannot do it", &error, Exit::Usage, "do something else");
            assert!(failure.message.starts_with("cannot do it (") && failure.message.contains("): "));
            assert!(!failure.message.ends_with(": "), "a remedy in any case: {failure}");
            failure.exit
        };
        for errno in [libc::EIO, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOSPC, libc::EFBIG] {
            assert_eq!(code(errno), Exit::Internal, "{errno}");
        }
        for errno in [libc::EACCES, libc::EPERM, libc::EROFS] {
            assert_eq!(code(errno), Exit::NotPermitted, "{errno}");
        }
        assert_eq!((code(libc::ENOSYS), code(libc::ENOENT)), (Exit::NotSupported, Exit::Usage));
        assert_eq!(meaning_of(&io::Error::other("no number")), None);
        assert_eq!(reason(&io::Error::from_raw_os_error(libc::ENOENT)), "No such file or directory");
        assert_eq!(reason(&io::Error::other("no number")), "no number");
    }

    #[test]
    fn what_is_no_json_is_trouble_and_not_an_empty_file() {
        let keys_that_are_no_strings = BTreeMap::from([((1, 2), 3)]);
        assert_eq!(json(&keys_that_are_no_strings).unwrap_err().exit, Exit::Internal);
        assert!(json_pretty(&keys_that_are_no_strings).is_err());
        assert_eq!((json(&[1]).unwrap(), json_pretty(&"a").unwrap()), ("[1]".into(), "\"a\"\n".into()));
    }
}
