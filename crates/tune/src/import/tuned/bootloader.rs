//! Words that a profile adds to the kernel's command line.

use super::functions::FailedAssertion;
use super::unit::TunedUnit;
use super::values::{Values, unquoted};
use crate::import::Collected;

const WHY: &str = "the kernel reads it from its command line, and onbeat edits no boot loader";
const INSTEAD: &str = "add the parameters by hand: `onbeat tune export` shows where";

/// Lists the words of all `cmdline` options together, and the other options.
pub fn collect(unit: &TunedUnit, values: &Values, collected: &mut Collected) -> Result<(), FailedAssertion> {
    let options = unit.options.in_order();
    let (lines, others): (Vec<_>, Vec<_>) =
        options.into_iter().partition(|(name, _)| name.starts_with("cmdline"));
    let words = lines.into_iter().fold(String::new(), |words, (_, value)| with_option(&words, value));
    let words = words.trim();
    if !words.is_empty() {
        let (text, trouble) = values.readable(unquoted(words))?;
        let why = trouble.map_or_else(|| WHY.to_owned(), |trouble| format!("{WHY}; {trouble}"));
        collected.leave(format!("[{}] cmdline = {text}", unit.name), why, INSTEAD);
    }
    for (name, value) in others {
        let (text, _) = values.readable(value)?;
        collected.leave(format!("[{}] {name} = {text}", unit.name), "no boot loader is edited", "");
    }
    Ok(())
}

/// Adds the words of an option, or removes those of one that starts with a dash.
fn with_option(words: &str, value: &str) -> String {
    if let Some(removed) = value.strip_prefix('-') {
        let removed: Vec<&str> = removed.split_whitespace().collect();
        return words
            .split_whitespace()
            .filter(|word| !removed.contains(word))
            .map(|word| format!(" {word}"))
            .collect();
    }
    let is_escape = value.starts_with("\\\\") || value.starts_with("\\+") || value.starts_with("\\-");
    let added = if is_escape { &value[1..] } else { value.strip_prefix('+').unwrap_or(value) };
    match added.trim() {
        "" => words.to_owned(),
        added => format!("{words} {added}"),
    }
}
