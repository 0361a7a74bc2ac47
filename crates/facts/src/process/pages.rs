//! Which pages of a stack are in memory.
//!
//! Source: Documentation/admin-guide/mm/pagemap.rst: eight bytes for each page, of which bit 63
//! says whether it is there. The sizes in `smaps` would not do: what lies next to a stack may be of
//! one mapping with it.

use super::mappings::MemoryMapping;
use host::MachineFiles;
use model::fact::Fact;

/// How far below the stack pointer it is looked, in KiB.
const BELOW_KIB: u64 = 128;

/// Of a stack below its stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackPages {
    pub looked_at_kib: u64,
    pub present_kib: u64,
}

/// What is there of the stack that a mapping is, below a stack pointer; `dir` has the process's
/// files.
pub fn stack_pages(host: &MachineFiles, dir: &str, stack: &MemoryMapping, pointer: u64) -> Fact<StackPages> {
    pages_of(host, dir, stack, pointer, host::work::page_size() as u64)
}

/// A word of `pagemap` is for a page of the system's size, whatever larger pages a mapping has
/// (`pagemap_read()` of fs/proc/task_mmu.c).
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
    bytes.parse(|bytes| match bytes.len() == length {
        true => Ok(count(&bytes, page / 1024)),
        false => Err(format!("expected {length} bytes of pages, found {}", bytes.len())),
    })
}

fn count(bytes: &[u8], page_kib: u64) -> StackPages {
    // Little and big-endian machines have the bit in their own order.
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
        // In huge pages, of which the file knows nothing.
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
