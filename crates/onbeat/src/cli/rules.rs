//! `onbeat rules`: lists the rules, and explains one.

use std::path::PathBuf;

use super::Environment;
use super::outputs::{Outputs, Screen};
use model::error::{Exit, Failure, Result};
use report::rule_pages::{json, text};
use rules::Rule;

/// List the rules, or print all about one
///
/// A knob is a setting that `onbeat audit` judges: what it is, why it matters, how it is told, what
/// changing it costs, and where that is written. A culprit is what takes the time of a spike: what
/// it looks like, how it is told from others, what to do about it, what provokes it, and which
/// knobs cure it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat rules\n  onbeat rules rt-throttling\n  onbeat rules irqs-off-section"
)]
pub struct Args {
    /// The rule's id
    id: Option<String>,
    /// Write the rules as JSON; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.json], environment)?;
    let chosen = match args.id.as_deref() {
        None => Rule::all(),
        Some(id) => vec![Rule::find(id).ok_or_else(|| unknown(id))?],
    };
    outputs.write(&args.json, || json::json(&chosen));
    let Screen { columns, color } = outputs.screen;
    outputs.print(&match (&args.id, &chosen[..]) {
        (Some(_), [rule]) => text::page(*rule, columns, color),
        _ => text::list(&chosen, columns),
    });
    outputs.end(Exit::Ok)
}

/// Suggests the rules whose ids begin with the same word.
fn unknown(id: &str) -> Failure {
    let start = |word: &str| word.chars().take(4).collect::<String>().to_ascii_lowercase();
    let asked: Vec<String> =
        id.split(['-', '_', ' ', '.']).map(start).filter(|start| start.len() > 2).collect();
    let alike = |known: &&str| known.split('-').any(|word| asked.contains(&start(word)));
    let near: Vec<&str> = Rule::all().iter().map(|rule| rule.id()).filter(alike).take(5).collect();
    let hint = if near.is_empty() { String::new() } else { format!(" (perhaps {}?)", near.join(", ")) };
    Failure::usage(format!("there is no rule '{id}'{hint}: `onbeat rules` lists them"))
}
