//! Array shared by programs in the kernel and this process.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::call::{Attributes, Command, bpf_open, name_of};

/// BPF_MAP_TYPE_ARRAY and BPF_F_MMAPABLE (Linux 5.5).
const ARRAY: u32 = 2;
const MMAPABLE: u32 = 1 << 10;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
}

// SAFETY: no pointers.
unsafe impl Attributes for MapCreate {}

/// Array map: values of one size, by index.
pub struct ArrayMap {
    descriptor: OwnedFd,
    value_size: usize,
    entries: usize,
}

impl ArrayMap {
    /// Creates a map of zeros. `value_size` must be a multiple of 8, to which the kernel rounds.
    pub fn new(name: &str, value_size: usize, entries: usize) -> io::Result<ArrayMap> {
        assert!(value_size % 8 == 0, "values of whole words");
        let narrow = |size: usize| u32::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG));
        let mut attributes = MapCreate {
            kind: ARRAY,
            key_size: 4,
            value_size: narrow(value_size)?,
            max_entries: narrow(entries)?,
            flags: MMAPABLE,
            inner_map: 0,
            numa_node: 0,
            name: name_of(name),
        };
        let descriptor = bpf_open(Command::MapCreate, &mut attributes)?;
        Ok(ArrayMap { descriptor, value_size, entries })
    }

    /// Descriptor by which the instructions of a program name the map when it is loaded.
    pub fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Kernel memory of its values, in bytes, in whole pages.
    pub fn bytes(&self) -> usize {
        (self.value_size * self.entries).next_multiple_of(rustix::param::page_size())
    }

    /// Maps a range of values into this process. All pages of a view stay resident while it lives,
    /// so large maps are read in pieces.
    pub fn view(&self, entries: Range<usize>) -> io::Result<MapView> {
        assert!(entries.start < entries.end && entries.end <= self.entries, "entries of the map");
        let page = rustix::param::page_size();
        let begin = entries.start * self.value_size;
        let from = begin / page * page;
        let bytes = (entries.end * self.value_size).next_multiple_of(page) - from;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let place = std::ptr::null_mut();
        // SAFETY: the kernel chooses the address; the map holds that many bytes, in whole pages.
        let memory = unsafe {
            mmap(place, bytes, protection, MapFlags::SHARED, self.descriptor.as_fd(), from as u64)?
        };
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(MapView { memory, bytes, skipped: begin - from, entries, value_size: self.value_size })
    }

    /// Maps all values.
    pub fn whole(&self) -> io::Result<MapView> {
        self.view(0..self.entries)
    }
}

/// Mapped values of a map. Programs write to them at any time, so all access is atomic.
pub struct MapView {
    memory: NonNull<u8>,
    bytes: usize,
    /// Bytes before the first entry, down to the page boundary.
    skipped: usize,
    entries: Range<usize>,
    value_size: usize,
}

impl MapView {
    /// Indices of its entries.
    pub fn entries(&self) -> Range<usize> {
        self.entries.clone()
    }

    /// Four-byte word at an offset in a value.
    pub fn u32(&self, entry: usize, offset: i16) -> &AtomicU32 {
        &self.u32s(entry, offset, 1)[0]
    }

    /// Consecutive four-byte words at an offset in a value.
    pub fn u32s(&self, entry: usize, offset: i16, count: usize) -> &[AtomicU32] {
        let at = self.place(entry, offset, count * 4, 4);
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned; memory that
        // others write is read only through atomics.
        unsafe { std::slice::from_raw_parts(at.cast(), count) }
    }

    /// Eight-byte word at an offset in a value.
    pub fn u64(&self, entry: usize, offset: i16) -> &AtomicU64 {
        &self.u64s(entry, offset, 1)[0]
    }

    /// Consecutive eight-byte words at an offset in a value.
    pub fn u64s(&self, entry: usize, offset: i16, count: usize) -> &[AtomicU64] {
        let at = self.place(entry, offset, count * 8, 8);
        // SAFETY: as in `u32s`.
        unsafe { std::slice::from_raw_parts(at.cast(), count) }
    }

    fn place(&self, entry: usize, offset: i16, length: usize, alignment: usize) -> *const u8 {
        assert!(self.entries.contains(&entry), "an entry of this view");
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.value_size);
        assert!(inside && offset % alignment == 0, "aligned, and inside a value");
        let begin = self.skipped + (entry - self.entries.start) * self.value_size + offset;
        // SAFETY: inside the mapping, which holds all entries of the view.
        unsafe { self.memory.as_ptr().add(begin) }
    }
}

impl Drop for MapView {
    fn drop(&mut self) {
        // SAFETY: no reference outlives `self`.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: shared memory that is only read and written through atomics.
unsafe impl Send for MapView {}
