//! Memory of a run: faulted in before it is needed, locked while samples count, and released
//! afterwards.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use rustix::ioctl::{self, Updater, opcode};
use rustix::mm::Advice;

/// Touches the stack below the caller, so that its pages are resident before the loop needs them.
#[inline(never)]
pub fn prefault_stack() {
    let mut pages = [0u8; 32 << 10];
    std::hint::black_box(&mut pages);
}

/// Locks the pages of a value into memory; they stay locked until they are unmapped.
///
/// A value without bytes has no pages: for an empty range next to address 0 the kernel answers
/// ENOMEM.
pub fn lock_pages<T: ?Sized>(value: &T) -> io::Result<()> {
    if mem::size_of_val(value) == 0 {
        return Ok(());
    }
    // SAFETY: the range is that of a live value; locking changes no content.
    Ok(unsafe { rustix::mm::mlock(ptr::from_ref(value) as *mut _, mem::size_of_val(value)) }?)
}

/// Locks pages that are resident now, and other pages of existing mappings once they are touched.
///
/// Not MCL_FUTURE, which would populate every later mapping completely, thread stacks included
/// (mlockall(2)).
pub fn lock_resident_pages() -> io::Result<()> {
    use rustix::mm::MlockAllFlags;
    Ok(rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?)
}

/// Makes the kernel map the program's pages one by one, on demand.
///
/// By default it maps up to sixteen around each fault (`do_fault_around` in mm/memory.c), and a run
/// that uses 1 MiB of the program has 5 resident. Ranges in which userfaultfd(2) tracks writes are
/// excluded; since Linux 6.7 that needs no reader (`UFFD_FEATURE_WP_ASYNC`), and nothing is ever
/// written here. An older kernel refuses, without effect.
///
/// Returns false if it is refused.
pub fn map_page_by_page() -> bool {
    #[repr(C)]
    struct Api {
        version: u64,
        features: u64,
        calls: u64,
    }
    #[repr(C)]
    struct Register {
        start: u64,
        length: u64,
        mode: u64,
        calls: u64,
    }
    const FAULTS_OF_USERS: libc::c_int = 1;
    const WITHOUT_READER: u64 = 1 << 15;
    const WRITES: u64 = 1 << 1;
    const API: u32 = opcode::read_write::<Api>(0xaa, 0x3f);
    const REGISTER: u32 = opcode::read_write::<Register>(0xaa, 0);
    // SAFETY: the call takes flags and returns a descriptor, or -1.
    let number = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | FAULTS_OF_USERS) };
    let Ok(number @ 0..) = libc::c_int::try_from(number) else { return false };
    // SAFETY: the descriptor is new and has no other owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    let program = program();
    let page = rustix::param::page_size();
    let start = program.start / page * page;
    let mut api = Api { version: 0xaa, features: WITHOUT_READER, calls: 0 };
    let length = (program.end.next_multiple_of(page) - start) as u64;
    let mut register = Register { start: start as u64, length, mode: WRITES, calls: 0 };
    // SAFETY: both calls read and write the structure that they are given, whose layout is that of
    // linux/userfaultfd.h. Tracking writes to a range changes no content.
    let registered = unsafe {
        ioctl::ioctl(&descriptor, Updater::<API, Api>::new(&mut api))
            .and_then(|()| ioctl::ioctl(&descriptor, Updater::<REGISTER, Register>::new(&mut register)))
    };
    if registered.is_ok() {
        // Closing it would end the tracking.
        mem::forget(descriptor);
    }
    registered.is_ok()
}

/// Maps the code around functions, as far as the kernel maps it around a fault by default, so that
/// their first call in the loop takes no page fault.
pub fn prefault_code(functions: &[*const ()]) {
    const AROUND: usize = 64 << 10;
    let program = program();
    for function in functions {
        let start = (*function as usize / AROUND * AROUND).max(program.start);
        let end = (*function as usize / AROUND * AROUND + AROUND).min(program.end);
        let page = rustix::param::page_size();
        let start = start / page * page;
        // SAFETY: populating a range changes no content. Before Linux 5.14 it is refused.
        let _ = unsafe {
            rustix::mm::madvise(start as *mut _, end.saturating_sub(start), Advice::LinuxPopulateRead)
        };
    }
}

/// Address range of the program's code and constants.
fn program() -> Range<usize> {
    // SAFETY: every ELF linker defines these two (end(3)); only their addresses are taken.
    unsafe extern "C" {
        #[link_name = "__executable_start"]
        static START: u8;
        #[link_name = "etext"]
        static END: u8;
    }
    &raw const START as usize..&raw const END as usize
}

/// Unlocks all memory, and releases the pages of the program's code and constants, which return
/// from the page cache on demand: code that only an earlier part of the run needed takes no memory
/// for the rest.
///
/// Unmapping interrupts the CPUs that run threads of the process, so never call it while samples
/// count. A debug build keeps its code, in which a debugger may have set breakpoints.
pub fn release_code_pages() {
    if cfg!(debug_assertions) {
        return;
    }
    let Range { start, end } = program();
    // Locked pages are not released (madvise(2)).
    let _ = rustix::mm::munlockall();
    // Read at each call: a breakpoint or probe may have been set since (uprobes write to a private
    // copy of the page).
    let smaps = std::fs::read("/proc/self/smaps").unwrap_or_default();
    if !is_unmodified_file_mapping(&String::from_utf8_lossy(&smaps), start, end) {
        return;
    }
    // SAFETY: the range is mapped from a file, not writable, and none of its pages was written:
    // each comes back as it was.
    let _ = unsafe { rustix::mm::madvise(start as *mut _, end - start, Advice::LinuxDontNeed) };
}

