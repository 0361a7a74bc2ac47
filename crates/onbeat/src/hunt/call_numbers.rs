//! Check that a thread uses the system call numbers of onbeat: a 32-bit program on a 64-bit kernel
//! has different ones, and the kernel's events do not show that.

use std::collections::BTreeMap;

use facts::process::calls::has_own_numbers;
use host::MachineFiles;
use trace::event::{Raw, What};

/// Maximum number of threads in the cache.
const MAX_THREADS: usize = 4096;

/// Read limit for an auxiliary vector, above its size.
const MAX_BYTES: u64 = 4096;

/// Cache of results by thread.
pub struct CallNumbers {
    host: MachineFiles,
    own: BTreeMap<i32, bool>,
}

impl CallNumbers {
    /// An empty cache for programs on this machine.
    pub fn new(host: MachineFiles) -> CallNumbers {
        CallNumbers { host, own: BTreeMap::new() }
    }

    /// True if the numbers are known to be the same; the first result of a thread is kept.
    pub fn are_own(&mut self, thread: i32) -> bool {
        if self.own.len() >= MAX_THREADS && !self.own.contains_key(&thread) {
            self.own.clear();
        }
        *self.own.entry(thread).or_insert_with(|| {
            let vector = self.host.unrecorded().read_at_most(&format!("/proc/{thread}/auxv"), MAX_BYTES);
            vector.parse(|bytes| has_own_numbers(&bytes)).known() == Some(&true)
        })
    }

    /// Drops the result of a thread that executes another program, and that of an ended thread
    /// whose ID is reused.
    pub fn observe(&mut self, event: &Raw) {
        match event.what {
            What::Exec { .. } => drop(self.own.remove(&event.pid)),
            What::Fork { child } => drop(self.own.remove(&child)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::event;
    use host::access::Access;

    fn program(header: u8) -> MachineFiles {
        let bytes = match header {
            56 => [4u64, 56, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect(),
            _ => [4u32, 32, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect(),
        };
        MachineFiles::in_memory([("/proc/7/auxv".into(), Access::File(bytes))].into())
    }

    #[test]
    fn a_thread_is_asked_for_once_and_again_when_it_executes() {
        let (own, other) = if cfg!(target_pointer_width = "64") { (56, 32) } else { (32, 56) };
        let mut numbers = CallNumbers::new(program(own));
        assert!(numbers.are_own(7) && !numbers.are_own(8), "nothing is known of 8");
        numbers.host = program(other);
        assert!(numbers.are_own(7));
        numbers.observe(&event(1, 0, 7, What::Exec { old: 7 }));
        assert!(!numbers.are_own(7));
        numbers.host = program(own);
        numbers.observe(&event(1, 0, 7, What::Exit));
        assert!(!numbers.are_own(7));
        numbers.observe(&event(1, 0, 3, What::Fork { child: 7 }));
        assert!(numbers.are_own(7));
    }
}
