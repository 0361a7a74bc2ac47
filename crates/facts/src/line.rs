//! Single values: the many files of `/proc/sys` and `/sys` that hold one word, number or list of
//! CPUs.
//!
//! Source: "sysfs - attributes" in the kernel's Documentation/filesystems/sysfs.rst.

use model::text::several;
use model::units::{CPU_LIMIT, Cpu, CpuSet};

/// Limit of a single value in bytes; a longer text is something else.
const LINE_LIMIT: usize = 4096;

/// Parses a file of one line, which may be empty, such as a string that a firmware does not set.
pub fn parse_line(text: &str) -> Result<String, String> {
    // Strings of a device tree end in NUL instead of a newline.
    let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    if line.len() > LINE_LIMIT {
        return Err(format!("expected one line, found {}", several(line.len() as u64, "byte", "bytes")));
    }
    match line.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("expected one line, found the control character {:#04x}", c as u32)),
        None => Ok(line.to_owned()),
    }
}

/// Parses a file of one word; it may become part of a path, so it holds neither space nor slash.
pub fn parse_word(text: &str) -> Result<String, String> {
    let line = parse_line(text)?;
    let fine = !line.is_empty() && !line.contains(|c: char| c.is_whitespace() || c == '/');
    if fine { Ok(line) } else { Err(format!("expected one word, found '{}'", excerpt(&line))) }
}

/// Parses a file of words with blanks between them.
pub fn parse_words(text: &str) -> Result<Vec<String>, String> {
    Ok(parse_line(text)?.split_whitespace().map(str::to_owned).collect())
}

/// Parses a file of one number, which may be negative.
pub fn parse_i64(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("expected a number, found '{}'", excerpt(text.trim())))
}

/// Parses a file of one number that is not negative.
pub fn parse_u64(text: &str) -> Result<u64, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("expected a number of at least 0, found '{}'", excerpt(text.trim())))
}

/// Parses a file with a list of CPUs.
///
/// A kernel prints the null pointer of a mask that was never allocated: `(null)` in `nohz_full`
/// means no CPU.
pub fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    if text.trim() == "(null)" {
        return Ok(CpuSet::default());
    }
    CpuSet::parse(text).map_err(|error| excerpt(&error))
}

/// Parses a file with a list of CPUs that cannot be empty: an empty one was truncated.
pub fn parse_some_cpus(text: &str) -> Result<CpuSet, String> {
    let cpus = parse_cpus(text)?;
    if cpus.is_empty() { Err("expected a list of CPUs, found none".to_owned()) } else { Ok(cpus) }
}

/// Parses a file with a mask of CPUs: groups of 32 in hexadecimal digits, the highest numbers
/// first.
pub fn parse_mask(text: &str) -> Result<CpuSet, String> {
    let expected = || format!("expected a mask such as ffffffff,00000003, found '{}'", excerpt(text.trim()));
    let groups: Vec<&str> = text.trim().split(',').collect();
    if groups.len() > CPU_LIMIT as usize / 32 {
        return Err(format!(
            "expected a mask of at most {CPU_LIMIT} CPUs, found {} groups of 32",
            groups.len()
        ));
    }
    let mut set = CpuSet::default();
    for (group, first) in groups.into_iter().rev().zip((0..).step_by(32)) {
        let digits = (1..=8).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = if digits {
            u32::from_str_radix(group, 16).map_err(|_| expected())?
        } else {
            return Err(expected());
        };
        set.0.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| Cpu(first + bit)));
    }
    Ok(set)
}

/// Parses the strings of a device tree's property, each ended by NUL.
pub fn parse_strings(text: &str) -> Result<Vec<String>, String> {
    if text.len() > LINE_LIMIT {
        return Err(format!(
            "expected a list of names, found {}",
            several(text.len() as u64, "byte", "bytes")
        ));
    }
    text.split('\0').filter(|part| !part.trim().is_empty()).map(parse_line).collect()
}

/// Unsigned decimal number of ASCII digits only; `None` for anything else, including numbers that
/// are too large.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Beginning of a text for a message, at most 80 characters and without control characters.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn single_values() {
        assert_eq!(parse_line("Raspberry Pi 4 Model B\0"), Ok("Raspberry Pi 4 Model B".into()));
        assert_eq!(parse_line("\n"), Ok("".into()));
        assert!(parse_line("a\x1b[2Jb").is_err());
        assert_eq!(parse_word("6.1.0-rt\n"), Ok("6.1.0-rt".into()));
        for bad in ["", "two words", "../../etc/shadow"] {
            assert!(parse_word(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_i64("-1\n"), Ok(-1));
        assert!(parse_u64("-1\n").is_err());
        assert_eq!(parse_cpus("  (null)\n"), Ok(CpuSet::default()));
        assert_eq!(parse_cpus("2-3\n").map(|cpus| cpus.to_string()), Ok("2-3".into()));
        assert_eq!(
            parse_strings("brcm,bcm2711\0linux,x\0"),
            Ok(vec!["brcm,bcm2711".into(), "linux,x".into()])
        );
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!((number(b"18446744073709551616"), number(b""), number(b"-1")), (None, None, None));
    }

    #[test]
    fn masks_of_cpus() {
        for (text, expected) in [
            ("f\n", "0-3"),
            ("00000000\n", ""),
            ("ffffffff,00000003", "0-1,32-63"),
            ("8,00000000,80000001\n", "0,31,67"),
        ] {
            assert_eq!(parse_mask(text).map(|cpus| cpus.to_string()).as_deref(), Ok(expected));
        }
        let widest = vec!["80000000"; 256].join(",");
        assert_eq!(parse_mask(&widest).map(|cpus| (cpus.len(), cpus.contains(Cpu(8191)))), Ok((256, true)));
        let wider = format!("{widest},0");
        for bad in ["", "0x3", "1ffffffff", "f,,f", "+f", "0-3", &wider] {
            assert!(parse_mask(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn masks_are_bounded(text in "([0-9a-f]{0,9},?){0,300}") {
            if let Ok(cpus) = parse_mask(&text) {
                prop_assert!(cpus.iter().all(|cpu| cpu.0 < CPU_LIMIT));
            }
        }

        #[test]
        fn parsers_are_total(text in "[\\PC\n\0]{0,60}") {
            let _ = parse_mask(&text);
            let _ = (parse_line(&text), parse_words(&text), parse_strings(&text), parse_cpus(&text));
            let _ = (parse_i64(&text), parse_u64(&text), number(text.as_bytes()));
            if let Ok(word) = parse_word(&text) {
                prop_assert!(!word.contains('/') && !word.is_empty());
            }
        }
    }
}
