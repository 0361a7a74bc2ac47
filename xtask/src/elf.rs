//! Minimal ELF support: to verify static binaries, to strip them, and to list their functions.

use crate::tools::Result;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const DT_NEEDED: u64 = 1;
const SHT_SYMTAB: u64 = 2;
const STT_FUNC: u64 = 2;

/// Offsets in the header: of the sections' offset, and of their count and the index of their names.
const SECTIONS: u64 = 40;
const SECTION_COUNT: u64 = 60;

/// Fails unless a file is a static 64-bit little-endian executable.
///
/// A static position-independent binary has a dynamic section too, for its own relocations; it must
/// not have an interpreter, or a library for the loader to find.
pub fn check_static(bytes: &[u8]) -> Result<()> {
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF file".to_string());
    }
    let segments = segments(bytes)?.all(bytes)?;
    for segment in &segments {
        match segment.kind {
            PT_INTERP => return Err("it needs the dynamic loader (PT_INTERP)".to_string()),
            PT_DYNAMIC => check_dynamic(bytes, segment.offset, segment.length)?,
            _ => {}
        }
    }
    if segments.is_empty() { Err("it has no program headers".to_string()) } else { Ok(()) }
}

fn check_dynamic(bytes: &[u8], offset: u64, size: u64) -> Result<()> {
    for entry in 0..size / 16 {
        match number(bytes, offset + entry * 16, 8)? {
            0 => break,
            DT_NEEDED => return Err("it needs a shared library (DT_NEEDED)".to_string()),
            _ => {}
        }
    }
    Ok(())
}

/// The part of the file that the program needs. Parts for tools only are removed: symbols, debug
/// information and the table of sections; and the tables for unwinding, if they are the last of
/// their segment and nothing refers to them (no PT_GNU_EH_FRAME).
pub fn stripped(bytes: &[u8]) -> Result<Vec<u8>> {
    check_static(bytes)?;
    let segments = segments(bytes)?;
    let table = segments.at + segments.size * segments.count;
    let end =
        segments.all(bytes)?.iter().map(|segment| segment.offset + segment.length).fold(table, u64::max);
    let mut stripped = bytes.get(..place(end)?).ok_or("the file is cut short")?.to_vec();
    if let Some((from, length)) = unwinding_tables(bytes)? {
        cut_out(&mut stripped, from, length)?;
    }
    put(&mut stripped, SECTIONS, 8, 0)?;
    put(&mut stripped, SECTION_COUNT, 4, 0)?;
    Ok(stripped)
}

/// Bytes that the kernel maps from the file.
pub fn loaded(bytes: &[u8]) -> Result<u64> {
    let loaded = segments(bytes)?.all(bytes)?.into_iter().filter(|segment| segment.kind == PT_LOAD);
    Ok(loaded.map(|segment| segment.length).sum())
}

/// Cuts out the end of a segment; later segments are moved by whole pages, so that each is mapped
/// at its address. The first one keeps its length, so that there is no hole between them: its new
/// contents there are never read.
fn cut_out(bytes: &mut Vec<u8>, from: u64, length: u64) -> Result<()> {
    let segments = segments(bytes)?;
    let all = segments.all(bytes)?;
    let loaded = || all.iter().filter(|segment| segment.kind == PT_LOAD);
    let Some(next) = loaded().map(|segment| segment.offset).filter(|&offset| offset >= from + length).min()
    else {
        return Ok(());
    };
    let page = loaded().map(|segment| segment.align).max().unwrap_or(1).max(1);
    let moved = (next - from) / page * page;
    for segment in &all {
        if segment.offset >= next {
            put(bytes, segment.at + 8, 8, segment.offset - moved)?;
        }
    }
    bytes.drain(place(from)?..place(from + moved)?);
    Ok(())
}

/// The place and the bytes of the tables for unwinding, if they can be cut out.
fn unwinding_tables(bytes: &[u8]) -> Result<Option<(u64, u64)>> {
    let all = segments(bytes)?.all(bytes)?;
    let sections = number(bytes, SECTIONS, 8)?;
    let size = number(bytes, 58, 2)?;
    let names = number(bytes, sections + number(bytes, 62, 2)? * size + 24, 8)?;
    for at in (0..number(bytes, SECTION_COUNT, 2)?).map(|index| sections + index * size) {
        if text(bytes, names + number(bytes, at, 4)?)? != ".eh_frame" {
            continue;
        }
        let (from, length) = (number(bytes, at + 24, 8)?, number(bytes, at + 32, 8)?);
        let is_last = |segment: &Segment| {
            segment.kind == PT_LOAD
                && segment.offset <= from
                && segment.offset + segment.length == from + length
        };
        let is_found = all.iter().any(|segment| segment.kind == PT_GNU_EH_FRAME);
        return Ok((all.iter().any(is_last) && !is_found).then_some((from, length)));
    }
    Ok(None)
}

/// The table of program headers.
struct Segments {
    at: u64,
    size: u64,
    count: u64,
}

/// One program header.
struct Segment {
    at: u64,
    kind: u64,
    offset: u64,
    length: u64,
    align: u64,
}

fn segments(bytes: &[u8]) -> Result<Segments> {
    Ok(Segments { at: number(bytes, 32, 8)?, size: number(bytes, 54, 2)?, count: number(bytes, 56, 2)? })
}

