//! Memory mappings of a process.
//!
//! Source: `/proc/PID/smaps` in Documentation/filesystems/proc.rst; the flags in
//! `show_smap_vma_flags` of fs/proc/task_mmu.c.

/// Limit of mappings; 5,000 threads have two each.
const MAPPINGS_LIMIT: usize = 65_536;

/// Memory mapping, in pages of one kind and with one set of rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMapping {
    /// Addresses; 0 for the kernel's, which are hidden.
    pub start: u64,
    pub end: u64,
    /// Rights to read, write and execute.
    pub access: [bool; 3],
    /// Offset in its file.
    pub offset: u64,
    /// Name of its file without the folders, or the kernel's name: `[heap]`, `[stack]`; `""` for
    /// anonymous memory.
    pub name: String,
    pub size_kib: u64,
    /// Resident part.
    pub resident_kib: u64,
    pub swapped_kib: u64,
    /// Page size.
    pub page_kib: u64,
    /// The kernel's flags, two letters each: `lo` means locked.
    pub flags: Vec<String>,
}

impl MemoryMapping {
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// True if locking applies to it: `mlock_fixup()` skips device memory, memory that must not
    /// expand, and huge pages, which are never paged out; a mapping without rights has no pages.
    pub fn can_be_locked(&self) -> bool {
        let special = ["io", "pf", "de", "mm", "ht"].iter().any(|flag| self.has(flag));
        let kernels = ["[vdso]", "[vsyscall]", "[vvar]", "[vvar_vclock]"].contains(&self.name.as_str());
        !special && !kernels && self.access.contains(&true)
    }

    pub fn is_locked(&self) -> bool {
        self.has("lo")
    }
}

/// Mapping that contains an address.
pub fn mapping_at(mappings: &[MemoryMapping], address: u64) -> Option<&MemoryMapping> {
    mappings.iter().find(|mapping| mapping.start <= address && address < mapping.end)
}

/// An address as mapping and offset; `""` if no mapping contains it. In a file of a program the
/// offset is that of the loaded file, as `nm` and `addr2line` print it.
pub fn place_in(mappings: &[MemoryMapping], address: u64) -> String {
    let Some(mapping) = mapping_at(mappings, address) else { return String::new() };
    match file_of(mappings, mapping) {
        Some(file) => format!("{}+{:#x}", file.name, address - file.start.saturating_sub(file.offset)),
        None if mapping.name.is_empty() => format!("anonymous memory+{:#x}", address - mapping.start),
        None => format!("{}+{:#x}", mapping.name, address - mapping.start),
    }
}

/// First mapping of the file that a mapping belongs to: its own or, for anonymous memory right
/// behind a file's, that file, whose zeroed data is not in it.
pub fn file_of<'m>(all: &'m [MemoryMapping], mapping: &MemoryMapping) -> Option<&'m MemoryMapping> {
    let at = all.iter().position(|own| own.start == mapping.start)?;
    let before = at.checked_sub(1).map(|before| &all[before]);
    let behind = before.filter(|before| mapping.name.is_empty() && before.end == mapping.start);
    let owner = behind.filter(|before| before.access[1]).unwrap_or(&all[at]);
    let is_file = !owner.name.is_empty() && !owner.name.starts_with('[');
    let whole = all[..=at].iter().rev().skip_while(|own| own.name != owner.name);
    is_file.then(|| whole.take_while(|own| own.name == owner.name).last()).flatten()
}

/// Parses `/proc/PID/maps`: the same mappings without sizes and flags.
pub fn parse_maps(text: &str) -> Result<Vec<MemoryMapping>, String> {
    let found: Option<Vec<MemoryMapping>> = text.lines().take(MAPPINGS_LIMIT).map(head).collect();
    match found {
        Some(found) if !found.is_empty() => Ok(found),
        _ => Err("expected mappings as ADDRESS-ADDRESS RIGHTS OFFSET".to_owned()),
    }
}

/// Parses `/proc/PID/smaps`. A text without flags of mappings (before 3.8) is malformed, because
/// locked memory could not be recognized.
pub fn parse_smaps(text: &str) -> Result<Vec<MemoryMapping>, String> {
    let mut found: Vec<MemoryMapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = head(line) {
            if found.len() >= MAPPINGS_LIMIT {
                return Err(format!("expected at most {MAPPINGS_LIMIT} mappings"));
            }
            found.push(mapping);
            continue;
        }
        let Some((mapping, (key, value))) = found.last_mut().zip(line.split_once(':')) else {
            return Err("expected a mapping as ADDRESS-ADDRESS RIGHTS OFFSET".to_owned());
        };
        let kib = || value.split_whitespace().next().and_then(|word| word.parse().ok());
        let kib = || kib().ok_or_else(|| format!("expected a number of kB after '{key}:'"));
        match key {
            "Size" => mapping.size_kib = kib()?,
            "Rss" => mapping.resident_kib = kib()?,
            "KernelPageSize" => mapping.page_kib = kib()?,
            "Swap" => mapping.swapped_kib = kib()?,
            "VmFlags" => mapping.flags = value.split_whitespace().map(str::to_owned).collect(),
            _ => {}
        }
    }
    if found.is_empty() {
        Err("expected mappings, found none".to_owned())
    } else if found.iter().any(|mapping| mapping.flags.is_empty()) {
        Err("expected a line 'VmFlags:' for each mapping".to_owned())
    } else {
        Ok(found)
    }
}

