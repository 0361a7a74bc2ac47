//! Contradictions between two rules that request opposite changes on one machine: by their changes
//! as data, and by the text of the others.

use super::audit::audit;
use super::change::{Change, ThreadId};
use super::intent::Intent;
use super::judgement::AuditVerdict;
use super::remedy::{Alternative, Remedy};
use facts::survey::Survey;
use std::collections::BTreeSet;

/// Request of a finding about one place: a file, an option, or a parameter of the kernel's command
/// line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    place: String,
    /// Value; `""` for any.
    value: String,
    /// True if it should be present, false if absent.
    there: bool,
}

impl Wish {
    fn of(place: impl Into<String>, value: impl Into<String>, there: bool) -> Wish {
        Wish { place: place.into(), value: value.into(), there }
    }

    fn parameter(word: &str, there: bool) -> Wish {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        // A value for the reader to fill in stands for any.
        let open = value.starts_with(|c: char| c.is_uppercase());
        Wish::of(name.replace('-', "_"), if open { "" } else { value }, there)
    }

    /// True if the two exclude each other.
    fn denies(&self, other: &Wish) -> bool {
        let same = self.value == other.value || self.value.is_empty() || other.value.is_empty();
        self.place == other.place
            && match (self.there, other.there) {
                (true, true) => !same,
                (false, false) => false,
                _ => same,
            }
    }
}

/// Pairs of failing rules of which one requests in any way the opposite of the first alternative
/// of the other.
pub fn contradictions(survey: &Survey, intent: &Intent) -> Vec<String> {
    let failing =
        audit(survey, intent).findings.into_iter().filter(|found| found.verdict == AuditVerdict::Fail);
    let wishes: Vec<(&str, String, [BTreeSet<Wish>; 2])> = failing
        .map(|found| (found.rule, found.fix.clone(), [1, usize::MAX].map(|ways| wishes(&found.remedy, ways))))
        .collect();
    let deny = |ours: &BTreeSet<Wish>, theirs: &BTreeSet<Wish>| {
        ours.iter().any(|wish| theirs.iter().any(|their| wish.denies(their)))
    };
    let mut clashes = Vec::new();
    for (at, (rule, fix, [first, all])) in wishes.iter().enumerate() {
        for (other, their_fix, [their_first, their_all]) in &wishes[at + 1..] {
            if deny(all, their_first) || deny(first, their_all) {
                clashes.push(format!("{rule} against {other}:\n    {fix}\n    {their_fix}"));
            }
        }
    }
    clashes
}

/// Requests of the first alternatives of each part, with their remarks.
fn wishes(remedy: &Remedy, ways: usize) -> BTreeSet<Wish> {
    let ways = remedy.parts.iter().flat_map(|part| part.alternatives.iter().take(ways));
    let of_way = |way: &Alternative| {
        let changes = way.changes.iter().chain(&way.persist).flat_map(of_change);
        changes.chain(of_words(&way.note)).collect::<Vec<_>>()
    };
    ways.flat_map(of_way).collect()
}

fn of_change(change: &Change) -> Vec<Wish> {
    match change {
        Change::CmdlineAdd { word } => vec![Wish::parameter(word, true)],
        Change::CmdlineRemove { word } => vec![Wish::parameter(word, false)],
        Change::Kconfig { option, value } => vec![Wish::of(format!("CONFIG_{option}"), value, true)],
        Change::Disable { program, .. } => vec![Wish::of(format!("program {program}"), "", false)],
        Change::Advice { words, .. } => of_words(words),
        Change::Partition { .. } => vec![Wish::of("an isolated partition", "", true)],
        Change::Affinity { threads, cpus, .. } => {
            let of =
                |thread: &ThreadId| Wish::of(format!("affinity of {}", thread.tid), cpus.to_string(), true);
            threads.iter().map(of).collect()
        }
        Change::Policy { threads, fifo, .. } => {
            let of =
                |thread: &ThreadId| Wish::of(format!("policy of {}", thread.tid), format!("{fifo:?}"), true);
            threads.iter().map(of).collect()
        }
        Change::Sysctl { .. } | Change::Write { .. } => {
            change.writes().into_iter().map(|(path, value)| Wish::of(path, value, true)).collect()
        }
    }
}

/// Parameters and files in the words of advice, up to the first alternative.
///
/// `remove`, `take`, `without` and `out of` want the words after them absent, `add`, `with`, `by`
/// and `to` want them present. A word with a colon is what is spoken of, and so is what comes after
/// `follow` and `leave`.
fn of_words(words: &str) -> Vec<Wish> {
    let first = words.split("; ").next().unwrap_or(words).split(", or ").next().unwrap_or(words);
    let (mut found, mut there, mut last) = (Vec::new(), true, "");
    for word in first.split_whitespace() {
        let is_subject = word.ends_with(':');
        let word = word.trim_end_matches([',', ':', ')']).trim_start_matches('(');
        match word {
            "follow" | "leave" => break,
            "remove" | "take" | "without" | "out" | "replace" => there = false,
            "add" | "with" | "by" | "to" | "echo" => there = true,
            _ => {}
        }
        let name = word.split('=').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
        if word.contains('=') && !is_subject && !name.is_empty() && name.chars().all(plain) {
            found.push(Wish::parameter(word, there));
        } else if let Some(path) = word.strip_prefix('>').filter(|path| path.starts_with('/')) {
            found.push(Wish::of(path, last, true));
        }
        last = word;
    }
    found
}

#[test]
fn opposites_are_distinguished_from_compatible_changes() {
    let clash = |a: &str, b: &str| {
        let wishes = |words: &str| of_words(words);
        wishes(a).iter().any(|wish| wishes(b).iter().any(|other| wish.denies(other)))
    };
    let out = "remove the audited CPUs from nohz_full= on the kernel's command line";
    assert!(clash(out, "boot with nohz_full= and the audited CPUs"));
    assert!(clash(out, "add CPU 3 to nohz_full=, or put the task on CPU 2"));
    assert!(clash(
        "add nohz=off to the kernel's command line",
        "remove nohz=off from the kernel's command line"
    ));
    assert!(clash("add nohz=off to it", "replace skew_tick=0 by nohz=on"));
    assert!(clash("echo 0 >/proc/sys/a", "for CPU 2, echo 1 >/proc/sys/a"));
    assert!(clash("remove isolcpus= from it", "replace isolcpus=2 by isolcpus=domain,2"));
    assert!(!clash("leave CPU 0 out of isolcpus=", "replace isolcpus=2 by isolcpus=domain,2"));
    assert!(!clash("echo 0 >/proc/sys/a", "echo 0 >/proc/sys/a"));
    assert!(!clash("add efi=noruntime to it", "remove efi=runtime from it"));
    assert!(!clash("boot with rcu_nocbs=LIST of these", "boot with rcu_nocbs=2-3"));
    assert!(!clash("remove idle=poll from it", "take idle=poll out of it"));
}
