//! Budget of reads for a machine described by others: a bundle may hold more files and lists than
//! any machine, so many that reading all of them takes gigabytes.

use std::cell::Cell;
use std::rc::Rc;

/// Cost of an access in addition to the bytes read: its path is stored, and it takes time.
const ACCESS: u64 = 256;

/// Cost of a directory entry in addition to its letters, for joining it to its path.
const NAME: usize = 64;

/// Bytes that may still be read; shared by clones.
#[derive(Clone, Debug)]
pub(super) struct ReadBudget(Rc<Cell<u64>>);

impl Default for ReadBudget {
    /// Unlimited.
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

    /// Subtracts an access that read `bytes` bytes.
    pub fn spend(&self, bytes: usize) {
        self.0.set(self.left().saturating_sub(ACCESS.saturating_add(bytes as u64)));
    }
}

/// Cost of the names of a directory.
pub(super) fn bytes_of(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + NAME).sum()
}
