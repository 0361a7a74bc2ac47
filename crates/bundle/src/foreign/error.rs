//! The refusal of a file.

/// Reason for which a file is refused, in one line, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError(pub String);

impl ImportError {
    pub(super) fn new(what: impl Into<String>) -> ImportError {
        ImportError(what.into())
    }
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for ImportError {
    fn from(what: String) -> ImportError {
        ImportError(what)
    }
}
