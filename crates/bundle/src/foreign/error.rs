//! Refusal of a file.

use super::FILE_LIMIT;

/// Reason why a file is refused, in one line, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError(pub String);

impl ImportError {
    pub(super) fn new(what: impl Into<String>) -> ImportError {
        ImportError(what.into())
    }

    /// Adds the number of the line that the error is about.
    pub(super) fn at(self, line: usize) -> ImportError {
        ImportError(format!("line {line}: {}", self.0))
    }
}

/// Refuses a text over the limit.
pub(super) fn too_large() -> ImportError {
    let mib = FILE_LIMIT >> 20;
    ImportError(format!("the text is larger than {mib} MiB: extract the lines of the result"))
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ImportError {
    fn from(what: &str) -> ImportError {
        ImportError(what.into())
    }
}

impl From<String> for ImportError {
    fn from(what: String) -> ImportError {
        ImportError(what)
    }
}
