//! Heap of the static build, which returns no memory to the kernel while the process lives.
//!
//! Unmapping memory interrupts every CPU that runs a thread of the process (TLB shootdown), the
//! measured ones among them: just after each spike, when a hunt frees what it needed.
//! `rt::disable_heap_trimming` does the same for glibc; musl's own allocator has no such setting,
//! and dlmalloc by default returns memory beyond 2 MiB.
//!
//! Not for a child between fork(2) and execve(2) of a program with threads: the lock may be held by
//! a thread that the child does not have. onbeat starts no other process.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};

/// Source of pages from the kernel, which are never returned.
struct Pages;

// SAFETY: `alloc` hands out fresh anonymous memory of the requested size, page-aligned, and nothing
// ever takes it back.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at a place of the kernel's choice touches no other memory.
        match unsafe { mmap_anonymous(ptr::null_mut(), size, access, MapFlags::PRIVATE) } {
            Ok(memory) => (memory.cast(), size, 0),
            Err(_) => (ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

/// Heap of the process.
///
/// Its lock sleeps: a real-time thread spinning for it could keep the lock's owner from running.
pub struct Heap(Mutex<Dlmalloc<Pages>>);

impl Heap {
    /// Creates a heap without any memory from the kernel.
    #[allow(clippy::new_without_default)] // A default cannot be made at compile time.
    pub const fn new() -> Heap {
        Heap(Mutex::new(Dlmalloc::new_with_allocator(Pages)))
    }

    fn alone(&self) -> MutexGuard<'_, Dlmalloc<Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: dlmalloc keeps the contract of `GlobalAlloc` for sizes and alignments, and is used by one
// thread at a time.
unsafe impl GlobalAlloc for Heap {
    // SAFETY: the caller meets the requirements of `GlobalAlloc`.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: size and alignment are those of a valid layout.
        unsafe { self.alone().malloc(layout.size(), layout.align()) }
    }

    // SAFETY: the caller meets the requirements of `GlobalAlloc`.
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller returns memory that this allocator handed out with this layout.
        unsafe { self.alone().free(memory, layout.size(), layout.align()) };
    }

    // SAFETY: the caller meets the requirements of `GlobalAlloc`.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { self.alone().calloc(layout.size(), layout.align()) }
    }

    // SAFETY: the caller meets the requirements of `GlobalAlloc`.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`.
        unsafe { self.alone().realloc(memory, layout.size(), layout.align(), size) }
    }
}
