//! Words for values: short, bounded, one line, whatever the machine's texts held.

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

    proptest! {
        #[test]
        fn values_are_bounded(words in proptest::collection::vec("\\PC{0,80}|\n", 0..20)) {
            let text = few(&words);
            prop_assert!(text.chars().count() <= 300 && !text.contains('\n'));
        }
    }
}
