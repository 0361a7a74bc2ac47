//! Changes of a step, grouped by what is done and to what: one line for all interrupts.

use crate::words::clean;

/// Changes, `KEY: OLD -> NEW` each; adjacent ones that do the same to items of one kind are merged:
/// `irq:1, 4, 8: 0-3 -> 0-1`.
pub fn together(changes: &[String]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>, &str)> = Vec::new();
    for change in changes {
        let (key, done) = change.split_once(": ").unwrap_or((change, ""));
        let (kind, which) = key.split_once(':').unwrap_or(("", key));
        match all.last_mut().filter(|last| (last.0, last.2) == (kind, done)) {
            Some(last) => last.1.push(which),
            None => all.push((kind, vec![which], done)),
        }
    }
    let group_text = |(kind, which, done): &(&str, Vec<&str>, &str)| {
        let kind = if kind.is_empty() { String::new() } else { format!("{kind}:") };
        let done = if done.is_empty() { String::new() } else { format!(": {done}") };
        clean(&format!("{kind}{}{done}", which.join(", ")))
    };
    all.iter().map(group_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_alike_is_told_once() {
        let texts = |changes: &[&str]| {
            together(&changes.iter().map(|change| (*change).to_owned()).collect::<Vec<_>>())
        };
        let alike = ["irq:1: 0-3 -> 0-1", "irq:4: 0-3 -> 0-1", "irq:34: 2 -> 0-1"];
        assert_eq!(texts(&alike), ["irq:1, 4: 0-3 -> 0-1", "irq:34: 2 -> 0-1"]);
        let other = ["irq:1: 0 -> 1", "sysctl:vm.swappiness: 0 -> 1", "task:7/8:mask: 2 -> 0-1 (a: b)"];
        assert_eq!(texts(&other), other);
        assert_eq!(texts(&["x", "", "a:", ": b"]), ["x, ", "a:", ": b"]);
        assert!(texts(&[]).is_empty());
    }
}
