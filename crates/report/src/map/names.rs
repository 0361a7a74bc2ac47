//! Groups of names that differ in numbers only: `ktimers/0` to `ktimers/3` are `ktimers/N (4)`.

use std::collections::BTreeMap;

use model::sort::CompactSort;

/// Splits a name into the text around its numbers, and the numbers.
fn parts(name: &str) -> (String, Vec<String>) {
    let (mut shape, mut numbers, mut within) = (String::new(), Vec::<String>::new(), false);
    for c in name.chars() {
        match (c.is_ascii_digit(), numbers.last_mut()) {
            (true, Some(number)) if within => number.push(c),
            (true, _) => {
                numbers.push(c.to_string());
                shape.push('\0');
            }
            (false, _) => shape.push(c),
        }
        within = c.is_ascii_digit();
    }
    (shape, numbers)
}

/// First place of a kind, and the numbers of each name.
type Kind = (usize, Vec<Vec<String>>);

/// Common part of all names of the same kind.
pub fn kind_of(name: &str) -> String {
    parts(name).0
}

/// Joined name of one kind: the numbers that differ become `N`.
fn joined(kind: &str, all: &[Vec<String>]) -> String {
    let mut place = 0;
    let mut name = String::new();
    for c in kind.chars() {
        if c != '\0' {
            name.push(c);
            continue;
        }
        let mut numbers = all.iter().filter_map(|numbers| numbers.get(place));
        let first = numbers.next();
        let same = first.filter(|first| numbers.all(|number| number == *first));
        name.push_str(same.map_or("N", String::as_str));
        place += 1;
    }
    name
}

/// Names in their order, each kind once at its first place, with its count if it has several.
pub fn collapsed<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for (at, name) in names.into_iter().enumerate() {
        let (kind, numbers) = parts(name);
        kinds.entry(kind).or_insert_with(|| (at, Vec::new())).1.push(numbers);
    }
    let mut kinds: Vec<(String, Kind)> = kinds.into_iter().collect();
    kinds.compact_sort_by_key(|(_, (first, _))| *first);
    let entry = |(kind, (_, all)): &(String, Kind)| match all.len() {
        1 => joined(kind, all),
        several => format!("{} ({several})", joined(kind, all)),
    };
    kinds.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_differs_becomes_n() {
        let text_of = |names: &[&str]| collapsed(names.iter().copied()).join(" ");
        assert_eq!(text_of(&["ktimers/0", "acpi", "ktimers/1", "ktimers/12"]), "ktimers/N (3) acpi");
        assert_eq!(text_of(&["irq/9-nvme0q1", "irq/10-nvme0q2"]), "irq/N-nvme0qN (2)");
        assert_eq!(text_of(&["eth0-rx-0", "eth0-tx-0"]), "eth0-rx-0 eth0-tx-0");
        assert_eq!(text_of(&["acpi", "acpi", "rcu_sched"]), "acpi (2) rcu_sched");
        assert_eq!(text_of(&[]), "");
    }

    proptest! {
        #[test]
        fn no_name_is_lost(names in proptest::collection::vec("[a-c0-2/\0]{0,5}", 0..9)) {
            let entries = collapsed(names.iter().map(String::as_str));
            let count = |name: &String| name.rsplit_once(" (").and_then(|(_, n)| n.trim_end_matches(')').parse().ok());
            prop_assert_eq!(entries.iter().map(|name| count(name).unwrap_or(1)).sum::<usize>(), names.len());
        }
    }
}
