//! Just enough of ELF to tell a static binary: one that names no interpreter and no needed library.

const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;

/// Why a file is not a static 64-bit little-endian executable, if it is not one.
///
/// A static position-independent binary has a dynamic section too, for its own relocations; what it
/// must not have is an interpreter, or a library that the loader would have to find.
pub fn check_static(bytes: &[u8]) -> Result<(), String> {
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF file".to_string());
    }
    let headers = number(bytes, 32, 8)?;
    let (size, count) = (number(bytes, 54, 2)?, number(bytes, 56, 2)?);
    for index in 0..count {
        let at = headers + index * size;
        match number(bytes, at, 4)? {
            PT_INTERP => return Err("it needs the dynamic loader (PT_INTERP)".to_string()),
            PT_DYNAMIC => check_dynamic(bytes, number(bytes, at + 8, 8)?, number(bytes, at + 32, 8)?)?,
            _ => {}
        }
    }
    if count == 0 { Err("it has no program headers".to_string()) } else { Ok(()) }
}

fn check_dynamic(bytes: &[u8], offset: u64, size: u64) -> Result<(), String> {
    for entry in 0..size / 16 {
        match number(bytes, offset + entry * 16, 8)? {
            0 => break,
            DT_NEEDED => return Err("it needs a shared library (DT_NEEDED)".to_string()),
            _ => {}
        }
    }
    Ok(())
}

fn number(bytes: &[u8], at: u64, width: usize) -> Result<u64, String> {
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
    fn this_test_is_a_dynamic_binary() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let crt_static = cfg!(target_feature = "crt-static");
        assert_eq!(check_static(&own).is_ok(), crt_static);
    }
}
