//! Code of the running kernel, a few bytes at a time, through /proc/kcore: the instructions before
//! the one that was interrupted.
//!
//! Source: fs/proc/kcore.c; the layout is that of an ELF64 core file (elf(5)). Read only.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Length of the ELF header in bytes, with the position of the program headers.
const HEADER: usize = 64;
/// Length of a program header in bytes.
const ENTRY: usize = 56;
/// Limit of program headers; kernels have fewer than a hundred, unless memory is very fragmented.
const ENTRIES: usize = 4096;

/// Kernel memory, held open.
pub struct KernelText {
    file: File,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    length: u64,
}

impl KernelText {
    /// Opens it; refused without CAP_SYS_RAWIO and under lockdown, absent if the kernel was built
    /// without it.
    pub fn open() -> io::Result<KernelText> {
        let file = File::open("/proc/kcore")?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)?;
        let foreign = || io::Error::from(io::ErrorKind::InvalidData);
        let (at, count) = entries_of(&header).ok_or_else(foreign)?;
        let mut entries = vec![0; count * ENTRY];
        file.read_exact_at(&mut entries, at)?;
        Ok(KernelText { file, segments: segments_of(&entries) })
    }

    /// Fills `into` with the kernel's memory at that address.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let at = place_of(&self.segments, address, into.len() as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        self.file.read_exact_at(into, at)
    }
}

/// Offset and number of the program headers; none for anything but a core file of this machine.
fn entries_of(header: &[u8; HEADER]) -> Option<(u64, usize)> {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    // ELFCLASS64, byte order, ET_CORE.
    let ours = header.starts_with(b"\x7fELF\x02") && header[5] == order && short(header, 16)? == 4;
    let count = usize::from(short(header, 56)?);
    let fits = usize::from(short(header, 54)?) == ENTRY && (1..=ENTRIES).contains(&count);
    (ours && fits).then_some((long(header, 32)?, count))
}

/// Segments of memory (PT_LOAD).
fn segments_of(entries: &[u8]) -> Vec<Segment> {
    let segment = |entry: &[u8]| {
        let load = entry.get(..4)? == 1u32.to_ne_bytes();
        let segment =
            Segment { offset: long(entry, 8)?, address: long(entry, 16)?, length: long(entry, 32)? };
        load.then_some(segment)
    };
    entries.chunks_exact(ENTRY).filter_map(segment).collect()
}

/// Offset in the file of an address, if all of its bytes are in one segment.
fn place_of(segments: &[Segment], address: u64, length: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let within = address.checked_sub(segment.address)?;
        (within.checked_add(length)? <= segment.length).then(|| segment.offset.checked_add(within))?
    })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(&[
            0x7f,
            b'E',
            b'L',
            b'F',
            2,
            if cfg!(target_endian = "little") { 1 } else { 2 },
        ]);
        header[16..18].copy_from_slice(&4u16.to_ne_bytes());
        header[32..40].copy_from_slice(&64u64.to_ne_bytes());
        header[54..56].copy_from_slice(&56u16.to_ne_bytes());
        header[56..58].copy_from_slice(&2u16.to_ne_bytes());
        header
    }

    #[test]
    fn a_core_file_is_distinguished_from_others() {
        assert_eq!(entries_of(&header()), Some((64, 2)));
        for (at, value) in [(0, 0), (4, 1), (5, 0), (16, 2), (54, 1), (56, 0)] {
            let mut other = header();
            other[at] = value;
            assert_eq!(entries_of(&other), None, "{at}");
        }
    }

    #[test]
    fn an_address_is_found_in_its_segment_alone() {
        let mut entries = vec![0u8; 2 * ENTRY];
        entries[ENTRY..ENTRY + 4].copy_from_slice(&1u32.to_ne_bytes());
        for (at, value) in [(8, 0x3000u64), (16, 0xffff_ffff_8100_0000), (32, 0x1000)] {
            entries[ENTRY + at..ENTRY + at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let segments = segments_of(&entries);
        assert_eq!(segments.len(), 1);
        assert_eq!(place_of(&segments, 0xffff_ffff_8100_0010, 16), Some(0x3010));
        assert_eq!(place_of(&segments, 0xffff_ffff_8100_0ff8, 8), Some(0x3ff8));
        assert_eq!(place_of(&segments, 0xffff_ffff_8100_0ff9, 8), None);
        assert_eq!(place_of(&segments, 0xffff_ffff_80ff_ffff, 1), None);
    }

    proptest! {
        #[test]
        fn any_header_is_survived(bytes: [u8; 32], entries in proptest::collection::vec(any::<u8>(), 0..200), at: u64, length: u64) {
            let mut header = header();
            header[32..].copy_from_slice(&bytes);
            entries_of(&header);
            place_of(&segments_of(&entries), at, length);
        }
    }
}
