//! Resident pages of a stack.
//!
//! Source: Documentation/admin-guide/mm/pagemap.rst: eight bytes for each page, whose bit 63 is set
//! if it is present. The sizes in `smaps` would not do: a stack may share a mapping with what lies
//! next to it.

use super::mappings::MemoryMapping;
use host::MachineFiles;
use model::fact::Fact;

/// Range below the stack pointer that is examined, in KiB.
const BELOW_KIB: u64 = 128;

/// Resident part of a stack below its stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackPages {
    pub looked_at_kib: u64,
    pub present_kib: u64,
}

/// Resident part of the stack in a mapping, below a stack pointer; `dir` has the process's files.
pub fn stack_pages(host: &MachineFiles, dir: &str, stack: &MemoryMapping, pointer: u64) -> Fact<StackPages> {
    pages_of(host, dir, stack, pointer, host::work::page_size() as u64)
}

/// Like [`stack_pages`], with the system's page size as `page`: a word of `pagemap` is for a page
/// of it, whatever larger pages a mapping has (`pagemap_read()` of fs/proc/task_mmu.c).
fn pages_of(
    host: &MachineFiles,
    dir: &str,
    stack: &MemoryMapping,
    pointer: u64,
    page: u64,
) -> Fact<StackPages> {
    let (first, last) = (pointer.saturating_sub(BELOW_KIB * 1024).max(stack.start) / page, pointer / page);
    let length = ((last - first.min(last) + 1) * 8) as usize;
    let bytes = host.unrecorded().read_part(&format!("{dir}/pagemap"), first * 8, length);
    bytes.parse(|bytes| {
        if bytes.len() == length {
            Ok(count(&bytes, page / 1024))
        } else {
            Err(format!("expected {length} bytes of pages, found {}", bytes.len()))
        }
    })
}

fn count(bytes: &[u8], page_kib: u64) -> StackPages {
    // Little and big-endian machines store the word in their native order.
    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes));
    let (all, there) = words.fold((0, 0), |(all, there), word| (all + 1, there + (word >> 63)));
    StackPages { looked_at_kib: all * page_kib, present_kib: there * page_kib }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use std::collections::BTreeMap;

    #[test]
    fn pages_below_the_pointer_are_counted() {
        let mut words = vec![0u64; 64];
        words[37..=40].fill(1 << 63);
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let answers = BTreeMap::from([("/proc/7/pagemap".to_owned(), Access::File(bytes))]);
        let host = MachineFiles::in_memory(answers);
        // Huge pages, which the file does not show.
        let stack =
            MemoryMapping { start: 2 << 12, end: 60 << 12, page_kib: 2048, ..MemoryMapping::default() };
        let found = |pointer: u64| pages_of(&host, "/proc/7", &stack, pointer, 4096);
        let pages = |looked_at_kib, present_kib| Fact::Known(StackPages { looked_at_kib, present_kib });
        assert_eq!(found((40 << 12) + 5), pages(33 * 4, 4 * 4));
        assert_eq!(found(4 << 12), pages(3 * 4, 0));
        assert!(matches!(found(100 << 12), Fact::Malformed(_)));
        assert_eq!(stack_pages(&host, "/proc/8", &stack, 4 << 12), Fact::Absent);
    }
}
