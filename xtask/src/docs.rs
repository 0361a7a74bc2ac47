//! The generated pages, checked by the gate: the command line's, the formats', the kernels', the
//! loads', the suites', and one for each rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::tools::{Result, root, write};

/// Folder that contains generated pages only.
const RULES: &str = "docs/rules";

/// Every generated page by its path below the workspace's folder.
fn pages() -> BTreeMap<PathBuf, String> {
    let rules = report::rule_pages::markdown::pages().into_iter();
    let rules = rules.map(|(name, text)| (PathBuf::from(RULES).join(name), text));
    let own = [
        ("docs/cli.md", onbeat::cli::reference()),
        ("docs/formats.md", bundle::foreign::page::markdown()),
        ("docs/kernels.md", crate::live::kernels::markdown()),
        ("docs/loads.md", load::page::markdown()),
        ("docs/suites.md", suite::page::markdown()),
    ];
    rules.chain(own.map(|(path, text)| (PathBuf::from(path), text))).collect()
}

/// Write the generated pages.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write nothing; list stale pages.
    #[arg(long)]
    check: bool,
}

/// Writes the pages, or names the stale ones.
pub fn run(options: &Args) -> Result<()> {
    if options.check { check() } else { make() }
}

fn make() -> Result<()> {
    let pages = pages();
    for left in left_over(&pages) {
        fs::remove_file(root().join(&left)).map_err(|error| format!("{}: {error}", left.display()))?;
    }
    fs::create_dir_all(root().join(RULES)).map_err(|error| format!("{RULES}: {error}"))?;
    pages.into_iter().try_for_each(|(path, text)| write(&root().join(path), text))
}

/// Fails with the names of outdated pages, and of those of removed rules.
pub fn check() -> Result<()> {
    let pages = pages();
    let fresh =
        |path: &PathBuf, text: &String| fs::read_to_string(root().join(path)).is_ok_and(|is| is == *text);
    let stale = pages.iter().filter(|(path, text)| !fresh(path, text)).map(|(path, _)| path.clone());
    let stale: Vec<String> = stale.chain(left_over(&pages)).map(|path| path.display().to_string()).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("run `cargo xtask docs`; stale: {}", stale.join(" "))) }
}

/// Pages of removed rules.
fn left_over(pages: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(RULES)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| PathBuf::from(RULES).join(entry.file_name()));
    paths.filter(|path| !pages.contains_key(path)).collect()
}
