//! Words for values: short, bounded, one line, whatever the machine's texts held.

use crate::units::CpuSet;

/// More words than this are counted.
const FEW: usize = 6;

/// A word of the machine's, cut after 40 characters.
pub fn short(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut cut: String = text.chars().take(40).map(clean).collect();
    if text.chars().nth(40).is_some() {
        cut.push_str("...");
    }
    cut
}

/// A list of CPUs, cut after some 80 characters with the number of all of them.
pub fn list(cpus: &CpuSet) -> String {
    let text = cpus.to_string();
    match text.char_indices().rfind(|&(at, c)| c == ',' && at <= 80) {
        Some((at, _)) if text.len() > 80 => format!("{},... ({} CPUs)", &text[..at], cpus.len()),
        _ => text,
    }
}

/// The first few words with `, ` between them, and how many more there are.
pub fn few<T: AsRef<str>>(words: &[T]) -> String {
    let mut shown: Vec<String> = words.iter().take(FEW).map(|word| short(word.as_ref())).collect();
    if words.len() > FEW {
        shown.push(format!("{} more", words.len() - FEW));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(few(&["a", "b"]), "a, b");
        assert_eq!(few(&["x"; 9]), "x, x, x, x, x, x, 3 more");
        assert_eq!(short("a\nb"), "a?b");
        assert_eq!(short(&"y".repeat(41)), format!("{}...", "y".repeat(40)));
        assert_eq!(few::<&str>(&[]), "");
    }

    #[test]
    fn long_lists_are_cut_between_cpus() {
        let every_other = CpuSet::parse("0-199:1/2").unwrap();
        let text = list(&every_other);
        assert!(text.starts_with("0,2,4") && text.ends_with(",... (100 CPUs)") && text.len() < 100, "{text}");
        assert_eq!(list(&CpuSet::parse("2-3,7").unwrap()), "2-3,7");
    }

    proptest! {
        #[test]
        fn values_are_bounded(words in proptest::collection::vec("\\PC{0,80}|\n", 0..20)) {
            let text = few(&words);
            prop_assert!(text.chars().count() <= 300 && !text.contains('\n'));
        }
    }
}
