//! Folders that were to be read and hold no run which can be.

use schemars::JsonSchema;
use serde::Serialize;

/// A folder that holds no run which can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedBundle {
    pub place: String,
    pub reason: String,
}

/// Refused folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedFolders {
    /// The first of them.
    pub kept: Vec<RefusedBundle>,
    /// Total number.
    pub all: usize,
}

impl RefusedFolders {
    /// The first of these alone.
    pub fn of(mut all: Vec<RefusedBundle>, most: usize) -> RefusedFolders {
        let count = all.len();
        all.truncate(most);
        RefusedFolders { kept: all, all: count }
    }

    /// Number of further ones that are not listed.
    pub fn left_out(&self) -> usize {
        self.all - self.kept.len()
    }
}
