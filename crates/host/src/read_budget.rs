//! How much is read of a machine that others describe: a bundle from elsewhere may hold files and
//! lists that no machine has, so many that reading all of them takes gigabytes.

use std::cell::Cell;
use std::rc::Rc;

/// What an access counts beside the bytes that it brings: its path is kept, and it takes time.
const ACCESS: u64 = 256;

/// What a name of a directory counts beside its letters: it is put together with those above it.
const NAME: usize = 64;

/// Bytes that may still be read; clones share them.
#[derive(Clone, Debug)]
pub(super) struct ReadBudget(Rc<Cell<u64>>);

impl Default for ReadBudget {
    /// More than any machine has.
    fn default() -> ReadBudget {
        ReadBudget::of(u64::MAX)
    }
}

impl ReadBudget {
    pub fn of(bytes: u64) -> ReadBudget {
        ReadBudget(Rc::new(Cell::new(bytes)))
    }

    pub fn left(&self) -> u64 {
        self.0.get()
    }

    /// Counts an access that brought so many bytes.
    pub fn spend(&self, bytes: usize) {
        self.0.set(self.left().saturating_sub(ACCESS.saturating_add(bytes as u64)));
    }
}

/// What the names of a directory count.
pub(super) fn bytes_of(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + NAME).sum()
}
