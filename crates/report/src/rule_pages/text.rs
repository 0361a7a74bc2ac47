//! Rules for the terminal: the list, and the page of one, fitted to the terminal's width.

use std::fmt::Write;

use super::sheet::{Body, sheet};
use crate::palette::{BOLD, Palette};
use crate::words::filled;
use model::keyword::Keyword;
use rules::Rule;

/// Rules as a list.
pub fn list(rules: &[Rule], width: usize) -> String {
    let widest = rules.iter().map(|rule| rule.id().len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in rules {
        let (id, kind, severity, title) = match rule {
            Rule::Knob(knob) => (knob.id, "knob", knob.severity.name(), knob.title),
            Rule::Culprit(culprit) => (culprit.id, "culprit", "", culprit.title),
            Rule::Check(check) => (check.id, "check", check.severity.name(), check.title),
        };
        let first = format!("{id:<widest$}  {kind:<7}  {severity:<6}  ");
        filled(&mut text, &first, title, first.len(), width);
    }
    text
}

/// Id of a rule and its first lines.
pub fn brief(rule: Rule, width: usize, color: bool) -> String {
    let sheet = sheet(rule);
    let mut page = format!("{}\n", Palette(color).paint(BOLD, sheet.id));
    filled(&mut page, "", &sheet.lead, 0, width);
    page
}

/// Page of a rule. Its examples are for developers, and are in `docs/rules`.
pub fn page(rule: Rule, width: usize, color: bool) -> String {
    let (sheet, palette) = (sheet(rule), Palette(color));
    let mut page = brief(rule, width, color);
    let heading = |page: &mut String, words: &str| {
        let _ = writeln!(page, "\n{}", palette.paint(BOLD, words));
    };
    for (title, words) in &sheet.sections {
        heading(&mut page, title);
        match words {
            Body::Text(text) => filled(&mut page, "  ", text, 2, width),
            Body::Points(points) => {
                points
                    .iter()
                    .for_each(|point| filled(&mut page, "  - ", &point.words(str::to_owned), 4, width));
            }
        }
    }
    heading(&mut page, "Sources");
    filled(&mut page, "  ", sheet.evidence, 2, width);
    for (at, source) in sheet.sources.iter().enumerate() {
        if !sheet.sources[..at].iter().any(|earlier| earlier.title == source.title) {
            filled(&mut page, "  - ", source.title, 4, width);
        }
        // A URL is never wrapped, so that it can be opened and copied.
        let _ = writeln!(page, "    {}", source.url);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_fits_the_terminal() {
        for width in [40, 60, 80, 120] {
            for rule in Rule::all() {
                let text = page(rule, width, false);
                for line in text.lines() {
                    let word = line.trim_start_matches([' ', '-']);
                    let whole = !word.contains(' ');
                    assert!(whole || line.chars().count() <= width, "{width}: {line}");
                }
                assert!(!text.contains("](") && !text.contains("```") && !text.contains("\n#"), "{text}");
                assert!(!text.contains("Tried with"), "{text}");
            }
        }
    }

    #[test]
    fn a_source_is_named_once_and_a_list_is_not_cut() {
        for rule in Rule::all() {
            let text = page(rule, 200, false);
            let sources = text.split_once("\nSources\n").map_or("", |(_, sources)| sources);
            let own = sheet(rule).sources.iter().map(|source| source.title);
            assert!(
                own.clone().count() == own.collect::<std::collections::BTreeSet<_>>().len(),
                "{}",
                rule.id()
            );
            let mut titles: Vec<&str> = sources.lines().filter(|line| line.starts_with("  - ")).collect();
            let all = titles.len();
            titles.sort_unstable();
            titles.dedup();
            assert_eq!(titles.len(), all, "{text}");
        }
        let text = list(&Rule::all(), 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for knob in rules::knobs::ALL {
            assert!(words.contains(knob.title), "{}", knob.title);
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}
