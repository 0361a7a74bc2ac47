//! `onbeat rules`: lists the rules, and explains one.

use super::Environment;
use super::outputs::{OutputFlags, Outputs, Screen};
use model::error::{Exit, Failure, Result};
use model::sort::CompactSort;
use report::rule_pages::{json, text};
use rules::Rule;

const JSON_HELP: &str = "Write the rules as JSON; `-` is standard output, which then holds nothing else";

/// List the rules, or print the documentation of one
///
/// A knob is a setting that `onbeat audit` checks: its meaning, why it matters, how it is read, the
/// cost of changing it, and the sources. A culprit is a cause of a spike: its symptoms, how it
/// differs from others, its remedies, what provokes it, and the knobs that cure it.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help(JSON_HELP)),
    mut_arg("quiet", |arg| arg.help("Print only the rule's id and its first lines")),
    after_help = "Examples:\n  onbeat rules\n  onbeat rules rt-throttling\n  onbeat rules irqs-off-section"
)]
pub struct Args {
    /// Id of the rule
    id: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let chosen = match args.id.as_deref() {
        None => Rule::all(),
        Some(id) => vec![Rule::find(id).ok_or_else(|| unknown(id))?],
    };
    outputs.write(&args.output.json, || json::json(&chosen));
    let Screen { columns, color } = outputs.screen;
    outputs.print(&match (&args.id, &chosen[..]) {
        (Some(_), [rule]) if args.output.quiet => text::brief(*rule, columns, color),
        (Some(_), [rule]) => text::page(*rule, columns, color),
        _ => text::list(&chosen, columns),
    });
    outputs.end(Exit::Ok)
}

/// Error for an unknown rule, which suggests rules with similar words.
fn unknown(id: &str) -> Failure {
    let start = |word: &str| word.chars().take(4).collect::<String>().to_ascii_lowercase();
    let asked: Vec<String> =
        id.split(['-', '_', ' ', '.']).map(start).filter(|start| start.len() > 2).collect();
    let alike = |known: &&str| known.split('-').any(|word| asked.contains(&start(word)));
    let mut near: Vec<&str> = Rule::all().iter().map(|rule| rule.id()).filter(alike).collect();
    near.compact_sort_by_key(|known| distance(known, id));
    near.truncate(3);
    let hint = if near.is_empty() { String::new() } else { format!(" (perhaps {}?)", near.join(", ")) };
    Failure::usage(format!("unknown rule '{id}'{hint}: `onbeat rules` lists them"))
}

/// Edit distance of two words: letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_is_suggested_first() {
        assert_eq!([distance("", "abc"), distance("kitten", "sitting"), distance("a", "a")], [3, 3, 0]);
        let said = |id: &str| unknown(id).message;
        assert!(said("fair-servr").contains("(perhaps fair-server, "), "{}", said("fair-servr"));
        assert!(said("rt-throtling").contains("(perhaps rt-throttling"), "{}", said("rt-throtling"));
        assert!(!said("fieldbusd").contains("perhaps"), "{}", said("fieldbusd"));
    }
}
