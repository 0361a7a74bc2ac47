//! Entries of the Boot Loader Specification, and the one that systemd-boot starts by default.
//!
//! Sources: loader.conf(5), "default"; `boot_entry_compare()` of systemd's src/boot/boot.c for the
//! order of the menu; the UAPI Group's Version Format Specification for the order of versions.

use std::cmp::{Ordering, Reverse};

use super::boot_cmdline::{BootVariables, first_word, parse_loader_entry};

/// An entry with parameters for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootEntry {
    pub path: String,
    /// Name of the file without `.conf` and the count of boots, in lower case.
    pub id: String,
    /// Parameters.
    pub line: String,
    /// True if each counted boot of it failed.
    is_spent: bool,
    /// Its `sort-key`, `machine-id` and `version`.
    keys: [Option<String>; 3],
}

/// Parses the entry in a file; none if it has no parameters.
pub fn parse_boot_entry(path: &str, text: &str, variables: &BootVariables) -> Option<BootEntry> {
    let name = path.rsplit('/').next()?.strip_suffix(".conf")?;
    // NAME+LEFT or NAME+LEFT-DONE.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (id, left) = match name.rsplit_once('+') {
        Some((id, count)) if count.split('-').count() < 3 && count.split('-').all(is_number) => {
            (id, count.split('-').next())
        }
        _ => (name, None),
    };
    let key = |name: &str| {
        let mut lines = text.lines().map(|line| first_word(line.trim()));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    Some(BootEntry {
        path: path.to_owned(),
        id: id.to_ascii_lowercase(),
        line: parse_loader_entry(text, variables)?,
        is_spent: left.is_some_and(|left| left.bytes().all(|digit| digit == b'0')),
        keys: [key("sort-key"), key("machine-id"), key("version")],
    })
}

/// The pattern of `default` in a `loader.conf`, `""` without one; none for an entry that the
/// firmware remembers (`@saved`).
pub fn parse_default_entry(text: &str) -> Option<String> {
    let mut lines = text.lines().map(|line| first_word(line.trim()));
    let pattern = lines.rfind(|(key, _)| *key == "default").map_or("", |(_, name)| name);
    let pattern = pattern.to_ascii_lowercase();
    let pattern = pattern.trim_end_matches(".conf");
    (!pattern.starts_with('@')).then(|| pattern.to_owned())
}

/// The entry that is started: the first of the menu that matches, else the first of all.
pub fn default_entry<'a>(entries: &'a [BootEntry], pattern: &str) -> Option<&'a BootEntry> {
    let first = |is: &dyn Fn(&BootEntry) -> bool| entries.iter().filter(|entry| is(entry)).min_by(menu_order);
    first(&|entry| matches(pattern.as_bytes(), entry.id.as_bytes())).or_else(|| first(&|_| true))
}

fn menu_order(one: &&BootEntry, other: &&BootEntry) -> Ordering {
    let [key, machine, version] = &one.keys;
    let [other_key, other_machine, other_version] = &other.keys;
    let newest = |one: &str, other: &str| compare_versions(one, other).reverse();
    let by_key = || match (key, other_key) {
        (Some(key), Some(other_key)) => {
            key.cmp(other_key).then_with(|| machine.cmp(other_machine)).then_with(|| {
                newest(version.as_deref().unwrap_or_default(), other_version.as_deref().unwrap_or_default())
            })
        }
        _ => key.is_none().cmp(&other_key.is_none()),
    };
    one.is_spent.cmp(&other.is_spent).then_with(by_key).then_with(|| newest(&one.id, &other.id))
}

/// Longest pattern or name that is matched: that of a file.
const NAME_LIMIT: usize = 256;

/// True if a pattern with `*`, `?` and `[...]` matches a name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if pattern.len().max(name.len()) > NAME_LIMIT {
        return false;
    }
    // After a mismatch the last `*` takes one byte more.
    let (mut at, mut rest, mut star) = (0, name, None);
    loop {
        match (pattern.get(at), rest) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, rest));
                continue;
            }
            (None, []) => return true,
            (Some(_), [byte, after @ ..]) => {
                if let Some(length) = one_byte(&pattern[at..], *byte) {
                    (at, rest) = (at + length, after);
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((after, [_, fewer @ ..])) => (at, rest, star) = (after, fewer, Some((after, fewer))),
            _ => return false,
        }
    }
}

/// Length of the first element of a pattern if it matches a byte.
fn one_byte(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', inner @ ..] => {
            let end = inner.iter().skip(1).position(|c| *c == b']')? + 1;
            let (set, negated) = match &inner[..end] {
                [b'!' | b'^', set @ ..] => (set, true),
                set => (set, false),
            };
            let mut ranges = set.windows(3).filter(|range| range[1] == b'-');
            let found = set.contains(&byte) || ranges.any(|range| (range[0]..=range[2]).contains(&byte));
            (found != negated).then_some(end + 2)
        }
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [plain, ..] => (*plain == byte).then_some(1),
        [] => None,
    }
}

/// Marks between the parts of a version, the one that sorts first in front; the end of the text
/// sorts after `~`.
const MARKS: &[u8] = b"~-^.";

