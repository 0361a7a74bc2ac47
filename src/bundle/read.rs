//! Reads a bundle, whole or cut short.

use std::path::Path;

use super::run::{Block, Run};
use crate::error::Outcome;

/// A bundle as read: the run, recovered up to its last second, and where its blocks are.
pub struct Bundle {
    /// The run; `complete` is false where it was killed.
    pub run: Run,
    /// What had to be repaired or left out, for people; empty for a whole bundle.
    pub remarks: Vec<String>,
}

impl Bundle {
    /// Opens a bundle directory.
    pub fn open(_path: &Path) -> Outcome<Bundle> {
        todo!("written next")
    }

    /// Goes through the block records in the order they were written, one at a time.
    pub fn each_block(&self, _f: impl FnMut(&Block)) -> Outcome<()> {
        todo!("written next")
    }
}