/// True if everything between two addresses is mapped from files, read-only, and was never written,
/// by /proc/PID/smaps (proc_pid_smaps(5)): a written page counts as anonymous. Pure.
fn is_unmodified_file_mapping(smaps: &str, start: usize, end: usize) -> bool {
    let mut reached = start;
    let mut within = false;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(number) = first.strip_suffix(':').map(|_| words.next()) {
            if within && first == "Anonymous:" && number != Some("0") {
                return false;
            }
            continue;
        }
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let Some((from, to)) = first.split_once('-').and_then(|(a, b)| number(a).zip(number(b))) else {
            return false;
        };
        within = from < end && to > start;
        if !within {
            continue;
        }
        let (access, inode) = (words.next().unwrap_or_default(), words.nth(2).unwrap_or_default());
        if from > reached || access.contains('w') || !access.ends_with('p') || inode == "0" {
            return false;
        }
        reached = to;
    }
    start < end && reached >= end
}

/// Makes the allocator return no memory to the kernel: unmapping interrupts every CPU that runs a
/// thread of the process (TLB shootdown), the measured ones among them.
pub fn disable_heap_trimming() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in [
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        (libc::M_MMAP_THRESHOLD, libc::c_int::MAX),
        // Some versions refuse so large a threshold; then disable mapped blocks altogether.
        (libc::M_MMAP_MAX, 0),
        (libc::M_ARENA_MAX, 1),
    ] {
        // SAFETY: the function takes two integers and keeps the allocator's own lock.
        unsafe { libc::mallopt(parameter, value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_bytes_needs_no_lock() {
        lock_pages::<[u64]>(&[]).expect("nothing to lock");
        lock_pages(&()).expect("nothing to lock");
    }

    #[test]
    fn a_fault_maps_one_page_of_the_program() {
        const AROUND: usize = 64 << 10;
        if !map_page_by_page() {
            return; // Linux before 6.7
        }
        let (program, page) = (program(), rustix::param::page_size());
        let window = (program.start + (program.end - program.start) / 2).next_multiple_of(AROUND);
        // SAFETY: code that is not written comes back from the file as it was.
        unsafe { rustix::mm::madvise(window as *mut _, AROUND, Advice::LinuxDontNeed) }.unwrap();
        // SAFETY: within the program's code.
        std::hint::black_box(unsafe { ptr::read_volatile(window as *const u8) });
        // Words of 8 bytes per page, with the highest bit set if the page is mapped
        // (Documentation/admin-guide/mm/pagemap.rst).
        let pagemap = std::fs::File::open("/proc/self/pagemap").unwrap();
        let mut words = vec![0; AROUND / page * 8];
        std::os::unix::fs::FileExt::read_exact_at(&pagemap, &mut words, (window / page * 8) as u64).unwrap();
        let mapped = words.chunks(8).filter(|word| word[7] & 0x80 != 0).count();
        assert!((1..AROUND / page).contains(&mapped), "{mapped} pages");
        prefault_code(&[window as *const ()]);
        std::os::unix::fs::FileExt::read_exact_at(&pagemap, &mut words, (window / page * 8) as u64).unwrap();
        assert!(words.chunks(8).all(|word| word[7] & 0x80 != 0));
    }

    #[test]
    fn only_code_that_was_never_written_is_released() {
        let smaps = |access: &str, inode: u32, anonymous: u32| {
            format!(
                "1000-2000 r--p 00000000 08:01 7 /bin/onbeat\nRss: 4 kB\nAnonymous: 0 kB\nVmFlags: rd mr\n\
                 2000-9000 {access} 00001000 08:01 {inode} /bin/onbeat\nAnonymous: {anonymous} kB\n\
                 9000-a000 rw-p 00008000 08:01 7 /bin/onbeat\nAnonymous: 4 kB\n"
            )
        };
        let good = smaps("r-xp", 7, 0);
        assert!(
            is_unmodified_file_mapping(&good, 0x1000, 0x8123)
                && is_unmodified_file_mapping(&good, 0x2000, 0x9000)
        );
        for (access, inode, anonymous) in [("rwxp", 7, 0), ("r-xs", 7, 0), ("r-xp", 0, 0), ("r-xp", 7, 4)] {
            assert!(!is_unmodified_file_mapping(&smaps(access, inode, anonymous), 0x1000, 0x8123));
        }
        assert!(!is_unmodified_file_mapping(&good, 0x1000, 0x9001), "written data");
        assert!(!is_unmodified_file_mapping(&good, 0xf00, 0x2000), "a gap");
        assert!(
            !is_unmodified_file_mapping("", 0x1000, 0x2000) && !is_unmodified_file_mapping("nonsense", 1, 2)
        );
    }
}