/// Compares versions: numbers by value, letters by code, and what is neither separates.
fn compare_versions(one: &str, other: &str) -> Ordering {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || MARKS.contains(byte);
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        let skip = |text: &[u8]| text.iter().take_while(|byte| !is_part(byte)).count();
        (one, other) = (&one[skip(one)..], &other[skip(other)..]);
        for mark in [b'~', 0, b'-', b'^', b'.'] {
            let has = |text: &[u8]| if mark == 0 { text.is_empty() } else { text.first() == Some(&mark) };
            match (has(one), has(other)) {
                (true, true) if mark == 0 => return Ordering::Equal,
                (true, true) => (one, other) = (&one[1..], &other[1..]),
                (false, false) => {}
                // The one with the mark is older.
                (is_older, _) => return Reverse(is_older).cmp(&Reverse(!is_older)),
            }
        }
        let of = |text: &[u8], is: fn(&u8) -> bool| text.iter().take_while(|byte| is(byte)).count();
        let is_number = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
        let order = if is_number(one) || is_number(other) {
            let number = |text: &[u8]| text[..of(text, u8::is_ascii_digit)].to_vec();
            // No number is older than any.
            let value = |digits: Vec<u8>| {
                let zeros = of(&digits, |digit| *digit == b'0');
                (!digits.is_empty(), digits.len() - zeros, digits[zeros..].to_vec())
            };
            let order = value(number(one)).cmp(&value(number(other)));
            (one, other) = (&one[of(one, u8::is_ascii_digit)..], &other[of(other, u8::is_ascii_digit)..]);
            order
        } else {
            let (mine, theirs) = (of(one, u8::is_ascii_alphabetic), of(other, u8::is_ascii_alphabetic));
            let order = one[..mine].cmp(&other[..theirs]);
            (one, other) = (&one[mine..], &other[theirs..]);
            order
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_are_ordered_as_the_specification_has_it() {
        let ascending = [
            "122.1~rc1",
            "122.1",
            "123~rc1-1",
            "123",
            "123-a",
            "123-a.1",
            "123-1",
            "123-1.1",
            "123^post1",
            "123.a-1",
            "123.1-1",
            "123a-1",
            "124-1",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compare_versions(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare_versions(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(compare_versions("6.12.117-rt", "6.12.9-rt"), Ordering::Greater);
        assert_eq!(compare_versions("6.012_1", "6.12+1"), Ordering::Equal);
    }

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is_match) in [
            ("0123-*", "0123-6.12.9", true),
            ("*-6.1?.*", "0123-6.12.9", true),
            ("*-6.1?.*", "0123-6.1.9", false),
            ("arch-[!a-y]*", "arch-zen", true),
            ("arch-[a-y]*", "arch-zen", false),
            ("[]x]", "]", true),
            ("a\\*", "a*", true),
            ("", "", true),
            ("", "a", false),
            ("[a", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn the_newest_match_is_started() {
        let entry = |name: &str, keys: &str| {
            let text = format!("options {name}\n{keys}");
            parse_boot_entry(&format!("/boot/loader/entries/{name}.conf"), &text, &BootVariables::new())
        };
        let started = |names: &[(&str, &str)], pattern: &str| {
            let all: Vec<BootEntry> = names.iter().filter_map(|(name, keys)| entry(name, keys)).collect();
            default_entry(&all, pattern).map_or("none".to_owned(), |entry| entry.line.clone())
        };
        let three = [("m-6.12.9", ""), ("m-6.12.117", ""), ("n-7.3", "")];
        assert_eq!(started(&three, "m-*"), "m-6.12.117");
        assert_eq!(started(&three, "m-6.12.9"), "m-6.12.9");
        assert_eq!(started(&three, "M-*".to_ascii_lowercase().as_str()), "m-6.12.117");
        // What matches nothing leaves the first of the menu.
        assert_eq!(started(&three, "x"), "n-7.3");
        assert_eq!(started(&[], "x"), "none");
        let counted = [("m-6.12.9+3", ""), ("m-6.12.117+0-3", "")];
        assert_eq!(started(&counted, "m-*"), "m-6.12.9+3");
        let keyed = [("z", "sort-key b\nversion 9"), ("a", "sort-key a\nversion 6.9"), ("y", "")];
        assert_eq!(started(&keyed, "*"), "a");
        let versions = [("b", "sort-key a\nversion 6.9"), ("a", "sort-key a\nversion 6.12")];
        assert_eq!(started(&versions, "*"), "a");
    }

    #[test]
    fn the_default_is_a_pattern_or_what_the_firmware_remembers() {
        let default = |text: &str| parse_default_entry(text);
        assert_eq!(default("timeout 3\ndefault Arch-*.conf\n").as_deref(), Some("arch-*"));
        assert_eq!(default("timeout 3\n").as_deref(), Some(""));
        assert_eq!(default("default @saved\n"), None);
    }

    proptest! {
        #[test]
        fn matching_and_ordering_are_total(
            a in "[*?a\\[\\]!\\\\~.^0-9+é-]{0,12}",
            b in "[*?a\\[\\]!\\\\~.^0-9+é-]{0,12}",
        ) {
            let _ = matches(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
        }
    }
}
