//! Texts that cannot be believed: cut short, another kernel's, or contradicting each other. None of them makes a rule pass.
//!
//! Over the whole corpus each text is damaged in turn; a rule that failed or could not tell must not pass for that. What is
//! damaged so that nothing could tell it from a whole text is counted, and named here.

#[cfg(test)]
mod tests {
    use crate::host::record::Seen;
    use crate::rules::Knob;
    use crate::rules::audit::finding;
    use crate::rules::corpus::tests::{machine, machines};
    use crate::rules::fixture::Machine;
    use crate::rules::judgement::Verdict;
    use crate::rules::knobs;
    use std::collections::{BTreeMap, BTreeSet};

    /// What each rule says of a machine.
    fn verdicts(machine: &Machine) -> BTreeMap<&'static str, Verdict> {
        let (survey, intent) = machine.survey();
        let judged = |knob: &&'static Knob| (knob.id, finding(knob, &survey, &intent).verdict);
        knobs::ALL.iter().map(|knob| judged(knob)).collect()
    }

    /// The rules that pass after a change and did not before.
    fn gained(before: &BTreeMap<&'static str, Verdict>, after: &BTreeMap<&'static str, Verdict>) -> Vec<&'static str> {
        let gains = |id: &&&'static str| {
            after[**id] == Verdict::Pass && matches!(before[**id], Verdict::Fail | Verdict::Unknown)
        };
        before.keys().filter(gains).copied().collect()
    }

    /// A path with `#` for its numbers: texts of one kind are read in one way.
    fn kind(path: &str) -> String {
        let mut kind = String::new();
        for letter in path.chars() {
            match letter.is_ascii_digit() {
                true if kind.ends_with('#') => {}
                true => kind.push('#'),
                false => kind.push(letter),
            }
        }
        kind
    }

    /// The first text of each kind that a machine has, and the last, which another rule may look at.
    fn texts(machine: &Machine) -> Vec<(String, Vec<u8>)> {
        let mut kinds: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        for (path, seen) in &machine.answers {
            if let Seen::File(bytes) = seen {
                kinds.entry(kind(path)).or_default().push((path.clone(), bytes.clone()));
            }
        }
        let ends = |texts: Vec<(String, Vec<u8>)>| [texts.first().cloned(), texts.last().cloned()];
        let found: BTreeSet<_> = kinds.into_values().flat_map(ends).flatten().collect();
        found.into_iter().collect()
    }

    /// Where a text is cut: nothing left, in its first word, in the middle, before the last letter, without its end, and at the
    /// end of some line.
    fn cuts(bytes: &[u8]) -> BTreeSet<usize> {
        let line_ends: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        let lines = [line_ends.first(), line_ends.get(line_ends.len() / 2)].into_iter().flatten().copied();
        let inner = [0, 1, 120, bytes.len() / 2, bytes.len().saturating_sub(2), bytes.len().saturating_sub(1)];
        inner.into_iter().chain(lines).filter(|&at| at < bytes.len()).collect()
    }

    #[test]
    fn no_rule_passes_because_a_text_is_cut_short() {
        let (mut tried, mut wrong) = (0, BTreeMap::<String, usize>::new());
        for dir in machines() {
            let machine = machine(&dir);
            let before = verdicts(&machine);
            for (path, bytes) in texts(&machine) {
                for at in cuts(&bytes) {
                    let mut cut = machine.clone();
                    cut.answers.insert(path.clone(), Seen::File(bytes[..at].to_vec()));
                    tried += 1;
                    for rule in gained(&before, &verdicts(&cut)) {
                        let of_lines = bytes[..at].last() == Some(&b'\n');
                        *wrong.entry(format!("{rule} {} {}", kind(&path), if of_lines { "line" } else { "" })).or_default() += 1;
                    }
                }
            }
            println!("{} {tried}", dir.display());
        }
        println!("{tried} cut texts, {} passes from them", wrong.values().sum::<usize>());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
