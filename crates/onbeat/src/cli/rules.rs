//! `onbeat rules`: lists the rules, and explains one.

use super::Environment;
use super::outputs::{OutputFlags, Outputs, Screen};
use model::error::{Exit, Failure, Result};
use report::rule_pages::{json, text};
use rules::Rule;

const JSON_HELP: &str = "Write the rules as JSON; `-` is standard output, which then holds nothing else";

/// List the rules, or print all about one
///
/// A knob is a setting that `onbeat audit` judges: what it is, why it matters, how it is told, what
/// changing it costs, and where that is written. A culprit is what takes the time of a spike: what
/// it looks like, how it is told from others, what to do about it, what provokes it, and which
/// knobs cure it.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help(JSON_HELP)),
    mut_arg("quiet", |arg| arg.help("Of one rule its id and its first lines alone")),
    after_help = "Examples:\n  onbeat rules\n  onbeat rules rt-throttling\n  onbeat rules irqs-off-section"
)]
pub struct Args {
    /// The rule's id
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
    near.sort_by_key(|known| distance(known, id));
    near.truncate(3);
    let hint = if near.is_empty() { String::new() } else { format!(" (perhaps {}?)", near.join(", ")) };
    Failure::usage(format!("there is no rule '{id}'{hint}: `onbeat rules` lists them"))
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
