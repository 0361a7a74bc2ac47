//! `onbeat rules`: what is known, rule by rule.

use std::path::{Path, PathBuf};

use super::{check_outputs, columns, print, write_output};
use crate::error::{Exit, Outcome, Trouble};
use crate::report::rules as pages;
use crate::rules::{self, knobs};

/// List the rules, or print all about one
///
/// A knob is a setting that `onbeat audit` judges: what it is, why it matters, how it is told, what changing it costs,
/// and where that is written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat rules\n  onbeat rules rt-throttling")]
pub struct Args {
    /// The rule's id
    id: Option<String>,
    /// Write the rules as JSON; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Lists or tells.
pub fn run(args: &Args) -> Outcome<Exit> {
    check_outputs(&[&args.json])?;
    let chosen = match args.id.as_deref() {
        None => knobs::ALL.to_vec(),
        Some(id) => vec![rules::find(id).ok_or_else(|| unknown(id))?],
    };
    if let Some(path) = &args.json {
        write_output(path, &pages::json(&chosen))?;
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        let text = match (&args.id, &chosen[..]) {
            (Some(_), [knob]) => pages::page(knob),
            _ => pages::list(&chosen, columns()),
        };
        print(text.as_bytes())?;
    }
    Ok(Exit::Fine)
}

/// Names the rules whose ids are alike.
fn unknown(id: &str) -> Trouble {
    let alike = |known: &&str| known.split('-').any(|part| part.len() > 2 && id.contains(part));
    let near: Vec<&str> = knobs::ALL.iter().map(|knob| knob.id).filter(alike).take(5).collect();
    let hint = if near.is_empty() { String::new() } else { format!(" (perhaps {}?)", near.join(", ")) };
    Trouble::usage(format!("there is no rule '{id}'{hint}: `onbeat rules` lists them"))
}