/// The first line of a mapping: `55d0-55d8 r-xp 00001000 fe:01 131 /usr/bin/robot`.
fn head(line: &str) -> Option<MemoryMapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start();
        word
    };
    let (range, rights, offset) = (word(), word(), word());
    let (start, end) = range.split_once('-')?;
    let [read, write, execute, _] = *rights.as_bytes() else { return None };
    // Addresses of the vsyscall page are the kernel's, and are masked in `host`.
    let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
    let (_device, _inode) = (word(), word());
    let name = rest.trim().trim_end_matches(" (deleted)");
    Some(MemoryMapping {
        start: number(start),
        end: number(end),
        access: [read == b'r', write == b'w', execute == b'x'],
        offset: number(offset),
        name: short(name),
        ..MemoryMapping::default()
    })
}

/// Name of a file without its folders, which are private.
fn short(name: &str) -> String {
    let last = if name.starts_with('/') { name.rsplit('/').next().unwrap_or_default() } else { name };
    last.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
55d0c8a00000-55d0c8a01000 r-xp 00001000 fe:01 131 /usr/bin/my robot (deleted)
Size:                  4 kB
Rss:                   4 kB
VmFlags: rd ex mr mw me lo sd
7f0000000000-7f0000800000 rw-p 00000000 00:00 0
Size:               8192 kB
KernelPageSize:        4 kB
Rss:                  12 kB
Swap:                  8 kB
VmFlags: rd wr mr mw me ac sd
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
VmFlags: rd wr mr mw me gd ac
7fff0000-7fff1000 ---p 00000000 00:00 0
VmFlags: mr mw me
address-address --xp 00000000 00:00 0                  [vsyscall]
VmFlags: ex
";

    #[test]
    fn an_address_is_a_file_and_an_offset_in_it() {
        let text = "55d0c8a00000-55d0c8a01000 r--p 00000000 fe:01 131 /usr/bin/robot\n\
            55d0c8a01000-55d0c8a02000 rw-p 00001000 fe:01 131 /usr/bin/robot\n\
            55d0c8a02000-55d0c8a03000 rw-p 00000000 00:00 0\n\
            7f0000000000-7f0000800000 rw-p 00000000 00:00 0\n\
            7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]\n";
        let maps = parse_maps(text).unwrap();
        for (address, place) in [
            (0x55d0_c8a0_1010, "robot+0x1010"),
            (0x55d0_c8a0_2010, "robot+0x2010"),
            (0x7f00_0000_0040, "anonymous memory+0x40"),
            (0x7ffd_0000_0008, "[stack]+0x8"),
            (0x1000, ""),
        ] {
            assert_eq!(place_in(&maps, address), place);
        }
        assert!(parse_maps("").is_err() && parse_maps("nothing of it\n").is_err());
    }

    #[test]
    fn mappings_with_their_marks() {
        let found = parse_smaps(TEXT).unwrap();
        let named: Vec<&str> = found.iter().map(|mapping| mapping.name.as_str()).collect();
        assert_eq!(named, ["my robot", "", "[stack]", "", "[vsyscall]"]);
        assert_eq!(
            (found[1].size_kib, found[1].resident_kib, found[1].swapped_kib, found[1].is_locked()),
            (8192, 12, 8, false)
        );
        assert!(found[0].is_locked() && found[0].offset == 0x1000 && found[0].access[2]);
        let lockable: Vec<bool> = found.iter().map(MemoryMapping::can_be_locked).collect();
        assert_eq!(lockable, [true, true, true, false, false]);
        assert_eq!((found[1].page_kib, found[4].start), (4, 0));
    }

    #[test]
    fn a_text_without_marks_is_not_understood() {
        for text in ["", "Size: 4 kB\n", "10-20 rw-p 0 0:0 0\nSize: 4 kB\n", "10-20 rw-p 0 0:0 0\nSize: x\n"]
        {
            assert!(parse_smaps(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(text in "[0-9a-f:rwxp \\-\n/\\[\\]VmFlagsizeR]{0,300}") {
            let _ = parse_smaps(&text);
        }
    }
}
