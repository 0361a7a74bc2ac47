//! Texts for long lists: findings name the first few and count the rest.

use std::collections::{BTreeMap, BTreeSet};

use model::units::{Cpu, CpuSet, named_cpus};

/// Limit of a displayed list in characters; the value of a finding has at most some 300.
const MAX_CHARS: usize = 160;

/// Names, each once, in their order, and the number of further ones: `acpi, eth0 and 3 more`.
///
/// Control characters become `?`: even the name of an interface can contain them.
pub fn truncate_list<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let mut known = BTreeSet::new();
    let (mut list, mut more, mut used) = (String::new(), 0, 0);
    for name in names {
        let name: String = name.as_ref().chars().map(printable).collect();
        if !known.insert(name.clone()) {
            continue;
        }
        used += name.chars().count() + 2;
        if used > MAX_CHARS {
            more += 1;
        } else if list.is_empty() {
            list = name;
        } else {
            list = format!("{list}, {name}");
        }
    }
    match (list.is_empty(), more) {
        (_, 0) => list,
        (true, _) => format!("{more} with {}", if more == 1 { "a long name" } else { "long names" }),
        _ => format!("{list} and {more} more"),
    }
}

/// As [`truncate_list`], for words that may each be long.
pub fn truncate_words<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    truncate_list(words.into_iter().map(|word| truncate(word.as_ref())))
}

/// As [`truncate_words`], for phrases of several words.
pub fn truncate_phrases<T: AsRef<str>>(phrases: impl IntoIterator<Item = T>) -> String {
    truncate_list(phrases.into_iter().map(|phrase| cut(phrase.as_ref(), 120)))
}

/// A word from the machine, truncated to 40 characters.
pub fn truncate(text: &str) -> String {
    cut(text, 40)
}

fn cut(text: &str, length: usize) -> String {
    let mut cut: String = text.chars().take(length).map(printable).collect();
    if text.chars().nth(length).is_some() {
        cut.push_str("...");
    }
    cut
}

fn printable(c: char) -> char {
    if model::text::steers(c) { '?' } else { c }
}

/// A list of CPUs, truncated after some 80 characters and with the number of CPUs.
fn short_ranges(cpus: &CpuSet) -> String {
    let text = cpus.to_string();
    match text.char_indices().rfind(|&(at, c)| c == ',' && at <= 80) {
        Some((at, _)) if text.len() > 80 => format!("{},... ({} CPUs)", &text[..at], cpus.len()),
        _ => text,
    }
}

/// CPUs as words of a finding: `CPUs 2-3`, or the first of them and their number.
pub fn cpu_list(cpus: &CpuSet) -> String {
    named_cpus(short_ranges(cpus))
}

/// Values with their CPUs: `ondemand on CPU 2; performance on CPU 3`; in order of appearance, at
/// most three, and the number of further ones.
pub fn group_by_value(values: impl IntoIterator<Item = (Cpu, String)>) -> String {
    let (mut order, mut groups) = (Vec::new(), BTreeMap::<String, CpuSet>::new());
    for (cpu, words) in values {
        let words: String = words.chars().take(40).map(printable).collect();
        let group = groups.entry(words.clone()).or_default();
        if group.is_empty() {
            order.push(words);
        }
        group.0.insert(cpu);
    }
    let phrases: Vec<String> =
        order.iter().take(3).map(|words| format!("{words} on {}", cpu_list(&groups[words]))).collect();
    match order.len() - phrases.len() {
        0 => phrases.join("; "),
        more => format!("{}; and {more} more", phrases.join("; ")),
    }
}

/// CPUs as a mask in the kernel's format: groups of 32 in hexadecimal digits, the highest first.
pub fn cpu_mask(cpus: &CpuSet) -> String {
    let groups = cpus.iter().map(|cpu| cpu.0 / 32 + 1).max().unwrap_or(1);
    let group = |number: u32| {
        let of_group = cpus.iter().filter(|cpu| cpu.0 / 32 == number);
        of_group.fold(0u32, |bits, cpu| bits | 1 << (cpu.0 % 32))
    };
    let mut text = format!("{:x}", group(groups - 1));
    for number in (0..groups - 1).rev() {
        text += &format!(",{:08x}", group(number));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::line::parse_mask;
    use proptest::prelude::*;

    #[test]
    fn the_first_are_named_and_the_rest_counted() {
        let names = |list: &[&str]| truncate_list(list);
        assert_eq!(names(&[]), "");
        assert_eq!(names(&["acpi", "eth0", "acpi"]), "acpi, eth0");
        let long = "x".repeat(400);
        assert_eq!(names(&["acpi", &long, "eth0"]), "acpi and 2 more");
        assert_eq!(names(&[&long]), "1 with a long name");
        assert_eq!(names(&["a\x1b[2Jb\n"]), "a?[2Jb?");
        assert_eq!(cpu_mask(&CpuSet::parse("0-1,33").unwrap()), "2,00000003");
    }

    #[test]
    fn long_words_and_lists_are_cut() {
        assert_eq!(truncate_words(["a", "b"]), "a, b");
        assert_eq!(truncate_words::<&str>([]), "");
        assert_eq!(truncate("a\nb"), "a?b");
        assert_eq!(truncate(&"y".repeat(41)), format!("{}...", "y".repeat(40)));
        let scattered = cpu_list(&CpuSet::parse("0-511:1/2").unwrap());
        assert!(
            scattered.starts_with("CPUs 0,2,4,") && scattered.ends_with(",... (256 CPUs)"),
            "{scattered}"
        );
        assert!(scattered.len() < 110);
        assert_eq!(cpu_list(&CpuSet::parse("2-3,7").unwrap()), "CPUs 2-3,7");
    }

    #[test]
    fn a_value_of_several_cpus_is_named_once() {
        let long = group_by_value((0..512).map(|n| (Cpu(n), format!("{n} {}", "x".repeat(4000)))));
        assert!(long.len() < 300 && long.ends_with("; and 509 more"), "{long}");
        assert_eq!(
            group_by_value([(Cpu(1), "a".into()), (Cpu(2), "b".into()), (Cpu(3), "a".into())]),
            "a on CPUs 1,3; b on CPU 2"
        );
    }

    proptest! {
        #[test]
        fn masks_are_read_back(cpus in proptest::collection::btree_set(0u32..300, 0..20)) {
            let cpus: CpuSet = cpus.into_iter().map(Cpu).collect();
            prop_assert_eq!(parse_mask(&cpu_mask(&cpus)), Ok(cpus));
        }

        #[test]
        fn lists_are_bounded(names in proptest::collection::vec("[a-z]{0,200}", 0..60)) {
            prop_assert!(truncate_list(names).chars().count() < 200);
        }
    }
}
