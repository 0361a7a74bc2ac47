//! Files that show one choice of several, such as `always [madvise] never` and `none voluntary
//! (full)`.
//!
//! Source: Documentation/admin-guide/mm/transhuge.rst, Documentation/block/switching-sched.rst and,
//! for round brackets, kernel/sched/debug.c.

use super::line::{excerpt, parse_words};

/// A choice and its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Word in brackets.
    pub selected: String,
    /// All words in their order, including the selected one.
    pub offered: Vec<String>,
}

/// Parses such a file. A single word is selected without brackets: a block device without a choice
/// of schedulers shows `none`.
pub fn parse_choice(text: &str) -> Result<Choice, String> {
    let words = parse_words(text)?;
    let expected = || format!("expected one word of several in brackets, found '{}'", excerpt(text.trim()));
    let marked: Vec<&str> = words.iter().filter_map(|word| inside(word)).collect();
    let selected = match (marked.as_slice(), words.as_slice()) {
        ([one], _) => (*one).to_owned(),
        ([], [alone]) => alone.clone(),
        _ => return Err(expected()),
    };
    let offered: Vec<String> = words.iter().map(|word| inside(word).unwrap_or(word).to_owned()).collect();
    if offered.iter().any(|word| word.contains(['[', ']', '(', ')'])) {
        Err(expected())
    } else {
        Ok(Choice { selected, offered })
    }
}

fn inside(word: &str) -> Option<&str> {
    let square = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let word = square.or_else(|| word.strip_prefix('(')?.strip_suffix(')'))?;
    Some(word).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_of_several() {
        for (text, selected, offered) in [
            ("always [madvise] never\n", "madvise", "always madvise never"),
            ("none voluntary (full)\n", "full", "none voluntary full"),
            ("[none] mq-deadline\n", "none", "none mq-deadline"),
            ("none\n", "none", "none"),
        ] {
            let offered = offered.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_choice(text), Ok(Choice { selected: selected.into(), offered }), "{text}");
        }
    }

    #[test]
    fn none_or_two_are_no_choice() {
        for bad in ["", "a b", "[a] [b]", "[]", "[] a", "[a b]", "[a] (b", "[a) b"] {
            assert!(parse_choice(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "([\\[(]?[a-z\\PC]{0,5}[\\])]? ?){0,5}") {
            if let Ok(choice) = parse_choice(&text) {
                prop_assert!(choice.offered.contains(&choice.selected) && !choice.selected.is_empty());
            }
        }
    }
}
