//! What can go wrong, as the exit codes that scripts rely on (`onbeat --help` lists them).

use std::fmt;

/// How a command ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command did what was asked.
    Fine = 0,
    /// Trouble that is neither the user's nor the machine's refusal.
    Internal = 1,
    /// Wrong usage, or input that cannot be read as what it should be.
    Usage = 2,
    /// A limit or gate that was asked for failed.
    Limit = 3,
    /// The machine does not permit it to this user.
    NotPermitted = 4,
    /// This kernel or machine cannot do it.
    NotSupported = 5,
    /// Interrupted by a signal; what was measured is kept.
    Interrupted = 6,
    /// The data carry no verdict.
    Inconclusive = 7,
}

/// A refusal or failure: one line for the user, lower case, with the remedy in it.
#[derive(Debug)]
pub struct Trouble {
    /// The code the process ends with.
    pub exit: Exit,
    /// One line: what is wrong and what to do.
    pub message: String,
}

/// The result of what a user asked for.
pub type Outcome<T> = Result<T, Trouble>;

impl Trouble {
    /// Wrong usage or malformed input.
    pub fn usage(message: impl Into<String>) -> Trouble {
        Trouble { exit: Exit::Usage, message: message.into() }
    }

    /// Trouble inside.
    pub fn internal(message: impl Into<String>) -> Trouble {
        Trouble { exit: Exit::Internal, message: message.into() }
    }

    /// Not permitted to this user.
    pub fn not_permitted(message: impl Into<String>) -> Trouble {
        Trouble { exit: Exit::NotPermitted, message: message.into() }
    }

    /// Not to be had on this kernel or machine.
    pub fn not_supported(message: impl Into<String>) -> Trouble {
        Trouble { exit: Exit::NotSupported, message: message.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Trouble {}
