//! Places of the locks of followed programs, and names of their system calls: addresses are not
//! passed on.

use std::collections::BTreeMap;

use super::call_numbers::CallNumbers;
use facts::process::calls::call_name;
use facts::process::mappings::{MemoryMapping, parse_maps, place_in};
use host::MachineFiles;
use model::units::Nanos;
use trace::event::{Address, Raw, What};
use trace::naming::Naming;

/// Read limit, above the size of the mappings of large programs.
const MAX_BYTES: u64 = 4 << 20;

/// Reading a program's mappings blocks changes to them (Documentation/filesystems/proc.rst): once a
/// second is enough, and a program that executes another has new ones by then.
const MAX_AGE: Nanos = Nanos::SECOND;

/// Maximum number of threads with cached mappings.
const MAX_THREADS: usize = 64;

/// Recent mappings of followed threads.
pub struct LockPlaces {
    host: MachineFiles,
    pub numbers: CallNumbers,
    futex: i64,
    mappings: BTreeMap<i32, (Nanos, Vec<MemoryMapping>)>,
}

impl LockPlaces {
    /// An empty cache for programs on this machine; `futex` is the number of that system call.
    pub fn new(host: MachineFiles, futex: i64) -> LockPlaces {
        let numbers = CallNumbers::new(host.unrecorded());
        LockPlaces { host, numbers, futex, mappings: BTreeMap::new() }
    }

    /// Names of a thread's calls by number; empty if its numbers differ from onbeat's.
    pub fn calls(&mut self, events: &[Raw], thread: i32) -> BTreeMap<i64, String> {
        let own = events.iter().filter(|event| event.pid == thread);
        let ids = own.filter_map(|event| match event.what {
            What::SyscallEntry { id, .. } | What::SyscallExit { id } => Some(id),
            _ => None,
        });
        let mut ids = ids.peekable();
        if ids.peek().is_none() || !self.numbers.are_own(thread) {
            return BTreeMap::new();
        }
        ids.filter_map(|id| Some((id, call_name(id)?.to_owned()))).collect()
    }

    /// Places of the locks that a thread waited for or released, by their number in the window.
    pub fn locks(
        &mut self,
        events: &[Raw],
        thread: i32,
        now: Nanos,
        names: &mut impl Naming<Address, String>,
    ) -> BTreeMap<u64, String> {
        let own = events.iter().filter(|event| event.pid == thread);
        let mut addresses: Vec<u64> = own
            .filter_map(|event| match event.what {
                What::SyscallEntry { id, args } if id == self.futex => Some(args[0]),
                _ => None,
            })
            .collect();
        if addresses.is_empty() || !self.numbers.are_own(thread) {
            return BTreeMap::new();
        }
        addresses.sort_unstable();
        addresses.dedup();
        let mut found = BTreeMap::new();
        for address in addresses {
            let place = place_in(self.mappings(thread, now), address);
            let number = names.object(address);
            if !place.is_empty() && number != 0 {
                found.insert(number, place);
            }
        }
        found
    }

    fn mappings(&mut self, thread: i32, now: Nanos) -> &[MemoryMapping] {
        let fresh = self.mappings.get(&thread).is_some_and(|known| now - known.0 < MAX_AGE);
        if !fresh {
            if self.mappings.len() >= MAX_THREADS {
                self.mappings.clear();
            }
            let bytes = self.host.unrecorded().read_at_most(&format!("/proc/{thread}/maps"), MAX_BYTES);
            let read = bytes.parse(|bytes| parse_maps(&String::from_utf8_lossy(&bytes)));
            // A thread that has ended has no mappings: the earlier ones are still valid.
            let known = self.mappings.remove(&thread).map(|known| known.1);
            let read = read.known().cloned().or(known).unwrap_or_default();
            self.mappings.insert(thread, (now, read));
        }
        self.mappings.get(&thread).map_or(&[], |known| &known.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::event;
    use host::access::Access;
    use trace::names::Names;

    const FUTEX: i64 = 202;

    fn host(text: &str, header: u64) -> MachineFiles {
        let words = |width: usize| {
            let words = [4, header, 0, 0].map(u64::to_ne_bytes).into_iter();
            let at = if cfg!(target_endian = "big") { 8 - width } else { 0 };
            words.flat_map(|word| word[at..at + width].to_vec()).collect()
        };
        let vector = Access::File(words(if header == 56 { 8 } else { 4 }));
        let file = Access::File(text.as_bytes().to_vec());
        MachineFiles::in_memory([("/proc/7/maps".into(), file), ("/proc/7/auxv".into(), vector)].into())
    }

    /// Size of a program header of this machine's programs, and of the others.
    const OWN: u64 = if cfg!(target_pointer_width = "64") { 56 } else { 32 };
    const OTHER: u64 = 88 - OWN;

    fn enter(pid: i32, id: i64, first: u64) -> Raw {
        event(1, 0, pid, What::SyscallEntry { id, args: [first, 0, 2, 0] })
    }

    #[test]
    fn a_lock_is_a_mapping_and_an_offset_and_nobody_else_s_is_told() {
        let text = "10000-20000 rw-p 00001000 fe:01 131 /usr/bin/robot\n";
        let events = [
            enter(7, FUTEX, 0x10040),
            enter(7, 1, 0x10080),
            enter(8, FUTEX, 0x100c0),
            enter(7, FUTEX, 0x90000),
        ];
        let mut places = LockPlaces::new(host(text, OWN), FUTEX);
        let mut names = Names::new(None, "", "x86_64", None);
        let number = names.object(0x10040);
        let found = places.locks(&events, 7, Nanos(5), &mut names);
        assert_eq!(found, [(number, "robot+0x1040".to_owned())].into());
        // The thread has ended, and its mappings stay known while they are requested.
        places.host = host("", OWN);
        assert_eq!(places.locks(&events, 7, Nanos(5_000_000_000), &mut names).len(), 1);
        assert!(places.locks(&events, 8, Nanos(5), &mut names).is_empty());
    }

    #[test]
    fn calls_have_the_names_of_this_machine() {
        let write = i64::from(libc::SYS_write as i32);
        let events = [enter(7, write, 3), enter(7, 99_999, 0), enter(8, 0, 0)];
        let mut places = LockPlaces::new(host("", OWN), FUTEX);
        assert_eq!(places.calls(&events, 7), [(write, "write".to_owned())].into());
        assert!(places.calls(&events, 8).is_empty(), "nothing is known of it");
    }

    #[test]
    fn those_of_another_word_length_have_no_name_and_no_lock() {
        let text = "10000-20000 rw-p 00001000 fe:01 131 /usr/bin/robot\n";
        let events = [enter(7, FUTEX, 0x10040)];
        let mut places = LockPlaces::new(host(text, OTHER), FUTEX);
        let mut names = Names::new(None, "", "x86_64", None);
        assert!(places.calls(&events, 7).is_empty());
        assert!(places.locks(&events, 7, Nanos(5), &mut names).is_empty());
    }
}
