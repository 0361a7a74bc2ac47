//! Lists of CPUs as tuned's functions accept and return them.

use std::collections::BTreeSet;

/// Limit of CPU numbers.
const CPU_LIMIT: u32 = 1 << 16;

/// Limit of CPUs named in a list, repetitions included, so that its expansion is bounded.
const NAMED_LIMIT: usize = 1 << 20;

/// CPUs of a list: ranges, masks in hexadecimal with `0x`, whose groups end with an empty part, and
/// `^N` or `!N` for excluded ones. Invalid lists count as empty, as in tuned; none if the list is
/// too long.
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

/// Parses `N` or `N-M`; the outer none is for too large numbers, the inner for an invalid range.
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

/// CPUs of a mask, whose groups may be separated by commas; empty if it is invalid.
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

/// Text with the numbers of all CPUs.
pub fn listed(cpus: &BTreeSet<u32>) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Text with ranges.
pub fn packed(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus.iter().copied() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let parts = ranges.iter().map(
        |(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        },
    );
    parts.collect::<Vec<_>>().join(",")
}

/// Text as a mask in groups of eight digits, without omissions.
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
