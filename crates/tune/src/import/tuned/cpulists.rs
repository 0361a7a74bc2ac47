//! Lists of CPUs as tuned's functions take and give them.

use std::collections::BTreeSet;

/// More CPUs than any machine has.
const CPU_LIMIT: u32 = 1 << 16;

/// A list may name a CPU more than once; one that does it all the time is made to take time.
const NAMED_LIMIT: usize = 1 << 20;

/// The CPUs of a list: ranges, masks in hexadecimal with `0x`, whose groups an empty part ends,
/// and `^N` or `!N` for those that are taken out. What is not a list is the empty one, as for
/// tuned; none where it is longer than any.
pub fn unpacked(text: &str) -> Option<BTreeSet<u32>> {
    let text = text.trim_matches(['\'', '"']);
    let (mut found, mut out, mut mask) = (BTreeSet::new(), BTreeSet::new(), None::<String>);
    let mut left = NAMED_LIMIT;
    let is_mask = |part: &str| part.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    for part in text.split(',').chain([""]) {
        match &mut mask {
            Some(digits) if part.is_empty() => {
                found.extend(of_mask(digits)?);
                mask = None;
            }
            Some(digits) => digits.push_str(part),
            None if is_mask(part) => mask = Some(part.to_owned()),
            None if part.is_empty() => {}
            None => {
                let (cpus, set) = match part.strip_prefix(['^', '!']) {
                    Some(part) => (part, &mut out),
                    None => (part, &mut found),
                };
                match range(cpus)? {
                    Some(cpus) => {
                        left = left.checked_sub(cpus.clone().count().max(1))?;
                        set.extend(cpus);
                    }
                    None => return Some(BTreeSet::new()),
                }
            }
        }
    }
    Some(found.difference(&out).copied().collect())
}

/// `N` or `N-M`; the outer none where it is longer than any, the inner where it is not a range.
fn range(text: &str) -> Option<Option<std::ops::RangeInclusive<u32>>> {
    let mut ends = text.split('-').map(|end| end.trim().parse::<u64>());
    let (Some(Ok(first)), last) = (ends.next(), ends.next()) else { return Some(None) };
    let last = match last {
        None => first,
        Some(Ok(last)) => last,
        Some(Err(_)) => return Some(None),
    };
    let (first, last) = (u32::try_from(first).ok()?, u32::try_from(last).ok()?);
    (first < CPU_LIMIT && last < CPU_LIMIT).then_some(Some(first..=last))
}

/// The CPUs of a mask, whose groups commas may part; empty where it is not a mask.
pub fn of_mask(text: &str) -> Option<BTreeSet<u32>> {
    let text: String = text.trim().chars().filter(|c| *c != ',').collect();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(&text);
    if digits.len() > CPU_LIMIT as usize / 4 {
        return None;
    }
    let mut cpus = BTreeSet::new();
    for (first, c) in (0..).step_by(4).zip(digits.chars().rev()) {
        let Some(bits) = c.to_digit(16) else { return Some(BTreeSet::new()) };
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit));
    }
    Some(cpus)
}

/// One after the other.
pub fn listed(cpus: &BTreeSet<u32>) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// With ranges.
pub fn packed(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus.iter().copied() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let shown = ranges.iter().map(
        |(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        },
    );
    shown.collect::<Vec<_>>().join(",")
}

/// As a mask in groups of eight digits, all of them written.
pub fn mask(cpus: &BTreeSet<u32>) -> String {
    let groups = cpus.last().map_or(1, |last| last / 32 + 1);
    let mut words = vec![0_u32; groups as usize];
    for cpu in cpus {
        if let Some(word) = words.get_mut((cpu / 32) as usize) {
            *word |= 1 << (cpu % 32);
        }
    }
    words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}