impl Segments {
    fn all(&self, bytes: &[u8]) -> Result<Vec<Segment>> {
        let segment = |index: u64| {
            let at = self.at + index * self.size;
            let field = |offset| number(bytes, at + offset, 8);
            let kind = number(bytes, at, 4)?;
            Ok(Segment { at, kind, offset: field(8)?, length: field(32)?, align: field(48)? })
        };
        (0..self.count).map(segment).collect()
    }
}

fn put(bytes: &mut [u8], at: u64, width: usize, value: u64) -> Result<()> {
    let field = place(at).ok().and_then(|at| bytes.get_mut(at..at.checked_add(width)?));
    field.ok_or("the file is cut short")?.copy_from_slice(&value.to_le_bytes()[..width]);
    Ok(())
}

fn place(at: u64) -> Result<usize> {
    usize::try_from(at).map_err(|_| "the file is cut short".to_string())
}

/// Name, address and bytes of each function in the table of symbols.
pub fn functions(bytes: &[u8]) -> Result<Vec<(&str, u64, u64)>> {
    let (sections, size) = (number(bytes, SECTIONS, 8)?, number(bytes, 58, 2)?);
    let section = |index: u64| sections + index * size;
    let mut functions = Vec::new();
    for table in (0..number(bytes, SECTION_COUNT, 2)?).map(section) {
        if number(bytes, table + 4, 4)? != SHT_SYMTAB {
            continue;
        }
        let (from, length) = (number(bytes, table + 24, 8)?, number(bytes, table + 32, 8)?);
        let names = number(bytes, section(number(bytes, table + 40, 4)?) + 24, 8)?;
        for symbol in (from..from + length).step_by(24) {
            let bytes_of = number(bytes, symbol + 16, 8)?;
            if number(bytes, symbol + 4, 1)? & 15 == STT_FUNC && bytes_of > 0 {
                let name = text(bytes, names + number(bytes, symbol, 4)?)?;
                functions.push((name, number(bytes, symbol + 8, 8)?, bytes_of));
            }
        }
    }
    Ok(functions)
}

fn text(bytes: &[u8], at: u64) -> Result<&str> {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).ok_or("the file is cut short")?;
    let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    std::str::from_utf8(name).map_err(|error| error.to_string())
}

fn number(bytes: &[u8], at: u64, width: usize) -> Result<u64> {
    let cut = || "the file is cut short".to_string();
    let at = usize::try_from(at).map_err(|_| cut())?;
    let slice = bytes.get(at..at.checked_add(width).ok_or_else(cut)?).ok_or_else(cut)?;
    Ok(slice.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one program header of this kind; a dynamic section with one entry follows.
    fn elf(kind: u32, tag: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 + 32];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes[72] = 120;
        bytes[96] = 32;
        bytes[120..128].copy_from_slice(&tag.to_le_bytes());
        bytes
    }

    #[test]
    fn static_binaries_pass_and_dynamic_ones_do_not() {
        assert_eq!(check_static(&elf(1, 0)), Ok(()));
        assert_eq!(check_static(&elf(2, 7)), Ok(()));
        assert!(check_static(&elf(3, 0)).unwrap_err().contains("PT_INTERP"));
        assert!(check_static(&elf(2, 1)).unwrap_err().contains("DT_NEEDED"));
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(check_static(b"#!/bin/sh\n").is_err());
        assert!(check_static(&elf(3, 0)[..62]).unwrap_err().contains("cut short"));
        let mut none = elf(1, 0);
        none[56] = 0;
        assert!(check_static(&none).is_err());
    }

    #[test]
    fn what_is_not_loaded_is_cut_off() {
        let mut whole = elf(2, 0);
        whole.extend([7; 100]);
        assert_eq!(stripped(&whole), Ok(elf(2, 0)));
        assert_eq!((loaded(&whole), loaded(&elf(1, 0))), (Ok(0), Ok(32)));
        assert!(stripped(&whole[..140]).unwrap_err().contains("cut short"));
    }

    #[test]
    fn segments_behind_a_cut_move_by_whole_pages() {
        let mut whole = vec![0; 0x4000];
        whole[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let fields = [(32, 64), (54, 56), (56, 2)];
        // From 0x200 to 0x2f00, of which 0x1100 to 0x2f00 are to go; from 0x2f80 to 0x3000.
        let headers = [(64, 1), (72, 0x200), (96, 0x2d00), (112, 0x1000)];
        let next = [(120, 1), (128, 0x2f80), (152, 0x80), (168, 0x1000)];
        for (at, value) in fields {
            put(&mut whole, at, 2, value).unwrap();
        }
        for (at, value) in headers.into_iter().chain(next) {
            put(&mut whole, at, 8, value).unwrap();
        }
        whole[0x2f80] = 7;
        cut_out(&mut whole, 0x1100, 0x1e00).unwrap();
        assert_eq!((whole.len(), whole[0x1f80]), (0x3000, 7));
        assert_eq!((number(&whole, 72, 8), number(&whole, 96, 8)), (Ok(0x200), Ok(0x2d00)));
        assert_eq!(number(&whole, 128, 8), Ok(0x1f80));
    }

    #[test]
    fn functions_have_names_and_sizes() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let functions = functions(&own).unwrap();
        let this = functions.iter().find(|(name, ..)| name.contains("functions_have_names_and_sizes"));
        assert!(this.is_some_and(|&(_, at, bytes)| at > 0 && bytes > 0));
    }

    #[test]
    fn this_test_is_a_dynamic_binary() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let crt_static = cfg!(target_feature = "crt-static");
        assert_eq!(check_static(&own).is_ok(), crt_static);
    }
}
